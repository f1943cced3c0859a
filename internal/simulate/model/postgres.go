package model

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/notify"
	"tocsin/rules"
)

// Checkpoint is the row of a partition.
type Checkpoint struct {
	evaluator.Checkpoint
	Owner      string
	LeaseUntil time.Time
}

// Rule is the row of a rule, with its state.
type Rule struct {
	rules.Rule
	// Changed is the rules revision of its last change.
	Changed int64
	Problem string
	Deleted bool
}

// Alert is the row of an alert. Key is empty for an alert about health.
type Alert struct {
	ID, RuleID  uuid.UUID
	TenantID    string
	RuleVersion int64
	Key         string
	StartNS     int64
	State       alerts.State
	FiredAt     time.Time
	// AcknowledgedAt is the zero time if the alert was not acknowledged.
	AcknowledgedAt, ResolvedAt time.Time
	// Change numbers its last change, by which an undo detects later changes.
	Change uint64
	Health bool
	Late   bool
	// WebhookID is set for an alert about a webhook; Source says that it is about the source.
	WebhookID uuid.UUID
	Source    bool
	// Window says that a window rule raised it, for a group. Held suppresses further alerts of that
	// group after a user has resolved the alert. Observed is what the window contained when that
	// was last written; its newest exchange began at StartNS, and had to last for LeastNS.
	Window, Held  bool
	Group         string
	NotifiedAt    time.Time
	Reminders     int
	Observed      int64
	NewestEndedNS int64
	LeastNS       int64
	// Routing is how the alert was routed, if it was.
	Routing *alerts.Routing
	// Severity and Exchange belong to an alert about an exchange.
	Severity rules.Severity
	Exchange *rules.Exchange
	// Resolution is why Tocsin resolved the alert by age or evidence; nil if it did not.
	Resolution *alerts.Resolution
}

// Notification is the row of a notification.
type Notification struct {
	ID, AlertID, RuleID, WebhookID uuid.UUID
	TenantID                       string
	Reason                         notify.Reason
	// Generation distinguishes reminders.
	Generation int
	// About is the message that could not be delivered.
	About     uuid.UUID
	CreatedAt time.Time
	// Silence is the silence that asked for a digest, which is about this time range.
	Silence                     uuid.UUID
	SilencedFrom, SilencedUntil time.Time
}

// OutboxRow is a row of the outbox.
type OutboxRow struct {
	ID, WebhookID                            uuid.UUID
	DueAt, ReadyAt, Since, BegunAt           time.Time
	Attempts, Counted, Generation, BegunFrom int
	Token                                    int64
	ClaimedBy                                string
	Digest, Alone                            bool
	// Reached are the recipients that have the message, one per line.
	Reached string
	// Replay is the replay for which a digest waits; nil if it does not wait.
	Replay uuid.UUID
	// ExpiresAt is when the message is of no use any more; zero if it always is.
	ExpiresAt time.Time
	// QuietUntil is the end of the quiet hours that hold it; zero if none do.
	QuietUntil time.Time
}

// claimed reports whether an attempt was begun whose outcome is not stored.
func (o *OutboxRow) claimed() bool { return o.Token != 0 && !o.BegunAt.IsZero() }

// Attempt is the record of an attempt; without FinishedAt its outcome is unknown.
type Attempt struct {
	Number     int
	Token      int64
	Replica    string
	StartedAt  time.Time
	FinishedAt time.Time
	Verdict    notify.Verdict
}

// Settlement is how a message ended. Attempt is the one that ended it, or 0.
type Settlement struct {
	Status    notify.Status
	SettledAt time.Time
	Attempt   Attempt
	Trail     bool
	// Silence is the silence that suppressed the message.
	Silence uuid.UUID
}

// Webhook is the row of a webhook, with what attempts have shown of it.
type Webhook struct {
	notify.Webhook
	notify.Breaker
	ProbeID    uuid.UUID
	ProbeToken int64
	NextSendAt time.Time
}

type onceKey struct {
	rule uuid.UUID
	key  string
}

type attemptKey struct {
	id     uuid.UUID
	number int
}

type notificationKey struct {
	alert, webhook uuid.UUID
	reason         notify.Reason
	generation     int
}

type incidentKey struct {
	webhook uuid.UUID
	kind    string
}

type replica struct {
	beatAt, evaluatedAt time.Time
}

type body struct {
	notify.Body
	problem   string
	writtenAt time.Time
}

type announcement struct {
	replica string
	since   time.Time
}

// Postgres is the store. It is not safe for concurrent use.
type Postgres struct {
	// Clock is the database's clock.
	Clock func() time.Time
	// DeadAfter is the time without a heartbeat after which a replica is dead.
	DeadAfter time.Duration
	// PartitionOf returns the partition of a tenant.
	PartitionOf func(tenant string) int
	// Without lists the guards that are removed.
	Without map[Guard]bool
	// Refuses reports whether the database rejects an alert, as one that it cannot store.
	Refuses func(a *alerts.Instance) bool

	log           journal
	checkpoints   table[int, Checkpoint]
	rules         table[uuid.UUID, Rule]
	backfills     table[uuid.UUID, ruleset.Backfill]
	replays       table[uuid.UUID, Replay]
	failing       table[uuid.UUID, uuid.UUID]
	sources       table[string, announcement]
	alerts        table[uuid.UUID, Alert]
	once          table[onceKey, uuid.UUID]
	openOrHeld    table[uuid.UUID, []uuid.UUID]
	notifications table[uuid.UUID, Notification]
	notifiedOnce  table[notificationKey, uuid.UUID]
	ofAlert       table[uuid.UUID, []uuid.UUID]
	outbox        table[uuid.UUID, OutboxRow]
	attempts      table[attemptKey, Attempt]
	lastAttempt   table[uuid.UUID, int]
	settlements   table[uuid.UUID, Settlement]
	bodies        table[uuid.UUID, body]
	retries       table[uuid.UUID, int]
	digestOf      table[uuid.UUID, uuid.UUID]
	digests       table[uuid.UUID, []uuid.UUID]
	webhooks      table[uuid.UUID, Webhook]
	incidents     table[incidentKey, uuid.UUID]
	references    table[referenceKey, string]
	silences      table[uuid.UUID, Silence]
	listedIn      table[uuid.UUID, uuid.UUID]
	policies      table[string, Policy]
	replicas      table[string, replica]
	escalations   table[uuid.UUID, Escalation]
	snoozes       table[uuid.UUID, Snooze]
	actions       table[uuid.UUID, Action]
	resolving     table[uuid.UUID, resolving]

	ids, tokens, changes uint64
	// touchedAlerts and touchedMessages have changed since the last call of Touched.
	touchedAlerts, touchedMessages map[uuid.UUID]bool
}

// NewPostgres returns a store with some partitions.
func NewPostgres(partitions int, clock func() time.Time, partitionOf func(string) int) *Postgres {
	db := &Postgres{Clock: clock, DeadAfter: time.Minute, PartitionOf: partitionOf, Without: map[Guard]bool{}}
	log := &db.log
	db.checkpoints, db.rules, db.backfills = newTable[int, Checkpoint](log), newTable[uuid.UUID, Rule](log), newTable[uuid.UUID, ruleset.Backfill](log)
	db.replays = newTable[uuid.UUID, Replay](log)
	db.failing, db.sources = newTable[uuid.UUID, uuid.UUID](log), newTable[string, announcement](log)
	db.alerts, db.once, db.openOrHeld = newTable[uuid.UUID, Alert](log), newTable[onceKey, uuid.UUID](log), newTable[uuid.UUID, []uuid.UUID](log)
	db.notifications, db.notifiedOnce = newTable[uuid.UUID, Notification](log), newTable[notificationKey, uuid.UUID](log)
	db.ofAlert, db.outbox = newTable[uuid.UUID, []uuid.UUID](log), newTable[uuid.UUID, OutboxRow](log)
	db.attempts, db.lastAttempt = newTable[attemptKey, Attempt](log), newTable[uuid.UUID, int](log)
	db.replicas = newTable[string, replica](log)
	db.settlements, db.bodies = newTable[uuid.UUID, Settlement](log), newTable[uuid.UUID, body](log)
	db.retries, db.digestOf, db.digests = newTable[uuid.UUID, int](log), newTable[uuid.UUID, uuid.UUID](log), newTable[uuid.UUID, []uuid.UUID](log)
	db.silences, db.listedIn = newTable[uuid.UUID, Silence](log), newTable[uuid.UUID, uuid.UUID](log)
	db.policies = newTable[string, Policy](log)
	db.webhooks, db.incidents = newTable[uuid.UUID, Webhook](log), newTable[incidentKey, uuid.UUID](log)
	db.references = newTable[referenceKey, string](log)
	db.escalations, db.snoozes, db.actions = newTable[uuid.UUID, Escalation](log), newTable[uuid.UUID, Snooze](log), newTable[uuid.UUID, Action](log)
	db.resolving = newTable[uuid.UUID, resolving](log)
	db.touchedAlerts, db.touchedMessages = map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	alert, message := func(id uuid.UUID) { db.touchedAlerts[id] = true }, func(id uuid.UUID) { db.touchedMessages[id] = true }
	db.alerts.touched, db.ofAlert.touched, db.escalations.touched, db.snoozes.touched = alert, alert, alert, alert
	db.notifications.touched, db.outbox.touched, db.settlements.touched, db.digestOf.touched, db.listedIn.touched = message, message, message, message, message
	for n := range partitions {
		db.checkpoints.rows[n] = Checkpoint{Checkpoint: evaluator.Checkpoint{Partition: n, Index: uint32(n), Of: uint32(partitions), RulesRevision: 1}}
	}
	return db
}

// has reports whether a guard is in place.
func (db *Postgres) has(g Guard) bool { return !db.Without[g] }

// now is the clock with the precision of Postgres, microseconds.
func (db *Postgres) now() time.Time { return db.Clock().Truncate(time.Microsecond) }

// tx is a transaction.
func (db *Postgres) tx(f func() error) error {
	if err := f(); err != nil {
		db.log.rollback()
		return err
	}
	db.log.commit()
	return nil
}

// Failover reverts the last transactions, at most n, and returns how many.
func (db *Postgres) Failover(n int) int { return db.log.lose(n) }

// newID returns an id that no other row ever has, whatever a failover reverts.
func (db *Postgres) newID() uuid.UUID {
	db.ids++
	var id uuid.UUID
	ms := uint64(db.now().UnixMilli())
	binary.BigEndian.PutUint64(id[:], ms<<16)
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(db.ids))
	return id
}

// newToken returns a token that is not used again after a failover: the real ones are random.
func (db *Postgres) newToken() int64 {
	db.tokens++
	return int64((db.tokens*0x9e3779b97f4a7c15)>>1 | 1)
}

// newChange returns the number of the next change of alerts.
func (db *Postgres) newChange() uint64 {
	db.changes++
	return db.changes
}

var errNoPartition = errors.New("there is no such partition")

// position copies a position, so that no row shares memory with a caller.
func position(at *cursor.Position) *cursor.Position {
	if at == nil {
		return nil
	}
	return new(*at)
}
