package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

const (
	tenantRules     = 10
	tenantExchanges = 1000
)

// tenants is L5: the same traffic of more and more tenants.
func tenants(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "L5", Title: "Tenants: the same 1,000 new exchanges of ever more tenants, 10 rules each", Unit: "a pass over one partition",
		Notes: []string{
			"All tenants share one partition. One rule of each tenant matches its exchanges, and has no webhook. The history is the month before, of the same tenants.",
			"Of the rules of all kinds, each tenant has four over a window, one of each mode. Each pass evaluates all of them.",
			"Replicas share the default number of partitions, 8. Shares count as fair when all partitions are held and no replica holds more than its share.",
		},
	}
	sizes := lab.Either(b.Quick, []int{1, 100, 1000}, []int{1, 100, 10_000})
	for _, mixed := range []bool{false, true} {
		figures, err := b.tenantPasses(ctx, sizes, mixed)
		r.Figures = append(r.Figures, figures...)
		if err != nil {
			return []report.Result{r}, err
		}
	}
	shares, err := b.shares(ctx, sizes[len(sizes)-1])
	r.Figures = append(r.Figures, shares...)
	return []report.Result{r}, err
}

// tenantPasses measures passes over more and more tenants. Mixed says that each has four window
// rules, one of each mode.
func (b bench) tenantPasses(ctx context.Context, sizes []int, mixed bool) (figures []report.Figure, err error) {
	kinds := ""
	if mixed {
		kinds = ", rules of all kinds"
	}
	var first []lab.Pass
	for _, size := range sizes {
		passes, err := b.passesOver(ctx, size, mixed)
		if err != nil {
			return figures, fmt.Errorf("%d tenants%s: %w", size, kinds, err)
		}
		took, queries := func(p lab.Pass) float64 { return p.Took.Seconds() * 1000 }, func(p lab.Pass) float64 { return float64(p.Read.Queries) }
		name := report.Number(float64(size)) + " tenants" + kinds
		figures = append(figures, report.Of(name+", a pass takes", "ms", lab.Of(passes, took), nil),
			report.Of(name+", CPU of a pass", "ms", lab.Of(passes, func(p lab.Pass) float64 { return p.CPU.Seconds() * 1000 }), nil),
			report.Of(name+", queries of a pass", "", lab.Of(passes, queries), nil),
			report.Of(name+", rows read by a pass", "rows", lab.Of(passes, func(p lab.Pass) float64 { return float64(p.Read.Rows) }), nil))
		if first == nil {
			first = passes
			continue
		}
		median := func(of []lab.Pass, figure func(lab.Pass) float64) float64 {
			return trial.Summarise(lab.Of(of, figure)).Median
		}
		figures = append(figures,
			report.One("queries("+name+") over queries(1)", "×", median(passes, queries)/median(first, queries), report.AtMost(1)),
			report.One("time("+name+") over time(1)", "×", median(passes, took)/median(first, took), report.AtMost(2)))
	}
	return figures, nil
}

// tenantWorld is a world with so many tenants and partitions, and a history.
func (b bench) tenantWorld(ctx context.Context, size, partitions, windows int) (world *product.World, err error) {
	if world, err = b.Engines.NewWorld(ctx); err != nil {
		return nil, err
	}
	err = world.Tenants(ctx, size, tenantRules-windows, partitions)
	if err == nil && windows > 0 {
		names := make([]string, size)
		for n := range names {
			names[n] = product.TenantName(n)
		}
		err = world.Windows(ctx, names, windows)
	}
	if err == nil {
		err = world.History(ctx, product.Past{Count: lab.Either[int64](b.Quick, 100_000, 1_000_000), Tenants: size, Span: 30 * 24 * time.Hour, Ago: 2 * time.Hour})
	}
	if err != nil {
		return nil, errors.Join(err, world.Close(ctx))
	}
	return world, nil
}

func (b bench) passesOver(ctx context.Context, size int, mixed bool) (passes []lab.Pass, err error) {
	windows, interval := 0, lab.PassInterval
	if mixed {
		windows, interval = 4, lab.WindowsInterval
	}
	world, err := b.tenantWorld(ctx, size, 1, windows)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	replica, err := world.Start(ctx, "TOCSIN_ROLES=api,evaluate", "TOCSIN_TICK_INTERVAL="+interval.String(), "TOCSIN_PARTITION_LEASE=5m")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	passing := lab.Passing{World: world, Replica: replica, Partitions: 1, Alerts: tenantExchanges, Write: func(nth int) error {
		return world.Fresh(ctx, product.Exchanges{Count: tenantExchanges, Prefix: fmt.Sprintf("execution-%d-", nth), Tenants: size})
	}}
	const warm = 2
	for nth := range warm + lab.Either(b.Quick, 3, 15) {
		p, err := b.Next(ctx, &passing)
		if err != nil {
			return nil, err
		}
		if nth >= warm {
			passes = append(passes, p)
		}
	}
	return passes, nil
}

// shares lets one, two and four replicas share the partitions of many tenants.
func (b bench) shares(ctx context.Context, size int) (figures []report.Figure, err error) {
	const partitions = 8
	world, err := b.tenantWorld(ctx, size, partitions, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	processes := map[string]int{"Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID}
	for n, replicas := 0, 1; replicas <= 4; replicas *= 2 {
		began := time.Now()
		for ; n < replicas; n++ {
			replica, err := world.Start(ctx, "TOCSIN_ROLES=evaluate", "TOCSIN_HEARTBEAT_INTERVAL=1s")
			if err != nil {
				return figures, err
			}
			defer lab.End(replica.Process)
			processes[fmt.Sprint("Tocsin ", n)] = replica.PID()
		}
		fair, err := world.AwaitShares(ctx, replicas, partitions)
		if err == nil {
			_, err = world.AwaitCaughtUp(ctx)
		}
		if err != nil {
			return figures, err
		}
		shared, cpu := fair.Sub(began).Seconds(), 0.0
		for range lab.Either(b.Quick, 1, 3) {
			used, err := b.second(ctx, world, processes, size)
			if err != nil {
				return figures, err
			}
			cpu = max(cpu, used)
		}
		name := fmt.Sprintf("%s tenants, %d replicas", report.Number(float64(size)), replicas)
		figures = append(figures,
			report.One(name+", shares are fair after", "s", shared, nil),
			report.One(name+", CPU of a second with 1,000 new exchanges, maximum", "ms", cpu, nil))
	}
	return figures, nil
}

// second returns the CPU time, in milliseconds, of the passes of a second that find new exchanges,
// and of everything else that is done meanwhile.
func (b bench) second(ctx context.Context, world *product.World, processes map[string]int, size int) (float64, error) {
	before, err := world.Number(ctx, "select count(*) from alert")
	if err != nil {
		return 0, err
	}
	used, err := lab.Metered(processes)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := world.Fresh(ctx, product.Exchanges{Count: tenantExchanges, Prefix: fmt.Sprintf("second-%d-", began.UnixNano()), Tenants: size}); err != nil {
		return 0, err
	}
	if err := lab.Wait(ctx, time.Second-time.Since(began)); err != nil {
		return 0, err
	}
	cpu, err := used()
	if err != nil {
		return 0, err
	}
	if err := world.AwaitJudged(ctx, time.Now().UnixNano()); err != nil {
		return 0, err
	}
	all := 0.0
	for _, u := range cpu {
		all += u.Seconds() * 1000
	}
	after, err := world.Number(ctx, "select count(*) from alert")
	if err == nil && after-before != tenantExchanges {
		err = fmt.Errorf("%d alerts of %d exchanges", after-before, tenantExchanges)
	}
	return all, err
}
