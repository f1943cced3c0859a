package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// requests derives what the attempts at some messages sent. Requests are not stored: each is
// derived from the frozen body, the instant at which the attempt began, and the webhook. If the
// webhook was edited since, the host and the webhook's own headers are left out.
type requests struct {
	head     func(d *notify.Delivery) notify.RequestHead
	messages map[uuid.UUID]*sentMessage
}

// sentMessage is what all attempts at a message have in common.
type sentMessage struct {
	body notify.Body
	// renderedAt is when the first attempt with this body began. Earlier attempts sent another
	// body, which is not kept.
	renderedAt time.Time
	webhook    notify.Webhook
	editedAt   time.Time
	retries    []time.Time
	reason     notify.Reason
	// reference is the receiver's present name for the alert. It may have been unknown at the time
	// of an attempt.
	reference string
}

func (s *Record) requestsOf(ctx context.Context, ids []uuid.UUID) (*requests, error) {
	r := &requests{head: s.head, messages: map[uuid.UUID]*sentMessage{}}
	bodies, err := s.db.queries.BodiesOf(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read bodies: %w", err)
	}
	versions := map[uuid.UUID]edition{}
	for _, row := range bodies {
		versions[row.WebhookID] = edition{row.Version, row.UpdatedAt}
	}
	webhooks, err := s.db.webhooks.get(ctx, versions)
	if err != nil {
		return nil, err
	}
	for _, row := range bodies {
		if w := webhooks[row.WebhookID]; w.err == nil {
			r.messages[row.NotificationID] = &sentMessage{
				body: notify.Body{ContentType: row.ContentType, Content: row.Content}, renderedAt: row.WrittenAt, webhook: w.webhook, editedAt: row.UpdatedAt,
				reason: notify.Reason(row.Reason), reference: row.Reference,
			}
		}
	}
	retries, err := s.db.queries.RetriesOfAll(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read retries: %w", err)
	}
	for _, row := range retries {
		if m := r.messages[row.NotificationID]; m != nil {
			m.retries = append(m.retries, row.RetriedAt)
		}
	}
	return r, nil
}

// of returns what an attempt sent. It is nil if retention has deleted the body, if another body was
// rendered since, or if the secrets of the webhook cannot be decrypted.
func (r *requests) of(row pgq.AttemptHistory) *notify.RequestHead {
	m := r.messages[row.NotificationID]
	if m == nil || r.head == nil || row.StartedAt.Before(m.renderedAt) {
		return nil
	}
	d := notify.Delivery{NotificationID: row.NotificationID, Reason: m.reason, Reference: m.reference, Webhook: m.webhook, Body: &m.body, At: row.StartedAt}
	for _, at := range m.retries {
		if !at.After(row.StartedAt) {
			d.Generation++
		}
	}
	edited := m.editedAt.After(row.StartedAt)
	if edited {
		d.Webhook.Headers = nil
	}
	head := r.head(&d)
	if edited {
		head.Host = ""
	}
	return &head
}
