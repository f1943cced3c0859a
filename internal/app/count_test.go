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
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

// counting stores a COUNT_IN_WINDOW rule for every failure within a minute, or another rule over
// that window.
func (w *world) counting(d rules.Definition) rules.Rule {
	w.t.Helper()
	if d.FireMode == "" {
		d.FireMode, d.Threshold = rules.CountInWindow, 3
	}
	d.Name, d.Enabled, d.Severity = "counting", true, rules.Warning
	d.IntervalSeconds, d.WindowSeconds = 1, 60
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

// unseen makes the source show no exchange, as a lagging server does.
func (w *world) unseen() {
	w.t.Helper()
	if err := w.ch.Conn.Exec(w.t.Context(), `TRUNCATE TABLE exchanges`); err != nil {
		w.t.Fatal(err)
	}
}

// empty moves every exchange out of the window: the exchanges that alerts are about then ended long
// ago.
func (w *world) empty() {
	w.t.Helper()
	w.unseen()
	w.exec(`update alert set start_time_ns = 0, exchange = (exchange::jsonb - 'endTimeNs')::json where group_key is not null`)
}

// pass makes a pass like a process that has just started: all window rules are due.
func (w *world) pass() evaluator.Result {
	w.t.Helper()
	result, err := w.tickWith(w.newEvaluator(evaluator.Options{}))
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

const (
	counts  = `select state || ' ' || group_key || ' ' || (count->>'observed') || ' ' || coalesce(exchange->>'executionId', '') from alert where not health order by fired_at, group_key`
	written = `select reason || ' ' || generation from notification order by xmin::text::bigint, reason, generation`
)

func TestCountFiresOnceAndClears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b")
	w.pass()
	w.wantColumn("below the threshold", counts)
	w.failIn("r", "c", "c")
	w.pass()
	w.wantColumn("at the threshold", counts, "FIRING  3 c")
	w.failIn("r", "d")
	w.pass()
	w.pass()
	w.wantColumn("while it lasts", counts, "FIRING  3 c")
	w.wantColumn("open", written, "FIRED 0")
	w.empty()
	w.pass()
	w.wantColumn("below again", counts, "RESOLVED  0 c")
	w.wantColumn("open", written, "FIRED 0", "RESOLVED 0")
	w.failIn("r", "e", "f", "g")
	w.pass()
	w.wantColumn("and again", counts, "RESOLVED  0 c", "FIRING  3 g")
	w.deliverAll()
	w.wantColumn("delivered", statuses, "DELIVERED 3")
}

// TestAPassDoesNotWaitForALockedAlert has somebody keep a window alert locked, as an open transaction in psql does: the
// pass raises what is new. When the alert is free, the next pass resolves it, although the rule is not due yet.
func TestAPassDoesNotWaitForALockedAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.db.Rules().Create(t.Context(), tenant, rules.Definition{
		Name: "counting", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Warning, Threshold: 3, WindowSeconds: 60, IntervalSeconds: 60,
	}); err != nil {
		t.Fatal(err)
	}
	w.failIn("r", "a", "b", "c")
	w.pass()
	w.wantColumn("at the threshold", counts, "FIRING  3 c")
	w.empty()
	tx, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from alert for update`); err != nil {
		t.Fatal(err)
	}
	e := w.newEvaluator(evaluator.Options{})
	if _, err := w.tickWith(e); err != nil {
		t.Error(err)
	}
	w.wantColumn("while it is locked", counts, "FIRING  3 c")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.tickWith(e); err != nil {
		t.Error(err)
	}
	w.wantColumn("when it is free", counts, "RESOLVED  0 c")
}

// TestTheEndReachesEachNotifiedWebhook gives a rule another webhook, or the routing policy, while its alert fires: the end of the
// alert is for the webhook that was notified of it, and not for one that has heard nothing.
func TestTheEndReachesEachNotifiedWebhook(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(d *rules.Definition, other uuid.UUID){
		"another webhook": func(d *rules.Definition, other uuid.UUID) { d.WebhookIDs = webhooks(other) },
		"the policy":      func(d *rules.Definition, _ uuid.UUID) { d.UseRoutingPolicy, d.WebhookIDs = true, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.counting(rules.Definition{NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops"))})
			w.failIn("r", "a", "b", "c")
			w.pass()
			w.wantColumn("at the threshold", counts, "FIRING  3 c")
			d := rule.Definition
			edit(&d, w.webhook("others"))
			if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: d}); err != nil {
				t.Fatal(err)
			}
			w.empty()
			w.pass()
			w.wantColumn("below again", counts, "RESOLVED  0 c")
			w.wantColumn("who is notified", `select n.reason || ' ' || h.name from notification n join webhook h using (webhook_id) order by 1`, "FIRED ops", "RESOLVED ops")
		})
	}
}

// TestWhoHeardByAReminderHearsTheRest gives a rule another webhook while its alert fires. That one is reminded, and from then on it
// is notified of the events that it chose, and of the end, which does not expire, because the rule wants it.
func TestWhoHeardByAReminderHearsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.counting(rules.Definition{NotifyOnResolve: true, ReNotifyMinutes: 1, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	d := rule.Definition
	d.WebhookIDs = webhooks(w.webhook("others"))
	w.exec(`update webhook set events = '{ACKNOWLEDGED,RESOLVED}' where name = 'others'`)
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: d}); err != nil {
		t.Fatal(err)
	}
	w.exec(`update alert set notified_at = notified_at - interval '2 min'`)
	w.failIn("r", "d", "e", "f")
	w.pass()
	const who = `select n.reason || ' ' || h.name || case when o.expires_at is null then '' else ' expires' end
		from notification n join webhook h using (webhook_id) join outbox o using (notification_id) order by 1`
	w.wantColumn("reminded", who, "FIRED ops", "REMINDER others expires")
	if _, err := w.db.Inbox().Act(t.Context(), tenant, api.AlertAction{AlertID: uuid.MustParse(w.column(`select alert_id::text from alert where not health`)[0]), Action: alerts.Acknowledge, Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	w.empty()
	w.pass()
	w.wantColumn("at the end", who, "ACKNOWLEDGED others expires", "FIRED ops", "REMINDER others expires", "RESOLVED ops", "RESOLVED others")
}

// TestServerThatLagsResolvesNoCount lets the source show none of the exchanges that an alert is
// about.
func TestServerThatLagsResolvesNoCount(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	w.unseen()
	w.pass()
	w.wantColumn("while it should be seen", counts, "FIRING  3 c")
	w.wantColumn("notified", written, "FIRED 0")
	w.empty()
	w.pass()
	w.wantColumn("once it has left the window", counts, "RESOLVED  0 c")
	w.wantColumn("notified", written, "FIRED 0", "RESOLVED 0")
}

// runIn writes exchanges of a route that end now, each with a duration of the given milliseconds.
func (w *world) runIn(route string, status rules.Status, durationsMS ...int64) {
	w.t.Helper()
	at := w.ch.Now(w.t)
	var list []rules.Exchange
	for i, ms := range durationsMS {
		list = append(list, rules.Exchange{
			TenantID: tenant, StartTimeNS: at - ms*1e6 + int64(i), EndTimeNS: &at, DurationNS: ms * 1e6, ExecutionID: fmt.Sprint(route, status, at, i), Route: route, Status: status,
		})
	}
	w.ch.Insert(w.t, list...)
}

// measured reads the measured values of alerts.
const measured = `select state || ' ' || group_key || ' ' || (count->>'observed') || '/' || (count->>'volume') || ' ' || coalesce(count->>'durationNs', '') || ' ' || title
	from alert where not health order by fired_at, group_key`

func TestRatioFiresAndClears(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{
		FireMode: rules.RatioInWindow, Percent: 50, MinVolume: 4, GroupBy: rules.GroupByRoute, NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops")),
	})
	w.runIn("bad", rules.Failed, 1, 1)
	w.runIn("bad", rules.Completed, 1, 1)
	w.runIn("good", rules.Failed, 1, 1)
	w.runIn("good", rules.Completed, 1, 1, 1)
	w.runIn("few", rules.Failed, 1, 1, 1)
	w.pass()
	w.wantColumn("half of four", measured, "FIRING bad 2/4  bad: 50% of 4 exchanges match within 1 min")
	w.runIn("bad", rules.Completed, 1)
	w.runIn("good", rules.Failed, 1)
	w.pass()
	w.wantColumn("one more of each", measured, "RESOLVED bad 2/5  bad: 50% of 4 exchanges match within 1 min", "FIRING good 3/6  good: 50% of 6 exchanges match within 1 min")
	w.wantColumn("notified", written, "FIRED 0", "FIRED 0", "RESOLVED 0")
}

func TestPercentileFiresAndClears(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{
		FireMode: rules.DurationInWindow, Percentile: 50, DurationMS: 2000, MinVolume: 3, GroupBy: rules.GroupByRoute,
		Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}},
	})
	w.runIn("slow", rules.Completed, 1, 2400)
	w.runIn("slow", rules.Failed, 3000)
	w.runIn("quick", rules.Completed, 1, 1999, 5000)
	w.runIn("few", rules.Completed, 9000, 9000)
	w.pass()
	w.wantColumn("the second of three", measured, "FIRING slow 2/3 2400000000 slow: p50 is 2.4 s over 3 exchanges within 1 min")
	w.runIn("slow", rules.Completed, 1)
	w.pass()
	w.wantColumn("the second of four", measured, "RESOLVED slow 2/4 1000000 slow: p50 is 2.4 s over 3 exchanges within 1 min")
}

// A step with a message to a deleted webhook is not made, and is made once the rule has no such
// webhook any more.
func TestCountNotifiesNoDeletedWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.exec(`update webhook set deleted_at = now()`)
	w.pass()
	w.wantColumn("problem", problems, "commit: write notifications: refused by the database: a webhook of the rule does not exist")
	w.wantColumn("alerts", counts)
	w.wantColumn("open", written)
	w.exec(`delete from rule_webhook`)
	w.exec(`update rule set version = version + 1`)
	w.pass()
	w.wantColumn("problem", problems, "")
	w.wantColumn("alerts of the rule as it is now", counts, "FIRING  3 c")
	w.wantColumn("still open", written)
}

func TestCountByGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute, WebhookIDs: webhooks(w.webhook("ops"))})
	odd := "\x00\xff*"
	w.failIn("calm", "a", "b")
	w.failIn("busy", "c", "d", "e")
	w.failIn(odd, "f", "g", "h")
	w.pass()
	w.wantColumn("groups", counts, "FIRING busy 3 e", "FIRING hex:00ff2a 3 h")
	w.pass()
	w.wantColumn("open", written, "FIRED 0", "FIRED 0")
	w.empty()
	w.failIn("busy", "i", "j", "k")
	w.pass()
	w.wantColumn("one is over", counts, "FIRING busy 3 e", "RESOLVED hex:00ff2a 0 h")
	w.wantColumn("groups as shown", `select count->>'group' from alert order by 1`, "busy", "hex:00ff2a")
}

func TestCountWaitsForItsDuration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.counting(rules.Definition{ForDurationSeconds: 30, WebhookIDs: webhooks(w.webhook("ops"))})
	w.armed(rule, w.ch.Now(t)-time.Minute.Nanoseconds()) // what waits did so for this condition
	w.failIn("r", "a", "b", "c")
	w.pass()
	w.wantColumn("at first", counts, "PENDING  3 c")
	w.wantColumn("open", written)
	w.empty()
	w.pass()
	w.wantColumn("dropped", counts)
	w.failIn("r", "d", "e", "f")
	w.pass()
	w.exec(`update alert set fired_at = now() - interval '30 s'`)
	w.pass()
	w.wantColumn("fires", counts, "FIRING  3 f")
	w.wantColumn("open", written, "FIRED 0")
}

func TestCountRemindsUntilAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{ReNotifyMinutes: 1, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	for range 2 {
		w.exec(`update alert set notified_at = now() - interval '1 min'`)
		w.pass()
		w.pass()
	}
	w.wantColumn("open", written, "FIRED 0", "REMINDER 0", "REMINDER 1")
	act := api.AlertAction{AlertID: w.firing()[0].ID, Action: alerts.Acknowledge, Actor: "anna"}
	if _, err := w.db.Inbox().Act(t.Context(), tenant, act); err != nil {
		t.Fatal(err)
	}
	w.exec(`update alert set notified_at = now() - interval '1 day'`)
	w.pass()
	w.wantColumn("after the acknowledgement", written, "FIRED 0", "REMINDER 0", "REMINDER 1")
	w.empty()
	w.pass()
	w.wantColumn("it clears all the same", counts, "RESOLVED  0 c")
	w.wantColumn("without a word, as the rule says", written, "FIRED 0", "REMINDER 0", "REMINDER 1")
}

// TestResolvedCountIsHeld lets a user resolve a count that stays above its threshold.
func TestResolvedCountIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	act := api.AlertAction{AlertID: w.firing()[0].ID, Action: alerts.Resolve, Actor: "anna"}
	if _, err := w.db.Inbox().Act(t.Context(), tenant, act); err != nil {
		t.Fatal(err)
	}
	w.failIn("r", "d")
	w.pass()
	w.pass()
	w.wantColumn("while it stays above", counts, "RESOLVED  3 c")
	w.wantColumn("notified", written, "FIRED 0")
	w.empty()
	w.pass()
	w.failIn("r", "e", "f", "g")
	w.pass()
	w.wantColumn("once it was below", counts, "RESOLVED  3 c", "FIRING  3 g")
	w.wantColumn("notified", written, "FIRED 0", "FIRED 0")
}

// TestResolvedCountIsHeldForAsLongAsAPersonChose lets the value rise and fall meanwhile.
func TestResolvedCountIsHeldForAsLongAsAPersonChose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	resolve := func() api.BulkAction {
		t.Helper()
		act := api.BulkAction{
			ID: w.newID(), Action: alerts.Resolve, Actor: "ada", Filter: alerts.Filter{States: []alerts.State{alerts.Firing}}, HoldUntil: new(time.Now().Add(time.Hour)),
		}
		if done, err := w.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil || done.Changed != 1 {
			t.Fatalf("resolved %+v, %v", done, err)
		}
		return act
	}
	w.undo(resolve().ID)
	w.wantColumn("undone", `select state || ' ' || held || ' ' || coalesce(held_until::text, '-') from alert`, "FIRING false -")
	act := resolve()
	if shown, err := w.db.Inbox().Get(t.Context(), tenant, uuid.MustParse(w.column(`select alert_id::text from alert`)[0])); err != nil ||
		shown.HeldUntil == nil || shown.HeldUntil.Sub(*act.HoldUntil).Abs() > time.Millisecond {
		t.Errorf("shown as %+v, %v", shown, err)
	}
	other := act
	other.HoldUntil = nil
	if _, err := w.db.Inbox().ActOnMany(t.Context(), tenant, other); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the same action without a time: %v", err)
	}
	w.empty()
	w.pass()
	w.failIn("r", "d", "e", "f")
	w.pass()
	w.pass()
	w.wantColumn("until then", counts, "RESOLVED  3 c")
	w.exec(`update alert set held_until = now()`)
	w.pass()
	w.pass()
	w.wantColumn("after that", counts, "RESOLVED  3 c", "FIRING  3 f")
	w.wantColumn("notified", written, "FIRED 0", "FIRED 0")
}

// TestEditKeepsACountThatFires edits the condition of a rule whose alert is firing.
func TestEditKeepsACountThatFires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.counting(rules.Definition{WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	edited := rule.Definition
	edited.Scope.Routes = []string{"r", "s"}
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: edited}); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.pass()
	w.wantColumn("right after the edit", counts, "FIRING  3 c")
	w.exec(`update rule_state set armed_since_ns = armed_since_ns - 61000000000, former = '[]'`)
	w.exec(`update alert set fired_at = fired_at - interval '2 minutes'`)
	w.exec(`update checkpoint set rules_revision = rules_revision + 1`)
	w.empty()
	w.pass()
	w.wantColumn("a whole window later", counts, "RESOLVED  0 c")
	w.wantColumn("notified", written, "FIRED 0")
}

// TestCountHoldsWhatRunsForLong counts exchanges that run for longer than the window.
func TestCountHoldsWhatRunsForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{})
	at := w.ch.Now(t)
	for _, id := range []string{"a", "b", "c"} {
		w.ch.Insert(t, rules.Exchange{TenantID: tenant, StartTimeNS: at - 1800e9, EndTimeNS: &at, ExecutionID: id, Route: "r", Status: rules.Failed})
	}
	w.pass()
	w.wantColumn("alerts", counts, "FIRING  3 c")
}

func TestCountIgnoresWhatEndedBeforeArming(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failIn("r", "a", "b")
	w.counting(rules.Definition{})
	w.failIn("r", "c")
	w.pass()
	w.wantColumn("alerts", counts)
}

func TestDisablingDropsWhatNobodyHasHeardOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.counting(rules.Definition{ForDurationSeconds: 30})
	w.failIn("r", "a", "b", "c")
	w.pass()
	if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, rule.ID, false); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("alerts", counts)
}

func TestDatabaseHoldsOneOpenAlertPerGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{})
	w.failIn("r", "a", "b", "c")
	w.pass()
	_, err := w.conn.Exec(t.Context(), `insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message,
		group_key, count, start_time_ns, application, route, exchange)
		select gen_random_uuid(), tenant_id, rule_id, rule_version, severity, 'FIRING', title, message, group_key, count, start_time_ns,
		application, route, exchange from alert`)
	if err == nil || !strings.Contains(err.Error(), "alert_open_once") {
		t.Errorf("a second open alert gave %v", err)
	}
}

func webhooks(ids ...uuid.UUID) []uuid.UUID { return ids }
