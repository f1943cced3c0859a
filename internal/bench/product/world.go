package product

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/clickhouse/schema"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/rules"
)

const (
	// Tenant is whose everything is.
	Tenant = "default"
	// key is base64 of 32 zero bytes.
	key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

// World is one Tocsin with databases of its own.
type World struct {
	*Engines
	// DB is the store of the product, Pool asks what the benchmark wants to know.
	DB   *postgres.DB
	Pool *pgxpool.Pool

	postgresURL, clickHouseDatabase string
	drop                            func() error
}

// NewWorld makes databases with the product's schema and the default source.
func (e *Engines) NewWorld(ctx context.Context) (w *World, err error) {
	w = &World{Engines: e, drop: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close(ctx))
		}
	}()
	if w.postgresURL, w.drop, err = e.database(ctx, e.template); err != nil {
		return w, err
	}
	w.clickHouseDatabase = fmt.Sprintf("bench_%d_%d", os.Getpid(), e.made.Add(1))
	if _, err = e.ask(ctx, "default", "CREATE DATABASE "+w.clickHouseDatabase); err != nil {
		return w, err
	}
	if _, err = w.ClickHouse(ctx, schema.Exchanges); err != nil {
		return w, err
	}
	box, err := seal.New(key)
	if err != nil {
		return w, err
	}
	if w.DB, err = postgres.Open(ctx, w.postgresURL, box); err != nil {
		return w, err
	}
	w.Pool, err = pgxpool.New(ctx, w.postgresURL)
	return w, err
}

// Close drops the databases.
func (w *World) Close(ctx context.Context) error {
	if w.DB != nil {
		w.DB.Close()
	}
	if w.Pool != nil {
		w.Pool.Close()
	}
	_, err := w.ask(context.WithoutCancel(ctx), "default", "DROP DATABASE IF EXISTS "+w.clickHouseDatabase+" SYNC")
	return errors.Join(err, w.drop())
}

// ClickHouse runs a statement in the world's database and returns the answer.
func (w *World) ClickHouse(ctx context.Context, statement string) (string, error) {
	return w.ask(ctx, w.clickHouseDatabase, statement)
}

// ClickHouseNumber returns the number that a query answers.
func (w *World) ClickHouseNumber(ctx context.Context, query string) (int64, error) {
	said, err := w.ClickHouse(ctx, query)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(said), 10, 64)
}

// Exec runs statements in Postgres.
func (w *World) Exec(ctx context.Context, statement string, args ...any) error {
	if _, err := w.Pool.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Number returns the number that a query answers.
func (w *World) Number(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := w.Pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	return n, nil
}

// signingSecret signs all messages, as Standard Webhooks say.
const signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

// Hook stores a signed webhook of the generic kind without rate.
func (w *World) Hook(ctx context.Context, address string, concurrent int, enabled bool) (uuid.UUID, error) {
	return w.AddHook(ctx, notify.Webhook{URL: address, Enabled: enabled, MaxConcurrent: concurrent})
}

// AddHook stores a webhook, signed, and of the generic kind where it has none.
func (w *World) AddHook(ctx context.Context, hook notify.Webhook) (uuid.UUID, error) {
	hook.Name, hook.SigningSecret = uuid.NewString(), signingSecret
	hook.Kind = cmp.Or(hook.Kind, notify.KindGeneric)
	hook.Timeout = cmp.Or(hook.Timeout, notify.DefaultTimeout)
	hook.MaxConcurrent = cmp.Or(hook.MaxConcurrent, notify.DefaultMaxConcurrent)
	hook, err := w.DB.Webhooks().Create(ctx, Tenant, hook)
	return hook.ID, err
}

// Rule stores an enabled rule for every failure in some applications, all by default.
func (w *World) Rule(ctx context.Context, hooks []uuid.UUID, applications ...string) (rules.Rule, error) {
	return w.DB.Rules().Create(ctx, Tenant, rules.Definition{
		Name: uuid.NewString(), Enabled: true, FireMode: rules.PerExchange, Severity: rules.Critical,
		IntervalSeconds: 1, LookBackSeconds: rules.DefaultLookBackSeconds, WebhookIDs: hooks,
		Scope: rules.Scope{Applications: applications},
	})
}

// Exchanges describes exchanges that failed.
type Exchanges struct {
	Count int
	// Prefix begins their ids, which go on with their numbers.
	Prefix string
	// StartNS is when the first began, StepNS how much later each following one
	// did. Each lasted a millisecond; EndNS, when set, is when all ended.
	StartNS, StepNS, EndNS int64
	// Application is orders by default.
	Application string
	// Applications, when set, has them belong to app-0, app-1 … in turn, beginning with
	// the First.
	Applications, First int
	// Tenants, when set, has them belong to so many tenants in turn.
	Tenants int
	// Completed has them succeed instead.
	Completed bool
}

// Insert writes exchanges in one INSERT, so that they become visible together.
func (w *World) Insert(ctx context.Context, x Exchanges) error {
	status, application, end := "FAILED", "'orders'", "s + toIntervalMillisecond(1)"
	if x.Completed {
		status = "COMPLETED"
	}
	switch {
	case x.Applications > 0:
		application = fmt.Sprintf("concat('app-', toString((number + %d) %% %d))", x.First, x.Applications)
	case x.Application != "":
		application = "'" + x.Application + "'"
	}
	if x.EndNS != 0 {
		end = fmt.Sprintf("fromUnixTimestamp64Nano(toInt64(%d), 'UTC')", x.EndNS)
	}
	_, err := w.ClickHouse(ctx, fmt.Sprintf(`
		INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status,
		                       error_type, error_message, correlation_id, attributes)
		SELECT %s, fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * %d, 'UTC') AS s, 'production', %s, concat('route-', toString(number %% 50)),
		       concat('%s', toString(number)), %s, 1000000, '%s', 'ConnectException',
		       concat('ERP refused order ', toString(number), ': 503 Service Unavailable'), concat('c-', toString(number)),
		       map('customer', toString(number %% 1000), 'region', 'eu')
		FROM numbers(%d) SETTINGS max_insert_block_size = 10000000, min_insert_block_size_rows = 10000000, max_block_size = 1000000, max_threads = 1`,
		tenantColumn(x.Tenants), x.StartNS, x.StepNS, application, x.Prefix, end, status, x.Count))
	return err
}

// NowNS returns ClickHouse's clock.
func (w *World) NowNS(ctx context.Context) (int64, error) {
	return w.ClickHouseNumber(ctx, "SELECT toUnixTimestamp64Nano(now64(9))")
}

// Delivered counts the notifications that are recorded as delivered.
const Delivered = `select count(*) from notification_status where status = 'DELIVERED'`

// settled is the same for a world without digests and failures, and cheaper to
// ask while others work.
const settled = `select count(*) from settlement`

// AwaitRecorded waits until so many notifications are settled, and returns when
// that was seen. It asks at most every 2 ms, and less the longer an answer takes.
func (w *World) AwaitRecorded(ctx context.Context, count int) (time.Time, error) {
	return Await(ctx, func() (bool, error) {
		n, err := w.Number(ctx, settled)
		return n >= int64(count), err
	})
}

// Await asks until the answer is yes, and returns when it was.
func Await(ctx context.Context, holds func() (bool, error)) (time.Time, error) {
	return awaitEvery(ctx, 2*time.Millisecond, holds)
}

func awaitEvery(ctx context.Context, pause time.Duration, holds func() (bool, error)) (time.Time, error) {
	for {
		asked := time.Now()
		yes, err := holds()
		answered := time.Now()
		if err != nil || yes {
			return answered, err
		}
		select {
		case <-ctx.Done():
			return answered, ctx.Err()
		case <-time.After(max(pause, 2*answered.Sub(asked))):
		}
	}
}

// Transactions returns how many transactions the world's database has seen, of
// which the benchmark's own are few.
func (w *World) Transactions(ctx context.Context) (int64, error) {
	return w.Number(ctx, `select xact_commit + xact_rollback from pg_stat_database where datname = current_database()`)
}

// HoldSnapshot begins a transaction that sees the database as it is, and keeps it
// open until release is called.
func (w *World) HoldSnapshot(ctx context.Context) (release func(), err error) {
	tx, err := w.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	// The snapshot is taken by the first query, and kept because the level wants it.
	if _, err := tx.Exec(ctx, "select txid_current(), count(*) from rule"); err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }, nil
}
