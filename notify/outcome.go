package notify

import (
	"fmt"
	"time"
)

// Verdict says what an attempt means for its notification.
type Verdict int

// The verdicts.
const (
	// VerdictUnknown is an attempt whose end nobody has seen.
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
	// VerdictNotMade means that no call was made, which tells nothing of the receiver:
	// the webhook no longer wanted the message, or the claim may have been over.
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

// Outcome is what came of an attempt.
type Outcome struct {
	Verdict Verdict
	// StatusCode is the status of HTTP or the code of SMTP, 0 when there was no answer.
	StatusCode int
	// Head is the head of the answer, nil when there was none.
	Head *ResponseHead
	// Response is the beginning of the answer's body, at most 4 KiB, clean text.
	Response string
	// RetryAfter is how long the receiver asked to wait; 0 when it did not say.
	RetryAfter time.Duration
	// NothingSent is true when the failure came before the first byte of the
	// request (name resolution, dial, TLS): a repeat cannot be a duplicate.
	NothingSent bool
	// Error tells a person why the message was not delivered, without secrets;
	// empty when it was.
	Error string
	// Reached are all the recipients that have the message by now, where it has several and
	// not all took it; empty leaves them as they were. None holds a line break.
	Reached []string
	// Posted is where the message stands; nil when the receiver does not say.
	Posted *Posted
	// Reference is the receiver's own id of what the message opened; empty where it says that what
	// [Delivery].Reference names is gone, nil when it does not say.
	Reference *string
	// Duration is the time from dialling to the end of the answer.
	Duration time.Duration
}

// NotMade is the outcome of an attempt without a call.
func NotMade(why string) Outcome {
	return Outcome{Verdict: VerdictNotMade, NothingSent: true, Error: why}
}

// ParseVerdict returns the verdict that s names, [VerdictUnknown] for any other text.
func ParseVerdict(s string) Verdict {
	for v := VerdictDelivered; v <= VerdictNotMade; v++ {
		if v.String() == s {
			return v
		}
	}
	return VerdictUnknown
}
