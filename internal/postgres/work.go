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
// process meanwhile.
func (s *Outbox) alone() *pgq.Queries { return pgq.New(alone{s.db.pool, 1}) }

// together is alone for a statement that works on many rows.
func (s *Outbox) together(items int) *pgq.Queries { return pgq.New(alone{s.db.pool, items}) }

type alone struct {
	*pgxpool.Pool
	items int
}

// beginWork is for statements that work on rows of the outbox by their ids. They
// are to use its indexes whatever was known of the table's size when they were
// planned: it is empty most of the time, and a plan made then, which reads all of
// it, would be used when a hundred thousand rows wait.
//
// Nor does it help that a vacuum has looked, between two storms: what it then
// believes to be a row or two is read whole for each row of a batch. So no statement
// joins the outbox to its batch. Each names the ids, which alone leads to the rows,
// and has the rest of what it knows looked up in a hash: (…) in (select …) is true.
const beginWork = begin + `; set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`

// planOnce is for statements whose plan is the same whatever their arguments are: each
// connection would else make one for each of the first five times.
const planOnce = `; set local plan_cache_mode = force_generic_plan`

// beginBatch also bounds how long a batch waits for a lock: whatever holds one row
// must not keep all the others. Alone, a row waits for as long as it takes.
const beginBatch = beginWork + `; set local lock_timeout = '1s'`

// working is [beginWork] with [planOnce] and, of several items, [beginBatch], as one
// statement that is sent with those that it is for. A batch is joined to what of it left
// the outbox by a hash.
const working = `
select set_config('enable_seqscan', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('lock_timeout', case when @items::int > 1 then '1s' else '0' end, true),
       set_config('plan_cache_mode', 'force_generic_plan', true)`

// Query returns rows. Once all are read, their Err says whether the transaction has committed.
func (a alone) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	batch := &pgx.Batch{}
	batch.Queue(working, pgx.NamedArgs{"items": a.items})
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
