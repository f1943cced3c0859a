package app_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify/dispatch"
)

// BenchmarkDrain delivers 20,000 queued notifications over 64 connections, and compares that with a
// plain loop that sends as many bodies of the same size to the same receiver, in the same run.
func BenchmarkDrain(b *testing.B) {
	const messages, connections = 20_000, 64
	var drained, posted time.Duration
	for b.Loop() {
		w := newWorld(b)
		var got atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			got.Add(1)
		}))
		b.Cleanup(server.Close)
		w.receiver.url = server.URL
		hook := w.webhook("ops")
		w.exec(`update webhook set max_concurrent = $1`, 4*connections)
		w.oweMany(hook, messages)
		d := w.newDispatcher(dispatch.Options{Slots: 4 * connections})
		ctx, cancel := context.WithCancel(b.Context())
		var running sync.WaitGroup
		began := time.Now()
		running.Go(func() { d.Run(ctx) })
		for len(w.column(`select '' from outbox limit 1`)) > 0 {
			<-time.After(5 * time.Millisecond)
		}
		drained += time.Since(began)
		cancel()
		running.Wait()
		if got.Load() != messages {
			b.Fatalf("%d of %d messages arrived", got.Load(), messages)
		}
		posted += postAll(b, server.URL, messages, connections)
	}
	b.ReportMetric(float64(b.N)*messages/drained.Seconds(), "drained/s")
	b.ReportMetric(float64(b.N)*messages/posted.Seconds(), "posted/s")
	b.ReportMetric(posted.Seconds()/drained.Seconds(), "ratio")
}

// oweMany writes alerts of one rule and a notification of each.
func (w *world) oweMany(hook uuid.UUID, n int) {
	w.t.Helper()
	rule := w.rule(hook)
	w.exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		select gen_random_uuid(), 'default', $1, 1, 'CRITICAL', 'FIRING', 'orders failed', 'ConnectException: ERP refused', 'e' || n, 0, 'orders', 'order-to-erp',
			'{"executionId":"e","status":"FAILED","errorType":"ConnectException","errorMessage":"ERP refused"}' from generate_series(1, $2::int) n`, rule.ID, n)
	w.exec(`with written as (insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select gen_random_uuid(), 'default', alert_id, rule_id, $1, 'FIRED' from alert returning notification_id, webhook_id)
		insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from written`, hook)
	w.exec(`analyze`)
}

// postAll only sends bodies over a number of connections.
func postAll(b *testing.B, url string, n, connections int) time.Duration {
	b.Helper()
	body := bytes.Repeat([]byte("x"), 900)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(n))
	var senders sync.WaitGroup
	began := time.Now()
	for range connections {
		senders.Go(func() {
			for left.Add(-1) >= 0 {
				request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				response, err := client.Do(request)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
	senders.Wait()
	return time.Since(began)
}
