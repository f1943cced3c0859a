// Package notify gets notifications to their receivers.
//
// A notification is one message owed: one alert, one webhook, one reason. It is
// written in the transaction that raises the alert, together with a row in the
// outbox, which is the work that is left. The record (notifications, attempts,
// settlements) only grows; the outbox is small and hot, and a row leaves it in
// the transaction that settles its notification.
//
//	          ┌────────────── retry later ──────────────┐
//	          ▼                                         │
//	PENDING/RETRYING ──claim──▶ leased ──begin──▶ attempt ──settle──▶ DELIVERED
//	          ▲                   │                     │             FAILED
//	          └── lease lapses ◀──┴── process dies ◀────┘             EXHAUSTED
//
// Postgres is authoritative for all of it, and its clock alone is compared with
// leases. Three steps, each a transaction of its own, and none open during a call:
//
//   - Claim takes due rows with SKIP LOCKED under a lease and a token of its own for
//     each row: never more than there are free slots and, of a webhook of which
//     nothing has to be judged then, that may wait at the desk (handover.go). It is
//     made when something is known or said to be due, and there is room for it: where
//     all that is due has no room, the end of one of its attempts causes the next.
//   - Begin marks the attempt as begun in the row and writes the head of its request
//     and, with the first attempt, the body, which is rendered once and frozen: every
//     attempt sends the same bytes under the same webhook-id.
//     What waited under its claim while the webhook was edited, switched off or held,
//     or stopped answering, is withheld: its claim is given back, and a new one judges.
//   - Settle records the attempt and demands the token. Whoever lost its lease settles
//     nothing: its outcome is kept on its attempt, and the row belongs to the new
//     claimant, whose claim has recorded that attempt without outcome.
//
// Begin does what there are slots for in one statement (attempt.go), Settle what
// many attempts want at the same time (batch.go), and all leases of a dispatcher are
// renewed by one (keeper.go).
//
// # Handed over at birth
//
// Where evaluator and dispatcher are one process, a commit may write notifications
// that are claimed already, and hand them to the dispatcher once it stands
// ([Dispatcher.Reserve], reservation.go). It saves the claim and the reading, and
// changes no promise: the row has lease and token like any other, Begin demands
// the token, and if the process dies, or nobody knows whether the commit stands,
// the lease lapses and anybody takes the row. Room is reserved before the commit,
// so that no more is claimed than will soon be begun. Only a webhook whose receiver
// has answered in time, for which nothing older waits, and which has neither rate
// nor digests gets any: everything that has to be judged is judged by a claim.
//
// Of these, the same commit begins attempts at what can be called at once
// ([Reservation.Begin]): it writes the body and the beginning as well, so that one
// commit lies between a failure and its message, and not two. Where the process
// dies after that commit, or nobody knows whether it stands, nothing was sent, and
// the attempt stays without outcome all the same.
//
// What a crash does: before Begin, nothing was sent, and the lapsed lease offers
// the row again. Between Begin and Settle, the message may have been sent; the
// attempt stays without outcome, which is what an operator sees, and the row is
// offered again. That is the one window in which a crash can send a message
// twice; receivers can drop the repeat by its webhook-id. A process that runs on
// while its store is away begins nothing again that it knows to have arrived.
//
// # Bad receivers
//
// Bad receivers are kept from harming anybody else. One that does not answer is
// left alone by a breaker, one that asks for a pause is held, one that is gone is
// switched off, and one that is slow shares what it may hold with all others that
// are slow ([Options].Slots).
//
//	closed ──failures in a row──▶ open ──pause is over──▶ half-open
//	   ▲                            ▲                      │   │
//	   │                            └──probe fails, longer─┘   │
//	   └──────────────────────answered─────────────────────────┘
//
// [BreakerPolicy.Next] decides in the transaction that settles an attempt, under
// a lock on the webhook's state. While the breaker is open nothing of the webhook
// is claimed. The claim that finds the pause over takes one row, the probe, and
// marks the state with its token by compare-and-set, so that all replicas
// together send one. There is no other probe while that claim stands; when it
// lapses, there is. A rate is granted by the claim from the same state, so that
// it holds over all replicas.
//
// # Storms
//
// When more notifications wait un-attempted for a webhook than its bound, the
// next claim gathers them into digests, oldest first. A [Digest] is a notification
// with a row in the outbox like any other: leases, attempts, the frozen body and
// settlement hold for it unchanged. One statement writes it, names its members,
// and takes their rows out of the outbox. So each notification is told by exactly
// one message, its own or its digest's, whatever dies and however many gather at
// once, and the status of a member is that of its digest: what becomes of the one
// becomes of the others. What was attempted once is never gathered.
//
// # Several replicas
//
// One replica at a time works on the backlog of a webhook whose receiver is quick.
// Several would share it in smaller batches, at a higher price for each message, and
// it is the machines that set the pace, not the receiver. Nobody is appointed: the
// look at the outbox tells whose claims stand right in front of what is due, if they
// are more than may be called at once and one of them was made, begun or renewed
// within the last second by Postgres's clock ([Limits].Worker). Who finds another there
// leaves the webhook alone, looks again a second later, and passes on the wake-ups
// for it. Of several at work, the first by name goes on. So a backlog waits for a
// second or two when its worker dies, stands still, ends, or calls a receiver that
// answers late; and after half a minute of it the others join, to its end.
//
// It is never truth: with two at work a message costs more, with none it waits until
// the next look. A few messages concern nobody, because who calls all that it has
// claimed does not count as at work. Nor is a webhook left alone that has a rate or
// digests, or whose receiver this replica does not know to be quick.
//
// # A person's retry
//
// A person may send again what is settled, and make due what waits for its next
// attempt. That begins a generation: the schedule starts anew, attempts go on
// counting, and the webhook-id names the generation, so that no receiver takes the
// message for a repeat. The body stays, unless it was refused, which it would be
// again, or was a fallback. A late success of an earlier generation is kept on its
// attempt and does not end the retry. Alone, a member leaves a settled digest and
// is told by itself; in bulk, messages are retried, and a digest counts as one.
package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/fault"
)

// Status is how far a notification has come.
type Status string

// The statuses. Delivered, Failed, Exhausted and Discarded are terminal.
const (
	// Pending is owed and not yet attempted.
	Pending Status = "PENDING"
	// Retrying was attempted at least once and waits for its next attempt.
	Retrying Status = "RETRYING"
	// Delivered was accepted by the receiver.
	Delivered Status = "DELIVERED"
	// Failed was refused by the receiver for good.
	Failed Status = "FAILED"
	// Exhausted was attempted as often as the schedule allows.
	Exhausted Status = "EXHAUSTED"
	// Discarded was given up by a person.
	Discarded Status = "DISCARDED"
)

// Reason says why a message is owed.
type Reason string

// The reasons.
const (
	// ReasonFired tells that an alert was raised.
	ReasonFired Reason = "FIRED"
	// ReasonReminder tells that an alert still fires and nobody has acknowledged it.
	ReasonReminder Reason = "REMINDER"
	// ReasonResolved tells that what an alert was about is over.
	ReasonResolved Reason = "RESOLVED"
	// ReasonRuleFailing tells operators that a rule cannot be evaluated.
	ReasonRuleFailing Reason = "RULE_FAILING"
	// ReasonRuleRecovered tells operators that it can again.
	ReasonRuleRecovered Reason = "RULE_RECOVERED"
	// ReasonSourceFailing notifies operators that the source cannot be read.
	ReasonSourceFailing Reason = "SOURCE_FAILING"
	// ReasonSourceRecovered notifies them that it can be read again.
	ReasonSourceRecovered Reason = "SOURCE_RECOVERED"
	// ReasonWebhookOff tells operators that a webhook was switched off, because
	// its receiver is gone for good.
	ReasonWebhookOff Reason = "WEBHOOK_OFF"
	// ReasonWebhookFailing tells operators that a webhook has not answered for long.
	ReasonWebhookFailing Reason = "WEBHOOK_FAILING"
	// ReasonUndelivered tells operators that a message was refused or exhausted.
	ReasonUndelivered Reason = "UNDELIVERED"
	// ReasonDigest tells many notifications at once; see [Digest].
	ReasonDigest Reason = "DIGEST"
)

// WebhookKind says which dialect a webhook speaks.
type WebhookKind string

// The kinds of webhook.
const (
	KindSlack   WebhookKind = "slack"
	KindGeneric WebhookKind = "generic"
)

// Webhook is where notifications go.
type Webhook struct {
	ID       uuid.UUID
	TenantID string
	Name     string
	Kind     WebhookKind
	// URL is a secret: it often holds a token. It is sealed at rest, and never
	// logged or shown beyond its host.
	URL string
	// Slack is used instead of URL by a webhook that posts as a bot.
	Slack SlackApp
	// Headers are sent with each request, in addition to Tocsin's own.
	Headers map[string]string
	// BodyTemplate is Mustache in JSON; empty means the kind's own layout.
	BodyTemplate string
	// SigningSecret signs each request as Standard Webhooks say ("whsec_…");
	// empty means unsigned. It is a secret like URL.
	SigningSecret string
	// FormerSecret signs beside SigningSecret until FormerSecretUntil, while a
	// secret is rotated; empty when there is none. It is a secret like URL.
	FormerSecret      string
	FormerSecretUntil time.Time
	// Operators makes the webhook hear of Tocsin itself: rules that cannot be
	// evaluated, and that they can again; other webhooks that were switched off.
	Operators bool
	Enabled   bool
	// DisabledReason says why Tocsin switched the webhook off; empty when it did not.
	DisabledReason string
	// Timeout bounds one attempt, from dialling to the end of the answer.
	Timeout time.Duration
	// ClientCertificate is shown to the receiver: certificates and their key, as PEM.
	// It is a secret like URL; empty means none.
	ClientCertificate string
	// MaxConcurrent bounds the attempts under way in one process.
	MaxConcurrent int
	// RatePerSecond bounds the attempts begun by all replicas together; 0 is no bound.
	RatePerSecond float64
	// DigestAbove is how many notifications may wait un-attempted before they are
	// gathered into digests, 0 to [MaxDigestAbove]; 0 is never.
	DigestAbove int
	// HeldUntil is the instant before which nothing is sent, because the
	// receiver asked for it; zero when it did not.
	HeldUntil time.Time
	// Flow is how messages flow to it, where it was asked for; else its State is empty.
	Flow                 Flow
	Version              int64
	CreatedAt, UpdatedAt time.Time
	// Sealed is set where the secrets of a stored webhook cannot be opened. They are
	// then empty, the URL and the headers among them, and nothing can be sent.
	Sealed *Sealed
}

// Sealed tells of secrets that cannot be opened.
type Sealed struct {
	// Why names what is missing, and the remedy.
	Why string
	// URLHost is the host and port of the URL; Signed tells of a signing secret.
	URLHost string
	Signed  bool
}

// Fault refuses what needs the secrets; nil where there is nothing to refuse.
func (s *Sealed) Fault() error {
	if s == nil {
		return nil
	}
	return fault.New(fault.Conflict, "the secrets of the webhook cannot be opened: %s; or edit the webhook, "+
		"and give its URL, headers and signing secret anew, of a Slack app its bot token and signing secret", s.Why)
}

// Defaults of a webhook.
const (
	DefaultTimeout       = 10 * time.Second
	DefaultMaxConcurrent = 8
	// SlackRatePerSecond is Slack's limit for incoming webhooks.
	SlackRatePerSecond = 1
	// SlackDigestAbove is how many messages a channel gets before they are gathered.
	SlackDigestAbove = 20
)

// Notification is one message owed, as the record shows it.
type Notification struct {
	ID       uuid.UUID
	TenantID string
	// AlertID and RuleID are [uuid.Nil] for a digest, which has none of its own.
	AlertID   uuid.UUID
	RuleID    uuid.UUID
	WebhookID uuid.UUID
	Reason    Reason
	Status    Status
	// Attempts is the number of attempts begun.
	Attempts  int
	CreatedAt time.Time
	// NextAttemptAt is nil once the notification is settled.
	NextAttemptAt *time.Time
	SettledAt     *time.Time
	// LastError tells why the last attempt did not deliver; empty when none or when it did.
	LastError string
	// DigestID is the digest that tells this notification, whose status and
	// attempts it has; nil when it is told by itself.
	DigestID *uuid.UUID
	// DigestSize is how many notifications were gathered into that digest, or
	// into this one when it is a digest; else 0.
	DigestSize int
}

// Delivery is a claimed notification, with everything that an attempt needs.
type Delivery struct {
	NotificationID uuid.UUID
	Reason         Reason
	// Token is this claim's; every later step demands it.
	Token int64
	// Attempt is the number of the attempt to make, from 1.
	Attempt int
	// CountedAttempts is how many earlier attempts count against the schedule.
	CountedAttempts int
	// Generation is how often a person has sent the notification again.
	Generation int
	// AfterUnknown says that the attempt before was begun by somebody who lost its
	// claim, and that nobody knows its outcome.
	AfterUnknown bool
	// Alert is the zero Instance for a digest.
	Alert alerts.Instance
	// Digest is what a digest tells, nil for others and once the body is frozen.
	Digest  *Digest
	Webhook Webhook
	// Body is what is sent: rendered by the claim of the first attempt, and frozen.
	// Fresh says that this attempt is the first that sends it, and Problem then why it is
	// a fallback; empty where it is none.
	Body    *Body
	Fresh   bool
	Problem string
	// Waited is how long ago the message became due for the first time, or a person sent
	// it again.
	Waited time.Duration
	// Test says that somebody tries the webhook; the message says so, too.
	Test bool
	// At is when the attempt began, which it tells its receiver; zero is the time of the call.
	At time.Time
}

// MessageID is what a receiver tells repeats by: the same in every attempt, until
// a person sends the notification again. It holds no full stop.
func (d *Delivery) MessageID() string {
	if d.Generation == 0 {
		return d.NotificationID.String()
	}
	return fmt.Sprintf("%s-r%d", d.NotificationID, d.Generation)
}

// Body is what is sent: the same bytes in every attempt.
type Body struct {
	ContentType string
	Content     []byte
}

// Renderer makes the body of a notification's first attempt. It always returns
// a body that the receiver can read: where a template does not work out, it
// falls back to plain text and says why in problem.
type Renderer interface {
	Render(d *Delivery) (body Body, problem error)
}

// Sender makes attempts.
type Sender interface {
	// Send makes one attempt, whose request bears the instant d.At. It returns when the
	// answer has been read, the webhook's timeout is over or ctx has ended, and reports
	// every failure as an outcome.
	Send(ctx context.Context, d *Delivery) Outcome
}
