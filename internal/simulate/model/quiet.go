package model

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// quiet has a message that was just written be held by the quiet hours of its webhook, and reports
// whether it is.
func (db *Postgres) quiet(id uuid.UUID, now time.Time) bool {
	o := db.outbox.rows[id]
	a, w := db.alerts.rows[db.notifications.rows[id].AlertID], db.webhooks.rows[o.WebhookID]
	passes := a.Severity == rules.Critical && db.has(QuietCritical) || a.Health && db.has(QuietHealth)
	if len(w.QuietHours) == 0 || passes || !db.has(QuietHeld) {
		return false
	}
	until := w.QuietHours.Until(now)
	if !until.After(now) {
		return false
	}
	o.QuietUntil = until
	db.outbox.put(id, o)
	return true
}

// EditQuietHours replaces the quiet hours of a webhook.
func (db *Postgres) EditQuietHours(id uuid.UUID, hours notify.QuietHours) error {
	return db.editWebhook(id, func(w *Webhook) bool { w.QuietHours = hours; return true })
}

// QuietWaiting returns the webhooks for which quiet hours hold messages.
func (db *Postgres) QuietWaiting() (webhooks []uuid.UUID) {
	for _, o := range db.outbox.rows {
		if !o.QuietUntil.IsZero() && !slices.Contains(webhooks, o.WebhookID) {
			webhooks = append(webhooks, o.WebhookID)
		}
	}
	slices.SortFunc(webhooks, compareIDs)
	return webhooks
}

// MoveQuiet moves the end of what is held for a webhook, where its quiet hours were edited.
func (db *Postgres) MoveQuiet(webhook uuid.UUID) error {
	return db.tx(func() error {
		if !db.has(QuietMoved) {
			return nil
		}
		now := db.now()
		until := db.webhooks.rows[webhook].QuietHours.Until(now)
		for _, id := range byID(&db.outbox) {
			if o := db.outbox.rows[id]; o.WebhookID == webhook && o.QuietUntil.After(now) && !o.QuietUntil.Equal(until) {
				if !o.ExpiresAt.IsZero() {
					o.ExpiresAt = o.ExpiresAt.Add(until.Sub(o.QuietUntil))
				}
				o.QuietUntil = until
				db.outbox.put(id, o)
			}
		}
		return nil
	})
}

// Quiet are messages about an alert for a webhook that were found to be held by quiet hours that are
// over.
type Quiet struct {
	Alert, Webhook uuid.UUID
	rows           []OutboxRow
}

// QuietOver returns what is over for a webhook.
func (db *Postgres) QuietOver(webhook uuid.UUID) (list []Quiet) {
	now := db.now()
	of := map[uuid.UUID]bool{}
	for _, o := range db.outbox.rows {
		if o.WebhookID == webhook && o.over(now) && !o.Digest {
			of[db.notifications.rows[o.ID].AlertID] = true
		}
	}
	for _, alert := range sortedIDs(of) {
		list = append(list, Quiet{alert, webhook, db.quietRows(alert, webhook, now)})
	}
	return list
}

func (o *OutboxRow) over(now time.Time) bool {
	return !o.QuietUntil.IsZero() && !o.QuietUntil.After(now)
}

// quietRows returns what is over about an alert for a webhook, in the order in which it was written;
// nothing if quiet hours hold another message about the alert.
func (db *Postgres) quietRows(alert, webhook uuid.UUID, now time.Time) (list []OutboxRow) {
	of, _ := db.ofAlert.get(alert)
	for _, id := range of {
		o, open := db.outbox.get(id)
		if !open || o.WebhookID != webhook || o.QuietUntil.IsZero() {
			continue
		}
		if o.over(now) {
			list = append(list, o)
		} else if db.has(QuietTogether) {
			return nil
		}
	}
	return list
}

// ReleaseQuiet puts into the queue what was found to be over, if it is still, and ends what is of no use any
// more. It returns how many messages are to be sent.
func (db *Postgres) ReleaseQuiet(found []Quiet) (released int, err error) {
	err = db.tx(func() error {
		released = 0
		now := db.now()
		for _, q := range found {
			if db.has(QuietLocked) {
				q.rows = db.quietRows(q.Alert, q.Webhook, now)
			}
			if len(q.rows) > 0 {
				released += db.releaseQuiet(&q, now)
			}
		}
		return nil
	})
	return released, err
}

func (db *Postgres) releaseQuiet(q *Quiet, now time.Time) (released int) {
	a, there := db.alerts.get(q.Alert)
	if !there {
		return 0
	}
	since, looked := a.LookedAfter()
	z, snoozed := db.snoozes.get(a.ID)
	looked = looked && since.Before(now.Add(-undoWithin))
	snoozed = snoozed && z.Until.After(now) && z.SnoozedSince.Before(now.Add(-undoWithin))
	notified := db.notified(a.ID, q.Webhook)
	held := make([]notify.QuietMessage, len(q.rows))
	for i := range q.rows {
		n := db.notifications.rows[q.rows[i].ID]
		reminds := notified && n.Reason == notify.ReasonSnoozeEnded && a.State == alerts.Acknowledged && since.Before(n.CreatedAt)
		held[i] = notify.QuietMessage{Reason: n.Reason, Handled: snoozed || looked && !reminds}
	}
	for i, send := range notify.AfterQuiet(notified, held) {
		o := q.rows[i]
		if send {
			if !o.ExpiresAt.IsZero() {
				o.ExpiresAt = o.ExpiresAt.Add(now.Sub(o.QuietUntil))
			}
			o.QuietUntil, o.ReadyAt, o.DueAt, o.Since = time.Time{}, now, now, now
			db.outbox.put(o.ID, o)
			released++
			continue
		}
		db.outbox.remove(o.ID)
		db.settlements.put(o.ID, Settlement{
			Status: discarded, SettledAt: now, Trail: true,
			Attempt: Attempt{Number: o.Attempts + 1, Token: db.newToken(), StartedAt: now, FinishedAt: now, Verdict: notify.VerdictNotMade},
		})
		db.lastAttempt.put(o.ID, o.Attempts+1)
	}
	if released > 0 {
		db.countFromNow(&a, !notified, now)
	}
	db.putAlert(a)
	return released
}

// notified reports whether a webhook was notified of an alert, by what is not held.
func (db *Postgres) notified(alert, webhook uuid.UUID) bool {
	for _, n := range db.NotificationsOf(alert) {
		o, open := db.outbox.get(n.ID)
		if n.WebhookID != webhook || n.About != uuid.Nil || open && !o.QuietUntil.IsZero() {
			continue
		}
		id := n.ID
		if digest, in := db.digestOf.get(id); in {
			id = digest
		}
		if s, ended := db.settlements.get(id); !ended || s.Status != suppressed && s.Status != discarded {
			return true
		}
	}
	return false
}

// countFromNow has the minutes of an alert's steps count from now where a webhook is notified of it only now, and
// where they would count from a later end of quiet hours, because these were edited or a person sent a message.
func (db *Postgres) countFromNow(a *Alert, first bool, now time.Time) {
	e, there := db.escalations.get(a.ID)
	later := e.CountsFrom.After(now) && db.quietUntil(a.ID).IsZero()
	if !there || e.DueAt.IsZero() || !first && !later || a.State != alerts.Firing || !db.has(EscalationCounts) {
		return
	}
	e.CountsFrom = now
	if a.FiredAt.After(now) { // by a clock that was put back since
		e.CountsFrom = a.FiredAt
	}
	e.DueAt = e.CountsFrom.Add(minutes(e.AfterMinutes))
	db.escalations.put(a.ID, e)
}

// EndQuiet does all of this. It returns how many messages are to be sent.
func (db *Postgres) EndQuiet() (released int, err error) {
	for _, webhook := range db.QuietWaiting() {
		if err := db.MoveQuiet(webhook); err != nil {
			return released, err
		}
		n, err := db.ReleaseQuiet(db.QuietOver(webhook))
		if err != nil {
			return released, err
		}
		digests, err := db.ReleaseQuietDigests(webhook)
		if err != nil {
			return released, err
		}
		released += n + digests
	}
	return released, nil
}
