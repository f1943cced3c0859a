package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

// handOverEvery is the time between alerts of B4.
const handOverEvery = 10 * time.Millisecond

// percentiles collects those of several trials.
type percentiles struct{ p50, p99 []float64 }

// add takes the latencies of a trial, in milliseconds.
func (p *percentiles) add(latencies []float64) {
	p.p50 = append(p.p50, trial.Quantile(latencies, 0.50))
	p.p99 = append(p.p99, trial.Quantile(latencies, 0.99))
}

func (p *percentiles) figures(name string, p50, p99 *report.Bound) []report.Figure {
	return []report.Figure{
		report.Of(name+", p50", "ms", p.p50, p50),
		report.Of(name+", p99", "ms", p.p99, p99),
	}
}

// handOver is B4: from the commit of an alert to the arrival of its message, one alert each 10 ms.
func handOver(ctx context.Context, b *Bench) ([]report.Result, error) {
	count := either(b, 200, 1000)
	var tocsin, alertmanager percentiles
	var err error
	for nth := 0; nth <= either(b, 1, 3) && err == nil; nth++ {
		sides := []func() error{
			func() error { return collect(&tocsin, nth)(b.commitToReceiver(ctx, count)) },
			func() error {
				if b.Alertmanager == "" {
					return nil
				}
				return collect(&alertmanager, nth)(b.acceptToReceiver(ctx, count))
			},
		}
		err = errors.Join(sides[nth%2](), sides[1-nth%2]())
	}
	r := report.Result{
		ID: "B4", Title: "Hand-over: from commit to receiver, one alert each 10 ms", Unit: "an alert of an exchange of its own",
		Peer: "Alertmanager, from its answer that it has taken the alert, in memory",
		Figures: append(tocsin.figures("commit to receiver", report.AtMost(2), report.AtMost(5)),
			alertmanager.figures("Alertmanager", nil, nil)...),
		Notes: []string{
			"The commit's instant is Postgres's own (track_commit_timestamp), taken before it waits for the disk: that wait is part of the time. Both processes read the same clock.",
			"The rule is made due again every 5 ms, so that exchanges, which begin every 10 ms, are found one by one and not once each second.",
		},
	}
	if b.Alertmanager == "" {
		r.Notes = append(r.Notes, "Alertmanager was not compared with: it is not on this machine.")
	}
	return []report.Result{r}, err
}

// collect drops the trial that warms up.
func collect(into *percentiles, nth int) func([]float64, error) error {
	return func(latencies []float64, err error) error {
		if err == nil && nth > 0 {
			into.add(latencies)
		}
		return err
	}
}

// commitToReceiver has a whole Tocsin find exchanges that begin every 10 ms, and
// returns in milliseconds how long after its commit each message came.
func (b *Bench) commitToReceiver(ctx context.Context, count int) (latencies []float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.book()
	hook, err := world.Hook(ctx, b.Receiver.ExecutionURL(book), peers.Connections, true)
	if err != nil {
		return nil, err
	}
	rule, err := world.Rule(ctx, 1, []uuid.UUID{hook})
	if err != nil {
		return nil, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL=5ms")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	if err := world.Steady(ctx, count, handOverEvery); err != nil {
		return nil, err
	}
	pacing, stop := context.WithCancel(ctx)
	defer stop()
	paced := make(chan error, 1)
	go func() { paced <- world.Pace(pacing, rule.ID, 5*time.Millisecond) }()
	_, err = b.awaitReceived(ctx, book, count)
	stop()
	if err := errors.Join(err, <-paced); err != nil {
		return nil, err
	}
	if _, err := world.AwaitRecorded(ctx, count); err != nil {
		return nil, err
	}
	committed, err := world.Commits(ctx)
	if err != nil {
		return nil, err
	}
	return b.latencies(ctx, book, committed)
}

// latencies compares when messages came with when they might have, by exchange.
func (b *Bench) latencies(ctx context.Context, book string, from map[string]int64) ([]float64, error) {
	came, err := b.Receiver.Arrivals(ctx, book)
	if err != nil {
		return nil, err
	}
	if err := b.complete(ctx, book, len(from)); err != nil {
		return nil, err
	}
	latencies := make([]float64, 0, len(from))
	for id, at := range from {
		arrived, ok := came[id]
		if !ok {
			return nil, fmt.Errorf("no message came of exchange %s", id)
		}
		latencies = append(latencies, float64(arrived-at)/float64(time.Millisecond))
	}
	return latencies, nil
}

// complete refuses a book that does not hold each of so many messages once.
func (b *Bench) complete(ctx context.Context, book string, count int) error {
	m, err := b.counted(ctx, book, count, count)
	if err != nil {
		return err
	}
	m.Elapsed = 1
	return m.Check()
}

// acceptToReceiver gives Alertmanager an alert every 10 ms, and returns in
// milliseconds how long after it was taken each message came.
func (b *Bench) acceptToReceiver(ctx context.Context, count int) (latencies []float64, err error) {
	book := b.book()
	manager, err := peers.StartAlertmanager(ctx, b.Alertmanager, b.Receiver.ExecutionURL(book))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, manager.End()) }()
	accepted := make(map[string]int64, count)
	ticker := time.NewTicker(handOverEvery)
	defer ticker.Stop()
	for i := range count {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		id := fmt.Sprintf("execution-%08d", i)
		if err := manager.Alerts(ctx, id); err != nil {
			return nil, err
		}
		accepted[id] = time.Now().UnixNano()
	}
	if _, err := b.awaitReceived(ctx, book, count); err != nil {
		return nil, err
	}
	return b.latencies(ctx, book, accepted)
}
