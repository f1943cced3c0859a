// Package pgtest gives each test a Postgres database of its own.
//
// The first test of a process migrates a template database; every test clones it, which takes some
// ten milliseconds and separates advisory locks and NOTIFY, since both are per database. Each
// database has a random session time zone, because nothing may depend on it.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"tocsin/internal/postgres"
	"tocsin/migrations"
)

const variable = "TOCSIN_TEST_POSTGRES_URL"

// URL returns the URL of a new, migrated database, dropped when tb ends.
func URL(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv(variable)
	if server == "" {
		tb.Fatalf("%s is not set: run the tests with `make test`, or `bin/devstack run -- go test ./…`", variable)
	}
	template, err := template(server)
	if err != nil {
		tb.Fatalf("template database: %v", err)
	}
	return clone(tb, server, template)
}

// Copy returns the URL of a new database that has everything that the one at url has, dropped when tb ends. Nobody may be
// connected to that one.
func Copy(tb testing.TB, url string) string {
	tb.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	return clone(tb, os.Getenv(variable), config.Database)
}

// clone returns the URL of a new database that is like template, with a session time zone of its own.
func clone(tb testing.TB, server, template string) string {
	tb.Helper()
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	zones := []string{"UTC", "America/St_Johns", "Asia/Kathmandu", "Pacific/Chatham", "Europe/Berlin"}
	zone := zones[rand.IntN(len(zones))]
	run := func(statements ...string) {
		tb.Helper()
		if err := admin(context.Background(), server, statements...); err != nil {
			tb.Fatal(err)
		}
	}
	run(fmt.Sprintf(`create database %s template %s strategy file_copy`, name, template),
		fmt.Sprintf(`alter database %s set timezone to '%s'`, name, zone))
	tb.Cleanup(func() { run(fmt.Sprintf(`drop database if exists %s with (force)`, name)) })
	return withDatabase(tb, server, name)
}

// MigrateTo migrates a database to an older schema version.
func MigrateTo(tb testing.TB, url string, version int64) {
	tb.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := provider.UpTo(context.Background(), version); err != nil {
		tb.Fatal(err)
	}
}

// Empty returns the URL of a new database without a schema, dropped when tb ends.
func Empty(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv(variable)
	if server == "" {
		tb.Fatalf("%s is not set: run the tests with `make test`, or `bin/devstack run -- go test ./…`", variable)
	}
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	run := func(statement string) {
		tb.Helper()
		if err := admin(context.Background(), server, statement); err != nil {
			tb.Fatal(err)
		}
	}
	run("create database " + name)
	tb.Cleanup(func() { run(fmt.Sprintf(`drop database if exists %s with (force)`, name)) })
	return withDatabase(tb, server, name)
}

// Conn returns a connection to the database at url, closed when tb ends.
func Conn(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// template migrates a template database, once for a process.
//
//nolint:gochecknoglobals // made once for all tests of a process
var template = func() func(server string) (string, error) {
	var once sync.Once
	var name string
	var err error
	return func(server string) (string, error) {
		once.Do(func() {
			ctx := context.Background()
			name = "template_" + strings.ReplaceAll(uuid.NewString(), "-", "")
			if err = admin(ctx, server, "create database "+name); err != nil {
				return
			}
			var target *url.URL
			if target, err = url.Parse(server); err != nil {
				return
			}
			target.Path = "/" + name
			if err = postgres.Migrate(ctx, target.String(), slog.New(slog.DiscardHandler)); err != nil {
				return
			}
			err = compact(ctx, target.String())
		})
		return name, err
	}
}()

// compact rewrites the catalogs of a template. Migrations leave many dead rows in them, over which each session of each
// clone passes: without them, tests of a store take 4 to 10% less of a processor. Tables stay as they are, because the
// planner takes one that was vacuumed to be empty.
func compact(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `select format('vacuum full %s', oid::regclass) from pg_class
		where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r' and not relisshared`)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func withDatabase(tb testing.TB, server, name string) string {
	tb.Helper()
	u, err := url.Parse(server)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	u.Path = "/" + name
	return u.String()
}

// admins are connections that create and drop databases, kept for the next test.
var admins = make(chan *pgx.Conn, 4) //nolint:gochecknoglobals // shared by all tests of a process

func admin(ctx context.Context, server string, statements ...string) (err error) {
	var conn *pgx.Conn
	select {
	case conn = <-admins:
	default:
		if conn, err = pgx.Connect(ctx, server); err != nil {
			return fmt.Errorf("connect to %s: %w", variable, err)
		}
	}
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s, err), conn.Close(ctx))
		}
	}
	select {
	case admins <- conn:
		return nil
	default:
		return conn.Close(ctx)
	}
}
