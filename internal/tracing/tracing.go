// Package tracing exports what a replica does to an OpenTelemetry collector, by OTLP over HTTP.
//
// There are two kinds of traces:
//
//	pass ─┬─ read                      one for each pass over a partition
//	      └─ commit ◀──link── notification ─── attempt     one for each notification
//	                               └──link──▶ the exchange's own span
//
// The id of a notification is the id of its trace, and the id of the span that the commit made is
// derived from it as well. So the attempts of any replica, however much later, belong to the trace
// that the commit began, although none of this is stored. A log line that names a notification also
// names its trace.
//
// Whether a notification is traced follows from its id: all replicas with the same share agree. A
// pass that raised something or failed is always exported, so that the links of notifications lead
// somewhere. Of the other passes, the share is exported.
//
// Spans contain ids, counts, hosts and verdicts. They contain no URL, header, body or text of an
// exchange.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options configures a [Tracer]. Logger is required.
type Options struct {
	// URL is a collector that accepts OTLP over HTTP, without the path /v1/traces.
	URL string
	// Share is the share of the traces that are exported, from 0 to 1.
	Share float64
	// Replica and Version name this process.
	Replica, Version string
	Logger           *slog.Logger
}

// Check returns what is wrong with an address and a share.
func Check(address string, share float64) error {
	u, err := url.Parse(address)
	// The address must not contain a secret: the exporter takes headers from
	// OTEL_EXPORTER_OTLP_HEADERS.
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return errors.New("the URL must have the form http://collector:4318, without user and parameters")
	}
	if math.IsNaN(share) || share < 0 || share > 1 {
		return fmt.Errorf("the share is %v; it must be from 0 to 1", share)
	}
	return nil
}

// CheckEnvironment returns what is wrong with the variable of OpenTelemetry that has attributes of the resource.
func CheckEnvironment() error {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	text := strings.TrimSpace(os.Getenv(name))
	for pair := range strings.SplitSeq(text, ",") {
		if text != "" && !strings.Contains(pair, "=") {
			return fmt.Errorf("%s: %q is not of the form key=value; correct it, or remove it", name, pair)
		}
	}
	return nil
}

// Tracer makes spans and exports them.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	logger   *slog.Logger
	// threshold is above the random part of the traces that are exported.
	threshold uint64
}

// exportTimeout bounds one export, and the export of the rest when the process ends.
const exportTimeout = 5 * time.Second

// New returns a tracer. It does not connect yet. The exporter reads settings that are not in the
// options, such as headers, certificates or further attributes of the resource, from the variables
// that OpenTelemetry defines.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if err := Check(o.URL, o.Share); err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.URL, "/")+"/v1/traces"), otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	if err := CheckEnvironment(); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	self, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "tocsin"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Replica),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return newTracer(sdktrace.NewBatchSpanProcessor(&complaining{SpanExporter: exporter, logger: o.Logger}), self, &o), nil
}

func newTracer(to sdktrace.SpanProcessor, self *resource.Resource, o *Options) *Tracer {
	t := &Tracer{logger: o.Logger, threshold: uint64(math.Round(o.Share * randomParts))}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(self), sdktrace.WithIDGenerator(ids{}), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithSpanProcessor(newPasses(to, t.samples)))
	t.tracer = t.provider.Tracer("tocsin")
	return t
}

// Close exports the rest, within some seconds. Spans that cannot be exported in this time are lost.
func (t *Tracer) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.logger.WarnContext(ctx, "the last traces not exported; check TOCSIN_TRACES_URL and the collector", slog.Any("error", err))
	}
}

// complaining logs that traces cannot be exported, once until they can be exported again.
type complaining struct {
	sdktrace.SpanExporter

	logger  *slog.Logger
	failing atomic.Bool
}

// ExportSpans exports spans. Its error is always nil, because it logs failures itself.
func (c *complaining) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !c.failing.Swap(true):
		c.logger.WarnContext(ctx, "traces not exported; check TOCSIN_TRACES_URL and the collector", slog.Any("error", err))
	case err == nil && c.failing.Swap(false):
		c.logger.InfoContext(ctx, "traces are exported again")
	}
	return nil
}
