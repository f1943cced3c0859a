package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/refresh"
)

// Slack is the store of the messages in Slack, for the refresher and for button presses in the API.
type Slack struct{ db *DB }

// Slack returns the store of the messages in Slack.
func (db *DB) Slack() *Slack { return &Slack{db} }

// enterMessage stores the place of a message, under the lock on its alert. It does so for a fenced
// claimant as well, because the message exists.
func enterMessage(ctx context.Context, q *pgq.Queries, settlement dispatch.Settlement) error {
	m := settlement.Message
	if m == nil {
		return nil
	}
	err := q.SlackMessageAdd(ctx, pgq.SlackMessageAddParams{
		AlertID: m.AlertID, WebhookID: settlement.WebhookID, NotificationID: &settlement.NotificationID,
		Reason: string(m.Reason), Channel: m.Channel, Ts: m.TS, Shown: string(m.Shown),
	})
	if err != nil {
		return fmt.Errorf("enter message: %w", err)
	}
	return nil
}

// beginThreads makes messages outside any thread begin the threads of their issues.
func beginThreads(ctx context.Context, q *pgq.Queries, settlements []dispatch.Settlement) error {
	var p pgq.SlackThreadsBeginParams
	for i := range settlements {
		if m := settlements[i].Message; m != nil && m.Begins {
			p.WebhookIds, p.Channels, p.Ts = append(p.WebhookIds, settlements[i].WebhookID), append(p.Channels, m.Channel), append(p.Ts, m.TS)
		}
	}
	if len(p.Ts) == 0 {
		return nil
	}
	if err := q.SlackThreadsBegin(ctx, p); err != nil {
		return fmt.Errorf("begin threads: %w", err)
	}
	return nil
}

// Claim takes the newest due update of each webhook that allow accepts. Updates that cannot be read
// are left out and named in the error; they stay due.
func (s *Slack) Claim(ctx context.Context, lease time.Duration, allow func(uuid.UUID) bool) (refresh.Claimed, error) {
	webhooks, err := s.db.queries.SlackUpdateWebhooks(ctx)
	claimed := refresh.Claimed{None: err == nil && len(webhooks) == 0}
	if err != nil {
		return claimed, fmt.Errorf("find webhooks with updates: %w", err)
	}
	var allowed []uuid.UUID
	for _, w := range webhooks {
		if w.Due && allow(w.WebhookID) {
			allowed = append(allowed, w.WebhookID)
		}
	}
	if len(allowed) == 0 {
		return claimed, nil
	}
	var rows []pgq.SlackUpdateReadRow
	err = s.db.unattended(ctx, func(q *pgq.Queries) error {
		ids, err := q.SlackUpdateClaim(ctx, pgq.SlackUpdateClaimParams{WebhookIds: allowed, Lease: lease})
		if err != nil || len(ids) == 0 {
			return err
		}
		rows, err = q.SlackUpdateRead(ctx, ids)
		return err
	})
	if err != nil {
		return claimed, fmt.Errorf("claim: %w", err)
	}
	var unreadable []error
	for _, row := range rows {
		var alert alerts.Instance
		var webhook notify.Webhook
		err := fault.Guard(func() (err error) {
			var webhookErr error
			alert, err = alertOf(row.Alert, row.RuleName, row.RuleAbout)
			webhook, webhookErr = s.db.webhookOf(row.Webhook)
			return errors.Join(err, webhookErr)
		})
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("message %d: %w", row.MessageID, err))
			continue
		}
		handling{row.Assignee, row.AssignedBy, row.AssignedAt, row.SnoozedUntil, row.SnoozedBy, row.SnoozedAt}.on(&alert)
		claimed.Updates = append(claimed.Updates, refresh.Update{
			MessageID: row.MessageID, Token: row.ClaimToken, Generation: row.Generation, Attempts: int(row.Attempts),
			At:       notify.Posted{Channel: row.Channel, TS: row.Ts},
			Delivery: notify.Delivery{Reason: notify.Reason(row.Reason), Alert: alert, Webhook: webhook},
		})
	}
	return claimed, errors.Join(unreadable...)
}

// Settle ends an update, or makes it due again.
func (s *Slack) Settle(ctx context.Context, settlement refresh.Settlement) error {
	u := settlement.Update
	err := s.db.unattended(ctx, func(q *pgq.Queries) error {
		if settlement.Hold > 0 {
			err := q.SlackUpdatesHold(ctx, pgq.SlackUpdatesHoldParams{Hold: settlement.Hold, WebhookID: u.Delivery.Webhook.ID})
			if err != nil {
				return fmt.Errorf("hold updates: %w", err)
			}
		}
		own, err := s.conclude(ctx, q, settlement)
		if err != nil || own {
			return err
		}
		return q.SlackUpdateRequest(ctx, u.MessageID)
	})
	if err != nil {
		return fmt.Errorf("settle update: %w", err)
	}
	return nil
}

func (s *Slack) conclude(ctx context.Context, q *pgq.Queries, settlement refresh.Settlement) (own bool, err error) {
	u := settlement.Update
	if settlement.Retry == 0 {
		return q.SlackUpdateEnd(ctx, pgq.SlackUpdateEndParams{MessageID: u.MessageID, Token: u.Token, Generation: u.Generation})
	}
	counts := int32(0)
	if settlement.Counts {
		counts = 1
	}
	retried, err := q.SlackUpdateRetry(ctx, pgq.SlackUpdateRetryParams{
		Generation: u.Generation, Wait: settlement.Retry, Counts: counts, MessageID: u.MessageID, Token: u.Token,
	})
	return retried > 0, err
}

// Trim deletes the oldest pending updates of each webhook, beyond most.
func (s *Slack) Trim(ctx context.Context, most int) (int64, error) {
	return s.db.queries.SlackUpdateTrim(ctx, int32(most))
}

// Webhook returns a webhook that posts as a bot, of any tenant.
func (s *Slack) Webhook(ctx context.Context, id uuid.UUID) (notify.Webhook, error) {
	row, err := s.db.queries.SlackWebhook(ctx, id)
	if err != nil {
		return notify.Webhook{}, notFound(err, "webhook")
	}
	return s.db.webhookOf(row)
}

// Show requests an update of the message whose button was pressed, whatever it shows. If the post
// of the message was never confirmed, Show also stores the message.
func (s *Slack) Show(ctx context.Context, p api.SlackPress) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		exists, err := q.AlertExists(ctx, pgq.AlertExistsParams{TenantID: p.Tenant, AlertID: p.AlertID})
		if err != nil || !exists {
			return err
		}
		webhook, err := q.SlackMessageFind(ctx, pgq.SlackMessageFindParams{
			TenantID: p.Tenant, AlertID: p.AlertID, Channel: p.At.Channel, Ts: p.At.TS,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			webhook, err = p.WebhookID, nil
		}
		if err != nil {
			return err
		}
		if err := q.SlackMessageAlerts(ctx, []uuid.UUID{p.AlertID}); err != nil {
			return err
		}
		return q.SlackMessageAdd(ctx, pgq.SlackMessageAddParams{
			AlertID: p.AlertID, WebhookID: webhook, Reason: string(notify.ReasonFired), Channel: p.At.Channel, Ts: p.At.TS,
		})
	})
	if err != nil {
		return fmt.Errorf("show press: %w", err)
	}
	return nil
}

// Person returns the user of a tenant with an e-mail address.
func (s *Slack) Person(ctx context.Context, tenant, email string) (api.SlackPerson, error) {
	row, err := s.db.queries.SlackPerson(ctx, pgq.SlackPersonParams{TenantID: tenant, Email: email})
	if err != nil {
		return api.SlackPerson{}, notFound(err, "user")
	}
	return api.SlackPerson{Email: row.Email, Role: access.Role(row.Role), Disabled: row.Disabled}, nil
}
