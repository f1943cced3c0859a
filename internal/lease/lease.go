// Package lease keeps the membership of a deployment: which replicas run, and what becomes of the
// leases of a replica that no longer runs.
//
// A lease of a partition or a message names its replica and expires by itself. Each replica writes
// a heartbeat into its row, by Postgres's clock; the clocks of replicas are compared with nothing.
//
//	          beat ┌──┐
//	               ▼  │           silent for DeadAfter
//	(no row) ──▶ alive ─┴────────▶ dead: its leases are released, by any replica that notices
//	   ▲             ▲───── beat ─────┤
//	   └── leaves ───┘                └── silent for ForgetAfter ──▶ (no row)
//
// The invariants, and why they hold:
//
//   - Releasing a lease is never wrong, only wasteful. Each lease has a fencing token, and a
//     replica that writes later under an old token changes nothing. No proof is therefore needed
//     that a silent replica is dead rather than slow. What it had in flight to a receiver may be
//     sent again, under the same webhook-id.
//
//   - A replica whose beat fails goes on with its work, for the same reason, and logs the failure
//     once.
//
//   - A replica declares others dead only if its own beats have succeeded for DeadAfter. While
//     Postgres was away, all replicas were silent.
//
//   - A lease whose replica has no row (it died before its first beat) expires.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Replica is one running process.
type Replica struct {
	// ID names the process in leases; no other process ever has the same.
	ID      string
	Host    string
	PID     int
	Version string
	Roles   []string
}

// Store stores the rows of replicas.
type Store interface {
	// Beat writes a heartbeat, and the replica's row if there is none.
	Beat(ctx context.Context, replica Replica) error
	// ReleaseDead releases what dead replicas hold, and deletes the rows of replicas to forget.
	ReleaseDead(ctx context.Context, request DeadRequest) (DeadResult, error)
	// Leave releases what a replica holds and deletes its row.
	Leave(ctx context.Context, id string) (Released, error)
}

// DeadRequest says who is dead.
type DeadRequest struct {
	// Self is the replica that asks. It is never treated as dead.
	Self string
	// DeadAfter is the silence after which a replica's leases are released,
	// ForgetAfter the silence after which its row is deleted.
	DeadAfter, ForgetAfter time.Duration
}

// Released is what a replica held.
type Released struct {
	Replica                   string
	Partitions, Notifications int
	// Webhooks are those of the notifications, each once.
	Webhooks []uuid.UUID
}

// DeadResult is the result of a pass over dead replicas.
type DeadResult struct {
	// Released are the replicas that held something.
	Released []Released
	// Forgotten is the number of rows deleted.
	Forgotten int
}

// Timing says how often a replica sends a heartbeat, and when one counts as dead.
type Timing struct {
	// Interval is the time between heartbeats, 10 s by default.
	Interval time.Duration
	// DeadAfter is the silence after which a replica counts as dead, 1 min by default. It is at
	// least three intervals, so that one or two lost heartbeats have no effect.
	DeadAfter time.Duration
	// DeadCheckInterval is the time between searches for dead replicas, 30 s by default.
	DeadCheckInterval time.Duration
	// ForgetAfter is the silence after which a row is deleted, 1 h by default.
	ForgetAfter time.Duration
}

// WithDefaults returns t with defaults for zero fields.
func (t Timing) WithDefaults() Timing {
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&t.Interval, 10 * time.Second},
		{&t.DeadAfter, time.Minute},
		{&t.DeadCheckInterval, 30 * time.Second},
		{&t.ForgetAfter, max(time.Hour, 2*t.DeadAfter)},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	return t
}

// Validate returns what is wrong with t, which must have its defaults.
func (t Timing) Validate() error {
	var errs []error
	if t.Interval <= 0 || t.DeadAfter <= 0 || t.DeadCheckInterval <= 0 || t.ForgetAfter <= 0 {
		errs = append(errs, errors.New("the times of heartbeats must be positive"))
	}
	if t.DeadAfter < 3*t.Interval {
		errs = append(errs, fmt.Errorf("a replica is dead after %v, which must be at least three times the heartbeat interval of %v", t.DeadAfter, t.Interval))
	}
	if t.ForgetAfter <= t.DeadAfter {
		errs = append(errs, fmt.Errorf("a replica is forgotten after %v, which must be above the %v after which it is dead", t.ForgetAfter, t.DeadAfter))
	}
	return errors.Join(errs...)
}
