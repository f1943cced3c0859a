package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/rules"
)

// quiet is an alert whose webhook has quiet hours at present, and has chosen all events.
type quiet struct {
	*napping
	// ends is the end of the quiet hours.
	ends time.Time
	made evaluator.Batch
}

// newQuiet raises an alert of a severity that the webhook's quiet hours cover, from an hour ago
// until about an hour from now.
func newQuiet(t *testing.T, severity rules.Severity) *quiet {
	t.Helper()
	p := newPersist(t)
	n := &quiet{napping: &napping{persist: p, t: t, db: p.opened(t)}}
	n.exec(t, `update webhook set events = '{ACKNOWLEDGED,RESOLVED,REOPENED}'`)
	n.hours(-time.Hour, time.Hour)
	n.raise(severity)
	return n
}

// raise raises an alert.
func (n *quiet) raise(severity rules.Severity) {
	n.t.Helper()
	n.made = n.page()
	n.made.Instances, n.made.Notifications = n.made.Instances[:1], n.made.Notifications[:1]
	n.made.Instances[0].Severity = severity
	n.write(n.t, n.made)
	n.alert = n.made.Instances[0].ID
}

// hours sets quiet hours between two times from now, in whole minutes.
func (n *quiet) hours(from, to time.Duration) {
	n.t.Helper()
	now := one[time.Time](n.t, n.conn, `select now()`).UTC().Truncate(time.Minute)
	n.ends = now.Add(to)
	hours := notify.QuietHours{{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(from).Format("15:04"), To: n.ends.Format("15:04")}}
	if err := hours.Check(); err != nil {
		n.t.Fatal(err)
	}
	text, err := json.Marshal(hours)
	if err != nil {
		n.t.Fatal(err)
	}
	n.exec(n.t, `update webhook set quiet_hours = $1`, text)
}

// end ends quiet hours as of the given time after their present end, and returns how many messages
// are sent.
func (n *quiet) end(after time.Duration) int {
	n.t.Helper()
	due, err := n.db.Outbox().EndQuiet(n.t.Context(), new(n.ends.Add(after)))
	if err != nil {
		n.t.Fatal(err)
	}
	return due[n.webhook]
}

// stored returns the state of the messages: held, due, behind another one, or the status.
func (n *quiet) stored() []string {
	n.t.Helper()
	return column(n.t, n.conn, `select n.reason || ' ' || case when s.status <> 'PENDING' then s.status when o.quiet_until is not null then 'held'
			when o.after_id is not null then 'behind' when o.ready_at <= now() and o.due_at <= now() then 'due' else 'later' end
		from notification n join notification_status s using (notification_id) left join outbox o using (notification_id)
		order by n.created_at, n.notification_id`)
}

func (n *quiet) want(what string, want ...string) {
	n.t.Helper()
	if got := n.stored(); !slices.Equal(got, want) {
		n.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestQuietHoursHoldWhatIsNotCritical(t *testing.T) {
	t.Parallel()
	for severity, want := range map[rules.Severity]string{rules.Critical: "FIRED due", rules.Warning: "FIRED held", rules.Info: "FIRED held"} {
		n := newQuiet(t, severity)
		n.want(string(severity), want)
		list, err := n.db.Record(nil).OfAlert(t.Context(), tenant, n.alert)
		if err != nil || len(list) != 1 || list[0].Status != notify.Pending {
			t.Fatalf("%+v, %v", list, err)
		}
		if held := list[0].QuietUntil != nil && list[0].QuietUntil.Equal(n.ends) && list[0].NextAttemptAt == nil; held != (severity != rules.Critical) {
			t.Errorf("%s: shown as held until %v, next attempt at %v", severity, list[0].QuietUntil, list[0].NextAttemptAt)
		}
	}
	for name, change := range map[string]func(n *quiet){
		"they begin later":    func(n *quiet) { n.hours(2*time.Minute, time.Hour) },
		"they are over":       func(n *quiet) { n.hours(-time.Hour, 0) },
		"they cannot be read": func(n *quiet) { n.exec(t, `update webhook set quiet_hours = '[{"from": 1}]'`) },
		"no zone that is known": func(n *quiet) {
			n.exec(t, `update webhook set quiet_hours = jsonb_set(quiet_hours, '{0,timeZone}', '"Nowhere"')`)
		},
		"there are none": func(n *quiet) { n.exec(t, `update webhook set quiet_hours = null`) },
	} {
		n := newQuiet(t, rules.Critical)
		change(n)
		n.raise(rules.Warning)
		n.want(name, "FIRED due", "FIRED due")
	}
}

// TestTheEndOfQuietHoursKeepsTheUndo acknowledges an alert by mistake shortly before quiet hours end, and undoes that after
// its message was released.
func TestTheEndOfQuietHoursKeepsTheUndo(t *testing.T) {
	t.Parallel()
	n := newQuiet(t, rules.Warning)
	id := uuid.New()
	act := api.BulkAction{ID: id, Action: alerts.Acknowledge, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{n.alert}}}
	if _, err := n.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil {
		t.Fatal(err)
	}
	n.exec(t, `update alert set acknowledged_at = $1`, n.ends)
	if sent := n.end(0); sent == 0 {
		t.Error("no message about the alert is released")
	}
	if _, err := n.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	if state := one[string](t, n.conn, `select state from alert`); state != "FIRING" {
		t.Errorf("undone after the end of the quiet hours, the alert is %s", state)
	}
}

func TestWhatQuietHoursHeldIsSentWhereItIsOfUse(t *testing.T) {
	t.Parallel()
	long := func(n *quiet) { // what has happened can no longer be undone at the end
		n.exec(n.t, `update alert set acknowledged_at = now() where acknowledged_at is not null`)
	}
	for name, c := range map[string]struct {
		meanwhile func(n *quiet)
		want      []string
	}{
		"nothing": {func(*quiet) {}, []string{"FIRED due"}},
		"acknowledged": {func(n *quiet) {
			n.act(alerts.Acknowledge)
			long(n)
		}, []string{"FIRED DISCARDED", "ACKNOWLEDGED DISCARDED"}},
		"acknowledged just before": {func(n *quiet) {
			n.act(alerts.Acknowledge)
			n.exec(n.t, `update alert set acknowledged_at = $1`, n.ends)
		}, []string{"FIRED due", "ACKNOWLEDGED behind"}},
		"resolved":               {func(n *quiet) { n.act(alerts.Resolve) }, []string{"FIRED DISCARDED", "RESOLVED DISCARDED"}},
		"resolved by the engine": {func(n *quiet) { n.exec(n.t, `update alert set state = 'RESOLVED', resolved_at = now()`) }, []string{"FIRED DISCARDED"}},
		"resolved and opened again": {func(n *quiet) {
			id := uuid.New()
			act := api.BulkAction{ID: id, Action: alerts.Resolve, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{n.alert}}}
			if _, err := n.db.Inbox().ActOnMany(n.t.Context(), tenant, act); err != nil {
				n.t.Error(err)
			}
			if _, err := n.db.Inbox().Undo(n.t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
				n.t.Error(err)
			}
		}, []string{"FIRED due", "RESOLVED behind", "REOPENED behind"}},
		"snoozed until later": {func(n *quiet) { _, _ = n.snooze(5 * time.Hour) }, []string{"FIRED DISCARDED"}},
		"snoozed just before": {func(n *quiet) {
			_, _ = n.snooze(5 * time.Hour)
			n.exec(n.t, `update alert_snooze set snoozed_since = $1`, n.ends) // it can still be undone, and then no reminder is sent
		}, []string{"FIRED due"}},
		"reminded of twice": {func(n *quiet) {
			for range 2 {
				n.exec(n.t, `delete from alert_snooze`)
				n.snoozed()
				n.remind(n.t.Context(), over)
			}
		}, []string{"FIRED due", "SNOOZE_ENDED DISCARDED", "SNOOZE_ENDED DISCARDED"}},
		"acknowledged, and snoozed until within them": {func(n *quiet) {
			n.delivered()
			n.act(alerts.Acknowledge)
			long(n)
			n.snoozed()
			n.remind(n.t.Context(), over)
		}, []string{"FIRED DELIVERED", "ACKNOWLEDGED due", "SNOOZE_ENDED behind"}},
		"snoozed until within them, and acknowledged then": {func(n *quiet) {
			n.delivered()
			n.snoozed()
			n.remind(n.t.Context(), over)
			n.act(alerts.Acknowledge)
			long(n)
		}, []string{"FIRED DELIVERED", "SNOOZE_ENDED DISCARDED", "ACKNOWLEDGED due"}},
		"sent at once by a person": {func(n *quiet) { n.retry("FIRED") }, []string{"FIRED due"}},
		"and resolved then":        {func(n *quiet) { n.retry("FIRED"); n.act(alerts.Resolve) }, []string{"FIRED due", "RESOLVED behind"}},
		"discarded by a person": {func(n *quiet) {
			if err := n.db.Record(nil).Discard(n.t.Context(), tenant, n.id("FIRED"), "ada@x"); err != nil {
				n.t.Error(err)
			}
			n.act(alerts.Resolve)
		}, []string{"FIRED DISCARDED", "RESOLVED DISCARDED"}},
		"delivered before, and resolved": {func(n *quiet) { n.delivered(); n.act(alerts.Resolve) }, []string{"FIRED DELIVERED", "RESOLVED due"}},
		"delivered before, and handled": {func(n *quiet) {
			n.delivered()
			n.act(alerts.Acknowledge)
			n.act(alerts.Resolve)
		}, []string{"FIRED DELIVERED", "ACKNOWLEDGED due", "RESOLVED behind"}},
		"the webhook is deleted": {func(n *quiet) {
			n.exec(n.t, `delete from rule_webhook`)
			if err := n.db.Webhooks().Delete(n.t.Context(), tenant, n.webhook); err != nil {
				n.t.Error(err)
			}
		}, []string{"FIRED DISCARDED"}},
		"the alert is deleted": {func(n *quiet) { n.exec(n.t, `delete from alert`) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newQuiet(t, rules.Warning)
			c.meanwhile(n)
			for _, state := range n.stored() {
				if state == "FIRED due" && name != "sent at once by a person" && name != "and resolved then" {
					t.Error("it is sent within the quiet hours")
				}
			}
			if name == "the alert is deleted" {
				n.end(time.Minute) // and nothing fails
				return
			}
			n.end(-time.Second)
			n.end(time.Minute)
			n.want("when they are over", c.want...)
			if name == "acknowledged" {
				n.act(alerts.Resolve) // the webhook was not notified of the alert, and is not notified of its end
			}
			if sent := n.end(time.Minute); sent != 0 {
				t.Errorf("%d messages are sent once more", sent)
			}
			n.want("and stays", c.want...)
			if n := one[int](t, n.conn, `select count(*) from settlement where status = 'DISCARDED' and discarded_by = 'Tocsin' and error = ''`); n != 0 {
				t.Errorf("%d messages have ended without a reason", n)
			}
		})
	}
}

// id returns the first message of the alert with a reason.
func (n *quiet) id(reason notify.Reason) uuid.UUID {
	return one[uuid.UUID](n.t, n.conn, `select notification_id from notification where alert_id = $1 and reason = $2 order by generation limit 1`, n.alert, reason)
}

func (n *quiet) retry(reason notify.Reason) {
	n.t.Helper()
	if _, err := n.db.Record(nil).Retry(n.t.Context(), tenant, n.id(reason), "ada@x"); err != nil {
		n.t.Error(err)
	}
}

// delivered makes the alert's first message delivered before the quiet hours began.
func (n *quiet) delivered() {
	n.t.Helper()
	n.exec(n.t, `delete from outbox`)
	n.exec(n.t, `insert into settlement (notification_id, tenant_id, status) select notification_id, tenant_id, 'DELIVERED' from notification`)
}

// TestAnEditOfQuietHoursMovesWhatIsHeld changes quiet hours to end earlier and later, and removes
// them.
func TestAnEditOfQuietHoursMovesWhatIsHeld(t *testing.T) {
	t.Parallel()
	n := newQuiet(t, rules.Warning)
	n.delivered()
	n.act(alerts.Resolve) // which does not age while it is held
	expires := func() time.Duration {
		return one[time.Duration](t, n.conn, `select expires_at - quiet_until from outbox where quiet_until is not null`)
	}
	was := expires()
	first := n.ends
	n.hours(-time.Hour, 3*time.Hour)
	if due, err := n.db.Outbox().EndQuiet(t.Context(), new(first.Add(-time.Minute))); err != nil || len(due) != 0 {
		t.Fatalf("%v, %v", due, err)
	}
	if due, err := n.db.Outbox().EndQuiet(t.Context(), new(first.Add(time.Minute))); err != nil || len(due) != 0 {
		t.Errorf("it is sent when they would have been over: %v, %v", due, err)
	}
	if at := one[time.Time](t, n.conn, `select quiet_until from outbox where quiet_until is not null`); !at.Equal(n.ends) || expires() != was {
		t.Errorf("held until %v, want %v; of use for %v, want %v", at, n.ends, expires(), was)
	}
	n.hours(-2*time.Hour, -time.Hour)
	if due, err := n.db.Outbox().EndQuiet(t.Context(), nil); err != nil || due[n.webhook] != 1 {
		t.Errorf("after they were removed %v is sent, %v", due, err)
	}
	if left := one[time.Duration](t, n.conn, `select expires_at - now() from outbox`); left < was-time.Minute {
		t.Errorf("of use for %v from then on, want %v", left, was)
	}
}

// TestQuietHoursEndOnce has replicas that look at once, and one that dies while it waits for the
// message.
func TestQuietHoursEndOnce(t *testing.T) {
	t.Parallel()
	n := newQuiet(t, rules.Warning)
	tx, err := n.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from outbox for update`); err != nil {
		t.Fatal(err)
	}
	dying, dies := context.WithCancel(t.Context())
	died := make(chan error, 1)
	go func() {
		_, err := n.db.Outbox().EndQuiet(dying, new(n.ends.Add(time.Minute)))
		died <- err
	}()
	n.waits(t)
	dies()
	if err := <-died; err == nil {
		t.Error("the replica that died has succeeded")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.want("after the death", "FIRED held")
	var wait sync.WaitGroup
	sent := make([]int, 6)
	for i := range sent {
		wait.Go(func() { sent[i] = n.end(time.Minute) })
	}
	wait.Wait()
	slices.Sort(sent)
	if want := []int{0, 0, 0, 0, 0, 1}; !slices.Equal(sent, want) {
		t.Errorf("the replicas have sent %v", sent)
	}
	n.want("in the end", "FIRED due")
}

// TestManyAlertsAreHeld has more alerts to release than share a transaction, one of which cannot be
// released.
func TestManyAlertsAreHeld(t *testing.T) {
	t.Parallel()
	n := newQuiet(t, rules.Warning)
	b := n.page()
	for i := range b.Instances {
		b.Instances[i].Severity = rules.Warning
	}
	done := n.write(t, b)
	if len(done.Notifications) != 0 {
		t.Errorf("%v are to be sent", done.Notifications)
	}
	n.exec(t, fmt.Sprintf(`create function poison() returns trigger language plpgsql as $$ begin
		if new.notification_id = '%s' then raise 'poison'; end if; return new; end $$`, n.id(notify.ReasonFired)))
	n.exec(t, `create trigger poison before update on outbox for each row execute function poison()`)
	due, err := n.db.Outbox().EndQuiet(t.Context(), new(n.ends.Add(time.Minute)))
	if err == nil || due[n.webhook] != len(b.Instances) {
		t.Errorf("%v, %v; want %d and the one that cannot", due, err, len(b.Instances))
	}
	if held := one[int](t, n.conn, `select count(*) from outbox where quiet_until is not null`); held != 1 {
		t.Errorf("%d are held", held)
	}
}

// TestStepsWaitForTheEndOfQuietHours has an escalating alert whose first message is held.
func TestStepsWaitForTheEndOfQuietHours(t *testing.T) {
	t.Parallel()
	for severity, waits := range map[rules.Severity]bool{rules.Critical: false, rules.Warning: true} {
		e := newEscalating(t)
		n := &quiet{napping: e.napping}
		n.hours(-time.Hour, time.Hour)
		e.exec(t, `update webhook set quiet_hours = null where webhook_id in ($1, $2)`, e.pager, e.boss)
		b := e.routed()
		b.Instances[0].Severity = severity
		e.act(alerts.Acknowledge) // the existing one
		e.exec(t, `delete from alert_escalation`)
		e.write(t, b)
		if !waits {
			e.want("critical", 6, 1, 0, 0)
			continue
		}
		e.want("in the night", 6, 0, 0, 0)
		e.want("and later", 16, 0, 0, 0)
		minutes := int(time.Until(n.ends).Minutes())
		e.want("before they are over", minutes-1, 0, 0, 0)
		if _, err := e.db.Outbox().EndQuiet(t.Context(), new(n.ends.Add(time.Second))); err != nil {
			t.Error(err)
		}
		e.want("just after the end", minutes+1, 0, 0, 0)
		e.want("the first step, after the end", minutes+6, 1, 0, 0)
		e.want("before the second step", minutes+12, 0, 0, 0)
		e.want("the second step", minutes+17, 1, 1, 0)
	}
}

// TestQuietHoursOfThePager checks that the steps of an escalation are held for the pager only.
func TestQuietHoursOfThePager(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	n := &quiet{napping: e.napping}
	n.hours(-time.Hour, time.Hour)
	e.exec(t, `update webhook set quiet_hours = null where webhook_id <> $1`, e.pager)
	e.exec(t, `update alert set severity = 'WARNING'`)
	e.want("nobody is disturbed", 6, 0, 0, 0)
	minutes := int(time.Until(n.ends).Minutes())
	e.want("the second step waits", 16, 0, 0, 0)
	due, err := e.db.Outbox().EndQuiet(t.Context(), new(n.ends.Add(time.Second)))
	if err != nil || due[e.pager] != 1 {
		t.Errorf("%v, %v", due, err)
	}
	e.exec(t, `update webhook set quiet_hours = null`) // which are decided by Postgres's clock
	e.want("the second step", minutes+17, 1, 1, 0)
}

// TestThePagerHearsOfNoEndOfWhatItDidNotHear has quiet hours hold a step until somebody has looked after the alert.
func TestThePagerHearsOfNoEndOfWhatItDidNotHear(t *testing.T) {
	t.Parallel()
	for again, want := range map[bool][]string{false: {"ESCALATED DISCARDED"}, true: {"ESCALATED DISCARDED", "RESOLVED PENDING"}} {
		e := newEscalating(t)
		n := &quiet{napping: e.napping}
		n.hours(-time.Hour, time.Hour)
		e.exec(t, `update webhook set events = '{RESOLVED}', quiet_hours = case when webhook_id = $1 then quiet_hours end`, e.pager)
		e.exec(t, `update alert set severity = 'WARNING'`)
		e.want("it is held", 6, 0, 0, 0)
		e.act(alerts.Acknowledge)
		if _, err := e.db.Outbox().EndQuiet(t.Context(), new(n.ends.Add(time.Minute))); err != nil {
			t.Error(err)
		}
		if again { // an attempt may have arrived
			e.exec(t, `update settlement set attempt = 2`)
		}
		e.act(alerts.Resolve)
		if got := column(t, e.conn, `select n.reason || ' ' || s.status from notification n join notification_status s using (notification_id) where n.webhook_id = '`+e.pager.String()+`' order by n.created_at`); !slices.Equal(got, want) {
			t.Errorf("with an attempt before %v: %v, want %v", again, got, want)
		}
	}
}

// TestACommitReadsTheQuietHoursThatAreStored checks that an edit waits for nothing, and that a
// commit that began before it may use either version; the next pass corrects that.
func TestACommitReadsTheQuietHoursThatAreStored(t *testing.T) {
	t.Parallel()
	n := newQuiet(t, rules.Critical)
	other := pgtest.Conn(t, n.url)
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update webhook set quiet_hours = null`); err != nil {
		t.Fatal(err)
	}
	n.raise(rules.Warning) // does not wait for the edit, which it does not see yet
	n.want("by the hours that are committed", "FIRED due", "FIRED held")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if due, err := n.db.Outbox().EndQuiet(t.Context(), nil); err != nil || due[n.webhook] != 1 {
		t.Errorf("%v, %v", due, err)
	}
}
