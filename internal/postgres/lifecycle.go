package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// The messages of an alert for a webhook go out in order. A message that is written while an
// earlier one is open waits outside the queue. When the earlier one leaves the outbox, a trigger
// puts the next one in.
//
// A transaction that writes such a message locks the alert, which orders the writers. It also locks
// the open messages: their settlement waits for the end of the transaction and then sees the
// following message.

// following is a message about an alert for a webhook, after earlier ones.
type following struct {
	alert, webhook uuid.UUID
	reason         notify.Reason
	// step is after how many minutes an escalation comes, 0 for another reason: the id of the message follows
	// from it, whatever other messages there are.
	step int
	// event says that the webhook chose it, which bounds its age.
	event bool
}

// events returns the messages for webhooks that chose an event, about alerts that the transaction
// has locked and of which the webhooks were notified.
func events(ctx context.Context, q *pgq.Queries, reason notify.Reason, tenants []string, alerts []uuid.UUID) ([]following, error) {
	if len(alerts) == 0 {
		return nil, nil
	}
	webhooks, err := q.EventWebhooks(ctx, pgq.EventWebhooksParams{TenantIds: tenants, Event: string(reason)})
	if err != nil {
		return nil, fmt.Errorf("find webhooks for the event: %w", err)
	}
	if len(webhooks) == 0 {
		return nil, nil
	}
	return eventTargets(ctx, q, reason, alerts, webhooks)
}

// eventTargets returns which of some webhooks are notified of an event, and of which alerts.
func eventTargets(ctx context.Context, q *pgq.Queries, reason notify.Reason, alerts, webhooks []uuid.UUID) ([]following, error) {
	rows, err := q.EventTargets(ctx, pgq.EventTargetsParams{AlertIds: alerts, WebhookIds: webhooks, Opening: opening()})
	if err != nil {
		return nil, fmt.Errorf("find who was notified of the alerts: %w", err)
	}
	list := make([]following, len(rows))
	for i, row := range rows {
		list[i] = following{alert: row.AlertID, webhook: row.WebhookID, reason: reason, event: true}
	}
	return list, nil
}

// ends returns the messages that alerts are resolved. Those that the rules want, for each webhook that was notified of the alert,
// do not expire; those for webhooks that chose the event do.
func ends(ctx context.Context, q *pgq.Queries, alerts []uuid.UUID, chosen []following) ([]following, error) {
	wanted, err := q.ResolutionTargets(ctx, pgq.ResolutionTargetsParams{AlertIds: alerts, Opening: opening()})
	if err != nil {
		return nil, fmt.Errorf("find who was notified of the alerts: %w", err)
	}
	type target struct{ alert, webhook uuid.UUID }
	listed := map[target]bool{}
	list := make([]following, len(wanted))
	for i, w := range wanted {
		list[i], listed[target{w.AlertID, w.WebhookID}] = following{alert: w.AlertID, webhook: w.WebhookID, reason: notify.ReasonResolved}, true
	}
	for _, f := range chosen {
		if !listed[target{f.alert, f.webhook}] {
			list = append(list, f)
		}
	}
	return list, nil
}

// opening returns the reasons of messages that say that an alert is open: a webhook with one of them was notified of it.
func opening() []string {
	var reasons []string
	for _, r := range notify.OpeningReasons() {
		reasons = append(reasons, string(r))
	}
	return reasons
}

// written is how many messages a transaction wrote: those to send, by webhook, and those that
// silences suppress. Messages that quiet hours hold are in neither.
type written struct {
	due        map[uuid.UUID]int
	suppressed int
}

// writeFollowing writes messages, each after the open ones of its alert and webhook. The
// transaction has locked the alerts. actor is who changed them; empty means Tocsin.
func writeFollowing(ctx context.Context, q *pgq.Queries, actor string, list []following) (written, error) {
	done := written{due: map[uuid.UUID]int{}}
	if len(list) == 0 {
		return done, nil
	}
	p := pgq.NotificationFollowParams{Actor: actor}
	webhooks := map[uuid.UUID]bool{}
	for _, f := range list {
		p.AlertIds, p.WebhookIds = append(p.AlertIds, f.alert), append(p.WebhookIds, f.webhook)
		p.Reasons, p.Steps, p.Events = append(p.Reasons, string(f.reason)), append(p.Steps, int32(f.step)), append(p.Events, f.event)
		webhooks[f.webhook] = true
	}
	silenced, decidedAt, err := silencedAlerts(ctx, q, p.AlertIds)
	if err != nil {
		return written{}, err
	}
	p.DecidedAt = decidedAt
	quiet, err := quietTargets(ctx, q, p.AlertIds, p.WebhookIds)
	if err != nil {
		return written{}, err
	}
	for _, f := range list {
		p.SilenceIds, p.QuietUntils = append(p.SilenceIds, silenced[f.alert]), append(p.QuietUntils, quiet[target{f.alert, f.webhook}])
	}
	p.HeldIds = slices.Collect(maps.Keys(webhooks))
	if err := q.FollowedLock(ctx, pgq.FollowedLockParams{AlertIds: p.AlertIds, WebhookIds: p.WebhookIds}); err != nil {
		return written{}, fmt.Errorf("lock open messages: %w", err)
	}
	rows, err := q.NotificationFollow(ctx, p)
	if err == nil && len(rows) != len(list) {
		err = errNoWebhook
	}
	if err != nil {
		return written{}, fmt.Errorf("write notifications: %w", err)
	}
	for _, row := range rows {
		switch {
		case !row.Written:
		case row.Suppressed:
			done.suppressed++
		case row.Quiet:
		default:
			done.due[row.WebhookID]++
		}
	}
	return done, nil
}

// notifyEvent notifies the webhooks that chose an event about alerts of a tenant that the
// transaction has locked.
func notifyEvent(ctx context.Context, q *pgq.Queries, of changed) (written, error) {
	list, err := events(ctx, q, of.reason, []string{of.tenant}, of.alerts)
	if err != nil {
		return written{}, err
	}
	return writeFollowing(ctx, q, of.actor, list)
}

// changed is a change that somebody made.
type changed struct {
	tenant, actor string
	reason        notify.Reason
	alerts        []uuid.UUID
}

// FreeFollowing puts messages into the queue that wait for a message that is gone. Usually the
// trigger does so at once. It misses a message only if the message that it waits for and one in
// between leave the outbox at the same time. FreeFollowing returns the webhooks.
func (s *Outbox) FreeFollowing(ctx context.Context) ([]uuid.UUID, error) {
	webhooks, err := s.alone().FollowingFree(ctx)
	if err != nil {
		return nil, fmt.Errorf("release messages that wait for others: %w", err)
	}
	return webhooks, nil
}
