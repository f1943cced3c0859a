package model

import (
	"github.com/google/uuid"

	"tocsin/evaluator/ruleset"
	"tocsin/notify"
)

// What a checker reads. The results must not be changed.

// Touched returns the alerts and the messages that have changed since the last call, in order.
func (db *Postgres) Touched() (alerts, messages []uuid.UUID) {
	if len(db.touchedAlerts) > 0 {
		alerts = sortedIDs(db.touchedAlerts)
		clear(db.touchedAlerts)
	}
	if len(db.touchedMessages) > 0 {
		messages = sortedIDs(db.touchedMessages)
		clear(db.touchedMessages)
	}
	return alerts, messages
}

// Alert returns an alert.
func (db *Postgres) Alert(id uuid.UUID) (Alert, bool) { return db.alerts.get(id) }

// AlertIDs returns the ids of all alerts, in order.
func (db *Postgres) AlertIDs() []uuid.UUID { return byID(&db.alerts) }

// NotificationsOf returns the notifications about an alert, in the order in which they were
// written.
func (db *Postgres) NotificationsOf(alert uuid.UUID) []Notification {
	ids, _ := db.ofAlert.get(alert)
	list := make([]Notification, len(ids))
	for i, id := range ids {
		list[i] = db.notifications.rows[id]
	}
	return list
}

// Message is what the store contains about a notification or a digest.
type Message struct {
	Notification

	// Row is its row of the outbox; nil if it is settled or in a digest.
	Row        *OutboxRow
	Settlement *Settlement
	// Digest is the digest that contains it, Members are the notifications that it contains.
	Digest  uuid.UUID
	Members []uuid.UUID
	// Generation is how often a user has sent it again.
	Generation int
}

// Message returns a message.
func (db *Postgres) Message(id uuid.UUID) (Message, bool) {
	n, there := db.notifications.get(id)
	m := Message{Notification: n}
	if o, waiting := db.outbox.get(id); waiting {
		m.Row = &o
	}
	if s, ended := db.settlements.get(id); ended {
		m.Settlement = &s
	}
	m.Digest, m.Members = db.digestOf.rows[id], db.digests.rows[id]
	m.Generation = db.retries.rows[id]
	return m, there
}

// SuppressedBy returns the silence that suppressed a message, or [uuid.Nil].
func (m *Message) SuppressedBy() uuid.UUID {
	if m.Settlement == nil {
		return uuid.Nil
	}
	return m.Settlement.Silence
}

// Messages returns the ids of all notifications and digests, in order.
func (db *Postgres) Messages() []uuid.UUID { return byID(&db.notifications) }

// WaitingCount returns how many messages are queued.
func (db *Postgres) WaitingCount() int { return len(db.outbox.rows) }

// HasAttempt reports whether an attempt is recorded, completed or under way.
func (db *Postgres) HasAttempt(id uuid.UUID, number int) bool {
	if db.attempts.has(attemptKey{id, number}) || db.settlements.rows[id].Attempt.Number == number {
		return true
	}
	o, waiting := db.outbox.get(id)
	return waiting && o.Attempts == number && o.claimed()
}

// MayHaveLeft reports whether a message or digest was sent, or may have been: whether an attempt is under way, or was not just
// not made.
func (db *Postgres) MayHaveLeft(id uuid.UUID) bool {
	last, _ := db.lastAttempt.get(id)
	for number := 1; number <= last; number++ {
		if a, there := db.attempts.get(attemptKey{id, number}); there && a.Verdict != notify.VerdictNotMade {
			return true
		}
	}
	o, open := db.outbox.get(id)
	s, ended := db.settlements.get(id)
	switch {
	case open:
		return o.Token != 0
	case !ended, s.Status == notify.Delivered:
		return true
	}
	return s.Attempt.Number > 0 && s.Attempt.Verdict != notify.VerdictNotMade
}

// Rule returns a rule.
func (db *Postgres) Rule(id uuid.UUID) (Rule, bool) { return db.rules.get(id) }

// Checkpoint returns the row of a partition.
func (db *Postgres) Checkpoint(partition int) Checkpoint { return db.checkpoints.rows[partition] }

// Backfill returns the progress of a rule that has progress of its own.
func (db *Postgres) Backfill(rule uuid.UUID) (ruleset.Backfill, bool) {
	return db.backfills.get(rule)
}

// Backfills returns how many rules have progress of their own.
func (db *Postgres) Backfills() int { return len(db.backfills.rows) }

// Webhook returns a webhook.
func (db *Postgres) Webhook(id uuid.UUID) Webhook { return db.webhooks.rows[id] }

// AlertOf returns the alert of a rule about an exchange.
func (db *Postgres) AlertOf(rule uuid.UUID, key string) (uuid.UUID, bool) {
	return db.once.get(onceKey{rule, key})
}

// Status returns the status of a message, and the verdicts of its attempts in order.
func (db *Postgres) Status(id uuid.UUID) (status notify.Status, verdicts []string) {
	if digest, in := db.digestOf.get(id); in {
		id = digest
	}
	last, _ := db.lastAttempt.get(id)
	s, ended := db.settlements.get(id)
	o, waiting := db.outbox.get(id)
	for number := 1; number <= max(last, o.Attempts); number++ {
		a, there := db.attempts.get(attemptKey{id, number})
		switch {
		case ended && s.Attempt.Number == number:
			a = s.Attempt
		case !there && (!waiting || o.Attempts != number || !o.claimed()):
			continue
		}
		verdicts = append(verdicts, a.Verdict.String())
	}
	switch {
	case ended:
		return s.Status, verdicts
	case o.Attempts > 1 || o.Attempts == 1 && (o.Token == 0 || !o.DueAt.After(db.now())):
		return notify.Retrying, verdicts
	}
	return notify.Pending, verdicts
}
