package app_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tocsin/rules"
)

// metrics returns the metrics of a replica by name and labels.
func (p *process) metrics(t *testing.T) map[string]string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), " "); found && strings.HasPrefix(name, "tocsin_") {
			values[name] = value
		}
	}
	return values
}

// TestMetricsTellWhatIsMissing runs a replica, deletes an alert in the database, and waits until
// its reconciliation reports that.
func TestMetricsTellWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	now := w.ch.Now(t)
	ago := func(d time.Duration) *int64 { return new(now - d.Nanoseconds()) }
	w.armed(rule, *ago(50 * time.Minute))
	row := func(id string, at *int64) rules.Exchange {
		return rules.Exchange{TenantID: tenant, StartTimeNS: *at, EndTimeNS: at, ExecutionID: id, Status: rules.Failed}
	}
	w.tick()
	w.ch.Insert(t, row("a", ago(10*time.Minute)), row("b", ago(9*time.Minute)))
	p := w.serve("TOCSIN_RECONCILE_INTERVAL=500ms")
	partition := w.column(`select partition::text from tenant_partition`)[0]
	want := func(what string, want map[string]string) {
		t.Helper()
		var got map[string]string
		var last string
		defer func() {
			if t.Failed() {
				t.Log(last)
			}
		}()
		w.until(what, func() bool {
			got = p.metrics(t)
			for name, value := range want {
				if got[name] != value {
					last = fmt.Sprintf("%s is %q, want %q", name, got[name], value)
					return false
				}
			}
			return true
		})
		for _, name := range []string{
			"tocsin_commit_duration_seconds_count", "tocsin_detection_latency_seconds_count", "tocsin_evaluation_lag_seconds",
			"tocsin_outbox_oldest_seconds", "tocsin_fenced_total", "tocsin_late_dropped_total",
			`tocsin_watermark_lag_seconds{partition="` + partition + `"}`, `tocsin_backlog_seconds{partition="` + partition + `"}`, `tocsin_backlog_age_seconds{partition="` + partition + `"}`,
			`tocsin_pass_duration_seconds_count{partition="` + partition + `"}`,
		} {
			if got[name] == "" {
				t.Errorf("%s is absent", name)
			}
		}
	}
	want("everything is delivered", map[string]string{
		`tocsin_alerts_raised_total{late="false"}`: "0", `tocsin_alerts_raised_total{late="true"}`: "2",
		`tocsin_attempts_total{verdict="DELIVERED"}`: "2", "tocsin_outbox_depth": "0", "tocsin_rule_missing": "0",
	})
	w.fail(w.ch.Now(t)+2*int64(time.Second), "in time")
	want("what is in time is raised", map[string]string{`tocsin_alerts_raised_total{late="false"}`: "1", "tocsin_rule_missing": "0"})
	w.exec(`delete from alert where execution_id in ('a', 'b')`)
	want("what is missing is reported", map[string]string{"tocsin_rule_missing": "2", "tocsin_reconciled_rules": "1"})
	w.wantColumn("the pass", `select rules || ' ' || missing || ' ' || next_after from reconciliation`, "1 2 00000000-0000-0000-0000-000000000000")
}

// TestMetricsCountBackfills counts the rules that have progress of their own.
func TestMetricsCountBackfills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule()
	w.rule()
	p := w.serve("TOCSIN_ROLES=api")
	for _, want := range []string{"2", "0"} {
		if got := p.metrics(t)["tocsin_rules_backfilling"]; got != want {
			t.Errorf("%s rules have a backfill, want %s", got, want)
		}
		w.tick()
	}
}
