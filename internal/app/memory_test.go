package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// resident returns the resident memory of the process in bytes.
func (p *process) resident(tb testing.TB) int {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if _, after, found := strings.Cut(string(text), "VmRSS:"); found {
		text, _, _ = bytes.Cut([]byte(after), []byte("kB"))
	} else {
		text, err = exec.CommandContext(tb.Context(), "ps", "-o", "rss=", "-p", strconv.Itoa(p.Process.Pid)).Output()
	}
	kib, malformed := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || malformed != nil {
		tb.Fatal(err, malformed)
	}
	return kib << 10
}

// TestMemoryDoesNotGrowWithWhatIsStored checks that the replica uses at most 70 MB while idle, and
// only a little more with 50,000 alerts in the inbox and as many queued notifications.
func TestMemoryDoesNotGrowWithWhatIsStored(t *testing.T) {
	t.Parallel()
	const megabyte, most, growth = 1_000_000, 70, 8
	w := newWorld(t)
	hook := w.webhook("ops")
	rule := w.rule(hook)
	w.exec(`update webhook set held_until = now() + interval '1 hour'`)
	// Memory that is garbage for long would be counted as used: with the headroom that a replica
	// leaves its heap, this setting makes it collect after some 10 MB.
	p := w.serve(everyRole, "GOGC=25")
	look := func() {
		t.Helper()
		const committed = `select coalesce(max(committed_at), '-infinity')::text from checkpoint`
		since := w.column(committed)[0]
		for range 3 {
			w.until("the rule has been evaluated", func() bool { return w.column(committed)[0] != since })
			since = w.column(committed)[0]
			for _, path := range []string{"/api/v1/alerts?limit=200", "/api/v1/alerts/counts", "/api/v1/notifications?limit=200", "/api/v1/status", "/metrics"} {
				// A busy machine may not respond in time.
				w.until(path+" answers", func() bool {
					request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					answer, err := http.DefaultClient.Do(request)
					if err != nil {
						t.Fatal(err)
					}
					_ = answer.Body.Close()
					if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
						t.Fatalf("%s answers %d", path, answer.StatusCode)
					}
					return answer.StatusCode == http.StatusOK
				})
			}
		}
	}
	look()
	idle := p.resident(t)
	if idle > most*megabyte {
		t.Errorf("%d bytes are resident while nothing happens, want at most %d MB", idle, most)
	}
	w.fill(`
		with raised as (
			insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
			                   application, route, exchange, signature)
			select gen_random_uuid(), $2, $1, 1, 'CRITICAL', 'FIRING', 'orders failed', 'connection refused', n::text, n, 'orders', 'r',
			       '{"errorType": "ConnectException"}', 'ConnectException: ' || n
			from generate_series(1, 50000) n
			returning alert_id),
		written as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select gen_random_uuid(), $2, alert_id, $1, $3, 'FIRED' from raised
			returning notification_id)
		insert into outbox (notification_id, webhook_id) select notification_id, $3 from written`, rule.ID, tenant, hook)
	look()
	if after := p.resident(t); after > idle+growth*megabyte {
		t.Errorf("%d bytes are resident with 50,000 alerts and notifications, %d without, want at most %d MB more", after, idle, growth)
	} else {
		t.Logf("%d bytes are resident with 50,000 alerts and notifications, %d without", after, idle)
	}
}
