package dispatch

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// Store stores the outbox and the record.
type Store interface {
	// Claim takes due messages, stores their bodies and records that their attempts begin, in one
	// transaction. Then it asks once more which webhooks still want them. It may return both an
	// error and some messages; these are claimed.
	Claim(ctx context.Context, request ClaimRequest) (Claimed, error)
	// Renew extends leases from now on, and returns how long each claim that is still valid lasts.
	// Missing claims are no longer valid. A claim that another transaction is writing to at the
	// moment may be left as it is.
	Renew(ctx context.Context, held []Held, lease time.Duration) (left map[Held]time.Duration, err error)
	// Settle stores outcomes and their consequences. It returns a result for each, in their order.
	// If it returns an error, nothing was written. It waits for no row that somebody keeps locked
	// for longer than about a second, because other outcomes may wait for it.
	Settle(ctx context.Context, settlements []Settlement) ([]Settled, error)
}

// ClaimRequest describes what a dispatcher has room for.
type ClaimRequest struct {
	Replica string
	Lease   time.Duration
	// Webhooks are those for which a message is known to have become due. The store also looks for
	// others.
	Webhooks []uuid.UUID
	// Deal distributes the free slots over the webhooks for which a message is due.
	Deal func(due []Due) []Slots
	// Render makes the body of a message that has none. problem says why the body is a fallback. A
	// message that cannot be rendered at all ends as FAILED.
	Render func(d *notify.Delivery) (body notify.Body, problem string, err error)
	// Schedule is the schedule of a webhook's receiver; nil means the zero value for all. Messages
	// that are [notify.Schedule.TooOld] end as EXHAUSTED, without an attempt.
	Schedule func(w *notify.Webhook) notify.Schedule
}

// ScheduleOf returns the schedule of a webhook's receiver.
func (r *ClaimRequest) ScheduleOf(w *notify.Webhook) notify.Schedule {
	if r.Schedule == nil {
		return notify.Schedule{}
	}
	return r.Schedule(w)
}

// Claimed is the result of a claim.
type Claimed struct {
	Deliveries []notify.Delivery
	// Unwanted are webhooks that, after the commit, do not want their messages any more: they were
	// edited since, are disabled or held, or are not responding and the probe is another message.
	// Unchecked is why this could not be checked; then no call may be made.
	Unwanted  []uuid.UUID
	Unchecked error
	// Next is the time until the next look is worthwhile, by the store's clock: until a retry, the
	// end of a lease or a hold, or messages that this look may have overlooked. It is 0 if there is
	// nothing to wait for. It does not know rows that are written later.
	Next time.Duration
}

// Due is a webhook with due messages, and its limits.
type Due struct {
	WebhookID     uuid.UUID
	MaxConcurrent int
	// RatePerSecond is 0 if there is no limit. Otherwise Tokens is how many messages the rate
	// allows at the instant of the claim; it is a fraction below 1 if none is allowed yet.
	RatePerSecond float64
	Tokens        float64
	// Probe says that the receiver has not responded, or has asked for a pause. One message goes
	// first.
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

// claimOf returns the claim of a delivery.
func claimOf(d *notify.Delivery) Held { return Held{d.NotificationID, d.Token} }

// Settlement is the outcome of an attempt, and its consequences.
type Settlement struct {
	TenantID       string
	NotificationID uuid.UUID
	WebhookID      uuid.UUID
	// WebhookVersion is the version of the webhook that the attempt was made for. The outcome does
	// not count against a version that was edited since.
	WebhookVersion int64
	Token          int64
	Attempt        int
	// Replica is the replica that made the attempt.
	Replica  string
	Outcome  notify.Outcome
	Decision notify.Decision
	// Breaker returns the next state of the webhook's breaker at an instant. probe says that the
	// attempt was its probe. If Breaker is nil, the state does not change.
	Breaker func(was notify.Breaker, probe bool, now time.Time) notify.Breaker
	// Message is the posted message; nil if there is none that can be changed later.
	Message *notify.Message
	// Reference is the receiver's name for the alert, by its answer; nil if the answer says
	// nothing.
	Reference *notify.Reference
}

// Settled is the result of storing an outcome.
type Settled struct {
	// Fenced says that the claim is no longer valid. The outcome is stored with its attempt, and
	// nothing else was written, except that a success ends the message.
	Fenced bool
	// Unapplied is why the outcomes of this call were not applied to their webhooks. It is set on
	// only one of the results.
	Unapplied error
}
