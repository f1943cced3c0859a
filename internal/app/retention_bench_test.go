package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/pgtest"
)

// BenchmarkRetention deletes 200,000 alerts, each with a message, an attempt and a stored body, while
// another evaluation commits 100 alerts at a time, and reports the speed of both.
func BenchmarkRetention(b *testing.B) {
	const rows = 200_000
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		rule := w.rule(w.webhook("ops"))
		w.exec(`update checkpoint set cursor = to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS') || '.000000000Z|'`)
		w.exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
				application, route, exchange, fired_at, resolved_at)
			select gen_random_uuid(), 'default', $1, 1, 'CRITICAL', 'RESOLVED', 'orders failed', repeat('m', 200), 'old-' || n, 0,
				'orders', 'order-to-erp', jsonb_build_object('errorStack', repeat('stack', 100)), now() - interval '40 days',
				now() - interval '35 days' - n * interval '1 s' from generate_series(1, $2::int) n`, rule.ID, rows)
		w.exec(`insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select gen_random_uuid(), 'default', alert_id, rule_id, (select webhook_id from webhook), 'FIRED' from alert`)
		w.exec(`insert into notification_body (notification_id, content_type, content)
			select notification_id, 'application/json', convert_to(repeat('b', 1200), 'UTF8') from notification`)
		w.exec(`insert into settlement (notification_id, tenant_id, status, settled_at, attempt, claim_token, replica, started_at, verdict, status_code, error, response,
				duration_us, response_head)
			select notification_id, 'default', 'DELIVERED', now() - interval '34 days', 1, 1, 'r', now() - interval '34 days', 'DELIVERED', 200, '', 'ok',
				1000, jsonb_build_object('headers', repeat('h', 300)) from notification`)
		w.exec(`analyze`)
		b.StartTimer()

		conn := pgtest.Conn(b, w.pgURL)
		commits := make(chan time.Duration, 100_000)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			ticker := time.NewTicker(50 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-stop:
					return
				case <-ticker.C:
					commits <- commitSome(b, conn, rule.ID)
				}
			}
		}()
		s, began := w.deleter(&deletions{}), time.Now()
		// Alerts of a rule that a commit has locked at that moment are left to the next pass.
		for deleted := 0; deleted < rows; {
			result, err := s.Pass(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			deleted += result.Alerts
		}
		took := time.Since(began)
		close(stop)
		<-stopped
		close(commits)
		var times []time.Duration
		for d := range commits {
			times = append(times, d)
		}
		slices.Sort(times)
		b.ReportMetric(rows/took.Seconds(), "alerts/s")
		b.ReportMetric(float64(len(times)*100)/took.Seconds(), "inserts/s")
		b.ReportMetric(times[len(times)/2].Seconds()*1000, "ms/commit-p50")
		b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "ms/commit-p99")
		b.ReportMetric(times[len(times)-1].Seconds()*1000, "ms/commit-max")
	}
}

// commitSome inserts a hundred alerts as an evaluation does, and returns how long it took.
func commitSome(b *testing.B, conn *pgx.Conn, rule uuid.UUID) time.Duration {
	b.Helper()
	began := time.Now()
	_, err := conn.Exec(b.Context(), `
		with moved as (update rule_state set last_run_at = now() where rule_id = $1 returning rule_id)
		insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		select gen_random_uuid(), 'default', rule_id, 1, 'CRITICAL', 'FIRING', 't', 'm', gen_random_uuid()::text, 0, 'orders', 'order-to-erp', '{}'
		from moved, generate_series(1, 100)`, rule)
	if err != nil {
		b.Error(err)
	}
	return time.Since(began)
}
