package postgres_test

import (
	"strings"
	"testing"
	"time"

	"tocsin/internal/lease"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
)

// TestIdleConnections has a connection that is idle for some time and is then closed by Postgres.
func TestIdleConnections(t *testing.T) {
	url := pgtest.URL(t)
	conn, other := pgtest.Conn(t, url), pgtest.Conn(t, url)
	asks := func(idle time.Duration) bool { return postgres.Asks(t.Context(), conn, idle) }
	for idle, want := range map[time.Duration]bool{
		0: false, time.Second: false, 2 * time.Second: false, 30 * time.Second: false, 31 * time.Second: true, time.Hour: true,
	} {
		if got := asks(idle); got != want {
			t.Errorf("after %v Postgres is asked: %v, want %v", idle, got, want)
		}
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatalf("the connection that was looked at: %v", err)
	}
	if _, err := other.Exec(t.Context(), "select pg_terminate_backend($1, 10000)", int32(conn.PgConn().PID())); err != nil {
		t.Fatal(err)
	}
	if !asks(2 * time.Second) {
		t.Error("a connection that Postgres has ended is used")
	}
	if asks(time.Second) {
		t.Error("a connection that was in use a moment ago is looked at")
	}
}

// TestSessionsThatMayNotWriteAreReplaced has a database that is read-only for new sessions for some time, as after a
// failover. Sessions of that time stay read-only; none of them is used once the database accepts writes again.
func TestSessionsThatMayNotWriteAreReplaced(t *testing.T) {
	url := pgtest.URL(t)
	conn := pgtest.Conn(t, url)
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	becomes := func(readOnly string) {
		exec(`do $$ begin execute format('alter database %I set default_transaction_read_only = ` + readOnly + `', current_database()); end $$`)
	}
	becomes("on")
	db, err := postgres.Open(t.Context(), url, box(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for range 3 {
		if err := db.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "no writes") {
			t.Errorf("while it accepts no writes: %v", err)
		}
	}
	exec(`set default_transaction_read_only = off`)
	becomes("off")
	for range 3 {
		if err := db.Ping(t.Context()); err != nil {
			t.Errorf("once it accepts writes: %v", err)
		}
	}
	// The sessions for leases begin at other times.
	becomes("on")
	beat := func() error {
		return db.Replicas().Beat(t.Context(), lease.Replica{ID: "a", Roles: []string{"dispatch"}})
	}
	db.EndLeaseSessions()
	if err := beat(); err == nil {
		t.Error("a heartbeat is written while the database accepts no writes")
	}
	becomes("off")
	_ = db.Ping(t.Context())
	if err := beat(); err != nil {
		t.Errorf("a heartbeat once it accepts writes: %v", err)
	}
}
