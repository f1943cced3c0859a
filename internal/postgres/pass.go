package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/internal/postgres/pgq"
)

// pass is one run of a regular task over all rows that are due, in one transaction after the other. Somebody may keep
// hundreds of rows locked, for example by an open transaction in psql, and the other rows must not wait for them: a
// locked row is skipped, and the next pass looks at it again.
//
// A row beside it (its silence, its webhook, its messages) cannot be skipped. The first transaction that finds such a
// row locked waits for it as long as [beginUnattended] says; those after it do not.
type pass struct {
	db *DB
	// overdue says of each row whether it has been due for [lockedFor].
	overdue map[uuid.UUID]bool
	// waited says that a transaction has waited for a lock in vain.
	waited bool
	errs   []error
	others int
}

const (
	// lockedFor is how long a row is overdue that is not locked briefly: several passes have skipped it.
	lockedFor = time.Minute
	// mostFailures is how many failures of a pass its error names.
	mostFailures = 10
)

func (s *Outbox) newPass() pass { return pass{db: s.db, overdue: map[uuid.UUID]bool{}} }

// fail notes a failure.
func (p *pass) fail(err error) {
	if len(p.errs) == mostFailures {
		p.others++
		return
	}
	p.errs = append(p.errs, err)
}

// failed returns the failures as one error; nil if there are none.
func (p *pass) failed() error {
	if p.others > 0 {
		return errors.Join(append(p.errs, fmt.Errorf("and %d more failures", p.others))...)
	}
	return errors.Join(p.errs...)
}

// errLocked is the failure for a row that somebody keeps locked.
var errLocked = errors.New("another session of Postgres has locked its row")

// skipped returns the error for a locked row; nil if it may be locked only briefly.
func (p *pass) skipped(id uuid.UUID) error {
	if p.overdue[id] {
		return errLocked
	}
	return nil
}

// transact is [DB.unattended] for one transaction of the pass.
func (p *pass) transact(ctx context.Context, f func(q *pgq.Queries) error) error {
	query := beginUnattended
	if p.waited {
		query += `; set local lock_timeout = '10ms'`
	}
	err := p.db.begun(ctx, query, func(tx pgx.Tx) error { return f(p.db.queries.WithTx(tx)) })
	p.waited = p.waited || isLockTimeout(err)
	return err
}

// onAlerts runs f in a transaction that has locked those of some alerts that nobody else has locked. f gets these.
func (p *pass) onAlerts(ctx context.Context, ids []uuid.UUID, f func(q *pgq.Queries, free []uuid.UUID) error) error {
	var locked []uuid.UUID
	err := p.transact(ctx, func(q *pgq.Queries) (err error) {
		var free []uuid.UUID
		if free, locked, err = lockFree(ctx, q, ids); err != nil || len(free) == 0 {
			return err
		}
		return f(q, free)
	})
	if err != nil {
		return err
	}
	for _, id := range locked {
		if err := p.skipped(id); err != nil {
			p.fail(fmt.Errorf("alert %s: %w", id, err))
		}
	}
	return nil
}

// lockFree locks those of some alerts that nobody else has locked. It returns them, and those that somebody else has
// locked. The others do not exist any more.
func lockFree(ctx context.Context, q *pgq.Queries, ids []uuid.UUID) (free, locked []uuid.UUID, err error) {
	if free, err = q.AlertLockFree(ctx, ids); err != nil {
		return nil, nil, fmt.Errorf("lock alerts: %w", err)
	}
	held := setOf(free)
	if locked = slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return held[id] }); len(locked) == 0 {
		return free, nil, nil
	}
	if locked, err = q.AlertsThere(ctx, locked); err != nil {
		return nil, nil, fmt.Errorf("find locked alerts: %w", err)
	}
	return free, locked, nil
}

// isLockTimeout reports whether a statement did not get a lock in time.
func isLockTimeout(err error) bool {
	const lockNotAvailable = "55P03"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == lockNotAvailable
}
