package evaluator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tocsin/rules"
)

// SourcePatience is how long the source may be unreadable before anyone is notified.
const SourcePatience = 30 * time.Second

// sourceError says that the source could not be read, or not from where the partition
// stands.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func isTooMuch(err error) bool { return errors.Is(err, ErrTooMuch) }

// sourceHealth is what the passes of this process found out about the source.
type sourceHealth struct {
	mu sync.Mutex
	// failing holds since when each partition cannot read it.
	failing map[int]time.Time
	// open says that the failure is announced, and that this replica may end that.
	open bool
}

func (h *sourceHealth) announced(open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = open
}

// gaveUp forgets a partition.
func (h *sourceHealth) gaveUp(partition int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failing, partition)
}

// health announces that the source cannot be read for a partition, once for all
// replicas, partitions and rules, and that it can again for all of this replica's.
func (e *Evaluator) health(ctx context.Context, partition int, result *Result, err error) {
	var failed sourceError
	isFailed := errors.As(err, &failed)
	if !isFailed && !result.Observed {
		return // it says nothing about the source
	}
	h, now := &e.source, e.Clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !isFailed {
		delete(h.failing, partition)
	} else if _, known := h.failing[partition]; !known {
		h.failing[partition] = now
	}
	var notifications int
	var problem error
	switch {
	case isFailed && !h.open && now.Sub(h.failing[partition]) >= SourcePatience:
		notifications, problem = e.Store.SourceFailed(ctx, e.Replica, rules.CleanText(failed.Error(), maxProblemBytes))
		h.open = problem == nil
	case len(h.failing) == 0 && h.open:
		notifications, problem = e.Store.SourceRecovered(ctx, e.Replica)
		h.open = problem != nil
	}
	result.Notifications += notifications
	if problem != nil {
		e.Logger.WarnContext(ctx, "health of the source not recorded", slog.Any("error", problem))
	}
}
