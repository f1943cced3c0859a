package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// The kinds of incidents of webhooks. The transaction that raises the alert of an incident inserts
// the incident under its primary key; the one that resolves the alert deletes it. So operators are
// notified once.
const (
	incidentOff     = "OFF"
	incidentFailing = "FAILING"
)

// incident is a problem of a webhook that operators are notified of.
type incident struct {
	tenant, kind string
	webhook      uuid.UUID
	// message is one message for the webhook. The alert names its rule.
	message     uuid.UUID
	title, text string
	reason      notify.Reason
}

// raise raises the alert of an incident and notifies operators, except through the webhook itself,
// unless that was done before. It returns how many notifications it wrote for each webhook.
func (i *incident) raise(ctx context.Context, q *pgq.Queries) (written map[uuid.UUID]int, err error) {
	none := map[uuid.UUID]int{}
	id, err := q.IncidentClaim(ctx, pgq.IncidentClaimParams{WebhookID: i.webhook, Kind: i.kind})
	if errors.Is(err, pgx.ErrNoRows) {
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("enter an incident: %w", err)
	}
	rule, err := q.AlertRaiseWebhook(ctx, pgq.AlertRaiseWebhookParams{AlertID: id, NotificationID: i.message, Title: i.title, Message: i.text})
	if errors.Is(err, pgx.ErrNoRows) {
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("raise alert: %w", err)
	}
	return notifyOperatorsOf(ctx, q, operatorNotice{tenant: i.tenant, rule: rule, alert: id, reason: i.reason, except: i.webhook})
}

// endIncidents ends the incidents of a webhook, of one kind, or of all kinds if kind is empty.
// Webhooks that were notified of them and chose that event are notified of the end.
func endIncidents(ctx context.Context, q *pgq.Queries, kind string, webhook uuid.UUID) error {
	rows, err := q.IncidentEnd(ctx, pgq.IncidentEndParams{WebhookIds: []uuid.UUID{webhook}, Kind: kind})
	if err != nil {
		return fmt.Errorf("resolve alerts about the webhook: %w", err)
	}
	for _, row := range rows {
		if _, err := notifyEvent(ctx, q, changed{row.TenantID, "", notify.ReasonResolved, []uuid.UUID{row.AlertID}}); err != nil {
			return err
		}
	}
	return nil
}

// disableWebhook disables the webhook of a settlement and notifies operators. If several
// transactions find the receiver gone at once, the first one does it.
func disableWebhook(ctx context.Context, q *pgq.Queries, t *dispatch.Settlement) error {
	reason := rules.CleanText(t.Outcome.Error, 500)
	off, err := q.WebhookDisable(ctx, pgq.WebhookDisableParams{Reason: reason, WebhookID: t.WebhookID, Version: t.WebhookVersion})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("disable webhook: %w", err)
	}
	found := incident{
		tenant: off.TenantID, kind: incidentOff, webhook: t.WebhookID, message: t.NotificationID, reason: notify.ReasonWebhookOff,
		title: "Webhook " + off.Name + " is disabled",
		text:  "It was disabled: " + reason + "\nIts messages wait. Correct the webhook, then enable it.",
	}
	_, err = found.raise(ctx, q)
	return err
}

// NotifyOpenBreakers notifies operators of webhooks whose breaker has been open for at least
// openFor, once each. A failure for one webhook does not affect the others. It returns how many
// notifications it wrote for each webhook.
func (s *Outbox) NotifyOpenBreakers(ctx context.Context, openFor time.Duration) (map[uuid.UUID]int, error) {
	p, notifications := s.newPass(), map[uuid.UUID]int{}
	for after := uuid.Nil; ; {
		rows, err := s.alone().BreakersOpenFor(ctx, pgq.BreakersOpenForParams{OpenFor: openFor, AfterID: after, Most: mostBreakers})
		if err != nil {
			p.fail(fmt.Errorf("look for open breakers: %w", err))
			return notifications, p.failed()
		}
		for i := range rows {
			written, err := p.notifyOpenBreaker(ctx, &rows[i], openFor)
			if err != nil {
				p.fail(fmt.Errorf("notify operators of webhook %s: %w", rows[i].WebhookID, err))
				continue
			}
			for webhook, n := range written {
				notifications[webhook] += n
			}
		}
		if len(rows) < mostBreakers {
			return notifications, p.failed()
		}
		after = rows[len(rows)-1].WebhookID
	}
}

// mostBreakers is how many open breakers one search returns.
const mostBreakers = 100

// notifyOpenBreaker notifies operators of one webhook.
func (p *pass) notifyOpenBreaker(ctx context.Context, row *pgq.BreakersOpenForRow, openFor time.Duration) (notifications map[uuid.UUID]int, err error) {
	found := incident{
		tenant: row.TenantID, kind: incidentFailing, webhook: row.WebhookID, message: row.NotificationID, reason: notify.ReasonWebhookFailing,
		title: "Webhook " + row.Name + " is not responding",
		text:  "It has not responded since " + row.OpenedAt.UTC().Format(time.RFC3339) + ": " + row.LastError + "\nIts messages wait, and one of them is sent as a probe from time to time. Make sure that the receiver runs and that Tocsin can reach it.",
	}
	err = p.transact(ctx, func(q *pgq.Queries) error {
		// It may have responded, or been edited, since the webhooks were read: then nothing would end the incident. Or it is locked.
		held, err := q.BreakerStillOpen(ctx, pgq.BreakerStillOpenParams{WebhookID: row.WebhookID, OpenFor: openFor})
		if err != nil || held == 0 {
			return err
		}
		notifications, err = found.raise(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	return notifications, nil
}

// notifyUndelivered notifies operators of messages that were refused or exhausted, once each time.
// The id of a notification is derived from the message, the number of times that a person has sent
// it again, and the webhook. The webhook that could not be reached is not used for this
// notification. It returns the webhooks of the operators.
func notifyUndelivered(ctx context.Context, q *pgq.Queries, messages []uuid.UUID) (webhooks []uuid.UUID, err error) {
	if len(messages) == 0 {
		return nil, nil
	}
	rows, err := q.UndeliveredRead(ctx, messages)
	if err != nil {
		return nil, fmt.Errorf("read undelivered messages: %w", err)
	}
	tenants := make([]string, len(rows))
	for i, row := range rows {
		tenants[i] = row.TenantID
	}
	slices.Sort(tenants)
	list, err := q.OperatorWebhooks(ctx, slices.Compact(tenants))
	if err != nil {
		return nil, fmt.Errorf("find operators' webhooks: %w", err)
	}
	operators := map[string][]uuid.UUID{}
	for _, w := range list {
		operators[w.TenantID] = append(operators[w.TenantID], w.WebhookID)
	}
	var p pgq.UndeliveredInsertParams
	for _, row := range rows {
		for _, webhook := range operators[row.TenantID] {
			if webhook == row.WebhookID {
				continue
			}
			p.NotificationIds = append(p.NotificationIds, notify.ID(row.NotificationID, webhook, notify.ReasonUndelivered, int(row.Generation)))
			p.TenantIds, p.AlertIds = append(p.TenantIds, row.TenantID), append(p.AlertIds, row.AlertID)
			p.RuleIds, p.WebhookIds = append(p.RuleIds, row.RuleID), append(p.WebhookIds, webhook)
			p.Abouts = append(p.Abouts, row.NotificationID)
		}
	}
	if len(p.NotificationIds) == 0 {
		return nil, nil
	}
	if _, err := q.UndeliveredInsert(ctx, p); err != nil {
		return nil, fmt.Errorf("notify operators: %w", err)
	}
	webhooks = slices.Clone(p.WebhookIds)
	slices.SortFunc(webhooks, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(webhooks), nil
}
