package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/rules"
)

// counting stores a COUNT_IN_WINDOW rule for every failure within a minute.
func (w *world) counting(d rules.Definition) rules.Rule {
	w.t.Helper()
	d.Name, d.Enabled, d.FireMode, d.Severity = "counting", true, rules.CountInWindow, rules.Warning
	d.IntervalSeconds, d.Threshold, d.WindowSeconds = 1, 3, 60
	rule, err := w.db.Rules().Create(w.t.Context(), tenant, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return rule
}

// failIn writes failures of routes that begin and end now.
func (w *world) failIn(route string, ids ...string) {
	w.t.Helper()
	at := w.ch.Now(w.t)
	exchanges := make([]rules.Exchange, len(ids))
	for i, id := range ids {
		exchanges[i] = rules.Exchange{
			TenantID: tenant, StartTimeNS: at + int64(i), EndTimeNS: &at, ExecutionID: id, Application: "orders", Route: route,
			Status: rules.Failed, ErrorMessage: "newest is " + id,
		}
	}
	w.ch.Insert(w.t, exchanges...)
}

// empty takes every exchange out of the window.
func (w *world) empty() {
	w.t.Helper()
	if err := w.ch.Conn.Exec(w.t.Context(), `TRUNCATE TABLE exchanges`); err != nil {
		w.t.Fatal(err)
	}
}

const (
	counts   = `select state || ' ' || group_key || ' ' || (count->>'observed') || ' ' || coalesce(exchange->>'executionId', '') from alert where not health order by fired_at, group_key`
	messages = `select reason || ' ' || generation from notification order by created_at, reason, generation`
)

func TestCountFiresOnceAndClears(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b")
	w.tick()
	w.wantColumn("below the threshold", counts)
	w.failIn("r", "c", "c")
	w.tick()
	w.wantColumn("at the threshold", counts, "FIRING  3 c")
	w.failIn("r", "d")
	w.tick()
	w.tick()
	w.wantColumn("while it lasts", counts, "FIRING  3 c")
	w.wantColumn("notifications", messages, "FIRED 0")
	w.empty()
	w.tick()
	w.wantColumn("below again", counts, "RESOLVED  0 c")
	w.wantColumn("notifications", messages, "FIRED 0", "RESOLVED 0")
	w.failIn("r", "e", "f", "g")
	w.tick()
	w.wantColumn("and again", counts, "RESOLVED  0 c", "FIRING  3 g")
	if _, err := w.dispatcher.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("delivered", statuses, "DELIVERED 3")
}

// A step that would notify a webhook that is deleted is not made, until the rule is bound
// to no such webhook.
func TestCountNotifiesNoDeletedWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.exec(`update webhook set deleted_at = now()`)
	w.tick()
	w.wantColumn("problem", problems, "commit: write notifications: refused by the database: a webhook of the rule does not exist")
	w.wantColumn("alerts", counts)
	w.wantColumn("notifications", messages)
	w.exec(`delete from rule_webhook`)
	w.exec(`update rule set version = version + 1`)
	w.changed()
	w.tick()
	w.wantColumn("problem", problems, "")
	w.wantColumn("alerts of the rule as it is now", counts, "FIRING  3 c")
	w.wantColumn("notifications", messages)
}

func TestCountByGroup(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute, WebhookIDs: webhooks(w.webhook("ops"))})
	odd := "\x00\xff*"
	w.failIn("calm", "a", "b")
	w.failIn("busy", "c", "d", "e")
	w.failIn(odd, "f", "g", "h")
	w.tick()
	w.wantColumn("groups", counts, "FIRING busy 3 e", "FIRING hex:00ff2a 3 h")
	w.tick()
	w.wantColumn("notifications", messages, "FIRED 0", "FIRED 0")
	w.empty()
	w.failIn("busy", "i", "j", "k")
	w.tick()
	w.wantColumn("one is over", counts, "FIRING busy 3 e", "RESOLVED hex:00ff2a 0 h")
	w.wantColumn("groups as shown", `select count->>'group' from alert order by 1`, "busy", "hex:00ff2a")
}

func TestCountWaitsForItsDuration(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{ForDurationSeconds: 30, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.tick()
	w.wantColumn("at first", counts, "PENDING  3 c")
	w.wantColumn("notifications", messages)
	w.empty()
	w.tick()
	w.wantColumn("dropped", counts)
	w.failIn("r", "d", "e", "f")
	w.tick()
	w.exec(`update alert set fired_at = now() - interval '30 s'`)
	w.tick()
	w.wantColumn("fires", counts, "FIRING  3 f")
	w.wantColumn("notifications", messages, "FIRED 0")
}

func TestCountRemindsUntilAcknowledged(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{ReNotifyMinutes: 1, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.tick()
	for range 2 {
		w.exec(`update alert set notified_at = now() - interval '1 min'`)
		w.tick()
		w.tick()
	}
	w.wantColumn("notifications", messages, "FIRED 0", "REMINDER 0", "REMINDER 1")
	deed := api.Deed{AlertID: w.firing()[0].ID, Action: alerts.Acknowledge, Actor: "anna"}
	if _, err := w.db.Inbox().Act(t.Context(), tenant, deed); err != nil {
		t.Fatal(err)
	}
	w.exec(`update alert set notified_at = now() - interval '1 day'`)
	w.tick()
	w.wantColumn("after the acknowledgement", messages, "FIRED 0", "REMINDER 0", "REMINDER 1")
	w.empty()
	w.tick()
	w.wantColumn("it clears all the same", counts, "RESOLVED  0 c")
	w.wantColumn("without a word, as the rule says", messages, "FIRED 0", "REMINDER 0", "REMINDER 1")
}

// TestCountOfAnEditedRuleIsOvertaken edits one of the rules that are counted together
// while they are: no step is made by rules that have changed.
func TestCountOfAnEditedRuleIsOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var edited rules.Rule
	for i := range 3 {
		edited = w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook(fmt.Sprint("ops-", i)))})
		w.exec(`update rule set name = $1 where rule_id = $2`, fmt.Sprint("counting ", i), edited.ID)
		edited.Name = fmt.Sprint("counting ", i)
	}
	w.failIn("r", "a", "b", "c")
	source := w.watched()
	engine := w.newEvaluator(evaluator.Options{Source: source})
	source.before = func(method string) error {
		if method != "Tally" && method != "CountWindows" {
			return nil
		}
		source.before = nil
		definition := edited.Definition
		definition.Threshold = 2
		if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: edited.ID, Version: 1, Definition: definition}); err != nil {
			t.Error(err)
		}
		return nil
	}
	w.wantStale(engine)
	w.wantColumn("alerts", counts)
	if result, err := w.tickWith(engine); err != nil || result.Alerts != 3 || result.Notifications != 3 {
		t.Errorf("Tick = %+v, %v; want the alerts of all", result, err)
	}
	w.wantColumn("alerts afterwards", counts, "FIRING  3 c", "FIRING  3 c", "FIRING  3 c")
	w.wantColumn("notifications", messages, "FIRED 0", "FIRED 0", "FIRED 0")
}

func TestCountSurvivesRestartsAndFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.refuse(`new.group_key is not null`)
	if result := w.tick(); result.Failed != 1 || result.Alerts > 0 {
		t.Fatalf("Tick = %+v; want one failed rule", result)
	}
	w.wantColumn("alerts", counts)
	w.wantColumn("announced", announced, "RULE_FAILING 1")
	w.accept()
	w.later(time.Minute)
	w.tick()
	w.wantColumn("alerts", counts, "FIRING  3 c")
	w.wantColumn("announced in the end", announced, "RULE_FAILING 1", "RULE_RECOVERED 1")
	other := w.newEvaluator(evaluator.Options{Replica: "other"})
	if _, err := w.tickWith(other); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("another process", counts, "FIRING  3 c")
	w.wantColumn("notifications", `select reason || ' ' || generation from notification where reason = 'FIRED'`, "FIRED 0")
}

func TestCountIgnoresWhatEndedBeforeArming(t *testing.T) {
	w := newWorld(t)
	w.failIn("r", "a", "b")
	w.counting(rules.Definition{})
	w.failIn("r", "c")
	w.tick()
	w.wantColumn("alerts", counts)
}

func TestDisablingDropsWhatNobodyHasHeardOf(t *testing.T) {
	w := newWorld(t)
	rule := w.counting(rules.Definition{ForDurationSeconds: 30})
	w.failIn("r", "a", "b", "c")
	w.tick()
	if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, rule.ID, false); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("alerts", counts)
}

func TestDatabaseHoldsOneOpenAlertPerGroup(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{})
	w.failIn("r", "a", "b", "c")
	w.tick()
	_, err := w.conn.Exec(t.Context(), `insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message,
		group_key, count, start_time_ns, application, route, exchange)
		select gen_random_uuid(), tenant_id, rule_id, rule_version, severity, 'FIRING', title, message, group_key, count, start_time_ns,
		application, route, exchange from alert`)
	if err == nil || !strings.Contains(err.Error(), "alert_open_once") {
		t.Errorf("a second open alert gave %v", err)
	}
}

func webhooks(ids ...uuid.UUID) []uuid.UUID { return ids }
