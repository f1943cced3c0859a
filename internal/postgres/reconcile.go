package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// Reconciliation is the store of the reconciler.
type Reconciliation struct{ db *DB }

// Reconciliation returns the store of the reconciler.
func (db *DB) Reconciliation() *Reconciliation { return &Reconciliation{db} }

// ReconcilableRule names a rule that can be reconciled.
type ReconcilableRule struct {
	TenantID string
	ID       uuid.UUID
	FireMode rules.FireMode
}

// Rules returns enabled rules of all tenants in the order of their ids, at most most of them, after
// a given one; [uuid.Nil] starts at the beginning.
func (s *Reconciliation) Rules(ctx context.Context, after uuid.UUID, most int) ([]ReconcilableRule, error) {
	rows, err := s.db.queries.RulesReconcilable(ctx, pgq.RulesReconcilableParams{After: after, Most: int32(most)})
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	list := make([]ReconcilableRule, len(rows))
	for i, row := range rows {
		list[i] = ReconcilableRule{TenantID: row.TenantID, ID: row.RuleID, FireMode: rules.FireMode(row.FireMode)}
	}
	return list, nil
}

// Reconcilable returns a rule with its former conditions, and its progress with the last comparison
// that was stored.
func (s *Reconciliation) Reconcilable(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, *reconcile.Progress, error) {
	row, err := s.db.queries.RuleReconcilable(ctx, pgq.RuleReconcilableParams{TenantID: tenant, RuleID: id})
	if err != nil {
		return rules.Rule{}, nil, notFound(err, "rule")
	}
	rule, err := ruleOf(row.Rule, row.ArmedSinceNs, nil)
	if err == nil {
		rule.Former, err = erasOf(row.Former)
	}
	if err != nil {
		rule.Unreadable = err.Error()
		return rules.Rule{}, nil, rule.Readable()
	}
	rule.RetentionFloorNS = row.SweptBeforeNs
	p := progress{row.Cursor, row.BackfillFromNs, row.BackfillCursorNs, row.Position, row.Until, row.Failing, row.ArmedSinceNs, row.Rule.LookBackSeconds}
	r, err := p.read()
	if err != nil || r.at == nil {
		return rule, nil, err
	}
	at := *r.at
	if at.StartTimeNS > row.NowNs {
		at = cursor.Position{StartTimeNS: row.NowNs}
	}
	progress := &reconcile.Progress{At: at, BackfillFromNS: r.backfillNS, LookBackFromNS: min(r.lookBackNS, at.StartTimeNS)}
	if row.Comparison != nil {
		if err := json.Unmarshal(row.Comparison, &progress.Earlier); err != nil {
			return rules.Rule{}, nil, fmt.Errorf("decode the last comparison: %w", err)
		}
	}
	return rule, progress, nil
}

// Compared stores what a comparison of a rule leaves for the next ones, and counts the exchanges that
// became visible beyond the look-back. Comparisons that cover the same hour count once what ran for
// longer than that. Nothing is left of a rule that was deleted.
func (s *Reconciliation) Compared(ctx context.Context, r *reconcile.Reconciliation) error {
	left, err := json.Marshal(r.Comparison)
	if err != nil {
		return fmt.Errorf("encode comparison: %w", err)
	}
	hours := pgq.LateDroppedWriteParams{RuleID: r.RuleID}
	for hour, exchanges := range r.LateDroppedByHour {
		hours.HoursNs, hours.Exchanges = append(hours.HoursNs, hour), append(hours.Exchanges, exchanges)
	}
	err = s.db.unattended(ctx, func(q *pgq.Queries) error {
		if len(r.LateDroppedByHour) > 0 || r.LateDroppedNew > 0 {
			if err := q.LateDroppedTotalLock(ctx); err != nil {
				return err
			}
		}
		if len(r.LateDroppedByHour) > 0 {
			if err := q.LateDroppedWrite(ctx, hours); err != nil {
				return err
			}
		}
		if r.LateDroppedNew > 0 {
			if err := q.LateDroppedAdd(ctx, pgq.LateDroppedAddParams{RuleID: r.RuleID, Exchanges: r.LateDroppedNew}); err != nil {
				return err
			}
		}
		if r.Comparison == nil {
			return nil
		}
		return q.RuleComparisonWrite(ctx, pgq.RuleComparisonWriteParams{RuleID: r.RuleID, Comparison: left})
	})
	if err != nil {
		return fmt.Errorf("store comparison: %w", err)
	}
	return nil
}

// WindowRule returns how a window rule was evaluated, and at most most of its alerts that are open,
// held, or were resolved within the time last.
func (s *Reconciliation) WindowRule(ctx context.Context, rule uuid.UUID, last time.Duration, most int) (reconcile.WindowProgress, []reconcile.WindowAlert, error) {
	p, err := s.db.queries.WindowProgress(ctx, rule)
	if err != nil {
		return reconcile.WindowProgress{}, nil, fmt.Errorf("read progress of rule: %w", err)
	}
	progress := reconcile.WindowProgress{
		SinceNS: p.SinceNs, UntilNS: p.UntilNs, EditedNS: p.EditedNs, LateNS: p.LateNs, WatchedSinceNS: p.WatchedSinceNs, JudgedNS: p.JudgedNs,
	}
	// One more hour, because clocks may differ and a window ends before its alert is resolved.
	since := time.Unix(0, p.UntilNs).Add(-last - time.Hour)
	rows, err := s.db.queries.WindowAlerts(ctx, pgq.WindowAlertsParams{RuleID: rule, Since: since, Most: int32(most)}) //nolint:gosec // a constant
	if err != nil {
		return progress, nil, fmt.Errorf("read alerts of rule: %w", err)
	}
	sourceNS := func(t *time.Time) *int64 {
		if t == nil {
			return nil
		}
		return new(t.UnixNano() + p.ClockOffsetNs)
	}
	list := make([]reconcile.WindowAlert, len(rows))
	for i, row := range rows {
		list[i] = reconcile.WindowAlert{
			ID: row.AlertID, State: alerts.State(row.State), FiredNS: *sourceNS(&row.FiredAt), Resolved: sourceNS(row.ResolvedAt),
			ByPerson: row.ResolvedBy != "", Held: row.Held, HeldUntil: sourceNS(row.HeldUntil),
		}
		if err := json.Unmarshal(row.Count, &list[i].Count); err != nil {
			return progress, nil, fmt.Errorf("decode count of alert %s: %w", row.AlertID, err)
		}
		list[i].Count.Group = row.GroupKey
	}
	return progress, list, nil
}

// WithoutAlert returns the keys for which the rule has no alert.
func (s *Reconciliation) WithoutAlert(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	without, err := s.db.queries.KeysWithoutAlert(ctx, pgq.KeysWithoutAlertParams{Keys: keys, RuleID: rule})
	if err != nil {
		return nil, fmt.Errorf("look up alerts: %w", err)
	}
	return without, nil
}

// AlertsEnded counts a rule's alerts on exchanges that ended in a range, and had not run for longer than
// longestNS.
func (s *Reconciliation) AlertsEnded(ctx context.Context, rule uuid.UUID, ended cursor.Range, longestNS int64) (int64, error) {
	count, err := s.db.queries.AlertsEnded(ctx, pgq.AlertsEndedParams{RuleID: rule, FromNs: ended.FromNS, ToNs: ended.ToNS, LongestNs: longestNS})
	if err != nil {
		return 0, fmt.Errorf("count alerts: %w", err)
	}
	return count, nil
}

// ReconcilePass is the result of a pass over rules.
type ReconcilePass struct {
	Rules, Missing int64
	// Took is how long the pass lasted.
	Took time.Duration
	// Next is the rule after which the next pass begins; [uuid.Nil] ends the round.
	Next uuid.UUID
}

// Pass lets one replica make a pass, unless the last pass is younger than every. The lock that
// keeps the others out belongs to a session, so no transaction is open while pass runs. Pass
// reports whether pass was run.
func (s *Reconciliation) Pass(ctx context.Context, every time.Duration, pass func(ctx context.Context, after uuid.UUID) (ReconcilePass, error)) (ran bool, err error) {
	conn, err := s.db.pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()
	q := pgq.New(conn)
	locked, err := q.ReconcileTryLock(ctx)
	if err != nil || !locked {
		return false, err
	}
	defer func() {
		if unlockErr := q.ReconcileUnlock(context.WithoutCancel(ctx)); unlockErr != nil {
			// This ends the session, which releases the lock.
			err = errors.Join(err, unlockErr, conn.Conn().Close(context.WithoutCancel(ctx)))
		}
	}()
	after, err := q.ReconcileDue(ctx, every)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read last pass: %w", err)
	}
	done, err := pass(ctx, after)
	if err != nil {
		return true, err
	}
	if err := q.LateDroppedFold(ctx); err != nil {
		return true, fmt.Errorf("add up late-dropped exchanges: %w", err)
	}
	if err := q.ReconcileDone(ctx, pgq.ReconcileDoneParams{
		Rules: done.Rules, Missing: done.Missing, NextAfter: done.Next, Whole: done.Next == uuid.Nil, Took: done.Took,
	}); err != nil {
		return true, fmt.Errorf("store pass: %w", err)
	}
	return true, nil
}

// Gauges are measured over all tenants.
type Gauges struct {
	// OutboxDepth is exact up to 10,000 and an estimate above.
	OutboxDepth  int64
	OutboxOldest time.Duration
	// OpenBreakers counts the webhooks whose receiver is not responding. WebhooksOff counts those
	// that Tocsin disabled, because their receiver is gone or no longer accepts their messages.
	OpenBreakers, WebhooksOff int64
	// WebhooksLocked counts the webhooks whose secrets are sealed with a key that is not
	// configured.
	WebhooksLocked int64
	// Slowest is how far behind the slowest partition or rule is. Rules that cannot be evaluated do not
	// count: RulesFailing counts them.
	Slowest time.Duration
	// CommitAge is the longest time since the last commit of a partition, over the partitions with
	// rules that can be evaluated.
	CommitAge time.Duration
	// Backfills counts the enabled rules with a backfill of their own.
	Backfills int64
	// LateDropped counts the matching exchanges that became visible beyond the look-back, also of
	// rules that were deleted since. It never falls.
	LateDropped int64
	// Partitions are those of all tenants.
	Partitions []Partition
	// SourceFailing says that the source was announced as failing; RulesFailing counts the failing
	// rules.
	SourceFailing bool
	RulesFailing  int64
	// DeadLetters counts the messages that were refused or exhausted, and were neither sent again
	// nor discarded.
	DeadLetters int64
	// ReplicasAlive and ReplicasDead count replicas; dead ones are forgotten after an hour.
	ReplicasAlive, ReplicasDead int64
	// Missing is what the last round of the reconciliation over all rules found, or the round under
	// way if that is more. ReconciledRules is how many rules the round compared.
	Missing, ReconciledRules int64
	// ReconciledAt is when the last pass was. ReconciledSince is an instant since which every rule
	// was compared. Both are in seconds since the Unix epoch, and 0 before the first.
	ReconciledAt, ReconciledSince float64
	// RetentionAt is when a pass of retention last ended, in the same unit.
	RetentionAt float64
}

// Gauges measures. A replica counts as dead after a silence of deadAfter.
func (s *Reconciliation) Gauges(ctx context.Context, deadAfter time.Duration) (Gauges, error) {
	row, err := s.db.queries.Gauges(ctx, deadAfter)
	if err != nil {
		return Gauges{}, fmt.Errorf("measure: %w", err)
	}
	waiting, err := s.db.waitingInAll(ctx)
	if err != nil {
		return Gauges{}, err
	}
	partitions, err := s.db.Partitions().List(ctx)
	if err != nil {
		return Gauges{}, err
	}
	keys, err := s.db.Keys(ctx)
	if err != nil {
		return Gauges{}, err
	}
	g := Gauges{
		OutboxDepth:  waiting.depth,
		OpenBreakers: row.OpenBreakers, WebhooksOff: row.WebhooksOff,
		Missing: row.Missing, ReconciledRules: row.ReconciledRules, ReconciledAt: row.ReconciledAt, ReconciledSince: row.ReconciledSince,
		RetentionAt: row.RetentionAt, Backfills: row.Backfills, LateDropped: row.LateDropped, Partitions: partitions,
		SourceFailing: row.SourceFailing, RulesFailing: row.RulesFailing, DeadLetters: row.DeadLetters,
		ReplicasAlive: row.ReplicasAlive, ReplicasDead: row.ReplicasDead, CommitAge: time.Duration(row.CommitAge * float64(time.Second)),
	}
	if waiting.oldest != nil {
		g.OutboxOldest = *waiting.oldest
	}
	for _, key := range keys {
		if !key.Configured {
			g.WebhooksLocked += key.Secrets
		}
	}
	for i := range partitions {
		if partitions[i].Rules == 0 {
			continue // its cursor does not move until a replica holds it
		}
		g.Slowest = max(g.Slowest, partitions[i].Lag)
	}
	// If a position cannot be read, the rule's problem says so.
	if at, err := cursor.Decode(row.Slowest); err == nil {
		g.Slowest = max(g.Slowest, lagOf(at, row.NowNs))
	}
	return g, nil
}
