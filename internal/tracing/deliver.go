package tracing

import (
	"context"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"tocsin/notify"
)

// Sender returns a sender that records its attempts as spans.
func (t *Tracer) Sender(s notify.Sender) notify.Sender { return sender{s, t} }

type sender struct {
	notify.Sender

	*Tracer
}

// Send makes an attempt.
func (s sender) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	id := trace.TraceID(d.NotificationID)
	if !s.samples(id) {
		return s.Sender.Send(ctx, d)
	}
	links := linkTo(d.Alert.Exchange.ExecutionID)
	if commit := decode(d.CommitSpan); commit.IsValid() {
		links = append(links, trace.Link{SpanContext: commit})
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	if isCommitted(d) {
		ctx = trace.ContextWithRemoteSpanContext(ctx, root(d.NotificationID))
	} else {
		// No commit of a partition wrote the notification: each attempt is a root span of the
		// trace.
		ctx = context.WithValue(ctx, derived{}, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id}))
		options = append(options, trace.WithNewRoot())
		links = append(links, s.members(d)...)
	}
	ctx, span := s.tracer.Start(ctx, spanAttempt, append(options, trace.WithLinks(links...), trace.WithAttributes(attributesOf(d)...))...)
	defer span.End()
	outcome := s.Sender.Send(ctx, d)
	span.SetAttributes(attribute.String("tocsin.verdict", outcome.Verdict.String()))
	if outcome.StatusCode != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", outcome.StatusCode))
	}
	if outcome.Verdict != notify.VerdictDelivered {
		fail(span, outcome.Verdict.String())
	}
	return outcome
}

// isCommitted reports whether a pass wrote a notification, so that it has a root span.
func isCommitted(d *notify.Delivery) bool {
	return !d.Alert.Health && slices.Contains([]notify.Reason{notify.ReasonFired, notify.ReasonReminder, notify.ReasonResolved}, d.Reason)
}

// mostMembers bounds how many notifications a digest links to.
const mostMembers = 32

// members links a digest to its traced notifications.
func (t *Tracer) members(d *notify.Delivery) (links []trace.Link) {
	if d.Digest == nil {
		return nil
	}
	for _, alert := range d.Digest.Alerts {
		n := notify.ID(alert, d.Webhook.ID, notify.ReasonFired, 0)
		if len(links) < mostMembers && t.samples(trace.TraceID(n)) {
			links = append(links, trace.Link{SpanContext: root(n)})
		}
	}
	return links
}

// attributesOf describes an attempt without secrets: of the webhook's URL only the host.
func attributesOf(d *notify.Delivery) []attribute.KeyValue {
	list := []attribute.KeyValue{
		keyWebhookID.String(d.Webhook.ID.String()), keyReason.String(string(d.Reason)), attribute.String("tocsin.webhook.kind", string(d.Webhook.Kind)),
		attribute.Int("tocsin.attempt", d.Attempt), attribute.String("http.request.method", "POST"),
	}
	if d.Alert.ID != uuid.Nil {
		list = append(list, keyAlertID.String(d.Alert.ID.String()))
	}
	if u, err := url.Parse(d.Webhook.URL); err == nil && u.Host != "" {
		list = append(list, attribute.String("server.address", u.Hostname()))
	}
	return list
}
