package chserver_test

import (
	"context"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func TestFirst(t *testing.T) {
	s := startServer(t, dataDir(t))
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{s.addr}, Protocol: clickhouse.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := conn.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	v, err := conn.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(v)
	var n uint64
	if err := conn.QueryRow(ctx, "SELECT sum(number) FROM numbers({n:UInt64})", clickhouse.Named("n", 10)).Scan(&n); err != nil || n != 45 {
		t.Fatal(n, err)
	}
	if err := conn.Exec(ctx, "CREATE TABLE t (a Int32, s String) ENGINE=MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	b, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := b.Append(int32(i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send(); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(ctx, "SELECT count() FROM t").Scan(&n); err != nil || n != 1000 {
		t.Fatal(n, err)
	}
	t.Log(conn.Exec(ctx, "SELECT * FROM nosuch"), s.stop(t))
}
