package app_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/explain"
	"tocsin/rules"
)

// TestExplainAgreesWithEvaluation explains exchanges before and after they are evaluated, and one
// that became visible too late.
func TestExplainAgreesWithEvaluation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of := func(name string, change func(*rules.Definition)) rules.Rule {
		d := rules.Definition{Name: name}
		change(&d)
		return w.ruleOf(d)
	}
	l := newListener(t)
	all := of("all", func(d *rules.Definition) {
		d.WebhookIDs = []uuid.UUID{w.chooses(l, "silenced", nil), w.chooses(l, "another", nil)}
	})
	of("elsewhere", func(d *rules.Definition) { d.Scope.NotApplications = []string{"ord*"} })
	off := of("off", func(*rules.Definition) {})
	if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, off.ID, false); err != nil {
		t.Fatal(err)
	}
	w.tick()
	now := w.ch.Now(t)
	w.fail(now, "x")
	if got, want := w.explained("x"), map[string]explain.Verdict{"all": explain.Waiting, "elsewhere": explain.NotMatched, "off": explain.Disabled}; !maps.Equal(got, want) {
		t.Errorf("before it is evaluated: %v, want %v", got, want)
	}
	w.later(5 * time.Second)
	for len(w.firing()) == 0 {
		w.tick()
	}
	of("later", func(*rules.Definition) {})
	want := map[string]explain.Verdict{"all": explain.Alerted, "elsewhere": explain.NotMatched, "off": explain.Disabled, "later": explain.NotArmed}
	if got := w.explained("x"); !maps.Equal(got, want) {
		t.Errorf("after it: %v, want %v", got, want)
	}
	silenced := func() explain.Alert {
		t.Helper()
		states, err := w.db.Rules().RuleStates(t.Context(), tenant, "x")
		if err != nil {
			t.Fatal(err)
		}
		for i := range states {
			if a := states[i].Alert; a != nil {
				return *a
			}
		}
		t.Fatal("no rule has an alert")
		return explain.Alert{}
	}
	if a := silenced(); a.Messages != 2 || a.Suppressed != 0 {
		t.Errorf("of %d messages silences suppressed %d", a.Messages, a.Suppressed)
	}
	w.exec(`with gone as (delete from outbox where notification_id = (select min(notification_id::text)::uuid from notification) returning notification_id)
		insert into settlement (notification_id, tenant_id, status, settled_at, trail, silence_id) select notification_id, $1, 'SUPPRESSED', now(), false, gen_random_uuid() from gone`, tenant)
	if a := silenced(); a.Messages != 2 || a.Suppressed != 1 {
		t.Errorf("of %d messages silences suppressed %d, want 1 of 2", a.Messages, a.Suppressed)
	}
	w.exec(`update rule_state set armed_since_ns = $1`, now-int64(10*time.Hour))
	w.exec(`delete from rule_backfill`)
	w.fail(now-int64(5*time.Hour), "late")
	if got := w.explained("late"); got["all"] != explain.BeyondLookBack || got["elsewhere"] != explain.NotMatched {
		t.Errorf("visible too late: %v", got)
	}
	if start, found, err := w.db.Rules().AlertedStart(t.Context(), tenant, "x"); err != nil || !found || start != now {
		t.Errorf("the alert's exchange began at %d, %v, %v; want %d", start, found, err, now)
	}
	if _, found, err := w.db.Rules().AlertedStart(t.Context(), "another tenant", "x"); err != nil || found {
		t.Errorf("another tenant's alert is found: %v", err)
	}
	w.exec(`insert into rule_failing (rule_id, alert_id) values ($1, gen_random_uuid())`, all.ID)
	w.fail(w.ch.Now(t), "y")
	if got := w.explained("y"); got["all"] != explain.Failing {
		t.Errorf("of a rule that fails: %v", got)
	}
}

// explained returns how each rule evaluates the exchange with the given id.
func (w *world) explained(id string) map[string]explain.Verdict {
	w.t.Helper()
	found, err := w.source().Search(w.t.Context(), rules.ExchangeQuery{
		TenantID: tenant, ToNS: w.ch.Now(w.t) + int64(time.Hour), ExecutionID: id, Limit: 10, Filter: rules.Filter{Statuses: []rules.Status{rules.Failed}},
	})
	if err != nil || len(found) != 1 || found[0].ExecutionID != id {
		w.t.Fatalf("found %+v, %v", found, err)
	}
	states, err := w.db.Rules().RuleStates(w.t.Context(), tenant, found[0].Key())
	if err != nil {
		w.t.Fatal(err)
	}
	verdicts := map[string]explain.Verdict{}
	for i := range states {
		verdicts[states[i].Rule.Name] = explain.Explain(&found[0], &states[i]).Verdict
	}
	return verdicts
}
