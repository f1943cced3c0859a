// Package notify is the vocabulary of delivery, and explains how notifications reach their receivers.
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
// This package has the terms and the pure decisions: what follows an attempt ([Policy]), what
// attempts show about a receiver ([BreakerPolicy]), what waits ([QuietHours]). Package
// notify/dispatch has the dispatcher and its store.
//
// Postgres is authoritative, and leases are compared only with its clock. A dispatcher
// makes one pass after another, each when something has become due or a call has ended.
// No transaction is open during a call. A message goes through these steps:
//
//   - Claim takes due rows for the free slots, which are distributed over
//     the webhooks (dispatch/slots.go). It uses SKIP LOCKED, and each row gets a lease and a token.
//     The same transaction renders and stores bodies that do not exist yet, and records that
//     the attempts begin. A body is rendered once: every attempt sends the same bytes under
//     the same webhook-id; only a receiver's secrets are filled in at the call. If the attempt
//     that it was rendered for is not made, or a person has entered something else for the
//     receiver since, it is rendered again.
//     A message that cannot be read or rendered ends as FAILED, an event that is too old as
//     DISCARDED, and a message that is older than its receiver accepts as EXHAUSTED. These
//     use up no rate and are no probe, and the next pass follows at once. If one row makes
//     the claim fail for all, each webhook is claimed for separately, until that row ends.
//   - Check: right after the claim's commit, and sent with it, one query asks which webhooks
//     have been edited, disabled or held since, or are not responding. Their attempts are
//     recorded as not made, and cost nothing. The same happens to an attempt that took so
//     long to begin that its lease may be over, and to an attempt of a message that this
//     process knows to have arrived.
//   - Call ([Sender]): the outcome is one [Verdict], and [Policy].Decide says what follows.
//     Until the outcome is stored, the lease is renewed (dispatch/leases.go), and if the outcome is
//     bad, nothing else begins at the webhook. Once its claim may be over, a call makes no
//     further request: it waits for the answer to a request that has left, and an attempt
//     whose request has not left is recorded as not made.
//   - Settle stores many outcomes together (dispatch/batch.go), each under its token. A process that
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
// If a receiver is not responding, its circuit breaker opens; if it asks for a pause, the
// webhook is held; if it accepts no message of the webhook any more, the webhook is disabled. The messages wait.
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
// minutes, and of a webhook that was disabled.
//
// # Silences
//
// A message that a silence suppresses is settled as SUPPRESSED in the transaction that writes
// it, and names the silence. It is never in the outbox, and nothing waits for it. A person may
// still send it. If the silence asks for it, each webhook gets a [Digest] at its end that lists what
// was suppressed. The listed messages keep their status.
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
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/fault"
)

// Status is the status of a notification.
type Status string

// The statuses. Delivered, Failed, Exhausted, Discarded and Suppressed are terminal.
const (
	// Pending means that the message waits, or is being attempted for the first time.
	Pending Status = "PENDING"
	// Retrying means that the message was attempted and will be attempted again.
	Retrying Status = "RETRYING"
	// Delivered means that the receiver has accepted the message.
	Delivered Status = "DELIVERED"
	// Failed means that the receiver has refused the message for good.
	Failed Status = "FAILED"
	// Exhausted means that all attempts of the schedule have failed.
	Exhausted Status = "EXHAUSTED"
	// Discarded means that a person or Tocsin has given up the message.
	Discarded Status = "DISCARDED"
	// Suppressed means that the message was not sent because a silence was in force when it was
	// written.
	Suppressed Status = "SUPPRESSED"
)

// Reason says why a message is sent.
type Reason string

// The reasons.
const (
	// ReasonFired says that an alert was raised.
	ReasonFired Reason = "FIRED"
	// ReasonReminder says that an alert still fires and nobody has acknowledged it.
	ReasonReminder Reason = "REMINDER"
	// ReasonSnoozeEnded says that an alert is still open after its snooze.
	ReasonSnoozeEnded Reason = "SNOOZE_ENDED"
	// ReasonEscalated says that nobody has acknowledged an alert in time.
	ReasonEscalated Reason = "ESCALATED"
	// ReasonResolved says that the cause of an alert is over, or that a person has resolved it.
	ReasonResolved Reason = "RESOLVED"
	// ReasonAcknowledged says that somebody looks after an alert.
	ReasonAcknowledged Reason = "ACKNOWLEDGED"
	// ReasonReopened says that somebody has undone an action that others were notified of: the
	// alert is open again.
	ReasonReopened Reason = "REOPENED"
	// ReasonRuleFailing notifies operators that a rule cannot be evaluated.
	ReasonRuleFailing Reason = "RULE_FAILING"
	// ReasonRuleRecovered notifies operators that a rule can be evaluated again.
	ReasonRuleRecovered Reason = "RULE_RECOVERED"
	// ReasonSourceFailing notifies operators that the source cannot be read.
	ReasonSourceFailing Reason = "SOURCE_FAILING"
	// ReasonSourceRecovered notifies operators that the source can be read again.
	ReasonSourceRecovered Reason = "SOURCE_RECOVERED"
	// ReasonWebhookOff notifies operators that a webhook was disabled because its receiver is
	// gone for good.
	ReasonWebhookOff Reason = "WEBHOOK_OFF"
	// ReasonWebhookFailing notifies operators that a webhook has not responded for a long time.
	ReasonWebhookFailing Reason = "WEBHOOK_FAILING"
	// ReasonUndelivered notifies operators that a message was refused or exhausted.
	ReasonUndelivered Reason = "UNDELIVERED"
	// ReasonDigest is the reason of a message that replaces many; see [Digest].
	ReasonDigest Reason = "DIGEST"
)

// WebhookKind is the protocol of a webhook's receiver.
type WebhookKind string

// The kinds of webhook.
const (
	KindSlack   WebhookKind = "slack"
	KindGeneric WebhookKind = "generic"
)

// Webhook is where notifications are sent.
type Webhook struct {
	ID       uuid.UUID
	TenantID string
	Name     string
	Kind     WebhookKind
	// URL is a secret, because it often contains a token. It is stored sealed, and never logged or
	// shown except for its host.
	URL string
	// Slack replaces URL for a webhook that posts as a bot.
	Slack SlackApp
	// Preset names a receiver with its own protocol. Its URL, headers and bodies are made from
	// Inputs, by name. It is empty if there is none. Inputs are secrets like URL.
	Preset string
	Inputs map[string]string
	// Headers are sent with each request, in addition to those of Tocsin.
	Headers map[string]string
	// BodyTemplate is a JSON document with Mustache tags. If it is empty, the layout of the kind is
	// used.
	BodyTemplate string
	// SigningSecret ("whsec_…") signs each request according to Standard Webhooks. If it is empty,
	// requests are not signed. It is a secret like URL.
	SigningSecret string
	// FormerSecret also signs until FormerSecretUntil, while a secret is rotated. It is empty if
	// there is none. It is a secret like URL.
	FormerSecret      string
	FormerSecretUntil time.Time
	// Operators makes the webhook receive notifications about Tocsin itself: rules that cannot be
	// evaluated or can be again, and other webhooks that were disabled.
	Operators bool
	// Events are the events that the webhook is notified of in addition to raised alerts: any of
	// [Events].
	Events []Reason
	// EventMaxAge is how long after an event its message may still be sent; 0 means
	// [DefaultEventMaxAge].
	EventMaxAge time.Duration
	// QuietHours hold messages about alerts that are not critical.
	QuietHours QuietHours
	Enabled    bool
	// DisabledReason says why Tocsin disabled the webhook; empty if it did not.
	DisabledReason string
	// Timeout bounds one attempt, from dialling to the end of the answer.
	Timeout time.Duration
	// ClientCertificate is presented to the receiver: certificates and their key, as PEM. It is a
	// secret like URL; empty means none.
	ClientCertificate string
	// MaxConcurrent bounds the attempts under way in one process.
	MaxConcurrent int
	// RatePerSecond bounds how many attempts all replicas begin together; 0 means no bound.
	RatePerSecond float64
	// DigestAbove is how many notifications may wait without an attempt before they are combined
	// into digests, 0 to [MaxDigestAbove]; 0 means never.
	DigestAbove int
	// HeldUntil is the instant before which nothing is sent, because the receiver asked for a
	// pause; zero if it did not.
	HeldUntil time.Time
	// Flow is how messages flow to the webhook. Its State is empty if it was not requested.
	Flow                 Flow
	Version              int64
	CreatedAt, UpdatedAt time.Time
	// Sealed is set if the secrets of a stored webhook cannot be decrypted. Then all secrets are
	// empty, including the URL and the headers, and nothing can be sent.
	Sealed *Sealed
}

// Sealed describes secrets that cannot be decrypted.
type Sealed struct {
	// Why names what is missing, and the remedy.
	Why string
	// URLHost is the host and port of the URL. Signed says that there is a signing secret.
	URLHost string
	Signed  bool
}

// Fault returns the error for an operation that needs the secrets. It is nil if s is nil.
func (s *Sealed) Fault() error {
	if s == nil {
		return nil
	}
	return fault.New(fault.Conflict, "the secrets of the webhook cannot be decrypted: %s, "+
		"or edit the webhook and enter its URL, headers and signing secret again; a Slack app needs its bot token and signing secret", s.Why)
}

// Defaults of a webhook.
const (
	DefaultTimeout       = 10 * time.Second
	DefaultMaxConcurrent = 8
	// SlackRatePerSecond is Slack's limit for incoming webhooks.
	SlackRatePerSecond = 1
	// SlackDigestAbove is how many messages may wait for a channel before they are combined into a
	// digest.
	SlackDigestAbove = 20
)

// Notification is one message, as the record shows it.
type Notification struct {
	ID       uuid.UUID
	TenantID string
	// AlertID and RuleID are [uuid.Nil] for a digest.
	AlertID   uuid.UUID
	RuleID    uuid.UUID
	WebhookID uuid.UUID
	Reason    Reason
	Status    Status
	// Attempts is the number of attempts begun.
	Attempts  int
	CreatedAt time.Time
	// NextAttemptAt is nil if the notification is settled, waits for another one, or is held.
	NextAttemptAt *time.Time
	// QuietUntil is when the quiet hours that hold the notification end; nil if none hold it.
	QuietUntil *time.Time
	SettledAt  *time.Time
	// LastError says why the last attempt did not deliver; empty if there was none or it delivered.
	LastError string
	// DigestID is the digest that contains this notification, which has the digest's status and
	// attempts; nil if it is sent on its own.
	DigestID *uuid.UUID
	// DigestSize is the number of notifications in that digest, or in this one if it is a digest;
	// otherwise 0.
	DigestSize int
	// CommitSpan is the trace and the span of the commit that wrote the notification, 24 bytes; nil
	// unless it is traced.
	CommitSpan []byte
}

// Delivery is a claimed notification, with everything that an attempt needs.
type Delivery struct {
	NotificationID uuid.UUID
	Reason         Reason
	// Token is the token of this claim; every later step requires it.
	Token int64
	// Attempt is the number of this attempt, from 1.
	Attempt int
	// Try is the number of this attempt since a person last sent the message again, from 1.
	Try int
	// CountedAttempts is how many earlier attempts count against the schedule.
	CountedAttempts int
	// Generation is how often a person has sent the notification again.
	Generation int
	// AfterUnknown says that the previous attempt was begun by a claimant that lost its claim, and
	// that its outcome is unknown.
	AfterUnknown bool
	// Alert is the zero Instance for a digest. For an event it is the alert right after the event.
	Alert alerts.Instance
	// Event is the event that the message is about; nil if there is none.
	Event *Event
	// Digest is the content of a digest; nil for other messages and once the body is frozen.
	Digest  *Digest
	Webhook Webhook
	// Body is rendered by the claim of the first attempt, and then frozen. It is nil if this
	// process cannot render it. Fresh says that this attempt is the first one with this body.
	// Problem is then why the body is a fallback; empty if it is none.
	Body    *Body
	Fresh   bool
	Problem string
	// Waited is the time since the message first became due, or since a person sent it again.
	Waited time.Duration
	// Reached are the recipients that have received the message in earlier attempts, as named by
	// their outcomes. It is empty if a message has one recipient.
	Reached []string
	// Reference is the receiver's id of what an earlier message about the alert opened, as named by
	// its outcome; empty if none is known.
	Reference string
	// Thread is the message in Slack to whose thread this message is posted; empty if there is
	// none.
	Thread string
	// Test says that somebody is testing the webhook. The message says so, too.
	Test bool
	// CommitSpan is that of the notification.
	CommitSpan []byte
	// At is when the attempt began, as the request says; zero means the time of the call.
	At time.Time
	// Claim returns why the claim may have expired, or nil while it is valid. A nil Claim is always
	// valid.
	Claim func() error
}

// ErrFenced says that another claimant has the message, or that the message has already ended.
var ErrFenced = errors.New("the lease was lost")

// CheckClaim returns why the claim of a delivery may have expired, or nil while it is valid. After it
// expires nothing may be sent, because another replica may send the message.
func (d *Delivery) CheckClaim() error {
	if d.Claim == nil {
		return nil
	}
	return d.Claim()
}

// MessageID is the id by which a receiver recognises repeats: the same in every attempt, until a
// person sends the notification again. It contains no full stop.
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

// Renderer makes the body of a notification's first attempt. If a template fails, the body is plain
// text, and problem says why. If this process does not know the receiver, the content is empty.
// Then nothing is stored, the [Sender] decides what that means, and the next attempt renders again.
type Renderer interface {
	Render(d *Delivery) (body Body, problem error)
}

// Sender makes attempts.
type Sender interface {
	// Send makes one attempt, whose request carries the instant d.At. It returns when the answer
	// has been read, the webhook's timeout has passed or ctx has ended. Every failure is an
	// outcome. If the cause of the end of ctx is [ErrFenced], Send still waits for the answer to a
	// request that has left, because the answer says more than none. A sender calls
	// [Delivery.CheckClaim] before each request that it makes.
	Send(ctx context.Context, d *Delivery) Outcome
}
