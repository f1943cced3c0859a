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
	"tocsin/internal/bench/trial"
)

// mean returns the mean of passes; of the queries the median, since every now and then a
// pass looks at the older look-back, too.
func mean(passes []lab.Pass) lab.Pass {
	m := lab.Pass{Used: meter.Reading{}}
	n := time.Duration(len(passes))
	for _, p := range passes {
		m.Took += p.Took / n
		m.CPU += p.CPU / n
		for name, used := range p.Used {
			m.Used[name] += used / n
		}
	}
	m.Read.Queries = int64(trial.Summarise(lab.Of(passes, func(p lab.Pass) float64 { return float64(p.Read.Queries) })).Median)
	return m
}

// crowd is a world with so many rules, of which one matches and raises alerts.
type crowd struct {
	world *product.World
	rules int
	// mixed says that a fifth of the rules is over a window, as many of each mode.
	mixed   bool
	passing lab.Passing
	passes  []lab.Pass
}

func (c *crowd) String() string {
	name := report.Number(float64(c.rules)) + " rules"
	if c.mixed {
		name += " of all kinds"
	}
	return name
}

// manyRules is B7: the same new exchanges, evaluated by ever more rules.
func manyRules(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "B7", Title: "Rules: 1,000 new exchanges, evaluated by ever more rules", Unit: "a pass",
		Notes: []string{
			"One rule matches every exchange, and has no webhook. Each of the others has its own application, its own route and an expression, and matches none. So each pass raises the same 1,000 alerts.",
			"Every pass evaluates all rules. The measurement begins when the exchanges are visible, shortly after a pass, and ends with the next pass. The duration of a pass comes from the replica's own histogram.",
			"Of the rules of all kinds, one in five is over a window of one or five minutes. There are equally many of each mode, grouped by route, application, environment and attribute. Each pass evaluates all of them. They are compared with fewer rules of the same kinds, because the number of queries depends on the kinds.",
		},
	}
	var crowds []*crowd
	defer func() {
		for _, c := range crowds {
			if err := c.world.Close(ctx); err != nil {
				b.Progress(err.Error())
			}
		}
	}()
	err := b.crowds(ctx, &crowds)
	if err != nil {
		return []report.Result{r}, err
	}
	one := crowds[0]
	for i, c := range crowds {
		name := c.String()
		if c.mixed && !crowds[i-1].mixed {
			one = c
		}
		r.Figures = append(r.Figures,
			report.Of(name+", CPU of a pass", "ms", lab.Of(c.passes, func(p lab.Pass) float64 { return p.CPU.Seconds() * 1000 }), nil),
			report.Of(name+", a pass takes", "ms", lab.Of(c.passes, func(p lab.Pass) float64 { return p.Took.Seconds() * 1000 }), nil),
			report.Of(name+", queries of ClickHouse", "", lab.Of(c.passes, func(p lab.Pass) float64 { return float64(p.Read.Queries) }), nil))
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
			report.Of("CPU("+name+") over CPU("+one.String()+")", "×", lab.Ratios(c.passes, one.passes, func(p lab.Pass) float64 { return p.CPU.Seconds() }), cpuBound),
			report.Of("queries("+name+") over queries("+one.String()+")", "×", lab.Ratios(c.passes, one.passes, func(p lab.Pass) float64 { return float64(p.Read.Queries) }), queryBound))
	}
	return []report.Result{r}, nil
}

func (b bench) crowds(ctx context.Context, crowds *[]*crowd) error {
	plain := lab.Either(b.Quick, []int{1, 100, 10_000}, []int{1, 100, 10_000, 100_000})
	for i, rules := range append(plain, 2000, 10_000) {
		mixed := i >= len(plain)
		world, err := b.Engines.NewWorld(ctx)
		if err != nil {
			return err
		}
		*crowds = append(*crowds, &crowd{world: world, rules: rules, mixed: mixed, passing: lab.Passing{
			World: world, Partitions: 1, Alerts: newExchanges,
			Write: func(nth int) error {
				return world.Fresh(ctx, product.Exchanges{Count: newExchanges, Prefix: fmt.Sprintf("execution-%d-", nth)})
			},
		}})
		if _, err := world.Rule(ctx, nil, "orders"); err != nil {
			return err
		}
		windows := 0
		if mixed {
			windows = rules / 5
			if err := world.Windows(ctx, []string{product.Tenant}, windows); err != nil {
				return err
			}
		}
		if err := world.Crowd(ctx, rules-1-windows); err != nil {
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
				return fmt.Errorf("%v: %w", c, err)
			}
		}
	}
	return nil
}

// newExchanges are found by each pass.
const newExchanges = 1000

// measured is how many passes a trial measures, and measuredMixed with window rules, whose passes are longer. The kernel
// counts processor time by 10 ms for each process, and a pass without window rules takes some 70.
const measured, measuredMixed = 20, 5

// passes starts a replica, lets it come to know the rules, and measures passes.
func (b bench) passes(ctx context.Context, c *crowd) (err error) {
	interval, count := lab.PassInterval, measured
	if c.mixed {
		interval, count = lab.WindowsInterval, measuredMixed
	}
	replica, err := c.world.Start(ctx, "TOCSIN_ROLES=api,evaluate", "TOCSIN_TICK_INTERVAL="+interval.String(), "TOCSIN_PARTITION_LEASE=5m")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	c.passing.Replica = replica
	var passes []lab.Pass
	for nth := range 1 + count {
		p, err := b.Next(ctx, &c.passing)
		if err != nil {
			return err
		}
		if nth > 0 {
			passes = append(passes, p)
		}
	}
	p := mean(passes)
	c.passes = append(c.passes, p)
	b.Progress(fmt.Sprintf("%v: %v, %v of CPU (%v), %d queries", c, p.Took.Round(time.Millisecond), p.CPU, p.Used, p.Read.Queries))
	return nil
}
