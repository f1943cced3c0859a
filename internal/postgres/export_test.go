package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres/pgq"
)

// The statements of the inbox, for the test that looks at their plans.
//
//nolint:gochecknoglobals // methods, which nobody assigns to
var (
	Listing = (*Inbox).listing
	Walking = (*Inbox).walking
	Folding = (*Inbox).folding
)

// Asks tells whether Postgres is asked before a connection is used that was idle.
func Asks(ctx context.Context, conn *pgx.Conn, idle time.Duration) bool {
	return shouldPing(ctx, pgxpool.ShouldPingParams{Conn: conn, IdleDuration: idle})
}

// EndPeriod has the next look be a whole one.
func (s *Outbox) EndPeriod() { s.db.bounds.wholeAt = s.db.bounds.wholeAt.Add(-s.db.bounds.period) }

// SetBack leaves the outbox as it is when Postgres's clock has been set back.
func (s *Outbox) SetBack(by time.Duration) {
	s.db.bounds.wholeAt = s.db.bounds.wholeAt.Add(by)
	for id, at := range s.db.bounds.at {
		s.db.bounds.at[id] = at.Add(by)
	}
	for id, at := range s.db.places.of {
		at.since = at.since.Add(by)
		s.db.places.of[id] = at
	}
}

// KeepPlaces has places last so long.
func (s *Outbox) KeepPlaces(last time.Duration) { s.db.places.last = last }

// NextWhole is when the next whole look is due after whole looks that took so long.
func NextWhole(took ...time.Duration) time.Duration {
	var b bounds
	for _, t := range took {
		b.note([]pgq.OutboxBacklogRow{{Whole: true, TookUs: t.Microseconds()}})
	}
	return b.period
}

// KeepRecent has whoever claims be at work for so long.
func (s *Outbox) KeepRecent(recent time.Duration) { s.db.recent = recent }

// MigrateTo brings an empty database to an older schema.
func MigrateTo(ctx context.Context, url string, version int64) error {
	db, provider, err := migrator(url)
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return errors.Join(err, db.Close())
}

// PlanLeases returns what a replica that holds and sees some partitions does with them.
var PlanLeases = planLeases //nolint:gochecknoglobals // a function, which nobody assigns to

// Renew, Release and Take are partitions.
func (p leasePlan) Renew() []int32   { return p.renew }
func (p leasePlan) Release() []int32 { return p.release }
func (p leasePlan) Take() []int32    { return p.take }
