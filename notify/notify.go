// Package notify delivers notifications to their receivers.
//
// A notification is one message: one alert, one webhook, one reason. It is written in the
// transaction that raises the alert, together with a row in the outbox, which is the work
// left to do. The record (notifications, bodies, attempts, settlements) only grows. The
// outbox is small and hot, and a row leaves it in the transaction that settles its message.
//
//	          ┌─────────── repeated later ───────────┐
//	          ▼                                      │
//	PENDING/RETRYING ──claim──▶ attempt ──call──▶ settle ──▶ DELIVERED, FAILED, EXHAUSTED
//	          ▲                    │
//	          └── lease lapses ◀───┘ process dies
//
// Postgres is authoritative, and leases are compared only with its clock. A [Dispatcher]
// makes one pass after another, each when something has become due or a call has ended.
// No transaction is open during a call. A message goes through these steps:
//
//   - Claim ([Store].Claim) takes due rows for the free slots, which are distributed over
//     the webhooks (slots.go). It uses SKIP LOCKED, and each row gets a lease and a token.
//     The same transaction renders and stores bodies that do not exist yet, and records that
//     the attempts begin. A body is rendered once: every attempt sends the same bytes under
//     the same webhook-id; only a receiver's secrets are filled in at the call.
//     A message that cannot be read or rendered ends as FAILED, an event that is too old as
//     DISCARDED, and a message that is older than its receiver accepts as EXHAUSTED. These
//     use up no rate and are no probe, and the next pass follows at once. If one row makes
//     the claim fail for all, each webhook is claimed for separately, until that row ends.
//   - Check: right after the claim's commit, and sent with it, one query asks which webhooks
//     have been edited, switched off or held since, or do not answer. Their attempts are
//     recorded as not made, and cost nothing. The same happens to an attempt that took so
//     long to begin that its lease may be over, and to an attempt of a message that this
//     process knows to have arrived.
//   - Call ([Sender]): the outcome is one [Verdict], and [Policy].Decide says what follows.
//     Until the outcome is stored, the lease is renewed (leases.go), and if the outcome is
//     bad, nothing else begins at the webhook. Once its claim may be over, a call makes no
//     further request: it waits for the answer to a request that has left, and an attempt
//     whose request has not left is recorded as not made.
//   - Settle stores many outcomes together (batch.go), each under its token. A process that
//     lost its lease settles nothing: the outcome is kept on its attempt. A success still
//     ends the message, because it has arrived. If only some of several recipients took a
//     message, they are kept in the outbox, and the next attempt is for the others.
//
// A crash before the claim commits changes nothing. After a crash between the claim and the
// settlement, the message may have been sent: the attempt stays without outcome, which an
// operator sees, and the message is claimed again when the lease expires. Only in this
// window does a crash send a message twice; receivers can drop the repeat by its webhook-id.
// A process that runs while its store is away does not send again what it knows to have
// arrived.
//
// # Bad receivers
//
// If a receiver does not answer, its circuit breaker opens; if it asks for a pause, the
// webhook is held; if it is gone, the webhook is switched off. The messages wait.
// [BreakerPolicy.Next] applies the outcomes of a batch to the state of the webhook, under a
// lock on it.
//
//	closed ──failures in a row──▶ open ──pause is over──▶ half-open
//	   ▲                            ▲                      │   │
//	   │                            └──probe fails, longer─┘   │
//	   └──────────────────────answered─────────────────────────┘
//
// After either kind of pause one message goes first, the probe. The claim grants the probe,
// and what a rate allows, under the same lock, so that both hold over all replicas.
// Consecutive pauses grow. If a receiver asks for pauses for longer than the schedule lasts,
// messages that have waited for it that long are EXHAUSTED; messages that waited for other
// reasons are not. Slow receivers share half of the slots. Operators are notified, once
// each, of a message that is refused or exhausted, of a breaker that has been open for ten
// minutes, and of a webhook that was switched off.
//
// # Silences
//
// A message that a silence suppresses is settled as SUPPRESSED in the transaction that writes
// it, and names the silence. It is never in the outbox, and nothing waits for it. A person may
// still send it.
//
// # Quiet hours
//
// If a webhook has quiet hours ([QuietHours]), messages that are not critical wait in the
// outbox, but in no queue. When the hours are over, [AfterQuiet] decides which are sent, and
// the others end as DISCARDED.
//
// # Storms
//
// If more messages wait un-attempted for a webhook than its bound, the next look combines
// them into a [Digest], oldest first: a notification with a row in the outbox like any other.
// One statement writes the digest, names its members, and takes their rows out of the outbox.
// So each notification belongs to exactly one message, its own or its digest's, and has the
// status of that message. A message that was attempted is never combined.
//
// # Wake-ups
//
// A commit that writes messages wakes the dispatcher of its own process directly, and the
// others over the bus. Both wake-ups name the webhooks. Nothing relies on a wake-up: without
// one, a dispatcher looks when something is known to become due, and from time to time.
//
// # What a person does
//
// A person may send a settled message again, and make a message due that waits for its next
// attempt. This begins a generation: the schedule starts again, attempts continue counting,
// and the webhook-id names the generation, so that no receiver takes the message for a
// repeat. A body that was refused, or is a fallback, is rendered again. A late success of an
// earlier generation is kept on its attempt and does not end the retry. A person may also
// discard a message that has not been delivered.
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

// The statuses. Delivered, Failed, Exhausted, Discarded and Suppressed are terminal.
const (
	// Pending waits, or is attempted for the first time.
	Pending Status = "PENDING"
	// Retrying was attempted and will be again.
	Retrying Status = "RETRYING"
	// Delivered was accepted by the receiver.
	Delivered Status = "DELIVERED"
	// Failed was refused by the receiver for good.
	Failed Status = "FAILED"
	// Exhausted was attempted as often as the schedule allows.
	Exhausted Status = "EXHAUSTED"
	// Discarded was given up by a person.
	Discarded Status = "DISCARDED"
	// Suppressed was never to be sent, because a silence was in force when it was written.
	Suppressed Status = "SUPPRESSED"
)

// Reason says why a message is sent.
type Reason string

// The reasons.
const (
	// ReasonFired tells that an alert was raised.
	ReasonFired Reason = "FIRED"
	// ReasonReminder tells that an alert still fires and nobody has acknowledged it.
	ReasonReminder Reason = "REMINDER"
	// ReasonSnoozeEnded tells that an alert is still open that somebody wanted to be reminded of.
	ReasonSnoozeEnded Reason = "SNOOZE_ENDED"
	// ReasonEscalated tells that nobody has acknowledged an alert in time.
	ReasonEscalated Reason = "ESCALATED"
	// ReasonResolved tells that what an alert was about is over, or that a person says so.
	ReasonResolved Reason = "RESOLVED"
	// ReasonAcknowledged tells that somebody looks after an alert.
	ReasonAcknowledged Reason = "ACKNOWLEDGED"
	// ReasonReopened tells that somebody has undone what others were notified of: the alert is open again.
	ReasonReopened Reason = "REOPENED"
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
	// Preset names a receiver with a dialect of its own, whose URL, headers and bodies are
	// made of Inputs, by name; empty means none. Inputs are secrets like URL.
	Preset string
	Inputs map[string]string
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
	// Events are what else than raised alerts the webhook is notified of: any of [Events].
	Events []Reason
	// EventMaxAge is how long after it happened such a message is sent at most; 0 is
	// [DefaultEventMaxAge].
	EventMaxAge time.Duration
	// QuietHours hold messages about alerts that are not critical.
	QuietHours QuietHours
	Enabled    bool
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
	return fault.New(fault.Conflict, "the secrets of the webhook cannot be decrypted: %s; or edit the webhook, "+
		"and enter its URL, headers and signing secret again, or for a Slack app its bot token and signing secret", s.Why)
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

// Notification is one message, as the record shows it.
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
	// NextAttemptAt is nil once the notification is settled, and while it waits for another one or is held.
	NextAttemptAt *time.Time
	// QuietUntil is until when the quiet hours of its webhook hold it; nil where they do not.
	QuietUntil *time.Time
	SettledAt  *time.Time
	// LastError tells why the last attempt did not deliver; empty when none or when it did.
	LastError string
	// DigestID is the digest that tells this notification, whose status and
	// attempts it has; nil when it is sent on its own.
	DigestID *uuid.UUID
	// DigestSize is how many notifications were gathered into that digest, or
	// into this one when it is a digest; else 0.
	DigestSize int
	// CommitSpan are the 24 bytes by which traces know the commit that writes the
	// notification, trace and span; nil unless it is traced.
	CommitSpan []byte
}

// Delivery is a claimed notification, with everything that an attempt needs.
type Delivery struct {
	NotificationID uuid.UUID
	Reason         Reason
	// Token is this claim's; every later step demands it.
	Token int64
	// Attempt is the number of the attempt to make, from 1.
	Attempt int
	// Try is the same, counted anew when a person sends the message again.
	Try int
	// CountedAttempts is how many earlier attempts count against the schedule.
	CountedAttempts int
	// Generation is how often a person has sent the notification again.
	Generation int
	// AfterUnknown says that the attempt before was begun by somebody who lost its
	// claim, and that nobody knows its outcome.
	AfterUnknown bool
	// Alert is the zero Instance for a digest. Of an event it is as it was then.
	Alert alerts.Instance
	// Event is what happened to the alert, where the message is about that; else nil.
	Event *Event
	// Digest is what a digest tells, nil for others and once the body is frozen.
	Digest  *Digest
	Webhook Webhook
	// Body is what is sent: rendered by the claim of the first attempt, and frozen. It is nil
	// where this process cannot render it.
	// Fresh says that this attempt is the first that sends it, and Problem then why it is
	// a fallback; empty where it is none.
	Body    *Body
	Fresh   bool
	Problem string
	// Waited is how long ago the message became due for the first time, or a person sent
	// it again.
	Waited time.Duration
	// Reached are the recipients that have the message from earlier attempts, as their
	// outcomes named them; empty where a message has one recipient.
	Reached []string
	// Reference is the receiver's own id of what an earlier message about the alert opened, as
	// its outcome named it; empty where none is known.
	Reference string
	// Thread is the message in Slack into whose thread this one goes; empty where there is none.
	Thread string
	// Test says that somebody tries the webhook; the message says so, too.
	Test bool
	// CommitSpan is that of the notification.
	CommitSpan []byte
	// At is when the attempt began, which it tells its receiver; zero is the time of the call.
	At time.Time
	// Claim returns why the claim may be over, nil while it stands; a nil Claim stands for ever.
	Claim func() error
}

// Stands returns why the claim of a delivery may be over, nil while it stands. Nothing is to be sent
// once it is over: somebody else may do so.
func (d *Delivery) Stands() error {
	if d.Claim == nil {
		return nil
	}
	return d.Claim()
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

// Renderer makes the body of a notification's first attempt: one that the receiver can
// read. Where a template does not work out, it falls back to plain text and says why in
// problem. Where this process does not know the receiver, there is no content: nothing is
// stored then, the [Sender] says what that means, and the next attempt renders anew.
type Renderer interface {
	Render(d *Delivery) (body Body, problem error)
}

// Sender makes attempts.
type Sender interface {
	// Send makes one attempt, whose request bears the instant d.At. It returns when the
	// answer has been read, the webhook's timeout is over or ctx has ended, and reports
	// every failure as an outcome. Where the cause of that end is [ErrFenced], what has left is
	// waited for all the same: its answer tells more than that there was none. A sender asks [Delivery.Stands]
	// before each request that it makes.
	Send(ctx context.Context, d *Delivery) Outcome
}
