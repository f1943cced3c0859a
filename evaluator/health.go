package evaluator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tocsin/rules"
)

// SourceGrace is how long the source may be unreadable before anyone is notified.
const SourceGrace = 30 * time.Second

// sourceError says that the source could not be read, or not from where the partition
// stands.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// health announces that the source cannot be read for a partition, once for all
// replicas, partitions and rules, and that it can again for all of this replica's.
func (e *Evaluator) health(ctx context.Context, p *partition, result *Result, err error) {
	var failed sourceError
	isFailed := errors.As(err, &failed)
	e.mu.Lock()
	switch {
	case isFailed && p.failingSince.IsZero():
		p.failingSince = e.Clock()
	case !isFailed && (result.Observed || err == nil && result.Resting):
		p.failingSince = time.Time{}
	}
	fails := isFailed && !e.sourceFailed && e.Clock().Sub(p.failingSince) >= SourceGrace
	recovers := !isFailed && result.Observed && e.sourceFailed && !e.anyFailing()
	if !fails && !recovers || e.announcing {
		e.mu.Unlock()
		return
	}
	e.announcing = true
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, e.LeaseFor/2)
	defer cancel()
	var notifications int
	if fails {
		notifications, err = e.Store.SourceFailed(ctx, e.Replica, rules.CleanText(failed.Error(), maxProblemBytes))
	} else {
		notifications, err = e.Store.SourceRecovered(ctx, e.Replica)
	}
	result.Notifications += notifications
	if err != nil {
		e.Logger.WarnContext(ctx, "health of the source not recorded", slog.Any("error", err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.announcing = false; err == nil {
		e.sourceFailed = fails
	}
}

// anyFailing reports whether the source cannot be read for any partition of this replica.
func (e *Evaluator) anyFailing() bool {
	for _, p := range e.partitions {
		if !p.failingSince.IsZero() {
			return true
		}
	}
	return false
}
