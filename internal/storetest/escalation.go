package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/window"
	"tocsin/notify"
	"tocsin/rules"
)

// escalatingRouting escalates to the webhook after 5 minutes, to operators after 15 and to both after 60.
func (l *law) escalatingRouting() *alerts.Routing {
	return &alerts.Routing{Version: 1, Routes: []alerts.RouteTaken{{Name: "all", WebhookIDs: []uuid.UUID{l.webhook}, Escalation: []alerts.EscalationStep{
		{AfterMinutes: 5, WebhookIDs: []uuid.UUID{l.webhook}},
		{AfterMinutes: 15, WebhookIDs: []uuid.UUID{l.operators}},
		{AfterMinutes: 60, WebhookIDs: []uuid.UUID{l.webhook, l.operators}},
	}}}}
}

// escalating raises an alert that escalates.
func (l *law) escalating() uuid.UUID {
	l.Helper()
	l.hold("a")
	b := l.batch(l.rule)
	b.Instances[0].Routing = l.escalatingRouting()
	l.equal("raised", len(l.commit(b).Inserted), 1)
	return b.Instances[0].ID
}

// sendAll sends what waits for a webhook, and returns it.
func (l *law) sendAll(webhook uuid.UUID) (sent []notify.Delivery) {
	l.Helper()
	defer func(was uuid.UUID) { l.webhook = was }(l.webhook)
	l.webhook = webhook
	for range 5 { // what ends without an attempt takes a place in a claim
		for _, d := range l.claim("a", 20) {
			l.settle("a", d, delivered())
			sent = append(sent, d)
		}
	}
	return sent
}

// escalate takes what is due after some time, and holds how many messages there are.
func (l *law) escalate(what string, after time.Duration, webhook, operators int) {
	l.Helper()
	l.Advance(after)
	due, err := l.Escalate()
	l.must(err)
	l.equal(what+": to the webhook", due[l.webhook], webhook)
	l.equal(what+": to operators", due[l.operators], operators)
}

// remind ends what is over after some time, and holds how many reminders there are for the webhook.
func (l *law) remind(what string, after time.Duration, want int) {
	l.Helper()
	l.Advance(after)
	due, err := l.Remind()
	l.must(err)
	l.equal(what, due[l.webhook], want)
}

func escalatesByStep(l *law) {
	id := l.escalating()
	l.raise(1) // which does not escalate
	l.escalate("at once", 0, 0, 0)
	l.escalate("too early", 4*time.Minute, 0, 0)
	l.escalate("the first step", 61*time.Second, 1, 0)
	l.escalate("the first step again", 0, 0, 0)
	l.escalate("before the second step", 9*time.Minute, 0, 0)
	l.escalate("the second step", time.Minute, 0, 1)
	l.escalate("the last step", time.Hour, 1, 1)
	l.escalate("after the last one", 24*time.Hour, 0, 0)
	// The id of each message follows from the step.
	for _, minutes := range []int{5, 60} {
		l.is(notify.ID(id, l.webhook, notify.ReasonEscalated, minutes), notify.Pending)
	}
	for _, minutes := range []int{15, 60} {
		l.is(notify.ID(id, l.operators, notify.ReasonEscalated, minutes), notify.Pending)
	}
}

func escalatesLate(l *law) {
	l.escalating()
	l.escalate("the first step, late", 3*time.Hour, 1, 0)
	l.escalate("the second one has its time", 4*time.Minute, 0, 0)
	l.escalate("the second step", 61*time.Second, 0, 1)
	l.escalate("the third one has its time", 4*time.Minute, 0, 0)
	l.escalate("the third step", 61*time.Second, 1, 1)
}

func escalationSkipped(l *law) {
	acknowledged, resolved, snoozed := l.escalating(), l.escalating(), l.escalating()
	l.act(alerts.Acknowledge, acknowledged)
	l.act(alerts.Resolve, resolved)
	l.must(l.Snooze(snoozed, 10*time.Minute))
	l.escalate("the first step", 6*time.Minute, 0, 0)
	l.remind("the snooze ends", 5*time.Minute, 1)
	l.escalate("the second step of what was snoozed", 5*time.Minute, 0, 1)
	l.escalate("the third step of what was snoozed", time.Hour, 1, 1)
}

func escalationResumes(l *law) {
	l.escalating()
	first := l.escalating()
	l.Advance(4 * time.Minute)
	act := l.act(alerts.Acknowledge, first)
	l.escalate("while one is acknowledged", 2*time.Minute, 1, 0)
	l.equal("undone", l.undo(act), 1)
	l.escalate("undone", 0, 1, 0)
	l.escalate("and not again", time.Minute, 0, 0)
	act = l.act(alerts.Resolve, first)
	l.equal("undone before the next step", l.undo(act), 1)
	l.escalate("the next step", 9*time.Minute, 0, 2)

	second := l.escalating()
	l.must(l.Snooze(second, time.Hour))
	l.escalate("while it is snoozed", 6*time.Minute, 0, 0)
	l.must(l.CancelSnooze(second))
	l.escalate("cancelled", 0, 1, 0)
	l.must(l.Snooze(second, time.Hour))
	l.escalate("snoozed once more", 11*time.Minute, 0, 0)
	l.must(l.CancelSnooze(second))
	l.escalate("cancelled late", 0, 0, 0)
}

// escalationResumesFirst undoes an acknowledgement, and then a snooze that began, by a clock that was put back in
// between, before a later step was skipped: the alert still resumes at the first one.
func escalationResumesFirst(l *law) {
	id := l.escalating()
	l.Advance(6 * time.Minute)
	act := l.act(alerts.Acknowledge, id)
	l.escalate("acknowledged", 0, 0, 0)
	l.escalate("for longer", 550*time.Second, 0, 0)
	l.equal("undone", l.undo(act), 1)
	l.Advance(-5 * time.Minute)
	l.must(l.Snooze(id, time.Hour))
	l.must(l.CancelSnooze(id))
	l.escalate("not snoozed any more", 5*time.Minute, 1, 0)
	l.escalate("the next step", 6*time.Minute, 0, 1)
}

func escalationUndone(l *law) {
	id := l.escalating()
	act := l.act(alerts.Acknowledge, id)
	l.act(alerts.Resolve, id)
	l.equal("what has changed since is undone", l.undo(act), 0)
	l.equal("state", l.Alert(id), alerts.Resolved)
	other := l.escalating()
	l.act(alerts.Acknowledge, other)
	act = l.act(alerts.Resolve, other)
	l.equal("undone", l.undo(act), 1)
	l.equal("state", l.Alert(other), alerts.Acknowledged)
	act = l.act(alerts.Resolve, other)
	l.Advance(11 * time.Minute)
	if _, err := l.Undo(act); err == nil {
		l.Error("what was done long ago is undone")
	}
	l.equal("state", l.Alert(other), alerts.Resolved)
}

func escalationReplayed(l *law) {
	p := l.replay(ruleset.ReplayEach)
	b, _ := l.replayTo(p, p.ToNS, 1)
	b.Instances[0].Routing = l.escalatingRouting()
	l.equal("raised", len(l.commit(b).Inserted), 1)
	l.escalate("what a replay raised", 2*time.Hour, 0, 0)
	act := l.act(alerts.Acknowledge, b.Instances[0].ID)
	l.equal("undone", l.undo(act), 1)
	l.escalate("nor what is undone of it", 2*time.Hour, 0, 0)
}

func escalationWindow(l *law) {
	r := l.windowRule()
	id := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 1}
	step := func(step alerts.Step, reason notify.Reason) {
		l.Helper()
		l.hold("a")
		b := l.batch()
		b.Changes = []window.Change{l.change(&r, step, id, "orders", reason)}
		b.Changes[0].Instance.Routing = l.escalatingRouting()
		done := l.commit(b)
		l.equal("made", len(done.Inserted)+len(done.Changed), 1)
	}
	step(alerts.Wait, "")
	l.escalate("while it is pending", 6*time.Minute, 0, 0)
	step(alerts.Fire, notify.ReasonFired)
	l.escalate("before the first step", 4*time.Minute, 0, 0)
	l.escalate("the first step", 61*time.Second, 1, 0)
	step(alerts.Clear, "")
	l.escalate("after its end", time.Hour, 0, 0)
}

func escalationDiscarded(l *law) {
	id := l.escalating()
	l.settle("a", l.one("a"), delivered())
	message := notify.ID(id, l.webhook, notify.ReasonEscalated, 5)
	l.escalate("the first step", 6*time.Minute, 1, 0)
	l.act(alerts.Acknowledge, id)
	l.Advance(9 * time.Minute)
	d := l.one("a")
	l.equal("sent while it can be undone", d.NotificationID, message)
	l.settle("a", d, notify.Outcome{Verdict: notify.VerdictRetry, Error: "no"})
	l.Advance(5 * time.Minute)
	l.equal("sent later", len(l.claim("a", 8)), 0)
	l.is(message, notify.Discarded, "RETRY", "NOT_MADE")
	l.must(l.Retry(message))
	l.equal("sent by a person", l.one("a").NotificationID, message)
}

// escalationUnheard has an alert be resolved whose escalation is still to be sent to operators, who were not
// notified when it fired. When the escalation is not sent any more, its end is not sent either.
func escalationUnheard(l *law) {
	l.resolves(rules.Resolution{AfterSeconds: 60})
	ends := func(id, webhook uuid.UUID) uuid.UUID { return notify.ID(id, webhook, notify.ReasonResolved, 0) }
	heard := l.escalating()
	l.escalate("the first step", 6*time.Minute, 1, 0)
	l.escalate("the second step", 10*time.Minute, 0, 1)
	l.sendAll(l.operators)
	unheard := l.escalating()
	l.escalate("the first step of the other", 6*time.Minute, 1, 0)
	l.escalate("the second step of the other", 10*time.Minute, 0, 1)
	l.equal("resolved", l.aged(l.take(), 10), 2)
	l.is(ends(unheard, l.operators), notify.Pending)
	l.Advance(12 * time.Minute)
	l.sendAll(l.webhook)
	l.sendAll(l.operators)
	l.is(ends(heard, l.operators), notify.Delivered, "DELIVERED")
	l.is(ends(unheard, l.webhook), notify.Delivered, "DELIVERED")
	l.is(notify.ID(unheard, l.operators, notify.ReasonEscalated, 15), notify.Discarded, "NOT_MADE")
	l.is(ends(unheard, l.operators), notify.Discarded, "NOT_MADE")
	l.must(l.Retry(ends(unheard, l.operators)))
	l.equal("sent by a person", len(l.sendAll(l.operators)), 1)
}

// escalationNotMade has two escalations wait for operators, who were not notified when the alert fired: an attempt of the first
// one was not made. Neither is sent when the alert was acknowledged long ago, and nor is its end.
func escalationNotMade(l *law) {
	l.resolves(rules.Resolution{AfterSeconds: 60})
	id := l.escalating()
	l.escalate("the first step", 6*time.Minute, 1, 0)
	l.escalate("the second step", 10*time.Minute, 0, 1)
	func() {
		defer func(was uuid.UUID) { l.webhook = was }(l.webhook)
		l.webhook = l.operators
		l.settle("a", l.one("a"), notify.Outcome{Verdict: notify.VerdictNotMade, NothingSent: true})
	}()
	l.escalate("the third step", time.Hour, 1, 1)
	l.equal("resolved", l.aged(l.take(), 10), 1)
	l.Advance(12 * time.Minute)
	l.equal("sent", len(l.sendAll(l.operators)), 0)
	l.is(notify.ID(id, l.operators, notify.ReasonEscalated, 15), notify.Discarded, "NOT_MADE", "NOT_MADE")
	l.is(notify.ID(id, l.operators, notify.ReasonEscalated, 60), notify.Discarded, "NOT_MADE")
	l.is(notify.ID(id, l.operators, notify.ReasonResolved, 0), notify.Discarded, "NOT_MADE")
}

// escalationGathered has more escalations wait than a digest begins at, all of which nobody needs any more.
func escalationGathered(l *law) {
	var err error
	l.operators, err = l.CreateWebhook(notify.Webhook{
		Name: "digest", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 8, DigestAbove: 2,
	})
	l.must(err)
	var needless []uuid.UUID
	for range 4 {
		needless = append(needless, l.escalating())
	}
	l.escalate("the first step", 6*time.Minute, 4, 0)
	l.escalate("the second step", 10*time.Minute, 0, 4)
	l.act(alerts.Acknowledge, needless...)
	l.Advance(12 * time.Minute)
	step := func(id uuid.UUID) uuid.UUID { return notify.ID(id, l.operators, notify.ReasonEscalated, 15) }
	func() {
		defer func(was uuid.UUID) { l.webhook = was }(l.webhook)
		l.webhook = l.operators
		l.equal("claimed at once", len(l.claim("a", 1)), 0)
	}()
	for _, id := range needless {
		l.is(step(id), notify.Discarded, "NOT_MADE")
	}
	// A person sends them again, together.
	for _, id := range needless {
		l.must(l.Retry(step(id)))
	}
	l.equal("sent again", len(l.sendAll(l.operators)), 4)
}

func escalationSilenced(l *law) {
	id := l.escalating()
	by := l.silence("one", 0, orders())
	l.escalate("silenced", 6*time.Minute, 0, 0)
	message := notify.ID(id, l.webhook, notify.ReasonEscalated, 5)
	l.equal("suppressed by", l.SuppressedBy(message), by)
	l.is(message, notify.Suppressed)
	l.must(l.EndSilence(by))
	l.escalate("the second step", 10*time.Minute, 0, 1)
}

func snoozeEnds(l *law) {
	id := l.escalating()
	l.must(l.Snooze(id, time.Minute))
	l.remind("too early", 58*time.Second, 0)
	l.remind("over", 3*time.Second, 1)
	l.remind("again", time.Hour, 0)
	l.is(notify.ID(id, l.webhook, notify.ReasonSnoozeEnded, 0), notify.Pending)
	l.act(alerts.Acknowledge, id)
	l.must(l.Snooze(id, time.Minute))
	l.remind("of what is acknowledged", 61*time.Second, 1)
	l.is(notify.ID(id, l.webhook, notify.ReasonSnoozeEnded, 1), notify.Pending)
	if l.Snooze(id, -time.Second) == nil {
		l.Error("a snooze ends before it begins")
	}
}

func snoozeVoid(l *law) {
	resolved, cancelled, moved := l.escalating(), l.escalating(), l.escalating()
	for _, id := range []uuid.UUID{resolved, cancelled, moved} {
		l.must(l.Snooze(id, time.Minute))
	}
	l.act(alerts.Resolve, resolved)
	l.must(l.CancelSnooze(cancelled))
	l.must(l.Snooze(moved, 3*time.Minute))
	l.remind("of the three", 2*time.Minute, 0)
	l.remind("of the one that was moved", 2*time.Minute, 1)
	if l.Snooze(resolved, time.Minute) == nil {
		l.Error("what is resolved is snoozed")
	}
}

// snoozeExtended cancels a snooze that was extended after a step was skipped because of it: the step is taken.
func snoozeExtended(l *law) {
	id := l.escalating()
	l.must(l.Snooze(id, time.Hour))
	l.escalate("while it is snoozed", 6*time.Minute, 0, 0)
	l.must(l.Snooze(id, 2*time.Hour))
	l.must(l.CancelSnooze(id))
	l.escalate("the step that was skipped", time.Second, 1, 0)
}

func snoozeQuiet(l *law) {
	r := l.windowRule()
	id := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 1}
	made, _ := l.step(&r, alerts.Raise, id, notify.ReasonFired)
	l.equal("made", made, true)
	l.must(l.Snooze(id, time.Minute))
	made, notified := l.step(&r, alerts.Remind, id, notify.ReasonReminder)
	l.equal("reminded while it is snoozed", made || notified > 0, false)
	l.remind("the snooze ends", 61*time.Second, 1)
	l.hold("a")
	made, _ = l.step(&r, alerts.Remind, id, notify.ReasonReminder)
	l.equal("reminded afterwards", made, true)
}

// act has a person act on alerts, and returns the id of what they did.
func (l *law) act(action alerts.Action, ids ...uuid.UUID) uuid.UUID {
	l.Helper()
	l.next++
	act := uuid.UUID{6, 6: 0x80, 8: 0x80, 15: byte(l.next)}
	changed, err := l.Act(act, action, ids...)
	l.must(err)
	l.equal("changed", changed, len(ids))
	return act
}

func (l *law) undo(act uuid.UUID) int {
	l.Helper()
	restored, err := l.Undo(act)
	l.must(err)
	return restored
}
