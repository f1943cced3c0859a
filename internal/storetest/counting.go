package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/window"
	"tocsin/internal/retention"
	"tocsin/notify"
	"tocsin/rules"
)

// windowRule creates a rule that counts by application, and lets replica a read it.
func (l *law) windowRule() rules.Rule {
	l.Helper()
	d := definition("counts", l.webhook)
	d.FireMode, d.Threshold, d.WindowSeconds, d.GroupBy, d.LookBackSeconds = rules.CountInWindow, 2, 60, rules.GroupByApplication, 0
	d.NotifyOnResolve = true
	r, err := l.CreateRule(d)
	l.must(err)
	l.hold("a")
	return r
}

// change is a step for a group of a rule, with a notification for the webhook if it has a reason.
func (l *law) change(r *rules.Rule, step alerts.Step, id uuid.UUID, group string, reason notify.Reason) window.Change {
	count := alerts.CountOf(&r.Definition)
	count.Group, count.Observed, count.DurationMS = group, 2, 900
	end := l.now.UnixNano()
	c := window.Change{Step: step, Instance: alerts.Instance{
		ID: id, TenantID: Tenant, RuleID: r.ID, RuleVersion: r.Version, Severity: r.Severity, Title: "title", Count: &count,
		Exchange: rules.Exchange{
			TenantID: Tenant, StartTimeNS: end - 7, EndTimeNS: &end, ExecutionID: "e", Application: group, Status: rules.Failed, Attributes: map[string]string{},
		},
	}}
	if reason != "" {
		c.Notifications = []notify.Notification{{
			ID: notify.ID(id, l.webhook, reason, 0), TenantID: Tenant, AlertID: id, RuleID: r.ID, WebhookID: l.webhook, Reason: reason,
		}}
	}
	return c
}

// step commits a step of the group orders, and returns whether it was made, and how many
// notifications were written.
func (l *law) step(r *rules.Rule, step alerts.Step, id uuid.UUID, reason notify.Reason) (made bool, notified int) {
	l.Helper()
	b := l.batch()
	b.Changes = []window.Change{l.change(r, step, id, "orders", reason)}
	done := l.commit(b)
	return len(done.Inserted)+len(done.Changed) == 1, done.Notifications[l.webhook]
}

// openOrHeld returns the only alert of a rule and group that is open or held.
func (l *law) openOrHeld(r *rules.Rule, group string) (found alerts.OpenAlert, there bool) {
	l.Helper()
	open, err := l.Evaluation.OpenAlerts(l.Context(), []uuid.UUID{r.ID})
	l.must(err)
	for _, o := range open {
		if o.Group == group {
			if there {
				l.Errorf("two alerts of %q are open or held", group)
			}
			found, there = o, true
		}
	}
	return found, there
}

// windowSteps goes through the states of an alert of a window rule: each step is possible from the
// state in which it begins, and from no other.
func windowSteps(l *law) {
	r := l.windowRule()
	first, second := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 1}, uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 2}
	expect := func(what string, step alerts.Step, id uuid.UUID, reason notify.Reason, wantMade bool) {
		l.Helper()
		made, notified := l.step(&r, step, id, reason)
		l.equal(what, made, wantMade)
		want := 0
		if wantMade && (reason != "" || step == alerts.Clear) {
			want = 1
		}
		l.equal(what+": notified", notified, want)
	}
	expect("it waits", alerts.Wait, first, "", true)
	l.equal("state", l.Alert(first), alerts.Pending)
	expect("another one beside it", alerts.Raise, second, notify.ReasonFired, false)
	expect("a reminder before it fires", alerts.Remind, first, notify.ReasonReminder, false)
	expect("resolved before it fires", alerts.Clear, first, "", false)
	if l.Resolve(first) == nil {
		l.Error("a person resolves what does not fire yet")
	}
	expect("it fires", alerts.Fire, first, notify.ReasonFired, true)
	expect("it fires again", alerts.Fire, first, notify.ReasonFired, false)
	expect("a first reminder", alerts.Remind, first, notify.ReasonReminder, true)
	expect("a second reminder", alerts.Remind, first, notify.ReasonReminder, true)
	o, there := l.openOrHeld(&r, "orders")
	if !there || o.ID != first || o.State != alerts.Firing || o.Reminders != 2 || o.NewestEndedNS-o.NewestStartNS != 7 || o.LeastNS != 900e6 || o.NotifiedAt.Before(o.Since) {
		l.Errorf("open: %+v", o)
	}
	l.must(l.Snooze(first, time.Hour))
	if o, there = l.openOrHeld(&r, "orders"); !there || !o.Snoozed {
		l.Errorf("snoozed: %+v", o)
	}
	expect("a reminder while it is snoozed", alerts.Remind, first, notify.ReasonReminder, false)
	l.must(l.CancelSnooze(first))
	if o, there = l.openOrHeld(&r, "orders"); !there || o.Snoozed {
		l.Errorf("snoozed no longer: %+v", o)
	}
	expect("dropped although it fires", alerts.Drop, first, "", false)
	expect("resolved by the count", alerts.Clear, first, "", true)
	expect("resolved again", alerts.Clear, first, "", false)
	expect("the next one", alerts.Raise, second, notify.ReasonFired, true)
	l.must(l.Resolve(second))
	o, there = l.openOrHeld(&r, "orders")
	if !there || !o.Held || o.ID != second {
		l.Errorf("after a person resolved it: %+v", o)
	}
	third := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 3}
	expect("another one while it is held", alerts.Raise, third, notify.ReasonFired, false)
	expect("the hold ends", alerts.Release, second, "", true)
	expect("the hold ends again", alerts.Release, second, "", false)
	expect("another one after that", alerts.Wait, third, "", true)
	expect("it is dropped", alerts.Drop, third, "", true)
	l.equal("state", l.Alert(third), alerts.State(""))
}

// windowHeldStays has a person resolve an alert whose value stays above the threshold for longer than alerts are kept: it is
// deleted when the hold has ended.
func windowHeldStays(l *law) {
	const day = 24 * time.Hour
	r := l.windowRule()
	id := uuid.UUID{4, 6: 0x80, 8: 0x80, 15: 1}
	made, _ := l.step(&r, alerts.Raise, id, "")
	l.equal("made", made, true)
	l.must(l.Resolve(id))
	l.Advance(2 * day)
	l.hold("a")
	remove := func() int {
		l.Helper()
		result, err := l.Retention.Alerts(l.Context(), retention.Batch{Keep: day, Most: 100})
		l.must(err)
		return result.Deleted
	}
	l.equal("deleted", remove(), 0)
	if o, there := l.openOrHeld(&r, "orders"); !there || !o.Held {
		l.Errorf("held: %+v", o)
	}
	made, _ = l.step(&r, alerts.Release, id, "")
	l.equal("released", made, true)
	l.equal("deleted after the hold", remove(), 1)
}

// windowEnd has a rule notify one webhook that an alert fires, and another one by a reminder, and then a third one: the first
// two are notified of the end.
func windowEnd(l *law) {
	r := l.windowRule()
	id := uuid.UUID{3, 6: 0x80, 8: 0x80, 15: 1}
	made, _ := l.step(&r, alerts.Raise, id, notify.ReasonFired)
	l.equal("made", made, true)
	b := l.batch()
	b.Changes = []window.Change{l.change(&r, alerts.Remind, id, "orders", notify.ReasonReminder)}
	n := &b.Changes[0].Notifications[0]
	n.WebhookID, n.ID = l.operators, notify.ID(id, l.operators, notify.ReasonReminder, 0)
	l.equal("reminded", l.commit(b).Notifications[l.operators], 1)
	b = l.batch()
	b.Changes = []window.Change{l.change(&r, alerts.Clear, id, "orders", "")}
	done := l.commit(b)
	l.equal("the first webhook's end", done.Notifications[l.webhook], 1)
	l.equal("the reminded webhook's end", done.Notifications[l.operators], 1)
}

// windowGroups checks that groups do not block each other, that resolving steps come first in a
// commit, and that disabling drops pending alerts, of which there was no notification.
func windowGroups(l *law) {
	r := l.windowRule()
	ids := make([]uuid.UUID, 4)
	for i := range ids {
		ids[i] = uuid.UUID{2, 6: 0x80, 8: 0x80, 15: byte(i + 1)}
	}
	b := l.batch()
	b.Changes = []window.Change{
		l.change(&r, alerts.Raise, ids[0], "orders", notify.ReasonFired), l.change(&r, alerts.Wait, ids[1], "billing", ""),
	}
	done := l.commit(b)
	l.equal("raised", len(done.Inserted), 2)
	l.equal("notified", done.Notifications[l.webhook], 1)
	b = l.batch()
	b.Changes = []window.Change{
		l.change(&r, alerts.Raise, ids[2], "orders", notify.ReasonFired), l.change(&r, alerts.Clear, ids[0], "orders", ""),
		l.change(&r, alerts.Raise, ids[3], "billing", notify.ReasonFired),
	}
	done = l.commit(b)
	l.equal("raised in the place of one that is resolved", len(done.Inserted), 1)
	l.equal("changed", len(done.Changed), 1)
	l.equal("notified of an alert and of the end of one", done.Notifications[l.webhook], 2)
	_, err := l.EnableRule(r.ID, false)
	l.must(err)
	l.equal("what waited", l.Alert(ids[1]), alerts.State(""))
	l.equal("what fires", l.Alert(ids[2]), alerts.Firing)
	if _, there := l.openOrHeld(&r, "billing"); there {
		l.Error("what waited is open")
	}
	_, err = l.EnableRule(r.ID, true)
	l.must(err)
	l.Advance(time.Second)
	if o, there := l.openOrHeld(&r, "orders"); !there || o.ID != ids[2] {
		l.Errorf("what fires is open: %+v", o)
	}
}
