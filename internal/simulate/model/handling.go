package model

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
)

// Snooze is the row of a snooze.
type Snooze struct{ Until, SnoozedAt, SnoozedSince time.Time }

// Action is the row of something that a person did with alerts.
type Action struct {
	Change uint64
	At     time.Time
	Undone bool
}

// longestSnooze is how far ahead a snooze ends at most.
const longestSnooze = 30 * 24 * time.Hour

// Acknowledge and Resolve are what people do with an alert.
func (db *Postgres) Acknowledge(id uuid.UUID) error { return db.handle(id, alerts.Acknowledged) }

// Resolve ends an alert.
func (db *Postgres) Resolve(id uuid.UUID) error { return db.handle(id, alerts.Resolved) }

func (db *Postgres) handle(id uuid.UUID, to alerts.State) error {
	return db.tx(func() error {
		if !db.bring(id, to, db.newChange()) {
			return ErrConflict
		}
		return db.notifyState(id, to)
	})
}

// notifyState notifies the webhooks that chose it of what a person did with an alert.
func (db *Postgres) notifyState(id uuid.UUID, to alerts.State) error {
	if !db.has(EventsNotified) {
		return nil
	}
	a := db.alerts.rows[id]
	reason := notify.ReasonResolved
	if to == alerts.Acknowledged {
		reason = notify.ReasonAcknowledged
	}
	return db.notifyEvent(&a, reason, db.now(), map[uuid.UUID]int{})
}

// bring brings an alert to a state, where a person may.
func (db *Postgres) bring(id uuid.UUID, to alerts.State, change uint64) bool {
	a, there := db.alerts.get(id)
	if !there || a.State == alerts.Pending || a.State == alerts.Resolved || a.State == to {
		return false
	}
	if a.State = to; to == alerts.Resolved {
		a.ResolvedAt, a.Held = db.now(), a.Window
	} else {
		a.AcknowledgedAt = db.now()
	}
	a.Change = change
	db.keepAlert(a)
	return true
}

// Act brings some alerts to a state, as an action that can be undone.
func (db *Postgres) Act(action uuid.UUID, to alerts.State, ids ...uuid.UUID) (changed []uuid.UUID, err error) {
	err = db.tx(func() error {
		change := db.newChange()
		for _, id := range ids {
			if db.bring(id, to, change) {
				changed = append(changed, id)
			}
		}
		db.actions.put(action, Action{Change: change, At: db.now()})
		for _, id := range changed {
			if err := db.notifyState(id, to); err != nil {
				return err
			}
		}
		return nil
	})
	return changed, err
}

// Undo puts back what an action changed and nothing has changed since. It leaves alerts about health as
// they are: tests on Postgres hold what becomes of them.
func (db *Postgres) Undo(action uuid.UUID) (restored []uuid.UUID, err error) {
	err = db.tx(func() error {
		done, there := db.actions.get(action)
		now := db.now()
		if !there || done.Undone || !done.At.After(now.Add(-undoWithin)) {
			return ErrConflict
		}
		change := db.newChange()
		for _, id := range byID(&db.alerts) {
			if a := db.alerts.rows[id]; a.Change == done.Change && db.restore(a, change) {
				restored = append(restored, id)
				db.resumeEscalation(id, done.At, now)
			}
		}
		done.Undone = true
		db.actions.put(action, done)
		for _, id := range restored {
			a := db.alerts.rows[id]
			if err := db.notifyEvent(&a, notify.ReasonReopened, now, map[uuid.UUID]int{}); err != nil {
				return err
			}
		}
		return nil
	})
	return restored, err
}

func (db *Postgres) restore(a Alert, change uint64) bool {
	taken := slices.ContainsFunc(db.OpenOrHeld(a.RuleID), func(o Alert) bool { return a.Window && o.ID != a.ID && o.Group == a.Group })
	switch {
	case a.State == alerts.Acknowledged:
		a.State, a.AcknowledgedAt = alerts.Firing, time.Time{}
	case taken || a.Health:
		return false
	case a.AcknowledgedAt.IsZero():
		a.State = alerts.Firing
	default:
		a.State = alerts.Acknowledged
	}
	a.ResolvedAt, a.Held, a.Change = time.Time{}, false, change
	db.keepAlert(a)
	return true
}

// Action returns something that a person did with alerts.
func (db *Postgres) Action(id uuid.UUID) (Action, bool) { return db.actions.get(id) }

// Snoozed returns the snooze of an alert.
func (db *Postgres) Snoozed(alert uuid.UUID) (Snooze, bool) { return db.snoozes.get(alert) }

// Snooze lets an alert be quiet until an instant.
func (db *Postgres) Snooze(id uuid.UUID, until time.Time) error {
	return db.tx(func() error {
		a, there := db.alerts.get(id)
		now := db.now()
		if !there || a.State.Snoozable() != nil || !until.After(now) || until.After(now.Add(longestSnooze)) {
			return ErrConflict
		}
		since := now
		if was, there := db.snoozes.get(id); there && was.Until.After(now) {
			since = was.SnoozedSince
		}
		db.snoozes.put(id, Snooze{until.Truncate(time.Microsecond), now, since})
		db.putAlert(a)
		return nil
	})
}

// CancelSnooze has an alert be quiet no more, and reports whether there was a snooze.
func (db *Postgres) CancelSnooze(id uuid.UUID) (was Snooze, cancelled bool) {
	_ = db.tx(func() error {
		was, cancelled = db.snoozes.get(id)
		if !cancelled {
			return nil
		}
		now := db.now()
		db.snoozes.remove(id)
		if was.SnoozedSince.After(now.Add(-undoWithin)) {
			db.resumeEscalation(id, was.SnoozedSince, now)
		}
		db.putAlert(db.alerts.rows[id])
		return nil
	})
	return was, cancelled
}

// SnoozesOver returns the alerts whose snooze is over.
func (db *Postgres) SnoozesOver() (list []uuid.UUID) {
	for _, id := range byID(&db.snoozes) {
		if !db.snoozes.rows[id].Until.After(db.now()) {
			list = append(list, id)
		}
	}
	return list
}

// Remind ends the snooze of an alert that was found to be over, if it is still, and returns how many
// messages remind each webhook.
func (db *Postgres) Remind(id uuid.UUID) (due map[uuid.UUID]int, err error) {
	due = map[uuid.UUID]int{}
	err = db.tx(func() error {
		a, there := db.alerts.get(id)
		now := db.now()
		z, snoozed := db.snoozes.get(id)
		if !there || db.has(SnoozeLocked) && (!snoozed || z.Until.After(now)) {
			return nil
		}
		if a.State == alerts.Resolved && db.has(SnoozeVoid) {
			db.snoozes.remove(id)
			return nil
		}
		if err := db.follow(&a, db.recipients(id), follower{reason: notify.ReasonSnoozeEnded}, now, due); err != nil {
			return err
		}
		if !db.has(SnoozeEnds) {
			return nil // as where a process dies before a second transaction
		}
		db.snoozes.remove(id)
		if !a.NotifiedAt.IsZero() {
			a.NotifiedAt = now
		}
		db.putAlert(a)
		return nil
	})
	return due, err
}

// recipients returns the webhooks that had a message that says that an alert is open.
func (db *Postgres) recipients(alert uuid.UUID) (webhooks []uuid.UUID) {
	for _, n := range db.NotificationsOf(alert) {
		if n.About == uuid.Nil && slices.Contains(notify.OpeningReasons(), n.Reason) && !slices.Contains(webhooks, n.WebhookID) {
			webhooks = append(webhooks, n.WebhookID)
		}
	}
	return webhooks
}

// Following returns how many snoozes and escalations have not come to their end.
func (db *Postgres) Following() int { return len(db.snoozes.rows) + len(db.escalations.rows) }
