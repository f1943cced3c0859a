package api

import (
	"context"
	"fmt"
	"time"
)

// SystemPast reads the past states of the system.
type SystemPast interface {
	// History returns the last 24 hours, by Postgres's clock. From is zero if nothing is known.
	History(ctx context.Context, tenant string) (SystemHistory, error)
}

const (
	// HistoryStep is a step of [SystemHistory].
	HistoryStep = 5 * time.Minute
	// HistorySteps is how many steps a [SystemHistory] has.
	HistorySteps = 288
)

// SystemHistory has the worst values of each step, oldest first; nil for a step without a sample.
// The last step is under way.
type SystemHistory struct {
	From  time.Time
	Steps [HistorySteps]*SystemSample
}

// SystemSample is a state of the system.
type SystemSample struct {
	// Lag is how far the slowest partition was behind; nil if none had a cursor.
	Lag *time.Duration
	// Messages is how many messages of the tenant waited; Oldest is the age of the oldest.
	Messages int64
	Oldest   time.Duration
	// Replicas is how many replicas were alive. They held PartitionsHeld of Partitions.
	Replicas, Partitions, PartitionsHeld int
}

// GetSystemHistory answers GET /status/history.
func (s *server) GetSystemHistory(ctx context.Context, _ GetSystemHistoryRequestObject) (GetSystemHistoryResponseObject, error) {
	history, err := s.Past.History(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("read history of system: %w", err)
	}
	from := history.From
	if from.IsZero() {
		from = s.Now().Add(-HistorySteps * HistoryStep)
	}
	answer := GetSystemHistory200JSONResponse{
		From: from.UTC(), StepSeconds: int(HistoryStep.Seconds()), Steps: make([]SystemStep, HistorySteps),
	}
	for i, sample := range history.Steps {
		if sample == nil {
			continue
		}
		oldest := sample.Oldest.Seconds()
		answer.Steps[i] = SystemStep{
			LagSeconds: seconds(sample.Lag), Messages: &sample.Messages, OldestSeconds: &oldest,
			Replicas: &sample.Replicas, Partitions: &sample.Partitions, PartitionsHeld: &sample.PartitionsHeld,
		}
	}
	return answer, nil
}
