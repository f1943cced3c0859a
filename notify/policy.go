package notify

import (
	"errors"
	"fmt"
	"time"
)

// Policy decides what follows an attempt.
type Policy struct {
	// Schedule holds the pauses after the first, second … counted attempt. A notification is
	// attempted once more than there are pauses.
	Schedule []time.Duration
	// Jitter is the share by which each pause is lengthened or shortened at random, 0 to 1.
	Jitter float64
	// DefaultHold is how long a webhook is held if its receiver asks for a pause without a
	// duration.
	DefaultHold time.Duration
	// MaxHold is the longest pause that a receiver can ask for.
	MaxHold time.Duration
	// Breaker says when messages to a receiver that is not responding are paused.
	Breaker BreakerPolicy
	// own is the schedule of the receiver, if it has one.
	own Schedule
}

// DefaultPolicy returns the schedule 1 min, 5 min, 30 min, 2 h, 24 h with a
// jitter of 20%, and a breaker that opens after five failures, for 30 s at
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

// Schedule is the schedule of a receiver.
type Schedule struct {
	// Pauses replace [Policy.Schedule]; nil means that they do not.
	Pauses []time.Duration
	// MaxAge is how long after it became due a message may still be attempted; 0 means no bound.
	MaxAge time.Duration
	// KeepsState says that the receiver keeps something open for each alert until it is notified of
	// the end. So it is notified of events of alerts however old they are.
	KeepsState bool
}

// With returns the policy for a receiver with its own schedule.
func (p Policy) With(own Schedule) Policy {
	if own.Pauses != nil {
		p.Schedule = own.Pauses
	}
	p.own = own
	return p
}

// ErrTooOld tells a person why a message ended for its age.
var ErrTooOld = errors.New("it is older than the maximum age of its receiver; send it again if it is still useful")

// TooOld reports whether a message that became due so long ago may not be attempted any more.
func (s Schedule) TooOld(reason Reason, waited time.Duration) bool {
	return s.MaxAge > 0 && waited > s.MaxAge && (!s.KeepsState || !reason.IsEvent())
}

// Validate returns an error if the policy makes no sense.
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
		return fmt.Errorf("webhook hold is %v, and its maximum %v; both must be positive, and the hold must not exceed the maximum", p.DefaultHold, p.MaxHold)
	}
	return p.Breaker.Validate()
}

// maxUncounted is how many attempts at a message may remain uncounted. If there are more and the
// message is older than the schedule, it ends when its receiver asks for the next pause.
const maxUncounted = 100

// notMadePause is how long a message waits if its call was not made.
const notMadePause = time.Second

// Decision is what a settlement writes.
type Decision struct {
	// Status is terminal, or Retrying.
	Status Status
	// Wait is the pause before the next attempt, when Status is Retrying.
	Wait time.Duration
	// Counts says whether the attempt counts against the schedule.
	Counts bool
	// Hold, if positive, is the least time for which the whole webhook is held.
	Hold time.Duration
	// Disable disables the webhook, with the error of the outcome as the reason.
	Disable bool
}

// Span is how long the schedule lasts, without jitter. If a receiver asks for pauses for longer
// than that, the messages that have waited for as long are exhausted.
func (p Policy) Span() (span time.Duration) {
	for _, pause := range p.Schedule {
		span += pause
	}
	return span
}

// Decide returns what follows the outcome of an attempt at d. random is uniform in [0, 1) and
// decides the jitter.
//
// These attempts do not count against the schedule:
//
//   - A first attempt in which nothing was sent. It is repeated at once, because broken idle
//     connections and restarting receivers are usual, and a repeat cannot be a duplicate.
//   - An attempt that was not made, whatever its number.
//   - An attempt that found the receiver gone. The message waits until a person has taken care of
//     its webhook.
//   - An attempt whose receiver asks for a pause. But if that happens again and again to one
//     message, and the message is older than the schedule, the message is exhausted.
//
// A message whose next attempt would come after the receiver's maximum age is exhausted at once.
func (p Policy) Decide(o Outcome, d *Delivery, random float64) Decision {
	next := p.decide(o, d, random)
	if repeats := o.Verdict == VerdictRetry || o.Verdict == VerdictUnknown || o.Verdict == VerdictThrottled; repeats && next.Status == Retrying &&
		p.own.TooOld(d.Reason, d.Waited+next.Wait) {
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
