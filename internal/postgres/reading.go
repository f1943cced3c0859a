package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// What somebody has read is stored as a mark, before which everything is read, and rows for the
// exceptions. So marking everything as read is one row, however many alerts there are.

// asOf is an instant such that later statements see everything that fired before it. Alerts fire at
// the beginning of their transaction, so the instant is before all transactions under way.
// Transactions that take longer than a minute do not raise alerts and are ignored.
const asOf = `
select least(now(), min(xact_start)) - interval '1 millisecond'
from pg_stat_activity
where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
  and xact_start > now() - interval '1 minute'`

// AsOf returns an instant such that lists read from now on contain everything that fired before it.
func (s *Inbox) AsOf(ctx context.Context) (time.Time, error) {
	var at time.Time
	if err := s.db.pool.QueryRow(ctx, asOf).Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("read instant of inbox: %w", err)
	}
	return at, nil
}

// Unread counts the open alerts that somebody has not read.
func (s *Inbox) Unread(ctx context.Context, tenant, actor string) (int64, error) {
	c, err := s.selects(ctx, tenant, alerts.Filter{UnreadBy: actor, States: []alerts.State{alerts.Firing, alerts.Acknowledged}})
	if err != nil {
		return 0, fmt.Errorf("count unread alerts: %w", err)
	}
	var n int64
	err = s.db.pool.QueryRow(ctx, `select count(*) from alert a where `+c.where(), c.args).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count unread alerts: %w", err)
	}
	return n, nil
}

// Annotate returns what a list shows beside its alerts. Deleted alerts are left out.
func (s *Inbox) Annotate(ctx context.Context, tenant string, who api.Reader, ids []uuid.UUID) (map[uuid.UUID]api.Annotation, error) {
	mark, err := readUpTo(ctx, s.db.queries, tenant, who.Actor)
	if err != nil {
		return nil, err
	}
	mine, err := targetsOf(who.Targets)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.queries.AlertAnnotations(ctx, pgq.AlertAnnotationsParams{
		ReadUpTo: mark, Mine: mine, Assignees: namesOf(who.Targets, rules.TargetUser), Teams: namesOf(who.Targets, rules.TargetTeam), Actor: who.Actor, TenantID: tenant, AlertIds: ids, UndoWithin: undoWithin,
	})
	if err != nil {
		return nil, fmt.Errorf("annotate alerts: %w", err)
	}
	notes := make(map[uuid.UUID]api.Annotation, len(rows))
	for _, row := range rows {
		note := api.Annotation{Unread: row.Unread, Mine: row.Mine, Delivery: api.DeliveryCounts{
			Total: int(row.Total), Delivered: int(row.Delivered), Retrying: int(row.Retrying), Failed: int(row.Failed), Suppressed: int(row.Suppressed),
			Discarded: int(row.Discarded),
		}}
		if row.NextAttemptAt.Unix() > 0 {
			next := row.NextAttemptAt
			note.Delivery.NextAttemptAt = &next
		}
		if row.QuietUntil.Unix() > 0 {
			note.Delivery.QuietUntil = new(row.QuietUntil)
		}
		if row.UndoableID != nil && row.UndoableAt != nil && row.UndoableAlerts != nil {
			note.Reopenable = &api.Reopenable{ActionID: *row.UndoableID, Until: row.UndoableAt.Add(undoWithin), Alerts: *row.UndoableAlerts}
		}
		notes[row.AlertID] = note
	}
	return notes, nil
}

// markRead has placeholders for whether the alerts become read, and for conditions.
const markRead = `
insert into alert_read as k (tenant_id, actor, alert_id, read)
select @tenant, @reader, a.alert_id, @read
from alert a
left join alert_read x on x.tenant_id = @tenant and x.actor = @reader and x.alert_id = a.alert_id
where coalesce(x.read, a.fired_at <= @mark) <> @read and %s
order by a.alert_id
on conflict (tenant_id, actor, alert_id) do update set read = excluded.read where k.read <> excluded.read`

// MarkRead marks alerts as read or unread for somebody, and returns how many changed.
func (s *Inbox) MarkRead(ctx context.Context, tenant string, m api.ReadMark) (int64, error) {
	if m.Everything && m.Filter.UpTo != nil && m.Read {
		return s.advanceReader(ctx, tenant, m)
	}
	c, err := s.selects(ctx, tenant, m.Filter)
	if err != nil {
		return 0, err
	}
	mark, err := readUpTo(ctx, s.db.queries, tenant, m.Actor)
	if err != nil {
		return 0, err
	}
	c.args["reader"], c.args["read"], c.args["mark"] = m.Actor, m.Read, mark
	done, err := s.db.pool.Exec(ctx, fmt.Sprintf(markRead, c.where()), c.args)
	if err != nil {
		return 0, fmt.Errorf("mark alerts as read: %w", err)
	}
	return done.RowsAffected(), nil
}

// advanceReader moves the mark and deletes the rows that are redundant then.
func (s *Inbox) advanceReader(ctx context.Context, tenant string, m api.ReadMark) (int64, error) {
	f := m.Filter
	f.UnreadBy = m.Actor
	c, err := s.selects(ctx, tenant, f)
	if err != nil {
		return 0, err
	}
	var changed int64
	err = s.db.transact(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		err := tx.QueryRow(ctx, `select count(*) from alert a where `+c.where(), c.args).Scan(&changed)
		if err != nil {
			return err
		}
		if err := q.ReaderAdvance(ctx, pgq.ReaderAdvanceParams{TenantID: tenant, Actor: m.Actor, UpTo: *f.UpTo}); err != nil {
			return err
		}
		return q.ReadForget(ctx, pgq.ReadForgetParams{TenantID: tenant, Actor: m.Actor, UpTo: *f.UpTo})
	})
	if err != nil {
		return 0, fmt.Errorf("mark everything as read: %w", err)
	}
	return changed, nil
}
