package storetest

import (
	"strings"
	"time"

	"tocsin/notify"
	"tocsin/rules"
)

// deliveryTooOld: a message that is too old for its receiver ends without an attempt, unless a user
// sends it again.
func deliveryTooOld(l *law) {
	messages := l.raise(2)
	l.settle("a", l.one("a"), unanswered())
	l.Advance(time.Hour + time.Second)
	l.schedule.MaxAge = time.Hour
	l.equal("claimed at that age", len(l.claim("a", 8)), 0)
	ends := map[string]int{}
	for _, m := range messages {
		status, attempts := l.Message(m)
		ends[string(status)+" "+strings.Join(attempts, " ")]++
	}
	l.equal("the one that was attempted", ends["EXHAUSTED RETRY NOT_MADE"], 1)
	l.equal("the one that was not", ends["EXHAUSTED NOT_MADE"], 1)
	l.must(l.Retry(messages[0]))
	again := l.one("a")
	l.equal("claimed when a person sends it again", again.NotificationID, messages[0])
	l.settle("a", again, delivered())
}

// deliveryEndedLate: a message about the end of an alert may be too old for a receiver, unless that keeps
// something open for the alert.
func deliveryEndedLate(l *law) {
	l.resolves(rules.Resolution{AfterSeconds: 3600})
	for keeps, sent := range map[bool]int{false: 0, true: 2} {
		l.hold("a")
		ids := l.alertsRaised(2)
		l.equal("sent in time", len(l.sendAll(l.webhook)), 2)
		l.Advance(2 * time.Hour)
		l.equal("resolved", l.aged(l.take(), 10), 2)
		l.schedule = notify.Schedule{MaxAge: time.Hour, KeepsState: keeps}
		l.Advance(2 * time.Hour)
		l.equal("sent later", len(l.sendAll(l.webhook)), sent)
		for _, id := range ids {
			if keeps {
				l.is(l.end(id), notify.Delivered, "DELIVERED")
			} else {
				l.is(l.end(id), notify.Exhausted, "NOT_MADE")
			}
		}
		l.schedule = notify.Schedule{}
	}
}
