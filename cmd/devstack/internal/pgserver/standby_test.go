//go:build unix

package pgserver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestStandby copies a running server, loses it, and continues with the copy, which then has a
// standby of its own.
func TestStandby(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	opts.Settings = []string{"wal_keep_size=64MB", "wal_retrieve_retry_interval=100ms"}
	primary := start(t, opts)
	conn, err := pgx.Connect(t.Context(), primary.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 1 AS n`); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	following := opts
	following.DataDir, following.Follow = filepath.Join(filepath.Dir(opts.DataDir), "standby"), primary
	if err := primary.Copy(t.Context(), following.DataDir); err != nil {
		t.Fatal(err)
	}
	standby := start(t, following)
	query(t, primary, `WITH more AS (INSERT INTO kept VALUES (2) RETURNING n) SELECT n::text FROM more`)
	for query(t, standby, `SELECT count(*)::text FROM kept`) != "2" {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the standby does not follow")
		}
	}
	if said := query(t, standby, `SELECT pg_is_in_recovery()::text`); said != "true" {
		t.Errorf("the standby is in recovery: %s", said)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, standby, `WITH more AS (INSERT INTO kept VALUES (3) RETURNING n) SELECT n::text FROM more`)

	again := opts
	again.DataDir, again.Follow = filepath.Join(filepath.Dir(opts.DataDir), "again"), standby
	if err := standby.Copy(t.Context(), again.DataDir); err != nil {
		t.Fatal(err)
	}
	if found := query(t, start(t, again), `SELECT count(*)::text FROM kept`); found != "3" {
		t.Errorf("the standby of the promoted one holds %s of 3 rows", found)
	}
}
