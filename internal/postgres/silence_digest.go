package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts/silences"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// A silence that asks for digests stores which range of time the next ones list, and when they are
// due. A periodic pass of any replica writes them. In one transaction it locks the silence, writes a digest
// for each webhook with its listing, and moves the silence on to its next window. So each is written
// once, whatever dies and however many replicas do this. Its id follows from the silence, the webhook
// and the instant of the end: written again after a failover, it has the id that it had.
//
// A transaction that writes messages locks the silences in force (FOR SHARE) before it decides, and
// settles what they suppress at the instant of the decision. The pass comes after the end of the
// range and locks exclusively. So a transaction that decided within the range has committed by then. A later
// one waits, reads the changed row and a new instant, and decides by that.
//
// A change of a silence holds the same lock. It first writes the digests that are due, and then
// plans the next ones (silences.PlanDigests).

// mostSilenceDigests is how many silences one search returns.
const mostSilenceDigests = 1000

// DigestSilences writes the digests of silences that are due at now; nil is Postgres's clock. takes
// reports whether the receiver of a preset takes digests. It returns how many are to be sent, by
// webhook. A failure for one silence does not hold up the others.
func (s *Outbox) DigestSilences(ctx context.Context, now *time.Time, takes func(preset string) bool) (due map[uuid.UUID]int, err error) {
	due = map[uuid.UUID]int{}
	after := pgq.SilenceDigestDueRow{} // comes before all
	p := s.newPass()
	for {
		rows, err := s.alone().SilenceDigestDue(ctx, pgq.SilenceDigestDueParams{Now: now, AfterAt: after.DigestAt, AfterID: after.SilenceID, Most: mostSilenceDigests})
		if err != nil {
			p.fail(fmt.Errorf("find silences with digests due: %w", err))
			return due, p.failed()
		}
		for _, row := range rows {
			written, err := p.digestSilence(ctx, row.SilenceID, now, takes)
			if err != nil {
				p.fail(fmt.Errorf("digest of silence %s: %w", row.SilenceID, err))
				continue
			}
			addUp(due, written)
		}
		if len(rows) < mostSilenceDigests {
			return due, p.failed()
		}
		after = rows[len(rows)-1]
	}
}

// digestSilence writes the digests of one silence that are due, of one window after another.
func (p *pass) digestSilence(ctx context.Context, id uuid.UUID, now *time.Time, takes func(preset string) bool) (due map[uuid.UUID]int, err error) {
	err = p.transact(ctx, func(q *pgq.Queries) error {
		due = map[uuid.UUID]int{}
		for {
			row, err := q.SilenceDigestLock(ctx, pgq.SilenceDigestLockParams{SilenceID: id, Now: now})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil // another replica or a change was first
			}
			if err != nil {
				return fmt.Errorf("lock: %w", err)
			}
			written, err := writeSilenceDigests(ctx, q, &row, takes)
			if err != nil {
				return err
			}
			addUp(due, written)
		}
	})
	if err != nil {
		return nil, err
	}
	return due, nil
}

// writeSilenceDigests writes the digests of a locked silence that are due, and plans the next ones.
func writeSilenceDigests(ctx context.Context, q *pgq.Queries, row *pgq.Silence, takes func(preset string) bool) (due map[uuid.UUID]int, err error) {
	due = map[uuid.UUID]int{}
	from, until := *row.DigestFrom, *row.DigestAt
	about, err := q.SilenceDigestWebhooks(ctx, pgq.SilenceDigestWebhooksParams{SilenceID: row.SilenceID, Since: from, Until: until})
	if err != nil {
		return nil, fmt.Errorf("find who was not notified: %w", err)
	}
	p := pgq.SilenceDigestWriteParams{
		TenantID: row.TenantID, SilenceID: row.SilenceID, Since: from, SilencedFrom: from, Until: until, Most: notify.DigestSize,
	}
	plan := silences.DigestPlan{From: until}
	s := silenceOf(row)
	// A silence that cannot be used suppresses nothing: it needs no further digests.
	if c, err := silences.Compile(&s); err == nil {
		p.SilencedFrom, plan = c.DigestedFrom(silences.DigestPlan{From: from, At: &until, Since: row.DigestSince}), c.AfterDigests(until)
	}
	for _, w := range about {
		if !takes(w.Preset) {
			continue
		}
		var quiet time.Time
		if !w.Critical {
			quiet = quietHoursOf(w.QuietHours).Until(w.Now)
		}
		p.WebhookIds, p.QuietUntils = append(p.WebhookIds, w.WebhookID), append(p.QuietUntils, quiet)
		p.DigestIds = append(p.DigestIds, silenceDigestID(row.SilenceID, w.WebhookID, until))
	}
	if len(p.WebhookIds) > 0 {
		webhooks, err := q.SilenceDigestWrite(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("write: %w", err)
		}
		for _, webhook := range webhooks {
			due[webhook]++
		}
	}
	return due, planSilenceDigests(ctx, q, row.SilenceID, plan)
}

// silenceDigestID returns the id of the digest that a silence sends to a webhook when it, or a window
// of its recurrence, ends.
func silenceDigestID(silence, webhook uuid.UUID, ended time.Time) uuid.UUID {
	return notify.ID(silence, webhook, notify.ReasonDigest, int(ended.UnixMicro()))
}

func planSilenceDigests(ctx context.Context, q *pgq.Queries, id uuid.UUID, plan silences.DigestPlan) error {
	p := pgq.SilenceDigestPlanParams{SilenceID: id, DigestAt: plan.At, DigestSince: plan.Since}
	if !plan.From.IsZero() {
		p.DigestFrom = &plan.From
	}
	if err := q.SilenceDigestPlan(ctx, p); err != nil {
		return fmt.Errorf("plan digests: %w", err)
	}
	return nil
}

// replanSilenceDigests plans the digests of a silence that was changed at an instant. was is what was
// stored before; nil if nothing was.
func replanSilenceDigests(ctx context.Context, q *pgq.Queries, was, is *pgq.Silence, now time.Time) error {
	s := silenceOf(is)
	c, err := silences.Compile(&s)
	if err != nil {
		return planSilenceDigests(ctx, q, is.SilenceID, silences.DigestPlan{})
	}
	var before *silences.Compiled
	var planned silences.DigestPlan
	if was != nil {
		b := silenceOf(was)
		if compiled, err := silences.Compile(&b); err == nil {
			before = compiled
		}
		if planned.At, planned.Since = was.DigestAt, was.DigestSince; was.DigestFrom != nil {
			planned.From = *was.DigestFrom
		}
	}
	return planSilenceDigests(ctx, q, is.SilenceID, c.PlanDigests(before, planned, now))
}
