package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

const granule = 8192

// source is L7: what an idle pass and a busy one cost ClickHouse.
func source(ctx context.Context, b bench) ([]report.Result, error) {
	history := lab.Either[int64](b.Quick, 100_000, 1_000_000)
	r := report.Result{
		ID: "L7", Title: fmt.Sprintf("ClickHouse's cost of a pass, over %s exchanges", report.Number(float64(history))), Unit: "a pass",
		Notes: []string{
			"Rows, parts and queries are ClickHouse's own counts (system.events), over all queries. Idle passes are those of some seconds without new exchanges, at the default tick. They include the looks at the older look-back, every ten seconds.",
			"The processor time of an idle second is that of the ClickHouse process with a replica, minus that without one.",
			"A busy pass finds 1,000 exchanges that completed and 10 that failed.",
		},
	}
	c, err := b.cost(ctx, history)
	if err != nil {
		return []report.Result{r}, err
	}
	rows := func(p lab.Pass) float64 { return float64(p.Read.Rows) }
	r.Figures = []report.Figure{
		report.One("CPU of ClickHouse in an idle second", "ms", c.idleCPU, report.AtMost(10)),
		report.One("without a replica", "ms", c.withoutCPU, nil),
		report.One("queries of an idle pass", "", c.idleQueries, nil),
		report.One("rows read by an idle pass", "rows", c.idleRows, nil),
		report.One("rows read by an idle pass over 8,192 × parts", "×", c.idleOver, report.AtMost(1)),
		report.Of("queries of a busy pass", "", lab.Of(c.busy, func(p lab.Pass) float64 { return float64(p.Read.Queries) }), nil),
		report.Of("rows read by a busy pass", "rows", lab.Of(c.busy, rows), nil),
		report.Of("rows read by a busy pass over new + 8,192 × parts", "×",
			lab.Of(c.busy, func(p lab.Pass) float64 { return rows(p) / float64(sourceNew+sourceFailed+granule*p.Read.Parts) }), report.AtMost(1)),
		report.Of("CPU of ClickHouse for a busy pass", "ms", lab.Of(c.busy, func(p lab.Pass) float64 { return p.Used["ClickHouse"].Seconds() * 1000 }), nil),
	}
	return []report.Result{r}, nil
}

const sourceNew, sourceFailed = 1000, 10

// costs are what passes cost ClickHouse: CPU time in milliseconds per second, and queries and rows
// per pass.
type costs struct {
	idleCPU, withoutCPU, idleQueries, idleRows, idleOver float64
	busy                                                 []lab.Pass
}

func (b bench) cost(ctx context.Context, history int64) (c costs, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	if _, err := world.Rule(ctx, nil); err != nil {
		return c, err
	}
	if err := world.History(ctx, product.Past{Count: history, Span: 30 * 24 * time.Hour, Ago: 2 * time.Hour}); err != nil {
		return c, err
	}
	// Parts are being merged for some time after they were written.
	if _, err := world.ClickHouse(ctx, "OPTIMIZE TABLE exchanges FINAL"); err != nil {
		return c, err
	}
	lasting := lab.Either(b.Quick, 5*time.Second, 20*time.Second)
	without, err := b.resting(ctx, lasting)
	if err != nil {
		return c, err
	}
	replica, err := world.Start(ctx, "TOCSIN_ROLES=api,evaluate")
	if err != nil {
		return c, err
	}
	if err := b.idle(ctx, world, replica, &c, lasting); err != nil {
		return c, errors.Join(err, replica.End())
	}
	c.withoutCPU = without
	c.idleCPU -= without
	if err := replica.End(); err != nil {
		return c, err
	}
	c.busy, err = b.busy(ctx, world)
	return c, err
}

// resting returns the CPU time of ClickHouse per second, in milliseconds.
func (b bench) resting(ctx context.Context, lasting time.Duration) (float64, error) {
	used, err := lab.Metered(map[string]int{"ClickHouse": b.Engines.ClickHousePID})
	if err != nil {
		return 0, err
	}
	if err := lab.Wait(ctx, lasting); err != nil {
		return 0, err
	}
	cpu, err := used()
	return cpu["ClickHouse"].Seconds() * 1000 / lasting.Seconds(), err
}

// idle measures passes that find nothing.
func (b bench) idle(ctx context.Context, world *product.World, replica *product.Replica, c *costs, lasting time.Duration) (err error) {
	if _, err := world.AwaitCaughtUp(ctx); err != nil {
		return err
	}
	before, err := replica.Passes(ctx)
	if err != nil {
		return err
	}
	readBefore, err := world.Reads(ctx)
	if err != nil {
		return err
	}
	if c.idleCPU, err = b.resting(ctx, lasting); err != nil {
		return err
	}
	readAfter, err := world.Reads(ctx)
	if err != nil {
		return err
	}
	after, err := replica.Passes(ctx)
	if err != nil {
		return err
	}
	read, passes := readAfter.Since(readBefore), float64(after.Since(before).Count)
	c.idleQueries, c.idleRows = float64(read.Queries)/passes, float64(read.Rows)/passes
	c.idleOver = float64(read.Rows) / float64(granule*max(1, read.Parts))
	return nil
}

// busy measures passes that find something.
func (b bench) busy(ctx context.Context, world *product.World) (passes []lab.Pass, err error) {
	replica, err := world.Start(ctx, "TOCSIN_ROLES=api,evaluate", "TOCSIN_TICK_INTERVAL="+lab.PassInterval.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	passing := lab.Passing{World: world, Replica: replica, Partitions: 1, Alerts: sourceFailed, Write: func(nth int) error {
		if err := world.Fresh(ctx, product.Exchanges{Count: sourceNew, Prefix: fmt.Sprintf("done-%d-", nth), Completed: true}); err != nil {
			return err
		}
		return world.Fresh(ctx, product.Exchanges{Count: sourceFailed, Prefix: fmt.Sprintf("failed-%d-", nth)})
	}}
	for range lab.Either(b.Quick, 3, 15) {
		p, err := b.Next(ctx, &passing)
		if err != nil {
			return nil, err
		}
		passes = append(passes, p)
	}
	return passes, nil
}
