package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/ruleset"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

func delivered() notify.Outcome {
	return notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200}
}

func unanswered() notify.Outcome {
	return notify.Outcome{Verdict: notify.VerdictRetry, Error: "timeout"}
}

func deliveryClaimed(l *law) {
	messages := l.raise(1)
	first := l.one("a")
	l.equal("attempt", first.Attempt, 1)
	l.equal("fresh", first.Fresh, true)
	l.equal("claimed beside", len(l.claim("b", 8)), 0)
	l.Advance(claimFor + time.Second)
	second := l.one("b")
	l.equal("attempt", second.Attempt, 2)
	l.equal("after an unknown one", second.AfterUnknown, true)
	l.equal("fresh", second.Fresh, false)
	if second.Token == first.Token || !bytes.Equal(second.Body.Content, first.Body.Content) {
		l.Errorf("token %d after %d, body %q after %q", second.Token, first.Token, second.Body.Content, first.Body.Content)
	}
	l.equal("settled", l.settle("b", second, delivered()), true)
	l.is(messages[0], notify.Delivered, "UNKNOWN", "DELIVERED")
}

func deliveryFenced(l *law) {
	messages := l.raise(1)
	first := l.one("a")
	l.Advance(claimFor + time.Second)
	second := l.one("b")
	l.equal("a failure of the former claimant counts", l.settle("a", first, unanswered()), false)
	l.is(messages[0], notify.Retrying, "RETRY", "UNKNOWN")
	l.equal("claimed meanwhile", len(l.claim("c", 8)), 0)
	l.equal("a success of the former claimant counts", l.settle("a", first, delivered()), false)
	l.is(messages[0], notify.Delivered, "DELIVERED", "UNKNOWN")
	l.equal("the present claimant's outcome counts", l.settle("b", second, unanswered()), false)
	l.is(messages[0], notify.Delivered, "DELIVERED", "RETRY")
	l.equal("claimed afterwards", len(l.claim("c", 8)), 0)
}

// renew renews a claim, and returns whether it is lost.
func (l *law) renew(d notify.Delivery) (lost bool) {
	l.Helper()
	claim := dispatch.Held{NotificationID: d.NotificationID, Token: d.Token}
	claims, err := l.Outbox.Renew(l.Context(), []dispatch.Held{claim}, claimFor)
	l.must(err)
	left, valid := claims[claim]
	if valid && (left > claimFor || left < claimFor*2/3) {
		l.Errorf("a claim that was renewed is valid for %v, want %v", left, claimFor)
	}
	return !valid
}

func deliveryRenewed(l *law) {
	l.raise(1)
	d := l.one("a")
	for range 4 {
		l.Advance(claimFor / 2)
		l.equal("lost", l.renew(d), false)
		l.equal("claimed beside", len(l.claim("b", 8)), 0)
	}
	l.Advance(claimFor + time.Second)
	l.one("b")
	l.equal("lost to another one", l.renew(d), true)
}

func deliveryChecked(l *law) {
	l.raise(4)
	l.one("a")
	l.equal("unwanted as it is", l.unwanted, false)
	l.meanwhile = func() { l.must(l.EnableWebhook(l.webhook, false)) }
	l.one("a")
	l.equal("unwanted when it was disabled", l.unwanted, true)
	l.must(l.EnableWebhook(l.webhook, true))
	l.meanwhile = func() { l.must(l.EnableWebhook(l.webhook, false)); l.must(l.EnableWebhook(l.webhook, true)) }
	l.one("a")
	l.equal("unwanted when it was edited", l.unwanted, true)
	l.meanwhile = nil
	l.one("a")
	l.equal("unwanted after the edit", l.unwanted, false)
}

func deliveryRetried(l *law) {
	messages := l.raise(1)
	l.settle("a", l.one("a"), unanswered())
	l.is(messages[0], notify.Retrying, "RETRY")
	l.Advance(50 * time.Second)
	l.equal("claimed too early", len(l.claim("a", 8)), 0)
	l.Advance(11 * time.Second)
	d := l.one("a")
	l.equal("counted", d.CountedAttempts, 1)
	l.settle("a", d, notify.Outcome{Verdict: notify.VerdictNotMade, NothingSent: true})
	l.Advance(2 * time.Second)
	d = l.one("a")
	l.equal("counted after one that was not made", d.CountedAttempts, 1)
	l.settle("a", d, notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400, Error: "400"})
	l.is(messages[0], notify.Failed, "RETRY", "NOT_MADE", "REFUSED")
}

// deliveryReached: recipients that have the message are remembered until it ends, whatever the
// outcome of later attempts, but not if the claim was lost.
func deliveryReached(l *law) {
	messages := l.raise(1)
	later := func() notify.Delivery { l.Advance(3 * time.Hour); return l.one("a") }
	partly := func(reached ...string) notify.Outcome {
		return notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 450, Error: "450", Reached: reached}
	}
	d := l.one("a")
	l.equal("before the first attempt", len(d.Reached), 0)
	l.settle("a", d, partly("kim@example.com"))
	d = later()
	l.equal("after a part", strings.Join(d.Reached, " "), "kim@example.com")
	l.settle("a", d, unanswered())
	d = later()
	l.equal("after no answer", strings.Join(d.Reached, " "), "kim@example.com")
	lost := d
	d = later()
	l.equal("when the outcome of an attempt is unknown", strings.Join(d.Reached, " "), "kim@example.com")
	l.equal("a part under a lost claim counts", l.settle("a", lost, partly("kim@example.com", "lost@example.com")), false)
	l.settle("a", d, partly("kim@example.com", "ann@example.com"))
	d = later()
	l.equal("after another part", strings.Join(d.Reached, " "), "kim@example.com ann@example.com")
	l.settle("a", d, notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 550, Error: "550"})
	l.is(messages[0], notify.Failed, "RETRY", "RETRY", "RETRY", "RETRY", "REFUSED")
	l.must(l.Retry(messages[0]))
	l.equal("when a person sends it again", len(l.one("a").Reached), 0)
}

// deliveryReference: the last id that a receiver has given to an alert is available to the later
// messages about it, even if the claim of that attempt was lost, until the receiver does not know
// the id any more.
func deliveryReference(l *law) {
	named := func(id string) notify.Outcome {
		o := delivered()
		o.Reference = &id
		return o
	}
	gone := unanswered()
	gone.Reference = new(string)
	l.raise(2)
	first := l.one("a")
	l.equal("before the first answer", first.Reference, "")
	l.Advance(claimFor + time.Second)
	second := l.claim("b", 1)[0]
	l.equal("the same again", second.NotificationID, first.NotificationID)
	l.settle("a", first, named("1"))
	l.must(l.Retry(first.NotificationID))
	again := l.claim("a", 8)
	l.equal("claimed", len(again), 2)
	for _, d := range again {
		if want := map[bool]string{true: "1"}[d.NotificationID == first.NotificationID]; d.Reference != want {
			l.Errorf("%s: reference %q, want %q", d.NotificationID, d.Reference, want)
		}
		o := delivered()
		if d.NotificationID == first.NotificationID {
			o = named("2")
		}
		l.settle("a", d, o)
	}
	l.settle("b", second, named("3"))
	l.must(l.Retry(first.NotificationID))
	d := l.one("a")
	l.equal("the last one named", d.Reference, "3")
	stale := d
	stale.Reference = "2"
	l.settle("a", d, gone)
	l.Advance(2 * time.Minute)
	d = l.one("a")
	l.equal("after it is gone", d.Reference, "")
	l.settle("a", d, named("4"))
	l.settle("a", stale, gone)
	l.must(l.Retry(first.NotificationID))
	l.equal("when another one is gone", l.one("a").Reference, "4")
}

// deliveryNotMade: a body is made again if the attempt that it was made for was not made. Afterwards it stays.
func deliveryNotMade(l *law) {
	l.raise(1)
	l.settle("a", l.one("a"), notify.NotMade("Not sent"))
	l.Advance(2 * time.Second)
	d := l.one("a")
	l.equal("fresh after an attempt that was not made", d.Fresh, true)
	l.settle("a", d, unanswered())
	l.Advance(2 * time.Minute)
	d = l.one("a")
	l.equal("fresh after one that was made", d.Fresh, false)
	l.settle("a", d, notify.NotMade("Not sent"))
	l.Advance(2 * time.Second)
	l.equal("fresh after both", l.one("a").Fresh, false)
}

// deliveryUnrendered: if there is no body, none is stored.
func deliveryUnrendered(l *law) {
	messages := l.raise(1)
	l.unknown = true
	d := l.one("a")
	if d.Body != nil || d.Fresh || d.Problem == "" {
		l.Errorf("claimed with %+v, fresh %v, problem %q", d.Body, d.Fresh, d.Problem)
	}
	l.settle("a", d, notify.Outcome{Verdict: notify.VerdictGone, NothingSent: true, Error: "there is no such receiver"})
	l.must(l.EnableWebhook(l.webhook, true))
	l.unknown = false
	d = l.one("a")
	if d.Body == nil || !d.Fresh || d.Problem != "" {
		l.Fatalf("then claimed with %+v, fresh %v, problem %q", d.Body, d.Fresh, d.Problem)
	}
	frozen := d.Body.Content
	l.Advance(claimFor + time.Second)
	if d = l.one("b"); d.Fresh || !bytes.Equal(d.Body.Content, frozen) {
		l.Errorf("then %q after %q", d.Body.Content, frozen)
	}
	l.settle("b", d, delivered())
	l.is(messages[0], notify.Delivered, "GONE", "UNKNOWN", "DELIVERED")
}

// deliveryOrdered: the message about the end of a failure waits for the one about the failure.
func deliveryOrdered(l *law) {
	l.webhook = l.operators
	b := l.batch()
	b.Health = failing(l.rule.ID, "no")
	l.commit(b)
	first := l.one("a")
	b = l.batch()
	b.Health = map[uuid.UUID]ruleset.Health{l.rule.ID: {}}
	l.commit(b)
	l.equal("claimed while the first is under way", len(l.claim("b", 8)), 0)
	l.settle("a", first, unanswered())
	l.Advance(50 * time.Second)
	l.equal("claimed while the first waits for its next attempt", len(l.claim("b", 8)), 0)
	l.Advance(11 * time.Second)
	again := l.one("b")
	l.equal("claimed after the pause", again.NotificationID, first.NotificationID)
	l.settle("b", again, delivered())
	second := l.one("a")
	l.equal("claimed after the first", second.Reason, notify.ReasonRuleRecovered)
	l.settle("a", second, delivered())
	l.is(second.NotificationID, notify.Delivered, "DELIVERED")
	// The same holds for messages that a user sends again, in whatever order.
	l.must(l.Retry(second.NotificationID))
	l.must(l.Retry(first.NotificationID))
	again = l.one("a")
	l.equal("claimed first of what is sent again", again.NotificationID, first.NotificationID)
	l.equal("claimed beside it", len(l.claim("b", 8)), 0)
	l.settle("a", again, delivered())
	l.equal("claimed after it", l.one("a").NotificationID, second.NotificationID)
	// A claim whose lease has expired is no running attempt: the message waits for an earlier one
	// that is sent again.
	l.Advance(claimFor + time.Second)
	l.must(l.Retry(first.NotificationID))
	again = l.one("b")
	l.equal("claimed first beside an expired claim", again.NotificationID, first.NotificationID)
	l.equal("claimed beside it", len(l.claim("c", 8)), 0)
	l.settle("b", again, delivered())
	second = l.one("b")
	l.equal("claimed after it", second.Reason, notify.ReasonRuleRecovered)
	l.settle("b", second, delivered())
	l.is(second.NotificationID, notify.Delivered, "DELIVERED", "UNKNOWN", "DELIVERED")
}

func throttled() notify.Outcome {
	return notify.Outcome{Verdict: notify.VerdictThrottled, StatusCode: 429, RetryAfter: time.Minute, Error: "429"}
}

func deliveryHeld(l *law) {
	l.raise(3)
	l.settle("a", l.one("a"), throttled())
	l.equal("claimed while it is held", len(l.claim("a", 8)), 0)
	l.Advance(61 * time.Second)
	probe := l.claim("a", 8)
	l.equal("probes", len(probe), 1)
	l.equal("claimed beside the probe", len(l.claim("b", 8)), 0)
	l.settle("a", probe[0], delivered())
	l.equal("claimed after the probe", len(l.claim("a", 8)), 2)
}

// expire ends messages that have waited for a day for receivers that ask for pauses.
func (l *law) expire() int {
	l.Helper()
	ended, err := l.ExpireHeld(24 * time.Hour)
	l.must(err)
	return ended
}

func deliveryHeldForLong(l *law) {
	messages := l.raise(3)
	pause := throttled()
	pause.RetryAfter = 50 * time.Minute
	l.settle("a", l.one("a"), pause)
	for range 24 {
		l.equal("ended meanwhile", l.expire(), 0)
		l.Advance(61 * time.Minute)
		l.settle("a", l.one("a"), pause)
	}
	young := l.raise(1)[0]
	l.equal("ended after a day", l.expire(), 3)
	l.equal("ended again", l.expire(), 0)
	for _, id := range messages {
		if status, _ := l.Message(id); status != notify.Exhausted {
			l.Errorf("a message is %s", status)
		}
	}
	l.is(young, notify.Pending)
	l.Advance(61 * time.Minute)
	l.settle("a", l.one("a"), delivered())
	l.is(young, notify.Delivered, "DELIVERED")
}

// deliveryOldWhenHeld: the message was already old when its receiver asked for a pause, as its
// webhook was off: the time without requests does not count as waiting for the receiver.
func deliveryOldWhenHeld(l *law) {
	l.raise(2)
	l.settle("a", l.one("a"), throttled())
	l.must(l.EnableWebhook(l.webhook, false))
	l.Advance(63 * time.Hour)
	l.must(l.EnableWebhook(l.webhook, true))
	l.settle("a", l.one("a"), throttled())
	l.equal("ended after the webhook was off", l.expire(), 0)
	l.Advance(63 * time.Hour)
	l.equal("ended before the receiver was asked", l.expire(), 0)
	l.settle("a", l.one("a"), throttled())
	l.equal("ended after nobody asked for days", l.expire(), 0)
	l.Advance(61 * time.Second)
	l.settle("a", l.one("a"), delivered())
	l.one("a")
}

func deliveryBroken(l *law) {
	l.raise(8)
	list := l.claim("a", 5)
	for _, d := range list {
		l.settle("a", d, unanswered())
	}
	l.equal("claimed while the breaker is open", len(l.claim("a", 8)), 0)
	l.Advance(31 * time.Second)
	probe := l.claim("a", 8)
	l.equal("probes", len(probe), 1)
	l.equal("claimed beside the probe", len(l.claim("b", 8)), 0)
	l.settle("a", probe[0], unanswered())
	l.Advance(31 * time.Second)
	l.equal("claimed while it is open for longer", len(l.claim("a", 8)), 0)
	l.Advance(31 * time.Second)
	probe = l.claim("a", 8)
	l.equal("probes", len(probe), 1)
	l.settle("a", probe[0], delivered())
	if n := len(l.claim("a", 8)); n < 2 {
		l.Errorf("%d claimed after the probe", n)
	}
}

// deliveryUnrenderable: what cannot be sent ends, and takes the place neither of another message
// nor of the probe. A claim may leave the other message to the next one.
func deliveryUnrenderable(l *law) {
	messages := l.raise(9)
	for _, d := range l.claim("a", 5) {
		l.settle("a", d, unanswered())
	}
	l.Advance(31 * time.Second)
	l.broken = 3
	var probe []notify.Delivery
	for range 4 {
		if len(probe) == 0 {
			probe = l.claim("a", 8)
		}
	}
	l.equal("probes", len(probe), 1)
	l.equal("the probe", probe[0].NotificationID, messages[8])
	for _, id := range messages[5:8] {
		l.is(id, notify.Failed, "NOT_MADE")
	}
	l.settle("a", probe[0], delivered())
	l.is(messages[8], notify.Delivered, "DELIVERED")
}

func deliveryGone(l *law) {
	messages := l.raise(2)
	l.settle("a", l.one("a"), notify.Outcome{Verdict: notify.VerdictGone, StatusCode: 410, Error: "410"})
	l.equal("claimed of a webhook that is off", len(l.claim("a", 8)), 0)
	l.must(l.EnableWebhook(l.webhook, true))
	list := l.claim("a", 8)
	l.equal("claimed once it is on", len(list), len(messages))
	for _, d := range list {
		l.equal("counted", d.CountedAttempts, 0)
	}
}
