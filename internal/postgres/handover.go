package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Desk takes over notifications as they are written; [notify.Dispatcher] is one.
type Desk interface {
	Reserve(ctx context.Context, wanted []notify.Wanted) notify.Reservation
}

// handover is what a commit writes under the claim of a dispatcher, which gets it
// once the commit stands. Where nobody knows whether it does, the dispatcher gets
// nothing, and the claims lapse.
type handover struct {
	reservation notify.Reservation
	cache       *webhookCache
	webhooks    map[uuid.UUID]cachedWebhook
	// claimed is what was written so.
	claimed []notify.Delivery
	// waiting counts by webhook what was written and not claimed.
	waiting map[uuid.UUID]int
}

// reserve keeps room for what a commit may owe: by webhooks without a rate and
// without digests, which are judged when a claim is made. For room it waits no longer
// than patience.
func (s *Evaluation) reserve(ctx context.Context, notifications []notify.Notification, patience time.Duration) *handover {
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
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h.reservation = s.desk.Reserve(waiting, wanted)
	return h
}

// owe writes notifications to the outbox, as many claimed as there is room for. Of
// these it begins attempts at those that can be called as soon as the commit stands.
func (h *handover) owe(ctx context.Context, q *pgq.Queries, batch *evaluator.Batch, written *pgq.NotificationInsertParams, at time.Time) error {
	p := pgq.OutboxInsertParams{
		NotificationIds: written.NotificationIds, WebhookIds: written.WebhookIds, Wanted: make([]bool, len(written.NotificationIds)),
		Lease: h.reservation.Lease, Replica: h.reservation.Replica,
	}
	room := make(map[uuid.UUID]int, len(h.reservation.Room))
	for id, n := range h.reservation.Room {
		room[id] = n
		p.Takers = append(p.Takers, id)
		p.TakerVersions = append(p.TakerVersions, h.webhooks[id].webhook.Version)
	}
	wanted := make(evaluator.IDs)
	for i, id := range p.WebhookIds {
		if p.Wanted[i] = room[id] > 0; p.Wanted[i] {
			wanted[p.NotificationIds[i]] = true
		}
		room[id]--
	}
	deliveries := h.deliveries(batch, wanted, at)
	if err := h.begin(ctx, deliveries, &p); err != nil {
		return err
	}
	rows, err := q.OutboxInsert(ctx, p)
	if err != nil {
		return err
	}
	tokens := make(map[uuid.UUID]int64, len(rows))
	for _, row := range rows {
		tokens[row.NotificationID] = row.ClaimToken
	}
	h.claimed, h.waiting = slices.Grow(h.claimed[:0], len(deliveries)), make(map[uuid.UUID]int)
	for i, id := range p.NotificationIds {
		if _, claimed := tokens[id]; !claimed {
			h.waiting[p.WebhookIds[i]]++
		}
	}
	for i := range deliveries {
		d := &deliveries[i]
		token, claimed := tokens[d.NotificationID]
		if !claimed {
			h.cache.forget(d.Webhook.ID) // it may have been edited since it was read
			continue
		}
		d.Token = token
		h.claimed = append(h.claimed, *d)
	}
	return nil
}

// begin adds the attempts that the commit begins.
func (h *handover) begin(ctx context.Context, deliveries []notify.Delivery, p *pgq.OutboxInsertParams) error {
	var begins []notify.Begin
	for i := range deliveries {
		if begin := h.reservation.Begin(ctx, &deliveries[i]); begin != nil {
			begins = append(begins, *begin)
		}
	}
	rows, err := beginRows(begins)
	if err != nil {
		return err
	}
	p.BeginIds, p.Requests = rows.ids, rows.requests
	p.ContentTypes, p.Contents, p.Problems = rows.contentTypes, rows.contents, rows.problems
	return nil
}

// over hands over what was committed, and gives the rest of the room back.
func (h *handover) over(ctx context.Context, committed bool) {
	if !committed {
		h.claimed = nil
	}
	h.reservation.HandOver(ctx, h.claimed)
}

// deliveries are what a claim would read of some notifications of a batch, in its order.
func (h *handover) deliveries(batch *evaluator.Batch, wanted evaluator.IDs, at time.Time) []notify.Delivery {
	if len(wanted) == 0 {
		return nil
	}
	instances := make(map[uuid.UUID]*alerts.Instance, len(batch.Instances))
	for i := range batch.Instances {
		instances[batch.Instances[i].ID] = &batch.Instances[i]
	}
	list := make([]notify.Delivery, 0, len(wanted))
	for i := range batch.Notifications {
		n := &batch.Notifications[i]
		if !wanted[n.ID] {
			continue
		}
		alert := *instances[n.AlertID]
		alert.FiredAt = at
		if len(alert.Exchange.Attributes) == 0 {
			alert.Exchange.Attributes = nil // as it is read
		}
		late := max(at.Sub(time.Unix(0, alert.Exchange.EndedNS())), 0)
		alert.LateBy = &late
		list = append(list, notify.Delivery{
			NotificationID: n.ID, Reason: n.Reason, Attempt: 1, Alert: alert, Webhook: h.webhooks[n.WebhookID].webhook,
		})
	}
	return list
}
