package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// beginEvidence bounds how long a settlement waits for the lock on a breaker.
const beginEvidence = begin + `; set local lock_timeout = '1s'`

// testify lets a stored outcome change the breaker of its webhook, in a
// transaction of its own: were it part of the settlement, a replica that stands
// still with the lock in its hands would keep the settlements of all others
// waiting, until their leases lapse and their messages are sent again. Whoever
// does not get the lock in time goes without, as does one that dies in between.
// That loses a piece of evidence, of which the next attempt gives another; of a
// probe it costs the rest of its lease, after which another one goes out.
func (s *Outbox) testify(ctx context.Context, settlement notify.Settlement) {
	if settlement.Breaker == nil {
		return
	}
	_ = s.db.begun(ctx, beginEvidence, func(tx pgx.Tx) error { return judge(ctx, s.db.queries.WithTx(tx), settlement) })
}

// judge changes a breaker under a lock on it.
func judge(ctx context.Context, q *pgq.Queries, settlement notify.Settlement) error {
	row, err := q.BreakerLock(ctx, pgq.BreakerLockParams{
		NotificationID: settlement.NotificationID, Token: settlement.Token, WebhookID: settlement.WebhookID,
	})
	if err != nil {
		return fmt.Errorf("lock breaker: %w", err)
	}
	next := settlement.Breaker(breakerOf(pgq.WebhookFlowsRow{
		Failures: row.Failures, Openings: row.Openings, OpenedAt: row.OpenedAt, OpenUntil: row.OpenUntil,
		LastError: row.LastError, LastErrorAt: row.LastErrorAt,
	}), row.Probe, row.At)
	err = q.BreakerWrite(ctx, pgq.BreakerWriteParams{
		WebhookID: settlement.WebhookID, Version: settlement.WebhookVersion, Failures: int32(next.Failures), Openings: int32(next.Openings),
		OpenedAt: instant(next.OpenedAt), OpenUntil: instant(next.Until),
		LastError: rules.CleanText(next.LastError, 500), LastErrorAt: instant(next.LastErrorAt), Probe: row.Probe,
	})
	if err != nil {
		return fmt.Errorf("write breaker: %w", err)
	}
	return nil
}

func breakerOf(row pgq.WebhookFlowsRow) notify.Breaker {
	at := func(t *time.Time) time.Time {
		if t == nil {
			return time.Time{}
		}
		return *t
	}
	return notify.Breaker{
		Failures: int(row.Failures), Openings: int(row.Openings), OpenedAt: at(row.OpenedAt), Until: at(row.OpenUntil),
		LastError: row.LastError, LastErrorAt: at(row.LastErrorAt),
	}
}

// instant returns nil for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// addFlow tells of each webhook how messages flow to it.
func (s *Webhooks) addFlow(ctx context.Context, list []notify.Webhook) error {
	ids := make([]uuid.UUID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	rows, err := s.db.queries.WebhookFlows(ctx, ids)
	if err != nil {
		return fmt.Errorf("read flows: %w", err)
	}
	byID := make(map[uuid.UUID]pgq.WebhookFlowsRow, len(rows))
	for _, row := range rows {
		byID[row.WebhookID] = row
	}
	for i := range list {
		row := byID[list[i].ID]
		list[i].Flow = notify.FlowOf(&list[i], breakerOf(row), row.At)
	}
	return nil
}

// switchOff switches the webhook of a settlement off and tells operators so, by
// an alert and by messages to their other webhooks. Of those who find the
// receiver gone at once, the first does it.
func switchOff(ctx context.Context, q *pgq.Queries, settlement notify.Settlement) error {
	reason := rules.CleanText(settlement.Outcome.Error, 500)
	off, err := q.WebhookDisable(ctx, pgq.WebhookDisableParams{Reason: reason, WebhookID: settlement.WebhookID, Version: settlement.WebhookVersion})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("switch webhook off: %w", err)
	}
	alert := pgq.AlertRaiseWebhookOffParams{
		AlertID: uuid.Must(uuid.NewV7()), WebhookID: settlement.WebhookID, NotificationID: settlement.NotificationID,
		Title:   "Webhook " + off.Name + " is switched off",
		Message: "Its receiver is gone: " + reason + "\nNothing is sent to it until somebody enables it again; its messages stay owed.",
	}
	rule, err := q.AlertRaiseWebhookOff(ctx, alert)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("raise alert: %w", err)
	}
	_, err = tellOperators(ctx, q, telling{
		tenant: off.TenantID, rule: rule, alert: alert.AlertID, reason: notify.ReasonWebhookOff, except: settlement.WebhookID,
	})
	return err
}

// revive forgets what attempts told of a webhook that a person has edited or
// enabled: its breaker closes and, when it is enabled, the alert about its having
// been switched off resolves.
func revive(ctx context.Context, q *pgq.Queries, w *notify.Webhook) error {
	if err := q.BreakerReset(ctx, w.ID); err != nil {
		return fmt.Errorf("reset breaker: %w", err)
	}
	if !w.Enabled {
		return nil
	}
	if err := q.AlertResolveWebhookOff(ctx, w.ID); err != nil {
		return fmt.Errorf("resolve alert: %w", err)
	}
	return nil
}
