package chserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// options are the options of clickhouse-go for the server.
func (s *server) options(change ...func(*clickhouse.Options)) *clickhouse.Options {
	opts := &clickhouse.Options{
		Addr: []string{s.addr}, Protocol: clickhouse.HTTP, MaxOpenConns: 4,
		DialTimeout: 5 * time.Second, ReadTimeout: time.Minute,
	}
	for _, f := range change {
		f(opts)
	}
	return opts
}

// open connects clickhouse-go to the server.
func (s *server) open(t *testing.T, change ...func(*clickhouse.Options)) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(s.options(change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// database creates a database for one test and connects to it.
func (s *server) database(t *testing.T, change ...func(*clickhouse.Options)) driver.Conn {
	t.Helper()
	name := "test_" + strings.ToLower(strings.NewReplacer("/", "_", "-", "_", " ", "_").Replace(t.Name()))
	run(t, s.open(t), "CREATE DATABASE "+name)
	return s.open(t, append(change, func(o *clickhouse.Options) { o.Auth.Database = name })...)
}

// run runs a statement that must succeed.
func run(t *testing.T, conn driver.Conn, sql string, args ...any) {
	t.Helper()
	if err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// insertRows sends n rows in one batch.
func insertRows(ctx context.Context, conn driver.Conn, n int, row func(i int) []any) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }()
	for i := range n {
		if err := batch.Append(row(i)...); err != nil {
			return err
		}
	}
	return batch.Send()
}

// scan reads the single value that a query returns.
func scan[T any](t *testing.T, conn driver.Conn, sql string, args ...any) T {
	t.Helper()
	var value T
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// wantCode checks that an error is a ClickHouse exception with the code.
func wantCode(t *testing.T, err error, code int32) {
	t.Helper()
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) {
		t.Fatalf("got error %v, want a ClickHouse exception with code %d", err, code)
	}
	if exception.Code != code {
		t.Fatalf("got code %d (%v), want %d", exception.Code, err, code)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	deadline := time.After(3 * time.Minute)
	for !condition() {
		select {
		case <-retry.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// running counts the running statements whose text contains the marker.
func running(t *testing.T, conn driver.Conn, marker string) uint64 {
	t.Helper()
	return scan[uint64](t, conn, "SELECT count() FROM system.processes WHERE query LIKE concat('%', {marker:String}, '%') AND query NOT LIKE '%system.processes%'",
		clickhouse.Named("marker", marker))
}

// answer is the result of a plain HTTP request.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// curl runs a statement as curl would.
func (s *server) curl(t *testing.T, method string, params url.Values, body string, header ...string) answer {
	t.Helper()
	return s.get(t, method, "/?"+params.Encode(), body, header)
}

// get makes a request; header contains alternating names and values.
func (s *server) get(t *testing.T, method, path, body string, header []string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(data), err: err}
}
