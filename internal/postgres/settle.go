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
	var stood []int
	var troubled map[uuid.UUID]bool
	err := s.db.begun(ctx, beginOf(len(settlements)), func(tx pgx.Tx) error {
		results, stood = make([]notify.Settled, len(settlements)), nil
		q := s.db.queries.WithTx(tx)
		for _, batch := range apart(settlements) {
			own, err := settleBatch(ctx, tx, settlements, batch, results)
			if err != nil {
				return err
			}
			stood = append(stood, own...)
		}
		var err error
		if troubled, err = troubledOf(ctx, q, settlements); err != nil {
			return err
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
	for _, i := range stood {
		if settlements[i].Outcome.Unanswered() || settlements[i].Decision.Status == notify.Retrying || troubled[settlements[i].WebhookID] {
			s.testify(ctx, settlements[i])
		}
	}
	return results, nil
}

// troubledOf returns the webhooks that have failures to forget: an answer changes
// nothing about any other.
func troubledOf(ctx context.Context, q *pgq.Queries, settlements []notify.Settlement) (map[uuid.UUID]bool, error) {
	seen := make(map[uuid.UUID]bool)
	var ids []uuid.UUID
	for i := range settlements {
		if id := settlements[i].WebhookID; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	rows, err := q.WebhookTroubled(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("look for failures: %w", err)
	}
	troubled := make(map[uuid.UUID]bool, len(rows))
	for _, id := range rows {
		troubled[id] = true
	}
	return troubled, nil
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

// storeOutcomes stores outcomes on their attempts. What came to its end leaves the
// outbox under its token; what is tried again becomes due later. A success also
// ends a row whose claim has passed to somebody else, because the message has
// arrived; but not when a person has sent it again since the attempt was begun.
// It returns those whose claims stood.
const storeOutcomes = `
with s as (
    select * from unnest(@ids::uuid[], @tokens::bigint[], @numbers::int[], @tenants::text[], @statuses::text[], @waits::bigint[],
        @counts::int[], @verdicts::text[], @codes::int[], @errors::text[], @responses::text[], @heads::json[], @durations::bigint[])
        as s (notification_id, token, number, tenant_id, status, wait_us, counts, verdict, code, error, response, head, duration_us)
), finished as (
    update attempt t
    set finished_at = now(), verdict = nullif(s.verdict, ''), status_code = nullif(s.code, 0), error = s.error, response = s.response,
        response_head = s.head, duration_us = s.duration_us
    from s
    where t.notification_id = s.notification_id and t.attempt = s.number
), gone as (
    delete from outbox o
    using s
    where s.status <> 'RETRYING' and o.notification_id = s.notification_id
      and (o.claim_token = s.token or s.status = 'DELIVERED' and s.number > o.begun_before)
    returning s.notification_id, s.tenant_id, s.status, coalesce(o.claim_token = s.token, false) as own
), settled as (
    insert into settlement (notification_id, tenant_id, status, settled_at)
    select g.notification_id, g.tenant_id, g.status, now() from gone g
), later as (
    update outbox o
    set due_at = now() + s.wait_us * interval '1 microsecond', counted = o.counted + s.counts, claim_token = null, claimed_by = null
    from s
    where s.status = 'RETRYING' and o.notification_id = s.notification_id and o.claim_token = s.token
    returning s.notification_id
)
select g.notification_id from gone g where g.own
union all
select l.notification_id from later l`

// settleBatch stores some of the settlements, fills in their results, and returns
// those whose claims stood.
func settleBatch(ctx context.Context, tx pgx.Tx, settlements []notify.Settlement, batch []int, results []notify.Settled) (own []int, err error) {
	args, err := settleArgs(settlements, batch)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, storeOutcomes, args)
	if err != nil {
		return nil, fmt.Errorf("store outcomes: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("store outcomes: %w", err)
	}
	stood := make(map[uuid.UUID]bool, len(list))
	for _, id := range list {
		stood[id] = true
	}
	for _, i := range batch {
		results[i].Fenced = !stood[settlements[i].NotificationID]
		if !results[i].Fenced {
			own = append(own, i)
		}
	}
	return own, nil
}

func settleArgs(settlements []notify.Settlement, batch []int) (pgx.NamedArgs, error) {
	n := len(batch)
	ids, tokens, numbers := make([]uuid.UUID, n), make([]int64, n), make([]int32, n)
	tenants, statuses, waits, counts := make([]string, n), make([]string, n), make([]int64, n), make([]int32, n)
	verdicts, codes, errs, responses := make([]string, n), make([]int32, n), make([]string, n), make([]string, n)
	heads, durations := make([][]byte, n), make([]int64, n)
	for at, i := range batch {
		s := &settlements[i]
		o := &s.Outcome
		ids[at], tokens[at], numbers[at], tenants[at] = s.NotificationID, s.Token, int32(s.Attempt), s.TenantID
		statuses[at], waits[at] = string(s.Decision.Status), s.Decision.Wait.Microseconds()
		if s.Decision.Counts {
			counts[at] = 1
		}
		if o.Verdict != notify.VerdictUnknown {
			verdicts[at] = o.Verdict.String()
		}
		codes[at] = int32(o.StatusCode)
		errs[at], responses[at] = rules.CleanText(o.Error, 2000), rules.CleanText(o.Response, 4096)
		durations[at] = o.Duration.Microseconds()
		if o.Head == nil {
			continue
		}
		var err error
		if heads[at], err = json.Marshal(o.Head); err != nil {
			return nil, fmt.Errorf("encode head of the answer: %w", err)
		}
	}
	return pgx.NamedArgs{
		"ids": ids, "tokens": tokens, "numbers": numbers, "tenants": tenants, "statuses": statuses, "waits": waits, "counts": counts,
		"verdicts": verdicts, "codes": codes, "errors": errs, "responses": responses, "heads": heads, "durations": durations,
	}, nil
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
