package app_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// BenchmarkKillDuring drains 5,000 messages to four webhooks with the real program, which is killed
// each time after 0.2 to 1.2 s of work, and counts what arrives more than once. The receiver takes
// 5 to 25 ms.
func BenchmarkKillDuring(b *testing.B) {
	const messages = 5000
	var kills, repeats, unknown float64
	for b.Loop() {
		w := newWorld(b)
		rule := w.rule(w.webhook("one"), w.webhook("two"), w.webhook("three"), w.webhook("four"))
		w.exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
			select gen_random_uuid(), 'default', $1, 1, 'CRITICAL', 'FIRING', 'orders failed', 'm', 'e' || n, 0, 'orders', 'order-to-erp', '{}' from generate_series(1, $2::int / 4) n`, rule.ID, messages)
		w.exec(`with written as (insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
				select gen_random_uuid(), 'default', alert_id, rule_id, webhook.webhook_id, 'FIRED' from alert, webhook returning notification_id, webhook_id)
			insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from written`)
		w.exec(`analyze`)
		w.receiver.respond(func(http.ResponseWriter, *http.Request) {
			<-time.After(5*time.Millisecond + rand.N(20*time.Millisecond))
		})
		for len(w.column(unsettledOutbox)) > 0 {
			p := w.serve("TOCSIN_ROLES=dispatch", "TOCSIN_LEASE=500ms", "TOCSIN_POLL_INTERVAL=100ms")
			had := len(w.receiver.webhookIDs())
			w.until("it delivers again", func() bool { return len(w.receiver.webhookIDs()) > had || len(w.column(unsettledOutbox)) == 0 })
			<-time.After(200*time.Millisecond + rand.N(time.Second))
			if len(w.column(unsettledOutbox)) > 0 {
				kills++
			}
			p.kill()
		}
		seen := map[string]int{}
		for _, id := range w.receiver.webhookIDs() {
			seen[id]++
		}
		if len(seen) != messages {
			b.Fatalf("%d of %d messages arrived", len(seen), messages)
		}
		extra := 0
		for _, n := range seen {
			extra += n - 1
		}
		without := len(w.column(`select attempt::text from attempt_history where verdict is null`))
		if extra > without {
			b.Errorf("%d repeats, and only %d attempts of unknown outcome", extra, without)
		}
		repeats += float64(extra)
		unknown += float64(without)
	}
	b.ReportMetric(kills/float64(b.N), "kills")
	b.ReportMetric(repeats/max(kills, 1), "repeats/kill")
	b.ReportMetric(unknown/max(kills, 1), "unknown/kill")
	b.ReportMetric(1000*repeats/float64(b.N)/messages, "repeats/1000msg")
}
