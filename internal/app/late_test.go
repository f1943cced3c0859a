package app_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// TestAlertsTellHowLateTheyAre raises alerts in time and through the look-back.
func TestAlertsTellHowLateTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.tick()
	now := w.ch.Now(t)
	w.exec(`update rule_state set armed_since_ns = $1`, now-int64(time.Hour))
	ago := func(d time.Duration) *int64 { return new(now - d.Nanoseconds()) }
	row := func(id string, start, end *int64) rules.Exchange {
		return rules.Exchange{TenantID: tenant, StartTimeNS: *start, EndTimeNS: end, ExecutionID: id, Status: rules.Failed}
	}
	w.ch.Insert(t,
		row("in time", ago(0), ago(0)), row("ends in the future", ago(0), ago(-time.Hour)),
		row("late", ago(30*time.Minute), ago(20*time.Minute)), row("no end", ago(10*time.Minute), nil))
	// Another process, which has not read the look-back before.
	if _, err := w.tickWith(w.newEvaluator(evaluator.Options{})); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]struct {
		late     bool
		from, to time.Duration
	}{
		"in time":            {false, 0, time.Minute},
		"ends in the future": {false, 0, 0},
		"late":               {true, 20 * time.Minute, 21 * time.Minute},
		"no end":             {true, 10 * time.Minute, 11 * time.Minute},
	} {
		found := false
		for _, a := range w.firing() {
			if a.Exchange.ExecutionID != id {
				continue
			}
			found = true
			if a.Late != want.late || a.LateBy == nil || *a.LateBy < want.from || *a.LateBy > want.to {
				t.Errorf("%s: late %v by %v, want %v by %v to %v", id, a.Late, a.LateBy, want.late, want.from, want.to)
			}
		}
		if !found {
			t.Errorf("%s: no alert", id)
		}
	}
	late := func() int64 {
		t.Helper()
		health, err := w.db.Rules().Health(t.Context(), tenant, []uuid.UUID{rule.ID})
		if err != nil {
			t.Fatal(err)
		}
		return health[rule.ID].LateLastHour
	}
	if got := late(); got != 2 {
		t.Errorf("%d late alerts in the last hour, want 2", got)
	}
	w.exec(`update alert set fired_at = fired_at - interval '61 minutes' where execution_id = 'late'`)
	if got := late(); got != 1 {
		t.Errorf("%d late alerts in the last hour, want 1", got)
	}
}
