package simulate

import (
	"context"
	"errors"
	"time"

	"tocsin/notify"
)

// manner is how a receiver responds.
type manner int

const (
	answers manner = iota
	fails
	hangs
	takesAndBreaksOff
	throttles
	refuses
	isGone
	liesThatItFailed
	neverConnects
	manners
)

func (m manner) String() string {
	return [...]string{"answers", "fails", "hangs", "takes and breaks off", "throttles", "refuses", "is gone", "takes and says that it failed", "cannot be reached"}[m]
}

// receiver represents all receivers.
type receiver struct {
	// manner is how receivers respond to one request in oneIn.
	manner   manner
	oneIn    int
	rendered int
	// last is when a dispatcher was last active.
	last time.Time
}

// Send makes an attempt.
func (p *process) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	w := p.w
	sent := &sending{p: p, message: d.MessageID(), id: d.NotificationID, webhook: d.Webhook.ID, attempt: d.Attempt, token: d.Token, begunAt: d.At, body: string(d.Body.Content)}
	var out notify.Outcome
	key := d.MessageID()
	if w.asksFirst(d) {
		_ = w.do(ctx, p, "search", key, 0, func() error { return nil }) // it finds nothing, or gets no response
		if err := d.CheckClaim(); err != nil {
			return notify.NotMade(err.Error())
		}
		w.checkClaim(p, d)
	}
	// The request leaves, and the response arrives later; a dispatcher that loses its claim still
	// waits for it.
	if err := w.do(ctx, p, "send", key, 0, func() error {
		w.truth.sends(sent)
		return nil
	}); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if sent.ended = true; sent.at.IsZero() && errors.Is(context.Cause(ctx), notify.ErrFenced) {
			return notify.NotMade(context.Cause(ctx).Error())
		}
		return notify.Outcome{Verdict: notify.VerdictRetry, Error: err.Error(), NothingSent: sent.at.IsZero()}
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookTimeout)
	defer cancel()
	takes := time.Duration(0)
	if w.receiver.manner == hangs {
		takes = time.Hour
	}
	err := w.do(bounded, p, "answer", key, takes, func() error {
		out = w.answer(sent)
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	sent.ended, sent.endedAt = true, w.Now()
	if err != nil {
		sent.answered = false // no process received it
		return notify.Outcome{Verdict: notify.VerdictRetry, Error: "timeout"}
	}
	return out
}

const webhookTimeout = 10 * time.Second

// asksFirst reports whether the receiver of a delivery is first searched for what it has, as Jira
// is: with some seeds.
func (w *world) asksFirst(d *notify.Delivery) bool {
	return w.o.Seed%4 == 1 && d.Webhook.ID[len(d.Webhook.ID)-1]%2 == 0
}

// answer returns the receiver's response to a request.
func (w *world) answer(s *sending) notify.Outcome {
	m := w.receiver.manner
	if m != answers && w.receiver.oneIn > 1 && w.rand.IntN(w.receiver.oneIn) > 0 {
		m = answers
	}
	if m != answers {
		w.note("the receiver of %s %s", short(s.id), m)
	}
	switch m {
	case answers:
		s.accepted, s.answered = true, true
		w.truth.accepted(s)
		return notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200}
	case takesAndBreaksOff:
		s.accepted = true
		return notify.Outcome{Verdict: notify.VerdictRetry, Error: "connection reset"}
	case liesThatItFailed:
		s.accepted = true
		return notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 500, Error: "500"}
	case throttles:
		return notify.Outcome{Verdict: notify.VerdictThrottled, StatusCode: 429, RetryAfter: 20 * time.Second, Error: "429"}
	case refuses:
		return notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400, Error: "400"}
	case isGone:
		return notify.Outcome{Verdict: notify.VerdictGone, StatusCode: 410, Error: "410"}
	case neverConnects:
		return notify.Outcome{Verdict: notify.VerdictRetry, NothingSent: true, Error: "connection refused"}
	case fails, hangs, manners:
	}
	return notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 503, Error: "503"}
}
