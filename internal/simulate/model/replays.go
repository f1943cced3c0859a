package model

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/notify"
	"tocsin/rules"
)

// The states of a replay.
const (
	ReplayRunning   = "RUNNING"
	ReplayDone      = "DONE"
	ReplayCancelled = "CANCELLED"
	ReplayStopped   = "STOPPED"
	ReplayFailed    = "FAILED"
)

// Replay is the row of a replay.
type Replay struct {
	ruleset.Replay
	FromNS          int64
	CreatedAt       time.Time
	State           string
	Matched, Alerts int
}

// replayOf returns the running replay of a rule.
func (db *Postgres) replayOf(rule uuid.UUID) (Replay, bool) {
	for _, p := range db.replays.rows {
		if p.RuleID == rule && p.State == ReplayRunning {
			return p, true
		}
	}
	return Replay{}, false
}

// Replay returns a replay.
func (db *Postgres) Replay(id uuid.UUID) (Replay, bool) { return db.replays.get(id) }

// RunningReplays returns how many replays are running.
func (db *Postgres) RunningReplays() (n int) {
	for _, p := range db.replays.rows {
		if p.State == ReplayRunning {
			n++
		}
	}
	return n
}

// StartReplay evaluates a rule over a past range again.
func (db *Postgres) StartReplay(rule, id uuid.UUID, fromNS, toNS int64, messages ruleset.ReplayMessages) error {
	return db.tx(func() error {
		r, there := db.rules.get(rule)
		if _, runs := db.replayOf(rule); !there || runs || r.Deleted || !r.Enabled || r.FireMode != rules.PerExchange || fromNS < r.RetentionFloorNS {
			return ErrConflict
		}
		revision, _, err := db.change(r.TenantID)
		if err != nil {
			return err
		}
		r.Changed = revision
		db.rules.put(rule, r)
		db.replays.put(id, Replay{State: ReplayRunning, FromNS: fromNS, CreatedAt: db.now(), Replay: ruleset.Replay{
			ID: id, RuleID: rule, At: cursor.Position{StartTimeNS: fromNS}, ToNS: toNS, Messages: messages,
		}})
		return nil
	})
}

// CancelReplay ends a running replay.
func (db *Postgres) CancelReplay(rule uuid.UUID) error {
	return db.tx(func() error {
		r, there := db.rules.get(rule)
		if _, runs := db.replayOf(rule); !there || !runs {
			return ErrConflict
		}
		revision, _, err := db.change(r.TenantID)
		if err != nil {
			return err
		}
		r.Changed = revision
		db.rules.put(rule, r)
		db.endReplay(rule, ReplayCancelled)
		return nil
	})
}

// endReplay ends the running replay of a rule, if there is one, and returns the webhooks for which
// its digests are due now.
func (db *Postgres) endReplay(rule uuid.UUID, state string) (due []uuid.UUID) {
	p, runs := db.replayOf(rule)
	if !runs {
		return nil
	}
	p.State = state
	db.replays.put(p.ID, p)
	now := db.now()
	for _, id := range byID(&db.outbox) {
		if o := db.outbox.rows[id]; o.Replay == p.ID {
			o.Replay, o.DueAt, o.ReadyAt, o.Since = uuid.Nil, now, now, now
			db.outbox.put(id, o)
			due = append(due, o.WebhookID)
		}
	}
	return due
}

// gatherReplayed puts a notification into the digest of a replay for its webhook, which waits in
// the outbox until the replay ends.
func (db *Postgres) gatherReplayed(step *ruleset.ReplayStep, n *notify.Notification, now time.Time) {
	id := notify.ID(step.ID, n.WebhookID, notify.ReasonDigest, 0)
	if !db.notifications.has(id) {
		db.notifications.put(id, Notification{ID: id, WebhookID: n.WebhookID, TenantID: n.TenantID, Reason: notify.ReasonDigest, CreatedAt: now})
		db.outbox.put(id, OutboxRow{ID: id, WebhookID: n.WebhookID, Since: now, Digest: true, Replay: step.ID})
	}
	members, _ := db.digests.get(id)
	db.digests.put(id, append(slices.Clip(members), n.ID))
	db.digestOf.put(n.ID, id)
	db.outbox.remove(n.ID)
}

// advanceReplay stores the position that a batch has reached in a replay, and ends the replay there
// or where it failed.
func (db *Postgres) advanceReplay(step *ruleset.ReplayStep, done *evaluator.Committed) error {
	if step == nil {
		return nil
	}
	p, there := db.replays.get(step.ID)
	if !there || p.State != ReplayRunning && db.has(ReplayOver) {
		return evaluator.ErrStale
	}
	p.At, p.Matched, p.Alerts = step.At, p.Matched+step.Matched, p.Alerts+len(done.Inserted)
	db.replays.put(step.ID, p)
	state := ReplayDone
	switch {
	case step.Failed:
		state = ReplayFailed
	case !step.Done():
		return nil
	}
	for _, webhook := range db.endReplay(p.RuleID, state) {
		done.Notifications[webhook]++
	}
	return nil
}
