package notify

import (
	"fmt"
	"time"
)

// Policy decides what follows an attempt.
type Policy struct {
	// Schedule holds the pauses after the first, second … counted attempt. A
	// notification is attempted once more than there are pauses.
	Schedule []time.Duration
	// Jitter is the share by which each pause is stretched or shortened, 0 to 1.
	Jitter float64
	// DefaultHold is how long a webhook is held when its receiver asks for a
	// pause without saying for how long.
	DefaultHold time.Duration
	// MaxHold bounds what a receiver can ask for.
	MaxHold time.Duration
	// Breaker says when a webhook whose receiver does not answer is left alone.
	Breaker BreakerPolicy
	// maxAge is [Schedule.MaxAge].
	maxAge time.Duration
}

// DefaultPolicy returns the schedule 1 min, 5 min, 30 min, 2 h, 24 h with a
// jitter of 20 %, and a breaker that opens after five failures, for 30 s at
// first and 10 min at most.
func DefaultPolicy() Policy {
	return Policy{
		Schedule:    []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour},
		Jitter:      0.2,
		DefaultHold: 30 * time.Second,
		MaxHold:     24 * time.Hour,
		Breaker:     BreakerPolicy{Threshold: 5, Pause: 30 * time.Second, MaxPause: 10 * time.Minute, Jitter: 0.2},
	}
}

// Schedule is what the receiver of a webhook has of its own.
type Schedule struct {
	// Pauses stand in for [Policy.Schedule]; nil leaves it.
	Pauses []time.Duration
	// MaxAge is how long after it became due a message is attempted at most; 0 is no bound.
	MaxAge time.Duration
	// KeepsState says that the receiver has whatever it was notified of open until it is notified of
	// the end: what happens to alerts is sent to it however old that is.
	KeepsState bool
}

// With returns the policy for a receiver that has a schedule of its own.
func (p Policy) With(own Schedule) Policy {
	if own.Pauses != nil {
		p.Schedule = own.Pauses
	}
	p.maxAge = own.MaxAge
	return p
}

// Validate reports a policy that cannot be meant.
func (p Policy) Validate() error {
	for i, pause := range p.Schedule {
		if pause <= 0 {
			return fmt.Errorf("retry schedule: pause %d is %v; it must be positive", i+1, pause)
		}
	}
	if p.Jitter < 0 || p.Jitter > 1 {
		return fmt.Errorf("retry jitter is %v; it must be between 0 and 1", p.Jitter)
	}
	if p.DefaultHold <= 0 || p.MaxHold < p.DefaultHold {
		return fmt.Errorf("webhook hold is %v, at most %v; both must be positive and the first not above the second", p.DefaultHold, p.MaxHold)
	}
	return p.Breaker.Validate()
}

// maxUncounted is how many attempts at a message may not count before one that is older than
// the schedule ends with the next pause that its receiver asks for.
const maxUncounted = 100

// notMadePause is how long a message rests whose call was not made.
const notMadePause = time.Second

// Decision is what a settlement writes.
type Decision struct {
	// Status is terminal, or Retrying.
	Status Status
	// Wait is the pause before the next attempt, when Status is Retrying.
	Wait time.Duration
	// Counts tells whether the attempt counts against the schedule.
	Counts bool
	// Hold, when positive, holds the whole webhook for that long at least.
	Hold time.Duration
	// Disable switches the webhook off, for the outcome's reason.
	Disable bool
}

// Span is how long the schedule lasts, without jitter. A receiver that asks for pauses for
// longer exhausts the messages that have waited for as long.
func (p Policy) Span() (span time.Duration) {
	for _, pause := range p.Schedule {
		span += pause
	}
	return span
}

// Decide returns what follows the outcome of an attempt at d; random is uniform in
// [0, 1) and places the jitter.
//
// A first attempt of which nothing was sent is repeated at once and does not
// count, because a broken idle connection or a restarting receiver is usual and
// a repeat cannot be a duplicate. Nor does one that was not made, whatever its number,
// nor one that found the receiver gone: the message waits until a person has seen to
// its webhook. One whose receiver asks for a pause does not count either; but a message ends
// for which it has done so again and again, while others went through. A message whose next
// attempt would come after the receiver's own maximum age is exhausted at once.
func (p Policy) Decide(o Outcome, d *Delivery, random float64) Decision {
	next := p.decide(o, d, random)
	if repeats := o.Verdict == VerdictRetry || o.Verdict == VerdictUnknown || o.Verdict == VerdictThrottled; repeats && next.Status == Retrying &&
		p.maxAge > 0 && d.Waited+next.Wait > p.maxAge {
		next.Status, next.Wait = Exhausted, 0
	}
	return next
}

func (p Policy) decide(o Outcome, d *Delivery, random float64) Decision {
	switch o.Verdict {
	case VerdictDelivered:
		return Decision{Status: Delivered, Counts: true}
	case VerdictRefused:
		return Decision{Status: Failed, Counts: true}
	case VerdictGone:
		return Decision{Status: Retrying, Disable: true}
	case VerdictNotMade:
		return Decision{Status: Retrying, Wait: notMadePause}
	case VerdictThrottled:
		hold := o.RetryAfter
		if hold <= 0 {
			hold = p.DefaultHold
		}
		hold = min(hold, p.MaxHold)
		if d.Waited > p.Span() && d.Try-d.CountedAttempts > maxUncounted {
			return Decision{Status: Exhausted, Hold: hold}
		}
		return Decision{Status: Retrying, Wait: hold, Hold: hold}
	case VerdictRetry, VerdictUnknown:
	}
	if d.Try == 1 && o.NothingSent {
		return Decision{Status: Retrying}
	}
	if d.CountedAttempts >= len(p.Schedule) {
		return Decision{Status: Exhausted, Counts: true}
	}
	pause := p.Schedule[d.CountedAttempts]
	return Decision{Status: Retrying, Counts: true, Wait: pause + time.Duration((2*random-1)*p.Jitter*float64(pause))}
}
