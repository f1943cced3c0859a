package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/notify"
)

// agenda is a store that notes when it is asked, and answers as the agenda says:
// the times until something can be claimed, each once, then the last one for ever.
type agenda struct {
	*model
	began time.Time
	mu    sync.Mutex
	idle  []time.Duration
	fails bool
	asked []time.Duration
}

func (a *agenda) Load(_ context.Context, request evaluator.ClaimRequest) (evaluator.Loaded, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, time.Since(a.began))
	if request.Rest != 5*time.Second {
		return evaluator.Loaded{}, fmt.Errorf("the longest rest is %v", request.Rest)
	}
	if a.fails {
		return evaluator.Loaded{}, errors.New("the store is away")
	}
	idle := a.idle[0]
	if len(a.idle) > 1 {
		a.idle = a.idle[1:]
	}
	return evaluator.Loaded{Idle: idle}, nil
}

// TestAsksWhenSomethingCanBeClaimed runs an evaluator for a while, and finds it
// asking at the ticks at which it has to, and at no other.
func TestAsksWhenSomethingCanBeClaimed(t *testing.T) {
	const ms = time.Millisecond
	every := func(period, until time.Duration) (all []time.Duration) {
		for at := time.Duration(0); at <= until; at += period {
			all = append(all, at)
		}
		return all
	}
	for name, c := range map[string]struct {
		idle    []time.Duration
		fails   bool
		wakeUps []time.Duration
		want    []time.Duration
	}{
		"something may become free at any moment": {idle: []time.Duration{0}, want: every(1000*ms, 12_000*ms)},
		"the store does not answer":               {fails: true, want: every(1000*ms, 12_000*ms)},
		"nothing is known":                        {idle: []time.Duration{time.Hour}, want: every(5000*ms, 12_000*ms)},
		"what is due before the next tick":        {idle: []time.Duration{300 * ms}, want: every(1000*ms, 12_000*ms)},
		"what is due at a tick":                   {idle: []time.Duration{3000 * ms, 0, time.Hour}, want: []time.Duration{0, 3000 * ms, 4000 * ms, 9000 * ms}},
		"what is due between two ticks":           {idle: []time.Duration{3001 * ms, 0, time.Hour}, want: []time.Duration{0, 4000 * ms, 5000 * ms, 10_000 * ms}},
		"what was due a little later than said":   {idle: []time.Duration{3000 * ms, 10 * ms, time.Hour}, want: []time.Duration{0, 3000 * ms, 4000 * ms, 9000 * ms}},
		"a wake-up": {
			idle: []time.Duration{time.Hour}, wakeUps: []time.Duration{1200 * ms, 1300 * ms, 7900 * ms},
			want: []time.Duration{0, 2000 * ms, 7000 * ms, 8000 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
				store := &agenda{model: m, began: time.Now(), idle: c.idle, fails: c.fails}
				wakeUps := make(chan notify.Signal)
				engine, err := evaluator.New(evaluator.Options{
					Source: m, Store: store, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler), Replica: "model",
					Clock: time.Now, WakeUps: wakeUps,
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, end := context.WithTimeout(t.Context(), 12_500*ms)
				defer end()
				go func() {
					for _, at := range c.wakeUps {
						<-time.After(at - time.Since(store.began))
						answered := false
						wakeUps <- notify.Signal{Claimed: func(left bool, err error) { answered = !left && err == nil }}
						synctest.Wait()
						if !answered {
							t.Errorf("the wake-up of %v was not answered at once", at)
						}
					}
				}()
				engine.Run(ctx)
				if !slices.Equal(store.asked, c.want) {
					t.Errorf("asked at %v, want %v", store.asked, c.want)
				}
			})
		})
	}
}

// TestAProcessThatStoodStillAsksAtOnce has the clock of the process go on by a minute,
// as it finds it when it was stopped in its sleep: the next tick asks.
func TestAProcessThatStoodStillAsksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
		store := &agenda{model: m, began: time.Now(), idle: []time.Duration{time.Hour}}
		var stood atomic.Int64
		engine, err := evaluator.New(evaluator.Options{
			Source: m, Store: store, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler), Replica: "model",
			Clock: func() time.Time { return time.Now().Add(time.Duration(stood.Load())) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer end()
		time.AfterFunc(1500*time.Millisecond, func() { stood.Store(int64(time.Minute)) })
		engine.Run(ctx)
		if want := []time.Duration{0, 2 * time.Second}; !slices.Equal(store.asked, want) {
			t.Errorf("asked at %v, want %v", store.asked, want)
		}
	})
}
