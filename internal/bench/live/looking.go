package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// busyHooks is how many of the webhooks have messages, at most.
const busyHooks = 10

// looking is L4: a dispatcher's look for due messages, with ever more webhooks.
func looking(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "L4", Title: "Looking for due messages, with ever more webhooks", Unit: "a look by the product's own store, which claims nothing",
		Notes: []string{
			"Ten of the webhooks have 1,000 messages each. If there is only one webhook, it has them. All are enabled. The target compares cases in which equally many webhooks have messages.",
			"After a wake-up that names a webhook, the look covers this webhook and those that had messages. Any other look goes through the whole queue.",
		},
	}
	var whole, named [][]float64
	sizes := lab.Either(b.Quick, []int{1, 10, 1000}, []int{1, 10, 100, 10_000})
	for _, size := range sizes {
		l, err := b.looks(ctx, size)
		if err != nil {
			return []report.Result{r}, fmt.Errorf("%d webhooks: %w", size, err)
		}
		name := report.Number(float64(size)) + " webhooks"
		r.Figures = append(r.Figures, report.Of(name+", a whole look", "ms", l.whole, nil), report.Of(name+", a look after a wake-up", "ms", l.named, nil))
		whole, named = append(whole, l.whole), append(named, l.named)
	}
	median := func(values []float64) float64 { return trial.Summarise(values).Median }
	last := len(sizes) - 1
	for n, against := range sizes[:2] {
		var most *report.Bound
		if against >= busyHooks {
			most = report.AtMost(1.5)
		}
		name := fmt.Sprintf("with %s webhooks over with %d", report.Number(float64(sizes[last])), against)
		r.Figures = append(r.Figures, report.One("a whole look "+name, "×", median(whole[last])/median(whole[n]), most),
			report.One("a look after a wake-up "+name, "×", median(named[last])/median(named[n]), most))
	}
	return []report.Result{r}, nil
}

// looked are the durations of looks, in milliseconds.
type looked struct{ whole, named []float64 }

func (b bench) looks(ctx context.Context, size int) (l looked, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	hooks, err := manyHooks(ctx, world, size)
	if err != nil {
		return l, err
	}
	if _, err := world.Rule(ctx, hooks[:min(size, busyHooks)]); err != nil {
		return l, err
	}
	committer, err := world.Committer(ctx)
	if err != nil {
		return l, err
	}
	if err := errors.Join(committer.Pending(ctx, 1000), world.Exec(ctx, "vacuum analyze")); err != nil {
		return l, err
	}
	for nth := range lab.Either(b.Quick, 20, 220) {
		whole, err := look(ctx, world, min(size, busyHooks))
		if err != nil {
			return l, err
		}
		named, err := look(ctx, world, min(size, busyHooks), hooks[0])
		if err != nil {
			return l, err
		}
		// Each connection plans a statement again at first.
		if nth >= 10 {
			l.whole, l.named = append(l.whole, whole), append(l.named, named)
		}
	}
	return l, nil
}

// look looks once, and returns its duration in milliseconds.
func look(ctx context.Context, world *product.World, want int, named ...uuid.UUID) (float64, error) {
	found := 0
	began := time.Now()
	_, err := world.DB.Outbox().Claim(ctx, dispatch.ClaimRequest{
		Replica: "bench", Lease: time.Minute, Webhooks: named,
		Deal: func(due []dispatch.Due) []dispatch.Slots {
			found = len(due)
			return nil
		},
	})
	took := time.Since(began)
	if err == nil && found != want {
		err = fmt.Errorf("a look found %d webhooks with messages, want %d", found, want)
	}
	return took.Seconds() * 1000, err
}

// manyHooks stores the given number of webhooks.
func manyHooks(ctx context.Context, world *product.World, count int) ([]uuid.UUID, error) {
	hooks, errs := make([]uuid.UUID, count), make([]error, count)
	numbers := make(chan int)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for n := range numbers {
				hooks[n], errs[n] = world.AddHook(ctx, notify.Webhook{URL: "https://receiver.example/" + fmt.Sprint(n), Enabled: true})
			}
		})
	}
	for n := range count {
		numbers <- n
	}
	close(numbers)
	writers.Wait()
	return hooks, errors.Join(errs...)
}
