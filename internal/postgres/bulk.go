package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// undoWithin is how long an action can be undone.
const undoWithin = 10 * time.Minute

// actOnMany has placeholders for the changes and the conditions. Rows are locked in the order of
// their ids, so that two actions at once cannot deadlock.
const actOnMany = `
with candidate as materialized (
    select a.alert_id
    from alert a
    where %[2]s and a.state = any(@from_states)
    order by a.alert_id
    for update of a
)
update alert a set %[1]s, change = @change
from candidate c where a.alert_id = c.alert_id
returning a.alert_id`

// countOthers counts the alerts that an action leaves unchanged.
const countOthers = `
select count(*) filter (where a.state = @to_state and a.change <> @change),
       count(*) filter (where a.state <> @to_state and a.state <> all(@from_states)),
       count(*)
from alert a
where %s`

// ActOnMany acts on many alerts in one statement. If the action was done before, by its id, it
// returns the same answer and does nothing.
func (s *Inbox) ActOnMany(ctx context.Context, tenant string, act api.BulkAction) (api.BulkCounts, error) {
	c, err := s.selects(ctx, tenant, act.Filter)
	if err != nil {
		return api.BulkCounts{}, fmt.Errorf("%s alerts: %w", act.Action, err)
	}
	set, from, to, err := stepOf(act.Action)
	if err != nil {
		return api.BulkCounts{}, err
	}
	selection, err := digestOf(act.Filter, chosen{HoldUntil: inUTC(act.HoldUntil)})
	if err != nil {
		return api.BulkCounts{}, fmt.Errorf("%s alerts: %w", act.Action, err)
	}
	c.args["from_states"], c.args["to_state"], c.args["actor"], c.args["held_until"] = from, to, act.Actor, act.HoldUntil
	var notified written
	of := action{tenant: tenant, id: act.ID, actor: act.Actor, act: string(act.Action), selection: selection}
	done, err := s.once(ctx, of, func(tx pgx.Tx, q *pgq.Queries, change int64) (others pgq.ActionDoneParams, err error) {
		notified = written{}
		c.args["change"] = change
		moved, err := changedBy(ctx, tx, fmt.Sprintf(actOnMany, set, c.where()), c.args)
		if err != nil {
			return others, err
		}
		if others, err = c.others(ctx, tx, countOthers, act.Filter.IDs); err != nil {
			return others, err
		}
		others.Changed = int64(len(moved))
		notified, err = notifyEvent(ctx, q, changed{tenant, act.Actor, eventOf(to), moved})
		return others, err
	})
	if err != nil {
		return api.BulkCounts{}, fmt.Errorf("%s alerts: %w", act.Action, err)
	}
	s.notified(ctx, notified)
	return done, nil
}

// action is an action on many alerts, under an id.
type action struct {
	tenant    string
	id        uuid.UUID
	actor     string
	act       string
	selection []byte
}

// once runs an action in one transaction and stores its result. If the action was done before, once
// returns the stored result.
func (s *Inbox) once(ctx context.Context, of action, do func(tx pgx.Tx, q *pgq.Queries, change int64) (pgq.ActionDoneParams, error)) (api.BulkCounts, error) {
	var done pgq.AlertAction
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		change, err := q.ActionBegin(ctx, pgq.ActionBeginParams{
			TenantID: of.tenant, ActionID: of.id, Actor: of.actor, Deed: of.act, Selection: of.selection,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			done, err = sameAction(ctx, q, of)
			return err
		}
		if err != nil {
			return err
		}
		p, err := do(tx, q, change)
		if err != nil {
			return err
		}
		p.TenantID, p.ActionID = of.tenant, of.id
		if done, err = q.ActionDone(ctx, p); err != nil {
			return err
		}
		return q.ActionForget(ctx, of.tenant)
	})
	if err != nil {
		return api.BulkCounts{}, err
	}
	return api.BulkCounts{
		Changed: done.Changed, Already: done.Already, Refused: done.Refused, Unknown: done.Unknown, UndoableUntil: done.At.Add(undoWithin),
	}, nil
}

// changedBy returns the alerts that a statement changed.
func changedBy(ctx context.Context, tx pgx.Tx, statement string, args pgx.NamedArgs) ([]uuid.UUID, error) {
	rows, err := tx.Query(ctx, statement, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// others counts the alerts that an action leaves unchanged. If alerts are selected by id, it also
// counts ids that do not exist.
func (c *conditions) others(ctx context.Context, tx pgx.Tx, statement string, ids []uuid.UUID) (p pgq.ActionDoneParams, err error) {
	var found int64
	if err := tx.QueryRow(ctx, fmt.Sprintf(statement, c.where()), c.args).Scan(&p.Already, &p.Refused, &found); err != nil {
		return p, err
	}
	if len(ids) > 0 {
		p.Unknown = int64(len(setOf(ids))) - found
	}
	return p, nil
}

// stepOf returns what an action writes, the states it applies to, and the state it leads to.
func stepOf(a alerts.Action) (set string, from []alerts.State, to alerts.State, err error) {
	for _, s := range alerts.States() {
		next, refused := s.After(a)
		if refused == nil {
			to = next
			if next != s {
				from = append(from, s)
			}
		}
	}
	switch a {
	case alerts.Acknowledge:
		return "state = @to_state, acknowledged_at = now(), acknowledged_by = @actor", from, to, nil
	case alerts.Resolve:
		return `state = @to_state, resolved_at = now(), resolved_by = @actor, held = a.group_key is not null,
			held_until = case when a.group_key is not null then @held_until::timestamptz end`, from, to, nil
	}
	return "", nil, "", fmt.Errorf("act on alerts: unknown action %q", a)
}

// chosen is what somebody chose with an action. A field that is not chosen is absent.
type chosen struct {
	HoldUntil *time.Time `json:"holdUntil,omitempty"`
	Assignee  *string    `json:"assignee,omitempty"`
	Reassign  bool       `json:"reassign,omitempty"`
}

// digestOf returns a hash that is equal for actions that do the same to the same selection,
// whatever the order of entries in the filter. It has field names of its own, and an absent field
// equals one that a version does not know, so that versions agree on the hash.
func digestOf(f alerts.Filter, with chosen) ([]byte, error) {
	text, err := json.Marshal(struct {
		IDs          []string         `json:"ids,omitempty"`
		States       []alerts.State   `json:"states,omitempty"`
		Severities   []rules.Severity `json:"severities,omitempty"`
		Rules        []string         `json:"rules,omitempty"`
		Applications []string         `json:"applications,omitempty"`
		Routes       []string         `json:"routes,omitempty"`
		Signatures   []string         `json:"signatures,omitempty"`
		Text         string           `json:"text,omitempty"`
		MineOf       []rules.Target   `json:"mineOf,omitzero"`
		UnreadBy     string           `json:"unreadBy,omitempty"`
		UpTo         *time.Time       `json:"upTo,omitempty"`

		Environments  []string          `json:"environments,omitempty"`
		ExecutionID   string            `json:"executionId,omitempty"`
		CorrelationID string            `json:"correlationId,omitempty"`
		Attributes    map[string]string `json:"attributes,omitempty"`
		From          *time.Time        `json:"from,omitempty"`
		PerExchange   bool              `json:"perExchange,omitempty"`
		Assignees     []string          `json:"assignees,omitempty"`
		Snoozed       *bool             `json:"snoozed,omitempty"`

		chosen
	}{
		texts(f.IDs), ordered(f.States), ordered(f.Severities), texts(f.Rules), ordered(f.Applications), ordered(f.Routes),
		ordered(f.Signatures), f.Text, f.MineOf, f.UnreadBy, inUTC(f.UpTo),
		ordered(f.Environments), f.ExecutionID, f.CorrelationID, f.Attributes, inUTC(f.From), f.PerExchange, ordered(f.Assignees), f.Snoozed,
		with,
	})
	if err != nil {
		return nil, fmt.Errorf("encode selection: %w", err)
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

func inUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	return &utc
}

func ordered[T cmp.Ordered](list []T) []T { return slices.Compact(slices.Sorted(slices.Values(list))) }

func texts(ids []uuid.UUID) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.String()
	}
	return ordered(list)
}

// sameAction returns an action that was done before, if it is the same one.
func sameAction(ctx context.Context, q *pgq.Queries, of action) (pgq.AlertAction, error) {
	row, err := q.ActionGet(ctx, pgq.ActionGetParams{UndoWithin: undoWithin, TenantID: of.tenant, ActionID: of.id})
	if err != nil {
		return pgq.AlertAction{}, err
	}
	a := row.AlertAction
	if a.Actor != of.actor || a.Action != of.act || a.Selection != nil && !bytes.Equal(a.Selection, of.selection) {
		return a, fault.New(fault.Conflict, "the action ID belongs to another action; choose a new one")
	}
	return a, nil
}

// Undo restores what an action changed, except for alerts that were changed since.
func (s *Inbox) Undo(ctx context.Context, tenant string, u api.Undo) (api.UndoCounts, error) {
	var done api.UndoCounts
	var notified written
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		notified = written{}
		q := s.db.queries.WithTx(tx)
		row, err := q.ActionGet(ctx, pgq.ActionGetParams{UndoWithin: undoWithin, TenantID: tenant, ActionID: u.ActionID})
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.NotFound, "no such action; there is nothing to undo")
		}
		if err != nil {
			return err
		}
		a := row.AlertAction
		switch {
		case a.Actor != u.Actor:
			return fault.New(fault.Conflict, "someone else did this, and only that person can undo it")
		case a.UndoneAt != nil:
			done = api.UndoCounts{Restored: a.Restored, Skipped: a.Changed - a.Restored}
			return nil
		case !row.Undoable:
			return fault.New(fault.Conflict, "it was done more than %d minutes ago and can no longer be undone", int(undoWithin.Minutes()))
		}
		change, err := q.AlertChangeNext(ctx)
		if err != nil {
			return err
		}
		var restored []uuid.UUID
		if a.Action == deedAssign {
			restored, err = q.AssignmentRestore(ctx, pgq.AssignmentRestoreParams{TenantID: tenant, ActionID: u.ActionID, RestoredChange: change})
		} else {
			restored, notified, err = restore(ctx, q, tenant, u.Actor, a, change)
		}
		if err != nil {
			return err
		}
		done = api.UndoCounts{Restored: int64(len(restored)), Skipped: a.Changed - int64(len(restored))}
		return q.ActionUndone(ctx, pgq.ActionUndoneParams{Restored: done.Restored, TenantID: tenant, ActionID: u.ActionID})
	})
	if err != nil {
		return api.UndoCounts{}, fmt.Errorf("undo: %w", err)
	}
	s.notified(ctx, notified)
	return done, nil
}

// restore restores the states that an action changed.
func restore(ctx context.Context, q *pgq.Queries, tenant, actor string, a pgq.AlertAction, change int64) ([]uuid.UUID, written, error) {
	restored, err := q.AlertRestore(ctx, pgq.AlertRestoreParams{TenantID: tenant, Change: a.Change, RestoredChange: change})
	if err != nil {
		return nil, written{}, err
	}
	if err := resumeEscalations(ctx, q, restored, a.At); err != nil {
		return nil, written{}, err
	}
	notified, err := notifyEvent(ctx, q, changed{tenant, actor, notify.ReasonReopened, restored})
	return restored, notified, err
}

// repeatedly runs f in one transaction and repeats it if others interfered: by a deadlock, or by
// opening an alert that f was about to restore.
func (db *DB) repeatedly(ctx context.Context, f func(pgx.Tx) error) error {
	const most = 3
	for attempt := 1; ; attempt++ {
		err := db.transact(ctx, f)
		if err == nil || attempt == most || !inTheWay(err) {
			return err
		}
	}
}

func inTheWay(err error) bool {
	const deadlock = "40P01"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == deadlock ||
		isUnique(err, "alert_open_once") || isUnique(err, "alert_health_once") || isUnique(err, "alert_webhook_once")
}
