package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

// rest is the API over the world's databases. Whatever it answers is held
// against its description.
type rest struct {
	t      testing.TB
	server *api.Server
	routes routers.Router
	// seen holds the classes of status that each operation answered with.
	seen map[string]map[int]bool
}

func (w *world) rest() *rest {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	sender, err := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(sender.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example"})
	if err != nil {
		w.t.Fatal(err)
	}
	record := w.db.Record()
	r := &rest{t: w.t, seen: map[string]map[int]bool{}}
	r.server, err = api.New(api.Options{
		Rules: w.db.Rules(), Webhooks: w.db.Webhooks(), Inbox: w.db.Inbox(), Bulk: w.db.Inbox(), Reading: w.db.Inbox(), Folder: w.db.Inbox(),
		Pulse: w.db.Inbox(), Notifications: record, Status: record, Replicas: w.db.Replicas(),
		Renderer: renderer, Sender: sender,
		Reconciler: &evaluator.Reconciler{Source: source, Alerts: w.db.Reconciliation()},
		Checks:     []api.Check{{Name: "postgres", Ask: w.db.Ping}, {Name: "clickhouse", Ask: source.Ping}},
		CheckRule:  template.CheckRule,
		CheckWebhook: func(h *notify.Webhook) []fault.Field {
			fields := append(webhook.CheckTarget(h), webhook.CheckHeaders(h.Headers)...)
			return append(fields, append(webhook.CheckSecret(h.SigningSecret), webhook.CheckBody(h.Kind, h.BodyTemplate)...)...)
		},
		Web: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler), Now: time.Now, ReplicaID: "test", Version: "test",
		ListenAddress: "127.0.0.1:8080", PulseInterval: 20 * time.Millisecond,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := r.server.Shutdown(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	description, err := api.GetSpec()
	if err != nil {
		w.t.Fatal(err)
	}
	if r.routes, err = legacy.NewRouter(description); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// do sends a request with a JSON body, if any, and demands a status. Header
// holds names and values.
func (r *rest) do(status int, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), method, "/api/v1"+path, strings.NewReader(body))
	req.Host = "localhost:8080"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.server.ServeHTTP(w, req)
	if w.Code != status {
		r.t.Fatalf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	route, parameters, err := r.routes.FindRoute(req)
	if err != nil {
		r.t.Fatalf("%s %s is no operation: %v", method, path, err)
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route, PathParams: parameters},
		Status:                 w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		r.t.Errorf("%s %s: the answer is not as described: %v\n%s", method, path, err, w.Body)
	}
	id := route.Operation.OperationID
	if r.seen[id] == nil {
		r.seen[id] = map[int]bool{}
	}
	r.seen[id][w.Code/100] = true
	return w
}

// answerOf decodes a body.
func answerOf[T any](tb testing.TB, w *httptest.ResponseRecorder) T {
	tb.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		tb.Fatalf("%v: %s", err, w.Body)
	}
	return v
}
