package storetest

import (
	"bytes"

	"github.com/google/uuid"

	"tocsin/notify"
)

func deliveryAgain(l *law) {
	messages := l.raise(1)
	first := l.one("a")
	if l.Retry(messages[0]) == nil {
		l.Error("what is being attempted was sent again")
	}
	l.settle("a", first, delivered())
	l.must(l.Retry(messages[0]))
	second := l.one("a")
	l.equal("generation", second.Generation, 1)
	l.equal("attempt", second.Attempt, 2)
	if second.MessageID() == first.MessageID() || !bytes.Equal(second.Body.Content, first.Body.Content) {
		l.Errorf("%s after %s", second.MessageID(), first.MessageID())
	}
	// The outcome of an attempt from before the retry does not end it.
	l.equal("the former attempt counts", l.settle("a", first, delivered()), false)
	l.settle("a", second, unanswered())
	l.is(messages[0], notify.Retrying, "DELIVERED", "RETRY")
	l.must(l.Retry(messages[0]))
	third := l.one("a")
	l.equal("counted", third.CountedAttempts, 0)
	l.equal("generation", third.Generation, 2)
}

// deliveryFailsAgain: operators are notified of each failure after a retry.
func deliveryFailsAgain(l *law) {
	message := l.raise(1)[0]
	receivers := l.webhook
	for generation := range 3 {
		d := l.one("a")
		l.equal("try", d.Try, 1)
		l.equal("attempt", d.Attempt, generation+1)
		l.settle("a", d, notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400, Error: "400"})
		l.webhook = l.operators
		notified := l.one("a")
		l.equal("operators are notified", notified.Reason, notify.ReasonUndelivered)
		l.settle("a", notified, delivered())
		l.equal("and no more", len(l.claim("a", 8)), 0)
		l.webhook = receivers
		l.must(l.Retry(message))
	}
}

func deliveryDiscarded(l *law) {
	messages := l.raise(2)
	claimed := l.one("a")
	if l.Discard(claimed.NotificationID) == nil {
		l.Error("what is being attempted was given up")
	}
	l.settle("a", claimed, delivered())
	if l.Discard(claimed.NotificationID) == nil {
		l.Error("what was delivered was given up")
	}
	var waiting uuid.UUID
	for _, id := range messages {
		if id != claimed.NotificationID {
			waiting = id
		}
	}
	l.must(l.Discard(waiting))
	l.is(waiting, notify.Discarded)
	l.equal("claimed", len(l.claim("a", 8)), 0)
}
