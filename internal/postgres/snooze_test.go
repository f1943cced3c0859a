package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/rules"
)

// napping has one alert, of which a webhook was notified.
type napping struct {
	*persist
	t     *testing.T
	db    *postgres.DB
	alert uuid.UUID
}

func newNapping(t *testing.T) *napping {
	t.Helper()
	p := newPersist(t)
	n := &napping{persist: p, t: t, db: p.opened(t)}
	b := p.page()
	b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
	p.write(t, b)
	n.alert = b.Instances[0].ID
	return n
}

// snooze snoozes the alert for a time; 0 cancels that.
func (n *napping) snooze(d time.Duration) (alerts.Instance, error) {
	z := api.Snooze{AlertID: n.alert, Actor: "ada@x"}
	if d != 0 {
		z.Until = new(time.Now().Add(d))
	}
	return n.db.Inbox().Snooze(n.t.Context(), tenant, z)
}

func (n *napping) snoozed() {
	n.t.Helper()
	if a, err := n.snooze(time.Hour); err != nil || a.SnoozedUntil == nil || a.SnoozedBy != "ada@x" || a.SnoozedAt == nil || time.Since(*a.SnoozedAt) > time.Minute {
		n.t.Fatalf("%+v, %v", a, err)
	}
}

func (n *napping) act(action alerts.Action) {
	n.t.Helper()
	if _, err := n.db.Inbox().Act(n.t.Context(), tenant, api.AlertAction{AlertID: n.alert, Action: action, Actor: "ada@x"}); err != nil {
		n.t.Fatal(err)
	}
}

// remind ends the snoozes that are over after a time, and returns how many messages are sent and
// suppressed.
func (n *napping) remind(ctx context.Context, after time.Duration) (sent, suppressed int) {
	n.t.Helper()
	due, suppressed, err := n.db.Outbox().Remind(ctx, new(time.Now().Add(after)))
	if err != nil {
		n.t.Fatal(err)
	}
	for webhook, count := range due {
		if webhook != n.webhook {
			n.t.Errorf("%s is reminded", webhook)
		}
		sent += count
	}
	return sent, suppressed
}

const reminders = `select n.notification_id::text from notification n where n.reason = 'SNOOZE_ENDED' order by n.generation`

func (n *napping) id(generation int) string {
	return notify.ID(n.alert, n.webhook, notify.ReasonSnoozeEnded, generation).String()
}

// over is so long that each snooze of these tests is over, by any machine's clock.
const over = 3 * time.Hour

func TestASnoozeEndsInOneReminder(t *testing.T) {
	t.Parallel()
	n := newNapping(t)
	n.snoozed()
	if sent, _ := n.remind(t.Context(), 0); sent != 0 {
		t.Errorf("%d reminders before it is over", sent)
	}
	if due, _, err := n.db.Outbox().Remind(t.Context(), nil); err != nil || len(due) != 0 {
		t.Errorf("by Postgres's clock: %v, %v", due, err)
	}

	// Many replicas look at once.
	var wait sync.WaitGroup
	sent := make([]int, 6)
	for i := range sent {
		wait.Go(func() { sent[i], _ = n.remind(t.Context(), over) })
	}
	wait.Wait()
	slices.Sort(sent)
	if want := []int{0, 0, 0, 0, 0, 1}; !slices.Equal(sent, want) {
		t.Errorf("the replicas have reminded %v times", sent)
	}
	if got := column(t, n.conn, reminders); !slices.Equal(got, []string{n.id(0)}) {
		t.Errorf("reminders %v, want the derived id %s", got, n.id(0))
	}
	if a, err := n.db.Inbox().Get(t.Context(), tenant, n.alert); err != nil || a.SnoozedUntil != nil || a.State != alerts.Firing {
		t.Errorf("%+v, %v", a, err)
	}

	// The next snooze has a reminder of its own, and an acknowledged alert has a reminder as well.
	n.snoozed()
	n.act(alerts.Acknowledge)
	if sent, _ := n.remind(t.Context(), over); sent != 1 {
		t.Errorf("%d reminders of the second snooze", sent)
	}
	if got := column(t, n.conn, reminders); !slices.Equal(got, []string{n.id(0), n.id(1)}) {
		t.Errorf("reminders %v", got)
	}
	// They go out in order, after the earlier notifications of the webhook.
	if got := column(t, n.conn, `select m.reason || ' ' || m.generation || case when o.after_id is null then ' due' else ' waits' end
		from outbox o join notification m using (notification_id) order by m.created_at`); !slices.Equal(got,
		[]string{"FIRED 0 due", "SNOOZE_ENDED 0 waits", "SNOOZE_ENDED 1 waits"}) {
		t.Errorf("the outbox holds %v", got)
	}
}

// TestTheEndOfASnoozeKeepsTheUndo acknowledges a snoozed alert by mistake, and undoes that after the reminder.
func TestTheEndOfASnoozeKeepsTheUndo(t *testing.T) {
	t.Parallel()
	n := newNapping(t)
	n.snoozed()
	id := uuid.New()
	act := api.BulkAction{ID: id, Action: alerts.Acknowledge, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{n.alert}}}
	if _, err := n.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil {
		t.Fatal(err)
	}
	if sent, _ := n.remind(t.Context(), over); sent != 1 {
		t.Errorf("%d reminders", sent)
	}
	if _, err := n.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	if a, err := n.db.Inbox().Get(t.Context(), tenant, n.alert); err != nil || a.State != alerts.Firing {
		t.Errorf("undone after the reminder: %+v, %v", a, err)
	}
}

// TestTheEndOfASnoozeKeepsTheUndoOfAnAssignment takes a snoozed alert by mistake, and undoes that after the reminder.
func TestTheEndOfASnoozeKeepsTheUndoOfAnAssignment(t *testing.T) {
	t.Parallel()
	n := newNapping(t)
	n.snoozed()
	take := api.BulkAssignment{ID: uuid.New(), Actor: "ada@x", Assignee: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{n.alert}}}
	assignMany(t, n.db.Inbox(), take)
	if sent, _ := n.remind(t.Context(), over); sent != 1 {
		t.Errorf("%d reminders", sent)
	}
	undone, err := n.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: take.ID, Actor: "ada@x"})
	if err != nil || undone != (api.UndoCounts{Restored: 1}) || handlers(t, n.conn) != "-" {
		t.Errorf("%+v, %v; the alert is assigned to %s", undone, err, handlers(t, n.conn))
	}
}

func TestAReminderIsVoidWhereNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(n *napping)
		sent      int
		silenced  int
	}{
		"nothing":  {func(*napping) {}, 1, 0},
		"resolved": {func(n *napping) { n.act(alerts.Resolve) }, 0, 0},
		"resolved by the engine": {func(n *napping) {
			n.exec(n.t, `update alert set state = 'RESOLVED', resolved_at = now() where alert_id = $1`, n.alert)
		}, 0, 0},
		"cancelled": {func(n *napping) {
			if a, err := n.snooze(0); err != nil || a.SnoozedUntil != nil || a.SnoozedAt != nil {
				n.t.Errorf("%+v, %v", a, err)
			}
		}, 0, 0},
		"moved": {func(n *napping) {
			if _, err := n.snooze(24 * time.Hour); err != nil {
				n.t.Error(err)
			}
		}, 0, 0},
		"resolved and reopened": {func(n *napping) {
			id := uuid.New()
			act := api.BulkAction{ID: id, Action: alerts.Resolve, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{n.alert}}}
			if _, err := n.db.Inbox().ActOnMany(n.t.Context(), tenant, act); err != nil {
				n.t.Error(err)
			}
			if _, err := n.db.Inbox().Undo(n.t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
				n.t.Error(err)
			}
		}, 1, 0},
		"the webhook is deleted": {func(n *napping) {
			n.exec(n.t, `update webhook set deleted_at = now(), enabled = false where webhook_id = $1`, n.webhook)
		}, 0, 0},
		"the webhook is disabled": {func(n *napping) {
			n.exec(n.t, `update webhook set enabled = false where webhook_id = $1`, n.webhook)
		}, 1, 0},
		"silenced": {func(n *napping) {
			if _, err := n.db.Silences().Create(n.t.Context(), tenant, "ada", silence("s", severities(rules.Critical))); err != nil {
				n.t.Error(err)
			}
		}, 0, 1},
		"retention": {func(n *napping) { n.exec(n.t, `delete from alert where alert_id = $1`, n.alert) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNapping(t)
			n.snoozed()
			c.meanwhile(n)
			if sent, silenced := n.remind(t.Context(), over); sent != c.sent || silenced != c.silenced {
				t.Errorf("%d sent, %d suppressed; want %d and %d", sent, silenced, c.sent, c.silenced)
			}
			if sent, silenced := n.remind(t.Context(), over); sent+silenced != 0 {
				t.Errorf("%d sent, %d suppressed once more", sent, silenced)
			}
			if got := len(column(t, n.conn, reminders)); got != c.sent+c.silenced {
				t.Errorf("%d reminders are stored", got)
			}
		})
	}
}

// A webhook that was not notified of an alert, because it was silenced, gets the reminder
// nevertheless.
func TestASnoozeEndsAfterASilence(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	n := &napping{persist: p, t: t, db: p.opened(t)}
	made, err := n.db.Silences().Create(t.Context(), tenant, "ada", silence("s", severities(rules.Critical)))
	if err != nil {
		t.Fatal(err)
	}
	b := p.page()
	b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
	if got := p.write(t, b); got.Suppressed != 1 {
		t.Fatalf("%d suppressed", got.Suppressed)
	}
	n.alert = b.Instances[0].ID
	n.snoozed()
	if _, err := n.db.Silences().End(t.Context(), tenant, "ada", made.ID); err != nil {
		t.Fatal(err)
	}
	if sent, suppressed := n.remind(t.Context(), over); sent != 1 || suppressed != 0 {
		t.Errorf("%d sent, %d suppressed", sent, suppressed)
	}
}

// TestActionBeforeTheReminderPreventsIt lets a replica wait for a user who acts at the instant at which
// the snooze ends, and another one die while it waits.
func TestActionBeforeTheReminderPreventsIt(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]string{
		"resolved":         `update alert set state = 'RESOLVED', resolved_at = now()`,
		"cancelled":        `delete from alert_snooze`,
		"moved":            `update alert_snooze set until = now() + interval '1 day'`,
		"the process dies": ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, n := t.Context(), newNapping(t)
			n.snoozed()
			tx, err := n.conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			// The table, because a locked alert is skipped.
			if _, err := tx.Exec(ctx, `lock table alert in exclusive mode`); err != nil {
				t.Fatal(err)
			}
			reminded := make(chan error, 1)
			go func() {
				due, _, err := n.db.Outbox().Remind(ctx, new(time.Now().Add(over)))
				if len(due) != 0 {
					t.Errorf("it reminds %v", due)
				}
				reminded <- err
			}()
			n.waits(t)
			want := 0
			if meanwhile == "" {
				want = 1
				killer := pgtest.Conn(t, n.url)
				for one[int](t, killer, `select count(pg_terminate_backend(pid)) from pg_stat_activity
					where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`) == 0 {
					n.waits(t) // what waited before waited for something else, and only briefly
				}
				if err := <-reminded; err == nil {
					t.Error("the process that died has no error")
				}
			} else if _, err := tx.Exec(ctx, meanwhile); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if meanwhile != "" {
				if err := <-reminded; err != nil {
					t.Error(err)
				}
			}
			if sent, _ := n.remind(ctx, over); sent != want {
				t.Errorf("the next one reminds %d times, want %d", sent, want)
			}
		})
	}
}

func TestWhatCanBeSnoozed(t *testing.T) {
	t.Parallel()
	n := newNapping(t)
	for name, d := range map[string]time.Duration{"the past": -time.Minute, "too long": 31 * 24 * time.Hour} {
		if _, err := n.snooze(d); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "30 days") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := n.db.Inbox().Snooze(t.Context(), "another", api.Snooze{AlertID: n.alert, Until: new(time.Now().Add(time.Hour))}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("by another tenant: %v", err)
	}
	yes, no := true, false
	inbox := n.db.Inbox()
	count := func(f alerts.Filter) int {
		t.Helper()
		f.States = alerts.States()
		page, err := inbox.List(t.Context(), tenant, alerts.Query{Filter: f, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Alerts)
	}
	if s, o := count(alerts.Filter{Snoozed: &yes}), count(alerts.Filter{Snoozed: &no}); s != 0 || o != 1 {
		t.Errorf("before: %d snoozed, %d others", s, o)
	}
	ctx := access.As(t.Context(), access.Actor{Kind: "user", Name: "ada@x", Operation: "snoozeAlert", Tenant: tenant})
	if _, err := inbox.Snooze(ctx, tenant, api.Snooze{AlertID: n.alert, Until: new(time.Now().Add(time.Hour)), Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	if s, o := count(alerts.Filter{Snoozed: &yes}), count(alerts.Filter{Snoozed: &no}); s != 1 || o != 0 {
		t.Errorf("then: %d snoozed, %d others", s, o)
	}
	if _, err := inbox.Snooze(ctx, tenant, api.Snooze{AlertID: n.alert, Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	if got := column(t, n.conn, `select (before->>'snoozedUntil' is not null) || ' ' || (after->>'snoozedUntil' is not null) from audit
		where object_kind = 'alert' and action = 'update' and actor = 'ada@x' order by audit_id`); !slices.Equal(got, []string{"false true", "true false"}) {
		t.Errorf("the audit log has %v", got)
	}
	n.act(alerts.Resolve)
	if _, err := n.snooze(time.Hour); fault.KindOf(err) != fault.Conflict {
		t.Errorf("when it is resolved: %v", err)
	}
}

// A window rule sends no reminders of a snoozed alert, and counts the interval from the end of the
// snooze on.
func TestAWindowRuleDoesNotRemindOfWhatIsSnoozed(t *testing.T) {
	w := newWindowAlerts(t)
	a := w.apply(1, 0, 1, w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired))[0].Instance.ID
	snooze := api.Snooze{AlertID: a, Until: new(time.Now().Add(time.Hour)), Actor: "p"}
	if _, err := w.db.Inbox().Snooze(t.Context(), tenant, snooze); err != nil {
		t.Fatal(err)
	}
	w.apply(0, 0, 0, w.change(alerts.Remind, a, "a", notify.ReasonReminder))
	if _, err := w.conn.Exec(t.Context(), `update alert set notified_at = now() - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	if due, _, err := w.db.Outbox().Remind(t.Context(), new(time.Now().Add(over))); err != nil || len(due) != 1 {
		t.Fatalf("%v, %v", due, err)
	}
	if !one[bool](t, w.conn, `select notified_at > now() - interval '1 hour' from alert`) {
		t.Error("its next reminder follows at once")
	}
	w.apply(0, 1, 1, w.change(alerts.Remind, a, "a", notify.ReasonReminder))
}

// TestSnoozesThatCannotEndHoldUpNoOther has more failing snoozes than are handled at once.
func TestSnoozesThatCannotEndHoldUpNoOther(t *testing.T) {
	t.Parallel()
	n := newNapping(t)
	if failing := len(n.write(t, n.page()).Inserted); failing < 1000 {
		t.Fatalf("%d alerts are fewer than are looked for at once", failing)
	}
	n.exec(t, `insert into alert_snooze (alert_id, tenant_id, until, snoozed_by, snoozed_at)
		select alert_id, tenant_id, now() + case alert_id when $1 then interval '2 minutes' else interval '1 minute' end, 'ada@x', now() from alert`, n.alert)
	n.exec(t, `create function poison() returns trigger language plpgsql as $$ begin raise 'poison'; end $$`)
	n.exec(t, fmt.Sprintf(`create trigger poison before delete on alert_snooze for each row when (old.alert_id <> '%s') execute function poison()`, n.alert))
	due, _, err := n.db.Outbox().Remind(t.Context(), new(time.Now().Add(5*time.Minute)))
	if err == nil || due[n.webhook] != 1 {
		t.Errorf("%v, %v; want one reminder, and why there are no others", due, err)
	}
}
