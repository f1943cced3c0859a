package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"

	"tocsin/evaluator/backlog"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// move is a transaction that moves tenants.
type move struct {
	q           *pgq.Queries
	checkpoints []pgq.Checkpoint
	// absent are the tenants with rules on absence, watched the partitions with such tenants.
	absent  map[string]bool
	watched map[int32]bool
}

// move runs f while no rule and no other partition can change.
func (s *Partitions) move(ctx context.Context, f func(m *move) error) error {
	return s.db.inTx(ctx, func(q *pgq.Queries) error {
		if err := q.PartitionsHold(ctx); err != nil {
			return fmt.Errorf("hold partitions: %w", err)
		}
		checkpoints, err := q.CheckpointsHold(ctx)
		if err != nil {
			return fmt.Errorf("hold checkpoints: %w", err)
		}
		tenants, err := q.TenantsWithAbsence(ctx)
		if err != nil {
			return fmt.Errorf("read tenants with rules on absence: %w", err)
		}
		m := &move{q: q, checkpoints: checkpoints, absent: map[string]bool{}, watched: map[int32]bool{}}
		for _, t := range tenants {
			m.absent[t.TenantID], m.watched[t.Partition] = true, true
		}
		return f(m)
	})
}

// of returns the partition of a tenant, or nil if it has none yet.
func (m *move) of(ctx context.Context, tenant string) (*pgq.Checkpoint, error) {
	number, err := m.q.TenantPartition(ctx, tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		known, err := m.q.TenantKnown(ctx, tenant)
		if err == nil && !known {
			err = fault.New(fault.NotFound, "no such tenant: %s has no rules; tocsin partitions tenants lists those that have", tenant)
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("look up tenant: %w", err)
	}
	for i := range m.checkpoints {
		if m.checkpoints[i].Partition == number {
			return &m.checkpoints[i], nil
		}
	}
	return nil, fmt.Errorf("partition %d of tenant %s does not exist", number, tenant)
}

// shareOf returns the partition whose share holds a tenant.
func (m *move) shareOf(tenant string) *pgq.Checkpoint {
	hash := xxhash.Sum64String(tenant)
	for i := range m.checkpoints {
		if c := &m.checkpoints[i]; c.ShareOf > 0 && hash%uint64(c.ShareOf) == uint64(c.ShareIndex) {
			return c
		}
	}
	return nil
}

const remedyCursor = "correct it in the table checkpoint; with null, evaluation continues from the present, and earlier exchanges are not evaluated"

// receive makes a partition evaluate what its new tenants still have to be evaluated for. If the
// partition has a cursor, it keeps it. If the cursor of the giving partition is further behind, the
// range between both, with the look-back, is added to the mark.
func (m *move) receive(ctx context.Context, tenants []string, from, to *pgq.Checkpoint) error {
	given, err := positionOf(from.Cursor)
	if err != nil {
		return fmt.Errorf("the stored cursor of partition %d cannot be read: %w; "+remedyCursor, from.Partition, err)
	}
	own, err := positionOf(to.Cursor)
	if err != nil {
		return fmt.Errorf("the stored cursor of partition %d cannot be read: %w; "+remedyCursor, to.Partition, err)
	}
	mark := least(markOf(to.BackfillFromNs, to.BackfillCursorNs), markOf(from.BackfillFromNs, from.BackfillCursorNs))
	switch {
	case own == nil:
		to.Cursor = from.Cursor
	case given != nil && own.After(*given):
		seconds, err := m.q.LookBackOfTenants(ctx, tenants)
		if err != nil {
			return fmt.Errorf("read look-back: %w", err)
		}
		mark = least(mark, &backlog.Mark{FromNS: given.StartTimeNS - reachNS(seconds), CursorNS: given.StartTimeNS})
	}
	if mark != nil {
		to.BackfillFromNs, to.BackfillCursorNs = &mark.FromNS, &mark.CursorNS
	}
	if to.ClockOffsetNs == 0 {
		to.ClockOffsetNs = from.ClockOffsetNs
	}
	m.watch(tenants, from, to)
	return nil
}

// watch makes a partition continue the watch over the source for its new tenants. The checkpoint of a partition without rules
// on absence may hold a watch of long ago, which says nothing. Of two others, only what both have watched counts, and windows
// end no earlier than they did in either: otherwise alerts would end and be raised again.
//
// How many exchanges were shown is known of all tenants of a partition together. So a caller that moves some of them sets that
// to 0 before, or the next holder would find every server to be behind.
func (m *move) watch(tenants []string, from, to *pgq.Checkpoint) {
	to.LateNs = max(to.LateNs, from.LateNs)
	if !slices.ContainsFunc(tenants, func(tenant string) bool { return m.absent[tenant] }) {
		return
	}
	if !m.watched[to.Partition] {
		m.watched[to.Partition] = true
		to.WatchedSinceNs, to.WatchedUntilNs, to.WatchedShown, to.AbsenceJudgedNs = from.WatchedSinceNs, from.WatchedUntilNs, from.WatchedShown, from.AbsenceJudgedNs
		return
	}
	switch {
	case from.WatchedUntilNs < to.WatchedUntilNs:
		to.WatchedUntilNs, to.WatchedShown = from.WatchedUntilNs, from.WatchedShown
	case from.WatchedUntilNs == to.WatchedUntilNs:
		to.WatchedShown = max(to.WatchedShown, from.WatchedShown)
	}
	to.WatchedSinceNs, to.AbsenceJudgedNs = max(to.WatchedSinceNs, from.WatchedSinceNs), max(to.AbsenceJudgedNs, from.AbsenceJudgedNs)
}

// least returns the mark that covers both marks.
func least(a, b *backlog.Mark) *backlog.Mark {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &backlog.Mark{FromNS: min(a.FromNS, b.FromNS), CursorNS: min(a.CursorNS, b.CursorNS)}
}

// gather gives a new partition its tenants, grouped by the partitions that they come from.
func (m *move) gather(ctx context.Context, tenants map[int32][]string, giver map[int32]*pgq.Checkpoint, to *pgq.Checkpoint) error {
	var all []string
	givers := slices.Sorted(maps.Keys(tenants))
	// The partition that is furthest behind comes first: the new partition starts at its cursor.
	slices.SortStableFunc(givers, func(a, b int32) int { return compareCursors(giver[a].Cursor, giver[b].Cursor) })
	for _, number := range givers {
		if err := m.receive(ctx, tenants[number], giver[number], to); err != nil {
			return err
		}
		all = append(all, tenants[number]...)
	}
	if len(all) == 0 {
		return nil
	}
	return m.assign(ctx, all, nil, to)
}

// compareCursors orders stored cursors; none comes last.
func compareCursors(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

// assign assigns tenants to a partition. The replicas that evaluate this partition, and the one
// that the tenants leave if it remains, read the rules again.
func (m *move) assign(ctx context.Context, tenants []string, from, to *pgq.Checkpoint) error {
	numbers := make([]int32, len(tenants))
	for i := range numbers {
		numbers[i] = to.Partition
	}
	if err := m.q.TenantMove(ctx, pgq.TenantMoveParams{TenantIds: tenants, Partitions: numbers}); err != nil {
		return fmt.Errorf("assign tenants: %w", err)
	}
	for _, c := range []*pgq.Checkpoint{from, to} {
		if c == nil {
			continue
		}
		_, err := m.q.PartitionSet(ctx, pgq.PartitionSetParams{
			Partition: c.Partition, Cursor: c.Cursor, BackfillFromNs: c.BackfillFromNs, BackfillCursorNs: c.BackfillCursorNs, ClockOffsetNs: c.ClockOffsetNs, LateNs: c.LateNs,
			WatchedSinceNs: c.WatchedSinceNs, WatchedUntilNs: c.WatchedUntilNs, WatchedShown: c.WatchedShown, AbsenceJudgedNs: c.AbsenceJudgedNs,
		})
		if err != nil {
			return fmt.Errorf("change partition: %w", err)
		}
		if err := m.q.RulesMoved(ctx, pgq.RulesMovedParams{TenantIds: tenants, Partition: c.Partition}); err != nil {
			return fmt.Errorf("record moved rules: %w", err)
		}
	}
	return nil
}
