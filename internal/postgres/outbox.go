package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// Outbox is the dispatcher's store. It is safe for concurrent use.
type Outbox struct{ db *DB }

// Outbox returns the dispatcher's store.
func (db *DB) Outbox() *Outbox { return &Outbox{db} }

// Claim takes due notifications. What a transaction of more than two seconds has
// written may be passed over for a while, by default five seconds, and [notify.Claimed]
// then tells when to look for it.
func (s *Outbox) Claim(ctx context.Context, request notify.ClaimRequest) (notify.Claimed, error) {
	looking := s.db.bounds.look()
	s.db.places.known(&looking)
	looking.Lease, looking.Recent = request.Lease, s.db.recent
	backlog, err := s.alone(eachOnce).OutboxBacklog(ctx, looking)
	if err != nil {
		return notify.Claimed{}, fmt.Errorf("read backlog: %w", err)
	}
	claimed := notify.Claimed{Next: s.db.bounds.note(backlog)}
	due := make(map[uuid.UUID]*pgq.OutboxBacklogRow)
	var limits []notify.Limits
	for i := range backlog {
		b := &backlog[i]
		if next := time.Duration(b.NextUs) * time.Microsecond; next > 0 && (claimed.Next == 0 || next < claimed.Next) {
			claimed.Next = next
		}
		if b.Due {
			due[b.WebhookID] = b
			limits = append(limits, notify.Limits{
				WebhookID: b.WebhookID, MaxConcurrent: int(b.MaxConcurrent), RatePerSecond: b.RatePerSecond, Tokens: b.Tokens, Probe: b.Probe,
				Digests: b.DigestAbove > 0, Worker: b.Worker,
			})
		}
	}
	if len(due) == 0 {
		return claimed, nil
	}
	rooms := request.Room(limits)
	s.db.places.leave(due, rooms, request.Replica)
	gatherErr := s.gatherStorms(ctx, backlog, rooms)
	if len(rooms) == 0 {
		return claimed, gatherErr
	}
	rows, err := s.claim(ctx, request, rooms, due)
	if err != nil {
		err = fmt.Errorf("claim: %w", err)
	}
	var readErr error
	claimed.Deliveries, readErr = s.deliveries(ctx, rows)
	return claimed, errors.Join(gatherErr, err, readErr)
}

// claim takes what there is room for, behind the places of the last claims, and
// before them where too little is behind.
func (s *Outbox) claim(
	ctx context.Context, request notify.ClaimRequest, rooms []notify.Slots, due map[uuid.UUID]*pgq.OutboxBacklogRow,
) ([]pgq.NotificationClaimRow, error) {
	starts := s.db.places.start(due)
	rows, err := s.claimFrom(ctx, request, rooms, starts)
	if err != nil {
		return nil, err
	}
	var rest []notify.Slots
	for _, room := range rooms {
		id := room.WebhookID
		if room.Slots -= count(rows, id); room.Slots > 0 && starts[id].placed() {
			starts[id] = headOf(due[id])
			rest = append(rest, room)
		}
	}
	if len(rest) > 0 {
		var before []pgq.NotificationClaimRow
		before, err = s.claimFrom(ctx, request, rest, starts)
		rows = append(rows, before...)
	}
	for _, room := range rooms {
		at := starts[room.WebhookID]
		for i := range rows {
			if rows[i].WebhookID == room.WebhookID {
				at = at.behind(&rows[i])
			}
		}
		b := due[room.WebhookID]
		s.db.places.note(room.WebhookID, at, count(rows, room.WebhookID) >= room.Slots && b.RatePerSecond == 0 && !b.Probe)
	}
	return rows, err
}

// claimFrom takes what there is room for, from given places on.
func (s *Outbox) claimFrom(
	ctx context.Context, request notify.ClaimRequest, rooms []notify.Slots, starts map[uuid.UUID]place,
) ([]pgq.NotificationClaimRow, error) {
	p := pgq.NotificationClaimParams{Replica: request.Replica, Lease: request.Lease}
	for _, room := range rooms {
		start := starts[room.WebhookID]
		p.WebhookIds = append(p.WebhookIds, room.WebhookID)
		p.Slots = append(p.Slots, int32(room.Slots))
		p.FirstAt = append(p.FirstAt, start.at)
		p.FirstIds = append(p.FirstIds, start.id)
	}
	return s.alone(rowByRow).NotificationClaim(ctx, p)
}

// count returns how many rows are of a webhook.
func count(rows []pgq.NotificationClaimRow, webhook uuid.UUID) (n int) {
	for i := range rows {
		if rows[i].WebhookID == webhook {
			n++
		}
	}
	return n
}

// deliveries reads claimed rows. One that cannot be read is left out and named
// in the error; it stays owed, and is offered again when its lease lapses.
func (s *Outbox) deliveries(ctx context.Context, rows []pgq.NotificationClaimRow) ([]notify.Delivery, error) {
	versions := make(map[uuid.UUID]int64)
	for i := range rows {
		versions[rows[i].WebhookID] = rows[i].Version
	}
	webhooks, err := s.db.webhooks.get(ctx, versions)
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
		Attempt: int(row.Attempts) + 1, CountedAttempts: int(row.Counted), Generation: int(row.Generation), AfterUnknown: row.Unknown,
	}
	if row.Frozen {
		d.Body = &notify.Body{ContentType: row.ContentType, Content: row.Content}
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

// beginWork is for statements that work on rows of the outbox by their ids. They
// are to use its indexes whatever was known of the table's size when they were
// planned: it is empty most of the time, and a plan made then, which reads all of
// it, would be used when a hundred thousand rows wait.
//
// Nor does it help that a vacuum has looked, between two storms: what it then
// believes to be a row or two is read whole for each row of a batch. So no statement
// joins the outbox to its batch. Each names the ids, which alone leads to the rows,
// and has the rest of what it knows looked up in a hash: (…) in (select …) is true.
const beginWork = begin + `; set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`

// planOnce is for statements whose plan is the same whatever their arguments are: each
// connection would else make one for each of the first five times.
const planOnce = `; set local plan_cache_mode = force_generic_plan`

// beginBatch also bounds how long a batch waits for a lock: whatever holds one row
// must not keep all the others. Alone, a row waits for as long as it takes.
const beginBatch = beginWork + `; set local lock_timeout = '1s'`

func beginOf(items int) string {
	if items > 1 {
		return beginBatch + planOnce
	}
	return beginWork + planOnce
}

// beginAttempts marks attempts as begun whose claims still stand, and freezes the
// bodies that are fresh. Their leases begin anew. None begins at a webhook that is
// not what it was when it was claimed: edited, off, held, or behind a breaker that
// has opened, which lets only its probe pass.
const beginAttempts = `
with b as (
    select * from unnest(@ids::uuid[], @tokens::bigint[], @numbers::int[], @webhooks::uuid[], @versions::bigint[], @requests::json[],
        @fresh::boolean[], @content_types::text[], @contents::bytea[], @problems::text[])
        as b (notification_id, token, number, webhook_id, version, request, fresh, content_type, content, problem)
), open as materialized (
    select w.webhook_id, w.version, s.opened_at, s.probe_token
    from webhook w join webhook_state s using (webhook_id)
    where w.webhook_id = any(@webhooks::uuid[]) and w.enabled and (w.held_until is null or w.held_until <= now())
), mine as (
    update outbox o
    set attempts = o.attempts + 1, begun_at = now(), due_at = now() + @lease::interval
    where o.notification_id = any(@ids::uuid[])
      and ((o.notification_id, o.claim_token, o.attempts + 1) in (
          select b.notification_id, b.token, b.number
          from b join open w on w.webhook_id = b.webhook_id and w.version = b.version and (w.opened_at is null or w.probe_token = b.token)
      )) is true
    returning o.notification_id, o.claim_token
), begun as materialized (
    select * from b where ((b.notification_id, b.token) in (select m.notification_id, m.claim_token from mine m)) is true
), frozen as (
    insert into notification_body (notification_id, content_type, content, problem, request)
    select b.notification_id, b.content_type, b.content, b.problem, b.request from begun b where b.fresh
), again as (
    update notification_body n
    set request = (select b.request from begun b where b.notification_id = n.notification_id)
    where n.notification_id = any(array(select b.notification_id from begun b where not b.fresh))
)
select m.notification_id, m.claim_token from mine m`

// stillClaimed selects those of some claims that stand.
const stillClaimed = `
select o.notification_id, o.claim_token
from outbox o
where o.notification_id = any(@ids::uuid[])
  and ((o.notification_id, o.claim_token) in (
      select b.notification_id, b.token from unnest(@ids::uuid[], @tokens::bigint[]) as b (notification_id, token)
  )) is true`

// Begin commits attempts before they are made. It commits only once it has heard
// that they are written: of a process that stands still, or dies, before that,
// nothing is left.
func (s *Outbox) Begin(ctx context.Context, begins []notify.Begin) ([]notify.Begun, error) {
	args, err := beginArgs(begins)
	if err != nil {
		return nil, fmt.Errorf("begin attempts: %w", err)
	}
	var begun, stand map[notify.Held]bool
	err = s.db.begun(ctx, beginOf(len(begins)), func(tx pgx.Tx) (err error) {
		if begun, err = claimsOf(ctx, tx, beginAttempts, args); err == nil && len(begun) < len(begins) {
			stand, err = claimsOf(ctx, tx, stillClaimed, pgx.NamedArgs{"ids": args["ids"], "tokens": args["tokens"]})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("begin attempts: %w", err)
	}
	results := make([]notify.Begun, len(begins))
	for i := range begins {
		claim := notify.Held{NotificationID: begins[i].NotificationID, Token: begins[i].Token}
		if !begun[claim] {
			results[i] = notify.Begun{Fenced: !stand[claim], Withheld: stand[claim]}
		}
	}
	return results, nil
}

// claimsOf reads claims.
func claimsOf(ctx context.Context, tx pgx.Tx, query string, args pgx.NamedArgs) (map[notify.Held]bool, error) {
	rows, err := tx.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	claims := make(map[notify.Held]bool)
	var claim notify.Held
	_, err = pgx.ForEachRow(rows, []any{&claim.NotificationID, &claim.Token}, func() error {
		claims[claim] = true
		return nil
	})
	return claims, err
}

func beginArgs(begins []notify.Begin) (pgx.NamedArgs, error) {
	n := len(begins)
	tokens, numbers, webhooks, versions := make([]int64, n), make([]int32, n), make([]uuid.UUID, n), make([]int64, n)
	for i := range begins {
		b := &begins[i]
		tokens[i], numbers[i], webhooks[i], versions[i] = b.Token, int32(b.Attempt), b.WebhookID, b.WebhookVersion
	}
	rows, err := beginRows(begins)
	if err != nil {
		return nil, err
	}
	return pgx.NamedArgs{
		"ids": rows.ids, "tokens": tokens, "numbers": numbers, "webhooks": webhooks, "versions": versions,
		"requests": rows.requests, "fresh": rows.fresh, "content_types": rows.contentTypes, "contents": rows.contents,
		"problems": rows.problems, "lease": begins[0].Lease,
	}, nil
}

// beginnings are attempts as they are stored beside the outbox.
type beginnings struct {
	ids          []uuid.UUID
	requests     [][]byte
	fresh        []bool
	contentTypes []string
	contents     [][]byte
	problems     []string
}

func beginRows(begins []notify.Begin) (beginnings, error) {
	n := len(begins)
	r := beginnings{make([]uuid.UUID, n), make([][]byte, n), make([]bool, n), make([]string, n), make([][]byte, n), make([]string, n)}
	for i := range begins {
		b := &begins[i]
		request, err := json.Marshal(b.Request)
		if err != nil {
			return r, fmt.Errorf("encode request: %w", err)
		}
		r.ids[i], r.requests[i], r.problems[i] = b.NotificationID, request, rules.CleanText(b.Problem, 2000)
		if b.Fresh != nil {
			r.fresh[i], r.contentTypes[i], r.contents[i] = true, b.Fresh.ContentType, b.Fresh.Content
		}
	}
	return r, nil
}

// Renew extends leases.
func (s *Outbox) Renew(ctx context.Context, held []notify.Held, lease time.Duration) ([]notify.Held, error) {
	p := pgq.OutboxRenewParams{Lease: lease}
	for _, h := range held {
		p.NotificationIds = append(p.NotificationIds, h.NotificationID)
		p.Tokens = append(p.Tokens, h.Token)
	}
	var rows []pgq.OutboxRenewRow
	err := s.db.begun(ctx, beginWork, func(tx pgx.Tx) (err error) {
		rows, err = s.db.queries.WithTx(tx).OutboxRenew(ctx, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	lost := make([]notify.Held, len(rows))
	for i, row := range rows {
		lost[i] = notify.Held{NotificationID: row.NotificationID, Token: row.Token}
	}
	return lost, nil
}

// Release gives claims back on what was not begun.
func (s *Outbox) Release(ctx context.Context, held []notify.Held) error {
	var p pgq.OutboxReleaseParams
	for _, h := range held {
		p.NotificationIds = append(p.NotificationIds, h.NotificationID)
		p.Tokens = append(p.Tokens, h.Token)
	}
	if err := s.db.queries.OutboxRelease(ctx, p); err != nil {
		return fmt.Errorf("release claims: %w", err)
	}
	s.db.places.forget()
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
