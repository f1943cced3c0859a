package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres/pgq"
)

// alone returns the queries that return rows, each as a transaction of its own under
// the settings of [working], sent with them: it asks Postgres once, not three times.
// Such a transaction commits when its query has succeeded, whatever becomes of this
// process meanwhile. Loops says how rows are joined: rowByRow or eachOnce.
func (s *Outbox) alone(loops string) *pgq.Queries { return pgq.New(alone{s.db.pool, loops}) }

type alone struct {
	*pgxpool.Pool
	loops string
}

// Query returns rows whose Err tells whether the transaction has committed, once all
// are read.
func (a alone) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	batch := &pgx.Batch{}
	batch.Queue(working, pgx.NamedArgs{"items": 1, "loops": a.loops})
	batch.Queue(query, args...)
	results := a.SendBatch(ctx, batch)
	_, err := results.Exec()
	rows := pgx.Rows(nil)
	if err == nil {
		rows, err = results.Query()
	}
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &committed{Rows: rows, results: results}, nil
}

// committed are the rows of a transaction that ends with them.
type committed struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
	closed  bool
}

// Next ends the transaction where there is no row left.
func (c *committed) Next() bool {
	if c.Rows.Next() {
		return true
	}
	c.Close()
	return false
}

// Close ends the transaction.
func (c *committed) Close() {
	c.Rows.Close()
	if !c.closed {
		c.closed = true
		c.err = c.results.Close()
	}
}

// Err returns why the rows are not all, or not committed.
func (c *committed) Err() error {
	if err := c.Rows.Err(); err != nil {
		return err
	}
	return c.err
}
