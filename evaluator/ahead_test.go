package evaluator_test

import (
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// ahead is a rule, an engine whose ticks scan 5 ms after they read the clock, and
// another engine of the same kind.
type ahead struct {
	*model
	t       *testing.T
	source  *asked
	rule    *state
	engines [2]*evaluator.Evaluator
}

func newAhead(t *testing.T) *ahead {
	t.Helper()
	id := uuid.UUID{1}
	m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
	m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: rules.Definition{
		Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, WebhookIDs: []uuid.UUID{{1}},
	}}}
	a := &ahead{model: m, t: t, source: &asked{model: m}, rule: m.rules[id]}
	looks := 0
	for i := range a.engines {
		engine, err := evaluator.New(evaluator.Options{
			Source: a.source, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler), Replica: fmt.Sprint(i),
			Clock: func() time.Time { looks++; return time.Unix(0, m.now).Add(time.Duration(looks) * 5 * time.Millisecond) },
		})
		if err != nil {
			t.Fatal(err)
		}
		a.engines[i] = engine
	}
	return a
}

// fail has exchanges fail, the first at an instant and each a microsecond later.
func (a *ahead) fail(startNS int64, count int) {
	for i := range count {
		a.rows = append(a.rows, rules.Exchange{
			TenantID: "default", StartTimeNS: startNS + int64(i)*1000, ExecutionID: fmt.Sprint(len(a.rows)), Status: rules.Failed,
		})
	}
}

// tick has an engine tick a second later, and returns how many alerts it offered and wrote.
func (a *ahead) tick(engine int) (offered, written int) {
	a.t.Helper()
	a.now += second
	a.source.scans = nil
	before := a.offered
	result, err := a.engines[engine].Tick(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	if len(a.source.scans) != 1 {
		a.t.Errorf("a tick asked for %d scans, want 1", len(a.source.scans))
	}
	return a.offered - before, result.Alerts
}

const nextTick = begin + 2*second

// TestRaisesWhatBeginsWhileItTicks has exchanges begin after the clock was read:
// those before the scan have their alerts in the same tick. The cursor does not
// pass the horizon; the next tick reads them again, and offers only what is new.
func TestRaisesWhatBeginsWhileItTicks(t *testing.T) {
	a := newAhead(t)
	a.tick(0)
	a.fail(nextTick-1e6, 1)
	a.fail(nextTick, 2)
	a.fail(nextTick+5e6, 1)
	if offered, written := a.tick(0); offered != 3 || written != 3 {
		t.Errorf("%d alerts offered and %d written in the tick, want 3 and 3", offered, written)
	}
	if want := (cursor.Position{StartTimeNS: nextTick}); *a.rule.cursor != want {
		t.Errorf("the cursor is at %v, want the horizon %v", *a.rule.cursor, want)
	}
	a.fail(nextTick+1e6, 1)
	if offered, written := a.tick(0); offered != 2 || written != 2 {
		t.Errorf("%d alerts offered and %d written by the next tick, want 2 and 2", offered, written)
	}
	if offered, _ := a.tick(0); offered != 0 {
		t.Errorf("%d alerts offered by a tick with nothing new", offered)
	}
}

// TestRaisesAgainWhatTheDatabaseLost takes back the commit that held alerts and
// cursor, as a failover to a standby that lags does: the process remembers the
// alerts, and must not rely on that.
func TestRaisesAgainWhatTheDatabaseLost(t *testing.T) {
	a := newAhead(t)
	a.tick(0)
	a.fail(nextTick-1e6, 1)
	a.fail(nextTick, 1)
	was := *a.rule.cursor
	a.tick(0)
	a.rule.cursor = &was
	clear(a.alerts)
	if offered, written := a.tick(0); offered != 2 || written != 2 {
		t.Errorf("%d alerts offered and %d written after the loss, want 2 and 2", offered, written)
	}
}

// TestAnotherReplicaGoesOnFromTheHorizon has another process do the next tick: it
// knows nothing of what was raised ahead, and the database refuses the second.
func TestAnotherReplicaGoesOnFromTheHorizon(t *testing.T) {
	a := newAhead(t)
	a.tick(0)
	a.fail(nextTick, 1)
	a.tick(0)
	if offered, written := a.tick(1); offered != 1 || written != 0 {
		t.Errorf("%d alerts offered and %d written by another replica, want 1 and 0", offered, written)
	}
}

// TestRaisesNothingAheadOfALargePage has many exchanges fail: then what lies
// beyond the horizon is left to the next tick.
func TestRaisesNothingAheadOfALargePage(t *testing.T) {
	for name, c := range map[string]struct{ before, ahead, want int }{
		"few":              {before: 90, ahead: 10, want: 100},
		"many":             {before: 90, ahead: 11, want: 90},
		"a page, and few":  {before: 1000, ahead: 10, want: 1010},
		"nothing before":   {ahead: 100, want: 100},
		"many ahead":       {ahead: 101},
		"more than a page": {before: 2, ahead: 1500, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAhead(t)
			a.tick(0)
			a.fail(nextTick-2e6, c.before)
			a.fail(nextTick, c.ahead)
			a.now += second
			result, err := a.engines[0].Tick(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if result.Alerts != c.want {
				t.Errorf("%d alerts in the tick, want %d", result.Alerts, c.want)
			}
			if *a.rule.cursor != (cursor.Position{StartTimeNS: nextTick}) {
				t.Errorf("the cursor is at %v, want the horizon", *a.rule.cursor)
			}
			a.now += second
			if _, err := a.engines[0].Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(a.alerts) != c.before+c.ahead || a.offered != c.before+c.ahead {
				t.Errorf("%d alerts of %d offered, want %d", len(a.alerts), a.offered, c.before+c.ahead)
			}
			if !maps.Equal(a.alerts, a.notified) {
				t.Error("what is owed is not what was raised")
			}
		})
	}
}

// TestManyLateHoldNothingBackThatBeginsWhileItTicks has a page hold many exchanges
// that became visible behind the cursor, and a few that begin after the horizon.
func TestManyLateHoldNothingBackThatBeginsWhileItTicks(t *testing.T) {
	a := newAhead(t)
	a.tick(0)
	a.fail(begin+second/2, 300)
	a.fail(nextTick, 3)
	if offered, written := a.tick(0); offered != 303 || written != 303 {
		t.Errorf("%d alerts offered and %d written in the tick, want 303 and 303", offered, written)
	}
}
