package notify

import (
	"fmt"
	"net/http"
	"time"
)

// BreakerPolicy says when a breaker opens, and for how long.
type BreakerPolicy struct {
	// Threshold is the number of consecutive failures that opens the breaker.
	Threshold int
	// Pause is how long the breaker stays open at first. It doubles with each failing probe, up to
	// MaxPause.
	Pause, MaxPause time.Duration
	// Jitter is the share by which a pause is lengthened or shortened at random, 0 to 1.
	Jitter float64
}

// Validate returns an error if the policy makes no sense.
func (p BreakerPolicy) Validate() error {
	if p.Threshold < 1 {
		return fmt.Errorf("breaker threshold is %d; it must be at least 1", p.Threshold)
	}
	if p.Pause <= 0 || p.MaxPause < p.Pause {
		return fmt.Errorf("breaker pause is %v, and its maximum %v; both must be positive, and the pause must not exceed the maximum", p.Pause, p.MaxPause)
	}
	if p.Jitter < 0 || p.Jitter > 1 {
		return fmt.Errorf("breaker jitter is %v; it must be between 0 and 1", p.Jitter)
	}
	return nil
}

// Breaker is what the attempts of all replicas have shown about a webhook. The zero value is closed
// and has seen no failure. All instants are by Postgres's clock.
type Breaker struct {
	// Failures counts the failing attempts since the last answer.
	Failures int
	// Openings counts how often it opened in a row; 0 while it is closed.
	Openings int
	// OpenedAt is when it opened for the first time in the row; zero while it is closed.
	OpenedAt time.Time
	// Until is when the next probe may go out; zero while it is closed.
	Until time.Time
	// LastError is the error of the last failing attempt. It remains after a success.
	LastError   string
	LastErrorAt time.Time
	// Holds counts the consecutive pauses that the receiver has asked for. HeldSince is when the
	// first one began, HeldFor how long the last one lasts, and HeldUntil when it ends. If Holds is
	// not 0 when the pause ends, a probe goes first.
	Holds     int
	HeldSince time.Time
	HeldFor   time.Duration
	HeldUntil time.Time
}

// BreakerState is the state of a breaker.
type BreakerState int

// The states.
const (
	// BreakerClosed lets everything through.
	BreakerClosed BreakerState = iota
	// BreakerOpen lets nothing through.
	BreakerOpen
	// BreakerHalfOpen lets one probe through.
	BreakerHalfOpen
)

// String returns the state's name.
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("breaker(%d)", int(s))
}

// State returns the state of b at an instant. While the probe of a half-open breaker is on its way,
// no other message may be sent; the store knows this by the claim of the probe.
func (b Breaker) State(now time.Time) BreakerState {
	switch {
	case b.OpenedAt.IsZero():
		return BreakerClosed
	case now.Before(b.Until):
		return BreakerOpen
	default:
		return BreakerHalfOpen
	}
}

// Evidence is what one attempt shows about a receiver.
type Evidence struct {
	Outcome Outcome
	// Hold is the least time for which a receiver that asks for a pause is held.
	Hold time.Duration
	// Probe is true for the attempt that a half-open breaker let through.
	Probe bool
	// Now is the instant of the settlement.
	Now time.Time
	// Random is uniform in [0, 1) and decides the jitter.
	Random float64
}

// Next returns the state of the breaker after an attempt.
//
// Any answer below 500 closes it, because a receiver that refuses a message is alive. While it is
// open, only a failing probe keeps it open for longer. Failures of attempts that were under way
// when it opened are counted and have no other effect. A receiver that asks for a pause is held.
// Consecutive pauses grow, even if the receiver asks for the same time again.
func (p BreakerPolicy) Next(was Breaker, e Evidence) Breaker {
	next := was
	if e.Outcome.Verdict == VerdictThrottled {
		next = held(was, e)
	} else if !e.Now.Before(was.HeldUntil) {
		next.Holds, next.HeldSince, next.HeldFor, next.HeldUntil = 0, time.Time{}, 0, time.Time{}
	}
	if !e.Outcome.Unanswered() {
		next.Failures, next.Openings, next.OpenedAt, next.Until = 0, 0, time.Time{}, time.Time{}
		return next
	}
	next.Failures++
	next.LastError, next.LastErrorAt = e.Outcome.Error, e.Now
	closed := was.OpenedAt.IsZero()
	switch {
	case closed && next.Failures < p.Threshold, !closed && !e.Probe:
		return next
	case closed:
		next.OpenedAt = e.Now
	}
	next.Openings++
	next.Until = e.Now.Add(p.pause(next.Openings, e.Random))
	return next
}

const (
	// maxGrownHold is how long a pause can grow beyond the time that the receiver asks for.
	maxGrownHold = time.Hour
	// inARow is the time after a pause within which the next one is consecutive. After a longer
	// time without a message, it is unknown what the receiver would have answered.
	inARow = time.Hour
)

// held begins a pause. Attempts that were under way when it began do not make it longer than
// requested.
func held(b Breaker, e Evidence) Breaker {
	hold := e.Hold
	if e.Now.Before(b.HeldUntil) {
		if until := e.Now.Add(hold); until.After(b.HeldUntil) {
			b.HeldUntil, b.HeldFor = until, hold
		}
		return b
	}
	if b.Holds > 0 && !b.HeldSince.IsZero() && e.Now.Sub(b.HeldUntil) <= inARow {
		hold = max(hold, min(2*b.HeldFor, maxGrownHold))
	} else {
		b.Holds, b.HeldSince = 0, e.Now
	}
	b.Holds++
	b.HeldFor, b.HeldUntil = hold, e.Now.Add(hold)
	return b
}

// pause returns how long an opening lasts. Openings are numbered from 1.
func (p BreakerPolicy) pause(opening int, random float64) time.Duration {
	pause := p.Pause
	for range opening - 1 {
		if pause *= 2; pause >= p.MaxPause {
			break
		}
	}
	pause = min(pause, p.MaxPause)
	return min(pause+time.Duration((2*random-1)*p.Jitter*float64(pause)), p.MaxPause)
}

// Unanswered reports whether the receiver gave no proper answer: none at all, or a 5xx status
// without a request for a pause.
func (o Outcome) Unanswered() bool {
	switch o.Verdict {
	case VerdictRetry, VerdictUnknown:
		return o.StatusCode == 0 || o.StatusCode >= http.StatusInternalServerError
	case VerdictDelivered, VerdictThrottled, VerdictRefused, VerdictGone, VerdictNotMade:
	}
	return false
}

// FlowState says whether messages are sent to a webhook.
type FlowState string

// The flow states, from harmless to grave.
const (
	// FlowOK means that due messages are sent.
	FlowOK FlowState = "ok"
	// FlowHeld means that messages wait because the receiver asked for a pause.
	FlowHeld FlowState = "held"
	// FlowOpen means that messages wait because the receiver is not responding. A probe follows.
	FlowOpen FlowState = "open"
	// FlowOff means that messages wait for a person.
	FlowOff FlowState = "off"
)

// Flow is how messages flow to a webhook.
type Flow struct {
	State FlowState
	// Since is when [FlowOpen] began, with the first opening; zero for other states.
	Since time.Time
	// Until is when the state ends. For [FlowOpen] it is when the next probe may go out. It is zero
	// for [FlowOK] and [FlowOff].
	Until time.Time
	// Failures counts the consecutive unanswered attempts.
	Failures int
	// LastError is why the last unanswered attempt failed; empty before the first.
	LastError   string
	LastErrorAt time.Time
}

// FlowOf returns how messages flow to w at an instant. If several states apply, it is the gravest.
func FlowOf(w *Webhook, b Breaker, now time.Time) Flow {
	f := Flow{State: FlowOK, Failures: b.Failures, LastError: b.LastError, LastErrorAt: b.LastErrorAt}
	switch {
	case !w.Enabled:
		f.State = FlowOff
	case b.State(now) != BreakerClosed:
		f.State, f.Since, f.Until = FlowOpen, b.OpenedAt, b.Until
	case now.Before(w.HeldUntil):
		f.State, f.Until = FlowHeld, w.HeldUntil
	}
	return f
}
