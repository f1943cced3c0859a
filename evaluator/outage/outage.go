// Package outage announces that the source cannot be read, and that it can again. What fails is
// the evaluation of a partition, and who is affected are the tenants with rules in it: each gets
// one announcement, and one of its end.
//
// An outage begins when the source cannot be read for a partition for [Grace]. It ends when the
// source was read for it.
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
	// SourceFailed raises an alert about a source that cannot be read for each tenant with
	// rules in the partition, and notifies its operators, once across all replicas until
	// SourceRecovered. It returns the number of notifications written.
	SourceFailed(ctx context.Context, replica string, partition int, problem string) (notifications int, err error)
	// SourceRecovered resolves the alerts of the partition's tenants and notifies their
	// operators, once.
	SourceRecovered(ctx context.Context, partition int) (notifications int, err error)
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

// Announcer announces for one replica. It is safe for concurrent use, by one pass over each
// partition.
type Announcer struct {
	Options
	mu sync.Mutex
	// since is since when the source cannot be read, by partition.
	since map[int]time.Time
	// announced are the partitions whose outage is announced.
	announced map[int]bool
}

// New returns an announcer.
func New(o Options) *Announcer {
	return &Announcer{Options: o, since: map[int]time.Time{}, announced: map[int]bool{}}
}

// Announced takes over for which partitions an outage is announced.
func (a *Announcer) Announced(partitions []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.announced)
	for _, partition := range partitions {
		a.announced[partition] = true
	}
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
	if !a.fails(partition) {
		return 0
	}
	return a.announce(ctx, partition, true, func(ctx context.Context) (int, error) {
		return a.Store.SourceFailed(ctx, a.Replica, partition, problem)
	})
}

// Works notes that the source fails for a partition no longer, or did not; read says that it
// answered. It returns the number of notifications written.
func (a *Announcer) Works(ctx context.Context, partition int, read bool) int {
	if ends := a.works(partition); !read || !ends {
		return 0
	}
	return a.announce(ctx, partition, false, func(ctx context.Context) (int, error) { return a.Store.SourceRecovered(ctx, partition) })
}

// fails notes a failure, and reports whether it is to be announced.
func (a *Announcer) fails(partition int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Clock()
	since, failing := a.since[partition]
	if !failing {
		a.since[partition], since = now, now
	}
	return !a.announced[partition] && now.Sub(since) >= Grace
}

// works notes that a partition does not fail, and reports whether an announcement is to end.
func (a *Announcer) works(partition int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, partition)
	return a.announced[partition]
}

// announce changes what is announced for a partition.
func (a *Announcer) announce(ctx context.Context, partition int, announced bool, call func(context.Context) (int, error)) int {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	var notifications int
	err := fault.Guard(func() (err error) { notifications, err = call(ctx); return err })
	if err != nil {
		a.Logger.WarnContext(ctx, "health of the source not recorded; it is retried: run tocsin doctor if this repeats", slog.Any("error", err), fault.Stack(err))
		return notifications
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.announced[partition] = announced
	return notifications
}
