package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// owingWorld is a rule that has judged up to an instant, from which on nothing runs:
// exchanges become visible just before that, which began up to an hour earlier.
type owingWorld struct {
	*model
	t      *testing.T
	rule   *state
	late   int
	logged strings.Builder
	looks  int
	// forgets drops what is owed, as a version does that does not know of it.
	forgets bool
	// bulks is how many scans asked for more than a page, and refused whether they fail.
	bulks   int
	refused bool
}

const owingPage = 5

func newOwingWorld(t *testing.T) *owingWorld {
	t.Helper()
	w := &owingWorld{t: t, model: &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}}
	w.rule = &state{rule: rules.Rule{ID: uuid.UUID{1}, TenantID: "default", ArmedSinceNS: begin - 100, Definition: rules.Definition{
		Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, WebhookIDs: []uuid.UUID{{1}},
	}}}
	w.rules[w.rule.rule.ID] = w.rule
	w.tick(w.process())
	for ago := int64(3590); ago > 300; ago -= 5 {
		w.fail(w.now-ago*second, fmt.Sprint("late ", ago))
		w.late++
	}
	return w
}

func (w *owingWorld) fail(startNS int64, id string) {
	end := w.now
	w.rows = append(w.rows, rules.Exchange{TenantID: "default", StartTimeNS: startNS, EndTimeNS: &end, ExecutionID: id, Status: rules.Failed})
}

func (w *owingWorld) Load(ctx context.Context, request evaluator.ClaimRequest) (evaluator.Loaded, error) {
	loaded, err := w.model.Load(ctx, request)
	for i := range loaded.Claims {
		if w.forgets {
			loaded.Claims[i].OwedFromNS = nil
		}
	}
	return loaded, err
}

func (w *owingWorld) Scan(ctx context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	if s.Limit > owingPage {
		w.bulks++
		if span := s.BeforeNS - s.After.StartTimeNS; span > 601*second {
			w.t.Errorf("a scan for %d exchanges spans %d s", s.Limit, span/second)
		}
		if w.refused {
			return nil, errors.New("memory limit exceeded")
		}
	}
	return w.model.Scan(ctx, s)
}

// process starts the engine anew: it remembers nothing. Its clock gives a tick time
// for some pages.
func (w *owingWorld) process() *evaluator.Evaluator {
	w.t.Helper()
	e, err := evaluator.New(evaluator.Options{
		Source: w, Store: w, Publisher: w, Texts: w, Logger: slog.New(slog.NewTextHandler(&w.logged, nil)), Replica: "model", PageSize: owingPage,
		Interval: 120 * time.Millisecond, Budget: 300 * time.Millisecond,
		Clock: func() time.Time { w.looks++; return time.Unix(0, w.now).Add(time.Duration(w.looks) * time.Millisecond) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *owingWorld) tick(e *evaluator.Evaluator) {
	w.t.Helper()
	w.now += second
	if _, err := e.Tick(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *owingWorld) alertsOf(prefix string) (found int) {
	for key, n := range w.alerts {
		if n != 1 {
			w.t.Errorf("%d alerts of %s", n, key)
		}
		if strings.HasPrefix(key, fmt.Sprint(w.rule.rule.ID, prefix)) {
			found++
		}
	}
	return found
}

// finish ticks until nothing is owed.
func (w *owingWorld) finish(e *evaluator.Evaluator) {
	w.t.Helper()
	for range w.late + 2 {
		w.tick(e)
		if w.rule.owed == nil {
			return
		}
	}
	w.t.Fatal("the look-back comes to no end")
}

// TestWhatIsNewIsJudgedWhileALookBackIsOwed has a process start before which an hour
// is to be judged: each of its ticks alerts what has become visible since the one
// before, after the cursor or shortly behind it, and comes further with the hour.
func TestWhatIsNewIsJudgedWhileALookBackIsOwed(t *testing.T) {
	w := newOwingWorld(t)
	e := w.process()
	ticks := 0
	for before := -1; w.rule.owed != nil || ticks == 0; ticks++ {
		w.fail(w.now+second/2, fmt.Sprint("new ", ticks))
		w.fail(w.now-20*second, fmt.Sprint("just ended ", ticks))
		w.tick(e)
		if got := w.alertsOf("new") + w.alertsOf("just ended"); got != 2*(ticks+1) {
			t.Fatalf("%d alerts on what was new in %d ticks", got, ticks+1)
		}
		found := w.alertsOf("late")
		if found <= before || (w.rule.owed != nil) != (found < w.late) {
			t.Fatalf("tick %d: %d of %d late alerts after %d before it, owed %v", ticks, found, w.late, before, w.rule.owed)
		}
		before = found
	}
	if ticks < 3 || w.bulks < 3 {
		t.Errorf("all was judged in %d ticks and %d large scans, and nothing tried", ticks, w.bulks)
	}
	for _, said := range []string{"look-back goes on beside what is new", "seconds_owed=", "look-back is done"} {
		if !strings.Contains(w.logged.String(), said) {
			t.Errorf("%q is not logged in %s", said, w.logged.String())
		}
	}
}

// TestKillsWhileALookBackIsOwed kills processes after their first tick, each of which
// has moved the cursor to the present, hours after what is owed: the last one judges
// what the first one had to. The second case shows that nothing else would.
func TestKillsWhileALookBackIsOwed(t *testing.T) {
	for name, forgets := range map[string]bool{"owed": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			w := newOwingWorld(t)
			w.now += 7200 * second
			w.forgets = forgets
			for i := range 3 {
				w.tick(w.process())
				if at := w.rule.cursor.StartTimeNS; at != w.now {
					t.Fatalf("process %d left the cursor %d s behind", i, (w.now-at)/second)
				}
				if w.rule.owed == nil && !forgets {
					t.Fatalf("process %d judged all in a tick", i)
				}
			}
			w.finish(w.process())
			found := w.alertsOf("late")
			if !forgets && found != w.late {
				t.Errorf("%d of %d late alerts", found, w.late)
			}
			if forgets && found == w.late {
				t.Error("all was found by a process that did not know what was owed: the kills come too late")
			}
			if len(w.notified) != len(w.alerts) {
				t.Errorf("%d notifications of %d alerts", len(w.notified), len(w.alerts))
			}
		})
	}
}

// TestWhatIsOwedOutlivesEdits shortens the look-back of a rule, or turns it off,
// while a look-back is owed.
func TestWhatIsOwedOutlivesEdits(t *testing.T) {
	w := newOwingWorld(t)
	w.now += 7200 * second
	w.tick(w.process())
	w.rule.rule.Version++
	w.rule.rule.LookBackSeconds = 60
	w.rule.token = 0
	e := w.process()
	w.tick(e)
	w.finish(e)
	if found := w.alertsOf("late"); found != w.late {
		t.Errorf("%d of %d late alerts after the look-back was shortened", found, w.late)
	}
	off := newOwingWorld(t)
	off.tick(off.process())
	off.rule.rule.LookBackSeconds = 0
	off.tick(off.process())
	if off.rule.owed != nil {
		t.Errorf("a rule that does not look back owes a look-back from %d on", *off.rule.owed)
	}
}

// TestALookBackGoesOnPageByPageWhereMuchIsRefused has the source refuse all scans for
// more than a page: what is new waits for none of that, and the look-back is done.
func TestALookBackGoesOnPageByPageWhereMuchIsRefused(t *testing.T) {
	w := newOwingWorld(t)
	w.refused = true
	e := w.process()
	w.fail(w.now+second/2, "new")
	w.tick(e)
	if w.alertsOf("new") != 1 {
		t.Error("what is new waits for a look-back that is refused")
	}
	w.finish(e)
	if found := w.alertsOf("late"); found != w.late || w.bulks != 1 {
		t.Errorf("%d of %d late alerts, %d large scans; want all, and one that failed", found, w.late, w.bulks)
	}
	w.refused = false
	w.rule.rule.Version++ // the same process judges all of it again
	w.rule.token = 0
	w.tick(e)
	if w.bulks == 1 {
		t.Error("no large scans are made any more")
	}
}

// TestWhatIsOwedOutlivesAClockThatIsSetBack has a process start while the source's
// clock is behind all that is owed, or behind a part of it.
func TestWhatIsOwedOutlivesAClockThatIsSetBack(t *testing.T) {
	for _, back := range []int64{3600, 1800, 600} {
		w := newOwingWorld(t)
		w.rule.rule.LookBackSeconds = 60
		w.rule.rule.Version++
		first := w.rows[0].StartTimeNS
		w.rule.owed = &first
		w.ahead = -back * second
		w.tick(w.process())
		if w.rule.owed == nil {
			t.Errorf("%d s back nothing is owed", back)
		}
		w.ahead = 0
		e := w.process()
		w.tick(e)
		w.finish(e)
		if found := w.alertsOf("late"); found != w.late {
			t.Errorf("%d s back: %d of %d late alerts", back, found, w.late)
		}
	}
}

// TestWhatIsNewIsNotReadInBulk has a process start long after the last one, while what
// is near its cursor could be read with what is new.
func TestWhatIsNewIsNotReadInBulk(t *testing.T) {
	w := newOwingWorld(t)
	w.fail(w.rule.cursor.StartTimeNS-second, "near")
	w.now += 7200 * second
	w.tick(w.process()) // whose scans are looked at
	if w.bulks == 0 || w.alertsOf("near") != 1 {
		t.Errorf("%d large scans, %d alerts", w.bulks, w.alertsOf("near"))
	}
}
