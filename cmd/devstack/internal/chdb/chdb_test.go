package chdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tocsin/cmd/devstack/internal/chdb"
)

// libraryEnv names the variable with the path of libchdb.so; `devstack run` exports it.
const libraryEnv = "TOCSIN_DEVSTACK_CHDB"

func TestOpenRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libchdb.so")
	if _, err := chdb.Open(missing); err == nil || !strings.Contains(err.Error(), missing+" does not exist") {
		t.Errorf("a missing library: %v", err)
	}
	foreign := filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(foreign, bytes.Repeat([]byte("no library "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := chdb.Open(foreign); err == nil || !strings.Contains(err.Error(), foreign) {
		t.Errorf("a foreign file: %v", err)
	}
}

// TestEngine runs everything on the one engine that a process may start.
func TestEngine(t *testing.T) {
	path := os.Getenv(libraryEnv)
	if path == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, which installs the engines and sets it", libraryEnv)
	}
	library, err := chdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := library.Start(filepath.Join(t.TempDir(), "data dir"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	connect := func(t *testing.T) *chdb.Conn {
		t.Helper()
		conn, err := engine.Connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	run := func(t *testing.T, conn *chdb.Conn, stmt chdb.Statement) string {
		t.Helper()
		got, _, err := collect(t.Context(), conn, stmt)
		if err != nil {
			t.Fatalf("%s: %v", stmt.SQL, err)
		}
		return got
	}

	t.Run("sessions are apart", func(t *testing.T) {
		one, two := connect(t), connect(t)
		run(t, one, chdb.Statement{SQL: "SET max_threads = 7; USE system", Whole: true})
		if got := run(t, one, chdb.Statement{SQL: "SELECT getSetting('max_threads'), currentDatabase()"}); got != "7\tsystem\n" {
			t.Errorf("got %q", got)
		}
		if got := run(t, two, chdb.Statement{SQL: "SELECT getSetting('max_threads') = 7, currentDatabase()"}); got != "false\tdefault\n" && got != "0\tdefault\n" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("parameters", func(t *testing.T) {
		stmt := chdb.Statement{
			SQL:    "SELECT {a:Int32}, {b:String}, {c:String}",
			Params: []chdb.Param{{Name: "a", Value: "1"}, {Name: "b", Value: ""}, {Name: "c", Value: "x'\"`{}"}},
		}
		for _, stmt.Whole = range []bool{false, true} {
			if got := run(t, connect(t), stmt); got != "1\t\tx\\'\"`{}\n" {
				t.Errorf("got %q", got)
			}
		}
	})

	t.Run("streamed and whole agree", func(t *testing.T) {
		for _, format := range []string{"", "TSVRaw", "CSV", "Native", "RowBinary", "JSONEachRow", "NDJSON", "JSONStringsEachRow", "JSONCompactEachRow", "JSONCompactStringsEachRow"} {
			if !chdb.Streams(format) {
				t.Errorf("%s does not stream", format)
			}
			conn := connect(t)
			stmt := chdb.Statement{SQL: "SELECT number, toString(number) FROM numbers(300000)", Format: format}
			streamed, stats, err := collect(t.Context(), conn, stmt)
			if err != nil {
				t.Fatal(err)
			}
			if stats.ResultRows != 300_000 {
				t.Errorf("%s: %d rows are counted", format, stats.ResultRows)
			}
			stmt.Whole = true
			whole := run(t, conn, stmt)
			if format == "Native" { // is divided into other blocks
				continue
			}
			if streamed != whole {
				t.Errorf("%s: streamed %d bytes, whole %d bytes", format, len(streamed), len(whole))
			}
		}
	})

	t.Run("a closed stream leaves the connection usable", func(t *testing.T) {
		conn := connect(t)
		rows, err := conn.Run(t.Context(), chdb.Statement{SQL: "SELECT number FROM numbers(1000000000)"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rows.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got := run(t, conn, chdb.Statement{SQL: "SELECT 1"}); got != "1\n" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("errors", func(t *testing.T) {
		for sql, code := range map[string]int{
			"SELECT * FROM nowhere": 60, "SELEC": 62, "DROP TABLE nowhere": 60, "SELECT throwIf(1)": 395, "SET no_such = 1": 115,
		} {
			_, _, err := collect(t.Context(), connect(t), chdb.Statement{SQL: sql})
			var exception *chdb.Error
			if !errors.As(err, &exception) || exception.Code != code {
				t.Errorf("%s: got %v, want code %d", sql, err, code)
			}
		}
		closed := connect(t)
		closed.Close()
		if _, err := closed.Run(t.Context(), chdb.Statement{SQL: "SELECT 1"}); !errors.Is(err, chdb.ErrClosed) {
			t.Errorf("a closed connection: %v", err)
		}
	})

	t.Run("count statements", func(t *testing.T) {
		conn := connect(t)
		for sql, want := range map[string]int{
			"": 0, "SELEC 1": 0, "SELECT 1": 1, "SELECT ';'; -- end\n": 1, "SELECT 1; SELECT 2": 2, "INSERT INTO t VALUES (';')": 1,
		} {
			if got := conn.CountStatements(sql); got != want {
				t.Errorf("%q: got %d, want %d", sql, got, want)
			}
		}
	})

	t.Run("insert", func(t *testing.T) {
		conn := connect(t)
		run(t, conn, chdb.Statement{SQL: "CREATE TABLE ins (a Int64, s String DEFAULT 'x') ENGINE = MergeTree ORDER BY a"})
		insert, err := conn.Insert(t.Context(), chdb.Statement{SQL: "INSERT INTO ins", Format: "JSONEachRow"})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(`{"a":1} {"a":2,"s":"y"}`) { // cut anywhere
			if !insert.Append(t.Context(), []byte{b}) {
				t.Fatal("refused")
			}
		}
		stats, err := insert.Commit(t.Context())
		insert.Close()
		insert.Close()
		if err != nil || stats.WrittenRows != 2 {
			t.Errorf("got %+v, %v", stats, err)
		}
		abandoned, err := conn.Insert(t.Context(), chdb.Statement{SQL: "INSERT INTO ins", Format: "CSV"})
		if err != nil {
			t.Fatal(err)
		}
		abandoned.Append(t.Context(), []byte("3,z\n"))
		abandoned.Close()
		if got := run(t, conn, chdb.Statement{SQL: "SELECT a, s FROM ins ORDER BY a"}); got != "1\tx\n2\ty\n" {
			t.Errorf("got %q", got)
		}
		bad, err := conn.Insert(t.Context(), chdb.Statement{SQL: "INSERT INTO ins", Format: "CSV"})
		if err != nil {
			t.Fatal(err)
		}
		bad.Append(t.Context(), []byte("no number\n"))
		if _, err := bad.Commit(t.Context()); err == nil {
			t.Error("nonsense is stored")
		}
		bad.Close()
		if got := run(t, conn, chdb.Statement{SQL: "SELECT count() FROM ins"}); got != "2\n" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("cancellation", func(t *testing.T) {
		for _, stmt := range []chdb.Statement{
			{SQL: "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)"},
			{SQL: "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)", Whole: true},
		} {
			conn := connect(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // before the engine knows of the statement
			_, _, err := collect(ctx, conn, stmt)
			var exception *chdb.Error
			if !errors.As(err, &exception) || exception.Code != 394 {
				t.Errorf("got %v, want code 394", err)
			}
			if got := run(t, conn, chdb.Statement{SQL: "SELECT 1"}); got != "1\n" {
				t.Errorf("the connection is of no use any more: %q", got)
			}
		}
	})

	t.Run("in parallel", func(t *testing.T) {
		var wait sync.WaitGroup
		for i := range 16 {
			wait.Go(func() {
				conn, err := engine.Connect()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				got, _, err := collect(t.Context(), conn, chdb.Statement{SQL: fmt.Sprintf("SELECT sum(number) + %d FROM numbers(1000000)", i)})
				if want := fmt.Sprintln(499999500000 + i); err != nil || got != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			})
		}
		wait.Wait()
	})
}

// collect reads a whole result.
func collect(ctx context.Context, conn *chdb.Conn, stmt chdb.Statement) (string, chdb.Stats, error) {
	rows, err := conn.Run(ctx, stmt)
	if err != nil {
		return "", chdb.Stats{}, err
	}
	defer func() { _ = rows.Close() }()
	var all bytes.Buffer
	for {
		data, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return all.String(), rows.Stats(), nil
		}
		if err != nil {
			return "", chdb.Stats{}, err
		}
		all.Write(data)
	}
}
