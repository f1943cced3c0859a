package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

// halfBlind is a source whose looks at the older look-back fail, and whose window rules do,
// while what is recent can be read.
type halfBlind struct {
	*model
	counts, windows bool
}

func (h *halfBlind) RowCounts(ctx context.Context, q source.RowCountQuery) (source.RowCounts, error) {
	if h.counts {
		return source.RowCounts{}, errors.New("timeout")
	}
	return h.model.RowCounts(ctx, q)
}

func (h *halfBlind) Evaluate(context.Context, window.Request) (o window.Outcome) {
	if h.windows {
		o.SourceErr = errors.New("timeout")
	}
	return o
}

// What becomes visible late is found by the next pass, wherever within the last two minutes it
// began: nothing would be lost if a later pass read it, but its alert would be late.
func TestLateExchangeIsFoundWithinAPass(t *testing.T) {
	s := newScene(t, time.Hour)
	for range 15 {
		s.tick()
	}
	// The pass comes a second after the exchange became visible.
	const step, most = 250 * time.Millisecond, 2*time.Minute - time.Second - 250*time.Millisecond
	// The oldest ones at each second of a minute, because what every pass compares begins with one.
	for i := range int(most/step) + 60 {
		age := min(time.Duration(i)*step, most)
		s.fail("tenant-0", fmt.Sprint(i), age)
		if s.tick(); len(s.state.alerts) != i+1 {
			t.Fatalf("an exchange that began %v before it became visible has no alert after a pass", age)
		}
	}
}

// Passes more than five seconds apart compare all of the look-back each time, as after a pause. Closer ones count its rows.
func TestIntervalsThatCompareTheWholeLookBack(t *testing.T) {
	for interval, each := range map[time.Duration]bool{4 * time.Second: false, 6 * time.Second: true} {
		s := &scene{model: newModel(), t: t}
		s.rule(theRule(), "tenant-0", time.Hour)
		s.e = s.start("a", evaluator.Options{Interval: interval})
		compared := 0
		s.observes = func(q source.ObserveQuery) error {
			if q.ToNS-q.FromNS > int64(50*time.Minute) {
				compared++
			}
			return nil
		}
		const passes = 10
		for range 1 + passes {
			s.now += interval.Nanoseconds() - second
			s.tick()
		}
		if compared--; (compared == passes) != each || !each && compared > passes/4 {
			t.Errorf("with an interval of %v, %d of %d passes compare the look-back", interval, compared, passes)
		}
	}
}

// What becomes visible at the far end of the look-back is found although looks at it fail
// for much longer than the wait that the look-back is extended by, and also by a process
// that begins afterwards.
func TestLooksThatFailForLongLoseNothing(t *testing.T) {
	for name, blind := range map[string]func(h *halfBlind, failing bool){
		"the counts fail":       func(h *halfBlind, failing bool) { h.counts = failing },
		"the window rules fail": func(h *halfBlind, failing bool) { h.windows = failing },
	} {
		for _, restarted := range []bool{false, true} {
			s := newScene(t, 10*time.Minute)
			s.change(rules.Rule{ID: uuid.UUID{15: 2}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
				Enabled: true, FireMode: rules.CountInWindow, Threshold: 5, WindowSeconds: 60, IntervalSeconds: 1, LookBackSeconds: 600, WebhookIDs: []uuid.UUID{{1}},
			}}, true)
			h := &halfBlind{model: s.model}
			process := func(replica string) *evaluator.Evaluator {
				e, err := evaluator.New(evaluator.Options{
					Source: h, Windows: h, Store: s.model, Publisher: s.model, Texts: s.model, Logger: slog.New(slog.DiscardHandler), Workers: 1,
					Replica: replica, Clock: func() time.Time { return time.Unix(0, s.now) },
				})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			pass := func(seconds int) (failed int) {
				for range seconds {
					s.now += second
					if _, err := s.e.Tick(context.Background()); err != nil {
						failed++
					}
				}
				return failed
			}
			s.e = process("a")
			if failed := pass(700); failed > 0 {
				t.Fatalf("%s: %d passes failed before", name, failed)
			}
			blind(h, true)
			s.fail("tenant-0", "late", 595*time.Second)
			pass(300)
			if restarted {
				s.e = process("a")
			}
			blind(h, false)
			pass(1200)
			if len(s.state.alerts) != 1 {
				t.Errorf("%s, restarted %v: %d alerts, want 1", name, restarted, len(s.state.alerts))
			}
		}
	}
}
