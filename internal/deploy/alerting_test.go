package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
)

// prometheus starts one that scrapes an address twice a second by the rules, which wait for a second instead of minutes.
// It returns the address of its API.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	quick := regexp.MustCompile(`(?m)^( +for:) \w+$`).ReplaceAll(text, []byte("$1 1s"))
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

// TestAlertsFireAndClear breaks a Tocsin that a real Prometheus watches, and repairs it: its receiver is gone and comes
// back, then the only replica.
func TestAlertsFireAndClear(t *testing.T) {
	postgres, _ := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, postgres.String(), nil, "migrate"))
	var gone atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(receiver.Close)
	r := startReplica(t)
	watch := prometheus(t, r.address)
	wait := func(what, name string, fires bool) {
		t.Helper()
		until(t, what, func(ctx context.Context) error {
			names, err := firing(ctx, watch)
			if err == nil && slices.Contains(names, name) != fires {
				err = fmt.Errorf("firing are %v", names)
			}
			return err
		})
	}
	wait("nothing at first", "TocsinDown", false)

	api := "http://" + r.address + "/api/v1"
	name := "watched " + freeAddress(t)
	hook, err := post(t.Context(), api+"/webhooks", fmt.Appendf(nil, `{"name": %q, "kind": "generic", "url": %q}`, name, receiver.URL))
	if err != nil {
		t.Fatal(err)
	}
	rule, err := post(t.Context(), api+"/rules", fmt.Appendf(nil, `{"name": %q, "fireMode": "PER_EXCHANGE", "severity": "INFO",
		"scope": {"applications": [%q]}, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, name, name, hook["id"]))
	if err != nil || rule["id"] == nil {
		t.Fatal(rule, err)
	}
	gone.Store(true)
	_, clickhouse := servers(t)
	if err := insertFailure(t.Context(), clickhouse, name); err != nil {
		t.Fatal(err)
	}
	wait("the receiver is gone", "TocsinWebhookOff", true)
	gone.Store(false)
	if _, err := post(t.Context(), fmt.Sprintf("%s/webhooks/%s/enable", api, hook["id"]), nil); err != nil {
		t.Fatal(err)
	}
	wait("the webhook is enabled", "TocsinWebhookOff", false)

	r.stop(t)
	wait("no replica runs", "TocsinDown", true)
}
