package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipeline is a connection that waits for Postgres only when rows are needed. A statement that
// returns no rows is sent with the next query; if the statement fails, so does that query. So a
// transaction costs as many round trips as it has queries with rows. See "Pipeline Mode" in the
// documentation of libpq, which describes the protocol.
type pipeline struct {
	conn *pgx.Conn
	// queued is not sent yet. commits is the position of a commit in it, from 1; 0 is none.
	queued  *pgx.Batch
	commits int
	// open says that a transaction was sent to Postgres; committed says that it was committed.
	open, committed bool
}

func newPipeline(conn *pgx.Conn) *pipeline { return &pipeline{conn: conn, queued: &pgx.Batch{}} }

// begin begins a transaction with the settings of [beginBatch] and [planOnce], except that Postgres
// ends it after 30 s of idleness. lockTimeout is how long its statements wait for a lock, as Postgres
// writes it.
func (p *pipeline) begin(lockTimeout string) {
	p.queued.Queue("begin")
	p.queued.Queue(`
select set_config('idle_in_transaction_session_timeout', '30s', true), set_config('lock_timeout', @lock_timeout::text, true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true)`, pgx.NamedArgs{"lock_timeout": lockTimeout})
}

// commit ends the transaction. The next query runs with the settings of [working].
func (p *pipeline) commit() {
	p.queued.Queue("commit")
	p.commits = p.queued.Len()
	p.queued.Queue(working)
}

// rollback ends a transaction that was not committed. If this fails, the connection is closed when
// it is released.
func (p *pipeline) rollback(ctx context.Context) {
	if p.open && !p.committed {
		_, _ = p.conn.Exec(ctx, "rollback")
	}
}

// Exec sends a statement with the next query. The command tag that it returns is empty.
func (p *pipeline) Exec(_ context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	p.queued.Queue(statement, args...)
	return pgconn.CommandTag{}, nil
}

// Query sends the queued statements and a query. Its rows must be read before the next query.
func (p *pipeline) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	before := p.queued.Len()
	p.queued.Queue(query, args...)
	p.open = true
	results := p.conn.SendBatch(ctx, p.queued)
	p.queued = &pgx.Batch{}
	for i := range before {
		tag, err := results.Exec()
		if err != nil {
			_ = results.Close()
			return nil, err
		}
		if i+1 == p.commits {
			// The commit of a failed transaction rolls it back, and succeeds.
			if tag.String() != "COMMIT" {
				_ = results.Close()
				return nil, fmt.Errorf("the transaction ended with %s: %w", tag, pgx.ErrTxCommitRollback)
			}
			p.committed = true
		}
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &committed{Rows: rows, results: results}, nil
}

// QueryRow is [pipeline.Query] for one row.
func (p *pipeline) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, query, args...)
	return oneRow{rows, err}
}

// oneRow is the first of some rows.
type oneRow struct {
	rows pgx.Rows
	err  error
}

// Scan reads the row. If there is none, it returns [pgx.ErrNoRows].
func (r oneRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		return errors.Join(r.rows.Err(), pgx.ErrNoRows)
	}
	err := r.rows.Scan(dest...)
	r.rows.Close()
	return errors.Join(err, r.rows.Err())
}
