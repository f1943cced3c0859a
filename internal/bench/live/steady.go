package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/notify"
)

const (
	// steadyRate is the number of failures per second, which are written in so many inserts.
	steadyRate, insertsPerSecond = 200, 20
	// retryQuickly is a setting with which messages that got an error are delivered within the run.
	retryQuickly = "TOCSIN_RETRY_SCHEDULE=1s,1s,1s,1s"
)

// steady is L1: from visibility in ClickHouse to the receiver's response.
func steady(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "L1", Title: "Steady: from visible in ClickHouse to delivered, 200 alerts a second", Unit: "an exchange that failed, with a message to one of 200 receivers",
		Notes: []string{
			about,
			"An exchange counts as visible when its INSERT has been answered, and its message as delivered when the receiver has answered it.",
			"Messages whose first attempt was answered with an error arrive after the pause of the schedule. They must arrive, and are left out of the latency.",
		},
	}
	var err error
	for _, tick := range []struct {
		every    time.Duration
		p50, p99 *report.Bound
	}{{time.Second, report.AtMost(700), report.AtMost(1600)}, {250 * time.Millisecond, nil, report.AtMost(800)}} {
		var found lab.Percentiles
		var micros, again []float64
		for range lab.Either(b.Quick, 1, min(2, b.Trials)) {
			var s stream
			if s, err = b.stream(ctx, tick.every, lab.Either(b.Quick, 5*time.Second, 15*time.Second)); err != nil {
				break
			}
			found.Add(s.latencies)
			micros, again = append(micros, s.micros), append(again, s.again)
		}
		name := fmt.Sprintf("a tick every %v", tick.every)
		r.Figures = append(r.Figures, found.Figures(name, tick.p50, tick.p99)...)
		r.Figures = append(r.Figures, report.Of(name+", CPU of an alert, all processes", "µs", micros, nil),
			report.Of(name+", messages that were sent again after an error", "%", again, nil))
		if err != nil {
			break
		}
	}
	return []report.Result{r}, err
}

// stream is what was measured of steady traffic.
type stream struct {
	// latencies are in milliseconds, micros is the CPU time per alert, again the percentage of
	// messages that were sent again.
	latencies     []float64
	micros, again float64
}

func (b bench) stream(ctx context.Context, tick, lasting time.Duration) (s stream, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	if err := b.far(ctx, world, book, notify.Webhook{}); err != nil {
		return s, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL="+tick.String(), retryQuickly)
	if err != nil {
		return s, err
	}
	// A hanging call delays an orderly end until its timeout.
	defer replica.Kill()
	if _, err := world.AwaitCaughtUp(ctx); err != nil {
		return s, err
	}
	used, err := lab.Metered(b.Processes(map[string]int{"Tocsin": replica.PID()}))
	if err != nil {
		return s, err
	}
	visible, err := b.feed(ctx, world, lasting)
	if err != nil {
		return s, err
	}
	if _, err := b.AwaitReceived(ctx, book, len(visible)); err != nil {
		return s, err
	}
	cpu, err := used()
	if err != nil {
		return s, err
	}
	for _, u := range cpu {
		s.micros += float64(u.Microseconds()) / float64(len(visible))
	}
	failed, err := b.Receiver.Failed(ctx, book)
	if err != nil {
		return s, err
	}
	s.again = 100 * float64(len(failed)) / float64(len(visible))
	s.latencies, err = b.LatenciesBut(ctx, book, visible, failed)
	return s, err
}

// feed writes failures in small inserts, and returns when each became visible, except those for the
// hanging receiver.
func (b bench) feed(ctx context.Context, world *product.World, lasting time.Duration) (map[string]int64, error) {
	const each = steadyRate / insertsPerSecond
	visible := map[string]int64{}
	ticker := time.NewTicker(time.Second / insertsPerSecond)
	defer ticker.Stop()
	for nth := range int(lasting/time.Second) * insertsPerSecond {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
		prefix := fmt.Sprintf("execution-%d-", nth)
		x := product.Exchanges{Count: each, Prefix: prefix, Applications: farHooks + 1, First: nth * each}
		if err := world.Fresh(ctx, x); err != nil {
			return nil, err
		}
		at := time.Now().UnixNano()
		for n := range each {
			if (x.First+n)%x.Applications != farHooks {
				visible[prefix+fmt.Sprint(n)] = at
			}
		}
	}
	return visible, nil
}
