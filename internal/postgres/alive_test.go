package postgres_test

import (
	"testing"
	"time"

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
