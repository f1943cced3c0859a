package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/notify/bus"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
	"tocsin/rules"
)

const (
	tenant = "default"
	// key is base64 of 32 zero bytes.
	key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

// world is the engine on real databases, ticked by hand.
type world struct {
	t          testing.TB
	ch         chtest.Database
	pgURL      string
	db         *postgres.DB
	box        *seal.Box
	conn       *pgx.Conn
	evaluator  *evaluator.Evaluator
	dispatcher *notify.Dispatcher
	receiver   *receiver
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{t: tb, ch: chtest.New(tb), pgURL: pgtest.URL(tb), receiver: newReceiver(tb)}
	w.conn = pgtest.Conn(tb, w.pgURL)
	var err error
	if w.box, err = seal.New(key); err != nil {
		tb.Fatal(err)
	}
	if w.db, err = postgres.Open(tb.Context(), w.pgURL, w.box); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.db.Close)
	w.evaluator = w.newEvaluator(evaluator.Options{})
	w.dispatcher = w.newDispatcher(notify.Options{})
	return w
}

// newEvaluator fills in what o leaves out, with a store and a source of its own.
func (w *world) newEvaluator(o evaluator.Options) *evaluator.Evaluator {
	w.t.Helper()
	if o.Source == nil {
		source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = source.Close() })
		o.Source = source
	}
	texts, err := template.NewTexts()
	if err != nil {
		w.t.Fatal(err)
	}
	o.Publisher, o.Texts = bus.New(bus.Options{}), texts
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Store == nil {
		o.Store = w.db.Evaluation(time.Minute)
	}
	if o.Windows == nil {
		reader, ok := o.Source.(window.Source)
		if !ok {
			w.t.Fatalf("%T counts no windows", o.Source)
		}
		o.Windows = window.New(window.Options{Source: reader, Texts: texts, Logger: slog.New(slog.DiscardHandler)})
	}
	if o.Replica == "" {
		o.Replica = "test"
	}
	e, err := evaluator.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) newDispatcher(o notify.Options) *notify.Dispatcher {
	w.t.Helper()
	if o.Sender == nil {
		sender, err := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback()})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(sender.Close)
		o.Sender = sender
	}
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if o.Renderer == nil {
		o.Renderer = renderer
	}
	if o.Store == nil {
		o.Store = w.db.Outbox()
	}
	o.Logger, o.Clock = slog.New(slog.DiscardHandler), time.Now
	if o.Replica == "" {
		o.Replica = "test"
	}
	d, err := notify.NewDispatcher(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// webhook stores a webhook that leads to the world's receiver.
func (w *world) webhook(name string) uuid.UUID {
	w.t.Helper()
	hook, err := w.db.Webhooks().Create(w.t.Context(), tenant, notify.Webhook{
		Name: name, Kind: notify.KindGeneric, URL: w.receiver.url + "/" + name, Enabled: true,
		Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return hook.ID
}

// rule stores a rule for every failure.
func (w *world) rule(webhooks ...uuid.UUID) rules.Rule {
	w.t.Helper()
	return w.ruleOf(rules.Definition{Name: uuid.NewString(), WebhookIDs: webhooks})
}

func (w *world) ruleOf(d rules.Definition) rules.Rule {
	w.t.Helper()
	d.Enabled, d.FireMode, d.Severity = true, rules.PerExchange, rules.Critical
	d.IntervalSeconds, d.LookBackSeconds = rules.DefaultIntervalSeconds, rules.DefaultLookBackSeconds
	rule, err := w.db.Rules().Create(w.t.Context(), tenant, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return rule
}

// fail writes a failed exchange that starts and ends at an instant.
func (w *world) fail(ns int64, ids ...string) {
	w.t.Helper()
	exchanges := make([]rules.Exchange, len(ids))
	for i, id := range ids {
		exchanges[i] = rules.Exchange{
			TenantID: tenant, StartTimeNS: ns, EndTimeNS: &ns, ExecutionID: id, Environment: "production", Application: "orders",
			Route: "order-to-erp", Status: rules.Failed, ErrorType: "ConnectException", ErrorMessage: "ERP refused",
		}
	}
	w.ch.Insert(w.t, exchanges...)
}

// tick makes every rule due and evaluates.
func (w *world) tick() evaluator.Result {
	w.t.Helper()
	result, err := w.tickWith(w.evaluator)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (w *world) tickWith(e *evaluator.Evaluator) (evaluator.Result, error) {
	w.t.Helper()
	return e.Tick(w.t.Context())
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.conn.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// column returns the first column of a query as text, in order.
func (w *world) column(sql string, args ...any) []string {
	w.t.Helper()
	rows, err := w.conn.Query(context.Background(), sql, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return values
}

// wantColumn compares the first column of a query with want.
func (w *world) wantColumn(what, sql string, want ...string) {
	w.t.Helper()
	if got := w.column(sql); !slices.Equal(got, want) {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func (w *world) newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// Queries of what stands.
const (
	alertIDs        = `select execution_id from alert where not health order by execution_id`
	alertStates     = `select state || ' ' || count(*) from alert where not health group by state order by state`
	statuses        = `select status || ' ' || count(*) from notification_status group by status order by status`
	cursorAndNext   = `select coalesce(cursor, 'none') || ' ' || next_run_at::text from rule_state order by rule_id`
	problems        = `select coalesce(problem, '') from rule_state order by rule_id`
	unsettledOutbox = `select notification_id::text from outbox`
)

// firing returns the alerts that fire.
func (w *world) firing() []alerts.Instance {
	w.t.Helper()
	page, err := w.db.Inbox().List(w.t.Context(), tenant, alerts.Query{Filter: alerts.Filter{States: []alerts.State{alerts.Firing}}, Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Alerts
}

// receiver is a webhook's other end. It remembers what it was sent.
type receiver struct {
	url string

	// tap, when set before the first call, sees each body.
	tap func(body []byte)

	mu     sync.Mutex
	got    []message
	answer func(http.ResponseWriter, *http.Request)
}

type message struct{ webhookID, execution string }

func newReceiver(tb testing.TB) *receiver {
	tb.Helper()
	r := &receiver{}
	server := httptest.NewServer(r)
	tb.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	var payload struct {
		Data struct {
			Exchange struct {
				ExecutionID string `json:"executionId"`
			} `json:"exchange"`
		} `json:"data"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&payload); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	if r.tap != nil {
		r.tap(body)
	}
	r.mu.Lock()
	r.got = append(r.got, message{req.Header.Get("webhook-id"), payload.Data.Exchange.ExecutionID})
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, req)
	}
}

// received returns the execution ids of the messages so far, sorted.
func (r *receiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, m := range r.got {
		ids = append(ids, m.execution)
	}
	slices.Sort(ids)
	return ids
}

// webhookIDs returns the webhook-ids of the messages so far, in order.
func (r *receiver) webhookIDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, m := range r.got {
		ids = append(ids, m.webhookID)
	}
	return ids
}

// respond sets what the receiver does from now on.
func (r *receiver) respond(answer func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// hang lets calls wait until release is called; called is closed by the first.
func (r *receiver) hang() (called <-chan struct{}, release func()) {
	began, end := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	r.respond(func(_ http.ResponseWriter, req *http.Request) {
		first.Do(func() { close(began) })
		select {
		case <-end:
		case <-req.Context().Done():
		}
	})
	return began, func() { last.Do(func() { close(end) }) }
}
