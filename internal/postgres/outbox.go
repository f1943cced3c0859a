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

// Outbox is the dispatcher's store. It is safe for concurrent use.
type Outbox struct {
	db       *DB
	webhooks webhookCache
}

// Outbox returns the dispatcher's store.
func (db *DB) Outbox() *Outbox { return &Outbox{db: db, webhooks: webhookCache{db: db}} }

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
	versions := make(map[uuid.UUID]int64)
	for i := range rows {
		versions[rows[i].WebhookID] = rows[i].Version
	}
	webhooks, err := s.webhooks.get(ctx, versions)
	if err != nil {
		return nil, err
	}
	out := make([]notify.Delivery, 0, len(rows))
	var unreadable []error
	for i := range rows {
		d, err := s.delivery(ctx, &rows[i], webhooks[rows[i].WebhookID])
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
func (s *Outbox) delivery(ctx context.Context, row *pgq.NotificationClaimRow, webhook cachedWebhook) (notify.Delivery, error) {
	d := notify.Delivery{
		Webhook: webhook.webhook, NotificationID: row.NotificationID, Reason: notify.Reason(row.Reason), Token: row.ClaimToken,
		Attempt: int(row.Attempts) + 1, CountedAttempts: int(row.Counted), Generation: int(row.Generation),
	}
	if row.ContentType != nil {
		d.Body = &notify.Body{ContentType: *row.ContentType, Content: row.Content}
	}
	var contentErr error
	switch {
	case d.Reason != notify.ReasonDigest:
		d.Alert, contentErr = alertOf(row.Alert, row.RuleName)
	case d.Body == nil:
		d.Digest, contentErr = s.digest(ctx, row.NotificationID)
	}
	return d, errors.Join(contentErr, webhook.err)
}

// beginBatch bounds how long a batch waits for a lock: whatever holds one row must
// not keep all the others. Alone, a row waits for as long as it takes.
const beginBatch = begin + `; set local lock_timeout = '1s'`

func beginOf(items int) string {
	if items > 1 {
		return beginBatch
	}
	return begin
}

// Begin commits attempts before they are made.
func (s *Outbox) Begin(ctx context.Context, begins []notify.Begin) ([]notify.Begun, error) {
	var p pgq.AttemptBeginParams
	for i := range begins {
		b := &begins[i]
		request, err := json.Marshal(b.Request)
		if err != nil {
			return nil, fmt.Errorf("begin attempts: encode request: %w", err)
		}
		body := notify.Body{Content: []byte{}}
		if b.Fresh != nil {
			body = *b.Fresh
		}
		p.Lease, p.Replica = b.Lease, b.Replica
		p.NotificationIds = append(p.NotificationIds, b.NotificationID)
		p.Tokens = append(p.Tokens, b.Token)
		p.Attempts = append(p.Attempts, int32(b.Attempt))
		p.Requests = append(p.Requests, request)
		p.Fresh = append(p.Fresh, b.Fresh != nil)
		p.ContentTypes = append(p.ContentTypes, body.ContentType)
		p.Contents = append(p.Contents, body.Content)
		p.Problems = append(p.Problems, rules.CleanText(b.Problem, 2000))
	}
	begun := make(map[notify.Held]notify.Begun, len(begins))
	err := s.db.begun(ctx, beginOf(len(begins)), func(tx pgx.Tx) error {
		rows, err := s.db.queries.WithTx(tx).AttemptBegin(ctx, p)
		for _, row := range rows {
			begun[notify.Held{NotificationID: row.NotificationID, Token: row.ClaimToken}] = notify.Begun{Unknown: row.Unknown}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("begin attempts: %w", err)
	}
	results := make([]notify.Begun, len(begins))
	for i := range begins {
		result, ok := begun[notify.Held{NotificationID: begins[i].NotificationID, Token: begins[i].Token}]
		if !ok {
			result.Fenced = true
		}
		results[i] = result
	}
	return results, nil
}

// Renew extends leases.
func (s *Outbox) Renew(ctx context.Context, held []notify.Held, lease time.Duration) ([]notify.Held, error) {
	p := pgq.OutboxRenewParams{Lease: lease}
	for _, h := range held {
		p.NotificationIds = append(p.NotificationIds, h.NotificationID)
		p.Tokens = append(p.Tokens, h.Token)
	}
	rows, err := s.db.queries.OutboxRenew(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	lost := make([]notify.Held, len(rows))
	for i, row := range rows {
		lost[i] = notify.Held{NotificationID: row.NotificationID, Token: row.Token}
	}
	return lost, nil
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
