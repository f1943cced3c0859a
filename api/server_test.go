package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tocsin/api"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/access"
	"tocsin/internal/apitest"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

// bench is a server with stores in memory. Each of its responses is checked against the API's
// description.
type bench struct {
	t        *testing.T
	server   *api.Server
	rules    *ruleMemory
	webhooks *webhookMemory
	inbox    *inboxMemory
	bulk     *bulkMemory
	views    *viewMemory
	sender   *senderMemory
	past     *pastMemory
	records  *recordMemory
	beat     *beat
	log      *lockedBuffer
}

func newBench(t *testing.T, change ...func(*api.Options)) *bench {
	t.Helper()
	b := &bench{
		t: t, rules: newRuleMemory(), webhooks: newWebhookMemory(), inbox: newInboxMemory(), bulk: &bulkMemory{}, views: &viewMemory{}, sender: &senderMemory{}, past: &pastMemory{}, records: newRecordMemory(),
		beat: &beat{fingerprint: "1"}, log: &lockedBuffer{},
	}
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example"})
	if err != nil {
		t.Fatal(err)
	}
	texts, err := template.NewTexts()
	if err != nil {
		t.Fatal(err)
	}
	o := api.Options{
		Rules: b.rules, Webhooks: b.webhooks, Silences: struct{ api.SilenceStore }{}, Routing: struct{ api.RoutingStore }{}, Inbox: b.inbox, Notifications: b.records, InboxStates: b.beat,
		Bulk: b.bulk, Handling: b.inbox, Teams: &teamMemory{api.TeamRecord{Version: 1}}, Reading: b.bulk, Folder: b.bulk, Issues: b.bulk, Views: b.views, Activity: b.inbox, Renderer: renderer, Sender: b.sender,
		Previewer: b.past, Exchanges: b.past, Explainer: b.past, Texts: texts,
		Status:       statusFunc(func() (api.SystemStatus, error) { return api.SystemStatus{Rules: 2, EnabledRules: 1}, nil }),
		Past:         historyFunc(func() (api.SystemHistory, error) { return api.SystemHistory{}, nil }),
		Replicas:     replicasFunc(func() ([]api.ReplicaRecord, error) { return nil, nil }),
		Keys:         keysFunc(func() ([]api.KeyUse, error) { return nil, nil }),
		Reconciler:   reconcilerFunc(func(time.Duration) (reconcile.Reconciliation, error) { return reconcile.Reconciliation{}, nil }),
		CheckRule:    template.CheckRule,
		CheckWebhook: checkWebhook,
		Web: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic(errors.New("boom"))
			}
			_, _ = io.WriteString(w, "the application")
		}),
		Authenticator: access.NewAuthenticator(access.AuthenticatorOptions{}),
		Users:         struct{ api.UserStore }{},
		Tokens:        struct{ api.TokenStore }{},
		Audit:         struct{ api.AuditReader }{},
		Identify:      api.Everybody(api.Identity{Tenant: "acme", Actor: "ada"}),
		ReplicaID:     "replica-1",
		Version:       "1.2.3",
		ListenAddress: "127.0.0.1:8080",
		PublicURL:     "https://tocsin.example",
		Log:           slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:           time.Now,
		Clock:         func(context.Context) (time.Time, error) { return time.Now(), nil },
	}
	for _, f := range change {
		f(&o)
	}
	server, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.server = server
	return b
}

func checkWebhook(w *notify.Webhook) []fault.Field {
	fields := append(webhook.CheckTarget(w), webhook.CheckHeaders(w.Headers)...)
	return append(fields, append(webhook.CheckSecret(w.SigningSecret), webhook.CheckBody(w.Kind, w.BodyTemplate)...)...)
}

// answer is a response that has been read completely.
type answer struct {
	t *testing.T
	*httptest.ResponseRecorder
}

// do sends a request with a JSON body, if any; header contains alternating names and values.
func (b *bench) do(method, target, body string, header ...string) answer {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost:8080"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	apitest.Hold(b.t, r, w)
	return answer{b.t, w}
}

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.Code != status {
		a.t.Fatalf("status %d, want %d: %s", a.Code, status, a.Body)
	}
	return a
}

// into decodes the body.
func into[T any](a answer) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.Body.Bytes(), &v); err != nil {
		a.t.Fatalf("%v: %s", err, a.Body)
	}
	return v
}

// problem returns the problem details, which must be complete.
func (a answer) problem(status int, code string) api.Problem {
	a.t.Helper()
	a.want(status)
	p := into[api.Problem](a)
	if kind := a.Header().Get("Content-Type"); kind != "application/problem+json" {
		a.t.Errorf("Content-Type %q", kind)
	}
	if p.Status != status || p.Code != code || p.Title == "" || p.RequestID == "" || p.RequestID != a.Header().Get("X-Request-Id") {
		a.t.Errorf("problem %+v, want status %d and code %s", p, status, code)
	}
	return p
}

// lockedBuffer is a log to which handlers may write while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const ruleBody = `{"name":"Failed orders","fireMode":"PER_EXCHANGE","severity":"CRITICAL","scope":{"applications":["orders"]}}`

func TestNewNamesEveryMissingOption(t *testing.T) {
	_, err := api.New(api.Options{})
	for _, name := range []string{"Rules", "Webhooks", "Inbox", "Bulk", "Reading", "Folder", "Issues", "Activity", "Previewer", "Exchanges", "Explainer", "Texts", "Renderer", "Sender", "Notifications", "Status", "Past", "InboxStates", "CheckRule", "CheckWebhook", "Web", "Log", "Now"} {
		if err == nil || !strings.Contains(err.Error(), "Options."+name+" ") {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	b := newBench(t)
	b.do("GET", "/api/v1/nothing", "").problem(404, "not_found")
	b.do("GET", "/api/v2/rules", "").problem(404, "not_found")
	b.do("PATCH", "/api/v1/rules", "").problem(405, "method_not_allowed")
	b.do("POST", "/inbox", "").problem(405, "method_not_allowed")
	if got := b.do("GET", "/inbox/1", "").want(200); got.Body.String() != "the application" || got.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("page %q with headers %v", got.Body, got.Header())
	}
}

func TestFailuresShowNothingButTheRequestID(t *testing.T) {
	b := newBench(t)
	b.inbox.err = errors.New("password=hunter2 refused")
	p := b.do("GET", "/api/v1/alerts?q=geheim", "").problem(500, "internal")
	if p.Detail != nil {
		t.Errorf("detail %q", *p.Detail)
	}
	if log := b.log.String(); !strings.Contains(log, p.RequestID) || !strings.Contains(log, "hunter2") || strings.Contains(log, "geheim") {
		t.Errorf("the log must hold the request id and the error, and no query: %s", log)
	}
	p = b.do("GET", "/panic", "").problem(500, "internal")
	if log := b.log.String(); !strings.Contains(log, "panic in a handler") || !strings.Contains(log, p.RequestID) {
		t.Errorf("log %s", log)
	}
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	b := newBench(t)
	for _, host := range []string{"localhost", "LOCALHOST:1", "ui.localhost:8080", "127.0.0.1:8080", "[::1]:8080", "tocsin.example", "tocsin.example."} {
		b.do("GET", "/api/v1/alerts/counts", "", "Host", host).want(200)
	}
	for _, host := range []string{"evil.example", "localhost.evil.example", "192.0.2.1:8080", "tocsin.example.evil", ""} {
		b.do("GET", "/api/v1/alerts/counts", "", "Host", host).problem(421, "misdirected_request")
		b.do("GET", "/", "", "Host", host).problem(421, "misdirected_request")
	}
	b.do("GET", "/healthz", "", "Host", "10.1.2.3").want(200)

	b.do("POST", "/api/v1/rules", ruleBody, "Sec-Fetch-Site", "cross-site").problem(403, "forbidden")
	b.do("POST", "/api/v1/rules", ruleBody, "Origin", "https://evil.example").problem(403, "forbidden")
	b.do("POST", "/api/v1/rules", ruleBody, "Origin", "https://tocsin.example", "Sec-Fetch-Site", "same-site").want(201)
	b.do("POST", "/api/v1/rules", ruleBody, "Sec-Fetch-Site", "same-origin").want(201)
	b.do("POST", "/api/v1/rules", ruleBody).want(201)

	everywhere := newBench(t, func(o *api.Options) { o.ListenAddress = ":8080" })
	everywhere.do("GET", "/api/v1/alerts/counts", "", "Host", "192.0.2.1:8080").want(200)
	everywhere.do("GET", "/api/v1/alerts/counts", "", "Host", "evil.example").problem(421, "misdirected_request")
}

func TestAnswersForbidWhatBrowsersNeedNot(t *testing.T) {
	b := newBench(t)
	h := b.do("GET", "/api/v1/alerts/counts", "").want(200).Header()
	for name, value := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Strict-Transport-Security": "max-age=31536000",
	} {
		if h.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, h.Get(name), value)
		}
	}
}

func TestHealth(t *testing.T) {
	down := errors.New("dial tcp 10.0.0.7:5432: refused")
	b := newBench(t, func(o *api.Options) {
		o.Checks = []api.Check{
			{Name: "postgres", Required: true, Ask: func(context.Context) error { return down }},
			{Name: "clickhouse", Ask: func(context.Context) error { return nil }},
		}
		o.Status = statusFunc(func() (api.SystemStatus, error) { return api.SystemStatus{}, down })
	})
	b.do("GET", "/healthz", "").want(200)
	if got := strings.TrimSpace(b.do("GET", "/readyz", "").want(503).Body.String()); got != `{"status":"not ready","missing":["postgres"],"reasons":{"postgres":"Cannot be reached; the log shows the reason"}}` {
		t.Errorf("readyz %s", got)
	}
	status := into[api.Status](b.do("GET", "/api/v1/status", "").want(200))
	if status.Ready || len(status.Dependencies) != 2 || status.Dependencies[0].Reachable || !status.Dependencies[1].Reachable || status.Rules != nil {
		t.Errorf("status %+v", status)
	}
	if strings.Contains(b.do("GET", "/api/v1/status", "").Body.String(), "10.0.0.7") {
		t.Error("the status shows an address")
	}
	if n := strings.Count(b.log.String(), "dependency cannot be used"); n != 1 {
		t.Errorf("the log reports one failure %d times", n)
	}
}

// TestAReplicaIsReadyWithoutClickHouse checks that a replica that cannot read its source stays
// ready for the web application and buttons in Slack.
func TestAReplicaIsReadyWithoutClickHouse(t *testing.T) {
	b := newBench(t, func(o *api.Options) {
		o.Checks = []api.Check{
			{Name: "postgres", Required: true, Ask: func(context.Context) error { return nil }},
			{Name: "clickhouse", Ask: func(context.Context) error { return errors.New("refused") }},
		}
	})
	if got := strings.TrimSpace(b.do("GET", "/readyz", "").want(200).Body.String()); got != `{"status":"ready","missing":["clickhouse"],"reasons":{"clickhouse":"Cannot be reached; the log shows the reason"}}` {
		t.Errorf("readyz %s", got)
	}
	if status := into[api.Status](b.do("GET", "/api/v1/status", "").want(200)); status.Ready || status.Dependencies[1].Reachable {
		t.Errorf("status %+v", status)
	}
}

func TestStatus(t *testing.T) {
	oldest := 90 * time.Second
	compared := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	b := newBench(t, func(o *api.Options) {
		o.Status = statusFunc(func() (api.SystemStatus, error) {
			return api.SystemStatus{
				Rules: 5, EnabledRules: 4, FailingRules: 1, OutboxDepth: 12_345, OutboxEstimated: true, OldestAge: &oldest,
				Slowest:      &api.RuleLag{RuleName: "Failed orders", Lag: 4 * time.Second},
				Completeness: &api.Completeness{Rules: 4, Missing: 2, ComparedAt: compared},
			}, nil
		})
	})
	s := into[api.Status](b.do("GET", "/api/v1/status", "").want(200))
	if !s.Ready || s.Rules.Total != 5 || *s.Rules.SlowestLagSeconds != 4 || s.Outbox.Depth != 12_345 || !s.Outbox.Estimated || *s.Outbox.OldestAgeSeconds != 90 || s.ReplicaID != "replica-1" {
		t.Errorf("status %+v", s)
	}
	if c := s.Completeness; c == nil || c.Rules != 4 || c.Missing != 2 || !c.ComparedAt.Equal(compared) || c.WholeSince != nil {
		t.Errorf("completeness %+v", c)
	}
}

func TestDescriptionIsServed(t *testing.T) {
	b := newBench(t)
	got := b.do("GET", "/api/openapi.json", "").want(200)
	if doc := into[map[string]any](got); doc["openapi"] != "3.1.0" || strings.Contains(got.Body.String(), "x-go-") {
		t.Errorf("openapi %v, or hints for Go in it", doc["openapi"])
	}
	page := b.do("GET", "/api/docs", "").want(200).Body.String()
	for _, part := range []string{"/api/v1/alerts/{id}/acknowledge", "probably not intended", `id="schema-RuleDefinition"`, "default 8"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if strings.Contains(page, "://") {
		t.Error("the page names another host")
	}
	b.do("GET", "/api/docs.css", "").want(200)
}

func TestReplicasAreListed(t *testing.T) {
	b := newBench(t, func(o *api.Options) {
		o.DeadAfter = 30 * time.Second
		o.Replicas = replicasFunc(func() ([]api.ReplicaRecord, error) {
			return []api.ReplicaRecord{
				{ID: "a", Host: "one", PID: 1, Version: "1.2.3", Roles: []string{"api"}, Silent: 30 * time.Second, ClaimedRules: 2},
				{ID: "b", Host: "two", PID: 2, Version: "1.2.4", Roles: []string{}, Silent: 1500 * time.Millisecond, ClaimedNotifications: 3},
			}, nil
		})
	})
	list := into[api.ReplicaList](b.do("GET", "/api/v1/replicas", "").want(200))
	if len(list.Items) != 2 {
		t.Fatalf("replicas %+v", list)
	}
	dead, alive := list.Items[0], list.Items[1]
	if dead.Alive || dead.ClaimedRules != 2 || dead.LastBeatAgeSeconds != 30 {
		t.Errorf("dead replica %+v", dead)
	}
	if !alive.Alive || alive.ClaimedNotifications != 3 || alive.LastBeatAgeSeconds != 1.5 {
		t.Errorf("living replica %+v", alive)
	}
}

func TestEncryptionKeysAreListed(t *testing.T) {
	role := access.Admin
	b := newBench(t, func(o *api.Options) {
		o.Identify = func(*http.Request) (api.Identity, error) {
			return api.Identity{Tenant: "acme", Actor: "ada", Role: role}, nil
		}
		o.Keys = keysFunc(func() ([]api.KeyUse, error) {
			return []api.KeyUse{
				{Key: "0a0a0a0a", Secrets: 3, Configured: true, Active: true},
				{Key: "0b0b0b0b", Secrets: 1, Configured: true},
				{Key: "0c0c0c0c", Configured: true},
				{Key: "0d0d0d0d", Secrets: 2},
				{Secrets: 1},
			}, nil
		})
	})
	got := into[api.EncryptionKeyList](b.do("GET", "/api/v1/encryption-keys", "").want(200)).Items
	want := []api.EncryptionKey{
		{ID: "0a0a0a0a", State: api.EncryptionKeyStateACTIVE, Secrets: 3},
		{ID: "0b0b0b0b", State: api.EncryptionKeyStateINUSE, Secrets: 1},
		{ID: "0c0c0c0c", State: api.EncryptionKeyStateUNUSED},
		{ID: "0d0d0d0d", State: api.EncryptionKeyStateMISSING, Secrets: 2},
		{State: api.EncryptionKeyStateUNKNOWN, Secrets: 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("keys %+v, want %+v", got, want)
	}
	role = access.Editor
	b.do("GET", "/api/v1/encryption-keys", "").want(403)
}

// TestRefusalIsOneLineInTheLog checks that a rejected request logs no warning: only one line with
// its status.
func TestRefusalIsOneLineInTheLog(t *testing.T) {
	b := newBench(t)
	b.do(http.MethodGet, "/api/v1/rules/0190b3a5-0000-7000-8000-000000000000", "")
	b.do(http.MethodPost, "/api/v1/webhooks", `{"name": "", "kind": "slack"}`)
	b.do(http.MethodGet, "/api/v1/nowhere", "")
	log := b.log.String()
	if lines := strings.Count(log, "\n"); lines != 3 || strings.Count(log, `"msg":"request"`) != 3 || strings.Contains(log, `"level":"WARN"`) {
		t.Errorf("three refusals are %d lines, want one for each:\n%s", lines, log)
	}
}
