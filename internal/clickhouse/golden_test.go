package clickhouse_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

var _ = flag.Bool("update", false, "write golden files")

// golden compares a text with a golden file; go test -update writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./internal/clickhouse -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is meant, run go test -update:\n%s", path, diff)
	}
}

// TestStatementsGolden checks each statement with its parameters, as it is sent.
func TestStatementsGolden(t *testing.T) {
	minimum, maximum := int64(100), int64(60_000)
	scope := rules.Scope{
		Environments: []string{"production"}, Applications: []string{"orders", "bill*"}, Routes: []string{"*", "*to*erp", "a*b**c"},
		NotEnvironments: []string{"test*"}, NotApplications: []string{"orders-mock"}, NotRoutes: []string{"health", "*-probe"},
	}
	filter := rules.Filter{
		Statuses: []rules.Status{rules.Completed, rules.Failed}, ErrorTypes: []string{"Timeout", "it's"}, ErrorMessageContains: `100% "gone"`,
		ErrorMessageMatches: `(?i)refused.*\d$`, MinDurationMS: &minimum, MaxDurationMS: &maximum,
		Attributes: []rules.AttributeMatch{
			{Key: "customer", Op: rules.AttributeEquals, Value: "42"},
			{Key: "retry", Op: rules.AttributeExists},
			{Key: "queue", Op: rules.AttributeMatches, Value: "^q"},
			{Key: "region", Op: rules.AttributeIn, Values: []string{"eu", "us"}},
			{Key: "amount", Op: rules.AttributeAtLeast, Value: "99.5"},
			{Key: "probe", Not: true, Op: rules.AttributeEquals, Value: "yes"},
		},
		NotErrorTypes: []string{"Cancelled"}, ErrorMessageNotContains: []string{"retry later"}, ErrorMessageNotMatches: []string{`^health`},
	}
	s := source.Scan{
		Tenants: source.Tenants{Names: []string{"acme", "default"}, Index: 3, Of: 8}, After: cursor.Position{StartTimeNS: base, ExecutionID: "a|b"}, BeforeNS: base + 10,
		Statuses: []rules.Status{rules.Failed}, Applications: []string{"it's", "orders"}, EndedSinceNS: base + 5, Limit: 1000,
	}
	o := source.ObserveQuery{
		Tenants: tenants("default"), Statuses: []rules.Status{rules.Completed, rules.Failed}, FromNS: base, ToNS: base + 10, WidthNS: 60_000_000_000,
	}
	bare := clickhouse.Mapping{
		Table: "shop.runs", Tenant: "o'hara", StartTime: "began", ExecutionID: "toString(id)", EndTime: "ended", Environment: "'live'",
		Application: "app", Route: "job", Failed: "code != 0", Prune: "bucket >= toUnixTimestamp({from}) - 1800 AND bucket <= toUnixTimestamp({to})",
	}
	for name, m := range map[string]clickhouse.Mapping{"exchanges": clickhouse.Exchanges(), "otel_traces": clickhouse.OtelTraces(), "bare": bare} {
		t.Run(name, func(t *testing.T) {
			statements, err := clickhouse.Statements(m, s, o, source.Narrowing{Scope: scope, Filter: filter})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".sql", strings.Join(statements, "\n"))
		})
	}
}
