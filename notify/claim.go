package notify

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrFenced says that a claim has passed to somebody else, or that its message has
// ended already.
var ErrFenced = errors.New("the lease was lost")

// Store keeps the outbox and the record.
type Store interface {
	// Claim takes due messages, stores their bodies and records that their attempts
	// begin, in one transaction, and then asks once more which webhooks want them. With an
	// error it may still return some, which are claimed.
	Claim(ctx context.Context, request ClaimRequest) (Claimed, error)
	// Renew extends leases from now on, and returns for how long each claim that still stands
	// does so; those that are missing stand no longer. A claim that somebody is writing to
	// just now may be left as it is.
	Renew(ctx context.Context, held []Held, lease time.Duration) (left map[Held]time.Duration, err error)
	// Settle stores outcomes and what follows from them. There is a result for
	// each, in their order; with an error nothing was written.
	Settle(ctx context.Context, settlements []Settlement) ([]Settled, error)
}

// ClaimRequest says what a dispatcher has room for.
type ClaimRequest struct {
	Replica string
	Lease   time.Duration
	// Webhooks are those for which something is known to have become due; the store
	// looks for others, too.
	Webhooks []uuid.UUID
	// Deal shares free slots out over the webhooks for which something is due.
	Deal func(due []Due) []Slots
	// Render makes the body of a message that has none; problem says why it is a
	// fallback. A message that cannot be rendered at all ends as FAILED.
	Render func(d *Delivery) (body Body, problem string, err error)
	// MaxAge is how long after they became due messages to a webhook are sent, 0 for ever;
	// nil is for ever for all. An older one ends as EXHAUSTED, without an attempt.
	MaxAge func(w *Webhook) time.Duration
	// KeepsState is [Schedule.KeepsState] of a webhook; nil is false for all.
	KeepsState func(w *Webhook) bool
}

// Keeps reports whether a message about what happened to an alert is sent to a webhook although it is
// older than the webhook wants to hear of.
func (r *ClaimRequest) Keeps(w *Webhook) bool { return r.KeepsState != nil && r.KeepsState(w) }

// TooOld reports whether a claimed message is not sent any more.
func (r *ClaimRequest) TooOld(w *Webhook, waited time.Duration) bool {
	if r.MaxAge == nil {
		return false
	}
	most := r.MaxAge(w)
	return most > 0 && waited > most
}

// ErrTooOld tells a person why a message ended for its age.
var ErrTooOld = errors.New("it is older than the maximum age of its receiver; send it again if it is still useful")

// Claimed is what a claim took, and when to look again.
type Claimed struct {
	Deliveries []Delivery
	// Unwanted are webhooks that, after the commit, do not want their messages any more:
	// edited since, off or held, or they do not answer, and another message is the probe.
	// Unchecked is why nobody could tell, and then no call may be made.
	Unwanted  []uuid.UUID
	Unchecked error
	// Next is the time until it is worth looking again, by the store's clock: a retry, a
	// lease that lapses, a hold that ends, what this look may have passed over. 0 when
	// nothing is known. Rows written later are not known to it.
	Next time.Duration
}

// Due is a webhook for which something is due, with its limits.
type Due struct {
	WebhookID     uuid.UUID
	MaxConcurrent int
	// RatePerSecond is 0 for no bound; else Tokens is how many messages the rate
	// allows at the instant of the claim, a fraction of one when none yet.
	RatePerSecond float64
	Tokens        float64
	// Probe says that the receiver has not answered, or has asked for a pause: one
	// message goes first.
	Probe bool
}

// Slots is how many messages of a webhook may be claimed.
type Slots struct {
	WebhookID uuid.UUID
	Slots     int
}

// Held is a claim on a message.
type Held struct {
	NotificationID uuid.UUID
	Token          int64
}

// held returns the claim of a delivery.
func (d *Delivery) held() Held { return Held{d.NotificationID, d.Token} }

// Settlement is what came of an attempt, and what follows.
type Settlement struct {
	TenantID       string
	NotificationID uuid.UUID
	WebhookID      uuid.UUID
	// WebhookVersion is that for which the attempt was made: what it tells of the
	// receiver is not held against what an edit has made of the webhook since.
	WebhookVersion int64
	Token          int64
	Attempt        int
	// Replica made the attempt.
	Replica  string
	Outcome  Outcome
	Decision Decision
	// Breaker returns what becomes of the webhook's breaker at an instant. Probe
	// tells that the attempt was its probe. Nil leaves the breaker alone.
	Breaker func(was Breaker, probe bool, now time.Time) Breaker
	// Message is what was posted, nil when nothing was that can be changed.
	Message *Message
	// Reference is what the answer says of how the receiver knows the alert; nil when nothing.
	Reference *Reference
}

// Settled tells of an outcome that was to be stored.
type Settled struct {
	// Fenced says that the claim no longer stands: the outcome is kept on its attempt,
	// and nothing else was written, unless a success ended the message.
	Fenced bool
	// Unjudged is why the outcomes stored with this one were not judged for their webhooks; of these
	// one alone says so.
	Unjudged error
}
