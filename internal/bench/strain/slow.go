package strain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/receiver"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

const (
	// healthyHooks are those that answer; one more hangs.
	healthyHooks = 9
	slowEvery    = 20 * time.Millisecond
)

// flow is what the healthy webhooks got.
type flow struct {
	// rate is messages per second of a drain, p99 the latency of steady traffic in milliseconds.
	rate, p99 float64
}

// slowReceivers is B9: nine healthy webhooks, alone and beside a tenth that hangs.
func slowReceivers(ctx context.Context, b bench) ([]report.Result, error) {
	var alone, beside []flow
	var err error
	for nth := 0; nth <= min(3, b.Trials) && err == nil; nth++ {
		for i := range 2 {
			hanging := (i + nth) % 2
			var f flow
			if f.rate, err = b.drainBeside(ctx, hanging, lab.Either(b.Quick, 100, 2000)); err != nil {
				break
			}
			if f.p99, err = b.steadyBeside(ctx, hanging, lab.Either(b.Quick, 50, 500)); err != nil {
				break
			}
			b.Progress(fmt.Sprintf("trial %d, %d hanging: %.0f/s, p99 %.1f ms", nth, hanging, f.rate, f.p99))
			switch {
			case nth == 0:
			case hanging == 1:
				beside = append(beside, f)
			default:
				alone = append(alone, f)
			}
		}
	}
	rate, p99 := func(f flow) float64 { return f.rate }, func(f flow) float64 { return f.p99 }
	return []report.Result{{
		ID: "B9", Title: "Slow receivers: one webhook of ten hangs", Unit: "a message to one of nine healthy webhooks",
		Floor: "the same nine webhooks without the tenth",
		Figures: []report.Figure{
			report.Of("drain of the healthy, alone", "messages/s", lab.Of(alone, rate), nil),
			report.Of("drain of the healthy, beside one that hangs", "messages/s", lab.Of(beside, rate), nil),
			report.Of("rate kept", "×", lab.Ratios(beside, alone, rate), report.AtLeast(0.95)),
			report.Of("p99 from commit, alone", "ms", lab.Of(alone, p99), nil),
			report.Of("p99 from commit, beside one that hangs", "ms", lab.Of(beside, p99), nil),
			report.Of("p99 over p99 alone", "×", lab.Ratios(beside, alone, p99), report.AtMost(1.2)),
		},
		Notes: []string{
			"The rate is that of a drain of equally many PENDING messages for each webhook. The latency is that of one exchange every 20 ms, sent to all of them.",
			"The tenth accepts each message and never answers. Its timeout is the default, 10 s, and its circuit breaker has the default settings.",
		},
	}}, err
}

// tenHooks makes nine healthy webhooks, each with a book of its own, and perhaps one that hangs.
func (b bench) tenHooks(ctx context.Context, world *product.World, hanging int) (ids []uuid.UUID, books []string, err error) {
	for range healthyHooks {
		book := b.Book()
		id, err := world.Hook(ctx, b.Receiver.ExecutionURL(book), 10, true)
		if err != nil {
			return nil, nil, err
		}
		ids, books = append(ids, id), append(books, book)
	}
	for range hanging {
		id, err := world.Hook(ctx, b.Receiver.HangURL(), 10, true)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	return ids, books, nil
}

// drainBeside returns the rate at which the healthy webhooks are drained.
func (b bench) drainBeside(ctx context.Context, hanging, each int) (rate float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	hooks, books, err := b.tenHooks(ctx, world, hanging)
	if err != nil {
		return 0, err
	}
	if _, err := world.Rule(ctx, hooks); err != nil {
		return 0, err
	}
	committer, err := world.Committer(ctx)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(committer.Pending(ctx, each), world.Exec(ctx, "analyze")); err != nil {
		return 0, err
	}
	replica, err := world.Start(ctx, "TOCSIN_ROLES=dispatch")
	if err != nil {
		return 0, err
	}
	// What hangs keeps an orderly end waiting for its timeout.
	defer replica.Kill()
	var all receiver.Count
	for i, book := range books {
		got, err := b.AwaitReceived(ctx, book, each)
		if err == nil {
			err = b.Complete(ctx, book, each)
		}
		if err != nil {
			return 0, fmt.Errorf("webhook %d: %w", i, err)
		}
		if all.FirstNS == 0 || got.FirstNS < all.FirstNS {
			all.FirstNS = got.FirstNS
		}
		all.LastNS = max(all.LastNS, got.LastNS)
	}
	return float64(each*len(books)) / time.Duration(all.LastNS-all.FirstNS).Seconds(), nil
}

// steadyBeside returns the p99 of the time from commit to arrival at a healthy webhook, in milliseconds.
func (b bench) steadyBeside(ctx context.Context, hanging, count int) (p99 float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	hooks, books, err := b.tenHooks(ctx, world, hanging)
	if err != nil {
		return 0, err
	}
	if _, err := world.Rule(ctx, hooks); err != nil {
		return 0, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL=20ms")
	if err != nil {
		return 0, err
	}
	defer replica.Kill()
	if err := world.Steady(ctx, count, slowEvery); err != nil {
		return 0, err
	}
	for _, book := range books {
		if _, err := b.AwaitReceived(ctx, book, count); err != nil {
			return 0, err
		}
	}
	commits, err := world.Commits(ctx)
	if err != nil {
		return 0, err
	}
	var latencies []float64
	for _, book := range books {
		of, err := b.Latencies(ctx, book, commits)
		if err != nil {
			return 0, err
		}
		latencies = append(latencies, of...)
	}
	return trial.Quantile(latencies, 0.99), nil
}
