package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options configures a [Member]. Store, Logger and Replica are required.
type Options struct {
	Store   Store
	Logger  *slog.Logger
	Replica Replica
	Timing  Timing
	// Observer is notified of what is released. It may be nil.
	Observer Observer
}

// Observer is notified of dead replicas. Its method must not block.
type Observer interface {
	// DeadReleased is called for each dead replica whose leases this one released.
	DeadReleased(held Released)
}

// Member is the membership of this process.
type Member struct {
	Options
	// unbroken is the number of heartbeats since the last one that failed.
	unbroken int
	failing  bool
}

// New returns a member that has not sent a heartbeat yet. Its error names the option that is
// invalid.
func New(o Options) (*Member, error) {
	if o.Store == nil || o.Logger == nil || o.Replica.ID == "" {
		return nil, errors.New("lease: Store, Logger and Replica are required")
	}
	o.Timing = o.Timing.WithDefaults()
	if err := o.Timing.Validate(); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return &Member{Options: o}, nil
}

// Run sends heartbeats and looks for dead replicas until ctx ends. The first heartbeat is sent at once. A failure is
// logged when it begins and when it is over.
func (m *Member) Run(ctx context.Context) {
	beats, checks := time.NewTicker(m.Timing.Interval), time.NewTicker(m.Timing.DeadCheckInterval)
	defer beats.Stop()
	defer checks.Stop()
	m.beat(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
			m.beat(ctx)
		case <-checks.C:
			// If both are due, the heartbeat comes first.
			select {
			case <-beats.C:
				m.beat(ctx)
			default:
			}
			m.checkDead(ctx)
		}
	}
}

// Beat writes one heartbeat. It gives up after an interval.
func (m *Member) Beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Interval)
	defer cancel()
	if err := m.Store.Beat(ctx, m.Replica); err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	return nil
}

// ReleaseDead releases what dead replicas hold, once. It gives up after an interval, so that it does not delay the
// heartbeats of this replica.
func (m *Member) ReleaseDead(ctx context.Context) (DeadResult, error) {
	ctx, cancel := context.WithTimeout(ctx, m.Timing.Interval)
	defer cancel()
	result, err := m.Store.ReleaseDead(ctx, DeadRequest{
		Self: m.Replica.ID, DeadAfter: m.Timing.DeadAfter, ForgetAfter: m.Timing.ForgetAfter,
	})
	if err != nil {
		return result, fmt.Errorf("release leases of dead replicas: %w", err)
	}
	return result, nil
}

// Leave releases what this replica still holds and deletes its row. Call it when the work and
// [Member.Run] have ended. If it fails, the leases expire, or are released when the replica has
// been silent for long enough.
func (m *Member) Leave(ctx context.Context) error {
	released, err := m.Store.Leave(ctx, m.Replica.ID)
	if err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	if released.Partitions > 0 || released.Notifications > 0 {
		m.Logger.InfoContext(ctx, "leases of this replica released",
			slog.Int("partitions", released.Partitions), slog.Int("notifications", released.Notifications))
	}
	return nil
}

func (m *Member) beat(ctx context.Context) {
	err := m.Beat(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && !m.failing:
		m.Logger.WarnContext(ctx, "heartbeat failed; work continues, and other replicas may take it over: run tocsin doctor if this lasts", slog.Any("error", err))
	case err == nil && m.failing:
		m.Logger.InfoContext(ctx, "heartbeat works again")
	}
	m.failing = err != nil
	if m.failing {
		m.unbroken = 0
	} else {
		m.unbroken++
	}
}

// checkDead looks for dead replicas if this replica itself has been alive for long enough.
func (m *Member) checkDead(ctx context.Context) {
	if time.Duration(m.unbroken-1)*m.Timing.Interval < m.Timing.DeadAfter {
		return
	}
	result, err := m.ReleaseDead(ctx)
	for _, r := range result.Released {
		if m.Observer != nil {
			m.Observer.DeadReleased(r)
		}
		m.Logger.WarnContext(ctx, "leases of a dead replica released", slog.String("dead", r.Replica),
			slog.Int("partitions", r.Partitions), slog.Int("notifications", r.Notifications))
	}
	if result.Forgotten > 0 {
		m.Logger.InfoContext(ctx, "dead replicas forgotten", slog.Int("replicas", result.Forgotten))
	}
	if err != nil && ctx.Err() == nil {
		m.Logger.WarnContext(ctx, "dead replicas not looked up; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
	}
}
