package tracing

import (
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// keyNotification is the log attribute with the id of a notification.
const keyNotification = "notification_id"

// Handler returns a handler that adds trace_id and span_id to what is logged within a span, and trace_id to what is
// logged about a notification.
func Handler(next slog.Handler) slog.Handler { return &handler{Handler: next} }

type handler struct {
	slog.Handler

	// notification is the id of the notification that the logger is about, if any.
	notification string
}

// Handle logs a record.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
		return h.Handler.Handle(ctx, r)
	}
	about := h.notification
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == keyNotification {
			about = a.Value.String()
		}
		return about == ""
	})
	if id, err := uuid.Parse(about); err == nil {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", hex.EncodeToString(id[:])))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that logs attributes with every record.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	about := h.notification
	for _, a := range attrs {
		if a.Key == keyNotification {
			about = a.Value.String()
		}
	}
	return &handler{Handler: h.Handler.WithAttrs(attrs), notification: about}
}

// WithGroup returns a handler whose further attributes belong to a group.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{Handler: h.Handler.WithGroup(name), notification: h.notification}
}
