package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/alerts"
)

// InboxStates says whether an inbox has changed.
type InboxStates interface {
	// InboxState returns the present state of an inbox.
	InboxState(ctx context.Context, tenant string) (InboxState, error)
}

// InboxState is the state of an inbox, and what has changed in it.
type InboxState struct {
	// Fingerprint differs whenever a list of alerts or an alert in it would differ.
	// It is printable ASCII of at most 200 bytes.
	Fingerprint string
	Counts      alerts.Counts
	// Changed contains all alerts that have changed since the previous state, and possibly others,
	// at most [MaxChanged]. It is nil if they are unknown or too many.
	Changed []uuid.UUID
}

// MaxChanged bounds the alerts that an [InboxState] names.
const MaxChanged = 200

// writeTimeout is how long a page may take to accept one event.
const writeTimeout = 10 * time.Second

// maxMissed bounds the alerts that a page receives when it reconnects.
const maxMissed = 1000

// Missed finds what a reconnecting page has missed.
type Missed interface {
	// ChangedSince counts the alerts that changed after the state with a fingerprint, at most
	// limit. known is false for a text that is not a fingerprint.
	ChangedSince(ctx context.Context, tenant, fingerprint string, limit int64) (n int64, known bool, err error)
}

// eventStream writes a stream of events to its page.
type eventStream func(http.ResponseWriter) error

// VisitStreamEventsResponse returns when the stream has ended.
func (f eventStream) VisitStreamEventsResponse(w http.ResponseWriter) error { return f(w) }

// StreamEvents answers GET /events.
func (s *server) StreamEvents(ctx context.Context, req StreamEventsRequestObject) (StreamEventsResponseObject, error) {
	return eventStream(func(w http.ResponseWriter) error {
		l, err := s.hub.listen(ctx, tenantOf(ctx))
		if err != nil {
			return echo.NewHTTPError(http.StatusServiceUnavailable, "No stream can be opened now: "+err.Error()+"; try again later")
		}
		defer s.hub.leave(l)
		out := &eventWriter{w: w, control: http.NewResponseController(w), now: s.Now}
		defer out.release()
		// A client that has disconnected needs neither an answer nor a log entry.
		_ = s.stream(ctx, out, l, deref(req.Params.LastEventID))
		return nil
	}), nil
}

// stream writes the events that l receives until the page is gone or the hub cuts it off. It does
// not repeat an event that the page has seen.
func (s *server) stream(ctx context.Context, out *eventWriter, l *listener, seen string) error {
	if err := out.begin(s.Heartbeat); err != nil {
		return err
	}
	first := true
	heartbeat := time.NewTicker(s.Heartbeat)
	defer heartbeat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-heartbeat.C:
			if err := stillMay(ctx); err != nil {
				return err
			}
			if err := out.beat("", s.Heartbeat); err != nil {
				return err
			}
		case ev, open := <-l.events:
			if !open {
				return nil
			}
			if ev.id == seen {
				continue
			}
			data := AlertsEvent{Counts: countsAnswer(ev.counts)}
			if first && seen != "" {
				data.Missed = s.missed(ctx, seen)
			}
			if !first && ev.changed != nil {
				data.Changed = &ev.changed
			}
			seen, first = ev.id, false
			if err := out.event(ev.id, data); err != nil {
				return err
			}
		}
	}
}

// stillMay returns why the caller may not follow a stream any more. If this cannot be found out in
// time, it returns nil, so that no beat is delayed for long.
func stillMay(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, inboxTimeout)
	defer cancel()
	err := callOf(ctx).holds(asking)
	if status := statusOfHTTP(err); status == http.StatusUnauthorized || status == http.StatusForbidden {
		return err
	}
	return nil
}

// eventWriter writes server-sent events, each with its own deadline.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
}

// begin sends the head, the delay before reconnecting, and the first beat, after which a page
// notices silence.
func (o *eventWriter) begin(heartbeat time.Duration) error {
	h := o.w.Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	return o.beat("retry: 2000\n", heartbeat)
}

// beat shows the page that the stream is alive, and when to expect the next beat. A comment would
// keep the connection open as well, but browsers do not report comments.
func (o *eventWriter) beat(head string, every time.Duration) error {
	return o.named(head, "beat", BeatEvent{IntervalSeconds: every.Seconds()})
}

// missed returns what changed since the event with an id; nil if that is unknown. A page that gets
// nil reads its list again.
func (s *server) missed(ctx context.Context, id string) *MissedAlerts {
	if s.Missed == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, inboxTimeout)
	defer cancel()
	n, known, err := s.Missed.ChangedSince(ctx, tenantOf(ctx), id, maxMissed+1)
	if err != nil || !known {
		return nil
	}
	return &MissedAlerts{Alerts: min(n, maxMissed), More: n > maxMissed}
}

func (o *eventWriter) event(eventID string, what AlertsEvent) error {
	id := strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(eventID)
	return o.named("id: "+id+"\n", "alerts", what)
}

// named writes an event, after the fields of head.
func (o *eventWriter) named(head, name string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return o.write(head + "event: " + name + "\ndata: " + string(data) + "\n\n")
}

func (o *eventWriter) write(text string) error {
	if err := o.control.SetWriteDeadline(o.now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound write: %w", err)
	}
	if _, err := io.WriteString(o.w, text); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if err := o.control.Flush(); err != nil {
		return fmt.Errorf("flush event: %w", err)
	}
	return nil
}

// release removes the deadline from the connection, because the server does not set one for the
// next request.
func (o *eventWriter) release() { _ = o.control.SetWriteDeadline(time.Time{}) }
