package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/watch"
	"tocsin/internal/postgres/pgq"
)

// Hold renews leases, releases partitions above the fair share of the replica, and takes free ones
// below it. If there is nothing to renew, release or take, it is one statement.
func (s *Evaluation) Hold(ctx context.Context, request evaluator.HoldRequest) (evaluator.Holding, error) {
	rows, err := s.db.leaseQueries.CheckpointsFor(ctx, pgq.CheckpointsForParams{Replica: request.Replica, LeaseFor: request.LeaseFor, NoteAfter: request.LeaseFor / 3, DeadAfter: s.deadAfter})
	if err != nil {
		return evaluator.Holding{}, fmt.Errorf("read checkpoints: %w", err)
	}
	if len(rows) == 0 {
		return evaluator.Holding{}, errNoPartitions
	}
	plan := planLeases(rows, request)
	held := make(map[int32]pgq.Checkpoint)
	for i := range rows {
		if rows[i].Held {
			held[rows[i].Checkpoint.Partition] = rows[i].Checkpoint
		}
	}
	if err := s.lease(ctx, request, plan, held); err != nil {
		return evaluator.Holding{}, err
	}
	holding := evaluator.Holding{Now: rows[0].Now}
	for _, number := range rows[0].SourceFailed {
		holding.SourceFailed = append(holding.SourceFailed, int(number))
	}
	if len(held) < plan.share {
		for _, number := range plan.free {
			if _, taken := held[number]; !taken {
				holding.Locked = append(holding.Locked, int(number))
			}
		}
	}
	for _, row := range held {
		holding.Checkpoints = append(holding.Checkpoints, checkpointOf(row))
	}
	slices.SortFunc(holding.Checkpoints, func(a, b evaluator.Checkpoint) int { return a.Partition - b.Partition })
	return holding, nil
}

var errNoPartitions = fmt.Errorf("there are no partitions; run `tocsin partitions count 8`")

// leasePlan lists the partitions to renew and to release, and the free ones, of which a replica takes as many as its
// share has room for.
type leasePlan struct {
	renew, release, free []int32
	share                int
}

// planLeases decides from what a replica sees. The fair share is the number of partitions divided
// by the number of replicas that ask for partitions. Heartbeats do not count: a replica whose
// evaluation is paused loses its share with its leases. If there is a remainder, the first replicas
// by id get one more. Replicas that see each other never take a partition from one another: they
// wait until it is released.
func planLeases(rows []pgq.CheckpointsForRow, request evaluator.HoldRequest) leasePlan {
	known := &rows[0]
	replicas := known.Others + 1
	plan := leasePlan{share: int(known.Partitions / replicas)}
	if known.Before < known.Partitions%replicas {
		plan.share++
	}
	held := 0
	for i := range rows {
		if rows[i].Held {
			held++
		}
	}
	surplus := held - plan.share
	for i := range slices.Backward(rows) {
		row := &rows[i]
		number := row.Checkpoint.Partition
		switch {
		case row.Held && surplus > 0 && !slices.Contains(request.Busy, int(number)):
			plan.release = append(plan.release, number)
			surplus--
		case row.Held && row.LeaseLeftSeconds < request.LeaseFor.Seconds()*2/3:
			plan.renew = append(plan.renew, number)
		}
	}
	for i := range rows {
		if rows[i].Free {
			plan.free = append(plan.free, rows[i].Checkpoint.Partition)
		}
	}
	return plan
}

// lease carries out a plan and updates held.
func (s *Evaluation) lease(ctx context.Context, request evaluator.HoldRequest, plan leasePlan, held map[int32]pgq.Checkpoint) error {
	if len(plan.release) > 0 {
		if err := s.db.leaseQueries.CheckpointRelease(ctx, pgq.CheckpointReleaseParams{Partitions: plan.release, Replica: request.Replica}); err != nil {
			return fmt.Errorf("release partitions: %w", err)
		}
		for _, number := range plan.release {
			delete(held, number)
		}
	}
	if len(plan.renew) > 0 {
		kept, err := s.db.leaseQueries.CheckpointRenew(ctx, pgq.CheckpointRenewParams{
			LeaseFor: request.LeaseFor, Partitions: plan.renew, Replica: request.Replica,
		})
		if err != nil {
			return fmt.Errorf("renew leases: %w", err)
		}
		for _, number := range plan.renew {
			if !slices.Contains(kept, number) {
				delete(held, number)
			}
		}
	}
	if most := plan.share - len(held); most > 0 && len(plan.free) > 0 {
		p := pgq.CheckpointTakeParams{Replica: request.Replica, LeaseFor: request.LeaseFor, Partitions: plan.free, DeadAfter: s.deadAfter, Most: int32(most)}
		for range plan.free {
			p.Tokens = append(p.Tokens, newToken())
		}
		taken, err := s.db.leaseQueries.CheckpointTake(ctx, p)
		if err != nil {
			return fmt.Errorf("take partitions: %w", err)
		}
		for _, row := range taken {
			held[row.Checkpoint.Partition] = row.Checkpoint
		}
	}
	return nil
}

// newToken returns a random positive number. Tokens are not counted up: after a failover that loses
// a lease, a counter could issue the same token again.
func newToken() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.BigEndian.Uint64(b[:]) & math.MaxInt64)
}

// Release releases the partitions that a replica holds.
func (s *Evaluation) Release(ctx context.Context, replica string, partitions []int) error {
	p := pgq.CheckpointReleaseParams{Ends: true, Replica: replica}
	for _, number := range partitions {
		p.Partitions = append(p.Partitions, int32(number))
	}
	if err := s.db.leaseQueries.CheckpointRelease(ctx, p); err != nil {
		return fmt.Errorf("release partitions: %w", err)
	}
	return nil
}

func checkpointOf(row pgq.Checkpoint) evaluator.Checkpoint {
	c := evaluator.Checkpoint{
		Partition: int(row.Partition), Index: uint32(row.ShareIndex), Of: uint32(row.ShareOf),
		Revision: row.Revision, RulesRevision: row.RulesRevision, Backfill: markOf(row.BackfillFromNs, row.BackfillCursorNs),
		Watch:       watch.State{SinceNS: row.WatchedSinceNs, UntilNS: row.WatchedUntilNs, LateNS: row.LateNs, JudgedNS: row.AbsenceJudgedNs, Shown: row.WatchedShown},
		ClockOffset: time.Duration(row.ClockOffsetNs),
	}
	if row.Token != nil {
		c.Token = *row.Token
	}
	c.Cursor, c.Err = positionOf(row.Cursor)
	if c.Err != nil {
		c.Err = fmt.Errorf("the stored cursor cannot be read: %w; correct it in the table checkpoint; with null, evaluation continues from the present, and earlier exchanges are not evaluated", c.Err)
	}
	return c
}

// positionOf reads a stored position; nil if there is none.
func positionOf(text *string) (*cursor.Position, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	at, err := cursor.Decode(*text)
	if err != nil {
		return nil, err
	}
	return &at, nil
}

// textOf returns a position in stored form.
func textOf(at *cursor.Position) *string {
	if at == nil {
		return nil
	}
	return new(at.String())
}

func markOf(fromNS, cursorNS *int64) *backlog.Mark {
	if fromNS == nil || cursorNS == nil {
		return nil
	}
	return &backlog.Mark{FromNS: *fromNS, CursorNS: *cursorNS}
}
