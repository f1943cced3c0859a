package demo

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// openTable returns a table in a database of its own.
func openTable(t *testing.T) *Table {
	t.Helper()
	server := os.Getenv("TOCSIN_TEST_CLICKHOUSE_URL")
	if server == "" {
		t.Fatal("TOCSIN_TEST_CLICKHOUSE_URL is not set: run it through make test")
	}
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := OpenTable(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	name := fmt.Sprintf("demo_%d_%d", os.Getpid(), time.Now().UnixNano())
	if err := admin.conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + name
	table, err := OpenTable(at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = table.Close()
		if err := admin.conn.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Logf("drop database %s: %v", name, err)
		}
	})
	if err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTableHoldsWhatWasInserted(t *testing.T) {
	t.Parallel()
	table := openTable(t)
	if empty, err := table.Empty(t.Context()); err != nil || !empty {
		t.Fatalf("a new table is empty: %v, error %v", empty, err)
	}
	rows := hours(t, 1, Shape{})[:4000]
	if err := table.Insert(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if empty, err := table.Empty(t.Context()); err != nil || empty {
		t.Fatalf("a filled table is empty: %v, error %v", empty, err)
	}

	want := map[string]Exchange{}
	for _, r := range rows {
		want[r.ExecutionID] = r.Exchange
	}
	got := map[string]Exchange{}
	read, err := table.conn.Query(t.Context(), `SELECT start_time, end_time, duration, environment, application_id, route_id, execution_id,
		status, error_type, error_message, error_stack, correlation_id, attributes FROM exchanges FINAL WHERE tenant_id = 'default'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	for read.Next() {
		var x Exchange
		var end *time.Time
		var took uint64
		if err := read.Scan(&x.StartTime, &end, &took, &x.Environment, &x.Application, &x.Route, &x.ExecutionID,
			&x.Status, &x.ErrorType, &x.ErrorMessage, &x.ErrorStack, &x.CorrelationID, &x.Attributes); err != nil {
			t.Fatal(err)
		}
		if end != nil {
			x.EndTime = *end
		}
		x.Duration = time.Duration(took)
		got[x.ExecutionID] = x
	}
	if err := read.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table holds other exchanges than were inserted, to the nanosecond:\n%.4000s", diff)
	}
}

func TestTrafficReachesTheTable(t *testing.T) {
	t.Parallel()
	table := openTable(t)
	now := start()
	traffic, _ := newTraffic(t, nil, func(o *Options) {
		o.Target = table
		o.Clock = func() time.Time { return now }
	})
	backfilled, err := traffic.Backfill(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	traffic.Tick(t.Context())
	now = now.Add(20 * time.Second)
	traffic.Tick(t.Context())

	var count uint64
	if err := table.conn.QueryRow(t.Context(), "SELECT count() FROM exchanges").Scan(&count); err != nil {
		t.Fatal(err)
	}
	// The engine merges rows with the same key later, and those of one insert at once.
	most := uint64(backfilled) + uint64(traffic.Stats().Inserted)
	if count > most || float64(count) < 0.9*float64(most) {
		t.Errorf("the table holds %d rows, %d were written", count, most)
	}
	if traffic.Stats().Inserted == 0 || traffic.Stats().Waiting != 0 {
		t.Errorf("stats are %+v after two ticks", traffic.Stats())
	}
}
