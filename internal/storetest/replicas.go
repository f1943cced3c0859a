package storetest

import (
	"time"

	"tocsin/internal/lease"
	"tocsin/notify"
)

func replicaDied(l *law) {
	messages := l.raise(1)
	l.equal("claimed by", l.one("a").NotificationID, messages[0])
	l.Advance(2 * time.Minute)
	l.beat("b")
	result, err := l.Replicas.ReleaseDead(l.Context(), lease.DeadRequest{Self: "b", DeadAfter: time.Minute, ForgetAfter: time.Hour})
	l.must(err)
	if len(result.Released) != 1 || result.Released[0].Partitions != 8 || result.Released[0].Notifications != 1 {
		l.Errorf("released %+v", result)
	}
	l.is(messages[0], notify.Retrying, "UNKNOWN")
	l.equal("b holds", l.hold("b"), 8)
}

// replicaDiedAhead has a replica die, with its heartbeat and the lease of a message an hour ahead, when the clock is set
// back. Its silence counts from then.
func replicaDiedAhead(l *law) {
	message := l.raise(1)[0]
	l.equal("claimed by a", l.one("a").NotificationID, message)
	l.Advance(-time.Hour)
	release := func() (notifications int) {
		l.Helper()
		l.beat("b")
		result, err := l.Replicas.ReleaseDead(l.Context(), lease.DeadRequest{Self: "b", DeadAfter: time.Minute, ForgetAfter: time.Hour})
		l.must(err)
		for _, r := range result.Released {
			notifications += r.Notifications
		}
		return notifications
	}
	l.equal("released at once", release(), 0)
	l.Advance(2 * time.Minute)
	l.equal("released after two minutes", release(), 1)
	l.is(message, notify.Retrying, "UNKNOWN")
	l.equal("claimed by b", l.one("b").NotificationID, message)
}
