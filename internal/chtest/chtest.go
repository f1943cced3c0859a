// Package chtest gives each test a ClickHouse database of its own, with the default source table,
// and writes exchanges into it.
package chtest

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"tocsin/internal/clickhouse/schema"
	"tocsin/rules"
)

const variable = "TOCSIN_TEST_CLICKHOUSE_URL"

// Database is a database with an empty table of exchanges.
type Database struct {
	// URL is the DSN of the database.
	URL  string
	Conn driver.Conn
}

// New returns a new database, dropped when tb ends.
func New(tb testing.TB) Database {
	tb.Helper()
	server := os.Getenv(variable)
	if server == "" {
		tb.Fatalf("%s is not set: run the tests with `make test`, or `bin/devstack run -- go test ./…`", variable)
	}
	u, err := url.Parse(server)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	admin := open(tb, server)
	exec(tb, admin, "CREATE DATABASE "+name)
	tb.Cleanup(func() { exec(tb, admin, "DROP DATABASE IF EXISTS "+name+" SYNC") })
	u.Path = "/" + name
	db := Database{URL: u.String(), Conn: open(tb, u.String())}
	exec(tb, db.Conn, schema.Exchanges)
	return db
}

// Insert writes exchanges unchanged.
func (d Database) Insert(tb testing.TB, exchanges ...rules.Exchange) {
	tb.Helper()
	batch, err := d.Conn.PrepareBatch(tb.Context(), "INSERT INTO exchanges")
	if err != nil {
		tb.Fatal(err)
	}
	defer batch.Close() //nolint:errcheck // Send reports every error
	for _, e := range exchanges {
		var end *time.Time
		if e.EndTimeNS != nil {
			at := time.Unix(0, *e.EndTimeNS)
			end = &at
		}
		attributes := e.Attributes
		if attributes == nil {
			attributes = map[string]string{}
		}
		err := batch.Append(e.TenantID, time.Unix(0, e.StartTimeNS), e.Environment, e.Application, e.Route, e.ExecutionID,
			end, uint64(e.DurationNS), string(e.Status), e.ErrorType, e.ErrorMessage, e.ErrorStack, e.CorrelationID, attributes)
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		tb.Fatal(err)
	}
}

// KeepRows prevents ClickHouse from merging rows of the same exchange, which otherwise happens at
// an arbitrary time.
func (d Database) KeepRows(tb testing.TB) {
	tb.Helper()
	exec(tb, d.Conn, "SYSTEM STOP MERGES exchanges")
}

// Now returns ClickHouse's clock, in nanoseconds since the Unix epoch.
func (d Database) Now(tb testing.TB) int64 {
	tb.Helper()
	var ns int64
	if err := d.Conn.QueryRow(context.Background(), "SELECT toUnixTimestamp64Nano(now64(9))").Scan(&ns); err != nil {
		tb.Fatal(err)
	}
	return ns
}

func open(tb testing.TB, dsn string) driver.Conn {
	tb.Helper()
	options, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

func exec(tb testing.TB, conn driver.Conn, statement string) {
	tb.Helper()
	if err := conn.Exec(context.Background(), statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}
