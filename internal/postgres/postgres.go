// Package postgres keeps what Tocsin knows: rules, cursors, alerts, the outbox
// and the record. It is the only door to Postgres.
//
// Queries are in query/*.sql, named after their consumer, and are generated
// into pgq from them and from the migrations. Each consumer has a store of its
// own over one shared [DB]. No transaction outlives a method, and none is open
// while something else than Postgres is waited for.
//
// Times are compared only by Postgres's clock, so that replicas whose clocks differ agree on what
// is due and which claims have lapsed.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/internal/seal"
)

// DB is a pool of connections. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	queries *pgq.Queries
	box     *seal.Box
	// webhooks are those that messages went to lately.
	webhooks *webhookCache
	// bounds are where looks at the queue begin.
	bounds bounds
}

// Open connects to the database at url and makes sure that it answers. Secrets
// are sealed with box. The caller closes the DB.
func Open(ctx context.Context, url string, box *seal.Box) (*DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	config.MaxConnLifetimeJitter = config.MaxConnLifetime / 10
	config.ShouldPing = shouldPing
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "tocsin"
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerTypes(conn.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	db := &DB{pool: pool, queries: pgq.New(pool), box: box}
	db.webhooks = &webhookCache{db: db}
	// A connection that was made is an answer.
	conn, err := pool.Acquire(ctx)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", Explained(err))
	}
	conn.Release()
	return db, nil
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// Close ends every connection, after those in use have been given back.
func (db *DB) Close() { db.pool.Close() }

// begin opens a transaction that Postgres ends when it is left idle. Nothing but
// Postgres is waited for inside, so only a process that is paused, or whose
// machine is gone, leaves it idle; its row locks must not keep others from the
// rules and notifications that it held. Set here and not for the connection, so
// that it also holds behind a pooler.
const begin = `begin; set local idle_in_transaction_session_timeout = '5s'`

// inTx runs f in one transaction, which commits if f returns nil. If the context has an actor
// ([access.ActorOf]), the audit log records the actor in the same transaction. Everything that is
// written on behalf of a caller is written here.
func (db *DB) inTx(ctx context.Context, f func(q *pgq.Queries) error) error {
	return db.transact(ctx, func(tx pgx.Tx) error { return f(db.queries.WithTx(tx)) })
}

// transact is inTx for statements that are not generated.
func (db *DB) transact(ctx context.Context, f func(tx pgx.Tx) error) error {
	actor, known := access.ActorOf(ctx)
	return db.begun(ctx, begin, func(tx pgx.Tx) error {
		if !known {
			return f(tx)
		}
		return audited(ctx, db.queries.WithTx(tx), actor, func() error { return f(tx) })
	})
}

// begun runs f in a transaction that is begun by a query, of which the audit log
// tells nothing: for what no person does.
func (db *DB) begun(ctx context.Context, query string, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{BeginQuery: query}, f) //nolint:forbidigo // the one place
}

// notFound turns the absence of a row into a fault.
func notFound(err error, what string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, "no such %s", what)
	}
	return err
}

// isUnique reports whether err is the violation of a named unique constraint or index.
func isUnique(err error, constraint string) bool {
	const uniqueViolation = "23505"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == uniqueViolation && pgErr.ConstraintName == constraint
}

// isCheck reports whether a check constraint refused a row.
func isCheck(err error, constraint string) bool {
	const checkViolation = "23514"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == checkViolation && pgErr.ConstraintName == constraint
}
