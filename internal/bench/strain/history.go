package strain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// history is B8: the same tick over ever more history, by turns.
func history(ctx context.Context, b bench) (results []report.Result, err error) {
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
	eras := make([]*era, 0, len(sizes))
	defer func() {
		for _, e := range eras {
			err = errors.Join(err, e.end(ctx))
		}
	}()
	for _, size := range sizes {
		e, err := b.begin(ctx, size)
		if err != nil {
			return []report.Result{r}, fmt.Errorf("%d exchanges: %w", size, err)
		}
		eras = append(eras, e)
	}
	const warm = 3
	for nth := range warm + lab.Either(b.Quick, 5, 41) {
		order := slices.Clone(eras)
		if nth%2 == 1 {
			slices.Reverse(order)
		}
		for _, e := range order {
			p, err := b.tick(ctx, e, nth)
			if err != nil {
				return []report.Result{r}, fmt.Errorf("%d exchanges: %w", e.size, err)
			}
			if nth >= warm {
				e.passes = append(e.passes, p)
			}
		}
	}
	for i, e := range eras {
		name := report.Number(float64(e.size)) + " exchanges"
		const fresh, granule = 1010, 8192
		r.Figures = append(r.Figures,
			report.Of(name+", a tick takes", "ms", lab.Of(e.passes, func(p pass) float64 { return p.took.Seconds() * 1000 }), nil),
			report.Of(name+", CPU of a tick", "ms", lab.Of(e.passes, func(p pass) float64 { return p.cpu.Seconds() * 1000 }), nil),
			report.Of(name+", rows read", "rows", lab.Of(e.passes, func(p pass) float64 { return float64(p.read.Rows) }), nil),
			report.Of(name+", rows read over new + 8,192 × parts", "×",
				lab.Of(e.passes, func(p pass) float64 { return float64(p.read.Rows) / float64(fresh+granule*p.read.Parts) }), report.AtMost(1)))
		if i > 0 {
			r.Figures = append(r.Figures, report.Of("time("+name+") over time("+report.Number(float64(sizes[0]))+")", "×",
				lab.Ratios(e.passes, eras[0].passes, func(p pass) float64 { return p.took.Seconds() }), report.AtMost(1.2)))
		}
	}
	return []report.Result{r}, nil
}

// era is a world with so much history, and a replica of its own.
type era struct {
	size      int64
	world     *product.World
	replica   *product.Replica
	processes map[string]int
	passes    []pass
}

func (e *era) end(ctx context.Context) (err error) {
	if e.replica != nil {
		err = e.replica.End()
	}
	return errors.Join(err, e.world.Close(ctx))
}

// begin fills a world and starts its replica.
func (b bench) begin(ctx context.Context, size int64) (e *era, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, err
	}
	e = &era{size: size, world: world}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.end(ctx))
		}
	}()
	if err := world.History(ctx, size); err != nil {
		return e, err
	}
	if _, err := world.Rule(ctx, 3600, nil); err != nil {
		return e, err
	}
	if e.replica, err = world.Start(ctx, "TOCSIN_ROLES=evaluate", "TOCSIN_TICK_INTERVAL=5ms"); err != nil {
		return e, err
	}
	e.processes = map[string]int{"Tocsin": e.replica.PID(), "Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID}
	return e, nil
}

// tick measures one.
func (b bench) tick(ctx context.Context, e *era, nth int) (pass, error) {
	p, err := b.pass(ctx, e.world, e.processes, func() error {
		if err := e.world.Fresh(ctx, product.Exchanges{Count: 1000, Prefix: fmt.Sprintf("done-%d-", nth), Completed: true}); err != nil {
			return err
		}
		return e.world.Fresh(ctx, product.Exchanges{Count: 10, Prefix: fmt.Sprintf("failed-%d-", nth)})
	})
	if err != nil {
		return p, err
	}
	n, err := e.world.Number(ctx, "select count(*) from alert")
	if err == nil && n != int64(10*(nth+1)) {
		err = fmt.Errorf("%d alerts, want %d", n, 10*(nth+1))
	}
	return p, err
}
