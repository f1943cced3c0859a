package chserver_test

import (
	"testing"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/clickhouse"
	"tocsin/internal/clickhouse/schema"
	"tocsin/rules"
)

// identities returns the servers that answer the product's queries for its source's name: an empty
// observation, one that reads rows, a count, and an empty page.
func identities(t *testing.T, s *server) []string {
	t.Helper()
	ch, err := clickhouse.Open(clickhouse.Options{URL: "http://default:@" + s.addr + "/tocsin", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ch.Close() }()
	tenants := source.Tenants{Names: []string{"acme"}}
	var found []string
	for _, o := range []source.ObserveQuery{
		{Tenants: tenants, FromNS: 1, ToNS: 1},
		{Tenants: tenants, Statuses: []rules.Status{rules.Failed}, FromNS: 1, WidthNS: 1e9},
	} {
		answer, err := ch.Observe(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, answer.Server)
	}
	counts, err := ch.RowCounts(t.Context(), source.RowCountQuery{Tenants: tenants, Ranges: []cursor.Range{{FromNS: 1, ToNS: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := ch.Scan(t.Context(), source.Scan{
		Tenants: tenants, After: cursor.Position{StartTimeNS: 1}, BeforeNS: 2, Statuses: []rules.Status{rules.Failed}, Limit: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(found, counts.Server, page.Server)
}

// TestServersDiffer queries two servers, one of them before and after a restart.
func TestServersDiffer(t *testing.T) {
	dir := dataDir(t)
	first, second := startServer(t, dir), startServer(t, dataDir(t))
	for _, s := range []*server{first, second} {
		run(t, s.open(t), "CREATE DATABASE tocsin")
		if got := s.curl(t, "POST", map[string][]string{"database": {"tocsin"}}, schema.Exchanges); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	one, other := identities(t, first), identities(t, second)
	first.kill(t)
	again := identities(t, startServer(t, dir))
	for i := range one {
		if one[i] == "" || one[i] != one[0] || other[i] != other[0] || again[i] != one[0] {
			t.Errorf("answer %d names %q, %q after a restart, and %q on another server; the first answers %q and %q", i, one[i], again[i], other[i], one[0], other[0])
		}
	}
	if one[0] == other[0] {
		t.Errorf("two servers have one identity, %q", one[0])
	}
}
