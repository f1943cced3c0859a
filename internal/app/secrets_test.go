package app_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tocsin/api"
	"tocsin/notify"
	"tocsin/notify/preset"
)

// TestNoSecretLeavesItsSeal lets a real replica fail at receivers of all kinds and then searches
// for the webhooks' secrets in every column, every log line and every response of the API.
func TestNoSecretLeavesItsSeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secrets := []string{"PATHsecret0123456789", "QUERYsecret0123456789", "PASSWORDsecret012345", "HEADERsecret0123456789", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}
	w.receiver.respond(func(answer http.ResponseWriter, r *http.Request) {
		echoed := r.URL.String() + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Key") + " " + r.Header.Get("Webhook-Signature") + " " + secrets[4]
		answer.Header().Set("X-Echo", echoed)
		answer.Header().Set("Location", "http://"+r.Host+r.URL.String())
		if strings.Contains(r.URL.Path, "redirects") {
			answer.WriteHeader(http.StatusFound)
		} else {
			answer.WriteHeader(http.StatusBadGateway)
		}
		_, _ = io.WriteString(answer, echoed)
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
	// Not the port of a server that was closed: it may become that of another test's receiver, which then gets the message.
	const nobody = "http://127.0.0.1:1"
	receivers := map[string]string{
		"echoes": w.receiver.url, "redirects": w.receiver.url, "refuses": nobody, "untrusted": strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), "silent": silent.URL,
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
		w.raiseFor(hook.ID, "of "+name)
	}
	var reached sync.Map // the ids of services
	trusted := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		reached.Store(id, true)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		echoed := r.URL.String() + " " + string(body)
		for name, values := range r.Header {
			echoed += "\n" + name + ": " + strings.Join(values, " ")
		}
		answer.Header().Set("X-Echo", r.URL.String()+" "+r.Header.Get("Authorization"))
		answer.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(answer, echoed)
	}))
	t.Cleanup(trusted.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, services := addressed(t, trusted.URL)
	for _, service := range services {
		inputs := entered(service, trusted.URL)
		secrets = append(secrets, forms(service, inputs)...)
		hook, err := w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
			Name: service.ID, Kind: notify.KindGeneric, Preset: service.ID, Inputs: inputs, Enabled: true, Timeout: notify.DefaultTimeout, MaxConcurrent: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.raiseFor(hook.ID, "of "+service.ID)
	}
	p := w.serve(everyRole, "TOCSIN_RETRY_SCHEDULE=50ms,50ms", "TOCSIN_LOG_LEVEL=debug", "TOCSIN_RECEIVERS="+folder, "TOCSIN_OUTGOING_CA="+authority)
	w.until("everything is given up", func() bool {
		return len(w.column(`select name from webhook w where disabled_reason <> '' or exists (
			select from notification_status s where s.webhook_id = w.webhook_id and s.status in ('FAILED', 'EXHAUSTED'))`)) == len(receivers)+len(services)
	})
	for _, service := range services {
		if _, found := reached.Load(service.ID); !found {
			t.Errorf("nothing was sent to %s: %v", service.ID, w.column(`select w.disabled_reason || ' ' || to_jsonb(s)::text from notification_status s join webhook w using (webhook_id) where w.name = '`+service.ID+"'"))
		}
	}
	shown := map[string]string{"log": p.logged.String()}
	for _, table := range w.column(`select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`) {
		shown["table "+table] = strings.Join(w.column(fmt.Sprintf(`select coalesce(to_jsonb(t)::text, '') || coalesce(t::text, '') from %q t`, table)), "\n")
	}
	for i, body := range w.column(`select convert_from(content, 'UTF8') from notification_body`) {
		shown[fmt.Sprint("frozen body ", i)] = body
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

// addressed writes the presets of all services that are reached by HTTP, as an operator may, with the address of the stand-in
// for those that have one of their own. It repeats soon, and gives up soon.
func addressed(t *testing.T, base string) (folder string, services []*preset.Preset) {
	t.Helper()
	folder = t.TempDir()
	built, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range built.All() {
		if p.Mails() {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../../notify/preset/receivers", p.ID+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		at := base + "/" + p.ID
		changed := regexp.MustCompile(`(?m)^(url: |      - \{value: "?)https://[^/",}\s]+`).ReplaceAll(text, []byte("${1}"+at))
		changed = regexp.MustCompile(`(?m)^(schedule|maxAge): .*$`).ReplaceAll(changed, nil)
		changed = regexp.MustCompile(`(?m)^(    default: )https://[^/\s]+`).ReplaceAll(changed, []byte("${1}"+at))
		file := filepath.Join(folder, p.ID+".yaml")
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		// The replica that reads the folder tries them with samples, which takes half a minute with the race detector.
		own, err := preset.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		services = append(services, own)
	}
	return folder, services
}

// entered is what a person enters for a service: secrets of its own, and the address of the stand-in for it.
func entered(p *preset.Preset, base string) map[string]string {
	inputs := p.Examples()
	for i := range p.Inputs {
		in := &p.Inputs[i]
		switch {
		case in.Type == preset.InputURL && in.Secret:
			inputs[in.Name] = base + "/" + p.ID + "/secret-" + in.Name
		case in.Type == preset.InputURL:
			inputs[in.Name] = base + "/" + p.ID
		case in.Secret && in.Pattern == "":
			inputs[in.Name] = "secret-" + in.Name
		case in.Secret:
			// Where it may, it differs from what is no secret.
			was, reversed := inputs[in.Name], []rune(in.Example)
			slices.Reverse(reversed)
			if inputs[in.Name] = string(reversed); len(p.CheckInputs(inputs)) > 0 {
				inputs[in.Name] = was
			}
		}
	}
	return inputs
}

// forms are the secrets of a service as they may be seen: as they were entered, in a URL, with the user in Basic
// authentication, and the secret part of a URL by itself.
func forms(p *preset.Preset, inputs map[string]string) []string {
	var forms []string
	for i := range p.Inputs {
		in := &p.Inputs[i]
		value := inputs[in.Name]
		if !in.Secret || value == "" {
			continue
		}
		forms = append(forms, value, url.PathEscape(value), url.QueryEscape(value))
		if in.Type == preset.InputURL {
			forms = append(forms, "secret-"+in.Name)
		}
		for _, user := range []string{"user", "account"} {
			forms = append(forms, base64.StdEncoding.EncodeToString([]byte(inputs[user]+":"+value)))
		}
	}
	return forms
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
