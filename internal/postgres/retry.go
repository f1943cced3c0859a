package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Retry sends a notification again, and returns its webhook. If two people do so at once, the second one finds it done.
func (s *Record) Retry(ctx context.Context, tenant string, id uuid.UUID, actor string) (webhook uuid.UUID, err error) {
	err = s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q, message := s.db.queries.WithTx(tx), id
		target, err := q.RetryTarget(ctx, pgq.RetryTargetParams{TenantID: tenant, NotificationID: id})
		if err != nil {
			return notFound(err, "notification")
		}
		if err := takesMessages(target); err != nil {
			return err
		}
		webhook = target.WebhookID
		if target.DigestID != nil {
			if err := q.RetryHold(ctx, []uuid.UUID{id}); err != nil {
				return fmt.Errorf("hold alert: %w", err)
			}
			left, err := q.RetryLeave(ctx, pgq.RetryLeaveParams{NotificationID: id, DigestID: *target.DigestID, Actor: actor})
			if err != nil {
				return fmt.Errorf("take notification out of digest: %w", err)
			}
			if left > 0 {
				return inSequence(ctx, q, []uuid.UUID{id})
			}
			// The digest still waits. It contains this notification, so the digest itself is
			// hastened.
			message = *target.DigestID
		}
		order := retries{
			ids: []uuid.UUID{message}, webhooks: []uuid.UUID{target.WebhookID}, actor: actor, alone: true,
			statuses: []notify.Status{notify.Delivered, notify.Failed, notify.Exhausted, notify.Discarded, notify.Suppressed},
		}
		done, err := order.apply(ctx, q)
		switch {
		case err != nil:
			return err
		case done > 0 && target.Quiet:
			return countFromSent(ctx, q, message)
		case done > 0:
			return nil
		}
		is, err := q.RetryUnderWay(ctx, message)
		switch {
		case err != nil:
			return fmt.Errorf("read claim: %w", err)
		case is.UnderWay:
			return fault.New(fault.Conflict, "an attempt is being made; send the message again when its outcome is known")
		case is.Waits:
			return fault.New(fault.Conflict, "the message waits for an earlier message of its alert; send that one again, or discard it")
		}
		return nil
	})
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("retry notification: %w", err)
	}
	return webhook, nil
}

// countFromSent makes the steps of an alert count from now, after a person took a message about it out of
// quiet hours, as at the end of these.
func countFromSent(ctx context.Context, q *pgq.Queries, message uuid.UUID) error {
	sent, err := q.QuietSent(ctx, message)
	if err != nil {
		return fmt.Errorf("read message of quiet hours: %w", err)
	}
	count := pgq.EscalationCountParams{AlertIds: []uuid.UUID{sent.AlertID}, Firsts: []bool{sent.First}}
	if err := q.EscalationCount(ctx, count); err != nil {
		return fmt.Errorf("count minutes of escalation: %w", err)
	}
	return nil
}

// takesMessages returns why nothing can be sent to the target's webhook.
func takesMessages(target pgq.RetryTargetRow) error {
	switch {
	case target.Deleted:
		return fault.New(fault.Conflict, "the webhook %s is deleted; its messages cannot be sent again", target.WebhookName)
	case !target.Enabled && target.DisabledReason != "":
		return fault.New(fault.Conflict, "the webhook %s was disabled (%s); enable it, then send the message again", target.WebhookName, target.DisabledReason)
	case !target.Enabled:
		return fault.New(fault.Conflict, "the webhook %s is disabled; enable it, then send the message again", target.WebhookName)
	}
	return nil
}

// RetryAll sends the messages of many notifications again, and returns the webhooks of those that are open then.
func (s *Record) RetryAll(ctx context.Context, tenant string, order api.RetryOrder) (done api.Retried, of []uuid.UUID, err error) {
	err = s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		done = api.Retried{}
		q := s.db.queries.WithTx(tx)
		if err := q.RetryLock(ctx, tenant); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		webhooks, err := q.RetryWebhooks(ctx, tenant)
		if err != nil {
			return fmt.Errorf("find webhooks: %w", err)
		}
		messages, err := chosenMessages(ctx, tx, tenant, order)
		if err != nil {
			return err
		}
		all := retries{
			ids: messages, webhooks: webhooks, actor: order.Actor, statuses: []notify.Status{notify.Failed, notify.Exhausted},
		}
		retried, err := all.apply(ctx, q)
		if err != nil {
			return err
		}
		done.Retried, done.Skipped = int(retried), len(messages)-int(retried)
		if of, err = q.RetriedWebhooks(ctx, messages); err != nil {
			return fmt.Errorf("find webhooks of retries: %w", err)
		}
		return nil
	})
	if err != nil {
		return api.Retried{}, nil, fmt.Errorf("retry notifications: %w", err)
	}
	return done, of, nil
}

// chooseMessages has a placeholder for the conditions of a query.
const chooseMessages = `select distinct coalesce(s.digest_id, s.notification_id) from notification_status s where %s`

// chosenMessages returns the messages that contain the selected notifications.
func chosenMessages(ctx context.Context, tx pgx.Tx, tenant string, order api.RetryOrder) ([]uuid.UUID, error) {
	where, args := notificationConditions(tenant, &order.Filter)
	if order.IDs != nil {
		where, args["ids"] = append(where, "s.notification_id = any(@ids)"), order.IDs
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(chooseMessages, strings.Join(where, " and ")), args)
	if err != nil {
		return nil, fmt.Errorf("choose messages: %w", err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("choose messages: %w", err)
	}
	return messages, nil
}

// retries are messages to be sent again.
type retries struct {
	ids []uuid.UUID
	// webhooks are those that accept messages. statuses are those from which a settled message may
	// be sent again.
	webhooks []uuid.UUID
	statuses []notify.Status
	actor    string
	// alone keeps the messages out of digests.
	alone bool
}

// inSequence makes open messages wait for each other that are about the alerts of some messages.
func inSequence(ctx context.Context, q *pgq.Queries, ids []uuid.UUID) error {
	if err := q.RetryInOrderLock(ctx, ids); err != nil {
		return fmt.Errorf("lock open notifications: %w", err)
	}
	if err := q.RetryInOrder(ctx, ids); err != nil {
		return fmt.Errorf("order notifications: %w", err)
	}
	return nil
}

// apply makes the messages due, or makes them wait for earlier ones of their alerts, and returns
// how many changed. Each statement sees what others committed while the previous statement waited
// for their locks.
func (r *retries) apply(ctx context.Context, q *pgq.Queries) (int64, error) {
	p := pgq.RetrySettledParams{Ids: r.ids, WebhookIds: r.webhooks, Actor: r.actor, Alone: r.alone}
	for _, status := range r.statuses {
		p.Statuses = append(p.Statuses, string(status))
	}
	if err := q.RetryHold(ctx, r.ids); err != nil {
		return 0, fmt.Errorf("hold alerts: %w", err)
	}
	settled, err := q.RetrySettled(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("retry settled notifications: %w", err)
	}
	if settled > 0 {
		if err := inSequence(ctx, q, r.ids); err != nil {
			return 0, err
		}
	}
	waiting, err := q.RetryWaiting(ctx, pgq.RetryWaitingParams{Ids: r.ids, WebhookIds: r.webhooks, Actor: r.actor, Alone: r.alone})
	if err != nil {
		return 0, fmt.Errorf("make retries due now: %w", err)
	}
	return settled + waiting, nil
}
