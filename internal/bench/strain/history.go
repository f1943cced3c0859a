package strain

import (
	"context"
	"errors"
	"fmt"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// history is B8: the same tick over ever more history.
func history(ctx context.Context, b bench) ([]report.Result, error) {
	sizes := lab.Either(b.Quick, []int64{100_000, 1_000_000}, []int64{1_000_000, 10_000_000})
	if b.Huge {
		sizes = append(sizes, 100_000_000)
	}
	r := report.Result{
		ID: "B8", Title: "History: a tick over ever more exchanges", Unit: "a tick with 1,000 exchanges that completed and 10 that failed",
		Notes: []string{
			"The history is the month before the rule was armed, of the same tenant. Rows and parts are ClickHouse's own counts, over all queries of a tick: the forward scan and the look-back.",
			"A tick's time runs from the instant at which the rule is due; it includes up to 5 ms until the next tick begins.",
		},
	}
	var least []pass
	for _, size := range sizes {
		passes, err := b.over(ctx, size)
		if err != nil {
			return []report.Result{r}, fmt.Errorf("%d exchanges: %w", size, err)
		}
		name := report.Number(float64(size)) + " exchanges"
		const fresh, granule = 1010, 8192
		r.Figures = append(r.Figures,
			report.Of(name+", a tick takes", "ms", lab.Of(passes, func(p pass) float64 { return p.took.Seconds() * 1000 }), nil),
			report.Of(name+", CPU of a tick", "ms", lab.Of(passes, func(p pass) float64 { return p.cpu.Seconds() * 1000 }), nil),
			report.Of(name+", rows read", "rows", lab.Of(passes, func(p pass) float64 { return float64(p.read.Rows) }), nil),
			report.Of(name+", rows read over new + 8,192 × parts", "×",
				lab.Of(passes, func(p pass) float64 { return float64(p.read.Rows) / float64(fresh+granule*p.read.Parts) }), report.AtMost(1)))
		if least == nil {
			least = passes
			continue
		}
		r.Figures = append(r.Figures, report.Of("time("+name+") over time("+report.Number(float64(sizes[0]))+")", "×",
			lab.Ratios(passes, least, func(p pass) float64 { return p.took.Seconds() }), report.AtMost(1.2)))
	}
	return []report.Result{r}, nil
}

// over measures ticks over so much history.
func (b bench) over(ctx context.Context, size int64) (passes []pass, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	if err := world.History(ctx, size); err != nil {
		return nil, err
	}
	if _, err := world.Rule(ctx, 3600, nil); err != nil {
		return nil, err
	}
	replica, err := world.Start(ctx, "TOCSIN_ROLES=evaluate", "TOCSIN_TICK_INTERVAL=5ms")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	processes := map[string]int{"Tocsin": replica.PID(), "Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID}
	const warm = 3
	for nth := range warm + lab.Either(b.Quick, 5, 21) {
		p, err := b.pass(ctx, world, processes, func() error {
			if err := world.Fresh(ctx, product.Exchanges{Count: 1000, Prefix: fmt.Sprintf("done-%d-", nth), Completed: true}); err != nil {
				return err
			}
			return world.Fresh(ctx, product.Exchanges{Count: 10, Prefix: fmt.Sprintf("failed-%d-", nth)})
		})
		if err != nil {
			return nil, err
		}
		n, err := world.Number(ctx, "select count(*) from alert")
		if err == nil && n != int64(10*(nth+1)) {
			err = fmt.Errorf("%d alerts, want %d", n, 10*(nth+1))
		}
		if err != nil {
			return nil, err
		}
		if nth >= warm {
			passes = append(passes, p)
		}
	}
	b.Tell(fmt.Sprintf("%d exchanges: the last tick took %v and read %+v", size, passes[len(passes)-1].took, passes[len(passes)-1].read))
	return passes, nil
}
