package storetest

import (
	"time"

	"github.com/google/uuid"

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

// quietHeld has one alert still fire when quiet hours are over, and one be resolved by then; a message be
// sent at once by a person, and a critical one pass.
func quietHeld(l *law) {
	now := l.now.UTC()
	hours := rules.Calendar{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(-time.Hour).Format("15:04"), To: now.Add(time.Hour).Format("15:04")}
	var err error
	l.webhook, err = l.CreateWebhook(notify.Webhook{
		Name: "quiet", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 8, QuietHours: notify.QuietHours{hours},
	})
	l.must(err)
	l.rule, err = l.CreateRule(definition("quiet", l.webhook))
	l.must(err)
	raise := func(severity rules.Severity, sent int) (alert, message uuid.UUID) {
		l.Helper()
		l.hold("a")
		b := l.batch(l.rule)
		b.Instances[0].Severity = severity
		l.equal("to be sent", l.commit(b).Notifications[l.webhook], sent)
		return b.Instances[0].ID, b.Notifications[0].ID
	}
	_, fires := raise(rules.Warning, 0)
	over, ended := raise(rules.Info, 0)
	_, byHand := raise(rules.Warning, 0)
	_, critical := raise(rules.Critical, 1)
	sent := func(message uuid.UUID) {
		l.Helper()
		d := l.one("a")
		l.equal("claimed", d.NotificationID, message)
		l.settle("a", d, delivered())
		l.equal("and nothing else", len(l.claim("a", 8)), 0)
	}
	sent(critical)
	l.endQuiet("within the hours", 0)
	l.must(l.Retry(byHand))
	sent(byHand)
	l.must(l.Resolve(over))
	l.is(ended, notify.Pending)
	l.Advance(61 * time.Minute)
	l.equal("before anybody looks", len(l.claim("a", 8)), 0)
	l.endQuiet("after them", 1)
	l.is(ended, notify.Discarded, "NOT_MADE")
	sent(fires)
	l.endQuiet("once more", 0)
}
