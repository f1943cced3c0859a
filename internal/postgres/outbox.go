package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// Outbox is the dispatcher's store.
type Outbox struct{ db *DB }

// Outbox returns the dispatcher's store.
func (db *DB) Outbox() *Outbox { return &Outbox{db} }

// Claim takes due notifications.
func (s *Outbox) Claim(ctx context.Context, request notify.ClaimRequest) (notify.Claimed, error) {
	backlog, err := s.db.queries.OutboxBacklog(ctx)
	if err != nil {
		return notify.Claimed{}, fmt.Errorf("read backlog: %w", err)
	}
	var claimed notify.Claimed
	var due []notify.Limits
	for _, b := range backlog {
		if next := time.Duration(b.NextUs) * time.Microsecond; next > 0 && (claimed.Next == 0 || next < claimed.Next) {
			claimed.Next = next
		}
		if b.Due {
			due = append(due, notify.Limits{
				WebhookID: b.WebhookID, MaxConcurrent: int(b.MaxConcurrent), RatePerSecond: b.RatePerSecond, Tokens: b.Tokens, Probe: b.Probe,
			})
		}
	}
	if len(due) == 0 {
		return claimed, nil
	}
	rooms := request.Room(due)
	gatherErr := s.gatherStorms(ctx, backlog, rooms)
	p := pgq.NotificationClaimParams{Replica: request.Replica, Lease: request.Lease}
	for _, room := range rooms {
		p.WebhookIds = append(p.WebhookIds, room.WebhookID)
		p.Slots = append(p.Slots, int32(room.Slots))
	}
	if len(p.WebhookIds) == 0 {
		return claimed, gatherErr
	}
	rows, err := s.db.queries.NotificationClaim(ctx, p)
	if err != nil {
		return claimed, errors.Join(gatherErr, fmt.Errorf("claim: %w", err))
	}
	claimed.Deliveries, err = s.deliveries(ctx, rows)
	return claimed, errors.Join(gatherErr, err)
}

// deliveries reads claimed rows. One that cannot be read is left out and named
// in the error; it stays owed, and is offered again when its lease lapses.
func (s *Outbox) deliveries(ctx context.Context, rows []pgq.NotificationClaimRow) ([]notify.Delivery, error) {
	var out []notify.Delivery
	var unreadable []error
	for i := range rows {
		d, err := s.delivery(ctx, &rows[i])
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("notification %s: %w", d.NotificationID, err))
			continue
		}
		out = append(out, d)
	}
	return out, errors.Join(unreadable...)
}

// delivery reads a claimed row and, of a digest whose body is still to be
// rendered, what it tells.
func (s *Outbox) delivery(ctx context.Context, row *pgq.NotificationClaimRow) (notify.Delivery, error) {
	d := notify.Delivery{
		NotificationID: row.NotificationID, Reason: notify.Reason(row.Reason), Token: row.ClaimToken,
		Attempt: int(row.Attempts) + 1, CountedAttempts: int(row.Counted), Generation: int(row.Generation),
	}
	if row.ContentType != nil {
		d.Body = &notify.Body{ContentType: *row.ContentType, Content: row.Content}
	}
	var contentErr, webhookErr error
	d.Webhook, webhookErr = s.db.webhookOf(row.Webhook)
	switch {
	case d.Reason != notify.ReasonDigest:
		d.Alert, contentErr = alertOf(row.Alert, row.RuleName)
	case d.Body == nil:
		d.Digest, contentErr = s.digest(ctx, row.NotificationID)
	}
	return d, errors.Join(contentErr, webhookErr)
}

// Begin commits an attempt before it is made.
func (s *Outbox) Begin(ctx context.Context, begin notify.Begin) (unknown bool, err error) {
	request, err := json.Marshal(begin.Request)
	if err != nil {
		return false, fmt.Errorf("begin attempt: encode request: %w", err)
	}
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		var err error
		unknown, err = q.AttemptBegin(ctx, pgq.AttemptBeginParams{
			Lease: begin.Lease, NotificationID: begin.NotificationID, Token: begin.Token,
			AttemptNumber: int32(begin.Attempt), Replica: begin.Replica, Request: request,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return notify.ErrFenced
		}
		if err != nil {
			return err
		}
		if begin.Fresh == nil {
			return nil
		}
		return q.BodyFreeze(ctx, pgq.BodyFreezeParams{
			NotificationID: begin.NotificationID, ContentType: begin.Fresh.ContentType,
			Content: begin.Fresh.Content, Problem: rules.CleanText(begin.Problem, 2000),
		})
	})
	if err != nil {
		return false, fmt.Errorf("begin attempt: %w", err)
	}
	return unknown, nil
}

// Renew extends a lease.
func (s *Outbox) Renew(ctx context.Context, notification uuid.UUID, token int64, lease time.Duration) error {
	renewed, err := s.db.queries.OutboxRenew(ctx, pgq.OutboxRenewParams{
		Lease: lease, NotificationID: notification, Token: token,
	})
	if err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	if renewed == 0 {
		return notify.ErrFenced
	}
	return nil
}

// Settle stores an outcome and what follows.
func (s *Outbox) Settle(ctx context.Context, settlement notify.Settlement) error {
	var own, telling bool
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		params, err := finishParams(settlement)
		if err != nil {
			return err
		}
		if err := q.AttemptFinish(ctx, params); err != nil {
			return fmt.Errorf("finish attempt: %w", err)
		}
		if own, telling, err = conclude(ctx, q, settlement); err != nil {
			return err
		}
		if err := enterMessage(ctx, q, settlement); err != nil {
			return err
		}
		if !own {
			return nil
		}
		return followUp(ctx, q, settlement)
	})
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if !own {
		return notify.ErrFenced
	}
	if telling {
		s.testify(ctx, settlement)
	}
	return nil
}

func finishParams(settlement notify.Settlement) (pgq.AttemptFinishParams, error) {
	o := settlement.Outcome
	p := pgq.AttemptFinishParams{
		NotificationID: settlement.NotificationID, Attempt: int32(settlement.Attempt),
		Error: rules.CleanText(o.Error, 2000), Response: rules.CleanText(o.Response, 4096), DurationUs: o.Duration.Microseconds(),
	}
	if o.StatusCode != 0 {
		status := int32(o.StatusCode)
		p.StatusCode = &status
	}
	if o.Verdict != notify.VerdictUnknown {
		verdict := o.Verdict.String()
		p.Verdict = &verdict
	}
	if o.Head != nil {
		var err error
		if p.ResponseHead, err = json.Marshal(o.Head); err != nil {
			return p, fmt.Errorf("encode head of the answer: %w", err)
		}
	}
	return p, nil
}

// conclude ends the outbox row or makes it due later. It reports whether the
// claim was still ours, and whether the outcome may change the breaker: an answer
// changes nothing while there is no failure to forget.
func conclude(ctx context.Context, q *pgq.Queries, settlement notify.Settlement) (own, telling bool, err error) {
	d := settlement.Decision
	if d.Status != notify.Retrying {
		ended, err := q.OutboxSettle(ctx, pgq.OutboxSettleParams{
			NotificationID: settlement.NotificationID, Token: settlement.Token, Status: string(d.Status),
			AttemptNumber: int32(settlement.Attempt), WebhookID: settlement.WebhookID,
		})
		if err != nil {
			return false, false, fmt.Errorf("remove from outbox: %w", err)
		}
		return ended.Own, ended.Troubled || settlement.Outcome.Unanswered(), nil
	}
	counts := int32(0)
	if d.Counts {
		counts = 1
	}
	retried, err := q.OutboxRetry(ctx, pgq.OutboxRetryParams{
		Wait: d.Wait, Counts: counts, NotificationID: settlement.NotificationID, Token: settlement.Token,
	})
	if err != nil {
		return false, false, fmt.Errorf("schedule retry: %w", err)
	}
	return retried > 0, true, nil
}

// followUp holds or switches off the webhook.
func followUp(ctx context.Context, q *pgq.Queries, settlement notify.Settlement) error {
	d := settlement.Decision
	if d.Hold > 0 {
		if err := q.WebhookHold(ctx, pgq.WebhookHoldParams{Hold: d.Hold, WebhookID: settlement.WebhookID}); err != nil {
			return fmt.Errorf("hold webhook: %w", err)
		}
	}
	if d.Disable {
		return switchOff(ctx, q, settlement)
	}
	return nil
}

// alertOf reads a stored alert.
func alertOf(row pgq.Alert, ruleName string) (alerts.Instance, error) {
	a := alerts.Instance{
		ID: row.AlertID, TenantID: row.TenantID, RuleID: row.RuleID, RuleVersion: row.RuleVersion, RuleName: ruleName,
		Severity: rules.Severity(row.Severity), State: alerts.State(row.State), Title: row.Title, Message: row.Message,
		FiredAt: row.FiredAt, AcknowledgedAt: row.AcknowledgedAt, AcknowledgedBy: row.AcknowledgedBy,
		ResolvedAt: row.ResolvedAt, ResolvedBy: row.ResolvedBy, Health: row.Health, Late: row.Late,
	}
	if row.WebhookID != nil {
		a.WebhookID = *row.WebhookID
	}
	if row.LateByNs != nil {
		by := time.Duration(*row.LateByNs)
		a.LateBy = &by
	}
	if err := json.Unmarshal(row.Exchange, &a.Exchange); err != nil {
		return a, fmt.Errorf("alert %s: the stored exchange cannot be read: %w", row.AlertID, err)
	}
	if row.Count != nil {
		a.Count = new(alerts.Count)
		if err := json.Unmarshal(row.Count, a.Count); err != nil {
			return a, fmt.Errorf("alert %s: the stored count cannot be read: %w", row.AlertID, err)
		}
	}
	return a, nil
}
