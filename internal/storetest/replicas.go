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
