package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Discard gives up the message of a notification. If two people do so at once, the second one finds
// it done.
func (s *Record) Discard(ctx context.Context, tenant string, id uuid.UUID, actor string) error {
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		target, err := q.RetryTarget(ctx, pgq.RetryTargetParams{TenantID: tenant, NotificationID: id})
		if err != nil {
			return notFound(err, "notification")
		}
		message := id
		if target.DigestID != nil {
			message = *target.DigestID
		}
		done, err := discard(ctx, q, []uuid.UUID{message}, actor)
		switch status := notify.Status(target.Status); {
		case err != nil || done > 0 || status == notify.Discarded:
			return err
		case status == notify.Delivered:
			return fault.New(fault.Conflict, "the message was delivered; there is nothing to discard")
		case status == notify.Suppressed:
			return fault.New(fault.Conflict, "a silence suppressed the message; there is nothing to discard")
		default:
			return fault.New(fault.Conflict, "an attempt is being made; discard the message when its outcome is known")
		}
	})
	if err != nil {
		return fmt.Errorf("discard notification: %w", err)
	}
	return nil
}

// DiscardAll gives up the messages of many notifications.
func (s *Record) DiscardAll(ctx context.Context, tenant string, order api.RetryOrder) (api.Discarded, error) {
	var done api.Discarded
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		if err := q.RetryLock(ctx, tenant); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		messages, err := chosenMessages(ctx, tx, tenant, order)
		if err != nil {
			return err
		}
		discarded, err := discard(ctx, q, messages, order.Actor)
		done = api.Discarded{Discarded: int(discarded), Skipped: len(messages) - int(discarded)}
		return err
	})
	if err != nil {
		return api.Discarded{}, fmt.Errorf("discard notifications: %w", err)
	}
	return done, nil
}

// discard gives up messages, and returns how many were not given up before.
func discard(ctx context.Context, q *pgq.Queries, messages []uuid.UUID, actor string) (int64, error) {
	settled, err := q.DiscardSettled(ctx, pgq.DiscardSettledParams{Ids: messages, Actor: actor})
	if err != nil {
		return 0, fmt.Errorf("discard messages that have ended: %w", err)
	}
	waiting, err := q.DiscardWaiting(ctx, pgq.DiscardWaitingParams{Ids: messages, Actor: actor})
	if err != nil {
		return 0, fmt.Errorf("discard waiting messages: %w", err)
	}
	return settled + waiting, nil
}
