package app

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/lease"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/notify/bus"
	"tocsin/notify/dispatch"
)

// The stores below have methods that make messages due, apart from the evaluator's commit. Each
// wakes the dispatchers afterwards.

// dispatchers wakes the dispatcher of this process directly, if there is one, and those of the
// others over the bus.
type dispatchers struct {
	bus *bus.Bus
	own *dispatch.Dispatcher
}

// Publish says that messages have become due. Its error is always nil.
func (d *dispatchers) Publish(ctx context.Context, w notify.WakeUp) error {
	if d.own != nil {
		d.own.Wake(w.Webhooks)
	}
	return d.bus.Publish(ctx, w)
}

// wake says that messages have become due, if there are any, and optionally for which webhooks.
func (d *dispatchers) wake(ctx context.Context, notifications int, webhooks ...uuid.UUID) {
	if notifications > 0 {
		// It never fails.
		_ = d.Publish(ctx, notify.WakeUp{Notifications: notifications, Webhooks: webhooks})
	}
}

// notified says that messages were written, and how many for each webhook.
func (d *dispatchers) notified(ctx context.Context, byWebhook map[uuid.UUID]int) {
	total := 0
	for _, n := range byWebhook {
		total += n
	}
	d.wake(ctx, total, slices.Collect(maps.Keys(byWebhook))...)
}

// replicas releases what dead replicas hold, or what this one holds when it leaves.
type replicas struct {
	*postgres.Replicas
	dispatchers *dispatchers
}

// ReleaseDead releases what dead replicas hold.
func (r replicas) ReleaseDead(ctx context.Context, request lease.DeadRequest) (lease.DeadResult, error) {
	result, err := r.Replicas.ReleaseDead(ctx, request)
	for _, dead := range result.Released {
		r.dispatchers.wake(ctx, dead.Notifications, dead.Webhooks...)
	}
	return result, err
}

// Leave releases what this replica holds.
func (r replicas) Leave(ctx context.Context, id string) (lease.Released, error) {
	released, err := r.Replicas.Leave(ctx, id)
	r.dispatchers.wake(ctx, released.Notifications, released.Webhooks...)
	return released, err
}

// record makes messages due again when a person requests it.
type record struct {
	*postgres.Record
	dispatchers *dispatchers
}

// Retry makes one message due again.
func (r record) Retry(ctx context.Context, tenant string, id uuid.UUID, actor string) error {
	webhook, err := r.Record.Retry(ctx, tenant, id, actor)
	if err == nil {
		r.dispatchers.wake(ctx, 1, webhook)
	}
	return err
}

// RetryAll makes many messages due again.
func (r record) RetryAll(ctx context.Context, tenant string, order api.RetryOrder) (api.Retried, error) {
	retried, webhooks, err := r.Record.RetryAll(ctx, tenant, order)
	r.dispatchers.wake(ctx, retried.Retried, webhooks...)
	return retried, err
}

// webhooks releases messages that wait because a webhook is off, or because of its limits.
type webhooks struct {
	*postgres.Webhooks
	dispatchers *dispatchers
}

// Update changes a webhook.
func (w webhooks) Update(ctx context.Context, tenant string, edited notify.Webhook) (notify.Webhook, error) {
	now, err := w.Webhooks.Update(ctx, tenant, edited)
	return w.woken(ctx, now, err)
}

// SetEnabled switches a webhook on or off.
func (w webhooks) SetEnabled(ctx context.Context, tenant string, id uuid.UUID, enabled bool) (notify.Webhook, error) {
	now, err := w.Webhooks.SetEnabled(ctx, tenant, id, enabled)
	return w.woken(ctx, now, err)
}

// woken wakes the dispatchers if the webhook is enabled, and returns its arguments.
func (w webhooks) woken(ctx context.Context, now notify.Webhook, err error) (notify.Webhook, error) {
	if err == nil && now.Enabled {
		w.dispatchers.wake(ctx, 1, now.ID)
	}
	return now, err
}
