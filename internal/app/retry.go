package app

import (
	"context"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/postgres"
	"tocsin/notify"
)

// waking is the record of messages; it wakes the dispatchers after a retry, so
// that nobody who pressed a button waits for the next look at the outbox.
type waking struct {
	*postgres.Record

	publish func(context.Context, notify.WakeUp) error
}

// Retry sends a notification again.
func (w waking) Retry(ctx context.Context, tenant string, id uuid.UUID, actor string) error {
	if err := w.Record.Retry(ctx, tenant, id, actor); err != nil {
		return err
	}
	w.wake(ctx, 1)
	return nil
}

// RetryAll sends many again.
func (w waking) RetryAll(ctx context.Context, tenant string, order api.RetryOrder) (api.Retried, error) {
	done, err := w.Record.RetryAll(ctx, tenant, order)
	if err == nil && done.Retried > 0 {
		w.wake(ctx, done.Retried)
	}
	return done, err
}

// wake publishes. A wake-up that is lost costs no more than the time until the
// next look.
func (w waking) wake(ctx context.Context, n int) { _ = w.publish(ctx, notify.WakeUp{Notifications: n}) }
