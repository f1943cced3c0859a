package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/evaluator/window"
	"tocsin/internal/postgres/pgq"
)

// Applied is what steps changed, and how many statements were executed.
type Applied struct {
	Inserted, Changed, Locked []uuid.UUID
	Notifications             map[uuid.UUID]int
	Statements                int
}

// ApplyChanges makes steps in a transaction of their own.
func ApplyChanges(ctx context.Context, db *DB, changes []window.Change) (done Applied, err error) {
	err = db.transact(ctx, func(tx pgx.Tx) error {
		counted := &counter{DBTX: tx}
		s, err := applyChanges(ctx, pgq.New(counted), changes)
		done.Inserted, done.Changed, done.Locked, done.Notifications = s.inserted, s.changed, s.locked, s.notified.due
		done.Statements = counted.statements
		return err
	})
	return done, err
}

// counter counts statements.
type counter struct {
	pgq.DBTX

	statements int
}

func (c *counter) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	c.statements++
	return c.DBTX.Exec(ctx, sql, args...)
}

func (c *counter) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.statements++
	return c.DBTX.Query(ctx, sql, args...)
}

func (c *counter) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	c.statements++
	return c.DBTX.QueryRow(ctx, sql, args...)
}
