package model

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// quiet has a message that was just written be held by the quiet hours of its webhook, and reports
// whether it is.
func (db *Postgres) quiet(id uuid.UUID, severity rules.Severity, now time.Time) bool {
	o := db.outbox.rows[id]
	w := db.webhooks.rows[o.WebhookID]
	until := w.QuietHours.Until(now)
	if severity == rules.Critical || !until.After(now) {
		return false
	}
	o.QuietUntil = until
	db.outbox.put(id, o)
	return true
}

// EndQuiet puts into the queue what quiet hours have held until now, and ends what is of no use any more.
// It returns how many messages are to be sent.
func (db *Postgres) EndQuiet() (released int, err error) {
	err = db.tx(func() error {
		now := db.now()
		for _, id := range byID(&db.alerts) {
			byWebhook, notified := map[uuid.UUID][]OutboxRow{}, map[uuid.UUID]bool{}
			of, _ := db.ofAlert.get(id)
			var webhooks []uuid.UUID
			for _, message := range of {
				o, open := db.outbox.get(message)
				switch n := db.notifications.rows[message]; {
				case open && !o.QuietUntil.IsZero() && !o.QuietUntil.After(now):
					if byWebhook[n.WebhookID] == nil {
						webhooks = append(webhooks, n.WebhookID)
					}
					byWebhook[n.WebhookID] = append(byWebhook[n.WebhookID], o)
				case n.About == uuid.Nil && (!open || o.QuietUntil.IsZero()):
					s := db.settlements.rows[message]
					notified[n.WebhookID] = notified[n.WebhookID] || s.Status != suppressed && s.Status != discarded
				}
			}
			a := db.alerts.rows[id]
			handled := a.State == alerts.Resolved && a.ResolvedAt.Before(now.Add(-undoWithin))
			for _, webhook := range webhooks {
				released += db.endQuiet(byWebhook[webhook], handled, notified[webhook], now)
			}
		}
		return nil
	})
	return released, err
}

// endQuiet releases or ends what was held about an alert for a webhook.
func (db *Postgres) endQuiet(held []OutboxRow, handled, notified bool, now time.Time) (released int) {
	reasons := make([]notify.Reason, len(held))
	for i := range held {
		reasons[i] = db.notifications.rows[held[i].ID].Reason
	}
	for i, send := range notify.AfterQuiet(handled, notified, reasons) {
		o := held[i]
		if send {
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
	return released
}
