package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pooling says what is between this process and Postgres.
type Pooling string

// The ways to be connected.
const (
	// PoolingNone is a connection to Postgres itself, or through something that passes bytes on.
	PoolingNone Pooling = "none"
	// PoolingSession is a pooler that keeps a server connection for each client connection.
	PoolingSession Pooling = "session"
	// PoolingTransaction is a pooler that gives each transaction any server connection.
	PoolingTransaction Pooling = "transaction"
)

// Pooler is what was found out about the way to Postgres.
type Pooler struct {
	Mode Pooling
	// Statements is nil unless prepared statements break in transaction mode.
	Statements error
}

// FindPooler finds out what is between this process and the database at url. It
// compares who Postgres says answers with whom the connection was made to, and then
// whether another connection's transaction takes this one's place.
func FindPooler(ctx context.Context, url string) (Pooler, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return Pooler{}, errors.New("the URL is not of the form postgres://user:password@host:5432/database")
	}
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig.Copy())
	if err != nil {
		return Pooler{}, err
	}
	defer closeConn(ctx, conn)
	first, err := backend(ctx, conn)
	if err != nil {
		return Pooler{}, err
	}
	// A pooler gives its clients keys of its own for cancelling.
	if first == conn.PgConn().PID() {
		return Pooler{Mode: PoolingNone}, nil
	}
	var one int
	if err := conn.QueryRow(ctx, "select $1::int", 1).Scan(&one); err != nil {
		return Pooler{Mode: PoolingTransaction, Statements: statementLost(err)}, statementKept(err)
	}
	// Most poolers give away the server connection that was used last; more tries find
	// it with the others.
	const tries = 8
	for range tries {
		taken, release, err := hold(ctx, pool.ConnConfig)
		defer release()
		if err != nil {
			break // No more server connections: each client keeps its own.
		}
		if taken == first {
			err := conn.QueryRow(ctx, "select $1::int", 1).Scan(&one)
			return Pooler{Mode: PoolingTransaction, Statements: statementLost(err)}, statementKept(err)
		}
	}
	return Pooler{Mode: PoolingSession}, nil
}

// hold opens a transaction on a connection of its own, and returns which server
// connection it has.
func hold(ctx context.Context, config *pgx.ConnConfig) (pid uint32, release func(), err error) {
	const bound = 2 * time.Second
	within, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	conn, err := pgx.ConnectConfig(within, config.Copy())
	if err != nil {
		return 0, func() {}, err
	}
	release = func() { closeConn(ctx, conn) }
	if _, err := conn.Exec(within, "begin", pgx.QueryExecModeSimpleProtocol); err != nil {
		return 0, release, err
	}
	pid, err = backend(within, conn)
	return pid, release, err
}

// backend returns the process of Postgres that answers.
func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "select pg_backend_pid()::int8", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, err
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	const bound = time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	_ = conn.Close(ctx)
}

// isStatement reports whether err is about a prepared statement that is not where it
// was prepared, or is there already.
func isStatement(err error) bool {
	const unknown, duplicate = "26000", "42P05"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (said.Code == unknown || said.Code == duplicate)
}

func statementLost(err error) error {
	if isStatement(err) {
		return err
	}
	return nil
}

func statementKept(err error) error {
	if isStatement(err) {
		return nil
	}
	return err
}

// The remedies for poolers in transaction mode.
const (
	remedyStatements = "add default_query_exec_mode=cache_describe to TOCSIN_POSTGRES_URL, or run PgBouncer 1.21 or newer with max_prepared_statements above 0"
	remedyListen     = "set TOCSIN_BUS_URL to the address of Postgres itself, or TOCSIN_BUS to redis or nats"
	remedyMigrate    = "run tocsin migrate with a TOCSIN_POSTGRES_URL that leads to Postgres itself: its lock against other migrations belongs to one connection"
)

// CheckPooling returns an error that names the remedy where a pooler is in the way
// that does not suit a replica, or the URL asks for queries that do not work. Where
// Postgres cannot be reached it returns nil.
func CheckPooling(ctx context.Context, o Options) error {
	o.applyDefaults()
	if err := checkExecMode(o.PostgresURL); err != nil {
		return err
	}
	var errs []error
	found, err := FindPooler(ctx, o.PostgresURL)
	if err == nil && found.Statements != nil {
		errs = append(errs, fmt.Errorf("TOCSIN_POSTGRES_URL leads through a pooler in transaction mode that loses prepared statements; %s: %w", remedyStatements, found.Statements))
	}
	if o.Bus.Provider == BusPostgres && (o.has(RoleEvaluate) || o.has(RoleDispatch)) {
		if o.Bus.URL != o.PostgresURL {
			found, err = FindPooler(ctx, o.Bus.URL)
		}
		if err == nil && found.Mode == PoolingTransaction {
			errs = append(errs, errors.New("LISTEN hears nothing through a pooler in transaction mode; "+remedyListen))
		}
	}
	return errors.Join(errs...)
}

// CheckMigrationPooling returns an error that names the remedy where migrations would go
// through a pooler in transaction mode.
func CheckMigrationPooling(ctx context.Context, postgresURL string) error {
	if found, err := FindPooler(ctx, postgresURL); err == nil && found.Mode == PoolingTransaction {
		return errors.New("TOCSIN_POSTGRES_URL leads through a pooler in transaction mode; " + remedyMigrate)
	}
	return nil
}
