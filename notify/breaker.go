package notify

import (
	"fmt"
	"net/http"
	"time"
)

// BreakerPolicy says when a webhook is left alone, and for how long.
type BreakerPolicy struct {
	// Threshold is the number of failing attempts in a row that opens the breaker.
	Threshold int
	// Pause is how long it stays open at first. It doubles with each failing
	// probe, up to MaxPause.
	Pause, MaxPause time.Duration
	// Jitter is the share by which a pause is stretched or shortened, 0 to 1.
	Jitter float64
}

// Validate reports a policy that cannot be meant.
func (p BreakerPolicy) Validate() error {
	if p.Threshold < 1 {
		return fmt.Errorf("breaker threshold is %d; it must be at least 1", p.Threshold)
	}
	if p.Pause <= 0 || p.MaxPause < p.Pause {
		return fmt.Errorf("breaker pause is %v, at most %v; both must be positive and the first not above the second", p.Pause, p.MaxPause)
	}
	if p.Jitter < 0 || p.Jitter > 1 {
		return fmt.Errorf("breaker jitter is %v; it must be between 0 and 1", p.Jitter)
	}
	return nil
}

// Breaker is what the attempts of all replicas tell about a webhook. Its zero
// value is closed and has seen no failure. All instants are Postgres's.
type Breaker struct {
	// Failures counts the failing attempts since the last one that was answered.
	Failures int
	// Openings counts the times in a row that it has opened; 0 while it is closed.
	Openings int
	// OpenedAt is when it first opened, zero while it is closed.
	OpenedAt time.Time
	// Until is when the next probe may go out, zero while it is closed.
	Until time.Time
	// LastError tells of the last failing attempt, also of one since made up for.
	LastError   string
	LastErrorAt time.Time
	// Holds counts the pauses in a row that the receiver has asked for, HeldSince is when the
	// first began, HeldFor how long the last one is, and HeldUntil when it ends. While Holds is
	// not 0 and the pause is over, a probe goes first.
	Holds     int
	HeldSince time.Time
	HeldFor   time.Duration
	HeldUntil time.Time
}

// BreakerState is where a breaker stands.
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

// State returns where b stands at an instant. A half-open breaker whose probe is
// on its way lets no other through; that is a claim, which the store keeps.
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

// Evidence is what an attempt tells a breaker.
type Evidence struct {
	Outcome Outcome
	// Hold is how long a receiver that asks for a pause is held at least.
	Hold time.Duration
	// Probe is true for the attempt that a half-open breaker let through.
	Probe bool
	// Now is the instant of the settlement.
	Now time.Time
	// Random is uniform in [0, 1) and places the jitter.
	Random float64
}

// Next returns what becomes of was.
//
// Any answer below 500 closes it: a receiver that refuses is alive. While it is
// open, only the probe opens it for longer; failures of attempts that were on
// their way when it opened are counted and change nothing else. A receiver that asks for
// a pause is held; pauses in a row grow, also where it asks for the same each time.
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
	// maxGrownHold is how far pauses grow beyond what a receiver asks for.
	maxGrownHold = time.Hour
	// inARow is how long after a pause the next one is still in a row with it. After a longer time
	// in which nothing was sent nobody knows what the receiver would have answered.
	inARow = time.Hour
)

// held begins a pause. What was on its way when it began makes it no longer than asked.
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

// pause returns how long the opening of a number, from 1, lasts.
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

// Unanswered tells whether the receiver gave no answer worth the name: none at
// all, or one that says it cannot answer (5xx without asking for a pause).
func (o Outcome) Unanswered() bool {
	switch o.Verdict {
	case VerdictRetry, VerdictUnknown:
		return o.StatusCode == 0 || o.StatusCode >= http.StatusInternalServerError
	case VerdictDelivered, VerdictThrottled, VerdictRefused, VerdictGone, VerdictNotMade:
	}
	return false
}

// FlowState says whether messages flow to a webhook.
type FlowState string

// The states of flow.
const (
	// FlowOK sends what is due.
	FlowOK FlowState = "ok"
	// FlowHeld waits because the receiver asked for it.
	FlowHeld FlowState = "held"
	// FlowOpen waits because the receiver does not answer; a probe follows.
	FlowOpen FlowState = "open"
	// FlowOff waits for a person.
	FlowOff FlowState = "off"
)

// Flow is how messages flow to a webhook.
type Flow struct {
	State FlowState
	// Since is when State began: of [FlowOpen] the first opening; zero for others.
	Since time.Time
	// Until is when it ends, or of [FlowOpen] when the next probe may go out;
	// zero for [FlowOK] and [FlowOff].
	Until time.Time
	// Failures counts the unanswered attempts in a row.
	Failures int
	// LastError tells why the last unanswered attempt was; empty before the first.
	LastError   string
	LastErrorAt time.Time
}

// FlowOf returns how messages flow to w at an instant. The gravest state counts.
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
