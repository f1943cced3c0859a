package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres/pgq"
)

// The statements of the inbox, for the test that checks their plans.
//
//nolint:gochecknoglobals // methods, which nobody assigns to
var (
	Listing = (*Inbox).listing
	Walking = (*Inbox).walking
	Folding = (*Inbox).folding
)

// Asks reports whether Postgres is pinged before a connection is used that was idle for the given
// time.
func Asks(ctx context.Context, conn *pgx.Conn, idle time.Duration) bool {
	return shouldPing(ctx, pgxpool.ShouldPingParams{Conn: conn, IdleDuration: idle})
}

// EndPeriod makes the next look a whole one.
func (s *Outbox) EndPeriod() { s.db.bounds.nextWhole = time.Time{} }

// BeginPeriod makes the next looks partial ones.
func (s *Outbox) BeginPeriod() {
	s.db.bounds.took = time.Hour
	s.db.bounds.nextWhole = time.Now().Add(time.Hour)
}

// NextWhole returns the time until the next whole look is due after whole looks of the given
// durations.
func NextWhole(took ...time.Duration) time.Duration {
	var b bounds
	for _, t := range took {
		b.note(pgq.OutboxLookParams{Whole: true}, nil, time.Now().Add(-t))
	}
	return time.Until(b.nextWhole)
}

// PlanLeases decides what a replica does with the partitions that it holds and sees.
var PlanLeases = planLeases //nolint:gochecknoglobals // a function, which nobody assigns to

// Renew, Release and Take return the partitions to renew, release and take.
func (p leasePlan) Renew() []int32   { return p.renew }
func (p leasePlan) Release() []int32 { return p.release }
func (p leasePlan) Free() []int32    { return p.free }
func (p leasePlan) Share() int       { return p.share }

// Occupy takes all connections but those for leases, until the returned function is called.
func Occupy(tb testing.TB, db *DB) (release func()) {
	tb.Helper()
	var taken []*pgxpool.Conn
	for range db.pool.Config().MaxConns {
		conn, err := db.pool.Acquire(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		taken = append(taken, conn)
	}
	return func() {
		for _, conn := range taken {
			conn.Release()
		}
	}
}

// EndLeaseSessions has the next statement about leases begin a session.
func (db *DB) EndLeaseSessions() { db.leases.Reset() }
