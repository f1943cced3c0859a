package app_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tocsin/rules"
)

// spans are those that a collector received, by name.
type spans struct {
	mu     sync.Mutex
	byName map[string][]*otlp.Span
	raw    bytes.Buffer
	token  string
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" && err == nil {
		var unzipped *gzip.Reader
		if unzipped, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(unzipped)
		}
	}
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = r.Header.Get("X-Token")
	_, _ = s.raw.Write(body)
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				s.byName[span.Name] = append(s.byName[span.Name], span)
			}
		}
	}
}

// of returns the spans with a name so far.
func (s *spans) of(name string) []*otlp.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.byName[name])
}

// linked returns the pass of the commit to which a notification links; nil if one of them has not
// arrived.
func (s *spans) linked(notification *otlp.Span) *otlp.Span {
	for _, c := range s.of("commit") {
		if bytes.Equal(c.SpanId, notification.Links[0].SpanId) && bytes.Equal(c.TraceId, notification.Links[0].TraceId) {
			for _, p := range s.of("pass") {
				if bytes.Equal(p.SpanId, c.ParentSpanId) {
					return p
				}
			}
		}
	}
	return nil
}

// TestTracesLeadFromTheExchangeToTheReceiver has one process that raises an alert and attempts its
// message, which the receiver rejects at first, and another one that repeats it. A collector gets
// both parts of one trace.
func TestTracesLeadFromTheExchangeToTheReceiver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := &spans{byName: map[string][]*otlp.Span{}}
	server := httptest.NewServer(got)
	t.Cleanup(server.Close)
	settings := []string{
		"TOCSIN_TRACES_URL=" + server.URL, "TOCSIN_TRACES_SHARE=1", "TOCSIN_RETRY_SCHEDULE=1s,1s,1s,1s,1s", "OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_EXPORTER_OTLP_HEADERS=x-token=hidden",
	}
	rule := w.rule(w.webhook("ops"))
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	first := w.serve(settings...)
	w.until("the rule is armed", func() bool { return len(got.of("pass")) > 0 })
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	now := w.ch.Now(t)
	w.ch.Insert(t, rules.Exchange{
		TenantID: tenant, StartTimeNS: now, EndTimeNS: &now, ExecutionID: traceID + ":" + spanID, Status: rules.Failed, ErrorMessage: "the card 4242 is refused",
	})
	w.until("an attempt, and the pass whose commit its notification links to", func() bool {
		notifications := got.of("notification")
		return len(got.of("attempt")) > 0 && len(notifications) > 0 && got.linked(notifications[0]) != nil
	})
	// The line is logged once the outcome is stored, which is after the span has ended.
	traced := "trace_id=" + hex.EncodeToString(got.of("notification")[0].TraceId)
	w.until("a line of the log that names the trace", func() bool { return strings.Contains(first.logged.String(), traced) })
	first.kill()
	w.receiver.respond(nil)
	second := w.serve(settings...)
	var delivered *otlp.Span
	w.until("a success", func() bool {
		for _, a := range got.of("attempt") {
			if a.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR {
				delivered = a
			}
		}
		return delivered != nil
	})
	notification := got.of("notification")[0]
	attempts := got.of("attempt")
	for _, a := range attempts {
		if !bytes.Equal(a.TraceId, notification.TraceId) || !bytes.Equal(a.ParentSpanId, notification.SpanId) {
			t.Errorf("an attempt is in the trace %x below %x; the notification is %x in %x", a.TraceId, a.ParentSpanId, notification.SpanId, notification.TraceId)
		}
		if len(a.Links) != 2 || hex.EncodeToString(a.Links[0].TraceId) != traceID || hex.EncodeToString(a.Links[0].SpanId) != spanID {
			t.Fatalf("an attempt links to %v, want the exchange's own span and the commit", a.Links)
		}
		if commit := notification.Links[0]; !bytes.Equal(a.Links[1].TraceId, commit.TraceId) || !bytes.Equal(a.Links[1].SpanId, commit.SpanId) {
			t.Errorf("an attempt links to %v, want the commit %v", a.Links[1], commit)
		}
	}
	id := w.column(`select replace(notification_id::text, '-', '') from notification where rule_id = $1`, rule.ID)
	if len(id) != 1 || hex.EncodeToString(notification.TraceId) != id[0] {
		t.Errorf("the trace of the notification %v is %x", id, notification.TraceId)
	}
	if len(got.of("read")) == 0 {
		t.Error("there are no reads")
	}
	<-second.terminate(t)
	got.mu.Lock()
	defer got.mu.Unlock()
	if got.token != "hidden" {
		t.Errorf("the collector was sent the token %q", got.token)
	}
	for _, secret := range []string{"4242", "hidden", w.receiver.url + "/ops", key} {
		if strings.Contains(got.raw.String(), secret) {
			t.Errorf("the traces hold %q", secret)
		}
	}
}
