package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres/pgq"
)

// alone returns queries that each run as their own transaction with the settings of [working]. Both
// are sent together, so each query takes one round trip instead of three. The transaction commits when its query succeeds, whatever happens to this process.
func (s *Outbox) alone() *pgq.Queries { return pgq.New(alone{s.db.pool, working}) }

// alone is a pool whose queries are sent together with settings.
type alone struct {
	*pgxpool.Pool
	settings string
}

// bounded limits how long a single query waits for a lock, as [beginUnattended] limits a transaction.
const bounded = `select set_config('lock_timeout', '5s', true)`

// beginWork is for statements that work on rows of the outbox by their ids. They must use its
// indexes, whatever Postgres believed about the size of the table when the plan was made. The table
// is empty most of the time: a plan made then reads all of it, and would still be used when a
// hundred thousand rows wait.
//
// A vacuum between two storms does not help: if it finds one or two rows, the table is read whole
// for each row of a batch. So no statement joins the outbox to its batch. Each names the ids, which
// leaves only the index to find the rows, and looks up its other data in a hash: (…) in (select …)
// is true.
const beginWork = begin + `; set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`

// planOnce is for statements whose plan does not depend on their arguments. Otherwise each
// connection would plan each of them again for the first five executions.
const planOnce = `; set local plan_cache_mode = force_generic_plan`

// beginBatch also bounds how long a statement waits for a lock: one row that somebody keeps locked
// must not hold up all the others, nor keep a connection.
const beginBatch = beginWork + `; set local lock_timeout = '1s'`

// working is [beginBatch] with [planOnce]. It is one statement, sent together with the statements
// that it applies to. It leaves hash joins on, by which a batch is joined to its rows that have left
// the outbox.
const working = `
select set_config('enable_seqscan', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('lock_timeout', '1s', true),
       set_config('plan_cache_mode', 'force_generic_plan', true)`

// Query returns rows. When all are read, their Err says whether the transaction was committed.
func (a alone) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	batch := &pgx.Batch{}
	batch.Queue(a.settings)
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

// Exec runs a statement, and returns what it did when the transaction has ended.
func (a alone) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	rows, err := a.Query(ctx, statement, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// QueryRow returns the only row of a query. When it is scanned, the transaction has ended.
func (a alone) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := a.Query(ctx, query, args...)
	return single{rows, err}
}

type single struct {
	rows pgx.Rows
	err  error
}

// Scan reads the row, and returns why it was not committed.
func (s single) Scan(into ...any) error {
	if s.err != nil {
		return s.err
	}
	defer s.rows.Close()
	if !s.rows.Next() {
		if err := s.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := s.rows.Scan(into...); err != nil {
		return err
	}
	s.rows.Close()
	return s.rows.Err()
}

// committed are the rows of a transaction that ends when they are read.
type committed struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
	closed  bool
}

// Next ends the transaction if there is no further row.
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

// Err returns why rows are missing, or why they were not committed.
func (c *committed) Err() error {
	if err := c.Rows.Err(); err != nil {
		return err
	}
	return c.err
}
