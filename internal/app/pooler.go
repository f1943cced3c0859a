package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres"
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

// errCrowded says that a pooler lets a client have one connection and no second one.
var errCrowded = errors.New("the pooler provides no second connection; allow more connections to Postgres (PgBouncer: default_pool_size)")

// FindPooler finds out what is between this process and the database at url. Each
// answer is proved: there is no pooler where the process of Postgres that answers is
// the one that the connection was made to; a pooler is in session mode where a listener
// hears what another connection publishes; otherwise it is in transaction mode.
func FindPooler(ctx context.Context, url string) (Pooler, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return Pooler{}, errors.New("the URL must have the form postgres://user:password@host:5432/database")
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
	if err := prepare(ctx, conn); err != nil {
		return transaction(err)
	}
	shared, err := takesOver(ctx, pool.ConnConfig, first)
	if err != nil {
		return Pooler{}, err
	}
	if !shared {
		// Others may have been quicker to take the server connection that was free.
		heard, err := hears(ctx, conn, pool.ConnConfig)
		if err != nil {
			return Pooler{}, err
		}
		if heard {
			return Pooler{Mode: PoolingSession}, nil
		}
	}
	return transaction(prepareAgain(ctx, conn, pool.ConnConfig))
}

// transaction is a pooler in transaction mode through which a prepared statement ended with err.
func transaction(err error) (Pooler, error) {
	if err != nil && !isStatement(err) {
		return Pooler{}, err
	}
	return Pooler{Mode: PoolingTransaction, Statements: err}, nil
}

// prepare runs a statement that is prepared.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	var one int
	return conn.QueryRow(ctx, "select $1::int", 1).Scan(&one)
}

// The tries of what depends on which server connection a pooler chooses. Most give away
// the one that was used last; more tries find it with the others.
const tries = 8

// takesOver reports whether another client's transaction has the server connection that this
// process had. That proves transaction mode; the contrary proves nothing.
func takesOver(ctx context.Context, config *pgx.ConnConfig, first uint32) (bool, error) {
	for range tries {
		taken, release, err := hold(ctx, config)
		defer release()
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			return false, nil // There are no more server connections.
		case taken == first:
			return true, nil
		}
	}
	return false, nil
}

// hears reports whether conn, which listens, is sent what another connection publishes.
func hears(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig) (bool, error) {
	const bound = 3 * time.Second
	channel := "tocsin-" + rand.Text()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	other, err := pgx.ConnectConfig(within, config.Copy())
	if err == nil {
		defer closeConn(ctx, other)
		_, err = other.Exec(within, "select pg_notify($1, '')", pgx.QueryExecModeSimpleProtocol, channel)
	}
	if err != nil && within.Err() != nil {
		return false, cmp.Or(ctx.Err(), errCrowded)
	}
	if err != nil {
		return false, err
	}
	within, cancel = context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		heard, err := conn.WaitForNotification(within)
		switch {
		case err == nil && heard.Channel == channel:
			return true, nil
		case err == nil: // What another client listens to, behind a pooler in transaction mode.
		case within.Err() != nil:
			return false, ctx.Err()
		default:
			return false, err
		}
	}
}

// prepareAgain has conn run its statement once more, and then other connections the same one.
func prepareAgain(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig) error {
	if err := prepare(ctx, conn); err != nil {
		return err
	}
	for range tries {
		other, err := pgx.ConnectConfig(ctx, config.Copy())
		if err != nil {
			return err
		}
		err = prepare(ctx, other)
		closeConn(ctx, other)
		if err != nil {
			return err
		}
	}
	return nil
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

// The remedies for poolers in transaction mode.
const (
	remedyStatements = "add default_query_exec_mode=cache_describe to TOCSIN_POSTGRES_URL, or run PgBouncer 1.21 or newer with max_prepared_statements above 0"
	remedyListen     = "set TOCSIN_BUS_URL to the address of Postgres itself, or TOCSIN_BUS to redis or nats"
	remedyMigrate    = "run tocsin migrate with a TOCSIN_POSTGRES_URL that leads to Postgres itself: its lock against other migrations belongs to one connection"
)

// CheckPooling returns an error that names the remedy where a pooler is in the way
// that does not suit a replica, and an error where that cannot be found out. The options
// are ones that [CheckOptions] accepts. A bus that cannot be reached is none: whoever
// listens later makes sure that it hears.
func CheckPooling(ctx context.Context, o Options) error {
	o.applyDefaults()
	found, err := FindPooler(ctx, o.PostgresURL)
	if err != nil {
		return postgres.Explained(err)
	}
	var errs []error
	if found.Statements != nil {
		errs = append(errs, fmt.Errorf("TOCSIN_POSTGRES_URL leads through a pooler in transaction mode that loses prepared statements; %s: %w", remedyStatements, found.Statements))
	}
	if o.Bus.Provider == BusPostgres && (o.has(RoleEvaluate) || o.has(RoleDispatch)) {
		if o.Bus.URL != o.PostgresURL {
			found, err = FindPooler(ctx, o.Bus.URL)
		}
		if err == nil && found.Mode == PoolingTransaction {
			errs = append(errs, errors.New("LISTEN receives nothing through a pooler in transaction mode; "+remedyListen))
		}
	}
	return errors.Join(errs...)
}

// CheckMigrationPooling returns an error that names the remedy where migrations would go
// through a pooler in transaction mode, and an error where that cannot be found out.
func CheckMigrationPooling(ctx context.Context, postgresURL string) error {
	if err := postgres.CheckURL("TOCSIN_POSTGRES_URL", postgresURL); err != nil {
		return err
	}
	found, err := FindPooler(ctx, postgresURL)
	if err != nil {
		return postgres.Explained(err)
	}
	if found.Mode == PoolingTransaction {
		return errors.New("TOCSIN_POSTGRES_URL leads through a pooler in transaction mode; " + remedyMigrate)
	}
	return nil
}
