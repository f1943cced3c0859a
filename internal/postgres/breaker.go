package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// beginEvidence bounds how long a transaction waits for the locks on breakers.
const beginEvidence = begin + `; set local lock_timeout = '1s'`

// applyOutcomes applies stored outcomes to the breakers and holds of their webhooks, webhook by webhook, in
// a separate transaction. Within the settlement, a paused replica that holds a lock would delay the
// settlements of all others until their leases expire and their messages are sent again. A replica
// that does not get the locks in time skips this step, and so does one that dies before it. Then
// one piece of evidence is lost, and the next attempt gives another. If it came from a probe, the
// next probe goes out after the lease of this one.
func (s *Outbox) applyOutcomes(ctx context.Context, st *settling) {
	counts := func(i int) bool { return !st.results[i].Fenced && st.settlements[i].Breaker != nil }
	asked := st.webhooksFor(counts)
	if len(asked) == 0 {
		return
	}
	if err := fault.Guard(func() error { return s.applyOutcomesTo(ctx, st, counts, asked) }); err != nil {
		st.results[slices.IndexFunc(st.results, func(r dispatch.Settled) bool { return !r.Fenced })].Unapplied = fmt.Errorf("apply outcomes: %w", err)
	}
}

func (s *Outbox) applyOutcomesTo(ctx context.Context, st *settling, counts func(i int) bool, asked []uuid.UUID) error {
	bad := st.webhooksFor(func(i int) bool { return counts(i) && st.settlements[i].Outcome.Verdict != notify.VerdictDelivered })
	if len(bad) < len(asked) {
		// A delivery changes nothing if there is no trouble to forget.
		troubled, err := s.alone().BreakersTroubled(ctx, asked)
		if err != nil {
			return err
		}
		bad = append(bad, troubled...)
	}
	if len(bad) == 0 {
		return nil
	}
	return s.db.begun(ctx, beginEvidence, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		if held := st.webhooksFor(func(i int) bool { return counts(i) && st.settlements[i].Decision.Hold > 0 }); len(held) > 0 {
			if err := q.WebhooksToHold(ctx, held); err != nil {
				return fmt.Errorf("lock webhooks: %w", err)
			}
		}
		rows, err := q.BreakerLock(ctx, bad)
		if err != nil {
			return fmt.Errorf("lock breakers: %w", err)
		}
		for i := range rows {
			if err := st.applyOutcomesOf(ctx, q, &rows[i], counts); err != nil {
				return err
			}
		}
		return nil
	})
}

// applyOutcomesOf applies the outcomes of a webhook to its breaker. Outcomes of a version before an edit
// say nothing about the webhook and are ignored.
func (st *settling) applyOutcomesOf(ctx context.Context, q *pgq.Queries, row *pgq.BreakerLockRow, counts func(i int) bool) error {
	was := breakerOf(pgq.WebhookFlowsRow{
		Failures: row.Failures, Openings: row.Openings, OpenedAt: row.OpenedAt, OpenUntil: row.OpenUntil,
		LastError: row.LastError, LastErrorAt: row.LastErrorAt,
	})
	was.Holds, was.HeldFor, was.HeldSince = int(row.Holds), row.HeldFor, orZero(row.HeldSince)
	was.HeldUntil = orZero(row.HeldUntil)
	next, probed := was, false
	for i := range st.settlements {
		t := &st.settlements[i]
		if t.WebhookID != row.WebhookID || t.WebhookVersion != row.Version || !counts(i) {
			continue
		}
		probe := row.ProbeToken != nil && *row.ProbeToken == t.Token
		probed = probed || probe
		next = t.Breaker(next, probe, row.At)
	}
	err := q.BreakerWrite(ctx, pgq.BreakerWriteParams{
		WebhookID: row.WebhookID, Version: row.Version, Failures: int32(next.Failures), Openings: int32(next.Openings),
		OpenedAt: instant(next.OpenedAt), OpenUntil: instant(next.Until), Holds: int32(next.Holds), HeldFor: next.HeldFor,
		HeldSince: instant(next.HeldSince),
		LastError: rules.CleanText(next.LastError, 500), LastErrorAt: instant(next.LastErrorAt),
		Probe: probed || next.OpenedAt.IsZero() && next.Holds == 0,
	})
	if err != nil {
		return fmt.Errorf("write breaker: %w", err)
	}
	if next.HeldUntil.After(was.HeldUntil) {
		err := q.WebhookHold(ctx, pgq.WebhookHoldParams{Until: next.HeldUntil, WebhookID: row.WebhookID, Version: row.Version})
		if err != nil {
			return fmt.Errorf("hold webhook: %w", err)
		}
	}
	if !was.OpenedAt.IsZero() && next.OpenedAt.IsZero() {
		return endIncidents(ctx, q, incidentFailing, row.WebhookID)
	}
	return nil
}

// ExpireHeld ends the messages that have waited longer than after for webhooks whose receivers
// asked for pauses of that length, oldest first, and notifies operators of them. It returns how
// many it ended, at most 10,000, and the webhooks of the operators.
func (s *Outbox) ExpireHeld(ctx context.Context, after time.Duration) (ended int, notified []uuid.UUID, err error) {
	err = s.db.unattended(ctx, func(q *pgq.Queries) error {
		expired, err := q.OutboxExpire(ctx, pgq.OutboxExpireParams{Expire: after, Most: mostExpired})
		ended = len(expired)
		if err != nil {
			return err
		}
		notified, err = notifyUndelivered(ctx, q, expired)
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("end messages that waited for too long: %w", err)
	}
	return ended, notified, nil
}

// mostExpired is how many messages one call of ExpireHeld ends.
const mostExpired = 10_000

func breakerOf(row pgq.WebhookFlowsRow) notify.Breaker {
	return notify.Breaker{
		Failures: int(row.Failures), Openings: int(row.Openings), OpenedAt: orZero(row.OpenedAt), Until: orZero(row.OpenUntil),
		LastError: row.LastError, LastErrorAt: orZero(row.LastErrorAt),
	}
}

// orZero returns the zero time for nil.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// instant returns nil for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// addFlow adds to each webhook how messages flow to it.
func (s *Webhooks) addFlow(ctx context.Context, list []notify.Webhook) error {
	ids := make([]uuid.UUID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	rows, err := s.db.queries.WebhookFlows(ctx, ids)
	if err != nil {
		return fmt.Errorf("read flows: %w", err)
	}
	byID := make(map[uuid.UUID]pgq.WebhookFlowsRow, len(rows))
	for _, row := range rows {
		byID[row.WebhookID] = row
	}
	for i := range list {
		row := byID[list[i].ID]
		list[i].Flow = notify.FlowOf(&list[i], breakerOf(row), row.At)
	}
	return nil
}

// revive forgets what attempts have shown of a webhook, because a person has edited or enabled it.
// Its breaker closes, and the alerts about it resolve. The alert that it was disabled resolves
// only when it is enabled.
func revive(ctx context.Context, q *pgq.Queries, w *notify.Webhook) error {
	if err := q.BreakerReset(ctx, w.ID); err != nil {
		return fmt.Errorf("reset breaker: %w", err)
	}
	if !w.Enabled {
		return endIncidents(ctx, q, incidentFailing, w.ID)
	}
	return endIncidents(ctx, q, "", w.ID)
}
