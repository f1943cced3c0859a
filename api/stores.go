package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/notify"
	"tocsin/rules"
)

// Every method below acts for one tenant: what belongs to another one does not
// exist and is a fault of kind NotFound. Errors that a caller can act upon are
// faults; every other error is internal, logged and not shown. Slices may be
// nil when they are empty. All methods are safe for concurrent use.

// NameMark is the place of something in a list ordered by (name, id), names
// compared as bytes.
type NameMark struct {
	Name string
	ID   uuid.UUID
}

// NamePage is a stretch of a list ordered by (name, id).
type NamePage struct {
	// After is the last entry of the page before; nil begins the list.
	After *NameMark
	// Limit is the number of entries wanted, 1 to 200.
	Limit int
}

// RuleStore keeps rules.
type RuleStore interface {
	RuleReader
	RuleWriter
	RuleRetrier
	RuleApplier
}

// RuleApplier knows a tenant's rules as a whole.
type RuleApplier interface {
	// All returns every rule as of one instant, by name.
	All(ctx context.Context, tenant string) ([]rules.Rule, error)
	// Apply creates and edits what differs from the set, by name, and deletes the
	// others where the set says so: all of it in one transaction, or nothing. A
	// rule that is as the set says is not touched. What others wrote meanwhile is
	// overwritten; two calls at once happen one after the other.
	Apply(ctx context.Context, tenant string, set RuleSet) (RulesDone, error)
}

// RuleSet is how rules are to be.
type RuleSet struct {
	// Definitions are valid, and no name is there twice.
	Definitions []rules.Definition
	// Prune deletes the tenant's other rules.
	Prune bool
	// DryRun tells what would be done, and does nothing.
	DryRun bool
}

// RulesDone is what became of a [RuleSet].
type RulesDone struct {
	// Rules has an entry for each definition, in order, then one for each rule
	// that was deleted.
	Rules []RuleDone
	// LeftAlone counts the rules that are not in the set and stay.
	LeftAlone int
}

// RuleDone is what became of one rule.
type RuleDone struct {
	// ID is zero where a rule would be created.
	ID     uuid.UUID
	Name   string
	Action RuleAppliedAction
	// Before is what an edited rule said; nil for every other.
	Before *rules.Definition
}

// RuleRetrier has rules evaluated at once.
type RuleRetrier interface {
	// Retry forgets why a rule could not be evaluated; the next pass tries again. A
	// disabled rule is a fault of kind Conflict.
	Retry(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error)
}

// Reconciler compares a rule's alerts with the exchanges that match.
type Reconciler interface {
	// Rule compares the last stretch of time of one rule. A rule that counts is a
	// fault of kind Conflict.
	Rule(ctx context.Context, tenant string, id uuid.UUID, last time.Duration) (reconcile.Reconciliation, error)
}

// RuleReader reads rules.
type RuleReader interface {
	List(ctx context.Context, tenant string, page NamePage) ([]rules.Rule, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error)
	// Health returns how the evaluation of rules is doing, by their ids. A rule
	// that is unknown or was never claimed may be missing.
	Health(ctx context.Context, tenant string, ids []uuid.UUID) (map[uuid.UUID]EvaluationHealth, error)
}

// RuleWriter writes rules. A definition that it is given is valid; a webhook
// that vanished since it was checked is a fault of kind Conflict.
type RuleWriter interface {
	// Create stores a rule of version 1, armed by its creation.
	Create(ctx context.Context, tenant string, d rules.Definition) (rules.Rule, error)
	// Update replaces the definition. A version other than the stored one is a
	// fault of kind Stale. Enabling by it arms the rule anew.
	Update(ctx context.Context, tenant string, edit RuleEdit) (rules.Rule, error)
	// SetEnabled enables, which arms anew, or disables. A rule that already is
	// as wanted stays untouched.
	SetEnabled(ctx context.Context, tenant string, id uuid.UUID, enabled bool) (rules.Rule, error)
	Delete(ctx context.Context, tenant string, id uuid.UUID) error
}

// RuleEdit is a new definition for a version of a rule.
type RuleEdit struct {
	ID uuid.UUID
	// Version is the version that was edited.
	Version    int64
	Definition rules.Definition
}

// EvaluationHealth is how the evaluation of a rule is doing.
type EvaluationHealth struct {
	// Partition evaluates the rule; nil before the tenant is assigned to one.
	Partition *int
	// Cursor is the rule's own position while it has one, else the start time of its
	// partition's cursor. It is nil before the first evaluation, and for rules over a
	// window and disabled ones.
	Cursor *cursor.Position
	// Lag is how far the cursor is behind the present, by Postgres's clock; nil where
	// there is no cursor.
	Lag *time.Duration
	// LookingBackTo is the start time from which on something behind the cursor is still
	// to be judged; nil when nothing is.
	LookingBackTo *time.Time
	// Failing says that the rule cannot be evaluated, and is left out until it can.
	Failing bool
	// LateLastHour is the number of alerts that the look-back raised in the last
	// hour: exchanges that became visible behind the cursor.
	LateLastHour int64
	// LateDropped is the number of matching exchanges that became visible beyond the
	// look-back and have no alert.
	LateDropped int64
	// LastRunAt is the last evaluation, NextRunAt when the rule is due; each is nil
	// when there is none.
	LastRunAt, NextRunAt *time.Time
	// LastError tells a person why the last evaluation did not succeed, without
	// secrets; empty when it did. LastErrorAt is nil then.
	LastError   string
	LastErrorAt *time.Time
}

// WebhookStore keeps webhooks.
type WebhookStore interface {
	WebhookReader
	WebhookWriter
	WebhookEditor
}

// WebhookReader reads webhooks. The URL, the headers and the signing secret are
// filled in; the API shows no more of them than a host, names, and whether
// there is one.
type WebhookReader interface {
	List(ctx context.Context, tenant string, page NamePage) ([]notify.Webhook, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (notify.Webhook, error)
	// Names returns what rules have to know of every webhook.
	Names(ctx context.Context, tenant string) ([]WebhookName, error)
}

// WebhookName is what a rule has to know of a webhook that it binds.
type WebhookName struct {
	ID      uuid.UUID
	Name    string
	Enabled bool
}

// WebhookWriter writes webhooks.
type WebhookWriter interface {
	// Create stores a valid webhook of version 1; its id, tenant and instants
	// are the store's to choose.
	Create(ctx context.Context, tenant string, w notify.Webhook) (notify.Webhook, error)
	// Delete removes a webhook. One to which rules are bound stays: a fault of
	// kind Conflict whose message names the rules.
	Delete(ctx context.Context, tenant string, id uuid.UUID) error
}

// SlackStore knows what stands in Slack.
type SlackStore interface {
	// Webhook returns a webhook that posts as a bot, whosever it is: its tenant
	// is that of a request which proves to come from its Slack app.
	Webhook(ctx context.Context, id uuid.UUID) (notify.Webhook, error)
	// Show has the message brought in line with its alert soon. Where the alert
	// is not the tenant's, it does nothing.
	Show(ctx context.Context, press SlackPress) error
}

// SlackPress is a button that somebody pressed.
type SlackPress struct {
	Tenant    string
	WebhookID uuid.UUID
	AlertID   uuid.UUID
	// At is the message with the button.
	At notify.Posted
}

// Inbox keeps what rules raised.
type Inbox interface {
	// List returns a page of alerts; stack and attributes of their exchanges may
	// be missing.
	List(ctx context.Context, tenant string, q alerts.Query) (alerts.Page, error)
	Counts(ctx context.Context, tenant string) (alerts.Counts, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (alerts.Instance, error)
	// Act does what [alerts.State.After] allows and returns the whole alert as it
	// stands afterwards. An alert that is already there keeps who was first.
	Act(ctx context.Context, tenant string, deed Deed) (alerts.Instance, error)
}

// Deed is something that a person does about an alert.
type Deed struct {
	AlertID uuid.UUID
	Action  alerts.Action
	// Actor is who does it, as alerts show it.
	Actor string
}

// Notifications is the record of messages owed.
type Notifications interface {
	NotificationReader
	Retrier
	Discarder
}

// NotificationReader reads the record of messages owed.
type NotificationReader interface {
	// List returns notifications by (creation, id), newest first. Of their history
	// it tells the numbers and verdicts, whether an attempt is under way, and errors.
	List(ctx context.Context, tenant string, q NotificationQuery) ([]NotificationRecord, error)
	// Get returns one notification with its history.
	Get(ctx context.Context, tenant string, id uuid.UUID) (NotificationRecord, error)
	// OfAlert returns every notification of an alert with its history, oldest
	// first. An unknown alert is a fault of kind NotFound.
	OfAlert(ctx context.Context, tenant string, alertID uuid.UUID) ([]NotificationRecord, error)
}

// NotificationQuery selects a stretch of the record.
type NotificationQuery struct {
	NotificationFilter

	// Before continues a listing after its last notification; nil begins it.
	Before *NotificationMark
	// Limit is the number of notifications wanted, 1 to 200.
	Limit int
}

// NotificationFilter selects notifications. Each list restricts, and is no
// restriction when empty.
type NotificationFilter struct {
	Statuses []notify.Status
	Reasons  []notify.Reason
	Webhooks []uuid.UUID
	Rules    []uuid.UUID
	Alerts   []uuid.UUID
	// Digests selects the notifications that these digests tell.
	Digests []uuid.UUID
	// From and To bound the creation, From included, To not; nil is no bound.
	From, To *time.Time
	// OnlyMessages leaves out what a digest tells.
	OnlyMessages bool
}

// Retrier sends again what a person wants sent again.
type Retrier interface {
	// Retry makes a notification due at once under a schedule of its own. One that
	// is due already stays as it is. A webhook that takes nothing and an attempt
	// under way are faults of kind Conflict.
	Retry(ctx context.Context, tenant string, id uuid.UUID, actor string) error
	// RetryAll does it for the messages of many, in one transaction.
	RetryAll(ctx context.Context, tenant string, order RetryOrder) (Retried, error)
}

// Discarder gives up what a person wants given up.
type Discarder interface {
	// Discard ends the message of a notification as DISCARDED. One that was delivered, and
	// an attempt under way, are faults of kind Conflict.
	Discard(ctx context.Context, tenant string, id uuid.UUID, actor string) error
	// DiscardAll does it for the messages of many, in one transaction.
	DiscardAll(ctx context.Context, tenant string, order RetryOrder) (Discarded, error)
}

// Discarded is what became of an order, in messages: a digest is one.
type Discarded struct {
	Discarded int
	// Skipped were delivered or discarded before, or are being attempted.
	Skipped int
}

// RetryOrder selects the notifications to send again or to give up: those of IDs or, when it is
// nil, those of Filter.
type RetryOrder struct {
	IDs    []uuid.UUID
	Filter NotificationFilter
	// Actor is who wants it, as the record shows it.
	Actor string
}

// Retried is what became of an order, in messages: a digest is one.
type Retried struct {
	Retried int
	// Skipped were delivered, are due or being attempted already, or their webhook
	// takes nothing.
	Skipped int
}

// RetryRecord is a person's retry.
type RetryRecord struct {
	At time.Time
	By string
}

// NotificationMark is the place of a notification in the record's order.
type NotificationMark struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// NotificationRecord is a notification as people see it.
type NotificationRecord struct {
	notify.Notification

	// WebhookName is the webhook's present name; empty when it is gone.
	WebhookName string
	// AlertTitle is the title of the alert; empty for a digest.
	AlertTitle string
	// History holds the attempts, oldest first, with those of the digest that tells
	// the notification.
	History []AttemptRecord
	// Retries are those by people, oldest first; filled in for one notification alone.
	Retries []RetryRecord
}

// AttemptRecord is one HTTP request, as the record shows it.
type AttemptRecord struct {
	Number    int
	StartedAt time.Time
	// FinishedAt is nil while the attempt is under way, or when its process died;
	// the verdict of the outcome is then unknown.
	FinishedAt *time.Time
	// UnderWay is true while there is no outcome and the claim still stands,
	// under which the attempt was begun.
	UnderWay bool
	// Replica is the process that made it.
	Replica string
	// Request is nil where retention has deleted it, as is the head of the outcome.
	Request *notify.RequestHead
	Outcome notify.Outcome
}

// Sender sends messages, and tells what it would send.
type Sender interface {
	notify.Sender
	// Head tells the request that an attempt sends, without secrets.
	Head(d *notify.Delivery) notify.RequestHead
}

// Replicas tells which processes run.
type Replicas interface {
	// List returns every replica that has not left and is not forgotten, in the
	// order in which they started. Replicas belong to no tenant.
	List(ctx context.Context) ([]ReplicaRecord, error)
}

// ReplicaRecord is a replica as people see it.
type ReplicaRecord struct {
	ID, Host, Version string
	PID               int
	Roles             []string
	StartedAt, BeatAt time.Time
	// Silent is the age of the last beat, by Postgres's clock.
	Silent time.Duration
	// Partitions are those that it holds.
	Partitions []int
	// ClaimedRules is the number of enabled rules of these partitions,
	// ClaimedNotifications that of the leases on notifications.
	ClaimedRules, ClaimedNotifications int64
}

// StatusSource tells how the system is doing.
type StatusSource interface {
	Status(ctx context.Context, tenant string) (SystemStatus, error)
}

// SystemStatus is the state of a tenant's rules and of the outbox.
type SystemStatus struct {
	Rules, EnabledRules int64
	// FailingRules is the number of enabled rules whose last evaluation did not succeed.
	FailingRules int64
	// LookingBack is the number of enabled rules that have still to judge something behind
	// their cursors, and LookingBackTo the start time from which on; nil where there is none.
	LookingBack   int64
	LookingBackTo *time.Time
	// Partitions are those of all tenants.
	Partitions []PartitionRecord
	// Slowest is the enabled rule that is farthest behind; nil when none has a cursor.
	Slowest *RuleLag
	// OutboxDepth is the number of notifications not yet settled, OldestOwed the
	// age of the oldest of them, by Postgres's clock; nil when there is none. The
	// number is exact unless it is estimated.
	OutboxDepth     int64
	OutboxEstimated bool
	OldestOwed      *time.Duration
	// Completeness is nil before rules were first compared with the source.
	Completeness *Completeness
}

// PartitionRecord is a partition as people see it.
type PartitionRecord struct {
	Partition int
	// CursorAt is the start time of the cursor, nil before the first pass; Lag is how far
	// that is behind the present, by Postgres's clock.
	CursorAt *time.Time
	Lag      *time.Duration
	// BackfillFrom is the start time from which on something behind the cursor is still to
	// be judged; nil when nothing is.
	BackfillFrom *time.Time
	// Owner is the replica that holds it; empty when none does.
	Owner string
}

// Completeness is how the comparisons of the rules of all tenants with the
// source have ended.
type Completeness struct {
	// Rules were compared in the last round, Missing the exchanges that match and
	// have no alert, as it or the one under way found.
	Rules, Missing int64
	ComparedAt     time.Time
	// WholeSince is since when every rule has been compared; nil before the first
	// whole round.
	WholeSince *time.Time
}

// RuleLag is how far a rule is behind.
type RuleLag struct {
	RuleID   uuid.UUID
	RuleName string
	Lag      time.Duration
}

// Activity tells how much happened lately.
type Activity interface {
	// Raised counts the alerts about exchanges that were raised in the hour that
	// ends with the present minute, by Postgres's clock.
	Raised(ctx context.Context, tenant string) (Raised, error)
}

// RaisedMinutes is how many minutes [Raised] covers.
const RaisedMinutes = 60

// Raised are alerts by the minute in which they were raised, the oldest first.
type Raised struct {
	From time.Time
	// Complete is false where there are too many to count them all: then the
	// oldest are left out.
	Complete bool
	// Rules has no entry for a rule that raised nothing.
	Rules map[uuid.UUID]*[RaisedMinutes]int64
}

// Pulse tells whether an inbox has changed.
type Pulse interface {
	// Pulse returns the present state of an inbox.
	Pulse(ctx context.Context, tenant string) (InboxState, error)
}

// InboxState says how an inbox is, and what has changed in it.
type InboxState struct {
	// Fingerprint differs whenever a list of alerts or an alert in it would differ.
	// It is printable ASCII of at most 200 bytes.
	Fingerprint string
	Counts      alerts.Counts
	// Changed are at least the alerts that have changed since the state before, at
	// most [MaxChanged]; nil where that is not known or too much.
	Changed []uuid.UUID
}

// MaxChanged bounds the alerts that an [InboxState] names.
const MaxChanged = 200
