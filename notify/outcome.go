package notify

import (
	"fmt"
	"time"
)

// Verdict is what an attempt means for its notification.
type Verdict int

// The verdicts.
const (
	// VerdictUnknown means that the end of the attempt was not seen.
	VerdictUnknown Verdict = iota
	// VerdictDelivered means that the receiver accepted the message.
	VerdictDelivered
	// VerdictRetry means that a later attempt may succeed.
	VerdictRetry
	// VerdictThrottled means that the receiver asked for a pause: the whole
	// webhook is held, and the attempt does not count.
	VerdictThrottled
	// VerdictRefused means that the receiver will never accept this message.
	VerdictRefused
	// VerdictGone means that the endpoint will never accept any message.
	VerdictGone
	// VerdictNotMade means that no call was made, so nothing is known about the receiver: the
	// webhook no longer wanted the message, or the claim may have expired.
	VerdictNotMade
)

// String returns the verdict as it is stored and shown.
func (v Verdict) String() string {
	switch v {
	case VerdictUnknown:
		return "UNKNOWN"
	case VerdictDelivered:
		return "DELIVERED"
	case VerdictRetry:
		return "RETRY"
	case VerdictThrottled:
		return "THROTTLED"
	case VerdictRefused:
		return "REFUSED"
	case VerdictGone:
		return "GONE"
	case VerdictNotMade:
		return "NOT_MADE"
	}
	return fmt.Sprintf("VERDICT_%d", int(v))
}

// Outcome is the result of an attempt.
type Outcome struct {
	Verdict Verdict
	// StatusCode is the HTTP status or the SMTP code; 0 if there was no answer.
	StatusCode int
	// Head is the head of the answer; nil if there was none.
	Head *ResponseHead
	// Response is the beginning of the answer's body as clean text, at most 4 KiB.
	Response string
	// RetryAfter is how long the receiver asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// NothingSent is true if the attempt failed before the first byte of the request (name
	// resolution, dial, TLS). Then a repeat cannot be a duplicate.
	NothingSent bool
	// Error says why the message was not delivered, for people and without secrets; empty if it was
	// delivered.
	Error string
	// Reached are all recipients that have the message by now, if there are several and not all
	// accepted it. If it is empty, they are the same as before. No name contains a line break.
	Reached []string
	// Posted is the place of the message; nil if the receiver does not return it.
	Posted *Posted
	// Reference is the receiver's id of what the message opened. It is empty if the receiver says
	// that what [Delivery].Reference names is gone, and nil if it says nothing.
	Reference *string
	// Duration is the time from dialling to the end of the answer.
	Duration time.Duration
}

// NotMade returns the outcome of an attempt without a call.
func NotMade(why string) Outcome {
	return Outcome{Verdict: VerdictNotMade, NothingSent: true, Error: why}
}

// ParseVerdict returns the verdict named s, or [VerdictUnknown] for any other text.
func ParseVerdict(s string) Verdict {
	for v := VerdictDelivered; v <= VerdictNotMade; v++ {
		if v.String() == s {
			return v
		}
	}
	return VerdictUnknown
}
