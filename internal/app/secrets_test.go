package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/notify"
)

// TestNoSecretLeavesItsSeal lets a real replica fail at receivers of all kinds and then searches
// for the webhooks' secrets in every column, every log line and every response of the API.
func TestNoSecretLeavesItsSeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secrets := []string{"PATHsecret0123456789", "QUERYsecret0123456789", "PASSWORDsecret012345", "HEADERsecret0123456789", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}
	w.receiver.respond(func(answer http.ResponseWriter, r *http.Request) {
		told := r.URL.String() + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Key") + " " + r.Header.Get("Webhook-Signature")
		if !strings.Contains(r.URL.Path, "/api/") {
			told += " " + secrets[4] // which receivers with a format of their own do not have
		}
		answer.Header().Set("X-Echo", told)
		answer.Header().Set("Location", "http://"+r.Host+r.URL.String())
		switch {
		case strings.Contains(r.URL.Path, "redirects"):
			answer.WriteHeader(http.StatusFound)
		case strings.Contains(r.URL.Path, "/api/"):
			answer.WriteHeader(http.StatusBadRequest)
		default:
			answer.WriteHeader(http.StatusBadGateway)
		}
		_, _ = io.WriteString(answer, told)
	})
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	t.Cleanup(secure.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	receivers := map[string]string{
		"echoes": w.receiver.url, "redirects": w.receiver.url, "refuses": closed.URL, "untrusted": secure.URL, "silent": silent.URL,
		"unknown": "http://no-such-host.invalid", "guarded": "http://169.254.169.254",
	}
	for name, base := range receivers {
		address := strings.Replace(base, "://", "://sender:"+secrets[2]+"@", 1) + "/" + name + "/" + secrets[0] + "?key=" + secrets[1]
		hook, err := w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
			Name: name, Kind: notify.KindGeneric, URL: address, Enabled: true, Timeout: notify.DefaultTimeout / 20, MaxConcurrent: 2,
			Headers: map[string]string{"X-Key": secrets[3], "Authorization": "Bearer " + secrets[3]}, SigningSecret: "whsec_" + secrets[4],
		})
		if err != nil {
			t.Fatal(err)
		}
		w.owed(hook.ID, "of "+name)
	}
	for name, inputs := range map[string]map[string]string{
		"goalert": {"server": w.receiver.url, "token": secrets[1]}, "jira": {"site": w.receiver.url, "user": "sender", "token": secrets[2], "project": "OPS"},
	} {
		hook, err := w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
			Name: name, Kind: notify.KindGeneric, Preset: name, Inputs: inputs, Enabled: true, Timeout: notify.DefaultTimeout, MaxConcurrent: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.owed(hook.ID, "of "+name)
	}
	p := w.serve("TOCSIN_RETRY_SCHEDULE=50ms,50ms", "TOCSIN_LOG_LEVEL=debug")
	w.until("everything is given up", func() bool {
		return len(w.column(`select status from notification_status where status in ('FAILED', 'EXHAUSTED')`)) == len(receivers)+1 && len(w.column(`select name from webhook where disabled_reason <> ''`)) == 1
	})
	shown := map[string]string{"log": p.logged.String()}
	for _, table := range w.column(`select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`) {
		shown["table "+table] = strings.Join(w.column(fmt.Sprintf(`select coalesce(to_jsonb(t)::text, '') || coalesce(t::text, '') from %q t`, table)), "\n")
		for i, body := range w.column(`select convert_from(content, 'UTF8') from notification_body`) {
			shown[fmt.Sprint("frozen body ", i)] = body
		}
	}
	for _, path := range []string{"/api/v1/notifications", "/api/v1/webhooks", "/api/v1/rules", "/api/v1/alerts", "/api/v1/status", "/metrics"} {
		shown[path] = get(t, p.address, path)
	}
	for _, id := range w.column(`select notification_id::text from notification`) {
		path := "/api/v1/notifications/" + id
		shown[path] = get(t, p.address, path)
		var n api.Notification
		if err := json.Unmarshal([]byte(shown[path]), &n); err != nil {
			t.Fatal(err)
		}
		for _, a := range *n.Attempts {
			if a.Request == nil || a.Replica == nil {
				t.Errorf("an attempt without its request: %+v", a)
			}
		}
	}
	for where, text := range shown {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s: %.2000s", where, secret, text)
			}
		}
	}
	if !strings.Contains(shown["table attempt"]+shown["table settlement"], "[redacted]") {
		t.Error("no receiver sent a secret back; the test shows nothing")
	}
}

func get(t *testing.T, address, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", path, resp.Status, err, body)
	}
	return string(body)
}

func post(t *testing.T, address, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
