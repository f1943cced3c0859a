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

// Pooling is the kind of pooler between this process and Postgres.
type Pooling string

// The kinds of pooling.
const (
	// PoolingNone means a connection to Postgres itself, or through a proxy that only forwards
	// bytes.
	PoolingNone Pooling = "none"
	// PoolingSession means a pooler that keeps a server connection for each client connection.
	PoolingSession Pooling = "session"
	// PoolingTransaction means a pooler that gives each transaction any server connection.
	PoolingTransaction Pooling = "transaction"
)

// Pooler describes the connection to Postgres.
type Pooler struct {
	Mode Pooling
	// Statements is nil unless prepared statements fail in transaction mode.
	Statements error
}

// errCrowded says that a pooler lets a client have one connection and no second one.
var errCrowded = errors.New("the pooler provides no second connection; allow more connections to Postgres (PgBouncer: default_pool_size)")

// FindPooler finds out what is between this process and the database at url. Each answer is proved.
// There is no pooler if the answering process of Postgres is the one that the connection was made
// to. A pooler is in session mode if a listener receives what another connection publishes.
// Otherwise it is in transaction mode.
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
	// A pooler gives its clients its own keys for cancelling.
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
		// Another client may have taken the free server connection first.
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

// transaction returns a pooler in transaction mode, through which a prepared statement ended with
// err.
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

// tries is the number of tries for tests that depend on which server connection a pooler chooses.
// Most poolers choose the one that was used last; more tries cover the others.
const tries = 8

// takesOver reports whether another client's transaction gets the server connection that this
// process had. That proves transaction mode. The opposite proves nothing.
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

// hears reports whether conn, which listens, receives what another connection publishes.
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

// prepareAgain makes conn run its statement once more, and then other connections the same one.
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

// hold opens a transaction on its own connection, and returns which server connection it has.
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

// isStatement reports whether err says that a prepared statement is missing or exists already.
func isStatement(err error) bool {
	const unknown, duplicate = "26000", "42P05"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (said.Code == unknown || said.Code == duplicate)
}

// The remedies for poolers in transaction mode.
const (
	remedyStatements = "add default_query_exec_mode=cache_describe to TOCSIN_POSTGRES_URL, or run PgBouncer 1.21 or newer with max_prepared_statements above 0"
	remedyListen     = "set TOCSIN_BUS_URL to the URL of Postgres itself, or TOCSIN_BUS to redis or nats"
	remedyMigrate    = "run tocsin migrate with a TOCSIN_POSTGRES_URL that leads to Postgres itself: its lock against other migrations belongs to one connection"
)

// CheckPooling returns an error with the remedy if there is a pooler that does not work for a
// replica, and an error if that cannot be found out. The options must be ones that [CheckOptions]
// accepts. A bus that cannot be reached is no error, because each listener checks later that it
// receives messages.
func CheckPooling(ctx context.Context, o Options) error {
	o.applyDefaults()
	found, err := FindPooler(ctx, o.PostgresURL)
	if err != nil {
		return postgres.Explained(err)
	}
	var errs []error
	if found.Statements != nil {
		errs = append(errs, fmt.Errorf("TOCSIN_POSTGRES_URL leads through a pooler in transaction mode that loses prepared statements: %w; "+remedyStatements, found.Statements))
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

// CheckMigrationPooling returns an error with the remedy if migrations would go through a pooler in
// transaction mode, and an error if that cannot be found out.
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
