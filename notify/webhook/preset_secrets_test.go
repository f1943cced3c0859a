package webhook_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

// ledTo returns the program's presets; those that contain the URL of their service use the given
// address instead.
func ledTo(t *testing.T, address string) *preset.Set {
	t.Helper()
	files, err := filepath.Glob("../preset/receivers/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	folder := t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		led := regexp.MustCompile(`(?m)^(\s*url: "?)(https://[^/\s]+|\{\{input\.(region|base)\}\})`).ReplaceAllString(string(text), "${1}"+address)
		if led == string(text) {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), []byte(led), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := preset.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// secretLike draws a text of the same form as an example: a digit becomes a digit, a lower-case
// letter a lower-case letter, and a hexadecimal letter a hexadecimal one; all else stays.
func secretLike(t *rapid.T, example, label string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return rapid.RuneFrom([]rune("0123456789")).Draw(t, label)
		case r >= 'a' && r <= 'f':
			return rapid.RuneFrom([]rune("abcdef")).Draw(t, label)
		case r >= 'g' && r <= 'z':
			return rapid.RuneFrom([]rune("ghijklmnopqrstuvwxyz")).Draw(t, label)
		}
		return r
	}, example)
}

// hiding returns the inputs of a preset with drawn secrets, and the parts of them that must not be
// shown.
func hiding(t *rapid.T, p *preset.Preset, address string) (inputs map[string]string, hidden []string) {
	inputs = p.Examples()
	for _, in := range p.Inputs {
		example := inputs[in.Name]
		if in.Type == preset.InputURL {
			// It points to this machine. Its secret parts are in its path and query.
			u, err := url.Parse(example)
			if err != nil || example == "" {
				t.Fatalf("%s: the example of %s is %q", p.ID, in.Name, example)
			}
			if !in.Secret {
				inputs[in.Name] = address
				continue
			}
			word := rapid.StringMatching(`[A-Za-z0-9_-]{12,30}`).Draw(t, in.Name)
			path := u.Path[:strings.LastIndex(strings.TrimSuffix(u.Path, "/"), "/")+1] + word
			if inputs[in.Name], hidden = address+path, append(hidden, word); u.RawQuery != "" {
				key := rapid.StringMatching(`[A-Za-z0-9_-]{12,30}`).Draw(t, in.Name+" in the query")
				inputs[in.Name], hidden = inputs[in.Name]+"?key="+key+"&token="+key, append(hidden, key)
			}
			continue
		}
		if in.Secret && example != "" {
			inputs[in.Name] = secretLike(t, example, in.Name)
			hidden = append(hidden, inputs[in.Name])
		}
	}
	return inputs, hidden
}

// TestNothingKeptOfAReceiverShowsASecret: however a service sends back what it was sent, whatever
// it responds, nothing that is stored, logged or shown of an attempt contains a secret of the
// webhook.
func TestNothingKeptOfAReceiverShowsASecret(t *testing.T) {
	t.Parallel()
	var reply atomic.Pointer[func(w http.ResponseWriter, r *http.Request, body string)]
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		(*reply.Load())(w, r, string(body))
	}))
	t.Cleanup(server.Close)
	set, roots := ledTo(t, server.URL), x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s := newSender(t, func(o *webhook.Options) { o.Presets, o.RootCAs = set, roots })
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example.com", Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	var overHTTP []*preset.Preset
	for _, p := range set.All() {
		if !p.Mails() { // see TestNothingKeptOfAnEMailShowsASecret
			overHTTP = append(overHTTP, p)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(overHTTP).Draw(rt, "preset")
		inputs, hidden := hiding(rt, p, server.URL)
		d := &notify.Delivery{
			NotificationID: uuid.UUID{1}, Reason: notify.ReasonFired, Attempt: 1, Alert: template.Samples()[0], At: instant(),
			Webhook: notify.Webhook{ID: uuid.UUID{2}, Kind: notify.KindGeneric, Preset: p.ID, Inputs: inputs, Timeout: 10 * time.Second},
		}
		if fields := webhook.CheckPreset(set, &d.Webhook); len(fields) > 0 {
			rt.Fatalf("%s: %v", p.ID, fields)
		}
		body, problem := renderer.Render(d)
		if problem != nil {
			rt.Fatal(problem)
		}
		d.Body = &body
		status := rapid.SampledFrom([]int{200, 201, 301, 400, 401, 403, 404, 409, 422, 429, 500, 503}).Draw(rt, "status")
		header := rapid.SampledFrom([]string{"X-Echo", "Location", "Retry-After", "Www-Authenticate"}).Draw(rt, "in")
		padding, secret := rapid.IntRange(0, 4090).Draw(rt, "padding"), rapid.SampledFrom(append(hidden, "nothing")).Draw(rt, "said")
		called := false
		answer := func(w http.ResponseWriter, r *http.Request, body string) {
			called = true
			inJSON, _ := json.Marshal(map[string]string{"message": secret + " " + r.RequestURI, "sent": body, "authorization": r.Header.Get("Authorization")})
			w.Header().Set(header, strings.Map(printable, r.RequestURI+" "+r.Header.Get("Authorization")+" "+secret))
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, strings.Repeat("x", padding), secret, url.QueryEscape(secret), string(inJSON), r.Header)
		}
		reply.Store(&answer)
		head, outcome := s.Head(d), send2(rt, s, d)
		if !called {
			rt.Fatalf("%s: nobody was called: %+v", p.ID, outcome)
		}
		kept, err := json.Marshal(map[string]any{"head": head, "outcome": outcome, "body": string(body.Content)})
		if err != nil {
			rt.Fatal(err)
		}
		shown := string(kept) + fmt.Sprintf("%+v %+v", head, outcome)
		for _, text := range hidden {
			for _, form := range []string{text, url.QueryEscape(text), url.PathEscape(text)} {
				if strings.Contains(shown, form) {
					rt.Errorf("%s: the secret %q is kept in %s", p.ID, form, shown)
				}
			}
		}
	})
}
