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
// off meanwhile gets nothing. An alert that somebody keeps locked is skipped, and sent again by a
// later call. The error names messages that could not be sent again.
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
	r := resending{pass: s.newPass(), webhook: webhook, restarted: restarted}
	for batch := range slices.Chunk(messages, resendBatch) {
		if !r.apart(ctx, batch) {
			return r.resent, r.failed()
		}
	}
	// An attempt that is under way may have ended since the messages were chosen; then it is among them the next time.
	if err := r.failed(); err != nil || r.skipped || pending[0].UnderWay {
		return r.resent, err
	}
	return r.resent, s.db.unattended(ctx, func(q *pgq.Queries) error {
		return q.ResendDone(ctx, pgq.ResendDoneParams{WebhookID: webhook, RestartedAt: restarted})
	})
}

// resending is one call of Resend.
type resending struct {
	pass

	webhook   uuid.UUID
	restarted time.Time
	resent    int
	// skipped says that alerts were locked by somebody else.
	skipped bool
}

// apart makes messages due again in one transaction. If that fails, it uses a transaction for each
// message. It reports whether the others can be sent: not if the webhook accepts none, or is locked.
func (r *resending) apart(ctx context.Context, messages []uuid.UUID) (others bool) {
	accepts, err := r.resend(ctx, messages)
	if err == nil {
		return accepts
	}
	for _, id := range messages {
		accepts, err := r.resend(ctx, []uuid.UUID{id})
		if err != nil {
			r.fail(fmt.Errorf("send message %s again: %w", id, err))
		}
		if !accepts {
			return false
		}
	}
	return true
}

// resend makes messages due again, and reports whether the webhook accepts messages.
// They may have been chosen long before.
func (r *resending) resend(ctx context.Context, messages []uuid.UUID) (accepts bool, err error) {
	var done int64
	var skipped bool
	err = r.transact(ctx, func(q *pgq.Queries) error {
		accepting, err := q.ResendWebhook(ctx, r.webhook)
		if accepts = accepting > 0; err != nil || !accepts {
			return err
		}
		free, err := q.ResendHold(ctx, messages)
		if err != nil {
			return fmt.Errorf("lock alerts: %w", err)
		}
		if skipped = len(free) < len(messages); len(free) == 0 {
			return nil
		}
		open, err := q.ResendOpen(ctx, pgq.ResendOpenParams{Ids: free, Before: r.restarted})
		if err != nil {
			return fmt.Errorf("read alerts: %w", err)
		}
		again := retries{
			ids: open, webhooks: []uuid.UUID{r.webhook}, statuses: []notify.Status{notify.Delivered}, actor: notify.ByTocsin, alone: true,
		}
		done, err = again.apply(ctx, q)
		return err
	})
	if err != nil {
		return accepts, err
	}
	r.resent, r.skipped = r.resent+int(done), r.skipped || skipped
	return accepts, nil
}
