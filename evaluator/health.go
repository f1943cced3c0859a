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

// sourceError says that the source could not be read.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func isTooMuch(err error) bool { return errors.Is(err, ErrTooMuch) }

// sourceHealth is what the passes of this process found out about the source.
type sourceHealth struct {
	mu sync.Mutex
	// since is when it began to fail, zero while it does not.
	since time.Time
	// open says that the failure is announced, and that this replica may end that.
	open bool
}

func (h *sourceHealth) announced(open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = open
}

// health announces that the source cannot be read, once for all replicas and all rules,
// and that it can again.
func (e *Evaluator) health(ctx context.Context, result *Result, err error) {
	var failed sourceError
	isFailed := errors.As(err, &failed)
	if err != nil && !isFailed {
		return // it says nothing about the source
	}
	h, now := &e.source, e.Clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	var notifications int
	var problem error
	switch {
	case isFailed && h.since.IsZero():
		h.since = now
	case isFailed && !h.open && now.Sub(h.since) >= SourcePatience:
		notifications, problem = e.Store.SourceFailed(ctx, e.Replica, rules.CleanText(failed.Error(), maxProblemBytes))
		h.open = problem == nil
	case !isFailed && result.Partitions > 0 && result.Observed:
		h.since = time.Time{}
		if h.open {
			notifications, problem = e.Store.SourceRecovered(ctx, e.Replica)
			h.open = problem != nil
		}
	}
	result.Notifications += notifications
	if problem != nil {
		e.Logger.WarnContext(ctx, "health of the source not recorded", slog.Any("error", problem))
	}
}
