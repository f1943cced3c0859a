package model

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/retention"
)

// Bodies deletes the bodies that are older than keep, unless their message is open. The model has
// no partitions: only the real store decides which rows are in which.
func (db *Postgres) Bodies(_ context.Context, keep, _ time.Duration, most int) (more bool, err error) {
	err = db.tx(func() error {
		before, deleted := db.now().Add(-keep), 0
		for _, id := range byID(&db.bodies) {
			if _, open := db.outbox.get(id); open || !db.bodies.rows[id].writtenAt.Before(before) {
				continue
			}
			if more = deleted == most; more {
				return nil
			}
			db.bodies.remove(id)
			deleted++
		}
		return nil
	})
	return more, err
}

// Responses deletes the oldest stored responses.
func (db *Postgres) Responses(_ context.Context, keep time.Duration, most int) (deleted int, err error) {
	err = db.tx(func() error {
		before := db.now().Add(-keep)
		for _, id := range byID(&db.settlements) {
			if s := db.settlements.rows[id]; s.Trail && s.SettledAt.Before(before) && deleted < most {
				s.Trail = false
				db.settlements.put(id, s)
				deleted++
			}
		}
		return nil
	})
	return deleted, err
}

// Alerts deletes those of a batch of alerts that are not needed any more: it first raises the
// retention floors of their rules, and then deletes.
func (db *Postgres) Alerts(_ context.Context, batch retention.Batch) (result retention.BatchResult, err error) {
	list := db.candidates(&batch)
	if len(list) == 0 {
		return result, nil
	}
	last := list[len(list)-1]
	result.Looked, result.Next = len(list), retention.Mark{ResolvedAt: last.ResolvedAt, AlertID: last.ID}
	var over []uuid.UUID
	err = db.tx(func() error {
		over = db.release(list, batch.Keep)
		return nil
	})
	if err != nil || len(over) == 0 {
		return result, err
	}
	err = db.tx(func() error {
		for _, id := range over {
			if db.deleteAlert(id) {
				result.Deleted++
			}
		}
		return nil
	})
	return result, err
}

func (db *Postgres) candidates(batch *retention.Batch) []Alert {
	before := db.now().Add(-batch.Keep)
	var list []Alert
	for _, a := range db.alerts.rows {
		if a.State == alerts.Resolved && a.ResolvedAt.Before(before) && afterMark(&a, batch.After) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b Alert) int {
		if order := a.ResolvedAt.Compare(b.ResolvedAt); order != 0 {
			return order
		}
		return compareIDs(a.ID, b.ID)
	})
	return list[:min(len(list), batch.Most)]
}

func afterMark(a *Alert, m retention.Mark) bool {
	order := a.ResolvedAt.Compare(m.ResolvedAt)
	return order > 0 || order == 0 && compareIDs(a.ID, m.AlertID) > 0
}

// release raises retention floors and returns the alerts that are behind them, or that no rule can
// raise again anyway.
func (db *Postgres) release(list []Alert, keep time.Duration) (over []uuid.UUID) {
	for _, a := range list {
		r, there := db.rules.get(a.RuleID)
		if a.Key == "" || !there || r.Deleted {
			over = append(over, a.ID)
			continue
		}
		reach := db.reach(&r, keep)
		if !db.has(RetentionReach) {
			reach = a.StartNS + 1
		}
		if a.StartNS >= r.RetentionFloorNS && a.StartNS < reach {
			if r.RetentionFloorNS = max(r.RetentionFloorNS, reach); db.has(RetentionRaises) {
				db.rules.put(r.ID, r)
			}
		}
		if a.StartNS < r.RetentionFloorNS {
			over = append(over, a.ID)
		}
	}
	return over
}

// reach returns how far back a rule reads.
func (db *Postgres) reach(r *Rule, keep time.Duration) int64 {
	at := db.now().UnixNano()
	c := db.checkpoints.rows[db.PartitionOf(r.TenantID)]
	b, behind := db.backfills.get(r.ID)
	if c.Cursor == nil && !behind {
		at = min(at, r.ArmedSinceNS)
	}
	if c.Cursor != nil {
		at = min(at, c.Cursor.StartTimeNS)
	}
	if behind {
		at = min(at, b.At.StartTimeNS)
	}
	reach := retention.ReachNS(at, time.Duration(r.LookBackSeconds)*time.Second, keep)
	if c.Backfill != nil {
		reach = min(reach, c.Backfill.FromNS)
	}
	return reach
}

// deleteAlert deletes an alert with everything that belongs to it, unless some of that is still open.
func (db *Postgres) deleteAlert(id uuid.UUID) bool {
	a := db.alerts.rows[id]
	if r, there := db.rules.get(a.RuleID); a.Held && there && !r.Deleted {
		return false
	}
	messages, _ := db.ofAlert.get(id)
	for _, n := range messages {
		if digest, listed := db.listedIn.get(n); listed && db.outbox.has(digest) && db.has(RetentionWaiting) {
			return false
		}
		if digest, in := db.digestOf.get(n); in {
			n = digest
		}
		if db.outbox.has(n) && db.has(RetentionWaiting) {
			return false
		}
	}
	if of, fails := db.failing.get(a.RuleID); fails && of == id {
		return false
	}
	for _, n := range messages {
		if digest, in := db.digestOf.get(n); in {
			db.leave(n, digest)
		}
		db.unlist(n)
		row := db.notifications.rows[n]
		db.notifiedOnce.remove(notificationKey{row.AlertID, row.WebhookID, row.Reason, row.Generation})
		db.forgetMessage(n)
	}
	db.ofAlert.remove(id)
	if a.Key != "" {
		db.once.remove(onceKey{a.RuleID, a.Key})
	}
	db.removeAlert(id)
	return true
}

// forgetMessage deletes a message with its attempts.
func (db *Postgres) forgetMessage(id uuid.UUID) {
	last, _ := db.lastAttempt.get(id)
	for number := 1; number <= last; number++ {
		db.attempts.remove(attemptKey{id, number})
	}
	db.lastAttempt.remove(id)
	db.outbox.remove(id)
	db.settlements.remove(id)
	db.bodies.remove(id)
	db.retries.remove(id)
	db.notifications.remove(id)
}

// Done deletes digests without remaining members.
func (db *Postgres) Done(_ context.Context, keep time.Duration) error {
	return db.tx(func() error {
		before := db.now().Add(-keep)
		for _, id := range byID(&db.digests) {
			s, ended := db.settlements.get(id)
			if ended && s.SettledAt.Before(before) && len(db.digests.rows[id]) == 0 {
				db.digests.remove(id)
				db.forgetMessage(id)
			}
		}
		return nil
	})
}
