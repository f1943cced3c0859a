package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tocsin/api"
)

// TestAMonitorAnswersProbesAlone checks that a process without the API is monitored in the same way
// as one with it.
func TestAMonitorAnswersProbesAlone(t *testing.T) {
	var down error
	now := time.Now()
	server, err := api.NewMonitor(api.Options{
		Checks:       []api.Check{{Name: "postgres", Required: true, Ask: func(context.Context) error { return down }}},
		Metrics:      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "tocsin_outbox_depth 3") }),
		MetricsToken: "scrape", ListenAddress: "0.0.0.0:8080", PublicURL: "https://tocsin.example",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(status int, body, path string, header ...string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Host = "10.1.2.3:8080"
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
		}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		if answer.Code != status || !strings.Contains(answer.Body.String(), body) {
			t.Errorf("%s %v: %d %s, want %d %s", path, header, answer.Code, answer.Body, status, body)
		}
	}
	want(200, `"ok"`, "/healthz")
	want(200, `"ready"`, "/readyz")
	want(401, "unauthorized", "/metrics")
	want(200, "tocsin_outbox_depth 3", "/metrics", "Authorization", "Bearer scrape")
	want(421, "", "/metrics", "Authorization", "Bearer scrape", "Host", "evil.example")
	for _, path := range []string{"/", "/api/v1/rules", "/api/openapi.json", "/slack/interactions/x"} {
		want(404, "not_found", path)
	}
	down, now = errors.New("refused"), now.Add(time.Hour)
	want(503, `"missing":["postgres"]`, "/readyz")
	want(200, `"ok"`, "/healthz")
	server.Drain()
	want(503, "stopping", "/readyz")
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
