package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// gatherStorms makes digests for webhooks that have free slots and more waiting messages than their
// bound. If gathering fails for one webhook, the others go on.
//
// It never makes more digests than can be claimed at once. So a lasting storm makes the next digest
// larger, and does not make a queue of digests.
func (s *Outbox) gatherStorms(ctx context.Context, due map[uuid.UUID]*pgq.OutboxLookRow, dealt []dispatch.Slots, replica string) error {
	var p pgq.DigestWaitingParams
	room := map[uuid.UUID]int{}
	for _, slots := range dealt {
		if row := due[slots.WebhookID]; row.DigestAbove > 0 {
			room[slots.WebhookID] = slots.Slots
			p.WebhookIds, p.FirstAt, p.Above = append(p.WebhookIds, slots.WebhookID), append(p.FirstAt, row.FirstAt), append(p.Above, row.DigestAbove)
		}
	}
	if len(room) == 0 {
		return nil
	}
	waiting, err := s.alone().DigestWaiting(ctx, p)
	if err != nil {
		return fmt.Errorf("look for storms: %w", err)
	}
	var failed error
	for _, w := range waiting {
		for n := int(w.Digests); w.Gather && n < room[w.WebhookID]; n++ {
			gathered, err := s.gather(ctx, due[w.WebhookID], replica)
			failed = errors.Join(failed, err)
			if err != nil || gathered.Size == 0 && gathered.Ended == 0 {
				break
			}
		}
	}
	return failed
}

// gather makes a digest of what waits for a webhook, and ends what is of no use any more. The digest has the size 0 if
// no more than the bound waits.
func (s *Outbox) gather(ctx context.Context, due *pgq.OutboxLookRow, replica string) (pgq.DigestGatherRow, error) {
	gathered, err := s.db.queries.DigestGather(ctx, pgq.DigestGatherParams{
		DigestID: uuid.Must(uuid.NewV7()), WebhookID: due.WebhookID, FirstAt: due.FirstAt,
		Above: due.DigestAbove, Most: max(notify.DigestSize, due.DigestAbove+1),
		UndoWithin: needlessAfter, Replica: replica, DiscardedBy: notify.ByTocsin, Handled: becauseHandled, NotNotified: becauseNotNotified,
	})
	if err != nil {
		return gathered, fmt.Errorf("webhook %s: gather digest: %w", due.WebhookID, err)
	}
	return gathered, nil
}

// digest summarises the contents of a digest.
func (s *Outbox) digest(ctx context.Context, q *pgq.Queries, id uuid.UUID) (*notify.Digest, error) {
	d := notify.Digest{Reasons: map[notify.Reason]int{}}
	reasons, err := q.DigestReasons(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("count reasons: %w", err)
	}
	for _, row := range reasons {
		d.Reasons[notify.Reason(row.Reason)] = int(row.Count)
		d.Size += int(row.Count)
	}
	of, err := q.DigestSilence(ctx, id)
	switch {
	case err == nil:
		d.Size = int(of.Size)
		d.Silence = &notify.DigestSilence{ID: of.SilenceID, Name: of.Name, From: of.SilencedFrom, Until: of.SilencedUntil}
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("read silence: %w", err)
	}
	if err := addRanks(ctx, q, id, &d); err != nil {
		return nil, err
	}
	span, err := q.DigestSpan(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read time range: %w", err)
	}
	d.FirstFiredAt, d.LastFiredAt = span.FirstAt, span.LastAt
	ends, err := q.DigestEnds(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read first and last: %w", err)
	}
	for i, end := range []**alerts.Instance{&d.First, &d.Last} {
		if i == len(ends) {
			break
		}
		// An alert that cannot be read must not hold up the others.
		if alert, err := alertOf(ends[i].Alert, ends[i].RuleName, ends[i].RuleAbout); err == nil {
			*end = &alert
		}
	}
	if d.Alerts, err = q.DigestAlerts(ctx, pgq.DigestAlertsParams{DigestID: id, Most: notify.DigestAlerts}); err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return &d, nil
}

// addRanks fills in the most frequent rules, places and errors.
func addRanks(ctx context.Context, q *pgq.Queries, id uuid.UUID, d *notify.Digest) error {
	ruleRows, err := q.DigestRules(ctx, pgq.DigestRulesParams{DigestID: id, Most: notify.DigestTop})
	if err != nil {
		return fmt.Errorf("count rules: %w", err)
	}
	for _, row := range ruleRows {
		d.AllRules = int(row.OfAll)
		d.Rules = append(d.Rules, notify.DigestRule{ID: row.RuleID, Name: row.Name, Severity: rules.Severity(row.Severity), Count: int(row.Count)})
	}
	places, err := q.DigestPlaces(ctx, pgq.DigestPlacesParams{DigestID: id, Most: notify.DigestTop})
	if err != nil {
		return fmt.Errorf("count places: %w", err)
	}
	for _, row := range places {
		d.AllPlaces = int(row.OfAll)
		d.Places = append(d.Places, notify.DigestPlace{Application: row.Application, Route: row.Route, Count: int(row.Count)})
	}
	failures, err := q.DigestErrors(ctx, pgq.DigestErrorsParams{DigestID: id, Most: notify.DigestTop})
	if err != nil {
		return fmt.Errorf("count errors: %w", err)
	}
	for _, row := range failures {
		d.AllErrors = int(row.OfAll)
		d.Errors = append(d.Errors, notify.DigestError{Type: row.ErrorType, Message: row.Message, Count: int(row.Count)})
	}
	return nil
}
