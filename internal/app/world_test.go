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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/notify/bus"
	"tocsin/notify/dispatch"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
	"tocsin/rules"
)

const (
	tenant = "default"
	// key is base64 of 32 zero bytes.
	key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

// world is the engine on real databases, with ticks made by the test.
type world struct {
	t          testing.TB
	ch         chtest.Database
	pgURL      string
	db         *postgres.DB
	box        *seal.Box
	conn       *pgx.Conn
	evaluator  *evaluator.Evaluator
	dispatcher *dispatch.Dispatcher
	receiver   *receiver
	// skipped is how far ahead the clock of evaluators is, in nanoseconds.
	skipped atomic.Int64
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return newWorldOf(tb, 1)
}

// usualPartitions is how many partitions a new database has.
const usualPartitions = 8

// newWorldOf returns a world whose evaluation is divided into a number of partitions. Each has a first pass, also without
// rules, so that eight of them take more processor time than most tests take by themselves.
func newWorldOf(tb testing.TB, partitions int) *world {
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
	if partitions != usualPartitions {
		w.exec(`delete from checkpoint where partition >= $1`, partitions)
		w.exec(`update checkpoint set share_of = $1`, partitions)
	}
	w.evaluator = w.newEvaluator(evaluator.Options{})
	w.dispatcher = w.newDispatcher(dispatch.Options{})
	return w
}

// defaultTexts are parsed once. Many worlds need none.
var defaultTexts = sync.OnceValues(template.NewTexts) //nolint:gochecknoglobals // shared by all tests of the process

// newEvaluator completes o, with a store and a source of its own.
func (w *world) newEvaluator(o evaluator.Options) *evaluator.Evaluator {
	w.t.Helper()
	if o.Source == nil {
		o.Source = w.source()
	}
	texts, err := defaultTexts()
	if err != nil {
		w.t.Fatal(err)
	}
	o.Publisher, o.Texts = bus.New(bus.Options{}), texts
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Clock == nil {
		o.Clock = w.clock
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
	// Window rules with the shortest interval are due at every tick, however soon it comes, and a
	// busy machine has time for a pass.
	if o.Interval == 0 {
		o.Interval = 4 * time.Second
	}
	if o.LeaseFor == 0 {
		o.LeaseFor = time.Minute
	}
	e, err := evaluator.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// source opens the world's exchanges.
func (w *world) source() *clickhouse.Source {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	return source
}

// clock is the clock of the world's evaluators. It is ahead by what [world.later] added.
func (w *world) clock() time.Time { return time.Now().Add(time.Duration(w.skipped.Load())) }

// later moves the clock of the world's evaluators forward.
func (w *world) later(d time.Duration) { w.skipped.Add(int64(d)) }

func (w *world) newDispatcher(o dispatch.Options) *dispatch.Dispatcher {
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
	o.Clock = time.Now
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Replica == "" {
		o.Replica = "test"
	}
	d, err := dispatch.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// webhook stores a webhook of the world's receiver.
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

// incomplete is fail with another error.
func (w *world) incomplete(ns int64, id string) {
	w.t.Helper()
	w.ch.Insert(w.t, rules.Exchange{
		TenantID: tenant, StartTimeNS: ns, EndTimeNS: &ns, ExecutionID: id, Environment: "production", Application: "orders",
		Route: "order-to-erp", Status: rules.Failed, ErrorType: "Refused", ErrorMessage: "the order is not complete",
	})
}

// tick makes a pass over every partition.
func (w *world) tick() evaluator.Result {
	w.t.Helper()
	result, err := w.tickWith(w.evaluator)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// tickWith is a tick of an evaluator that takes over from any other.
func (w *world) tickWith(e *evaluator.Evaluator) (evaluator.Result, error) {
	w.t.Helper()
	w.exec(`update checkpoint set owner = null, token = null, lease_until = null where owner <> $1`, e.Replica)
	return e.Tick(w.t.Context())
}

// giveUp ends the leases of the world's own evaluators, so that replicas can start.
func (w *world) giveUp() {
	w.t.Helper()
	w.exec(`update checkpoint set owner = null, token = null, lease_until = null where owner not in (select replica_id from replica)`)
}

// changed makes evaluators read the rules again after direct changes in the database.
func (w *world) changed() {
	w.t.Helper()
	w.exec(`with c as (update checkpoint set rules_revision = rules_revision + 1 returning partition, rules_revision)
		update partition_rule p set changed = c.rules_revision from c where c.partition = p.partition`)
}

// armed sets the instant since which a rule is armed, and lets it evaluate from then on what it has
// not evaluated yet.
func (w *world) armed(rule rules.Rule, ns int64) {
	w.t.Helper()
	w.exec(`update rule_state set armed_since_ns = $1 where rule_id = $2`, ns, rule.ID)
	if rule.FireMode == rules.PerExchange {
		from := cursor.Position{StartTimeNS: ns - int64(rule.LookBackSeconds+90)*int64(time.Second)}.String()
		w.exec(`insert into rule_backfill (rule_id, position) values ($1, $2)
			on conflict (rule_id) do update set position = excluded.position`, rule.ID, from)
	}
	w.changed()
}

// namedRules stores rules that match every failed exchange.
func (w *world) namedRules(names ...string) map[string]rules.Rule {
	w.t.Helper()
	hook := w.webhook("ops")
	made := map[string]rules.Rule{}
	for _, name := range names {
		made[name] = w.ruleOf(rules.Definition{Name: name, WebhookIDs: []uuid.UUID{hook}})
	}
	return made
}

// refuse makes the database reject the alerts of a condition, until accept is called.
func (w *world) refuse(condition string) {
	w.t.Helper()
	w.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
		create trigger refuse before insert on alert for each row when (not new.health and (` + condition + `)) execute function refuse()`)
}

func (w *world) accept() {
	w.t.Helper()
	w.exec(`drop trigger refuse on alert; drop function refuse`)
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.conn.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// fill writes many rows without checking each of their foreign keys, which takes longer than to write them. Nothing else
// happens to new alerts and messages.
func (w *world) fill(sql string, args ...any) {
	w.t.Helper()
	w.exec(`set session_replication_role = replica`)
	w.exec(sql, args...)
	w.exec(`reset session_replication_role`)
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

// Queries of what is stored.
const (
	alertIDs    = `select execution_id from alert where not health order by execution_id`
	alertStates = `select state || ' ' || count(*) from alert where not health group by state order by state`
	statuses    = `select status || ' ' || count(*) from notification_status group by status order by status`
	// Partitions without rules have no cursor.
	cursors         = `select cursor from checkpoint where cursor is not null order by partition`
	alertsOf        = `select r.name || ' ' || a.execution_id from alert a join rule r using (rule_id) where a.execution_id is not null order by 1`
	problems        = `select coalesce(problem, '') from rule_state order by rule_id`
	announced       = `select reason || ' ' || count(*) from notification where reason like 'RULE%' or reason like 'SOURCE%' group by reason order by reason`
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

// receiver is the receiver of the webhooks. It records what it was sent.
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

// respond sets the receiver's behaviour from now on.
func (r *receiver) respond(answer func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// hang makes calls wait until release is called; called is closed by the first one.
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
