package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/internal/postgres"
	"tocsin/rules"
)

// meter is a proxy between an evaluator and ClickHouse that counts requests and the bytes of the
// responses on the wire.
type meter struct {
	url             string
	requests, bytes atomic.Int64
}

func newMeter(tb testing.TB, dsn string) *meter {
	tb.Helper()
	target, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	m := &meter{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) },
		ModifyResponse: func(r *http.Response) error {
			m.requests.Add(1)
			r.Body = &meteredBody{r.Body, &m.bytes}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	tb.Cleanup(server.Close)
	through := *target
	through.Host = server.Listener.Addr().String()
	m.url = through.String()
	return m
}

type meteredBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

// TestIdleLookBackOverManyAlerts has 20,000 matching exchanges with alerts within the look-back of
// an hour. A tick without new exchanges then reads next to nothing, and does not query Postgres for
// alerts.
func TestIdleLookBackOverManyAlerts(t *testing.T) {
	t.Parallel()
	const exchanges, second = 20_000, int64(1_000_000_000)
	w := newWorld(t)
	rule := w.rule()
	now := w.ch.Now(t)
	begin, step := now-3500*second, 3500*second/exchanges
	err := w.ch.Conn.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, error_message)
		SELECT '%[1]s', fromUnixTimestamp64Nano(toInt64(%[2]d) + toInt64(number) * %[3]d, 'UTC') AS s, 'production', 'orders', 'order-to-erp',
		       toString(number), s, 1, 'FAILED', 'ERP refused'
		FROM numbers(%[4]d)`, tenant, begin, step, exchanges))
	if err != nil {
		t.Fatal(err)
	}
	w.fill(`
		insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
		                   application, route, exchange)
		select gen_random_uuid(), $2, $1, 1, 'CRITICAL', 'FIRING', 't', 'm', n::text, $3::bigint + n * $4::bigint, 'orders', 'order-to-erp', '{}'
		from generate_series(0, $5::int - 1) n`, rule.ID, tenant, begin, step, exchanges)
	w.exec(`analyze alert`)
	wire, tap := newMeter(t, w.ch.URL), newWiretap(t, w.pgURL)
	db, err := postgres.Open(t.Context(), tap.url, w.box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	direct, err := clickhouse.Open(clickhouse.Options{URL: wire.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close() })
	source := &watched{Source: direct, asked: map[string]int{}}
	engine := w.newEvaluator(evaluator.Options{Source: source, Store: db.Evaluation(time.Minute)})
	tick := func() evaluator.Result {
		t.Helper()
		result, err := w.tickWith(engine)
		if err != nil || result.Failed+result.Stale > 0 {
			t.Fatalf("Tick = %+v, %v", result, err)
		}
		return result
	}
	// A process that starts evaluates everything once.
	w.until("everything is evaluated", func() bool { return tick().Scanned == 0 })
	// From here on the rule matches all of them: it was armed before they failed.
	w.exec(`update rule_state set armed_since_ns = $1`, begin)
	w.changed()

	for i, name := range []string{"a tick", "a tick that compares the whole look-back"} {
		source.ahead = time.Duration(i) * 15 * time.Second
		wire.requests.Store(0)
		wire.bytes.Store(0)
		before := tap.counts()
		if result := tick(); result.Scanned > 0 || result.Alerts > 0 {
			t.Errorf("%s = %+v, want nothing scanned", name, result)
		}
		t.Logf("%s: %d requests, %d bytes", name, wire.requests.Load(), wire.bytes.Load())
		if got := wire.bytes.Load(); got == 0 || got >= 1<<20 {
			t.Errorf("%s transferred %d bytes, want less than 1 MB", name, got)
		}
		for query, n := range tap.counts() {
			if n > before[query] && (strings.HasPrefix(query, "Alert") || strings.HasPrefix(query, "Notification")) {
				t.Errorf("%s asked Postgres for %s", name, query)
			}
		}
	}

	// A late exchange is found among them, and raises one alert.
	w.ch.Insert(t, rules.Exchange{TenantID: tenant, StartTimeNS: now - 1000*second, EndTimeNS: &now, ExecutionID: "late", Status: rules.Failed})
	source.ahead = 30 * time.Second
	if result := tick(); result.Alerts != 1 || result.Scanned > 10_000 {
		t.Errorf("Tick = %+v, want the late one alone, and only its second read", result)
	}
}

// TestEachOnceWhateverItsClock has rows with times in the future, replaced rows and repeated rows:
// each failed exchange has one alert, when its time has come.
func TestEachOnceWhateverItsClock(t *testing.T) {
	t.Parallel()
	const second = int64(1_000_000_000)
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	source := w.watched()
	engine := w.newEvaluator(evaluator.Options{Source: source, PageSize: 2})
	tick := func(want int) {
		t.Helper()
		if result, err := w.tickWith(engine); err != nil || result.Alerts != want || result.Notifications != want {
			t.Errorf("Tick = %+v, %v; want %d alerts", result, err, want)
		}
	}
	row := func(id string, start, end int64, status rules.Status) rules.Exchange {
		e := rules.Exchange{TenantID: tenant, StartTimeNS: start, ExecutionID: id, Status: status}
		if status != rules.Running {
			e.EndTimeNS = &end
		}
		return e
	}
	now := rule.ArmedSinceNS + 1000
	future := now + 20*second // and less than the minute by which clocks may differ
	w.ch.Insert(t,
		row("running", now, 0, rules.Running), row("future", future, future+second, rules.Failed),
		row("future, running", future, 0, rules.Running), row("ends before it starts", now, now-second/2, rules.Failed),
		row("now", now, now, rules.Failed), row("now", now, now, rules.Failed))
	tick(1) // now; what ended before the rule was armed is ignored
	w.ch.Insert(t,
		row("running", now, now+second, rules.Failed), row("running", now, now+second, rules.Failed),
		row("future", future, future+second, rules.Failed), row("now", now, now, rules.Failed))
	tick(1) // running
	tick(0)
	source.ahead = 40 * time.Second
	w.ch.Insert(t, row("future, running", future, future+second, rules.Failed))
	tick(2) // both of the future
	// Rows are replaced by merges, and written again behind the cursor.
	if err := w.ch.Conn.Exec(t.Context(), "OPTIMIZE TABLE exchanges FINAL"); err != nil {
		t.Fatal(err)
	}
	w.ch.Insert(t, row("future", future, future+second, rules.Failed), row("running", now, now+second, rules.Failed))
	tick(0)
	// The clock is set back: nothing is raised again, and nothing is lost.
	source.ahead = 0
	w.ch.Insert(t, row("after the step", future-second, future, rules.Failed))
	tick(0)
	source.ahead = 41 * time.Second
	tick(1)
	source.ahead = 55 * time.Second
	tick(0)
	w.wantColumn("alerts", alertIDs, "after the step", "future", "future, running", "now", "running")
	w.wantColumn("notifications", statuses, "PENDING 5")
}
