package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/resend"
)

var _ resend.Store = (*Outbox)(nil)

const (
	// maxInstances bounds the processes of a receiver that are remembered.
	maxInstances = 16
	// resendBatch is how many messages one transaction makes due.
	resendBatch = 500
	// resendFor bounds one call: a transaction waits up to five seconds for each locked alert.
	resendFor = time.Minute
)

// Webhooks returns the enabled webhooks of some presets. Webhooks that cannot be read are left out
// and named in the error.
func (s *Outbox) Webhooks(ctx context.Context, presets []string) ([]notify.Webhook, error) {
	rows, err := s.db.queries.ResendWebhooks(ctx, presets)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	var webhooks []notify.Webhook
	var unreadable []error
	for _, row := range rows {
		if w, err := s.db.webhookOf(row.Webhook); err != nil {
			unreadable = append(unreadable, fmt.Errorf("webhook %s: %w", row.Webhook.WebhookID, err))
		} else if w.Sealed == nil {
			webhooks = append(webhooks, w)
		}
	}
	return webhooks, errors.Join(unreadable...)
}

// Answered stores that a process of a webhook's receiver has answered, and reports whether it had
// never answered before.
func (s *Outbox) Answered(ctx context.Context, webhook uuid.UUID, instance string) (restarted bool, err error) {
	var added int64
	err = s.db.unattended(ctx, func(q *pgq.Queries) (err error) {
		added, err = q.InstanceAdd(ctx, pgq.InstanceAddParams{WebhookID: webhook, Instance: instance, Most: maxInstances})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("store answer: %w", err)
	}
	return added > 0, nil
}

// Resend makes the messages due again that opened the open alerts of a webhook, if its receiver has
// restarted since they were sent. It returns how many. The transaction of each batch locks the
// alerts: an alert that is resolved before is left out, and the message about the end of one that
// is resolved later waits for the one that is sent again. A webhook that was deleted or switched
// off meanwhile gets nothing. An alert that somebody keeps locked is named in the error, and sent
// again by a later call.
func (s *Outbox) Resend(ctx context.Context, webhook uuid.UUID) (resent int, err error) {
	pending, err := s.db.queries.ResendPending(ctx, webhook)
	if err != nil || len(pending) == 0 {
		return 0, err
	}
	restarted := pending[0].RestartedAt
	messages, err := s.db.queries.ResendMessages(ctx, pgq.ResendMessagesParams{
		WebhookID: webhook, Before: restarted, Opening: eventNames(notify.OpeningReasons()), Closing: eventNames(notify.ClosingReasons()),
	})
	if err != nil {
		return 0, fmt.Errorf("find messages: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, resendFor)
	defer cancel()
	var failed error
	for batch := range slices.Chunk(messages, resendBatch) {
		accepts, done, err := s.resend(bounded, webhook, restarted, batch)
		if err != nil {
			accepts, done, err = s.resendAlone(bounded, webhook, restarted, batch)
		}
		resent += done
		if failed = errors.Join(failed, err); !accepts {
			return resent, failed
		}
	}
	if failed != nil {
		return resent, failed
	}
	if pending[0].UnderWay {
		// It may have ended since the messages were chosen; then it is among them the next time.
		return resent, nil
	}
	return resent, s.db.unattended(ctx, func(q *pgq.Queries) error {
		return q.ResendDone(ctx, pgq.ResendDoneParams{WebhookID: webhook, RestartedAt: restarted})
	})
}

// resendAlone makes messages due again one by one, after it failed for all of them together. Those
// that fail again are named in the error.
func (s *Outbox) resendAlone(ctx context.Context, webhook uuid.UUID, restarted time.Time, messages []uuid.UUID) (accepts bool, resent int, failed error) {
	for _, id := range messages {
		if ctx.Err() != nil {
			return false, resent, errors.Join(failed, ctx.Err())
		}
		wants, done, err := s.resend(ctx, webhook, restarted, []uuid.UUID{id})
		resent += done
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("send message %s again: %w", id, err))
		} else if !wants {
			return false, resent, failed
		}
	}
	return true, resent, failed
}

// resend makes messages due again, and returns how many, and whether the webhook accepts messages.
// They may have been chosen long before.
func (s *Outbox) resend(ctx context.Context, webhook uuid.UUID, restarted time.Time, messages []uuid.UUID) (accepts bool, resent int, err error) {
	err = s.db.unattended(ctx, func(q *pgq.Queries) error {
		accepting, err := q.ResendWebhook(ctx, webhook)
		if accepts = accepting > 0; err != nil || !accepts {
			return err
		}
		if err := q.RetryHold(ctx, messages); err != nil {
			return fmt.Errorf("lock alerts: %w", err)
		}
		open, err := q.ResendOpen(ctx, pgq.ResendOpenParams{Ids: messages, Before: restarted})
		if err != nil {
			return fmt.Errorf("read alerts: %w", err)
		}
		again := retries{
			ids: open, webhooks: []uuid.UUID{webhook}, statuses: []notify.Status{notify.Delivered}, actor: notify.ByTocsin, alone: true,
		}
		done, err := again.apply(ctx, q)
		resent = int(done)
		return err
	})
	if err != nil {
		return false, 0, err
	}
	return accepts, resent, nil
}
