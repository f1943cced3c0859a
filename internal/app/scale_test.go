package app_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// counting counts the queries that an evaluator asks of its source.
type counting struct {
	evaluator.Source
	queries int
}

func (c *counting) Now(ctx context.Context) (int64, error) {
	c.queries++
	return c.Source.Now(ctx)
}

func (c *counting) Scan(ctx context.Context, scan evaluator.Scan) ([]rules.Exchange, error) {
	c.queries++
	return c.Source.Scan(ctx, scan)
}

func (c *counting) Fingerprints(ctx context.Context, q evaluator.FingerprintQuery) ([]evaluator.Fingerprint, error) {
	c.queries++
	return c.Source.Fingerprints(ctx, q)
}

func (c *counting) Rows(ctx context.Context, tenantID string, fromNS, toNS int64) (uint64, error) {
	c.queries++
	return c.Source.Rows(ctx, tenantID, fromNS, toNS)
}

func (c *counting) CountWindows(ctx context.Context, windows []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	c.queries++
	return c.Source.CountWindows(ctx, windows)
}

func (c *counting) Tally(ctx context.Context, q evaluator.TallyQuery) ([]evaluator.Tally, bool, error) {
	c.queries++
	return c.Source.Tally(ctx, q)
}

func (c *counting) Newest(ctx context.Context, w evaluator.WindowQuery, groups []evaluator.GroupCount) ([]rules.Exchange, error) {
	c.queries++
	return c.Source.Newest(ctx, w, groups)
}

// letCount makes every fifth rule count, in windows of one to sixty minutes; every
// fourth of those, if any of them, by what is not a name.
func (w *world) letCount(withMessages bool) {
	w.t.Helper()
	w.alone()
	filter := `'{"errorTypes": ["ConnectException"]}'::jsonb`
	if withMessages {
		filter = `case when n % 20 = 0 then '{"errorMessageMatches": "refused|timed out"}'::jsonb else ` + filter + ` end`
	}
	w.exec(`
		update rule set fire_mode = 'COUNT_IN_WINDOW', look_back_seconds = 0, threshold = 1000000, version = version + 1, group_by = 'ROUTE',
		       window_seconds = (array[60, 300, 900, 3600])[n / 5 % 4 + 1], filter = ` + filter + `
		from (select rule_id, substring(name from 6)::int as n from rule) numbered
		where rule.rule_id = numbered.rule_id and n % 5 = 0`)
}

// manyRules stores n enabled rules at an interval of ten seconds. Each looks at
// one application of 500 and one route, every tenth at routes by wildcard.
func (w *world) manyRules(n int) {
	w.t.Helper()
	w.exec(`
		with made as (
			insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
			                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
			select gen_random_uuid(), $2, 'rule ' || n, true, 'PER_EXCHANGE', 'WARNING',
			       jsonb_build_object('environments', jsonb_build_array('production'), 'applications', jsonb_build_array('app-' || n % 500),
			                          'routes', jsonb_build_array('route-' || n % 97 || case when n % 10 = 0 then '*' else '' end)),
			       '{"errorMessageMatches": "refused|timed out", "attributes": [{"key": "customer", "op": "EQUALS", "value": "42"}]}',
			       '', '', '[{"kind": "team", "name": "operations"}]', 10, 3600, 0, 0
			from generate_series(1, $1::int) n
			returning rule_id)
		insert into rule_state (rule_id, armed_since_ns, next_run_at)
		select rule_id, (extract(epoch from now()) * 1e9)::bigint, now() from made`, n, tenant)
	w.exec(`analyze`)
}

// failMany writes failed exchanges of many places that end now.
func (w *world) failMany(n int) {
	w.t.Helper()
	now := w.ch.Now(w.t)
	exchanges := make([]rules.Exchange, n)
	for i := range exchanges {
		exchanges[i] = rules.Exchange{
			TenantID: tenant, StartTimeNS: now - int64(i), EndTimeNS: &now, ExecutionID: fmt.Sprint(now, i), Environment: "production",
			Application: fmt.Sprint("app-", i%500), Route: fmt.Sprint("route-", i%97), Status: rules.Failed, ErrorMessage: "connection refused",
			Attributes: map[string]string{"customer": fmt.Sprint(i % 1000)},
		}
	}
	w.ch.Insert(w.t, exchanges...)
}

// countedSource reads w's exchanges and counts its queries.
func (w *world) countedSource() *counting {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	return &counting{Source: source}
}

// TestManyRulesShareTheirScans holds an interval of 10,000 rules to fewer than
// 50 queries, whether or not anything happened in it, and also where 2,000 of
// them count.
func TestManyRulesShareTheirScans(t *testing.T) {
	w := newWorld(t)
	w.manyRules(10_000)
	source := w.countedSource()
	// On a machine that is busy with other things, a tick may take its time.
	e := w.newEvaluator(evaluator.Options{Source: source, ClaimFor: 10 * time.Minute, Budget: 5 * time.Minute})
	// As if the rules had been made one after the other.
	w.exec(`update rule_state set next_run_at = now() - random() * interval '10 seconds'`)
	if result, err := e.Tick(t.Context()); err != nil || result.Rules != 10_000 || result.Failed+result.Stale > 0 {
		t.Fatalf("Tick = %+v, %v", result, err)
	}
	w.wantColumn("due within an interval of the commit", `select bool_and(
		next_run_at > last_run_at - interval '10 seconds' and next_run_at <= last_run_at + interval '10 seconds')::text from rule_progress`, "true")
	// Those that were late in the instant before are due at once, and fall into
	// step: with the others, unless an instant passes while they are evaluated.
	const instants = `select count(distinct next_run_at)::text from rule_progress`
	for range 5 {
		if w.column(instants)[0] == "1" {
			break
		}
		if _, err := e.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.wantColumn("instants at which rules are due", instants, "1")
	w.wantColumn("which are multiples of the interval", `select bool_and(next_run_at = date_bin('10 seconds', next_run_at, 'epoch'))::text from rule_progress`, "true")
	for _, rows := range []int{0, 1000, 100} {
		if rows == 100 {
			w.letCount(true)
		}
		w.failMany(rows)
		source.queries = 0
		w.dueIn("0")
		result, err := e.Tick(t.Context())
		if err != nil || result.Rules != 10_000 || result.Failed+result.Stale > 0 {
			t.Fatalf("Tick = %+v, %v", result, err)
		}
		// The customer 42 of one exchange, at its application and route, and wildcards beside.
		if rows == 1000 && result.Alerts == 0 {
			t.Error("nothing was raised")
		}
		w.dueIn("1 hour")
		for range 9 {
			if result, err := e.Tick(t.Context()); err != nil || result.Rules > 0 {
				t.Fatalf("Tick = %+v, %v", result, err)
			}
		}
		if source.queries == 0 || source.queries >= 50 {
			t.Errorf("%d queries in an interval with %d exchanges, want fewer than 50", source.queries, rows)
		}
	}
}

// TestOneRefusedRuleFailsAlone lets the database refuse what one of many rules
// that share a scan wants to write.
func TestOneRefusedRuleFailsAlone(t *testing.T) {
	w := newWorld(t)
	var refused, last rules.Rule
	for i := range 20 {
		if last = w.rule(w.webhook(fmt.Sprint("ops-", i))); i == 13 {
			refused = last
		}
	}
	w.exec(`
		create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
		create trigger refuse before insert on alert for each row when (new.rule_id = '` + refused.ID.String() + `') execute function refuse()`)
	w.fail(last.ArmedSinceNS+1000, "a", "b")
	if result := w.tick(); result.Failed != 1 || result.Alerts != 38 || result.Notifications != 38 {
		t.Errorf("Tick = %+v, want one failed rule and two alerts of each other", result)
	}
	w.wantColumn("rules with a problem", `select rule_id::text from rule_state where problem is not null`, refused.ID.String())
	w.exec(`drop trigger refuse on alert`)
	if result := w.tick(); result.Failed != 0 || result.Alerts != 2 {
		t.Errorf("Tick = %+v, want the two alerts that were refused", result)
	}
	w.wantColumn("rules with a problem", `select rule_id::text from rule_state where problem is not null`)
}

// BenchmarkTenThousandRules measures one interval of ten seconds of 10,000
// rules on real databases: ten ticks, in the first of which all rules are due.
// cores is what part of a core this process takes for it, tick-ms how long the
// tick that does the work lasts.
func BenchmarkTenThousandRules(b *testing.B) {
	for _, rows := range []int{0, 200, 2000} {
		b.Run(fmt.Sprintf("%d exchanges", rows), func(b *testing.B) {
			w := newWorld(b)
			w.manyRules(10_000)
			w.interval(b, rows)
		})
	}
}

// BenchmarkTwoThousandCount is the same where every fifth rule counts, over an
// hour with 100,000 failed exchanges: all of them by names and error types, or
// a quarter of them by messages.
func BenchmarkTwoThousandCount(b *testing.B) {
	for name, withMessages := range map[string]bool{"by names": false, "a quarter by messages": true} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.manyRules(10_000)
			w.letCount(withMessages)
			w.exec(`update rule_state set armed_since_ns = armed_since_ns - 86400000000000`)
			if err := w.ch.Conn.Exec(b.Context(), fmt.Sprintf(`
				INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, error_type, error_message)
				SELECT '%s', now64(9) - toIntervalMillisecond(number * 36) AS s, 'production', concat('app-', toString(number %% 500)),
				       concat('route-', toString(number %% 97)), toString(number), s, 1, 'FAILED', 'ConnectException', 'connection refused'
				FROM numbers(100000)`, tenant)); err != nil {
				b.Fatal(err)
			}
			w.interval(b, 200)
		})
	}
}

// interval measures intervals in each of which so many exchanges fail.
func (w *world) interval(b *testing.B, rows int) {
	b.Helper()
	source := w.countedSource()
	e := w.newEvaluator(evaluator.Options{Source: source})
	tick := func() evaluator.Result {
		result, err := e.Tick(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return result
	}
	tick()
	var used, longest time.Duration
	source.queries = 0
	for b.Loop() {
		b.StopTimer()
		w.failMany(rows)
		w.dueIn("0")
		b.StartTimer()
		before, began := cpu(b), time.Now()
		if result := tick(); result.Rules != 10_000 || result.Failed+result.Stale > 0 {
			b.Fatalf("Tick = %+v", result)
		}
		longest = max(longest, time.Since(began))
		w.dueIn("1 hour")
		for range 9 {
			tick()
		}
		used += cpu(b) - before
	}
	b.ReportMetric(float64(used)/float64(b.N)/float64(10*time.Second), "cores")
	b.ReportMetric(float64(longest.Milliseconds()), "tick-ms")
	b.ReportMetric(float64(source.queries)/float64(b.N), "queries/op")
}

// cpu returns the processor time that this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
