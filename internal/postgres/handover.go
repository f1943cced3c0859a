package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Desk takes over notifications as they are written; [notify.Dispatcher] is one.
type Desk interface {
	Reserve(wanted []notify.Wanted) notify.Reservation
}

// handover is what a commit writes under the claim of a dispatcher, which gets it
// once the commit stands. Where nobody knows whether it does, the dispatcher gets
// nothing, and the claims lapse.
type handover struct {
	reservation notify.Reservation
	cache       *webhookCache
	webhooks    map[uuid.UUID]cachedWebhook
	// claimed holds the tokens of what was written so; at is the instant of it.
	claimed map[uuid.UUID]int64
	at      time.Time
}

// reserve keeps room for what a commit may owe: by webhooks without a rate and
// without digests, which are judged when a claim is made.
func (s *Evaluation) reserve(ctx context.Context, notifications []notify.Notification) *handover {
	h := &handover{cache: s.db.webhooks}
	if s.desk == nil || len(notifications) == 0 {
		return h
	}
	counts := make(map[uuid.UUID]int)
	versions := make(map[uuid.UUID]int64)
	for i := range notifications {
		counts[notifications[i].WebhookID]++
		versions[notifications[i].WebhookID] = 0
	}
	var err error
	if h.webhooks, err = s.db.webhooks.get(ctx, versions); err != nil {
		return h // the commit tells what is the matter
	}
	var wanted []notify.Wanted
	for id, n := range counts {
		w, known := h.webhooks[id]
		if known && w.err == nil && w.webhook.Enabled && w.webhook.RatePerSecond == 0 && w.webhook.DigestAbove == 0 {
			wanted = append(wanted, notify.Wanted{WebhookID: id, MaxConcurrent: w.webhook.MaxConcurrent, Count: n})
		}
	}
	h.reservation = s.desk.Reserve(wanted)
	return h
}

// owe writes notifications to the outbox, as many claimed as there is room for.
func (h *handover) owe(ctx context.Context, q *pgq.Queries, notifications, webhooks []uuid.UUID) error {
	p := pgq.OutboxInsertParams{
		NotificationIds: notifications, WebhookIds: webhooks, Wanted: make([]bool, len(webhooks)),
		Lease: h.reservation.Lease, Replica: h.reservation.Replica,
	}
	room := make(map[uuid.UUID]int, len(h.reservation.Room))
	for id, n := range h.reservation.Room {
		room[id] = n
		p.Takers = append(p.Takers, id)
		p.TakerVersions = append(p.TakerVersions, h.webhooks[id].webhook.Version)
	}
	refused := make(map[uuid.UUID]uuid.UUID)
	for i, id := range webhooks {
		if p.Wanted[i] = room[id] > 0; p.Wanted[i] {
			refused[notifications[i]] = id
		}
		room[id]--
	}
	rows, err := q.OutboxInsert(ctx, p)
	if err != nil {
		return err
	}
	h.claimed = make(map[uuid.UUID]int64, len(rows))
	for _, row := range rows {
		h.claimed[row.NotificationID], h.at = row.ClaimToken, row.At
		delete(refused, row.NotificationID)
	}
	// They may have been edited since they were read.
	for _, id := range refused {
		h.cache.forget(id)
	}
	return nil
}

// over hands over what was committed, and gives the rest of the room back.
func (h *handover) over(ctx context.Context, batch evaluator.Batch, committed bool) {
	var deliveries []notify.Delivery
	if committed && len(h.claimed) > 0 {
		deliveries = h.deliveries(batch)
	}
	h.reservation.HandOver(ctx, deliveries)
}

// deliveries are what a claim would read of the rows.
func (h *handover) deliveries(batch evaluator.Batch) []notify.Delivery {
	instances := make(map[uuid.UUID]*alerts.Instance, len(batch.Instances))
	for i := range batch.Instances {
		instances[batch.Instances[i].ID] = &batch.Instances[i]
	}
	list := make([]notify.Delivery, 0, len(h.claimed))
	for i := range batch.Notifications {
		n := &batch.Notifications[i]
		token, claimed := h.claimed[n.ID]
		if !claimed {
			continue
		}
		alert := *instances[n.AlertID]
		alert.FiredAt = h.at
		if len(alert.Exchange.Attributes) == 0 {
			alert.Exchange.Attributes = nil // as it is read
		}
		late := max(h.at.Sub(time.Unix(0, alert.Exchange.EndedNS())), 0)
		alert.LateBy = &late
		list = append(list, notify.Delivery{
			NotificationID: n.ID, Reason: n.Reason, Token: token, Attempt: 1, Alert: alert, Webhook: h.webhooks[n.WebhookID].webhook,
		})
	}
	return list
}
