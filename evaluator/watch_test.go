package evaluator_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

// watcher notes how it is asked to watch, and watches.
type watcher struct {
	asked []window.Request
	// answered is the last watch.
	answered watch.State
	down     bool
}

func (w *watcher) Evaluate(_ context.Context, r window.Request) window.Outcome {
	w.asked = append(w.asked, r)
	o := window.Outcome{Watch: r.Watch}
	for _, rule := range r.Rules {
		o.Evaluated = append(o.Evaluated, rule.ID)
	}
	if w.down {
		o.SourceErr = context.DeadlineExceeded
	} else if r.Watches {
		o.Watch.UntilNS, o.Watch.LateNS = r.WatermarkNS, 7
	}
	w.answered = o.Watch
	return o
}

// TestWatchIsStored has window rules watch the source where one is about absence: at
// each evaluation of it, and every ten seconds between. The next process goes on from there.
func TestWatchIsStored(t *testing.T) {
	s := newScene(t, time.Hour)
	w := &watcher{}
	process := func(replica string) {
		e, err := evaluator.New(evaluator.Options{
			Source: s.model, Windows: w, Store: s.model, Publisher: s.model, Texts: s.model, Logger: slog.New(slog.DiscardHandler), Workers: 1,
			Replica: replica, Clock: func() time.Time { return time.Unix(0, s.now) },
		})
		if err != nil {
			t.Fatal(err)
		}
		s.e = e
	}
	rule := func(id byte, mode rules.FireMode, interval int) {
		s.change(rules.Rule{ID: uuid.UUID{15: id}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
			Enabled: true, FireMode: mode, Threshold: 5, WindowSeconds: 60, IntervalSeconds: interval, WebhookIDs: []uuid.UUID{{1}},
		}}, true)
	}
	process("a")
	rule(2, rules.CountInWindow, 25)
	s.tick()
	if last := w.asked[len(w.asked)-1]; last.Watches {
		t.Error("a count is watched for")
	}
	rule(3, rules.AbsentInWindow, 25)
	w.asked = nil
	watches := 0
	for i := range 50 {
		answered := w.answered
		asked := len(w.asked)
		s.tick()
		if len(w.asked) == asked {
			continue // nothing is due
		}
		r := w.asked[asked]
		if r.Watches {
			watches++
		}
		if r.Watch != answered {
			t.Fatalf("pass %d is asked with %+v, and the one before answered %+v", i, r.Watch, answered)
		}
	}
	if watches < 5 || watches > 7 {
		t.Errorf("watched %d times within 50 s", watches)
	}
	until := w.asked[len(w.asked)-1].Watch.UntilNS
	process("a")
	w.asked = nil
	s.tick()
	if got := w.asked[0].Watch; got.LateNS != 7 || got.UntilNS < until {
		t.Errorf("another process begins with %+v", got)
	}
	w.down = true
	for range 20 {
		s.now += second
		_, _ = s.e.Tick(context.Background())
	}
	before := w.asked[len(w.asked)-1].Watch.UntilNS
	if s.now-before < 15*second {
		t.Error("a source that is down was watched")
	}
}
