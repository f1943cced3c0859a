package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// partly is a model in which only some rules are due.
type partly struct {
	*model
	due []string
}

func (p *partly) Load(ctx context.Context, request evaluator.ClaimRequest) (evaluator.Loaded, error) {
	loaded, err := p.model.Load(ctx, request)
	loaded.Claims = slices.DeleteFunc(loaded.Claims, func(c evaluator.Claim) bool { return !slices.Contains(p.due, c.Rule.Name) })
	return loaded, err
}

// TestLooksBackWhicheverOtherRulesAreDue has two rules that are never due at
// the same tick, while the comparison of the whole look-back always comes round
// with the one: the other must have its own.
func TestLooksBackWhicheverOtherRulesAreDue(t *testing.T) {
	for name, wants := range map[string]struct {
		statuses    []rules.Status
		lookBack    int
		late        rules.Status
		lateSeconds int64
	}{
		"other statuses":     {statuses: []rules.Status{rules.Completed}, lookBack: 3600, late: rules.Completed, lateSeconds: 600},
		"a longer look-back": {lookBack: 7200, late: rules.Failed, lateSeconds: 5400},
	} {
		t.Run(name, func(t *testing.T) {
			m := &partly{model: &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}}
			for id, r := range map[uuid.UUID]rules.Definition{
				{1}: {Name: "often", LookBackSeconds: 3600},
				{2}: {Name: "seldom", LookBackSeconds: wants.lookBack, Filter: rules.Filter{Statuses: wants.statuses}},
			} {
				r.Enabled, r.FireMode = true, rules.PerExchange
				m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: r}}
			}
			engine, err := evaluator.New(evaluator.Options{
				Source: m, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler),
				Clock: func() time.Time { return time.Unix(0, m.now) }, Replica: "model",
			})
			if err != nil {
				t.Fatal(err)
			}
			pass := func(length int64, due ...string) {
				t.Helper()
				m.now += length
				m.due = due
				if _, err := engine.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			pass(second, "often", "seldom")
			end := m.now
			m.rows = append(m.rows, rules.Exchange{
				TenantID: "default", StartTimeNS: end - wants.lateSeconds*second, EndTimeNS: &end, ExecutionID: "late", Status: wants.late,
			})
			for range 20 {
				pass(20*second, "often")
				pass(second, "seldom")
			}
			if got := m.alerts[fmt.Sprint(uuid.UUID{2}, "late")]; got != 1 {
				t.Errorf("%d alerts for what became visible late, want 1", got)
			}
		})
	}
}

// TestLooksBackInSteps gives a tick time for a page or two, and a look-back of
// many: it must end in time and go on where it ended.
func TestLooksBackInSteps(t *testing.T) {
	const rows, pageSize = 100, 5
	id := uuid.UUID{1}
	m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
	m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: rules.Definition{
		Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600,
	}}}
	looks := 0
	engine, err := evaluator.New(evaluator.Options{
		Source: m, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler), Replica: "model", PageSize: pageSize,
		Clock:  func() time.Time { looks++; return time.Unix(0, m.now).Add(time.Duration(looks) * time.Millisecond) },
		Budget: 3 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := m.now
	for i := range rows {
		m.rows = append(m.rows, rules.Exchange{
			TenantID: "default", StartTimeNS: end - int64(rows-i)*second/2, EndTimeNS: &end, ExecutionID: fmt.Sprint(i), Status: rules.Failed,
		})
	}
	m.now += second
	for range rows {
		before := len(m.alerts)
		result, err := engine.Tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if result.Scanned > 4*pageSize {
			t.Fatalf("a tick with time for a page or two read %d exchanges", result.Scanned)
		}
		if len(m.alerts) == rows {
			return
		}
		if len(m.alerts) == before {
			t.Fatalf("a tick came no further than %d of %d alerts", before, rows)
		}
	}
}

// TestReadsWhatIsNewOnce has exchanges fail all the time, within seconds that
// cursors cross: each is read once, but for those of a second in which another
// one becomes visible late, and none is offered to the database again.
func TestReadsWhatIsNewOnce(t *testing.T) {
	m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
	source := &asked{model: m}
	id := uuid.UUID{1}
	m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: rules.Definition{
		Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600,
	}}}
	engine, err := evaluator.New(evaluator.Options{
		Source: source, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Unix(0, m.now) }, Replica: "model",
	})
	if err != nil {
		t.Fatal(err)
	}
	fail := func(start int64) {
		m.rows = append(m.rows, rules.Exchange{
			TenantID: "default", StartTimeNS: start, ExecutionID: fmt.Sprint(len(m.rows)), Status: rules.Failed,
		})
	}
	tick := func() evaluator.Result {
		t.Helper()
		source.scans = nil
		result, err := engine.Tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	tick()
	for range 20 {
		fail(m.now)
		fail(m.now + second/10)
		m.now += second / 4
		if got := tick(); got.Scanned != 2 || got.Alerts != 2 || len(source.scans) != 1 {
			t.Fatalf("%d exchanges read in %d scans, for %d alerts; want 2, 1 and 2", got.Scanned, len(source.scans), got.Alerts)
		}
	}
	fail(m.now - second/2)
	m.now += second / 4
	if got := tick(); got.Late != 1 || got.Alerts != 1 || got.Scanned < 2 || len(source.scans) != 1 {
		t.Fatalf("one became visible late: %d alerts, %d of them late, of %d exchanges read in %d scans", got.Alerts, got.Late, got.Scanned, len(source.scans))
	}
	if m.offered != len(m.rows) || len(m.alerts) != len(m.rows) {
		t.Errorf("%d exchanges: %d alerts were offered, %d are there", len(m.rows), m.offered, len(m.alerts))
	}
}
