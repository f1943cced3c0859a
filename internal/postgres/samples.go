package postgres

import (
	"context"
	"fmt"
	"time"

	"tocsin/api"
	"tocsin/internal/postgres/pgq"
)

const (
	// sampleKeep is how long samples are kept: the time shown, and the step under way.
	sampleKeep = 25 * time.Hour
	// mostSampled is how many rows of the outbox a sample counts.
	mostSampled = 100_000
)

// Samples stores samples of the state of the system.
type Samples struct {
	db        *DB
	deadAfter time.Duration
}

// Samples returns the store of samples. A replica that was silent for deadAfter does not count.
func (db *DB) Samples(deadAfter time.Duration) *Samples { return &Samples{db, deadAfter} }

// Take stores a sample of the present minute, unless a replica has done so. If two do so at once,
// one sample is stored.
func (s *Samples) Take(ctx context.Context) error {
	missing, err := s.db.queries.SampleMissing(ctx)
	if err != nil {
		return fmt.Errorf("look for a sample: %w", err)
	}
	if !missing {
		return nil
	}
	partitions, err := s.db.Partitions().List(ctx)
	if err != nil {
		return fmt.Errorf("take sample: %w", err)
	}
	p := pgq.SampleInsertParams{Partitions: int32(len(partitions)), DeadAfter: s.deadAfter}
	for i := range partitions {
		if partitions[i].Owner != "" {
			p.PartitionsHeld++
		}
		if partitions[i].Cursor == nil {
			continue
		}
		if lag := partitions[i].Lag.Milliseconds(); p.LagMs == nil || lag > *p.LagMs {
			p.LagMs = &lag
		}
	}
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		taken, err := q.SampleInsert(ctx, p)
		if err != nil || taken == 0 {
			return err
		}
		if err := q.SampleOutbox(ctx, mostSampled); err != nil {
			return fmt.Errorf("sample outbox: %w", err)
		}
		if err := q.SampleDelete(ctx, sampleKeep); err != nil {
			return fmt.Errorf("delete old samples: %w", err)
		}
		return q.SampleDeleteOutbox(ctx, sampleKeep)
	})
	if err != nil {
		return fmt.Errorf("take sample: %w", err)
	}
	return nil
}

// History returns the samples of the last 24 hours.
func (s *Samples) History(ctx context.Context, tenant string) (api.SystemHistory, error) {
	rows, err := s.db.queries.SampleHistory(ctx, pgq.SampleHistoryParams{Step: api.HistoryStep, TenantID: tenant})
	if err != nil {
		return api.SystemHistory{}, fmt.Errorf("read samples: %w", err)
	}
	var history api.SystemHistory
	for _, row := range rows {
		history.From = row.Since
		sample := &api.SystemSample{
			Messages: row.Messages, Oldest: time.Duration(row.OldestSeconds * float64(time.Second)),
			Replicas: int(row.Replicas), Partitions: int(row.Partitions), PartitionsHeld: int(row.PartitionsHeld),
		}
		if row.LagMs >= 0 {
			sample.Lag = new(time.Duration(row.LagMs) * time.Millisecond)
		}
		if step := int(row.Step); step >= 0 && step < api.HistorySteps {
			history.Steps[step] = sample
		}
	}
	return history, nil
}
