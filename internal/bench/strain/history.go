package strain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// history is B8: the same tick over ever more history, alternately.
func history(ctx context.Context, b bench) (results []report.Result, err error) {
	sizes := lab.Either(b.Quick, []int64{100_000, 1_000_000}, []int64{1_000_000, 10_000_000})
	if b.Huge {
		sizes = append(sizes, 100_000_000)
	}
	r := report.Result{
		ID: "B8", Title: "History: a pass over ever more exchanges", Unit: "a pass with 1,000 exchanges that completed and 10 that failed",
		Notes: []string{
			"The history is the month before the rule was armed, of the same tenant. Rows and parts are ClickHouse's own counts, over all queries of a pass.",
			"The duration of a pass comes from the replica's own histogram. The replicas of the other histories are paused meanwhile (SIGSTOP).",
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
	for nth := range warm + lab.Either(b.Quick, 5, 21) {
		order := slices.Clone(eras)
		if nth%2 == 1 {
			slices.Reverse(order)
		}
		for _, e := range order {
			p, err := b.measurePass(ctx, e)
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
			report.Of(name+", a pass takes", "ms", lab.Of(e.passes, func(p lab.Pass) float64 { return p.Took.Seconds() * 1000 }), nil),
			report.Of(name+", CPU of a pass", "ms", lab.Of(e.passes, func(p lab.Pass) float64 { return p.CPU.Seconds() * 1000 }), nil),
			report.Of(name+", rows read", "rows", lab.Of(e.passes, func(p lab.Pass) float64 { return float64(p.Read.Rows) }), nil),
			report.Of(name+", rows read over new + 8,192 × parts", "×",
				lab.Of(e.passes, func(p lab.Pass) float64 { return float64(p.Read.Rows) / float64(fresh+granule*p.Read.Parts) }), report.AtMost(1)))
		if i > 0 {
			r.Figures = append(r.Figures, report.Of("time("+name+") over time("+report.Number(float64(sizes[0]))+")", "×",
				lab.Ratios(e.passes, eras[0].passes, func(p lab.Pass) float64 { return p.Took.Seconds() }), report.AtMost(1.2)))
		}
	}
	return []report.Result{r}, nil
}

// era is a world with so much history, and a replica of its own.
type era struct {
	size    int64
	world   *product.World
	replica *product.Replica
	passing lab.Passing
	passes  []lab.Pass
}

func (e *era) end(ctx context.Context) (err error) {
	if e.replica != nil {
		err = errors.Join(e.replica.Resume(), e.replica.End())
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
	if err := world.History(ctx, product.Past{Count: size, Span: 30 * 24 * time.Hour, Ago: 2 * time.Hour}); err != nil {
		return e, err
	}
	if _, err := world.Rule(ctx, nil); err != nil {
		return e, err
	}
	if e.replica, err = world.Start(ctx, "TOCSIN_ROLES=api,evaluate", "TOCSIN_TICK_INTERVAL="+lab.PassInterval.String(), "TOCSIN_PARTITION_LEASE=30m"); err != nil {
		return e, err
	}
	e.passing = lab.Passing{World: world, Replica: e.replica, Partitions: 1, Alerts: 10, Write: func(nth int) error {
		if err := world.Fresh(ctx, product.Exchanges{Count: 1000, Prefix: fmt.Sprintf("done-%d-", nth), Completed: true}); err != nil {
			return err
		}
		return world.Fresh(ctx, product.Exchanges{Count: 10, Prefix: fmt.Sprintf("failed-%d-", nth)})
	}}
	if _, err := world.AwaitCaughtUp(ctx); err != nil {
		return e, err
	}
	return e, e.replica.Pause()
}

// measurePass measures one pass, while the replicas of the other histories are paused.
func (b bench) measurePass(ctx context.Context, e *era) (p lab.Pass, err error) {
	if err := e.replica.Resume(); err != nil {
		return p, err
	}
	// The first pass after a pause looks at all of the look-back.
	if _, err := e.world.AwaitCaughtUp(ctx); err != nil {
		return p, err
	}
	p, err = b.Next(ctx, &e.passing)
	return p, errors.Join(err, e.replica.Pause())
}
