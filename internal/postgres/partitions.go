package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// Partitions stores which partition each tenant is assigned to.
//
// A move is one transaction. It waits for commits and changes of rules under way, and later ones
// wait for it. It raises the revision of each partition that receives tenants. So a commit made
// from the earlier state is refused, and the replica that evaluates the partition evaluates the whole
// look-back again. What the giving partition still had to evaluate before that is added to the
// backfill mark of the receiving one. So nothing is left out, and what is evaluated twice already has
// its alert. The receiving partition also continues the watch over the source (see package watch), so
// that absences of that time raise alerts, and exchanges that are as late as before do not seem to be
// absent.
type Partitions struct{ db *DB }

// Partitions returns the store of partitions.
func (db *DB) Partitions() *Partitions { return &Partitions{db} }

// MaxPartitions is the largest number of partitions that share the tenants.
const MaxPartitions = 1024

// Partition is a partition as operators see it.
type Partition struct {
	Number int
	// Index and Of are the partition's share of the tenants: share Index of Of. Of is 0 if the
	// partition belongs to one tenant.
	Index, Of int
	// Tenant is the first of its tenants by name; empty if there is none.
	Tenant         string
	Tenants, Rules int64
	// Cursor is nil before the first pass, and if it cannot be read; then CursorErr says why.
	Cursor    *cursor.Position
	CursorErr error
	// Lag is how far the cursor is behind the present, by Postgres's clock.
	Lag      time.Duration
	Backfill *backlog.Mark
	// Owner is the replica that holds the partition; empty if none does.
	Owner       string
	CommittedAt *time.Time
}

// List returns every partition, those with shares first.
func (s *Partitions) List(ctx context.Context) ([]Partition, error) {
	rows, err := s.db.queries.PartitionList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	list := make([]Partition, len(rows))
	for i := range rows {
		row, c := &rows[i], &rows[i].Checkpoint
		list[i] = Partition{
			Number: int(c.Partition), Index: int(c.ShareIndex), Of: int(c.ShareOf), Tenant: row.Tenant, Tenants: row.Tenants, Rules: row.Rules,
			Backfill: markOf(c.BackfillFromNs, c.BackfillCursorNs), CommittedAt: c.CommittedAt,
		}
		if row.Leased {
			list[i].Owner = *c.Owner
		}
		list[i].Cursor, list[i].CursorErr = positionOf(c.Cursor)
		if at := list[i].Cursor; at != nil {
			list[i].Lag = lagOf(*at, row.NowNs)
		}
	}
	return list, nil
}

// TenantProgress is how far the rules of a tenant are evaluated, as operators see it.
type TenantProgress struct {
	Tenant    string
	Partition int
	// Rules counts the enabled rules, Backfilling those of them with separate progress: new,
	// failing or deferred.
	Rules, Backfilling int64
	// Lag is how far the partition, or the rule that is furthest behind on its own, is behind the
	// present, by Postgres's clock; nil before the first pass, and if the cursor cannot be read.
	Lag *time.Duration
	// Owner is the replica that holds the partition; empty if none does.
	Owner string
}

// Tenants returns the progress of every tenant, furthest behind first. Those without enabled rules
// come last.
func (s *Partitions) Tenants(ctx context.Context) ([]TenantProgress, error) {
	rows, err := s.db.queries.TenantList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	list := make([]TenantProgress, len(rows))
	for i := range rows {
		row := &rows[i]
		t := TenantProgress{Tenant: row.TenantID, Partition: int(row.Checkpoint.Partition), Rules: row.Rules, Backfilling: row.Backfills}
		if row.Leased {
			t.Owner = *row.Checkpoint.Owner
		}
		if row.Rules > 0 {
			t.Lag = lagOfRules(row.Checkpoint.Cursor, row.Slowest, row.NowNs)
		}
		list[i] = t
	}
	slices.SortStableFunc(list, func(a, b TenantProgress) int {
		return cmp.Or(cmp.Compare(min(b.Rules, 1), min(a.Rules, 1)), cmp.Compare(behind(b.Lag), behind(a.Lag)))
	})
	return list, nil
}

// TeamProgress is how far the enabled rules with the same owner are evaluated, as operators see it.
type TeamProgress struct {
	// Team is the owner of the rules; empty for rules without one.
	Tenant, Team string
	// Rules counts the rules, Backfilling those of them with separate progress: new, failing or
	// deferred.
	Rules, Backfilling int64
	// Lag is as in [TenantProgress], of these rules.
	Lag *time.Duration
}

// Teams returns the progress of the enabled rules by owner, furthest behind first.
func (s *Partitions) Teams(ctx context.Context) ([]TeamProgress, error) {
	rows, err := s.db.queries.TeamList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list teams: %w", err)
	}
	list := make([]TeamProgress, len(rows))
	for i := range rows {
		row := &rows[i]
		list[i] = TeamProgress{
			Tenant: row.TenantID, Team: row.Team, Rules: row.Rules, Backfilling: row.Backfills,
			Lag: lagOfRules(row.Checkpoint.Cursor, row.Slowest, row.NowNs),
		}
	}
	slices.SortStableFunc(list, func(a, b TeamProgress) int { return cmp.Compare(behind(b.Lag), behind(a.Lag)) })
	return list, nil
}

// lagOfRules returns how far rules are behind: as far as their partition, or as the one with the
// earliest position of its own. It is nil if the partition has no cursor that can be read.
func lagOfRules(stored *string, slowest string, nowNS int64) *time.Duration {
	at, err := positionOf(stored)
	if err != nil || at == nil {
		return nil
	}
	lag := lagOf(*at, nowNS)
	// If a position cannot be read, the rule's problem says so.
	if at, err := cursor.Decode(slowest); err == nil {
		lag = max(lag, lagOf(at, nowNS))
	}
	return &lag
}

// behind orders lags. An unknown one is the longest.
func behind(lag *time.Duration) time.Duration {
	if lag == nil {
		return math.MaxInt64
	}
	return *lag
}

// Isolate gives a tenant its own partition, which continues from the position of the present one,
// and returns its number.
func (s *Partitions) Isolate(ctx context.Context, tenant string) (number int, err error) {
	err = s.move(ctx, func(m *move) error {
		from, err := m.of(ctx, tenant)
		if err != nil {
			return err
		}
		if from != nil && from.ShareOf == 0 {
			return fault.New(fault.Conflict, "the tenant %s already has the separate partition %d; there is nothing to do", tenant, from.Partition)
		}
		to, err := m.q.PartitionInsert(ctx, pgq.PartitionInsertParams{})
		if err != nil {
			return fmt.Errorf("create partition: %w", err)
		}
		if from != nil {
			to.Cursor, to.BackfillFromNs, to.BackfillCursorNs, to.ClockOffsetNs = from.Cursor, from.BackfillFromNs, from.BackfillCursorNs, from.ClockOffsetNs
			from.WatchedShown = 0
			m.watch([]string{tenant}, from, &to)
		}
		number = int(to.Partition)
		return m.assign(ctx, []string{tenant}, from, &to)
	})
	if err != nil {
		return 0, fmt.Errorf("isolate tenant: %w", err)
	}
	return number, nil
}

// Join removes a tenant's own partition, and returns the number of the partition that evaluates the
// tenant from then on.
func (s *Partitions) Join(ctx context.Context, tenant string) (number int, err error) {
	err = s.move(ctx, func(m *move) error {
		from, err := m.of(ctx, tenant)
		if err != nil {
			return err
		}
		if from == nil || from.ShareOf != 0 {
			return fault.New(fault.Conflict, "the tenant %s has no separate partition; tocsin partitions list shows those that have one", tenant)
		}
		to := m.shareOf(tenant)
		if to == nil {
			return errNoPartitions
		}
		number = int(to.Partition)
		if err := m.receive(ctx, []string{tenant}, from, to); err != nil {
			return err
		}
		if err := m.assign(ctx, []string{tenant}, nil, to); err != nil {
			return err
		}
		return m.q.PartitionDelete(ctx, []int32{from.Partition})
	})
	if err != nil {
		return 0, fmt.Errorf("join tenant: %w", err)
	}
	return number, nil
}

// Count sets the number of partitions that share the tenants without their own partition. Each
// continues from the least cursor of the partitions that its tenants come from.
func (s *Partitions) Count(ctx context.Context, n int) error {
	if n < 1 || n > MaxPartitions {
		return fault.New(fault.Invalid, "the number of partitions must be from 1 to %d", MaxPartitions)
	}
	err := s.move(ctx, func(m *move) error {
		var former []int32
		giver := map[int32]*pgq.Checkpoint{}
		for i := range m.checkpoints {
			if c := &m.checkpoints[i]; c.ShareOf > 0 {
				former = append(former, c.Partition)
				c.WatchedShown = 0
				giver[c.Partition] = c
			}
		}
		if len(former) == n {
			return fault.New(fault.Conflict, "there are already %d partitions; choose another number", n)
		}
		assigned, err := m.q.TenantPartitions(ctx)
		if err != nil {
			return fmt.Errorf("read tenants: %w", err)
		}
		// The existing partitions give up their shares first, because each share is unique.
		if err := m.q.PartitionsRetire(ctx, former); err != nil {
			return fmt.Errorf("retire partitions: %w", err)
		}
		shares := make([]pgq.Checkpoint, n)
		for i := range shares {
			if shares[i], err = m.q.PartitionInsert(ctx, pgq.PartitionInsertParams{ShareIndex: int32(i), ShareOf: int32(n)}); err != nil {
				return fmt.Errorf("create partition: %w", err)
			}
		}
		tenants := make([]map[int32][]string, n)
		for _, t := range assigned {
			if giver[t.Partition] == nil {
				continue
			}
			share := int(xxhash.Sum64String(t.TenantID) % uint64(n))
			if tenants[share] == nil {
				tenants[share] = map[int32][]string{}
			}
			tenants[share][t.Partition] = append(tenants[share][t.Partition], t.TenantID)
		}
		for i := range shares {
			if err := m.gather(ctx, tenants[i], giver, &shares[i]); err != nil {
				return err
			}
		}
		return m.q.PartitionDelete(ctx, former)
	})
	if err != nil {
		return fmt.Errorf("change the number of partitions: %w", err)
	}
	return nil
}
