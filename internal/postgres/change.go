package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// ruleChange is a change of the rules of one tenant. From its beginning to the end of its
// transaction, their partition commits nothing and no other change of its rules is made: both lock
// the checkpoint before anything else.
type ruleChange struct {
	pgq.PartitionChangeRow
}

// beginChange locks the partition of a tenant. A tenant is assigned to a partition on first use.
func beginChange(ctx context.Context, q *pgq.Queries, tenant string) (ruleChange, error) {
	if err := q.PartitionsShare(ctx); err != nil {
		return ruleChange{}, fmt.Errorf("keep partitions: %w", err)
	}
	hash := strconv.FormatUint(xxhash.Sum64String(tenant), 10)
	if err := q.TenantAssign(ctx, pgq.TenantAssignParams{TenantID: tenant, Hash: hash}); err != nil {
		return ruleChange{}, fmt.Errorf("assign tenant: %w", err)
	}
	row, err := q.PartitionChange(ctx, tenant)
	if err != nil {
		return ruleChange{}, fmt.Errorf("change rules of partition: %w", err)
	}
	return ruleChange{row}, nil
}

// of makes the replica that evaluates the partition read a rule again.
func (c ruleChange) of(ctx context.Context, q *pgq.Queries, rule uuid.UUID) error {
	err := q.RuleChanged(ctx, pgq.RuleChangedParams{Partition: c.Partition, RuleID: rule, Changed: c.RulesRevision})
	if err != nil {
		return fmt.Errorf("record change of rule: %w", err)
	}
	return nil
}

// arm makes a rule start again, because it was created, enabled, disabled, or given another fire
// mode. An enabled PER_EXCHANGE rule gets a backfill until it reaches the position of its
// partition, because exchanges that it alerts on may have begun before the cursor.
func (c ruleChange) arm(ctx context.Context, q *pgq.Queries, rule uuid.UUID, d *rules.Definition) error {
	if err := q.BackfillDelete(ctx, []uuid.UUID{rule}); err != nil {
		return fmt.Errorf("delete backfill: %w", err)
	}
	if !d.Enabled {
		return q.RuleClearProblem(ctx, rule)
	}
	if err := q.RuleArm(ctx, pgq.RuleArmParams{ArmedSinceNs: c.NowNs, RuleID: rule}); err != nil {
		return fmt.Errorf("arm rule: %w", err)
	}
	if d.FireMode != rules.PerExchange {
		return nil
	}
	err := q.BackfillWrite(ctx, pgq.BackfillWriteParams{
		RuleIds: []uuid.UUID{rule}, Positions: []string{backfillFrom(c.NowNs, d.LookBackSeconds)},
		Untils: []string{""}, Failing: []bool{false},
	})
	if err != nil {
		return fmt.Errorf("write backfill: %w", err)
	}
	return nil
}

// backfillFrom returns the start position of a backfill for a rule that has evaluated nothing: its
// look-back before an instant.
func backfillFrom(atNS int64, lookBackSeconds int) string {
	return cursor.Position{StartTimeNS: max(atNS-reachNS(int32(lookBackSeconds)), cursor.MinStartTimeNS)}.String()
}

// lengthen starts a backfill for a rule with a longer look-back. The partition has already passed
// part of that range without evaluating the rule there.
func (c ruleChange) lengthen(ctx context.Context, q *pgq.Queries, edit api.RuleEdit, was pgq.RuleLockRow) error {
	d := &edit.Definition
	if !d.Enabled || d.FireMode != rules.PerExchange || d.LookBackSeconds <= int(was.LookBackSeconds) {
		return nil
	}
	if c.Cursor == nil {
		return lengthenUnread(ctx, q, edit, was)
	}
	baseNS := c.NowNs
	if at, err := positionOf(c.Cursor); err == nil {
		baseNS = min(baseNS, at.StartTimeNS)
	}
	if c.BackfillCursorNs != nil {
		baseNS = min(baseNS, *c.BackfillCursorNs)
	}
	from := backfillFrom(baseNS, d.LookBackSeconds)
	if was.Position != nil {
		own, unreadable := positionOf(was.Position)
		if unreadable != nil {
			return nil //nolint:nilerr // the rule fails by it until somebody enables it again
		}
		if fromNS := baseNS - reachNS(int32(d.LookBackSeconds)); own.StartTimeNS < fromNS {
			from = *was.Position
		}
	}
	if err := q.BackfillBegin(ctx, pgq.BackfillBeginParams{RuleID: edit.ID, Position: from}); err != nil {
		return fmt.Errorf("write backfill: %w", err)
	}
	return nil
}

// lengthenUnread has the backfill of a rule begin earlier, by as much as the look-back became longer. The
// partition has not committed anything since the rule was armed, so the backfill still begins at the former
// look-back before that.
func lengthenUnread(ctx context.Context, q *pgq.Queries, edit api.RuleEdit, was pgq.RuleLockRow) error {
	own, err := positionOf(was.Position)
	if err != nil || own == nil {
		return nil //nolint:nilerr // the rule fails by it until somebody enables it again
	}
	more := reachNS(int32(edit.Definition.LookBackSeconds)) - reachNS(was.LookBackSeconds)
	from := cursor.Position{StartTimeNS: max(own.StartTimeNS-more, cursor.MinStartTimeNS)}.String()
	if err := q.BackfillBegin(ctx, pgq.BackfillBeginParams{RuleID: edit.ID, Position: from}); err != nil {
		return fmt.Errorf("write backfill: %w", err)
	}
	return nil
}

// reachedNS returns the start time before which a rule evaluates nothing any more, except in its
// look-back. It is nil if that is unknown.
func (c ruleChange) reachedNS(position *string) *int64 {
	if c.Cursor == nil && position == nil {
		return nil
	}
	reached := cursor.MaxStartTimeNS
	for _, text := range []*string{c.Cursor, position} {
		if at, err := positionOf(text); err == nil && at != nil {
			reached = min(reached, at.StartTimeNS)
		}
	}
	if c.BackfillFromNs != nil {
		reached = min(reached, *c.BackfillFromNs)
	}
	return &reached
}

// reachNS is how far behind a cursor a rule evaluates, in nanoseconds.
func reachNS(lookBackSeconds int32) int64 {
	lookBack := int64(lookBackSeconds) * int64(time.Second)
	return lookBack + backlog.WaitNS(lookBack)
}
