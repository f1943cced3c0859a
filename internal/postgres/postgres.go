// Package postgres stores what Tocsin knows: rules, cursors, alerts, the outbox and the record. It
// is the only package that talks to Postgres.
//
// The queries are in query/*.sql, in files named after their consumers. sqlc generates pgq from
// them and from the migrations. Each consumer has its own store; all stores share one [DB].
//
// What a caller may rely on:
//
//   - No transaction outlives a method, and inside a transaction the process waits only for
//     Postgres.
//   - Times are compared only by Postgres's clock, so that replicas whose clocks differ agree on
//     what is due and which leases have expired.
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

// DB is two pools of connections: one for leases and heartbeats, one for everything else. It is safe for
// concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	queries *pgq.Queries
	// leases are connections for leases and heartbeats only. Statements that wait for locks can occupy every connection of
	// pool. If renewals shared it, the claims of all calls under way would expire, and other replicas would send their
	// messages again.
	leases       *pgxpool.Pool
	leaseQueries *pgq.Queries
	box          *seal.Box
	// webhooks caches the webhooks of recent messages.
	webhooks *webhookCache
	// bounds keeps where looks at the queue begin.
	bounds bounds
}

// Open connects to the database at url and checks that it answers. Secrets are sealed with box. The
// caller closes the DB.
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
	config = config.Copy()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, leaseConnections
	leases, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	db := &DB{pool: pool, queries: pgq.New(pool), leases: leases, leaseQueries: pgq.New(leases), box: box}
	db.webhooks = &webhookCache{db: db}
	// A new connection proves that Postgres answers.
	conn, err := pool.Acquire(ctx)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("postgres: %w", Explained(err))
	}
	conn.Release()
	return db, nil
}

// Ping reports whether the database answers and accepts writes. If it answers without, the error is a
// [fault.Error], whose text says so. Whether a session may write is settled when it begins, so that sessions of one pool
// can differ for as long as they live. Therefore Ping ends them all when one may not: what it then finds is what new
// sessions find, and no session that may not write outlives the failover.
func (db *DB) Ping(ctx context.Context) error {
	var readOnly bool
	for _, pool := range []*pgxpool.Pool{db.pool, db.leases} {
		var standby bool
		if err := pool.QueryRow(ctx, "select current_setting('transaction_read_only')::bool").Scan(&standby); err != nil {
			return fmt.Errorf("postgres: %w", err)
		}
		readOnly = readOnly || standby
	}
	if readOnly {
		db.pool.Reset()
		db.leases.Reset()
		return fault.New(fault.Conflict, "Accepts no writes: it is a standby, or read-only; name every server in TOCSIN_POSTGRES_URL and add target_session_attrs=read-write")
	}
	return nil
}

// Close waits until the connections in use are released, and closes all connections.
func (db *DB) Close() {
	db.pool.Close()
	db.leases.Close()
}

// leaseConnections is one each for partitions, heartbeats and claims, so that none of them waits for another.
const leaseConnections = 3

// begin opens a transaction that Postgres ends after it was idle for 5 s. Inside a transaction the
// process waits only for Postgres, so it is idle only if the process is paused or its machine is
// gone. Its row locks must not keep others from rules and notifications. The timeout is set in the
// transaction and not for the connection, so that it also works with a connection pooler.
const begin = `begin; set local idle_in_transaction_session_timeout = '5s'`

// inTx runs f in one transaction, which commits if f returns nil. If the context has an actor
// ([access.ActorOf]), the audit log records the actor in the same transaction. Everything that is
// written on behalf of a caller is written here.
func (db *DB) inTx(ctx context.Context, f func(q *pgq.Queries) error) error {
	return db.transact(ctx, func(tx pgx.Tx) error { return f(db.queries.WithTx(tx)) })
}

// beginUnattended bounds how long a transaction that no person waits for waits for a row that somebody keeps locked: the
// work on other rows must not wait for that one.
const beginUnattended = begin + `; set local lock_timeout = '5s'`

// unattended is inTx for work that no person waits for. It begins with [beginUnattended].
func (db *DB) unattended(ctx context.Context, f func(q *pgq.Queries) error) error {
	return db.begun(ctx, beginUnattended, func(tx pgx.Tx) error { return f(db.queries.WithTx(tx)) })
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

// begun runs f in a transaction that begins with query. The audit log records nothing of it, so it
// is for actions that no person takes.
func (db *DB) begun(ctx context.Context, query string, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{BeginQuery: query}, f) //nolint:forbidigo // the one place
}

// notFound turns a missing row into a fault.
func notFound(err error, what string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return noSuch(what)
	}
	return err
}

// noSuch is the fault for a missing thing of a kind that people can list.
func noSuch(what string) error {
	return fault.New(fault.NotFound, "no such %[1]s; the list of %[1]ss shows those that exist", what)
}

// isUnique reports whether err is a violation of a named unique constraint or index.
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
