package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// pass is one run of a regular task over all rows that are due, in one transaction after the other. Somebody may keep
// hundreds of rows locked, for example by an open transaction in psql, and the other rows must not wait for them: a
// locked row is skipped, and the next pass takes it. That is no failure, because the session may be another replica in the
// same pass. tocsin doctor names sessions that keep rows locked.
//
// A row beside it (its webhook, its messages) cannot be skipped, nor can a silence, which some commit always holds in a
// storm. The first transaction that finds such a row locked waits for it as long as [beginUnattended] says; those after it
// do not.
type pass struct {
	db *DB
	// waited says that a transaction has waited for a lock in vain.
	waited bool
	errs   []error
	others int
}

// mostFailures is how many failures of a pass its error names.
const mostFailures = 10

func (s *Outbox) newPass() pass { return pass{db: s.db} }

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

// transact is [DB.unattended] for one transaction of the pass. If f panics, only this transaction has failed.
func (p *pass) transact(ctx context.Context, f func(q *pgq.Queries) error) error {
	query := beginUnattended
	if p.waited {
		query += `; set local lock_timeout = '10ms'`
	}
	err := fault.Guard(func() error {
		return p.db.begun(ctx, query, func(tx pgx.Tx) error { return f(p.db.queries.WithTx(tx)) })
	})
	p.waited = p.waited || isLockTimeout(err)
	return err
}

// onAlerts runs f in a transaction that has locked those of some alerts that nobody else has locked. f gets these.
func (p *pass) onAlerts(ctx context.Context, ids []uuid.UUID, f func(q *pgq.Queries, free []uuid.UUID) error) error {
	return p.transact(ctx, func(q *pgq.Queries) error {
		free, err := q.AlertLockFree(ctx, ids)
		if err != nil {
			return fmt.Errorf("lock alerts: %w", err)
		}
		if len(free) == 0 {
			return nil
		}
		return f(q, free)
	})
}

// isLockTimeout reports whether a statement did not get a lock in time.
func isLockTimeout(err error) bool {
	const lockNotAvailable = "55P03"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == lockNotAvailable
}
