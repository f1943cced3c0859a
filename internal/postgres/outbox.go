package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// Outbox is the dispatcher's store. It is safe for concurrent use.
type Outbox struct{ db *DB }

// Outbox returns the dispatcher's store.
func (db *DB) Outbox() *Outbox { return &Outbox{db} }

// Claim takes due messages and begins their attempts. It may overlook messages of a transaction
// that took more than two seconds. In that case [dispatch.Claimed] says when to look again.
func (s *Outbox) Claim(ctx context.Context, request dispatch.ClaimRequest) (dispatch.Claimed, error) {
	looked, err := s.look(ctx, request.Webhooks)
	if err != nil {
		return dispatch.Claimed{}, err
	}
	claimed := dispatch.Claimed{Next: looked.next}
	webhooks, sealed, err := s.webhooksOf(ctx, looked)
	if err != nil || len(looked.due) == 0 {
		return claimed, err
	}
	dealt := request.Deal(looked.limits())
	gatherErr := s.gatherStorms(ctx, looked.due, dealt, request.Replica)
	if len(dealt) > 0 {
		c := claiming{request: request, looked: looked, dealt: dealt, webhooks: webhooks}
		if err = s.claim(ctx, &c); err == nil {
			c.addTo(&claimed)
		} else if ofARow(err) || isLockTimeout(err) {
			together := err
			err = s.claimApart(ctx, &c, &claimed, together)
			if fault.Panicked(together) {
				err = errors.Join(together, err) // the message records the panic, and the log has the stack
			}
		}
	}
	return claimed, errors.Join(sealed, gatherErr, err)
}

// looked is the result of a look at the outbox.
type looked struct {
	// due are the webhooks for which something may be claimed.
	due  map[uuid.UUID]*pgq.OutboxLookRow
	next time.Duration
}

// look looks for due messages, of some webhooks at least.
func (s *Outbox) look(ctx context.Context, webhooks []uuid.UUID) (looked, error) {
	p := s.db.bounds.look(webhooks)
	began := time.Now() //nolint:forbidigo // how long a look takes, which is compared with nothing else
	rows, err := s.alone().OutboxLook(ctx, p)
	if err != nil {
		return looked{}, fmt.Errorf("read the outbox: %w", err)
	}
	l := looked{due: map[uuid.UUID]*pgq.OutboxLookRow{}, next: s.db.bounds.note(p, rows, began)}
	for i := range rows {
		row := &rows[i]
		if next := time.Duration(row.NextUs) * time.Microsecond; next > 0 && (l.next == 0 || next < l.next) {
			l.next = next
		}
		if row.Due {
			l.due[row.WebhookID] = row
		}
	}
	return l, nil
}

// limits are the limits of the webhooks for which something may be claimed.
func (l *looked) limits() []dispatch.Due {
	due := make([]dispatch.Due, 0, len(l.due))
	for _, row := range l.due {
		due = append(due, dispatch.Due{
			WebhookID: row.WebhookID, MaxConcurrent: int(row.MaxConcurrent), RatePerSecond: row.RatePerSecond, Tokens: row.Tokens, Probe: row.Probe,
		})
	}
	return due
}

// webhooksOf reads the webhooks for which something is due. Webhooks whose secrets cannot be decrypted
// are left to a replica that has the key; sealed names them from time to time.
func (s *Outbox) webhooksOf(ctx context.Context, l looked) (webhooks map[uuid.UUID]cachedWebhook, sealed, err error) {
	versions := make(map[uuid.UUID]edition, len(l.due))
	for id, row := range l.due {
		versions[id] = edition{row.Version, row.UpdatedAt}
	}
	if webhooks, err = s.db.webhooks.get(ctx, versions); err != nil {
		return nil, nil, err
	}
	for id, version := range versions {
		if w, known := webhooks[id]; !known || w.err != nil || !version.is(&w.webhook) {
			delete(l.due, id)
			sealed = errors.Join(sealed, s.db.webhooks.complaint(id, w.err))
		}
	}
	return webhooks, sealed, nil
}

// Renew extends leases.
func (s *Outbox) Renew(ctx context.Context, held []dispatch.Held, lease time.Duration) (left map[dispatch.Held]time.Duration, err error) {
	p := pgq.OutboxRenewParams{Lease: lease, Fresh: lease * 2 / 3}
	claims := make(map[int64]dispatch.Held, len(held))
	for _, h := range held {
		p.NotificationIds, p.Tokens = append(p.NotificationIds, h.NotificationID), append(p.Tokens, h.Token)
		claims[h.Token] = h
	}
	rows, err := pgq.New(alone{s.db.leases, working}).OutboxRenew(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	left = make(map[dispatch.Held]time.Duration, len(rows))
	for _, row := range rows {
		left[claims[row.Token]] = time.Duration(row.LeftUs) * time.Microsecond
	}
	return left, nil
}

// alertOf reads a stored alert.
func alertOf(row pgq.Alert, ruleName string, ruleAbout []byte) (alerts.Instance, error) {
	a := alerts.Instance{
		ID: row.AlertID, TenantID: row.TenantID, RuleID: row.RuleID, RuleVersion: row.RuleVersion, RuleName: ruleName,
		Severity: rules.Severity(row.Severity), State: alerts.State(row.State), Title: row.Title, Message: row.Message,
		FiredAt: row.FiredAt, AcknowledgedAt: row.AcknowledgedAt, AcknowledgedBy: row.AcknowledgedBy,
		ResolvedAt: row.ResolvedAt, ResolvedBy: row.ResolvedBy, HeldUntil: row.HeldUntil, Health: row.Health, Late: row.Late,
	}
	if row.WebhookID != nil {
		a.WebhookID = *row.WebhookID
	}
	// An alert without the information about its rule is better than no alert.
	if about, err := aboutOf(ruleAbout); err == nil {
		a.About = about
	}
	if row.LateByNs != nil {
		by := time.Duration(*row.LateByNs)
		a.LateBy = &by
	}
	if row.Resolution != nil {
		if a.Resolution = new(alerts.Resolution); json.Unmarshal(row.Resolution, a.Resolution) != nil {
			a.Resolution = nil
		}
	}
	if row.Routing != nil {
		if a.Routing = new(alerts.Routing); json.Unmarshal(row.Routing, a.Routing) != nil {
			a.Routing = nil
		}
	}
	// The second version of the package takes half of the time, and each message pays for it.
	if err := jsonv2.Unmarshal(row.Exchange, &a.Exchange); err != nil {
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
