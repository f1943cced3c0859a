// Package oteltest tests the preset otel_traces with the OpenTelemetry Collector itself. One test
// uses only its ClickHouse exporter: the exporter creates its table and writes spans, Tocsin checks
// the table, reads the spans and checks them. The other runs a Collector, assembled from the OTLP
// receiver, the batch processor and that exporter, to which OpenTelemetry's SDK sends spans.
//
// It is a module of its own, because the Collector requires more than a hundred modules, none of
// which the product needs. `make test-go` runs it; by itself it runs with
//
//	bin/devstack run -- go -C internal/clickhouse/oteltest test ./...
package oteltest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

const base = int64(1_795_244_520_123_456_789)

// span appends a span of one trace and service that lasts 1.5 s.
func span(spans ptrace.SpanSlice, id byte, code ptrace.StatusCode) ptrace.Span {
	s := spans.AppendEmpty()
	s.SetTraceID(pcommon.TraceID{0xAB, 1})
	s.SetSpanID(pcommon.SpanID{id})
	s.SetName("GET /orders")
	s.SetKind(ptrace.SpanKindServer)
	s.SetStartTimestamp(pcommon.Timestamp(base + int64(id)))
	s.SetEndTimestamp(pcommon.Timestamp(base + int64(id) + 1_500_000_000))
	s.Status().SetCode(code)
	return s
}

// target returns the server to write to, and a new database.
func target(t *testing.T) (server, database string) {
	t.Helper()
	server = os.Getenv("TOCSIN_TEST_CLICKHOUSE_URL")
	if server == "" {
		t.Fatal("TOCSIN_TEST_CLICKHOUSE_URL is not set: run the test with `bin/devstack run -- go -C internal/clickhouse/oteltest test ./...`")
	}
	return server, "otel_" + strings.ReplaceAll(uuid.NewString(), "-", "")
}

func traces() ptrace.Traces {
	t := ptrace.NewTraces()
	r := t.ResourceSpans().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "orders")
	r.Resource().Attributes().PutStr("deployment.environment.name", "production")
	spans := r.ScopeSpans().AppendEmpty().Spans()
	span(spans, 1, ptrace.StatusCodeOk)
	span(spans, 2, ptrace.StatusCodeUnset)
	failed := span(spans, 3, ptrace.StatusCodeError)
	failed.Status().SetMessage("ERP refused")
	failed.Attributes().PutInt("http.response.status_code", 503)
	event := failed.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "java.net.ConnectException")
	event.Attributes().PutStr("exception.stacktrace", "at x")
	return t
}

func TestExporterWritesWhatThePresetReads(t *testing.T) {
	server, database := target(t)
	ctx := t.Context()
	factory := clickhouseexporter.NewFactory()
	config, ok := factory.CreateDefaultConfig().(*clickhouseexporter.Config)
	if !ok {
		t.Fatalf("the exporter's configuration is %T", factory.CreateDefaultConfig())
	}
	config.Endpoint = server
	config.Database = database
	// An asynchronous insert would become visible some time later.
	config.AsyncInsert = false
	exporter, err := factory.CreateTraces(ctx, exportertest.NewNopSettings(factory.Type()), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := exporter.Start(ctx, componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	if err := exporter.ConsumeTraces(ctx, traces()); err != nil {
		t.Fatal(err)
	}
	// Sends what is still queued.
	if err := exporter.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}

	mapping := clickhouse.OtelTraces()
	// As docs/sources.md recommends.
	mapping.Terminal = "SpanKind IN ('Server', 'Consumer')"
	ch := read(t, server, database, mapping)
	report, err := ch.Check(ctx, clickhouse.CheckOptions{Window: 24 * 365 * 100 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if report.Broken() || report.Sample.Rows != 3 {
		t.Errorf("%+v", report)
	}
	// Some versions of the exporter have Timestamp as the fourth column.
	if want := "ServiceName, SpanName, toDateTime(Timestamp)"; !strings.HasPrefix(report.Layout.SortKey, want) {
		t.Errorf("the exporter sorts by (%s), the preset is made for (%s)", report.Layout.SortKey, want)
	}

	scan := source.Scan{
		Tenants: source.Tenants{Names: []string{clickhouse.DefaultTenant}}, After: cursor.Position{StartTimeNS: base}, BeforeNS: base + 10,
		Statuses: []rules.Status{rules.Failed}, Limit: 10,
	}
	got, err := ch.Scan(ctx, scan)
	if err != nil {
		t.Fatal(err)
	}
	end := base + 3 + 1_500_000_000
	want := []rules.Exchange{{
		TenantID: clickhouse.DefaultTenant, StartTimeNS: base + 3, ExecutionID: "ab010000000000000000000000000000:0300000000000000",
		Environment: "production", Application: "orders", Route: "GET /orders", Status: rules.Failed, EndTimeNS: &end, DurationNS: 1_500_000_000,
		ErrorType: "java.net.ConnectException", ErrorMessage: "ERP refused", ErrorStack: "at x", CorrelationID: "ab010000000000000000000000000000",
		Attributes: map[string]string{
			"service.name": "orders", "deployment.environment.name": "production", "http.response.status_code": "503", "span.kind": "Server",
		},
	}}
	if diff := cmp.Diff(want, got.Exchanges); diff != "" {
		t.Error(diff)
	}
	scan.Statuses = []rules.Status{rules.Completed}
	if got, err := ch.Scan(ctx, scan); err != nil || len(got.Exchanges) != 2 {
		t.Errorf("%d completed spans, %v", len(got.Exchanges), err)
	}
	scan.Narrow = &source.Narrowing{Filter: rules.Filter{
		ErrorTypes: []string{"java.net.ConnectException"}, ErrorMessageMatches: "^ERP",
		Attributes: []rules.AttributeMatch{{Key: "http.response.status_code", Op: rules.AttributeEquals, Value: "503"}},
	}}
	if got, err := ch.Scan(ctx, scan); err != nil || len(got.Exchanges) != 1 {
		t.Errorf("%d matching spans, %v", len(got.Exchanges), err)
	}
}
