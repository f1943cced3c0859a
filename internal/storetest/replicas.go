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
	reaped, err := l.Replicas.Reap(l.Context(), lease.ReapRequest{Self: "b", DeadAfter: time.Minute, ForgetAfter: time.Hour})
	l.must(err)
	if len(reaped.Released) != 1 || reaped.Released[0].Partitions != 8 || reaped.Released[0].Notifications != 1 {
		l.Errorf("released %+v", reaped)
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
	reap := func() (notifications int) {
		l.Helper()
		l.beat("b")
		reaped, err := l.Replicas.Reap(l.Context(), lease.ReapRequest{Self: "b", DeadAfter: time.Minute, ForgetAfter: time.Hour})
		l.must(err)
		for _, r := range reaped.Released {
			notifications += r.Notifications
		}
		return notifications
	}
	l.equal("released at once", reap(), 0)
	l.Advance(2 * time.Minute)
	l.equal("released after two minutes", reap(), 1)
	l.is(message, notify.Retrying, "UNKNOWN")
	l.equal("claimed by b", l.one("b").NotificationID, message)
}
