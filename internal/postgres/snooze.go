package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// A snooze is a row of its own. Its reminder is written in the transaction that deletes the row,
// under a lock on the alert. So the reminder is written once, whatever dies and however many
// replicas look, and it is not written if the snooze was cancelled or moved or the alert was
// resolved before. All instants are compared with Postgres's clock only.

// longestSnooze is the longest time that an alert can be snoozed.
const longestSnooze = 30 * 24 * time.Hour

// Snooze snoozes an alert until an instant; nil cancels the snooze.
func (s *Inbox) Snooze(ctx context.Context, tenant string, of api.Snooze) (alerts.Instance, error) {
	var alert alerts.Instance
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		state, err := q.AlertLock(ctx, pgq.AlertLockParams{TenantID: tenant, AlertID: of.AlertID})
		if err != nil {
			return notFound(err, "alert")
		}
		changed, err := snooze(ctx, q, tenant, alerts.State(state), of)
		if err != nil {
			return err
		}
		if changed {
			if err := q.AlertTouch(ctx, of.AlertID); err != nil {
				return err
			}
		}
		alert, err = getAlert(ctx, q, tenant, of.AlertID)
		return err
	})
	if err != nil {
		return alerts.Instance{}, fmt.Errorf("snooze alert: %w", err)
	}
	return alert, nil
}

// snooze writes the snooze of an alert that the transaction has locked, and reports whether that
// changed anything.
func snooze(ctx context.Context, q *pgq.Queries, tenant string, state alerts.State, of api.Snooze) (bool, error) {
	if of.Until == nil {
		cancelled, err := q.SnoozeCancel(ctx, pgq.SnoozeCancelParams{AlertID: of.AlertID, UndoWithin: undoWithin})
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		if err == nil && cancelled.Undone {
			err = resumeEscalations(ctx, q, []uuid.UUID{of.AlertID}, cancelled.SnoozedSince)
		}
		return err == nil, err
	}
	if err := state.Snoozable(); err != nil {
		return false, err
	}
	snoozed, err := q.SnoozeSet(ctx, pgq.SnoozeSetParams{
		AlertID: of.AlertID, TenantID: tenant, Until: *of.Until, SnoozedBy: of.Actor, Longest: longestSnooze,
	})
	if err == nil && snoozed == 0 {
		err = fault.InvalidFields("the snooze", []fault.Field{{
			Field: "until", Code: "out_of_range", Message: fmt.Sprintf("Must be in the future, at most %d days from now", int(longestSnooze.Hours()/24)),
		}})
	}
	return err == nil, err
}

// mostReminders is how many snoozes one search returns.
const mostReminders = 1000

// Remind ends the snoozes that are over at now (nil is Postgres's clock), and reminds the webhooks
// that were notified of the alerts. It returns how many messages there are for each webhook, and
// how many are suppressed by silences. A failure for one alert does not hold up the others.
func (s *Outbox) Remind(ctx context.Context, now *time.Time) (due map[uuid.UUID]int, suppressed int, err error) {
	due = map[uuid.UUID]int{}
	after := pgq.SnoozeDueRow{} // comes before all
	p := s.newPass()
	for {
		over, err := s.alone().SnoozeDue(ctx, pgq.SnoozeDueParams{Now: now, AfterUntil: after.Until, AfterID: after.AlertID, Most: mostReminders})
		if err != nil {
			p.fail(fmt.Errorf("find snoozes that are over: %w", err))
			return due, suppressed, p.failed()
		}
		for _, row := range over {
			done, err := p.remind(ctx, row.AlertID, now)
			if err != nil {
				p.fail(fmt.Errorf("end snooze of alert %s: %w", row.AlertID, err))
				continue
			}
			addUp(due, done.due)
			suppressed += done.suppressed
		}
		if len(over) < mostReminders {
			return due, suppressed, p.failed()
		}
		after = over[len(over)-1]
	}
}

// remind ends one snooze.
func (p *pass) remind(ctx context.Context, id uuid.UUID, now *time.Time) (done written, err error) {
	err = p.onAlerts(ctx, []uuid.UUID{id}, func(q *pgq.Queries, ids []uuid.UUID) error {
		done = written{}
		state, err := q.SnoozeEnd(ctx, pgq.SnoozeEndParams{AlertID: id, Now: now})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || alerts.State(state).Snoozable() != nil {
			return err
		}
		webhooks, err := q.SnoozeTargets(ctx, pgq.SnoozeTargetsParams{AlertID: id, Opening: opening()})
		if err != nil {
			return err
		}
		list := make([]following, len(webhooks))
		for i, webhook := range webhooks {
			list[i] = following{alert: id, webhook: webhook, reason: notify.ReasonSnoozeEnded}
		}
		if done, err = writeFollowing(ctx, q, "", list); err != nil {
			return err
		}
		if err := q.AlertReminded(ctx, id); err != nil {
			return err
		}
		return q.AlertMessaged(ctx, pgq.AlertMessagedParams{AlertIds: ids, UndoWithin: undoWithin})
	})
	return done, err
}
