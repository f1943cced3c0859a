package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// progress is the stored progress of a rule: that of its partition, and that of its own backfill.
type progress struct {
	// cursor and the mark are those of the partition; nil if there are none.
	cursor       *string
	fromNS, atNS *int64
	// position and until are those of the rule's own backfill. position is nil if there is no
	// backfill; until is nil while the partition does not evaluate the rule.
	position, until *string
	failing         bool
	// armedSinceNS is when the rule was armed; it may be 0 if position is nil.
	armedSinceNS    int64
	lookBackSeconds int32
}

// reached is how far a rule has come.
type reached struct {
	// at is the position up to which the rule has evaluated; nil before the first pass.
	at *cursor.Position
	// backfillNS is the start time of the earliest exchange behind at that is still to be evaluated;
	// nil if there is none.
	backfillNS *int64
	// lookBackNS is the start time from which the look-back is counted: that of at, or an earlier one.
	lookBackNS int64
}

// read decodes the progress. Its error says what cannot be read.
func (p progress) read() (reached, error) {
	var r reached
	own, err := positionOf(p.position)
	if err != nil {
		return r, fmt.Errorf("the stored position cannot be read: %w; disable and enable the rule", err)
	}
	if own != nil && (p.until == nil || p.failing) {
		return reached{at: own, lookBackNS: own.StartTimeNS}, nil
	}
	if r.at, err = positionOf(p.cursor); err != nil {
		return r, fmt.Errorf("the stored cursor cannot be read: %w; correct it in the table checkpoint", err)
	}
	if r.at != nil {
		r.at.ExecutionID = "" // the partition's cursor may name an exchange of another tenant
		r.lookBackNS = r.at.StartTimeNS
	}
	if mark := markOf(p.fromNS, p.atNS); mark != nil {
		r.lookBackNS = min(r.lookBackNS, mark.CursorNS)
		r.backfillNS = new(max(mark.FromNS, mark.CursorNS-reachNS(p.lookBackSeconds)))
	}
	if own != nil && (r.backfillNS == nil || own.StartTimeNS < *r.backfillNS) {
		r.backfillNS = &own.StartTimeNS
	}
	if own != nil {
		r.lookBackNS = min(r.lookBackNS, own.StartTimeNS)
	}
	return r, nil
}

// shown is how far a rule has come as people see it. A rule that is new, or enabled again, is not
// behind by its look-back: that is what it reads first, from the instant at which it was armed. What
// its backfill has left after that instant it is behind, as when its tenant was deferred.
func (p progress) shown() (reached, error) {
	r, err := p.read()
	if err != nil || p.position == nil || p.failing {
		return r, err
	}
	if p.until == nil {
		r.backfillNS = new(r.at.StartTimeNS)
		r.at.StartTimeNS += reachNS(p.lookBackSeconds)
		return r, nil
	}
	if own, _ := positionOf(p.position); r.at != nil && own.StartTimeNS >= p.armedSinceNS && r.at.After(*own) {
		r.at = own
	}
	return r, nil
}

// Health returns the state of the evaluation of rules.
func (s *Rules) Health(ctx context.Context, tenant string, ids []uuid.UUID) (map[uuid.UUID]api.EvaluationHealth, error) {
	rows, err := s.db.queries.RuleHealth(ctx, pgq.RuleHealthParams{TenantID: tenant, RuleIds: ids})
	if err != nil {
		return nil, fmt.Errorf("read rule health: %w", err)
	}
	health := make(map[uuid.UUID]api.EvaluationHealth, len(rows))
	for i := range rows {
		health[rows[i].RuleID] = healthOf(&rows[i])
	}
	return health, nil
}

func healthOf(row *pgq.RuleHealthRow) api.EvaluationHealth {
	h := api.EvaluationHealth{
		LastErrorAt: row.ProblemAt, LateLastHour: row.LateLastHour, LateDropped: row.LateDropped,
		Failing: row.Announced || row.Failing, LastRunAt: row.LastRunAt,
	}
	if row.Problem != nil {
		h.LastError = *row.Problem
	}
	if row.Partition != nil {
		h.Partition = new(int(*row.Partition))
	}
	if rules.FireMode(row.FireMode) == rules.PerExchange {
		h.LastRunAt = row.CommittedAt
		p := progress{row.Cursor, row.BackfillFromNs, row.BackfillCursorNs, row.Position, row.Until, row.Failing, row.ArmedSinceNs, row.LookBackSeconds}
		// If it cannot be read, the rule's last error says so.
		if r, err := p.shown(); err == nil && row.Enabled {
			h.Cursor, h.BackfillFrom = r.at, startOf(r.backfillNS)
			if r.at != nil {
				h.Lag = new(lagOf(*r.at, row.NowNs))
			}
		}
	}
	if row.Enabled && h.LastRunAt != nil {
		h.NextRunAt = new(h.LastRunAt.Add(time.Duration(row.IntervalSeconds) * time.Second))
	}
	if !row.Enabled {
		h.Cursor, h.Lag, h.BackfillFrom, h.Failing = nil, nil, nil, false
	}
	return h
}

// startOf returns a start time as people read it.
func startOf(ns *int64) *time.Time {
	if ns == nil {
		return nil
	}
	return new(time.Unix(0, *ns).UTC())
}

func lagOf(position cursor.Position, nowNS int64) time.Duration {
	return max(0, time.Duration(nowNS-position.StartTimeNS))
}

// addProgress adds the progress of a tenant's rules and of all partitions to a status.
func (s *Record) addProgress(ctx context.Context, tenant string, status *api.SystemStatus) error {
	rows, err := s.db.queries.StatusProgress(ctx, tenant)
	if err != nil {
		return fmt.Errorf("read progress of rules: %w", err)
	}
	var slowest *cursor.Position
	var from *int64
	for i := range rows {
		row := &rows[i]
		p := progress{row.Cursor, row.BackfillFromNs, row.BackfillCursorNs, row.Position, row.Until, row.Failing, row.ArmedNs, row.LookBackSeconds}
		if !row.OfExchange {
			p = progress{cursor: row.Cursor}
		}
		r, err := p.shown()
		if err != nil {
			continue // the rule's last error says so
		}
		if r.at != nil && (slowest == nil || slowest.After(*r.at)) {
			slowest = r.at
			status.Slowest = &api.RuleLag{RuleID: row.RuleID, RuleName: row.Name, Lag: lagOf(*r.at, row.NowNs)}
		}
		if r.backfillNS != nil {
			status.Backfilling += row.Alike
			if from == nil || *r.backfillNS < *from {
				from = r.backfillNS
			}
		}
	}
	status.BackfillFrom = startOf(from)
	partitions, err := s.db.Partitions().List(ctx)
	if err != nil {
		return err
	}
	for i := range partitions {
		p := &partitions[i]
		record := api.PartitionRecord{Partition: p.Number, Owner: p.Owner}
		if p.Cursor != nil {
			record.CursorAt, record.Lag = new(p.Cursor.StartTime()), &p.Lag
		}
		if p.Backfill != nil {
			record.BackfillFrom = startOf(&p.Backfill.FromNS)
		}
		status.Partitions = append(status.Partitions, record)
	}
	return nil
}
