package strain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/meter"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// pass is one evaluation of all rules of a world with new exchanges, or the mean
// of several.
type pass struct {
	took time.Duration
	cpu  time.Duration
	// used is what each process has of the processor time.
	used meter.Reading
	read product.Reads
}

// mean returns the mean of passes; of the queries the most.
func mean(passes []pass) pass {
	m := pass{used: meter.Reading{}}
	n := time.Duration(len(passes))
	for _, p := range passes {
		m.took += p.took / n
		m.cpu += p.cpu / n
		for name, used := range p.used {
			m.used[name] += used / n
		}
		m.read.Queries = max(m.read.Queries, p.read.Queries)
	}
	return m
}

// crowd is a world with so many rules, of which one matches and raises alerts.
type crowd struct {
	world  *product.World
	rules  int
	passes []pass
	rounds int
}

// manyRules is B7: the same new exchanges, judged by ever more rules.
func manyRules(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "B7", Title: "Rules: 1,000 new exchanges, judged by ever more rules", Unit: "a pass, in which every rule is due once",
		Notes: []string{
			"One rule matches every exchange, and has no webhook; the others, each for an application and a route of its own and with an expression, match none. So each pass raises the same 1,000 alerts.",
			"Before what is measured the rules have run, and share cursors: at most 20,000 of them one.",
		},
	}
	var crowds []*crowd
	defer func() {
		for _, c := range crowds {
			if err := c.world.Close(ctx); err != nil {
				b.Tell(err.Error())
			}
		}
	}()
	err := b.crowds(ctx, &crowds)
	if err != nil {
		return []report.Result{r}, err
	}
	one := crowds[0]
	for _, c := range crowds {
		name := report.Number(float64(c.rules)) + " rules"
		r.Figures = append(r.Figures,
			report.Of(name+", CPU of a pass", "ms", lab.Of(c.passes, func(p pass) float64 { return p.cpu.Seconds() * 1000 }), nil),
			report.Of(name+", a pass takes", "ms", lab.Of(c.passes, func(p pass) float64 { return p.took.Seconds() * 1000 }), nil),
			report.Of(name+", queries of ClickHouse", "", lab.Of(c.passes, func(p pass) float64 { return float64(p.read.Queries) }), nil))
		if c == one {
			continue
		}
		var cpuBound, queryBound *report.Bound
		if c.rules == 10_000 {
			cpuBound = report.AtMost(1.3)
		}
		if c.rules <= 10_000 {
			queryBound = report.AtMost(1)
		}
		r.Figures = append(r.Figures,
			report.Of("CPU("+name+") over CPU(1 rule)", "×", lab.Ratios(c.passes, one.passes, func(p pass) float64 { return p.cpu.Seconds() }), cpuBound),
			report.Of("queries("+name+") over queries(1 rule)", "×", lab.Ratios(c.passes, one.passes, func(p pass) float64 { return float64(p.read.Queries) }), queryBound))
	}
	return []report.Result{r}, nil
}

func (b bench) crowds(ctx context.Context, crowds *[]*crowd) error {
	for _, rules := range lab.Either(b.Quick, []int{1, 100, 10_000}, []int{1, 100, 10_000, 100_000}) {
		world, err := b.Engines.NewWorld(ctx)
		if err != nil {
			return err
		}
		*crowds = append(*crowds, &crowd{world: world, rules: rules})
		if _, err := world.Rule(ctx, 3600, nil, "orders"); err != nil {
			return err
		}
		if err := world.Crowd(ctx, rules-1); err != nil {
			return err
		}
	}
	for nth := range lab.Either(b.Quick, 1, min(3, b.Trials)) {
		for i := range *crowds {
			if nth%2 == 1 {
				i = len(*crowds) - 1 - i
			}
			c := (*crowds)[i]
			if err := b.passes(ctx, c); err != nil {
				return fmt.Errorf("%d rules: %w", c.rules, err)
			}
		}
	}
	return nil
}

// measured is how many passes a trial measures. The kernel counts processor time
// by 10 ms, and a pass takes some 100.
const measured = 5

// passes starts a replica, lets it come to know the rules, and measures passes.
func (b bench) passes(ctx context.Context, c *crowd) (err error) {
	replica, err := c.world.Start(ctx, "TOCSIN_ROLES=evaluate", "TOCSIN_TICK_INTERVAL=50ms", "TOCSIN_PARTITION_LEASE=5m")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	const exchanges = 1000
	var passes []pass
	for nth := range 1 + measured {
		c.rounds++
		p, err := b.pass(ctx, c.world, map[string]int{"Tocsin": replica.PID(), "Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID},
			func() error {
				return c.world.Fresh(ctx, product.Exchanges{Count: exchanges, Prefix: fmt.Sprintf("execution-%d-", c.rounds)})
			})
		if err != nil {
			return err
		}
		n, err := c.world.Number(ctx, "select count(*) from alert")
		if err == nil && n != int64(c.rounds*exchanges) {
			err = fmt.Errorf("%d alerts of %d exchanges", n, c.rounds*exchanges)
		}
		if err != nil {
			return err
		}
		if nth > 0 {
			passes = append(passes, p)
		}
	}
	p := mean(passes)
	c.passes = append(c.passes, p)
	b.Tell(fmt.Sprintf("%d rules: %v, %v of CPU (%v), %d queries", c.rules, p.took.Round(time.Millisecond), p.cpu, p.used, p.read.Queries))
	return nil
}

// pass writes what is new, has all rules become due at an instant that is still
// to come, so that nothing of that is measured, and measures what they do then.
func (b bench) pass(ctx context.Context, world *product.World, processes map[string]int, write func() error) (p pass, err error) {
	if _, err := world.AwaitRun(ctx); err != nil {
		return p, err
	}
	if err := write(); err != nil {
		return p, err
	}
	due, err := world.DueIn(ctx, 300*time.Millisecond)
	if err != nil {
		return p, err
	}
	readBefore, err := world.Reads(ctx)
	if err != nil {
		return p, err
	}
	select {
	case <-ctx.Done():
		return p, ctx.Err()
	case <-time.After(time.Until(due)):
	}
	before, err := meter.Read(processes)
	if err != nil {
		return p, err
	}
	ended, err := world.AwaitRun(ctx)
	if err != nil {
		return p, err
	}
	after, err := meter.Read(processes)
	if err != nil {
		return p, err
	}
	p.used = after.Since(before)
	for _, used := range p.used {
		p.cpu += used
	}
	p.took = ended.Sub(due)
	p.read, err = world.Reads(ctx)
	p.read = p.read.Since(readBefore)
	return p, err
}
