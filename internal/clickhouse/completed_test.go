package clickhouse_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tocsin/cursor"
	"tocsin/evaluator/resolution"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// TestLastCompleted searches for evidence among exchanges that failed, are running, belong to
// others, are outside of the range, or have odd values.
func TestLastCompleted(t *testing.T) {
	db := chtest.New(t)
	row := func(id string, start int64, status rules.Status, correlation string, change func(*rules.Exchange)) rules.Exchange {
		e := rules.Exchange{
			TenantID: "default", StartTimeNS: base + start, ExecutionID: id, Environment: "production", Application: "orders", Route: "r",
			Status: status, CorrelationID: correlation, Attributes: map[string]string{"order": "o-" + correlation},
		}
		if status != rules.Running {
			e.EndTimeNS = new(base + start + 1)
		}
		if change != nil {
			change(&e)
		}
		return e
	}
	odd := `it's "100%" \ ` + "\n\tü"
	db.Insert(t,
		row("first", 1, rules.Completed, "a", nil), row("last", 5, rules.Completed, "a", nil), row("last", 5, rules.Completed, "a", nil),
		row("failed later", 6, rules.Failed, "a", nil), row("runs", 7, rules.Running, "a", nil),
		row("too late", 10, rules.Completed, "a", nil), row("too early", -1, rules.Completed, "a", nil),
		row("of another tenant", 8, rules.Completed, "a", func(e *rules.Exchange) { e.TenantID = "other" }),
		row("elsewhere", 8, rules.Completed, "b", func(e *rules.Exchange) { e.Route = "s" }),
		row("odd", 2, rules.Completed, odd, nil), row("bytes \xff", 3, rules.Completed, "c", nil),
		row("empty", 4, rules.Completed, "", func(e *rules.Exchange) { e.Attributes = nil }), row("not asked for", 4, rules.Completed, "d", nil))
	source := openWith(t, db, clickhouse.Exchanges())
	find := func(q resolution.Query) []resolution.Completed {
		t.Helper()
		q.TenantID, q.FromNS, q.ToNS = "default", base, base+10
		found, err := source.LastCompleted(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(found, func(a, b resolution.Completed) int { return cmp.Compare(a.Key.Value, b.Key.Value) })
		return found
	}
	completed := func(k resolution.Key, start int64, id string) resolution.Completed {
		return resolution.Completed{Key: k, Position: cursor.Position{StartTimeNS: base + start, ExecutionID: id}}
	}
	at := func(value string) resolution.Key {
		return resolution.Key{Environment: "production", Application: "orders", Route: "r", Value: value}
	}
	want := []resolution.Completed{completed(at("a"), 5, "last"), completed(at("c"), 3, "bytes \xff"), completed(at(odd), 2, "odd")}
	if diff := gocmp.Diff(want, find(resolution.Query{Values: []string{"a", "b", "c", odd, "none"}, Routes: []string{"r", "it's"}})); diff != "" {
		t.Errorf("by correlation id:\n%s", diff)
	}
	want = []resolution.Completed{completed(at("o-a"), 5, "last"), completed(at("o-"+odd), 2, "odd")}
	slices.SortFunc(want, func(a, b resolution.Completed) int { return cmp.Compare(a.Key.Value, b.Key.Value) })
	if diff := gocmp.Diff(want, find(resolution.Query{Attribute: "order", Values: []string{"o-a", "o-b", "o-" + odd}, Routes: []string{"r", "it's"}})); diff != "" {
		t.Errorf("by attribute:\n%s", diff)
	}
}
