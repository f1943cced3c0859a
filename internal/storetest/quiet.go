package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// endQuiet holds how many messages are released.
func (l *law) endQuiet(what string, want int) {
	l.Helper()
	released, err := l.EndQuiet()
	l.must(err)
	l.equal("released "+what, released, want)
}

// quietFor are hours that have begun and last for a while still.
func (l *law) quietFor(d time.Duration) notify.QuietHours {
	now := l.now.UTC()
	return notify.QuietHours{{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(-time.Hour).Format("15:04"), To: now.Add(d).Format("15:04")}}
}

// quietWebhook has the law's webhook and rule be ones with an hour of quiet to come.
func (l *law) quietWebhook() {
	l.Helper()
	var err error
	l.webhook, err = l.CreateWebhook(notify.Webhook{
		Name: "quiet", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 8, QuietHours: l.quietFor(time.Hour),
	})
	l.must(err)
	l.rule, err = l.CreateRule(definition("quiet", l.webhook))
	l.must(err)
}

// raiseQuiet raises an alert of a severity, and holds how many messages are to be sent at once.
func (l *law) raiseQuiet(severity rules.Severity, sent int) (alert, message uuid.UUID) {
	l.Helper()
	l.hold("a")
	b := l.batch(l.rule)
	b.Instances[0].Severity = severity
	l.equal("to be sent", l.commit(b).Notifications[l.webhook], sent)
	return b.Instances[0].ID, b.Notifications[0].ID
}

// sent holds that nothing but a message is to be sent, and delivers it.
func (l *law) sent(message uuid.UUID) {
	l.Helper()
	d := l.one("a")
	l.equal("claimed", d.NotificationID, message)
	l.settle("a", d, delivered())
	l.equal("and nothing else", len(l.claim("a", 8)), 0)
}

// quietHeld has one alert still fire when quiet hours are over, and one be resolved by then; a message be
// sent at once by a person, one be given up, and a critical one pass.
func quietHeld(l *law) {
	l.quietWebhook()
	_, fires := l.raiseQuiet(rules.Warning, 0)
	over, ended := l.raiseQuiet(rules.Info, 0)
	_, byHand := l.raiseQuiet(rules.Warning, 0)
	_, given := l.raiseQuiet(rules.Warning, 0)
	_, critical := l.raiseQuiet(rules.Critical, 1)
	l.sent(critical)
	l.endQuiet("within the hours", 0)
	l.must(l.Retry(byHand))
	l.sent(byHand)
	l.must(l.Discard(given))
	l.must(l.Resolve(over))
	l.is(ended, notify.Pending)
	l.Advance(61 * time.Minute)
	l.equal("before anybody looks", len(l.claim("a", 8)), 0)
	l.endQuiet("after them", 1)
	l.is(ended, notify.Discarded, "NOT_MADE")
	l.is(given, notify.Discarded)
	l.sent(fires)
	l.endQuiet("once more", 0)
}

// quietTogether has quiet hours be edited twice: the later message of an alert was held until an earlier end than the
// first one, and hours have begun again since. Both wait for each other.
func quietTogether(l *law) {
	l.quietWebhook()
	id, fires := l.raiseQuiet(rules.Warning, 0)
	l.must(l.EditQuietHours(l.webhook, l.quietFor(10*time.Minute)))
	l.must(l.Snooze(id, 5*time.Minute))
	l.remind("within the hours", 6*time.Minute, 0)
	later := notify.ID(id, l.webhook, notify.ReasonSnoozeEnded, 0)
	l.Advance(6 * time.Minute)
	l.must(l.EditQuietHours(l.webhook, l.quietFor(30*time.Minute)))
	l.endQuiet("while hours hold the first one", 0)
	l.is(later, notify.Pending)
	l.is(fires, notify.Pending)
	l.Advance(31 * time.Minute)
	l.endQuiet("after the hours", 1)
}

// quietHandled has people look after alerts before quiet hours end: for longer than that can be undone, and
// for less.
func quietHandled(l *law) {
	l.quietWebhook()
	long, acknowledged := l.raiseQuiet(rules.Warning, 0)
	asleep, snoozed := l.raiseQuiet(rules.Warning, 0)
	lately, justNow := l.raiseQuiet(rules.Warning, 0)
	l.Advance(50 * time.Minute)
	l.act(alerts.Acknowledge, long)
	l.must(l.Snooze(asleep, 2*time.Hour))
	l.Advance(6 * time.Minute)
	l.act(alerts.Acknowledge, lately)
	l.Advance(5 * time.Minute)
	l.endQuiet("after the hours", 1)
	l.is(acknowledged, notify.Discarded, "NOT_MADE")
	l.is(snoozed, notify.Discarded, "NOT_MADE")
	l.sent(justNow)
}

// quietSnoozed has somebody snooze an alert shortly before quiet hours end: if the snooze is undone, no reminder is sent.
func quietSnoozed(l *law) {
	l.quietWebhook()
	id, message := l.raiseQuiet(rules.Warning, 0)
	l.Advance(56 * time.Minute)
	l.must(l.Snooze(id, 2*time.Hour))
	l.Advance(5 * time.Minute)
	l.endQuiet("after the hours", 1)
	l.sent(message)
}

// quietReminded has somebody acknowledge and snooze an alert of which the webhook was notified. The snooze ends
// within quiet hours, and the message comes after them.
func quietReminded(l *law) {
	l.quietWebhook()
	l.must(l.EditQuietHours(l.webhook, nil))
	id, message := l.raiseQuiet(rules.Warning, 1)
	l.sent(message)
	l.must(l.EditQuietHours(l.webhook, l.quietFor(time.Hour)))
	l.act(alerts.Acknowledge, id)
	l.must(l.Snooze(id, 20*time.Minute))
	l.remind("within the hours", 21*time.Minute, 0)
	l.Advance(61 * time.Minute)
	l.endQuiet("after the hours", 1)
	l.sent(notify.ID(id, l.webhook, notify.ReasonSnoozeEnded, 0))
}

// quietUnheard has an alert whose first message a silence suppressed, and whose second one was of no use any more when
// quiet hours ended: the webhook is not notified of its end. Of one that fires on after the second
// message, it is.
func quietUnheard(l *law) {
	l.quietWebhook()
	l.must(l.EditQuietHours(l.webhook, nil))
	l.resolves(byCorrelation())
	silence := l.silence("one", 0, orders())
	unheard, _ := l.raiseQuiet(rules.Warning, 0)
	l.must(l.EndSilence(silence))
	heard, first := l.raiseQuiet(rules.Warning, 1)
	l.sent(first)
	l.must(l.EditQuietHours(l.webhook, l.quietFor(time.Hour)))
	l.must(l.Snooze(unheard, 20*time.Minute))
	l.remind("within the hours", 21*time.Minute, 0)
	l.act(alerts.Acknowledge, unheard)
	held, message := l.raiseQuiet(rules.Warning, 0)
	l.must(l.Snooze(held, 2*time.Hour))
	l.Advance(61 * time.Minute)
	l.endQuiet("after the hours", 0)
	l.is(notify.ID(unheard, l.webhook, notify.ReasonSnoozeEnded, 0), notify.Discarded, "NOT_MADE")
	l.is(message, notify.Discarded, "NOT_MADE")
	l.must(l.EditQuietHours(l.webhook, nil))
	l.hold("a")
	l.remind("of what was given up", 2*time.Hour, 1)
	l.sent(notify.ID(held, l.webhook, notify.ReasonSnoozeEnded, 0))
	l.equal("resolved", l.proven(l.take(), unheard, held, heard), 3)
	l.equal("suppressed by", l.SuppressedBy(l.end(unheard)), silence)
	l.is(l.end(held), notify.Pending)
	l.is(l.end(heard), notify.Pending)
	l.equal("claimed", len(l.claim("a", 9)), 2)
}

// quietWindow has an alert of a window rule be acknowledged for long when quiet hours end, and be resolved by its
// count afterwards: a webhook that was not notified of it is not notified of its end.
func quietWindow(l *law) {
	l.quietWebhook()
	r := l.windowRule()
	id := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 1}
	made, _ := l.step(&r, alerts.Raise, id, notify.ReasonFired)
	l.equal("it fires", made, true)
	l.act(alerts.Acknowledge, id)
	l.Advance(61 * time.Minute)
	l.hold("a")
	l.endQuiet("after the hours", 0)
	l.must(l.EditQuietHours(l.webhook, nil))
	made, notified := l.step(&r, alerts.Clear, id, "")
	l.equal("it is resolved", made, true)
	l.equal("notified of the end", notified, 0)
	l.equal("claimed", len(l.claim("a", 9)), 0)
}

// quietOnce has quiet hours hold several messages about one alert.
func quietOnce(l *law) {
	l.quietWebhook()
	id, first := l.raiseQuiet(rules.Warning, 0)
	l.must(l.Snooze(id, time.Minute))
	l.remind("within the hours", 61*time.Second, 0)
	l.Advance(time.Hour)
	l.endQuiet("after the hours", 1)
	l.sent(first)
	l.is(notify.ID(id, l.webhook, notify.ReasonSnoozeEnded, 0), notify.Discarded, "NOT_MADE")
}

// quietEnds has an alert of which a webhook was notified, and one of which it was not, end within quiet hours.
func quietEnds(l *law) {
	r := l.windowRule()
	notifiedID, silentID := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 1}, uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 2}
	made, notified := l.step(&r, alerts.Raise, notifiedID, notify.ReasonFired)
	l.equal("raised", made && notified == 1, true)
	first := l.one("a")
	l.settle("a", first, delivered())
	l.must(l.EditQuietHours(l.webhook, l.quietFor(time.Hour)))
	end := func(id uuid.UUID) {
		l.Helper()
		l.hold("a")
		made, notified := l.step(&r, alerts.Clear, id, "")
		l.equal("resolved", made, true)
		l.equal("notified within the hours", notified, 0)
	}
	end(notifiedID)
	made, notified = l.step(&r, alerts.Raise, silentID, notify.ReasonFired)
	l.equal("raised within the hours", made && notified == 0, true)
	end(silentID)
	l.Advance(61 * time.Minute)
	l.endQuiet("after the hours", 1)
	l.sent(notify.ID(notifiedID, l.webhook, notify.ReasonResolved, 0))
	l.is(notify.ID(silentID, l.webhook, notify.ReasonFired, 0), notify.Discarded, "NOT_MADE")
	l.is(notify.ID(silentID, l.webhook, notify.ReasonResolved, 0), notify.Discarded, "NOT_MADE")
}

// quietEdited has quiet hours end later than they did, and be over at once.
func quietEdited(l *law) {
	l.quietWebhook()
	_, later := l.raiseQuiet(rules.Warning, 0)
	l.must(l.EditQuietHours(l.webhook, l.quietFor(3*time.Hour)))
	l.endQuiet("after the edit", 0)
	l.Advance(61 * time.Minute)
	l.endQuiet("at the former end", 0)
	l.must(l.EditQuietHours(l.webhook, nil))
	l.endQuiet("without quiet hours", 1)
	l.sent(later)
}

// quietHealth has a rule fail within the quiet hours of operators.
func quietHealth(l *law) {
	l.must(l.EditQuietHours(l.operators, l.quietFor(time.Hour)))
	b := l.batch()
	b.Health = failing(l.rule.ID, "no")
	l.equal("to be sent to operators", l.commit(b).Notifications[l.operators], 1)
}

// escalatingQuietly raises an alert of which quiet hours hold the message, and which escalates to operators.
func (l *law) escalatingQuietly(minutes int) uuid.UUID {
	l.Helper()
	l.quietWebhook()
	l.hold("a")
	b := l.batch(l.rule)
	b.Instances[0].Routing = &alerts.Routing{Version: 1, Routes: []alerts.RouteTaken{{
		Name: "all", WebhookIDs: []uuid.UUID{l.webhook}, Escalation: []alerts.EscalationStep{{AfterMinutes: minutes, WebhookIDs: []uuid.UUID{l.operators}}},
	}}}
	l.equal("raised", len(l.commit(b).Inserted), 1)
	return b.Instances[0].ID
}

// quietWaits has a step be due while quiet hours hold the first message.
func quietWaits(l *law) {
	l.escalatingQuietly(5)
	l.escalate("within the hours", 6*time.Minute, 0, 0)
	l.Advance(55 * time.Minute)
	l.endQuiet("after the hours", 1)
	l.escalate("before its minutes", 4*time.Minute, 0, 0)
	l.escalate("the step", 61*time.Second, 0, 1)
	l.escalate("once more", time.Hour, 0, 0)
}

// quietCounts has a step be due only after the hours: its minutes count from when the webhook is notified.
func quietCounts(l *law) {
	l.escalatingQuietly(120)
	l.Advance(61 * time.Minute)
	l.endQuiet("after the hours", 1)
	l.escalate("two hours after it fired", time.Hour, 0, 0)
	l.escalate("two hours after the hours", 61*time.Minute, 0, 1)
}

// quietCutShort has quiet hours be deleted while a step waits for their end.
func quietCutShort(l *law) {
	l.escalatingQuietly(5)
	l.escalate("within the hours", 6*time.Minute, 0, 0)
	l.must(l.EditQuietHours(l.webhook, nil))
	l.endQuiet("without quiet hours", 1)
	l.escalate("before its minutes", 4*time.Minute, 0, 0)
	l.escalate("the step", 61*time.Second, 0, 1)
}

// quietSentEarly has a person send what quiet hours hold before the step is due.
func quietSentEarly(l *law) {
	id := l.escalatingQuietly(10)
	l.Advance(5 * time.Minute)
	l.must(l.Retry(notify.ID(id, l.webhook, notify.ReasonFired, 0)))
	l.escalate("ten minutes after it fired", 6*time.Minute, 0, 0)
	l.escalate("ten minutes after it was sent", 5*time.Minute, 0, 1)
}

// quietSentLate has a person send what quiet hours hold while the step waits for their end. What else is held
// for the same webhook says nothing new.
func quietSentLate(l *law) {
	id := l.escalatingQuietly(10)
	l.must(l.Snooze(id, time.Minute))
	l.remind("a second message is held", 2*time.Minute, 0)
	l.escalate("within the hours", 10*time.Minute, 0, 0)
	l.must(l.Retry(notify.ID(id, l.webhook, notify.ReasonFired, 0)))
	l.escalate("before its minutes", 9*time.Minute, 0, 0)
	l.escalate("ten minutes after it was sent", 2*time.Minute, 0, 1)
	l.escalate("once more", time.Minute, 0, 0)
}
