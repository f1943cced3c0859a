package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

const (
	// mostWalked is how many of a tenant's newest messages are read to count those that ended well;
	// mostFlowing is how many are read for the attempts of a webhook.
	mostWalked  = 20_000
	mostFlowing = 50_000
)

// Counts counts a tenant's messages by status, or only those of some statuses. Indexes find those
// that wait or could not be delivered; the others are counted among the newest, which takes longer.
func (s *Record) Counts(ctx context.Context, tenant string, f api.NotificationFilter) (counts map[notify.Status]int64, complete bool, err error) {
	webhooks := f.Webhooks
	if webhooks == nil {
		webhooks = []uuid.UUID{}
	}
	wanted := func(status notify.Status) bool { return len(f.Statuses) == 0 || slices.Contains(f.Statuses, status) }
	counts, complete = map[notify.Status]int64{}, true
	add := func(status string, messages int64) {
		if wanted(notify.Status(status)) && messages > 0 {
			counts[notify.Status(status)] = min(messages, mostCounted)
		}
	}
	if wanted(notify.Pending) || wanted(notify.Retrying) {
		open, err := s.db.queries.NotificationsOpen(ctx, pgq.NotificationsOpenParams{
			TenantID: tenant, WebhookIds: webhooks, FromAt: f.From, ToAt: f.To, Most: mostCounted,
		})
		if err != nil {
			return nil, false, fmt.Errorf("count open messages: %w", err)
		}
		for _, row := range open {
			add(row.Status, row.Messages)
		}
	}
	if wanted(notify.Failed) || wanted(notify.Exhausted) {
		undelivered, err := s.db.queries.NotificationsUndelivered(ctx, pgq.NotificationsUndeliveredParams{
			TenantID: tenant, WebhookIds: webhooks, FromAt: f.From, ToAt: f.To, Most: mostCounted,
		})
		if err != nil {
			return nil, false, fmt.Errorf("count undelivered messages: %w", err)
		}
		for _, row := range undelivered {
			add(row.Status, row.Messages)
		}
	}
	if wanted(notify.Delivered) || wanted(notify.Discarded) || wanted(notify.Suppressed) {
		ended, err := s.db.queries.NotificationsEnded(ctx, pgq.NotificationsEndedParams{
			TenantID: tenant, WebhookIds: webhooks, FromAt: f.From, ToAt: f.To, Walked: mostWalked,
		})
		if err != nil {
			return nil, false, fmt.Errorf("count delivered messages: %w", err)
		}
		add(string(notify.Delivered), ended.Delivered)
		add(string(notify.Discarded), ended.Discarded)
		add(string(notify.Suppressed), ended.Suppressed)
		complete = ended.Walked < mostWalked
	}
	return counts, complete, nil
}

// Flow reports how the attempts of the last 24 hours at a webhook went.
func (s *Record) Flow(ctx context.Context, tenant string, webhook uuid.UUID) (api.WebhookFlow, error) {
	rows, err := s.db.queries.WebhookFlow(ctx, pgq.WebhookFlowParams{TenantID: tenant, WebhookID: webhook, Walked: mostFlowing})
	if err != nil {
		return api.WebhookFlow{}, fmt.Errorf("count attempts: %w", err)
	}
	var flow api.WebhookFlow
	for _, row := range rows {
		flow.From, flow.Complete = row.Since, row.Walked < mostFlowing
		// An attempt that began after the statement began its hour belongs to that hour.
		hour := &flow.Hours[max(0, min(int(row.Hour), api.FlowHours-1))]
		hour.Delivered, hour.Failed = row.Delivered, row.Failed
		if row.Delivered == 0 {
			continue
		}
		hour.Median, hour.P95 = new(microseconds(row.MedianUs)), new(microseconds(row.P95Us))
		if flow.LastSuccessAt == nil || row.LastSuccessAt.After(*flow.LastSuccessAt) {
			flow.LastSuccessAt = new(row.LastSuccessAt)
		}
	}
	return flow, nil
}

func microseconds(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }
