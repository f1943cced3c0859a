package postgres_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/evaluator/window"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/rules"
)

// windowAlerts is a database with a window rule that has a webhook.
type windowAlerts struct {
	t             *testing.T
	db            *postgres.DB
	conn          *pgx.Conn
	rule, webhook uuid.UUID
	made          int
}

func newWindowAlerts(t *testing.T) *windowAlerts {
	t.Helper()
	url := pgtest.URL(t)
	box, err := seal.New(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), url, box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &windowAlerts{t: t, db: db, conn: pgtest.Conn(t, url)}
	hook, err := db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
		Name: "ops", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := db.Rules().Create(t.Context(), tenant, rules.Definition{
		Name: "window", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Warning, IntervalSeconds: 1, Threshold: 3, WindowSeconds: 60,
		GroupBy: rules.GroupByRoute, WebhookIDs: []uuid.UUID{hook.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rule, w.webhook = rule.ID, hook.ID
	return w
}

// change is a step of an alert, with a notification if a reason is given. An id of uuid.Nil creates
// a new alert.
func (w *windowAlerts) change(step alerts.Step, id uuid.UUID, group string, reason notify.Reason) window.Change {
	w.made++
	if id == uuid.Nil {
		id = alerts.WindowID(w.rule, group, uuid.Nil, int64(w.made)*1e6)
	}
	c := window.Change{Step: step, Instance: alerts.Instance{
		ID: id, TenantID: tenant, RuleID: w.rule, RuleVersion: 1, Severity: rules.Warning, Title: step.String(),
		Exchange: rules.Exchange{StartTimeNS: int64(w.made), Route: group, ErrorType: step.String() + "Exception"},
		Count:    &alerts.Count{Observed: int64(w.made), Threshold: 3, WindowSeconds: 60, Group: group},
	}}
	if reason != "" {
		c.Notifications = []notify.Notification{{
			ID: uuid.New(), TenantID: tenant, AlertID: id, RuleID: w.rule, WebhookID: w.webhook, Reason: reason, Status: notify.Pending,
		}}
	}
	return c
}

// apply makes steps, and checks how many alerts are new, have changed, and cause notifications.
func (w *windowAlerts) apply(inserted, changed, notified int, changes ...window.Change) []window.Change {
	w.t.Helper()
	done, err := postgres.ApplyChanges(w.t.Context(), w.db, changes)
	if err != nil || len(done.Inserted) != inserted || len(done.Changed) != changed || done.Notifications[w.webhook] != notified {
		w.t.Fatalf("%+v, %v; want %d new, %d changed, %d notified", done, err, inserted, changed, notified)
	}
	return changes
}

// want compares all alerts with their texts, and all notifications, which have a row in the outbox
// each.
func (w *windowAlerts) want(name string, rows []string, notifications ...string) {
	w.t.Helper()
	got := column(w.t, w.conn, `select state || case when held then ' held ' else ' ' end || group_key || ' ' || title || ' ' || signature || ' ' || (count->>'observed')
		from alert order by group_key, start_time_ns`)
	if diff := cmp.Diff(rows, got); diff != "" {
		w.t.Errorf("%s: alerts:\n%s", name, diff)
	}
	reasons := column(w.t, w.conn, `select n.reason || ' ' || n.generation from notification n join outbox o using (notification_id, webhook_id) order by n.xmin::text::bigint, n.reason, n.generation`)
	if diff := cmp.Diff(append([]string{}, notifications...), reasons); diff != "" {
		w.t.Errorf("%s: notifications:\n%s", name, diff)
	}
}

func column(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.AppendRows([]string{}, rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// open returns the open and held alerts of the rule, without instants.
func (w *windowAlerts) open() []alerts.OpenAlert {
	w.t.Helper()
	open, err := w.db.Evaluation(0).OpenAlerts(w.t.Context(), []uuid.UUID{w.rule, uuid.New()})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range open {
		if open[i].Since.IsZero() {
			w.t.Errorf("%+v does not say since when", open[i])
		}
		open[i].Since, open[i].NotifiedAt = time.Time{}, time.Time{}
	}
	slices.SortFunc(open, func(a, b alerts.OpenAlert) int { return strings.Compare(a.Group, b.Group) })
	return open
}

func (w *windowAlerts) act(id uuid.UUID, action alerts.Action) {
	w.t.Helper()
	if _, err := w.db.Inbox().Act(w.t.Context(), tenant, api.AlertAction{AlertID: id, Action: action, Actor: "p"}); err != nil {
		w.t.Fatal(err)
	}
}

// TestStepsOfLockedAlertsAreLeftOut has somebody keep an alert locked: the others take their steps at once, with their
// notifications, and the alert takes its own later.
func TestStepsOfLockedAlertsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	raised := w.apply(2, 0, 2, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired), w.change(alerts.Raise, uuid.Nil, "b", notify.ReasonFired))
	a, b := raised[0].Instance.ID, raised[1].Instance.ID
	tx, err := w.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from alert where alert_id = $1 for update`, a); err != nil {
		t.Fatal(err)
	}
	clearing := []window.Change{w.change(alerts.Clear, a, "a", notify.ReasonResolved), w.change(alerts.Clear, b, "b", notify.ReasonResolved)}
	done, err := postgres.ApplyChanges(t.Context(), w.db, clearing)
	if err != nil || !slices.Equal(done.Locked, []uuid.UUID{a}) || !slices.Equal(done.Changed, []uuid.UUID{b}) || done.Notifications[w.webhook] != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.apply(0, 1, 1, clearing...)
}

// TestStepsOfDeletedAlertsAreLeftOut has retention delete an alert after the evaluator has read it: nobody has locked it.
func TestStepsOfDeletedAlertsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	raised := w.apply(2, 0, 2, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired), w.change(alerts.Raise, uuid.Nil, "b", notify.ReasonFired))
	a, b := raised[0].Instance.ID, raised[1].Instance.ID
	for _, table := range []string{"outbox", "notification"} {
		if _, err := w.conn.Exec(t.Context(), `delete from `+table+` where notification_id in (select notification_id from notification where alert_id = $1)`, a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.conn.Exec(t.Context(), `delete from alert where alert_id = $1`, a); err != nil {
		t.Fatal(err)
	}
	done, err := postgres.ApplyChanges(t.Context(), w.db, []window.Change{w.change(alerts.Clear, a, "a", notify.ReasonResolved), w.change(alerts.Clear, b, "b", notify.ReasonResolved)})
	if err != nil || len(done.Locked) > 0 || !slices.Equal(done.Changed, []uuid.UUID{b}) {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestStepsOfWindowAlerts(t *testing.T) {
	w := newWindowAlerts(t)
	if _, err := w.conn.Exec(t.Context(), `update rule set re_notify_minutes = 5`); err != nil {
		t.Fatal(err)
	}
	// Many alerts and a pending one are one batch; what is raised twice is raised once.
	raised := w.apply(2, 0, 1, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired), w.change(alerts.Wait, uuid.Nil, "b", ""))
	a, b := raised[0].Instance.ID, raised[1].Instance.ID
	w.apply(0, 0, 0, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired), w.change(alerts.Raise, uuid.Nil, "b", notify.ReasonFired), raised[0])
	w.want("raised", []string{"FIRING a raise raiseException 1", "PENDING b wait waitException 2"}, "FIRED 0")
	open := []alerts.OpenAlert{
		{ID: a, RuleID: w.rule, Group: "a", NewestEndedNS: 1, NewestStartNS: 1, Open: alerts.Open{State: alerts.Firing}},
		{ID: b, RuleID: w.rule, Group: "b", NewestEndedNS: 2, NewestStartNS: 2, Open: alerts.Open{State: alerts.Pending}},
	}
	if diff := cmp.Diff(open, w.open()); diff != "" {
		t.Error(diff)
	}

	// Each step requires the state in which it begins.
	w.apply(0, 0, 0, w.change(alerts.Remind, b, "b", notify.ReasonReminder), w.change(alerts.Fire, a, "a", notify.ReasonFired),
		w.change(alerts.Drop, a, "a", ""), w.change(alerts.Clear, b, "b", notify.ReasonResolved), w.change(alerts.Release, a, "a", ""))
	w.want("void", []string{"FIRING a raise raiseException 1", "PENDING b wait waitException 2"}, "FIRED 0")

	w.apply(0, 2, 2, w.change(alerts.Remind, a, "a", notify.ReasonReminder), w.change(alerts.Fire, b, "b", notify.ReasonFired))
	w.apply(0, 1, 1, w.change(alerts.Remind, a, "a", notify.ReasonReminder))
	w.want("reminded and fired", []string{"FIRING a remind remindException 12", "FIRING b fire fireException 11"},
		"FIRED 0", "FIRED 0", "REMINDER 0", "REMINDER 1")
	// A reminder that waits until the next one is not sent.
	if got := column(t, w.conn, `select n.reason || coalesce(round(extract(epoch from o.expires_at - n.created_at))::text, '') from notification n join outbox o using (notification_id) order by n.reason, n.generation`); !slices.Equal(got, []string{"FIRED", "FIRED", "REMINDER300", "REMINDER300"}) {
		t.Errorf("the outbox holds %v", got)
	}
	if open := w.open(); open[0].Reminders != 2 || open[1].Reminders != 0 {
		t.Errorf("reminders %d and %d", open[0].Reminders, open[1].Reminders)
	}

	w.act(b, alerts.Acknowledge)
	w.apply(0, 2, 1, w.change(alerts.Clear, a, "a", notify.ReasonResolved), w.change(alerts.Clear, b, "b", ""))
	w.want("cleared", []string{"RESOLVED a remind remindException 13", "RESOLVED b fire fireException 14"},
		"FIRED 0", "FIRED 0", "REMINDER 0", "REMINDER 1", "RESOLVED 0")
	if open := w.open(); len(open) > 0 {
		t.Errorf("open %+v", open)
	}
	waiting := w.apply(1, 0, 0, w.change(alerts.Wait, uuid.Nil, "b", ""))
	w.apply(0, 1, 0, w.change(alerts.Drop, waiting[0].Instance.ID, "b", ""))
	w.want("dropped", []string{"RESOLVED a remind remindException 13", "RESOLVED b fire fireException 14"},
		"FIRED 0", "FIRED 0", "REMINDER 0", "REMINDER 1", "RESOLVED 0")
}

// TestResolvedWindowAlertsAreHeld lets a user resolve alerts, each by itself and several together.
func TestResolvedWindowAlertsAreHeld(t *testing.T) {
	w := newWindowAlerts(t)
	raised := w.apply(2, 0, 2, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired), w.change(alerts.Raise, uuid.Nil, "b", notify.ReasonFired))
	a, b := raised[0].Instance.ID, raised[1].Instance.ID
	bulk := api.BulkAction{ID: uuid.New(), Action: alerts.Resolve, Actor: "p", Filter: alerts.Filter{IDs: []uuid.UUID{b}}}
	w.act(a, alerts.Resolve)
	if done, err := w.db.Inbox().ActOnMany(t.Context(), tenant, bulk); err != nil || done.Changed != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	held := []string{"RESOLVED held a raise raiseException 1", "RESOLVED held b raise raiseException 2"}
	// An evaluation from before the user's action changes nothing, and nothing is raised.
	w.apply(0, 0, 0, w.change(alerts.Clear, a, "a", notify.ReasonResolved), w.change(alerts.Remind, b, "b", notify.ReasonReminder))
	w.apply(0, 0, 0, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired), w.change(alerts.Wait, uuid.Nil, "b", ""))
	w.want("held", held, "FIRED 0", "FIRED 0")
	for _, o := range w.open() {
		if !o.Held || o.State != alerts.Resolved {
			t.Errorf("%+v is not held", o)
		}
	}

	// After the undo it is open again, and is resolved as if nothing had happened.
	if done, err := w.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: bulk.ID, Actor: "p"}); err != nil || done.Restored != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	w.want("undone", []string{held[0], "FIRING b raise raiseException 2"}, "FIRED 0", "FIRED 0")
	w.apply(0, 1, 1, w.change(alerts.Clear, b, "b", notify.ReasonResolved))

	// After the release, the group may be raised again.
	w.apply(0, 1, 0, w.change(alerts.Release, a, "a", ""))
	w.apply(0, 0, 0, w.change(alerts.Release, a, "a", ""))
	again := w.apply(1, 0, 1, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired))[0]
	if open := w.open(); len(open) != 1 || open[0].ID != again.Instance.ID || open[0].Held {
		t.Errorf("open %+v", open)
	}
	// A hold is not possible together with an open alert.
	w.act(again.Instance.ID, alerts.Resolve)
	w.act(again.Instance.ID, alerts.Resolve)
	if open := w.open(); len(open) != 1 || !open[0].Held {
		t.Errorf("open %+v", open)
	}
}

// TestStormOfGroupsIsFewStatements makes 1,000 groups fire and clear.
func TestStormOfGroupsIsFewStatements(t *testing.T) {
	w := newWindowAlerts(t)
	raise, end := make([]window.Change, 1000), make([]window.Change, 1000)
	for i := range raise {
		group := fmt.Sprintf("%04d", i)
		raise[i] = w.change(alerts.Raise, uuid.Nil, group, notify.ReasonFired)
		end[i] = w.change(alerts.Clear, raise[i].Instance.ID, group, notify.ReasonResolved)
	}
	for n, changes := range [][]window.Change{raise, end} {
		begun := time.Now()
		done, err := postgres.ApplyChanges(t.Context(), w.db, changes)
		if err != nil || len(done.Inserted)+len(done.Changed) != 1000 || done.Notifications[w.webhook] != 1000 || done.Statements > 8 {
			t.Fatalf("%d new, %d changed, %v by %d statements, %v", len(done.Inserted), len(done.Changed), done.Notifications, done.Statements, err)
		}
		t.Logf("storm %d took %v", n, time.Since(begun))
	}
	if n := one[int](t, w.conn, `select count(*)::int from outbox`); n != 2000 {
		t.Errorf("%d messages to send", n)
	}
}

// TestStepsForADeletedWebhookWriteNothing deletes the rule's webhook meanwhile.
func TestStepsForADeletedWebhookWriteNothing(t *testing.T) {
	w := newWindowAlerts(t)
	if _, err := w.conn.Exec(t.Context(), `update webhook set deleted_at = now()`); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.ApplyChanges(t.Context(), w.db, []window.Change{w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired)})
	if err == nil || !strings.Contains(err.Error(), "a webhook of the rule does not exist") {
		t.Errorf("%v", err)
	}
	w.want("nothing", []string{})
}
