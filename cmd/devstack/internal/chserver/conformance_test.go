package chserver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"
)

// TestClickhouseGo runs the driver that the product uses against a server process.
func TestClickhouseGo(t *testing.T) {
	s := startServer(t, dataDir(t))

	t.Run("ping and version", func(t *testing.T) {
		conn := s.open(t)
		if err := conn.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		version, err := conn.ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if got := scan[string](t, conn, "SELECT version()"); !strings.HasPrefix(got, version.Version.String()) {
			t.Errorf("handshake says %s, the engine %s", version.Version, got)
		}
		if version.Timezone.String() != scan[string](t, conn, "SELECT timezone()") {
			t.Errorf("handshake says time zone %s", version.Timezone)
		}
	})

	t.Run("typed parameters", func(t *testing.T) {
		conn := s.open(t)
		instant := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)
		got := scan[int64](t, conn, "SELECT toUnixTimestamp64Nano({ts:DateTime64(9)})",
			clickhouse.Named("ts", instant.Format("2006-01-02 15:04:05.000000000")))
		if got != instant.UnixNano() {
			t.Errorf("got %d ns, want %d", got, instant.UnixNano())
		}
		ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"a": "[1,2,3]", "id": "number"}))
		var sum uint64
		if err := conn.QueryRow(ctx, "SELECT arraySum({a:Array(UInt8)}) + max({id:Identifier}) FROM numbers(3)").Scan(&sum); err != nil || sum != 8 {
			t.Errorf("got %d, %v, want 8", sum, err)
		}
		for _, text := range []string{"", "it's", `back\slash`, "tab\tline\nend", "{x:String}", "ünïcødé 🙂", "-- no comment", "?"} {
			if got := scan[string](t, conn, "SELECT {s:String}", clickhouse.Named("s", text)); got != text {
				t.Errorf("got %q, want %q", got, text)
			}
		}
	})

	t.Run("exceptions", func(t *testing.T) {
		conn := s.open(t)
		for statement, code := range map[string]int32{
			"SELECT * FROM no_such_table":                    60,
			"SELEC 1":                                        62,
			"SELECT no_such_column FROM system.one":          47,
			"SELECT no_such_function(1)":                     46,
			"SELECT 1 FORMAT NoSuchFormat":                   73,
			"SELECT 1 SETTINGS no_such_setting = 1":          115,
			"SELECT throwIf(number = 2) FROM numbers(10)":    395,
			"INSERT INTO no_such_table VALUES (1)":           60,
			"CREATE DATABASE default":                        82,
			"SELECT 1; SELECT 2":                             62,
			"SELECT {absent:String}":                         456,
			"INSERT INTO system.one FORMAT JSONEachRow {{{{": 48,
		} {
			t.Run(statement, func(t *testing.T) { wantCode(t, conn.Exec(t.Context(), statement), code) })
		}
		_, err := conn.Query(t.Context(), "SELECT * FROM no_such_table")
		wantCode(t, err, 60)
		_, err = conn.PrepareBatch(t.Context(), "INSERT INTO no_such_table")
		wantCode(t, err, 60)
		wantCode(t, s.open(t, func(o *clickhouse.Options) { o.Auth.Database = "no_such_database" }).Ping(t.Context()), 81)
	})

	t.Run("settings", func(t *testing.T) {
		conn := s.database(t)
		run(t, conn, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
		with := func(settings clickhouse.Settings) context.Context {
			return clickhouse.Context(t.Context(), clickhouse.WithSettings(settings))
		}
		if got := func() (n uint64) {
			_ = conn.QueryRow(with(clickhouse.Settings{"max_threads": 3}), "SELECT getSetting('max_threads')::UInt64").Scan(&n)
			return n
		}(); got != 3 {
			t.Errorf("max_threads is %d, want 3", got)
		}
		wantCode(t, conn.Exec(with(clickhouse.Settings{"max_execution_time": 1}), "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)"), 159)
		rows, err := conn.Query(with(clickhouse.Settings{"max_result_rows": 1000}), "SELECT number FROM numbers(1000000)")
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
		}
		wantCode(t, err, 396)
		for _, readonly := range []int{1, 2} {
			ctx := with(clickhouse.Settings{"readonly": readonly, "max_execution_time": 5, "max_result_rows": 100})
			wantCode(t, conn.Exec(ctx, "INSERT INTO t VALUES (1)"), 164)
			wantCode(t, conn.Exec(ctx, "INSERT INTO t SELECT 1"), 164)
			wantCode(t, conn.Exec(ctx, "DROP TABLE t"), 164)
			wantCode(t, conn.Exec(ctx, "SET readonly = 0"), 164)
			wantCode(t, insertRows(ctx, conn, 1, func(int) []any { return []any{uint64(1)} }), 164)
			var n uint64
			if err := conn.QueryRow(ctx, "SELECT count() FROM t").Scan(&n); err != nil || n != 0 {
				t.Errorf("readonly = %d: got %d rows, %v, want none", readonly, n, err)
			}
			err = conn.QueryRow(ctx, "SELECT count() FROM t SETTINGS max_threads = 1").Scan(&n)
			if readonly == 1 {
				wantCode(t, err, 164)
			} else if err != nil {
				t.Errorf("readonly = 2 refuses a setting: %v", err)
			}
		}
		if got := scan[uint64](t, conn, "SELECT getSetting('readonly')::UInt64"); got != 0 {
			t.Errorf("readonly = %d leaked into another request", got)
		}
	})

	t.Run("databases are apart", func(t *testing.T) {
		for i := range 2 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				conn := s.database(t)
				run(t, conn, "CREATE TABLE same (a Int32) ENGINE = MergeTree ORDER BY a")
				run(t, conn, "INSERT INTO same VALUES (?)", i)
				if got := scan[uint64](t, conn, "SELECT count() FROM same WHERE a = {i:Int32}", clickhouse.Named("i", i)); got != 1 {
					t.Errorf("got %d rows of our own, want 1", got)
				}
			})
		}
	})

	t.Run("explain indexes", func(t *testing.T) {
		conn := s.database(t)
		run(t, conn, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
		run(t, conn, "INSERT INTO t SELECT number FROM numbers(100000)")
		rows, err := conn.Query(t.Context(), "EXPLAIN indexes = 1 SELECT * FROM t WHERE a = {a:UInt64}", clickhouse.Named("a", 5))
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan.String(), "Granules: 1/12") {
			t.Errorf("the plan does not say how many of 12 granules are read:\n%s", plan.String())
		}
	})

	t.Run("cancellation", func(t *testing.T) {
		watcher := s.open(t)
		for name, statement := range map[string]string{
			"select":        "SELECT sum(sipHash64(number)) AS cancel_select FROM numbers(1000000000000)",
			"insert select": "CREATE TABLE default.cancel_insert ENGINE = MergeTree ORDER BY n AS SELECT number AS n FROM numbers(1000000000000)",
			"sleep":         "SELECT sleepEachRow(3) AS cancel_sleep FROM numbers(1000) SETTINGS function_sleep_max_microseconds_per_block = 100000000000",
			"stream":        "SELECT number AS cancel_stream FROM numbers(1000000000000)",
		} {
			t.Run(name, func(t *testing.T) {
				conn := s.open(t)
				marker := "cancel_" + strings.Fields(name)[0]
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- conn.Exec(ctx, statement) }()
				eventually(t, "the statement runs", func() bool { return running(t, watcher, marker) == 1 })
				cancel()
				// After a result has begun, Exec discards the rest, including an error that ends
				// it.
				if err := <-done; !errors.Is(err, context.Canceled) && (err != nil || name != "stream") {
					t.Errorf("got error %v, want %v", err, context.Canceled)
				}
				eventually(t, "the statement ends", func() bool { return running(t, watcher, marker) == 0 })
			})
		}
	})

	t.Run("many clients", func(t *testing.T) {
		conn := s.database(t)
		run(t, conn, "CREATE TABLE t (client UInt32, i UInt32) ENGINE = MergeTree ORDER BY (client, i)")
		database := scan[string](t, conn, "SELECT currentDatabase()")
		const clients, rounds, size = 8, 20, 500
		group, ctx := errgroup.WithContext(t.Context())
		for client := range clients {
			group.Go(func() error {
				conn, err := clickhouse.Open(s.options(func(o *clickhouse.Options) { o.Auth.Database = database }))
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				for round := range rounds {
					if err := insertRows(ctx, conn, size, func(i int) []any {
						return []any{uint32(client), uint32(round*size + i)}
					}); err != nil {
						return err
					}
					var n, highest uint64
					if err := conn.QueryRow(ctx, "SELECT count(), max(i)::UInt64 FROM t WHERE client = {c:UInt32}", clickhouse.Named("c", client)).Scan(&n, &highest); err != nil {
						return err
					}
					if want := uint64(round+1) * size; n != want || highest != want-1 {
						return fmt.Errorf("client %d sees %d rows up to %d of its own, want %d", client, n, highest, want)
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := scan[uint64](t, conn, "SELECT count() FROM t"); got != clients*rounds*size {
			t.Errorf("got %d rows, want %d", got, clients*rounds*size)
		}
	})

	t.Run("database sql", func(t *testing.T) {
		db := clickhouse.OpenDB(s.options())
		defer func() { _ = db.Close() }()
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT {n:Int32} + 1", sql.Named("n", 41)).Scan(&n); err != nil || n != 42 {
			t.Errorf("got %d, %v, want 42", n, err)
		}
	})

	t.Run("asynchronous insert", func(t *testing.T) {
		conn := s.database(t)
		run(t, conn, "CREATE TABLE t (a Int32) ENGINE = MergeTree ORDER BY a")
		ctx := clickhouse.Context(t.Context(), clickhouse.WithAsync(true))
		if err := conn.Exec(ctx, "INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if got := scan[uint64](t, conn, "SELECT count() FROM t"); got != 1 {
			t.Errorf("got %d rows, want 1", got)
		}
	})

	t.Run("error in the middle of a result", func(t *testing.T) {
		for name, compression := range compressions() {
			t.Run(name, func(t *testing.T) {
				conn := s.open(t, func(o *clickhouse.Options) { o.Compression = compression })
				rows, err := conn.Query(t.Context(), "SELECT repeat('x', 1000), throwIf(number = 5000) FROM numbers(10000) SETTINGS max_block_size = 1000, max_threads = 1")
				if err != nil {
					t.Fatal(err)
				}
				seen := 0
				for rows.Next() {
					seen++
				}
				wantCode(t, rows.Err(), 395)
				if seen == 0 || seen > 5000 {
					t.Errorf("saw %d rows before the error", seen)
				}
			})
		}
	})
}
