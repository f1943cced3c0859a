package speed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/report"
)

// handOverEvery is the time between alerts of B4.
const handOverEvery = 10 * time.Millisecond

// handOver is B4: from the commit of an alert to the arrival of its message, one alert every 10 ms.
func handOver(ctx context.Context, b bench) ([]report.Result, error) {
	count := lab.Either(b.Quick, 100, 1000)
	var tocsin, alertmanager lab.Percentiles
	var together []float64
	var err error
	for nth := 0; nth <= lab.Either(b.Quick, 1, 3) && err == nil; nth++ {
		sides := []func() error{
			func() error {
				latencies, commits, err := b.commitToReceiver(ctx, count)
				if err == nil && nth > 0 {
					together = append(together, float64(count)/float64(commits))
				}
				return collect(&tocsin, nth)(latencies, err)
			},
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
		ID: "B4", Title: "Hand-over: from commit to receiver, one alert every 10 ms", Unit: "an alert of an exchange of its own",
		Peer: "Alertmanager, from its response that it has accepted the alert, in memory",
		Figures: append(tocsin.Figures("commit to receiver", report.AtMost(2), report.AtMost(5)),
			alertmanager.Figures("Alertmanager", nil, nil)...),
		Notes: []string{
			"The time of the commit is Postgres's own (track_commit_timestamp). Postgres takes it before it waits for the disk, so this wait is part of the result. Both processes read the same clock.",
			"A pass begins every 20 ms, so that exchanges are found one or two at a time and not once a second. If a pass takes longer, more are found at once.",
		},
	}
	r.Figures = append(r.Figures, report.Of("alerts in a commit", "", together, nil))
	if b.Alertmanager == "" {
		r.Notes = append(r.Notes, "There is no comparison with Alertmanager, which is not installed on this machine.")
	}
	return []report.Result{r}, err
}

// collect drops the trial that warms up.
func collect(into *lab.Percentiles, nth int) func([]float64, error) error {
	return func(latencies []float64, err error) error {
		if err == nil && nth > 0 {
			into.Add(latencies)
		}
		return err
	}
}

// commitToReceiver has a whole Tocsin find exchanges that begin every 10 ms, and
// returns in milliseconds how long after its commit each message came, and in how
// many commits the alerts were raised.
func (b bench) commitToReceiver(ctx context.Context, count int) (latencies []float64, commits int, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	hook, err := world.Hook(ctx, b.Receiver.ExecutionURL(book), peers.Connections, true)
	if err != nil {
		return nil, 0, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}); err != nil {
		return nil, 0, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL=20ms")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	if err := world.Steady(ctx, count, handOverEvery); err != nil {
		return nil, 0, err
	}
	if _, err := b.AwaitReceived(ctx, book, count); err != nil {
		return nil, 0, err
	}
	if _, err := world.AwaitRecorded(ctx, count); err != nil {
		return nil, 0, err
	}
	committed, err := world.Commits(ctx)
	if err != nil {
		return nil, 0, err
	}
	instants := map[int64]bool{}
	for _, at := range committed {
		instants[at] = true
	}
	latencies, err = b.Latencies(ctx, book, committed)
	return latencies, len(instants), err
}

// acceptToReceiver gives Alertmanager an alert every 10 ms, and returns in
// milliseconds how long after it was taken each message came.
func (b bench) acceptToReceiver(ctx context.Context, count int) (latencies []float64, err error) {
	book := b.Book()
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
	if _, err := b.AwaitReceived(ctx, book, count); err != nil {
		return nil, err
	}
	return b.Latencies(ctx, book, accepted)
}
