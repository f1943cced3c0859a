// Package outage announces that the source cannot be read, and that it can again: each once,
// for all replicas, partitions and rules.
//
// An outage begins when the source cannot be read for one partition for [Grace]. It ends when
// the source was read and fails for no partition of the replica that may end it.
package outage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tocsin/internal/fault"
)

// Grace is how long the source may be unreadable before anyone is notified.
const Grace = 30 * time.Second

// Store keeps the announcement.
type Store interface {
	// SourceFailed raises the alert about a source that cannot be read and notifies the
	// operators, once across all replicas until SourceRecovered. It returns the number
	// of notifications written.
	SourceFailed(ctx context.Context, replica, problem string) (notifications int, err error)
	// SourceRecovered resolves that alert and notifies the operators, once.
	SourceRecovered(ctx context.Context, replica string) (notifications int, err error)
}

// Options configures an [Announcer]. All fields are required.
type Options struct {
	Store   Store
	Replica string
	Clock   func() time.Time
	// Within bounds a call of the store.
	Within time.Duration
	Logger *slog.Logger
}

// Announcer announces for one replica. It is safe for concurrent use.
type Announcer struct {
	Options
	mu sync.Mutex
	// since is since when the source cannot be read, by partition.
	since map[int]time.Time
	// announced says that the outage is announced and that this replica may end that,
	// announcing that this replica is about to change it.
	announced, announcing bool
}

// New returns an announcer.
func New(o Options) *Announcer { return &Announcer{Options: o, since: map[int]time.Time{}} }

// Announced takes over whether an outage is announced that this replica may end.
func (a *Announcer) Announced(announced bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.announced = announced
}

// GaveUp forgets a partition that the replica does not hold any more.
func (a *Announcer) GaveUp(partition int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, partition)
}

// Failed notes that the source could not be read for a partition, and returns the number of
// notifications written.
func (a *Announcer) Failed(ctx context.Context, partition int, problem string) int {
	claimed := a.claims(func() (due bool) {
		now := a.Clock()
		since, failing := a.since[partition]
		if !failing {
			a.since[partition], since = now, now
		}
		return !a.announced && now.Sub(since) >= Grace
	})
	if !claimed {
		return 0
	}
	return a.announce(ctx, true, func(ctx context.Context) (int, error) { return a.Store.SourceFailed(ctx, a.Replica, problem) })
}

// Works notes that the source fails for a partition no longer, or did not; read says that it
// answered. It returns the number of notifications written.
func (a *Announcer) Works(ctx context.Context, partition int, read bool) int {
	claimed := a.claims(func() (due bool) {
		delete(a.since, partition)
		return read && a.announced && len(a.since) == 0
	})
	if !claimed {
		return 0
	}
	return a.announce(ctx, false, func(ctx context.Context) (int, error) { return a.Store.SourceRecovered(ctx, a.Replica) })
}

// claims reports whether the caller is to change what is announced: that is due, and nobody
// else is about to.
func (a *Announcer) claims(due func() bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	claimed := due() && !a.announcing
	a.announcing = a.announcing || claimed
	return claimed
}

// announce changes what is announced, on behalf of who claimed that.
func (a *Announcer) announce(ctx context.Context, announced bool, call func(context.Context) (int, error)) int {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	var notifications int
	err := fault.Guard(func() (err error) { notifications, err = call(ctx); return err })
	if err != nil {
		a.Logger.WarnContext(ctx, "health of the source not recorded; it is retried: run tocsin doctor if this repeats", slog.Any("error", err), fault.Stack(err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.announcing = false; err == nil {
		a.announced = announced
	}
	return notifications
}
