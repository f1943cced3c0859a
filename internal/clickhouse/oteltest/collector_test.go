package oteltest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// configuration is a Collector's configuration as its operators write it, except that it listens on
// a socket: another process could take a port first.
const configuration = `
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: %q
        transport: unix
processors:
  batch:
    timeout: 100ms
exporters:
  clickhouse:
    endpoint: %q
    database: %s
    async_insert: false
service:
  telemetry:
    logs: {level: warn}
    metrics: {level: none}
  pipelines:
    traces:
      receivers: [otlp]
      processors: [batch]
      exporters: [clickhouse]
`

func factories() (otelcol.Factories, error) {
	receivers, receiversErr := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	processors, processorsErr := otelcol.MakeFactoryMap[processor.Factory](batchprocessor.NewFactory())
	exporters, exportersErr := otelcol.MakeFactoryMap[exporter.Factory](clickhouseexporter.NewFactory())
	return otelcol.Factories{
		Receivers: receivers, Processors: processors, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory(),
	}, errors.Join(receiversErr, processorsErr, exportersErr)
}

// newCollector returns a Collector that is configured by a file.
func newCollector(t *testing.T, file string) *otelcol.Collector {
	t.Helper()
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: factories, BuildInfo: component.NewDefaultBuildInfo(), DisableGracefulShutdown: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{"file:" + file}, ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
		}},
		LoggingOptions: []zap.Option{zap.AddStacktrace(zap.FatalLevel)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return collector
}

// TestTheCollectorTakesTheConfigurationOfTheComposeFile checks that a real Collector accepts
// deploy/collector.yaml, and rejects it with an unknown key.
func TestTheCollectorTakesTheConfigurationOfTheComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		file := filepath.Join(t.TempDir(), "collector.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "${env:CLICKHOUSE_PASSWORD}", "secret")), 0o600); err != nil {
			t.Fatal(err)
		}
		return newCollector(t, file).DryRun(t.Context())
	}
	if err := check(string(text)); err != nil {
		t.Error(err)
	}
	if err := check(strings.Replace(string(text), "create_schema", "make_schema", 1)); err == nil || !strings.Contains(err.Error(), "make_schema") {
		t.Errorf("a key that there is not: %v", err)
	}
}

// collect runs a Collector that writes to a database until the test ends, and returns the socket on
// which it receives spans. It only logs problems.
func collect(t *testing.T, server, database string) (socket string) {
	t.Helper()
	directory := t.TempDir()
	socket = filepath.Join(directory, "otlp")
	file := filepath.Join(directory, "collector.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, socket, server, database), 0o600); err != nil {
		t.Fatal(err)
	}
	collector := newCollector(t, file)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := collector.Run(context.Background()); err != nil {
			t.Errorf("collector: %v", err)
		}
	}()
	t.Cleanup(func() {
		collector.Shutdown()
		<-ended
	})
	return socket
}

// instrumented returns the tracer of a service that sends its spans to a socket, and a function
// that sends all ended spans.
func instrumented(ctx context.Context, t *testing.T, socket string) (tracer trace.Tracer, flush func()) {
	t.Helper()
	// A call waits until the Collector listens, at most until ctx ends.
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	sender, err := otlptracegrpc.New(ctx, otlptracegrpc.WithGRPCConn(connection), otlptracegrpc.WithTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(sender, sdktrace.WithExportTimeout(time.Minute)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "orders"), attribute.String("deployment.environment.name", "production"))))
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) })
	return provider.Tracer("oteltest"), func() {
		t.Helper()
		if err := provider.ForceFlush(ctx); err != nil {
			t.Fatalf("send spans: %v", err)
		}
	}
}

// sent is what the test knows about a span that it sent.
type sent struct {
	id, correlation, route string
	status                 rules.Status
	startNS, durationNS    int64
}

// send creates a span of a kind with the given begin and duration, and ends it.
func send(ctx context.Context, tracer trace.Tracer, name string, kind trace.SpanKind, startNS, durationNS int64, finish func(trace.Span)) (sent, context.Context) {
	within, s := tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(time.Unix(0, startNS)))
	if finish != nil {
		finish(s)
	}
	s.End(trace.WithTimestamp(time.Unix(0, startNS+durationNS)))
	of := s.SpanContext()
	return sent{
		id: of.TraceID().String() + ":" + of.SpanID().String(), correlation: of.TraceID().String(), route: name,
		status: rules.Completed, startNS: startNS, durationNS: durationNS,
	}, within
}

// traffic sends spans of every status, a parent and its child, and five that
// begin in the same nanosecond, and returns them in the order of their positions.
func traffic(ctx context.Context, tracer trace.Tracer) []sent {
	var all []sent
	parent, within := send(ctx, tracer, "GET /orders", trace.SpanKindServer, base, 900_000_000, func(s trace.Span) { s.SetStatus(codes.Ok, "") })
	child, _ := send(within, tracer, "SELECT orders", trace.SpanKindClient, base+1, 300_000_000, nil)
	refused, _ := send(ctx, tracer, "POST /orders", trace.SpanKindServer, base+2, 1_500_000_001, func(s trace.Span) {
		s.SetAttributes(attribute.Int("http.response.status_code", 503), attribute.String("customer", "Ærø \"42\""))
		s.RecordError(errors.New("dial: refused"), trace.WithStackTrace(true))
		s.SetStatus(codes.Error, "ERP refused")
	})
	refused.status = rules.Failed
	all = append(all, parent, child, refused)
	for i := range 5 {
		tie, _ := send(ctx, tracer, fmt.Sprint("job ", i), trace.SpanKindConsumer, base+3, int64(i), func(s trace.Span) {
			if i%2 == 0 {
				s.SetStatus(codes.Error, "")
			}
		})
		if i%2 == 0 {
			tie.status = rules.Failed
		}
		all = append(all, tie)
	}
	slices.SortFunc(all, func(a, b sent) int {
		return cursor.Position{StartTimeNS: a.startNS, ExecutionID: a.id}.Compare(cursor.Position{StartTimeNS: b.startNS, ExecutionID: b.id})
	})
	return all
}

// everything reads all exchanges in pages of one, so that each becomes the position of the next
// page.
func everything(ctx context.Context, t *testing.T, ch *clickhouse.Source) []rules.Exchange {
	t.Helper()
	var all []rules.Exchange
	for at := (cursor.Position{}); ; {
		page, err := ch.Scan(ctx, source.Scan{
			Tenants: source.Tenants{Names: []string{clickhouse.DefaultTenant}}, After: at, BeforeNS: base + 1_000, Statuses: []rules.Status{rules.Completed, rules.Failed}, Limit: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Exchanges) == 0 {
			return all
		}
		all, at = append(all, page.Exchanges...), page.Exchanges[0].Position()
	}
}

// await waits until a condition holds.
func await(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, ctx.Err())
		case <-again.C:
		}
	}
}

func TestACollectorWritesWhatThePresetReads(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, database := target(t)
	tracer, flush := instrumented(ctx, t, collect(t, server, database))
	want := traffic(ctx, tracer)
	flush()

	source := read(t, server, database, clickhouse.OtelTraces())
	var got []rules.Exchange
	await(ctx, t, "the Collector writes what it took", func() bool {
		got = everything(ctx, t, source)
		return len(got) >= len(want)
	})
	var seen []sent
	for i := range got {
		e := &got[i]
		seen = append(seen, sent{e.ExecutionID, e.CorrelationID, e.Route, e.Status, e.StartTimeNS, e.DurationNS})
		if e.Application != "orders" || e.Environment != "production" || e.EndedNS() != e.StartTimeNS+e.DurationNS {
			t.Errorf("%+v", e)
		}
	}
	if diff := cmp.Diff(want, seen, cmp.AllowUnexported(sent{})); diff != "" {
		t.Error(diff)
	}
	refused := got[2]
	if refused.ErrorType != "*errors.errorString" || refused.ErrorMessage != "ERP refused" || refused.ErrorStack == "" || refused.Attributes["customer"] != "Ærø \"42\"" {
		t.Errorf("%+v", refused)
	}
	agree(ctx, t, source, got)
}

// agree compares the matcher with what ClickHouse finds by the predicate of the same condition, and
// with the number that is expected.
func agree(ctx context.Context, t *testing.T, ch *clickhouse.Source, all []rules.Exchange) {
	t.Helper()
	second := int64(1500)
	both := []rules.Status{rules.Completed, rules.Failed}
	for name, c := range map[string]struct {
		scope  rules.Scope
		filter rules.Filter
		want   int
	}{
		"failed":       {want: 4},
		"completed":    {filter: rules.Filter{Statuses: both[:1]}, want: 4},
		"route":        {rules.Scope{Applications: []string{"orders"}, Routes: []string{"job *"}}, rules.Filter{}, 3},
		"elsewhere":    {rules.Scope{Environments: []string{"staging"}}, rules.Filter{Statuses: both}, 0},
		"child":        {rules.Scope{Routes: []string{"SELECT orders"}}, rules.Filter{Statuses: both}, 1},
		"slow":         {rules.Scope{}, rules.Filter{Statuses: both, MinDurationMS: &second}, 1},
		"attribute":    {rules.Scope{}, rules.Filter{Attributes: []rules.AttributeMatch{{Key: "http.response.status_code", Op: rules.AttributeMatches, Value: "^5"}}}, 1},
		"odd letters":  {rules.Scope{}, rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeEquals, Value: "Ærø \"42\""}}}, 1},
		"no exception": {rules.Scope{}, rules.Filter{ErrorTypes: []string{""}}, 3},
	} {
		matcher, err := rules.Compile(c.scope, c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var judged, found []string
		for i := range all {
			if matcher.Match(&all[i]) {
				judged = append(judged, all[i].ExecutionID)
			}
		}
		page, err := ch.Scan(ctx, source.Scan{
			Tenants: source.Tenants{Names: []string{clickhouse.DefaultTenant}}, BeforeNS: base + 1_000, Limit: 100,
			Statuses: both, Narrow: &source.Narrowing{Scope: c.scope, Filter: c.filter},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range page.Exchanges {
			found = append(found, page.Exchanges[i].ExecutionID)
		}
		if !slices.Equal(judged, found) || len(judged) != c.want {
			t.Errorf("%s: the matcher takes %v, ClickHouse %v, want %d", name, judged, found, c.want)
		}
	}
}

// read opens a database to which an exporter writes.
func read(t *testing.T, server, database string, mapping clickhouse.Mapping) *clickhouse.Source {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	source, err := clickhouse.Open(clickhouse.Options{URL: u.String(), Mapping: mapping, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}
