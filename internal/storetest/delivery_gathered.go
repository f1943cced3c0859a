package storetest

import (
	"time"

	"tocsin/notify"
)

// gathers replaces the webhook and the rule of the law by ones whose messages are gathered above two.
func (l *law) gathers() {
	l.Helper()
	hook, err := l.CreateWebhook(notify.Webhook{
		Name: "digest", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 8, DigestAbove: 2,
		Events: notify.Events(),
	})
	l.must(err)
	l.webhook = hook
	l.rule, err = l.CreateRule(definition("gathered", hook))
	l.must(err)
	l.hold("a")
}

// deliveryGatheredBefore has a digest whose repetition became due after messages that wait: these are gathered all the
// same, and come first.
func deliveryGatheredBefore(l *law) {
	l.gathers()
	l.raise(3)
	repeated := l.one("a")
	l.raise(4)
	l.Advance(time.Second)
	l.settle("a", repeated, notify.NotMade("Not sent"))
	l.Advance(2 * time.Second)
	next := l.one("a")
	if next.Digest == nil {
		l.Fatalf("claimed %+v, want a digest", next)
	}
	l.equal("gathered before the repetition", next.Digest.Size, 4)
	l.settle("a", next, delivered())
	l.raise(5)
	l.equal("claimed next", l.one("a").NotificationID, repeated.NotificationID)
	l.equal("gathered behind it", l.one("a").Digest.Size, 5)
}

func deliveryGathered(l *law) {
	l.gathers()
	messages := l.raise(2)
	list := l.claim("a", 1)
	l.equal("claimed within the bound", len(list), 1)
	l.settle("a", list[0], delivered())
	more := l.raise(3)
	messages = append(messages, more...)
	d := l.one("a")
	l.equal("reason", d.Reason, notify.ReasonDigest)
	l.equal("gathered", d.Digest.Size, 4)
	l.equal("claimed beside the digest", len(l.claim("a", 8)), 0)
	l.settle("a", d, delivered())
	for _, id := range messages {
		if status, _ := l.Message(id); status != notify.Delivered {
			l.Errorf("a member of the digest is %s", status)
		}
	}
}

// deliveryGatheredAgain has a digest fail that says that an alert fires, and the message that the alert ended be tried
// without success. A person sends the digest again: the end waits for it.
func deliveryGatheredAgain(l *law) {
	l.gathers()
	b := l.batch(l.rule, l.rule, l.rule)
	l.commit(b)
	digest := l.one("a")
	l.equal("reason", digest.Reason, notify.ReasonDigest)
	l.settle("a", digest, notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400, Error: "400"})
	l.must(l.Resolve(b.Instances[0].ID))
	end := l.one("a")
	l.equal("reason", end.Reason, notify.ReasonResolved)
	l.settle("a", end, unanswered())
	l.must(l.Retry(digest.NotificationID))
	l.Advance(2 * time.Minute)
	again := l.claim("a", 8)
	if len(again) != 1 || again[0].NotificationID != digest.NotificationID {
		l.Fatalf("claimed %+v, want the digest", again)
	}
	l.settle("a", again[0], delivered())
	end = l.one("a")
	l.equal("after it", end.Reason, notify.ReasonResolved)
	l.settle("a", end, delivered())
}
