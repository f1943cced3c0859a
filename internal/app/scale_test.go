package app_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/internal/postgres"
	"tocsin/rules"
)

// letCount makes every fifth rule count, in windows of one to sixty minutes; every fourth of those,
// if counting by texts is set, filters by more than names.
func (w *world) letCount(withMessages bool) {
	w.t.Helper()
	filter := `'{"errorTypes": ["ConnectException"]}'::jsonb`
	if withMessages {
		filter = `case when n % 20 = 0 then '{"errorMessageMatches": "refused|timed out"}'::jsonb else ` + filter + ` end`
	}
	w.exec(`
		update rule set fire_mode = 'COUNT_IN_WINDOW', look_back_seconds = 0, threshold = 1000000, version = version + 1, group_by = 'ROUTE',
		       window_seconds = (array[60, 300, 900, 3600])[n / 5 % 4 + 1], filter = ` + filter + `
		from (select rule_id, substring(name from 6)::int as n from rule) numbered
		where rule.rule_id = numbered.rule_id and n % 5 = 0`)
	w.exec(`delete from rule_backfill using rule where rule.rule_id = rule_backfill.rule_id and fire_mode <> 'PER_EXCHANGE'`)
	w.changed()
}

// manyRules stores n enabled rules of some tenants, the first of which is the world's, in one
// partition. Each matches one of 500 applications and one route, every tenth routes by wildcard.
func (w *world) manyRules(n, tenants int) {
	w.t.Helper()
	if err := w.db.Partitions().Count(w.t.Context(), 1); err != nil {
		w.t.Fatal(err)
	}
	for i := range tenants {
		w.exec(`insert into tenant_partition select $1, partition from checkpoint`, tenantName(i))
	}
	w.exec(`
		with made as (
			insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
			                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
			select gen_random_uuid(), case n % $3 when 0 then $2 else 'tenant ' || n % $3 end, 'rule ' || n, true, 'PER_EXCHANGE', 'WARNING',
			       jsonb_build_object('environments', jsonb_build_array('production'), 'applications', jsonb_build_array('app-' || n % 500),
			                          'routes', jsonb_build_array('route-' || n % 97 || case when n % 10 = 0 then '*' else '' end)),
			       '{"errorMessageMatches": "refused|timed out", "attributes": [{"key": "customer", "op": "EQUALS", "value": "42"}]}',
			       '', '', '[{"kind": "team", "name": "operations"}]', 1, 3600, 0, 0
			from generate_series(1, $1::int) n
			returning rule_id, tenant_id),
		state as (
			insert into rule_state (rule_id, armed_since_ns)
			select rule_id, (extract(epoch from now()) * 1e9)::bigint from made)
		insert into partition_rule (partition, rule_id, changed)
		select t.partition, m.rule_id, 1 from made m join tenant_partition t using (tenant_id)`, n, tenant, tenants)
	w.exec(`analyze`)
	w.changed()
}

func tenantName(i int) string {
	if i == 0 {
		return tenant
	}
	return fmt.Sprint("tenant ", i)
}

// failMany writes failed exchanges of many places and of some tenants that end now.
func (w *world) failMany(n, tenants int) {
	w.t.Helper()
	now := w.ch.Now(w.t)
	exchanges := make([]rules.Exchange, n)
	for i := range exchanges {
		exchanges[i] = rules.Exchange{
			TenantID: tenantName(i % tenants), StartTimeNS: now - int64(i), EndTimeNS: &now, ExecutionID: fmt.Sprint(now, i), Environment: "production",
			Application: fmt.Sprint("app-", i%500), Route: fmt.Sprint("route-", i%97), Status: rules.Failed, ErrorMessage: "connection refused",
			Attributes: map[string]string{"customer": fmt.Sprint(i % 1000)},
		}
	}
	w.ch.Insert(w.t, exchanges...)
}

// TestQueriesDoNotGrowWithTenantsAndRules checks that the passes over a partition use the same
// number of queries and statements for one tenant as for thirty, for ten rules as for thousands,
// and if every fifth of them counts.
func TestQueriesDoNotGrowWithTenantsAndRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rules, tenants int }{
		"ten rules of one tenant":   {10, 1},
		"300 rules of 30 tenants":   {300, 30},
		"3,000 rules of one tenant": {3000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, usualPartitions)
			w.manyRules(c.rules, c.tenants)
			tap := newWiretap(t, w.pgURL)
			db, err := postgres.Open(t.Context(), tap.url, w.box)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			source := w.watched()
			// On a machine that is busy otherwise, a pass may take long.
			e := w.newEvaluator(evaluator.Options{Source: source, Store: db.Evaluation(time.Minute), Interval: time.Minute, LeaseFor: 10 * time.Minute})
			tick := func() (result evaluator.Result, queries, statements int) {
				t.Helper()
				before := sum(tap.counts())
				source.queries()
				result, err := w.tickWith(e)
				if err != nil || result.Failed+result.Stale+result.Deferred > 0 {
					t.Fatalf("Tick = %+v, %v", result, err)
				}
				return result, source.queries(), sum(tap.counts()) - before
			}
			tick() // evaluates the look-back
			for _, rows := range []int{0, 1000, 100} {
				if rows == 100 {
					w.letCount(false)
					tick() // reads the rules that changed
				}
				w.failMany(rows, c.tenants)
				result, queries, statements := tick()
				// Customer 42 of one exchange, with its application and route, and also wildcards.
				if rows == 1000 && c.rules == 3000 && c.tenants == 1 && result.Alerts == 0 {
					t.Error("nothing was raised")
				}
				if queries == 0 || queries > 8 || statements == 0 || statements > 25 {
					t.Errorf("%d queries and %d statements in a pass with %d exchanges", queries, statements, rows)
				}
				t.Logf("%d exchanges: %d queries, %d statements, %v", rows, queries, statements, result.Took)
			}
		})
	}
}

// BenchmarkTenThousandRules measures ten ticks of 10,000 rules on real databases; only in the first
// of them are there new exchanges. cores is the share of a core that this process would use for
// them in ten seconds, tick-ms the duration of the tick that does the work.
func BenchmarkTenThousandRules(b *testing.B) {
	for _, rows := range []int{0, 200, 2000} {
		b.Run(fmt.Sprintf("%d exchanges", rows), func(b *testing.B) {
			w := newWorldOf(b, usualPartitions)
			w.manyRules(10_000, 1)
			w.interval(b, rows)
		})
	}
}

// BenchmarkTwoThousandCount is the same with every fifth rule counting, over an hour with 100,000
// failed exchanges: all of these rules by names and error types, or a quarter of them by messages.
func BenchmarkTwoThousandCount(b *testing.B) {
	for name, withMessages := range map[string]bool{"by names": false, "a quarter by messages": true} {
		b.Run(name, func(b *testing.B) {
			w := newWorldOf(b, usualPartitions)
			w.manyRules(10_000, 1)
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

// interval measures intervals in each of which the given number of exchanges fails.
func (w *world) interval(b *testing.B, rows int) {
	b.Helper()
	source := w.watched()
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
	source.queries()
	for b.Loop() {
		b.StopTimer()
		w.failMany(rows, 1)
		b.StartTimer()
		before, began := cpu(b), time.Now()
		if result := tick(); result.Failed+result.Stale > 0 {
			b.Fatalf("Tick = %+v", result)
		}
		longest = max(longest, time.Since(began))
		for range 9 {
			tick()
		}
		used += cpu(b) - before
	}
	b.ReportMetric(float64(used)/float64(b.N)/float64(10*time.Second), "cores")
	b.ReportMetric(float64(longest.Milliseconds()), "tick-ms")
	b.ReportMetric(float64(source.queries())/float64(b.N), "queries/op")
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
