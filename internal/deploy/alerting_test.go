package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// prometheus starts a Prometheus that scrapes an address twice a second, with the rules changed to
// wait for a second instead of minutes, and to treat as late what is some seconds old. It returns
// the address of its API.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	quick := regexp.MustCompile(`(?m)^( +for:) \w+$`).ReplaceAll(text, []byte("$1 1s"))
	quick = regexp.MustCompile(`> (60|3600)\b`).ReplaceAll(quick, []byte("> 8"))
	quick = bytes.ReplaceAll(quick, []byte("[1h]"), []byte("[10s]"))
	config := fmt.Sprintf(`global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: tocsin
    static_configs: [{targets: [%q]}]
`, target)
	err = errors.Join(os.WriteFile(filepath.Join(dir, "rules.yaml"), quick, 0o644), os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"), //nolint:noctx // ended below
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("prometheus: %v (put it in the PATH)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "http://" + address
}

// firing returns the names of the alerts that a Prometheus has raised.
func firing(ctx context.Context, prometheus string) (names []string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, prometheus+"/api/v1/alerts", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read as far as it matters
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string            `json:"state"`
				Labels map[string]string `json:"labels"`
			} `json:"alerts"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	return names, nil
}

// everyQueryShowsSomething runs the queries of each panel of the dashboard against Prometheus.
func everyQueryShowsSomething(t *testing.T, prometheus string) {
	t.Helper()
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			query := strings.NewReplacer("$__rate_interval", "1m", "$job", "tocsin").Replace(target.Expr)
			answer, err := get(t.Context(), prometheus+"/api/v1/query?"+url.Values{"query": {query}}.Encode())
			if err != nil {
				t.Errorf("the panel %q: %v", p.Title, err)
				continue
			}
			data, _ := answer["data"].(map[string]any)
			if series, _ := data["result"].([]any); len(series) == 0 {
				t.Errorf("the panel %q shows nothing for %s", p.Title, query)
			}
		}
	}
}

// namesAreConventional lets promtool check the metrics of a replica, and compares them with the
// list of metrics in both directions.
func namesAreConventional(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var notified []string
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (\w+) \w+$`).FindAllStringSubmatch(string(text), -1) {
		notified = append(notified, line[1])
		if strings.HasPrefix(line[1], "tocsin_") && !slices.Contains(Metrics(), line[1]) {
			t.Errorf("internal/deploy/metrics.go does not list %s", line[1])
		}
	}
	for _, name := range Metrics() {
		if !slices.Contains(notified, name) {
			t.Errorf("a replica does not report %s", name)
		}
	}
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// isDrawn checks that the picture of the dashboard has each of its panels, with lines from
// Prometheus.
func isDrawn(t *testing.T, prometheus string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dashboard.svg")
	if out, err := exec.CommandContext(t.Context(), "go", "run", "./dashboard", "-picture", file, "-prometheus", prometheus, "-for", "30s").CombinedOutput(); err != nil {
		t.Fatalf("draw: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(text, new(struct{ XMLName xml.Name })); err != nil {
		t.Errorf("the picture is no XML: %v", err)
	}
	for _, p := range panels(t) {
		if !strings.Contains(string(text), ">"+html.EscapeString(p.Title)+"</text>") {
			t.Errorf("the picture has no panel %q", p.Title)
		}
	}
	if n := strings.Count(string(text), "<polyline"); n < len(panels(t))/2 || strings.Contains(string(text), "No data") {
		t.Errorf("the picture has %d lines, or figures without data", n)
	}
}

// source is a proxy in front of ClickHouse that can fail all queries, or only those for the older
// look-back. It returns the URL of the proxy.
func source(t *testing.T, away, older *atomic.Bool) string {
	t.Helper()
	_, clickhouse := servers(t)
	to, err := url.Parse(clickhouse)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return // The client is gone.
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		// The query of what is recent has a range up to the clock of ClickHouse minus a settling
		// time.
		looksBack := bytes.Contains(text, []byte("tocsin_range")) || bytes.Contains(text, []byte("tocsin_checksum")) && !bytes.Contains(text, []byte("{settle:Int64}"))
		if away.Load() || older.Load() && looksBack {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	to.Host = strings.TrimPrefix(server.URL, "http://")
	return to.String()
}

// TestAlertsFireAndClear breaks a Tocsin that a real Prometheus watches, and repairs it: a replica
// is killed; a receiver is gone, rejects a message, does not respond; commits and retention wait for a
// lock; an alert is lost; ClickHouse, its answers about the past and a key are unavailable; and no
// replica runs.
func TestAlertsFireAndClear(t *testing.T) {
	postgres, clickhouse := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, postgres.String(), nil, "migrate"))
	var status atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s := status.Load(); s != 0 {
			w.WriteHeader(int(s))
		}
	}))
	t.Cleanup(receiver.Close)
	var away, older atomic.Bool
	settings := []string{
		"TOCSIN_CLICKHOUSE_URL=" + source(t, &away, &older), "TOCSIN_HEARTBEAT_INTERVAL=300ms", "TOCSIN_DEAD_AFTER=2s", "TOCSIN_DEAD_CHECK_INTERVAL=1s", "TOCSIN_RECONCILE_INTERVAL=1s", "TOCSIN_RETENTION_INTERVAL=1s",
		"TOCSIN_BREAKER_AFTER=1", "TOCSIN_BREAKER_PAUSE=1s", "TOCSIN_BREAKER_MAX_PAUSE=1s", "TOCSIN_RETRY_SCHEDULE=2s" + strings.Repeat(",2s", 200),
	}
	database, err := pgx.Connect(t.Context(), postgres.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close(context.WithoutCancel(t.Context())) })
	does := func(statement string, args ...any) {
		t.Helper()
		if _, err := database.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	r := startReplica(t, settings...)
	other := startReplica(t, settings...)
	watch := prometheus(t, r.address)
	wait := func(what, name string, fires bool) {
		t.Helper()
		untilWithin(t, 5*time.Minute, what, func(ctx context.Context) error {
			names, err := firing(ctx, watch)
			if err == nil && slices.Contains(names, name) != fires {
				err = fmt.Errorf("firing are %v", names)
			}
			return err
		})
	}
	for _, name := range []string{
		"TocsinDown", "TocsinReplicaLost", "TocsinWebhookOff", "TocsinDeadLetters", "TocsinSourceFailing", "TocsinKeyMissing", "TocsinWebhookOpen", "TocsinMessagesWaiting",
		"TocsinLagging", "TocsinBacklog", "TocsinRetentionStopped", "TocsinAlertsMissing",
	} {
		wait("nothing at first", name, false)
	}

	if err := other.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait("a replica is killed", "TocsinReplicaLost", true)
	does(`update replica set beat_at = beat_at - interval '1 hour' where beat_at < now() - interval '2 seconds'`)
	wait("it is forgotten after an hour", "TocsinReplicaLost", false)

	api := "http://" + r.address + "/api/v1"
	name := "watched " + freeAddress(t)
	hook, err := post(t.Context(), api+"/webhooks", fmt.Appendf(nil, `{"name": %q, "kind": "generic", "url": %q}`, name, receiver.URL))
	if err != nil {
		t.Fatal(err)
	}
	rule, err := post(t.Context(), api+"/rules", fmt.Appendf(nil, `{"name": %q, "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 60,
		"scope": {"applications": [%q]}, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, name, name, hook["id"]))
	if err != nil || rule["id"] == nil {
		t.Fatal(rule, err)
	}
	status.Store(http.StatusGone)
	if err := insertFailure(t.Context(), clickhouse, name); err != nil {
		t.Fatal(err)
	}
	wait("the receiver is gone", "TocsinWebhookOff", true)
	status.Store(http.StatusUnprocessableEntity)
	if _, err := post(t.Context(), fmt.Sprintf("%s/webhooks/%s/enable", api, hook["id"]), nil); err != nil {
		t.Fatal(err)
	}
	wait("the webhook is enabled", "TocsinWebhookOff", false)

	wait("the receiver refuses the message", "TocsinDeadLetters", true)
	if _, err := post(t.Context(), api+"/notifications/discard", []byte(`{"filter": {"status": ["FAILED"]}}`)); err != nil {
		t.Fatal(err)
	}
	wait("the message is discarded", "TocsinDeadLetters", false)

	status.Store(http.StatusInternalServerError)
	if err := insertFailureOf(t.Context(), clickhouse, name, name+" again"); err != nil {
		t.Fatal(err)
	}
	wait("the receiver fails", "TocsinWebhookOpen", true)
	wait("its message waits", "TocsinMessagesWaiting", true)
	status.Store(0)
	wait("the receiver answers", "TocsinWebhookOpen", false)
	wait("the message is delivered", "TocsinMessagesWaiting", false)

	everyQueryShowsSomething(t, watch)
	namesAreConventional(t, r.address)
	isDrawn(t, watch)

	does(`begin`)
	does(`select from checkpoint for update`)
	does(`select from retention_pass for update`)
	wait("no commit succeeds", "TocsinLagging", true)
	wait("no pass of retention ends", "TocsinRetentionStopped", true)
	does(`rollback`)
	wait("commits succeed", "TocsinLagging", false)
	wait("a pass of retention ended", "TocsinRetentionStopped", false)

	does(`delete from alert where rule_id = $1`, rule["id"])
	wait("alerts are lost", "TocsinAlertsMissing", true)
	if _, err := post(t.Context(), fmt.Sprintf("%s/rules/%s/disable", api, rule["id"]), nil); err != nil {
		t.Fatal(err)
	}
	wait("the rule asks for none", "TocsinAlertsMissing", false)
	// A source that no rule needs is not read.
	if _, err := post(t.Context(), fmt.Sprintf("%s/rules/%s/enable", api, rule["id"]), nil); err != nil {
		t.Fatal(err)
	}

	away.Store(true)
	wait("ClickHouse is away", "TocsinSourceFailing", true)
	away.Store(false)
	wait("ClickHouse is back", "TocsinSourceFailing", false)

	older.Store(true)
	_, err = post(t.Context(), api+"/rules", fmt.Appendf(nil, `{"name": "looks back %s", "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 3600,
		"scope": {"applications": [%q]}, "filter": {"statuses": ["FAILED"]}}`, name, name))
	if err != nil {
		t.Fatal(err)
	}
	wait("the look-back cannot be read", "TocsinBacklog", true)
	older.Store(false)
	wait("the look-back can be read", "TocsinBacklog", false)

	// Another key cannot decrypt what the first one has encrypted.
	const former, other32 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	for _, c := range []struct {
		keys  string
		fires bool
	}{{other32, true}, {other32 + "," + former, false}} {
		r.stop(t)
		r = startReplica(t, append(settings, "TOCSIN_LISTEN="+strings.TrimPrefix(api[:len(api)-len("/api/v1")], "http://"), "TOCSIN_ENCRYPTION_KEY="+c.keys)...)
		wait("the keys are "+c.keys, "TocsinKeyMissing", c.fires)
	}

	r.stop(t)
	wait("no replica runs", "TocsinDown", true)
	r = startReplica(t, append(settings, "TOCSIN_LISTEN="+strings.TrimPrefix(api[:len(api)-len("/api/v1")], "http://"))...)
	wait("a replica runs", "TocsinDown", false)
	r.stop(t)
}
