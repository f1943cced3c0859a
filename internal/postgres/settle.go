package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// Settle stores outcomes and what follows.
func (s *Outbox) Settle(ctx context.Context, settlements []notify.Settlement) ([]notify.Settled, error) {
	st := settling{settlements: settlements}
	err := s.settleAll(ctx, &st)
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	for i := range settlements {
		t := &settlements[i]
		if !st.results[i].Fenced && (t.Outcome.Unanswered() || t.Decision.Status == notify.Retrying || st.troubled[t.WebhookID]) {
			s.testify(ctx, *t)
		}
	}
	return st.results, nil
}

// settleAll stores outcomes in one transaction. One statement does, unless some
// have further consequences, or two are of one notification.
func (s *Outbox) settleAll(ctx context.Context, st *settling) error {
	batches := apart(st.settlements)
	if len(batches) == 1 && !slices.ContainsFunc(st.settlements, hasConsequences) {
		args, err := settleArgs(st.settlements, batches[0])
		if err != nil {
			return err
		}
		st.begin()
		return s.atOnce(ctx, len(st.settlements), func(batch *pgx.Batch) {
			batch.Queue(storeOutcomes, args).Query(func(rows pgx.Rows) error { return st.note(rows, batches[0]) })
			batch.Queue(findTroubled, pgx.NamedArgs{"webhooks": st.webhooks()}).Query(st.noteTroubled)
		})
	}
	return s.db.begun(ctx, beginOf(len(st.settlements))+mayHash, func(tx pgx.Tx) error {
		st.begin()
		for _, batch := range batches {
			args, err := settleArgs(st.settlements, batch)
			if err != nil {
				return err
			}
			rows, err := tx.Query(ctx, storeOutcomes, args)
			if err == nil {
				err = st.note(rows, batch)
			}
			if err != nil {
				return fmt.Errorf("store outcomes: %w", err)
			}
		}
		rows, err := tx.Query(ctx, findTroubled, pgx.NamedArgs{"webhooks": st.webhooks()})
		if err == nil {
			err = st.noteTroubled(rows)
		}
		if err != nil {
			return fmt.Errorf("look for failures: %w", err)
		}
		return st.followUp(ctx, s.db.queries.WithTx(tx))
	})
}

// A batch is joined to what of it left the outbox, by a hash; what it looks up in
// greater tables it does row by row, whatever is believed of their sizes.
const mayHash = `; set local enable_hashjoin = on`

// working is [beginWork] and, of several items, [beginBatch] for [Outbox.atOnce], with [mayHash].
const working = `
select set_config('enable_seqscan', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_nestloop', @loops::text, true),
       set_config('lock_timeout', case when @items::int > 1 then '1s' else '0' end, true),
       set_config('plan_cache_mode', 'force_generic_plan', true)`

// Rows are joined row by row where there are few on one side, or each side is read
// once: where there may come to be many on both, whatever was believed when the plan
// was made.
const (
	rowByRow = "on"
	eachOnce = "off"
)

// atOnce runs statements that need no answer of one another: they are sent
// together and are one transaction, which commits when the last has succeeded,
// whatever becomes of this process meanwhile.
func (s *Outbox) atOnce(ctx context.Context, items int, queue func(batch *pgx.Batch)) error {
	batch := &pgx.Batch{}
	batch.Queue(working, pgx.NamedArgs{"items": items, "loops": rowByRow})
	queue(batch)
	return s.db.pool.SendBatch(ctx, batch).Close()
}

// settling is the storing of some outcomes.
type settling struct {
	settlements []notify.Settlement
	results     []notify.Settled
	// troubled are webhooks that have failures to forget: an answer changes nothing
	// about any other.
	troubled map[uuid.UUID]bool
}

func (st *settling) begin() {
	st.results, st.troubled = make([]notify.Settled, len(st.settlements)), map[uuid.UUID]bool{}
}

// hasConsequences tells whether more is written than the outcome.
func hasConsequences(s notify.Settlement) bool {
	return s.Message != nil || s.Decision.Hold > 0 || s.Decision.Disable
}

// webhooks returns whose receivers the outcomes tell of.
func (st *settling) webhooks() []uuid.UUID {
	seen := make(map[uuid.UUID]bool)
	for i := range st.settlements {
		seen[st.settlements[i].WebhookID] = true
	}
	return slices.Collect(maps.Keys(seen))
}

// note reads whose claims stood.
func (st *settling) note(rows pgx.Rows, batch []int) error {
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	stood := make(map[uuid.UUID]bool, len(list))
	for _, id := range list {
		stood[id] = true
	}
	for _, i := range batch {
		st.results[i].Fenced = !stood[st.settlements[i].NotificationID]
	}
	return nil
}

func (st *settling) noteTroubled(rows pgx.Rows) error {
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	for _, id := range list {
		st.troubled[id] = true
	}
	return err
}

// followUp writes the consequences.
func (st *settling) followUp(ctx context.Context, q *pgq.Queries) error {
	for i := range st.settlements {
		if err := enterMessage(ctx, q, st.settlements[i]); err != nil {
			return err
		}
		if st.results[i].Fenced {
			continue
		}
		if err := followUp(ctx, q, st.settlements[i]); err != nil {
			return err
		}
	}
	return nil
}

// findTroubled selects those of some webhooks that have failures to forget.
const findTroubled = `
select webhook_id from webhook_state where webhook_id = any(@webhooks::uuid[]) and (failures > 0 or opened_at is not null)`

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

// storeOutcomes records attempts with their outcomes. What came to its end leaves
// the outbox under its token, for a settlement that holds the attempt; what is tried
// again becomes due later. A success also
// ends a row whose claim has passed to somebody else, because the message has
// arrived; but not when a person has sent it again since the attempt was begun. An
// attempt whose claim was taken over is recorded already, without outcome; so is one
// that was begun under the claim that a success ends. It returns those whose claims
// stood.
const storeOutcomes = `
with s as (
    select * from unnest(@ids::uuid[], @tokens::bigint[], @numbers::int[], @tenants::text[], @statuses::text[], @waits::bigint[],
        @counts::int[], @verdicts::text[], @codes::int[], @errors::text[], @responses::text[], @heads::json[], @durations::bigint[])
        as s (notification_id, token, number, tenant_id, status, wait_us, counts, verdict, code, error, response, head, duration_us)
), left_outbox as (
    delete from outbox o
    where o.notification_id = any(@ids::uuid[])
      and (((o.notification_id, o.claim_token) in (select s.notification_id, s.token from s where s.status <> 'RETRYING')) is true
           or exists (
               select from s
               where s.notification_id = o.notification_id and s.status = 'DELIVERED' and s.number > o.begun_before))
    returning o.notification_id, o.begun_at, o.attempts, o.claim_token, o.claimed_by
), gone as materialized (
    select s.*, coalesce(o.claim_token = s.token, false) as own, o.begun_at, o.attempts, o.claim_token, o.claimed_by
    from left_outbox o join s using (notification_id)
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at, request)
    select g.notification_id, g.attempts, g.claim_token, coalesce(g.claimed_by, ''), g.begun_at, b.request
    from gone g
    left join lateral (select n.request from notification_body n where n.notification_id = g.notification_id offset 0) b on true
    where not g.own and g.attempts > g.number and g.begun_at is not null and g.claim_token is not null
    on conflict do nothing
), settled as (
    insert into settlement (notification_id, tenant_id, status, settled_at, attempt, claim_token, replica, started_at, verdict,
                            status_code, error, response, duration_us, response_head)
    select notification_id, tenant_id, status, now(), number, token, @replica, begun_at, nullif(verdict, ''),
           nullif(code, 0), error, response, duration_us, head
    from gone where own
), settled_late as (
    insert into settlement (notification_id, tenant_id, status, settled_at)
    select notification_id, tenant_id, status, now() from gone where not own
), later as (
    update outbox o
    set due_at = now() + s.wait_us * interval '1 microsecond', ready_at = now() + s.wait_us * interval '1 microsecond',
        counted = o.counted + s.counts, claim_token = null, claimed_by = null
    from s
    where o.notification_id = any(array(select r.notification_id from s r where r.status = 'RETRYING'))
      and o.notification_id = s.notification_id and o.claim_token = s.token
    returning s.*, o.begun_at
), own as (
    select notification_id from gone where own
    union all
    select notification_id from later
), recorded as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at, finished_at, verdict, status_code, error, response,
                         duration_us, request, response_head)
    select r.notification_id, r.number, r.token, @replica, r.begun_at, now(), nullif(r.verdict, ''), nullif(r.code, 0), r.error,
           r.response, r.duration_us, b.request, r.head
    from later r
    left join lateral (select n.request from notification_body n where n.notification_id = r.notification_id offset 0) b on true
    union all
    select s.notification_id, s.number, s.token, @replica, now() - s.duration_us * interval '1 microsecond', now(),
           nullif(s.verdict, ''), nullif(s.code, 0), s.error, s.response, s.duration_us, null, s.head
    from s where s.notification_id not in (select notification_id from own)
    on conflict (notification_id, attempt) do update
    set finished_at = excluded.finished_at, verdict = excluded.verdict, status_code = excluded.status_code, error = excluded.error,
        response = excluded.response, duration_us = excluded.duration_us, response_head = excluded.response_head
)
select notification_id from own`

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
		"replica": settlements[batch[0]].Replica,
	}, nil
}

// followUp holds or switches off the webhook.
func followUp(ctx context.Context, q *pgq.Queries, settlement notify.Settlement) error {
	d := settlement.Decision
	if d.Hold > 0 {
		if err := q.WebhookHold(ctx, pgq.WebhookHoldParams{Hold: d.Hold, WebhookID: settlement.WebhookID, Version: settlement.WebhookVersion}); err != nil {
			return fmt.Errorf("hold webhook: %w", err)
		}
	}
	if d.Disable {
		return switchOff(ctx, q, settlement)
	}
	return nil
}
