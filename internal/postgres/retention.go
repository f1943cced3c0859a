package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
	"tocsin/internal/retention"
)

// Retention is the store of a [retention.Deleter].
type Retention struct{ db *DB }

// Retention returns the store of a [retention.Deleter].
func (db *DB) Retention() *Retention { return &Retention{db} }

// beginDeletion bounds how long a batch may wait for and hold locks: other work comes first.
const beginDeletion = begin + `; set local lock_timeout = '1s'; set local statement_timeout = '10s'`

// alone runs f in a transaction while no other replica deletes.
func (s *Retention) alone(ctx context.Context, beginning string, f func(q *pgq.Queries) error) error {
	return s.db.begun(ctx, beginning, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		locked, err := q.RetentionTryLock(ctx)
		if err != nil {
			return err
		}
		if !locked {
			return retention.ErrBusy
		}
		return f(q)
	})
}

// beginDrop is beginDeletion for statements that lock a table against reads and writes: while such a
// statement waits for its lock, all later readers wait behind it.
const beginDrop = beginDeletion + `; set local lock_timeout = '200ms'`

// Bodies creates the partitions that bodies will soon be written to, drops one that has expired,
// and deletes old bodies that are in no partition. Each is a transaction of its own: a long read of
// an old partition delays only its drop. Bodies reports whether there may be more to do.
func (s *Retention) Bodies(ctx context.Context, keep, width time.Duration, most int) (more bool, err error) {
	err = s.alone(ctx, beginDrop, func(q *pgq.Queries) error {
		_, err := q.BodyPartitionsAhead(ctx, width)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("make partitions of bodies: %w", err)
	}
	err = s.alone(ctx, beginDrop, func(q *pgq.Queries) error {
		more, err = q.BodyPartitionDrop(ctx, keep)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("drop a partition of bodies: %w", err)
	}
	var deleted int64
	err = s.alone(ctx, beginDeletion, func(q *pgq.Queries) error {
		deleted, err = q.RetentionBodies(ctx, pgq.RetentionBodiesParams{Keep: keep, Most: int32(most)})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("delete bodies: %w", err)
	}
	return more || int(deleted) == most, nil
}

// Responses deletes the oldest stored responses.
func (s *Retention) Responses(ctx context.Context, keep time.Duration, most int) (int, error) {
	var deleted int64
	err := s.alone(ctx, beginDeletion, func(q *pgq.Queries) error {
		var err error
		deleted, err = q.RetentionResponses(ctx, pgq.RetentionResponsesParams{Keep: keep, Most: int32(most)})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("delete responses: %w", err)
	}
	return int(deleted), nil
}

// Alerts deletes the alerts of a batch that are not needed any more.
func (s *Retention) Alerts(ctx context.Context, batch retention.Batch) (retention.BatchResult, error) {
	var result retention.BatchResult
	var over []uuid.UUID
	err := s.alone(ctx, beginDeletion, func(q *pgq.Queries) error {
		rows, err := q.RetentionCandidates(ctx, pgq.RetentionCandidatesParams{
			AfterAt: batch.After.ResolvedAt, AfterID: batch.After.AlertID, Keep: batch.Keep, Most: int32(batch.Most),
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		last := rows[len(rows)-1]
		result.Looked, result.Next = len(rows), retention.Mark{ResolvedAt: *last.ResolvedAt, AlertID: last.AlertID}
		over, err = release(ctx, q, rows, batch.Keep)
		return err
	})
	if err != nil {
		return result, fmt.Errorf("find alerts: %w", err)
	}
	if len(over) == 0 {
		return result, nil
	}
	err = s.alone(ctx, beginDeletion, func(q *pgq.Queries) error {
		if err := q.RetentionHold(ctx, over); err != nil {
			return err
		}
		if err := q.RetentionHoldDigests(ctx, over); err != nil {
			return err
		}
		deleted, err := q.RetentionAlerts(ctx, pgq.RetentionAlertsParams{AlertIds: over, Keep: batch.Keep})
		result.Deleted = int(deleted)
		return err
	})
	if err != nil {
		result.Deleted = 0
		return result, fmt.Errorf("delete alerts: %w", err)
	}
	return result, nil
}

// release raises retention floors and returns the alerts that are behind them, or that no rule can
// raise again anyway.
func release(ctx context.Context, q *pgq.Queries, rows []pgq.RetentionCandidatesRow, keep time.Duration) ([]uuid.UUID, error) {
	before := map[uuid.UUID]int64{}
	var raise pgq.RetentionFloorRaiseParams
	for _, row := range rows {
		if _, seen := before[row.RuleID]; seen || !row.OfExchange || !row.Evaluated {
			continue
		}
		before[row.RuleID] = row.SweptBeforeNs
	}
	wanted := map[uuid.UUID]bool{}
	for _, row := range rows {
		if !row.OfExchange || !row.Evaluated || row.StartTimeNs < row.SweptBeforeNs || wanted[row.RuleID] {
			continue
		}
		reach, known := reachOf(row, keep)
		if known && row.StartTimeNs < reach {
			wanted[row.RuleID] = true
			raise.RuleIds = append(raise.RuleIds, row.RuleID)
			raise.BeforeNs = append(raise.BeforeNs, reach)
		}
	}
	if len(raise.RuleIds) > 0 {
		raised, err := q.RetentionFloorRaise(ctx, raise)
		if err != nil {
			return nil, fmt.Errorf("raise retention floors: %w", err)
		}
		for _, row := range raised {
			before[row.RuleID] = row.SweptBeforeNs
		}
	}
	var over []uuid.UUID
	for _, row := range rows {
		if !row.OfExchange || !row.Evaluated || row.StartTimeNs < before[row.RuleID] {
			over = append(over, row.AlertID)
		}
	}
	return over, nil
}

// reachOf returns the start time back to which a candidate's rule reads, from its cursor, its own
// position and its partition's backfill. It is not known for a rule whose progress cannot be read.
// A cursor in the future counts as the present: a floor that followed it would remain when the
// cursor is corrected, and exchanges that began before it would never raise alerts.
func reachOf(row pgq.RetentionCandidatesRow, keep time.Duration) (ns int64, known bool) {
	atNS := row.NowNs
	if row.Cursor == nil && row.Position == nil {
		atNS = min(atNS, row.ArmedSinceNs)
	}
	for _, text := range []*string{row.Cursor, row.Position} {
		at, err := positionOf(text)
		if err != nil {
			return 0, false
		}
		if at != nil {
			atNS = min(atNS, at.StartTimeNS)
		}
	}
	ns = retention.ReachNS(atNS, time.Duration(row.LookBackSeconds)*time.Second, keep)
	if row.BackfillFromNs != nil {
		ns = min(ns, *row.BackfillFromNs)
	}
	return ns, true
}

// Done deletes empty digests, and stores the end of a pass.
func (s *Retention) Done(ctx context.Context, keep time.Duration) error {
	const most = 1000
	return s.alone(ctx, beginDeletion, func(q *pgq.Queries) error {
		if _, err := q.RetentionDigests(ctx, pgq.RetentionDigestsParams{Keep: keep, Most: most}); err != nil {
			return fmt.Errorf("delete digests: %w", err)
		}
		return q.RetentionDone(ctx)
	})
}

// LongestLookBack returns the longest look-back of any rule, and the rule's name.
func (s *Retention) LongestLookBack(ctx context.Context) (name string, lookBack time.Duration, err error) {
	row, err := s.db.queries.LookBackLongest(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("look for the longest look-back: %w", err)
	}
	return row.Name, time.Duration(row.LookBackSeconds) * time.Second, nil
}
