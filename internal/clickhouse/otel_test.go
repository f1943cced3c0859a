package clickhouse_test

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// otelTraces is the table that the exporter of the OpenTelemetry Collector creates, according to
// its documentation.
//
//go:embed testdata/otel_traces.sql
var otelTraces string

func otelDatabase(t *testing.T) chtest.Database {
	t.Helper()
	db := chtest.New(t)
	if err := db.Conn.Exec(t.Context(), otelTraces); err != nil {
		t.Fatal(err)
	}
	return db
}

func openWith(t *testing.T, db chtest.Database, m clickhouse.Mapping) *clickhouse.Source {
	t.Helper()
	ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Mapping: m, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	return ch
}

func TestSpansAreExchanges(t *testing.T) {
	db := otelDatabase(t)
	err := db.Conn.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, SpanAttributes,
			Duration, StatusCode, StatusMessage, Events.Timestamp, Events.Name, Events.Attributes) VALUES
		(fromUnixTimestamp64Nano(toInt64(%[1]d), 'UTC'), 'trace', 's1', 'GET /orders', 'Server', 'orders',
			map('deployment.environment.name', 'production', 'host', 'a', 'both', 'resource'),
			map('both', 'span', 'exception.type', 'Timeout', 'span.kind', 'server'),
			1500, 'Error', 'gave up', [], [], []),
		(fromUnixTimestamp64Nano(toInt64(%[1]d) + 1, 'UTC'), 'trace', 's2', 'GET /orders', 'Client', 'orders',
			map('deployment.environment', 'staging'), map(),
			0, 'STATUS_CODE_ERROR', '', [fromUnixTimestamp64Nano(toInt64(%[1]d), 'UTC')], ['exception'],
			[map('exception.type', 'java.net.ConnectException', 'exception.message', 'refused', 'exception.stacktrace', 'at x')]),
		(fromUnixTimestamp64Nano(toInt64(%[1]d) + 2, 'UTC'), 'trace', 's3', 'GET /orders', 'Server', 'orders', map(), map(), 7, 'Unset', '', [], [], []),
		(fromUnixTimestamp64Nano(toInt64(%[1]d) + 3, 'UTC'), 'trace', 's4', 'GET /orders', 'Server', 'orders', map(), map(), 8, 'Ok', '', [], [], [])`, base))
	if err != nil {
		t.Fatal(err)
	}
	ch := openWith(t, db, clickhouse.OtelTraces())
	end := func(ns int64) *int64 { return &ns }
	want := []rules.Exchange{
		{
			TenantID: "default", StartTimeNS: base, ExecutionID: "trace:s1", Environment: "production", Application: "orders", Route: "GET /orders",
			Status: rules.Failed, EndTimeNS: end(base + 1500), DurationNS: 1500, ErrorType: "Timeout", ErrorMessage: "gave up", CorrelationID: "trace",
			Attributes: map[string]string{"deployment.environment.name": "production", "host": "a", "both": "span", "exception.type": "Timeout", "span.kind": "Server"},
		},
		{
			TenantID: "default", StartTimeNS: base + 1, ExecutionID: "trace:s2", Environment: "staging", Application: "orders", Route: "GET /orders",
			Status: rules.Failed, EndTimeNS: end(base + 1), ErrorType: "java.net.ConnectException", ErrorMessage: "refused", ErrorStack: "at x",
			CorrelationID: "trace", Attributes: map[string]string{"deployment.environment": "staging", "span.kind": "Client"},
		},
		{
			TenantID: "default", StartTimeNS: base + 2, ExecutionID: "trace:s3", Application: "orders", Route: "GET /orders", Status: rules.Completed,
			EndTimeNS: end(base + 9), DurationNS: 7, CorrelationID: "trace", Attributes: map[string]string{"span.kind": "Server"},
		},
		{
			TenantID: "default", StartTimeNS: base + 3, ExecutionID: "trace:s4", Application: "orders", Route: "GET /orders", Status: rules.Completed,
			EndTimeNS: end(base + 11), DurationNS: 8, CorrelationID: "trace", Attributes: map[string]string{"span.kind": "Server"},
		},
	}
	for name, c := range map[string]struct {
		statuses []rules.Status
		want     []rules.Exchange
	}{
		"failed":    {[]rules.Status{rules.Failed}, want[:2]},
		"completed": {[]rules.Status{rules.Completed}, want[2:]},
		"both":      {[]rules.Status{rules.Completed, rules.Failed}, want},
	} {
		s := scan(cursor.Position{StartTimeNS: base - 1}, base+10)
		s.Statuses = c.statuses
		got, err := found(ch.Scan(t.Context(), s))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if n := observed(t, ch, cursor.Range{FromNS: base - 1, ToNS: base + 10}, c.statuses...); n != len(c.want) {
			t.Errorf("%s: fingerprints count %d", name, n)
		}
	}
	other := scan(cursor.Position{StartTimeNS: base - 1}, base+10)
	other.Tenants = tenants("other")
	if got, err := found(ch.Scan(t.Context(), other)); err != nil || len(got) != 0 {
		t.Errorf("another tenant sees %d spans, %v", len(got), err)
	}
	total, err := matching(t.Context(), ch, cursor.Range{FromNS: base - 1, ToNS: base + 10}, source.Narrowing{
		Scope: rules.Scope{Applications: []string{"ord*"}},
		Filter: rules.Filter{
			ErrorTypes: []string{"java.net.ConnectException"}, ErrorMessageMatches: "^ref",
			Attributes: []rules.AttributeMatch{
				{Key: "deployment.environment", Op: rules.AttributeEquals, Value: "staging"},
				{Key: "span.kind", Op: rules.AttributeEquals, Value: "Client"},
			},
		},
	})
	if err != nil || total != 1 {
		t.Errorf("count = %d, %v", total, err)
	}
	countedByAttribute(t, ch)
}

// mappingOf returns the mapping that a page of the documentation shows after a comment.
func mappingOf(t *testing.T, page, comment string) clickhouse.Mapping {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, block, there := strings.Cut(string(text), "```yaml\n# "+comment+"\n")
	if !there {
		t.Fatalf("%s has no block that begins with %q", page, comment)
	}
	block, _, _ = strings.Cut(block, "```")
	m, err := clickhouse.ParseMapping(page, []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTheMappingsOfTheDocumentation reads spans through the mappings that the documentation shows:
// with some kinds only, and with attributes in columns of JSON.
func TestTheMappingsOfTheDocumentation(t *testing.T) {
	json := strings.ReplaceAll(otelTraces, "Map(LowCardinality(String), String)", "JSON")
	for name, c := range map[string]struct {
		mapping    clickhouse.Mapping
		table      string
		attributes string
		want       map[string]string
	}{
		"kind": {
			mappingOf(t, "tutorials/opentelemetry.md", "source.yaml"), otelTraces,
			`map('deployment.environment.name', 'live'), map('messaging.system', 'kafka', 'error.type', ''),
				[map('exception.type', 'Timeout', 'exception.message', 'too late', 'exception.stacktrace', 'at x')]`,
			map[string]string{"deployment.environment.name": "live", "messaging.system": "kafka", "error.type": "", "span.kind": "Consumer"},
		},
		"JSON": {
			mappingOf(t, "sources.md", "source.yaml, for attributes in JSON columns"), json,
			`'{"deployment.environment.name": "live"}', '{"messaging.system": "kafka"}',
				['{"exception.type": "Timeout", "exception.message": "too late", "exception.stacktrace": "at x"}']`,
			map[string]string{"messaging.system": "kafka", "span.kind": "Consumer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := chtest.New(t)
			for _, statement := range []string{c.table, fmt.Sprintf(`
				INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, Events.Timestamp, Events.Name,
					ResourceAttributes, SpanAttributes, Events.Attributes)
				SELECT fromUnixTimestamp64Nano(toInt64(%d), 'UTC') AS at, 'trace', 's1', 'process', 'Consumer', 'orders', 5, 'Error', [at], ['exception'], %s`, base, c.attributes)} {
				if err := db.Conn.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			got, err := found(openWith(t, db, c.mapping).Scan(t.Context(), scan(cursor.Position{StartTimeNS: base - 1}, base+10)))
			if err != nil {
				t.Fatal(err)
			}
			want := []rules.Exchange{{
				TenantID: "default", StartTimeNS: base, ExecutionID: "trace:s1", Environment: "live", Application: "orders", Route: "process",
				Status: rules.Failed, EndTimeNS: new(base + 5), DurationNS: 5, ErrorType: "Timeout", ErrorMessage: "too late", ErrorStack: "at x",
				CorrelationID: "trace", Attributes: c.want,
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// countedByAttribute counts failed spans by an attribute of the resource and by one that the span
// overrides, in a table whose keys have low cardinality.
func countedByAttribute(t *testing.T, ch *clickhouse.Source) {
	t.Helper()
	var got []string
	for _, key := range []string{"host", "both"} {
		counted, err := ch.CountWindows(t.Context(), []counting.Query{{
			TenantID: "default", FromNS: base, ToNS: base + 1e9, StartFromNS: base, Grouping: rules.Grouping{By: rules.GroupByAttribute, Attribute: key}, Limit: 10,
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range counted.Groups[0] {
			got = append(got, fmt.Sprintf("%s %q %d", key, g.Group, g.Observed))
		}
	}
	want := []string{`host "" 1`, `host "a" 1`, `both "" 1`, `both "span" 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by conditions:\n%s", diff)
	}
	tallies, err := ch.Tally(t.Context(), counting.TallyQuery{
		Tenants: tenants("default"), StartFromNS: base, FromNS: []int64{base}, ToNS: base + 1e9, Statuses: []rules.Status{rules.Failed},
		Attributes: []string{"both", "host"}, Limit: 10,
	})
	if err != nil || len(tallies.Inexact) > 0 {
		t.Fatalf("%v not exact, %v", tallies.Inexact, err)
	}
	got = nil
	for _, y := range tallies.Tallies {
		got = append(got, fmt.Sprintf("%s %q %d", y.Attribute, y.Group, y.Observed))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by a tally:\n%s", diff)
	}
}

// TestPruningOfSpans checks what a tick of one second reads of a day with a million spans of 20
// kinds (service and span name), in one part as after a merge: a granule or two for each kind. That
// is checked for the exporter's table and, with the preset's Prune, also for one whose primary key
// is the whole sort key.
func TestPruningOfSpans(t *testing.T) {
	const rows, day = 1_000_000, int64(86_400_000_000_000)
	const kinds, all = 20, rows/8192 + 1
	midnight := base / day * day
	fill := func(ddl string) chtest.Database {
		t.Helper()
		db := chtest.New(t)
		for _, statement := range []string{
			ddl,
			fmt.Sprintf(`
				INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, ServiceName, Duration, StatusCode)
				SELECT fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * %d, 'UTC'), toString(number), toString(number),
					concat('span-', toString(intDiv(number, 5) %% 4)), concat('service-', toString(number %% 5)), 1, 'Ok'
				FROM numbers(%d)`, midnight, day/rows, rows),
			"OPTIMIZE TABLE otel_traces FINAL",
		} {
			if err := db.Conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		return db
	}
	granules := func(db chtest.Database, prune string, applications ...string) uint64 {
		t.Helper()
		m := clickhouse.OtelTraces()
		m.Prune = prune
		noon := midnight + day/2
		second := scan(cursor.Position{StartTimeNS: noon}, noon+1_000_000_000)
		second.Applications = applications
		read, err := clickhouse.Read(t.Context(), openWith(t, db, m), second)
		if err != nil {
			t.Fatal(err)
		}
		if read.Granules == 0 {
			t.Fatal("the range holds spans, and nothing is read")
		}
		return read.Granules
	}
	whole := strings.Replace(otelTraces, "PRIMARY KEY (ServiceName, SpanName, toDateTime(Timestamp))\n", "", 1)
	prune := clickhouse.OtelTraces().Prune
	exporters, wide := fill(otelTraces), fill(whole)
	documented, plain := granules(exporters, prune), granules(exporters, "")
	pruned, unpruned := granules(wide, prune), granules(wide, "")
	t.Logf("of %d granules: exporter's primary key %d, without Prune %d; sort key as primary key %d, without Prune %d", all, documented, plain, pruned, unpruned)
	if documented > 2*kinds || pruned > 2*kinds {
		t.Errorf("a tick reads %d and %d of %d granules; want at most two for each of %d kinds", documented, pruned, all, kinds)
	}
	// Its four span names, and those that sort next to them.
	if one := granules(exporters, prune, "service-3"); one > 2*kinds/5+2 {
		t.Errorf("a tick for one service of five reads %d granules; want about two for each of its kinds", one)
	} else {
		t.Logf("for one service of five: %d granules", one)
	}
	if pruned >= unpruned {
		t.Errorf("with Prune %d granules, without it %d", pruned, unpruned)
	}
}
