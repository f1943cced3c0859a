package app_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/rules"
)

// operators stores a webhook that hears of Tocsin itself.
func (w *world) operators() {
	w.t.Helper()
	_, err := w.db.Webhooks().Create(w.t.Context(), tenant, notify.Webhook{
		Name: "operators", Kind: notify.KindGeneric, URL: w.receiver.url, Enabled: true, Operators: true,
		Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// blind returns an evaluator whose ClickHouse cannot be reached.
func (w *world) blind(replica string) *evaluator.Evaluator {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: "http://127.0.0.1:1/default"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	return w.newEvaluator(evaluator.Options{Replica: replica, Source: source})
}

const (
	told         = `select reason from notification order by created_at, notification_id`
	healthAlerts = `select state from alert where health order by fired_at, alert_id`
)

func TestFailingAndRecoveredAreToldOnce(t *testing.T) {
	w := newWorld(t)
	w.operators()
	w.webhook("ops")
	w.rule()
	one, two := w.blind("one"), w.blind("two")
	for range 2 {
		for _, e := range []*evaluator.Evaluator{one, two} {
			if result, err := w.tickWith(e); err != nil || result.Failed != 1 {
				t.Fatalf("Tick = %+v, %v; want one failed rule", result, err)
			}
		}
	}
	w.wantColumn("told", told, "RULE_FAILING")
	w.wantColumn("inbox", healthAlerts, "FIRING")
	w.tick()
	w.tick()
	w.wantColumn("told", told, "RULE_FAILING", "RULE_RECOVERED")
	w.wantColumn("inbox", healthAlerts, "RESOLVED")
	if _, err := w.tickWith(one); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("told anew", told, "RULE_FAILING", "RULE_RECOVERED", "RULE_FAILING")
	w.wantColumn("inbox", healthAlerts, "RESOLVED", "FIRING")
}

// TestNoRecoveryIsToldOfARuleThatWasNotCounted lets each of two queries take all the
// time that a tick has: while one rule is counted, the other one is only given back.
func TestNoRecoveryIsToldOfARuleThatWasNotCounted(t *testing.T) {
	w := newWorld(t)
	w.operators()
	for _, text := range []string{"one", "two"} {
		rule := w.counting(rules.Definition{Filter: rules.Filter{ErrorMessageContains: text}})
		w.exec(`update rule set name = $1 where rule_id = $2`, text, rule.ID)
	}
	source, now := w.tapped(), time.Now()
	source.onCount = func() error {
		now = now.Add(time.Minute)
		return errors.New("took too long")
	}
	engine := w.newEvaluator(evaluator.Options{Source: source, Clock: func() time.Time { return now }})
	tick := func() {
		t.Helper()
		if _, err := w.tickWith(engine); err != nil {
			t.Fatal(err)
		}
	}
	tick() // both in one query, so neither is known to be at fault
	w.wantColumn("last runs", `select last_run_at::text from rule_state where last_run_at is not null`)
	for range 4 {
		tick()
	}
	const problem = "count exchanges: took too long"
	w.wantColumn("problems", problems, problem, problem)
	w.wantColumn("told", told, "RULE_FAILING", "RULE_FAILING")
	w.wantColumn("inbox", healthAlerts, "FIRING", "FIRING")
	source.onCount = nil
	tick()
	w.wantColumn("at last", told, "RULE_FAILING", "RULE_FAILING", "RULE_RECOVERED", "RULE_RECOVERED")
	w.wantColumn("problems", problems, "", "")
}

func TestTwoReplicasClaimTheTellingOnce(t *testing.T) {
	w := newWorld(t)
	w.operators()
	rule := w.rule()
	failing := func() alerts.Instance {
		return alerts.Instance{ID: w.newID(), TenantID: tenant, RuleID: rule.ID, RuleVersion: 1, Severity: "WARNING", Title: "t", Health: true}
	}
	const replicas = 8
	ended := make(chan error, replicas)
	for range replicas {
		go func() {
			_, err := w.db.Evaluation().Announce(t.Context(), []alerts.Instance{failing()})
			ended <- err
		}()
	}
	for range replicas {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	w.wantColumn("told", told, "RULE_FAILING")
	w.wantColumn("inbox", healthAlerts, "FIRING")
}

// What operators are told is owed to no webhook of theirs that is deleted meanwhile.
func TestTellingWhileTheWebhookIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	rule := w.rule()
	hook := uuid.MustParse(w.column(`select webhook_id::text from webhook`)[0])
	// Both wait for the webhook, and get it in this order.
	held, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `select from webhook for update`); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) func() bool {
		return func() bool {
			return len(w.column(`select 'waits' from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)) == n
		}
	}
	ended := make(chan error, 2)
	go func() { ended <- w.db.Webhooks().Delete(t.Context(), tenant, hook) }()
	w.until("the deletion waits", waiting(1))
	go func() {
		_, err := w.db.Evaluation().Announce(t.Context(), []alerts.Instance{
			{ID: w.newID(), TenantID: tenant, RuleID: rule.ID, RuleVersion: 1, Severity: "WARNING", Title: "t", Health: true},
		})
		ended <- err
	}()
	w.until("the telling waits, too", waiting(2))
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	w.wantColumn("owed", unsettledOutbox)
	w.wantColumn("inbox", healthAlerts, "FIRING")
}

func TestEditAndRetryForgetTheFailure(t *testing.T) {
	w := newWorld(t)
	w.operators()
	rule := w.rule()
	blind := w.blind("blind")
	fail := func() {
		t.Helper()
		if _, err := w.tickWith(blind); err != nil {
			t.Fatal(err)
		}
	}
	fail()
	if _, err := w.db.Rules().Retry(t.Context(), tenant, rule.ID); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("after the retry", healthAlerts, "RESOLVED")
	w.wantColumn("problem", problems, "")
	fail()
	definition := rule.Definition
	definition.Name = "another name"
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition}); err != nil {
		t.Fatal(err)
	}
	fail()
	w.wantColumn("told each time", told, "RULE_FAILING", "RULE_FAILING", "RULE_FAILING")
	w.wantColumn("inbox", healthAlerts, "RESOLVED", "RESOLVED", "FIRING")
	w.tick()
	w.wantColumn("at last", told, "RULE_FAILING", "RULE_FAILING", "RULE_FAILING", "RULE_RECOVERED")
}
