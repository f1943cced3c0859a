package tracing

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// randomParts is the number of values of the random part of a trace id: its last 56 bits, as in W3C
// Trace Context. They are random in the id of a notification as well, because they are part of a
// hash.
const randomParts = 1 << 56

// samples reports whether a trace is in the share. Replicas with the same share agree on it.
func (t *Tracer) samples(id trace.TraceID) bool {
	return binary.BigEndian.Uint64(id[8:])%randomParts < t.threshold
}

// root returns the span that the commit made for a notification.
func root(notification uuid.UUID) trace.SpanContext {
	var span trace.SpanID
	copy(span[:], notification[8:])
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(notification), SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
}

// ofExchange returns the span of an exchange of the preset otel_traces, whose id is trace id and
// span id in hexadecimal digits, separated by a colon. The span is not valid if the exchange is not
// a span.
func ofExchange(executionID string) trace.SpanContext {
	traceID, spanID, _ := strings.Cut(executionID, ":")
	var c trace.SpanContextConfig
	var span trace.SpanID
	if len(traceID) != hex.EncodedLen(len(c.TraceID)) || len(spanID) != hex.EncodedLen(len(span)) {
		return trace.SpanContext{}
	}
	if _, err := hex.Decode(c.TraceID[:], []byte(traceID)); err != nil {
		return trace.SpanContext{}
	}
	if _, err := hex.Decode(span[:], []byte(spanID)); err != nil {
		return trace.SpanContext{}
	}
	c.SpanID, c.Remote = span, true
	return trace.NewSpanContext(c)
}

// encode returns the ids of a span, 24 bytes.
func encode(c trace.SpanContext) []byte {
	traceID, spanID := c.TraceID(), c.SpanID()
	return append(traceID[:], spanID[:]...)
}

// decode returns the span with such ids; for anything else, a span that is not valid.
func decode(ids []byte) trace.SpanContext {
	var c trace.SpanContextConfig
	if len(ids) == len(c.TraceID)+len(c.SpanID) {
		copy(c.SpanID[:], ids[copy(c.TraceID[:], ids):])
		c.TraceFlags, c.Remote = trace.FlagsSampled, true
	}
	return trace.NewSpanContext(c)
}

// derived is the context key of the span context for the next root span.
type derived struct{}

// ids makes the ids of spans: random ones, except for roots whose ids are derived.
type ids struct{}

// NewIDs returns the ids of a root.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if c, ok := ctx.Value(derived{}).(trace.SpanContext); ok {
		if c.HasSpanID() {
			return c.TraceID(), c.SpanID()
		}
		return c.TraceID(), g.NewSpanID(ctx, c.TraceID())
	}
	var id trace.TraceID
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID returns the id of a child.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}
