package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// Settle stores outcomes and what follows.
func (s *Outbox) Settle(ctx context.Context, settlements []notify.Settlement) ([]notify.Settled, error) {
	var results []notify.Settled
	var telling []int
	err := s.db.begun(ctx, beginOf(len(settlements)), func(tx pgx.Tx) error {
		results, telling = make([]notify.Settled, len(settlements)), nil
		q := s.db.queries.WithTx(tx)
		for _, batch := range apart(settlements) {
			troubled, err := settleBatch(ctx, q, settlements, batch, results)
			if err != nil {
				return err
			}
			telling = append(telling, troubled...)
		}
		for i := range settlements {
			if err := enterMessage(ctx, q, settlements[i]); err != nil {
				return err
			}
			if results[i].Fenced {
				continue
			}
			if err := followUp(ctx, q, settlements[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	for _, i := range telling {
		s.testify(ctx, settlements[i])
	}
	return results, nil
}

// apart splits settlements, by their places, so that no batch holds two of one
// notification: those of a claim and of the one that it passed to.
func apart(settlements []notify.Settlement) [][]int {
	var batches [][]int
	seen := make(map[uuid.UUID]int, len(settlements))
	for i := range settlements {
		id := settlements[i].NotificationID
		n := seen[id]
		seen[id]++
		if n == len(batches) {
			batches = append(batches, nil)
		}
		batches[n] = append(batches[n], i)
	}
	return batches
}

// settleBatch stores some of the settlements, fills in their results, and returns
// those whose outcome may change a breaker: an answer changes nothing while there
// is no failure to forget.
func settleBatch(ctx context.Context, q *pgq.Queries, settlements []notify.Settlement, batch []int, results []notify.Settled) (telling []int, err error) {
	var p pgq.SettleParams
	places := make(map[uuid.UUID]int, len(batch))
	for _, i := range batch {
		if err := addSettlement(&p, &settlements[i]); err != nil {
			return nil, err
		}
		places[settlements[i].NotificationID] = i
	}
	rows, err := q.Settle(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("store outcomes: %w", err)
	}
	for _, row := range rows {
		i := places[row.NotificationID]
		results[i].Fenced = !row.Own
		if row.Own && (row.Troubled || settlements[i].Outcome.Unanswered() || settlements[i].Decision.Status == notify.Retrying) {
			telling = append(telling, i)
		}
	}
	return telling, nil
}

func addSettlement(p *pgq.SettleParams, s *notify.Settlement) error {
	head, err := json.Marshal(s.Outcome.Head)
	if err != nil {
		return fmt.Errorf("encode head of the answer: %w", err)
	}
	verdict, counts := "", int32(0)
	if s.Outcome.Verdict != notify.VerdictUnknown {
		verdict = s.Outcome.Verdict.String()
	}
	if s.Decision.Counts {
		counts = 1
	}
	p.NotificationIds = append(p.NotificationIds, s.NotificationID)
	p.Tokens = append(p.Tokens, s.Token)
	p.Attempts = append(p.Attempts, int32(s.Attempt))
	p.TenantIds = append(p.TenantIds, s.TenantID)
	p.WebhookIds = append(p.WebhookIds, s.WebhookID)
	p.Statuses = append(p.Statuses, string(s.Decision.Status))
	p.Waits = append(p.Waits, s.Decision.Wait)
	p.Counts = append(p.Counts, counts)
	p.Verdicts = append(p.Verdicts, verdict)
	p.StatusCodes = append(p.StatusCodes, int32(s.Outcome.StatusCode))
	p.Errors = append(p.Errors, rules.CleanText(s.Outcome.Error, 2000))
	p.Responses = append(p.Responses, rules.CleanText(s.Outcome.Response, 4096))
	p.ResponseHeads = append(p.ResponseHeads, head)
	p.DurationsUs = append(p.DurationsUs, s.Outcome.Duration.Microseconds())
	return nil
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
