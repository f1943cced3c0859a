package tracing

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/notify"
	"tocsin/rules"
)

// The names of spans.
const (
	spanPass         = "pass"
	spanRead         = "read"
	spanCommit       = "commit"
	spanNotification = "notification"
	spanAttempt      = "attempt"
)

// Keys of attributes that several kinds of spans have.
const (
	keyPartition     = attribute.Key("tocsin.partition")
	keyAlerts        = attribute.Key("tocsin.alerts")
	keyNotifications = attribute.Key("tocsin.notifications")
	keyAlertID       = attribute.Key("tocsin.alert.id")
	keyWebhookID     = attribute.Key("tocsin.webhook.id")
	keyReason        = attribute.Key("tocsin.notification.reason")
	// keyWorthwhile says that a pass is exported regardless of the share.
	keyWorthwhile = attribute.Key("tocsin.worthwhile")
)

// fail marks a span as failed. It records the kind of the error and not its text, which may quote a
// statement or an exchange. The log has the text, with the id of the trace.
func fail(s trace.Span, kind string) {
	s.SetStatus(codes.Error, kind)
	s.SetAttributes(attribute.String("error.type", kind))
}

// Pass begins the span of a pass over a partition. It returns the context for the pass, and a
// function that ends the span.
func (t *Tracer) Pass(ctx context.Context, partition int) (context.Context, func(evaluator.Result, error)) {
	ctx, span := t.tracer.Start(ctx, spanPass, trace.WithNewRoot(), trace.WithAttributes(keyPartition.Int(partition)))
	return ctx, func(r evaluator.Result, err error) {
		span.SetAttributes(keyAlerts.Int(r.Alerts), keyNotifications.Int(r.Notifications), attribute.Int("tocsin.scanned", r.Scanned),
			attribute.Int("tocsin.late", r.Late), attribute.Float64("tocsin.lag_seconds", r.Lag.Seconds()), attribute.Float64("tocsin.backlog_seconds", r.Backlog.Seconds()),
			keyWorthwhile.Bool(err != nil || r.Alerts+r.Notifications+r.Failed > 0))
		switch {
		case errors.Is(err, evaluator.ErrStale):
			fail(span, "stale")
		case err != nil:
			fail(span, "failed")
		}
		span.End()
	}
}

// Source returns a source that records its queries as spans.
func (t *Tracer) Source(s source.Source) source.Source { return queries{s, t} }

type queries struct {
	source.Source

	*Tracer
}

// read begins the span of a query. The returned function ends it.
func (t *Tracer) read(ctx context.Context, what string) (context.Context, func(rows int, err error)) {
	ctx, span := t.tracer.Start(ctx, spanRead, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "clickhouse"), attribute.String("tocsin.read", what)))
	return ctx, func(rows int, err error) {
		span.SetAttributes(attribute.Int("db.response.returned_rows", rows))
		switch {
		case errors.Is(err, source.ErrTooMuch):
			fail(span, "too much")
		case err != nil:
			fail(span, "failed")
		}
		span.End()
	}
}

// Observe reads the clock and fingerprints.
func (s queries) Observe(ctx context.Context, q source.ObserveQuery) (source.Observation, error) {
	ctx, end := s.read(ctx, "fingerprints")
	seen, err := s.Source.Observe(ctx, q)
	end(len(seen.Fingerprints), err)
	return seen, err
}

// RowCounts counts rows.
func (s queries) RowCounts(ctx context.Context, q source.RowCountQuery) (source.RowCounts, error) {
	ctx, end := s.read(ctx, "row counts")
	counts, err := s.Source.RowCounts(ctx, q)
	end(len(counts.Counts), err)
	return counts, err
}

// Scan reads exchanges.
func (s queries) Scan(ctx context.Context, q source.Scan) (source.Page, error) {
	ctx, end := s.read(ctx, "exchanges")
	page, err := s.Source.Scan(ctx, q)
	end(len(page.Exchanges), err)
	return page, err
}

// Windows returns an evaluation of windows that is recorded as a span.
func (t *Tracer) Windows(w evaluator.Windows) evaluator.Windows { return windows{w, t} }

type windows struct {
	evaluator.Windows

	*Tracer
}

// Evaluate evaluates window rules.
func (w windows) Evaluate(ctx context.Context, request window.Request) window.Outcome {
	ctx, end := w.read(ctx, "windows")
	outcome := window.Outcome{SourceErr: errPanicked}
	defer func() { end(len(outcome.Changes), outcome.SourceErr) }()
	outcome = w.Windows.Evaluate(ctx, request)
	return outcome
}

// errPanicked is the error of an evaluation that does not return.
var errPanicked = errors.New("panicked")

// Store returns a store that records its commits, and the notifications that they write, as spans.
func (t *Tracer) Store(s evaluator.Store) evaluator.Store { return store{s, t} }

type store struct {
	evaluator.Store

	*Tracer
}

// Commit writes a batch.
func (s store) Commit(ctx context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	ctx, span := s.tracer.Start(ctx, spanCommit, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "postgresql"), keyPartition.Int(b.Partition), attribute.Int64("tocsin.revision", b.Revision)))
	defer span.End()
	s.name(span.SpanContext(), &b)
	done, err := s.Store.Commit(ctx, b)
	switch {
	case errors.Is(err, evaluator.ErrStale):
		fail(span, "stale")
	case errors.Is(err, evaluator.ErrRefused):
		fail(span, "refused")
	case err != nil:
		fail(span, "failed")
	}
	if err != nil {
		return done, err
	}
	written := 0
	for _, n := range done.Notifications {
		written += n
	}
	span.SetAttributes(keyAlerts.Int(len(done.Inserted)), keyNotifications.Int(written))
	if written > 0 {
		s.begin(ctx, span.SpanContext(), &b, &done)
	}
	return done, nil
}

// name makes traced notifications name the commit that writes them, for their attempts.
func (t *Tracer) name(commit trace.SpanContext, b *evaluator.Batch) {
	of := func(list []notify.Notification) {
		for i := range list {
			if list[i].CommitSpan = nil; t.samples(trace.TraceID(list[i].ID)) {
				list[i].CommitSpan = encode(commit)
			}
		}
	}
	of(b.Notifications)
	for i := range b.Changes {
		of(b.Changes[i].Notifications)
	}
}

// begin makes the root spans of the traced notifications that a commit wrote.
func (t *Tracer) begin(ctx context.Context, commit trace.SpanContext, b *evaluator.Batch, done *evaluator.Committed) {
	exchanges := make(map[uuid.UUID]*rules.Exchange, len(b.Instances))
	for i := range b.Instances {
		exchanges[b.Instances[i].ID] = &b.Instances[i].Exchange
	}
	of := func(list []notify.Notification) {
		for i := range list {
			if n := &list[i]; t.samples(trace.TraceID(n.ID)) && (slices.Contains(done.Inserted, n.AlertID) || slices.Contains(done.Changed, n.AlertID)) {
				t.beginOne(ctx, commit, n, exchanges[n.AlertID])
			}
		}
	}
	of(b.Notifications)
	for i := range b.Changes {
		of(b.Changes[i].Notifications)
	}
}

func (t *Tracer) beginOne(ctx context.Context, commit trace.SpanContext, n *notify.Notification, e *rules.Exchange) {
	links := []trace.Link{{SpanContext: commit}}
	if e != nil {
		links = append(links, linkTo(e.ExecutionID)...)
	}
	_, span := t.tracer.Start(context.WithValue(ctx, derived{}, root(n.ID)), spanNotification, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(links...), trace.WithAttributes(
		keyAlertID.String(n.AlertID.String()), keyWebhookID.String(n.WebhookID.String()), attribute.String("tocsin.rule.id", n.RuleID.String()),
		keyReason.String(string(n.Reason))))
	span.End()
}

// linkTo returns the link to the span of an exchange, if the exchange is a span.
func linkTo(executionID string) []trace.Link {
	if c := ofExchange(executionID); c.IsValid() {
		return []trace.Link{{SpanContext: c}}
	}
	return nil
}
