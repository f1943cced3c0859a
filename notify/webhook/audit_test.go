package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

// What is kept of an attempt is compared with a golden file: it must neither lose what an operator
// needs nor begin to contain secrets.
func TestWhatIsKept(t *testing.T) {
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Date", "Sat, 21 Nov 2026 07:02:04 GMT")
		h.Set("Server", "receiver/1")
		h.Add("Set-Cookie", "session=abcdef")
		h.Set("X-Auth-Token", "abcdef")
		h.Set("X-Echo", r.Header.Get("X-Team-Key"))
		h.Set("Location", "https://login.example/with?token=abcdef")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "go there")
	})
	s := newSender(t, func(o *webhook.Options) { o.Now = instant })
	d := delivery(strings.Replace(server.URL, "http://", "http://user:pass-word@", 1)+"/hook/path-with-secret", func(d *notify.Delivery) {
		d.Webhook.SigningSecret = secretA
		d.Webhook.Headers = map[string]string{"X-Team-Key": "team-key-value", "Webhook-Id": "forged"}
		d.At = instant()
	})
	o := send(t, s, d)
	kept, err := json.Marshal(map[string]any{"request": s.Head(d), "response": o.Head, "body": o.Response})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "attempt.json", []byte(strings.ReplaceAll(string(kept), strings.TrimPrefix(server.URL, "http://"), "hooks.example")))
}

// The request headers that are stored before the call are those of the call.
func TestDescribedIsWhatIsSent(t *testing.T) {
	var got http.Header
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	s := newSender(t)
	d := delivery(server.URL, func(d *notify.Delivery) {
		d.Webhook.SigningSecret = secretA
		d.Webhook.Headers = map[string]string{"X-Team": "erp"}
		d.At = instant()
	})
	head := s.Head(d)
	_ = send(t, s, d)
	// Headers that the transport adds are not relevant.
	got.Del("Accept-Encoding")
	got.Del("Content-Length")
	if len(head.Headers) != len(got) {
		t.Errorf("described %v, sent %v", head.Headers, got)
	}
	for _, f := range head.Headers {
		if !f.Masked && got.Get(f.Name) != f.Value {
			t.Errorf("%s: described %q, sent %q", f.Name, f.Value, got.Get(f.Name))
		}
		if _, sent := got[f.Name]; !sent {
			t.Errorf("%s was described, not sent", f.Name)
		}
	}
	if head.BodySHA256 != "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862" || head.BodyBytes != 7 {
		t.Errorf("body %s of %d bytes", head.BodySHA256, head.BodyBytes)
	}
}

func TestDescribesWhatCannotBeSent(t *testing.T) {
	s := newSender(t)
	for name, d := range map[string]*notify.Delivery{
		"no URL":     delivery("http://[::1/%zz"),
		"no body":    delivery("http://x.example", func(d *notify.Delivery) { d.Body = nil }),
		"bad secret": delivery("http://x.example", func(d *notify.Delivery) { d.Webhook.SigningSecret = "whsec_%%%" }),
	} {
		if head := s.Head(d); head.Method != http.MethodPost || head.Headers == nil || len(head.Headers) > 0 {
			t.Errorf("%s: described as %+v", name, head)
		}
	}
}

func TestHeadIsBounded(t *testing.T) {
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 200 {
			w.Header().Add(fmt.Sprintf("X-%03d", i), strings.Repeat("é", 100))
		}
	})
	head := send(t, newSender(t), delivery(server.URL)).Head
	size := len(head.StatusLine)
	for _, f := range head.Headers {
		size += len(f.Name) + len(f.Value)
	}
	if !head.Truncated || size > 4<<10 || size < 3<<10 {
		t.Errorf("%d bytes in %d headers, truncated %t", size, len(head.Headers), head.Truncated)
	}
}

// Whatever the secrets are, and however a receiver sends them back, nothing that is kept of the
// attempt contains one.
func TestNothingKeptShowsASecret(t *testing.T) {
	var reply atomic.Pointer[func(http.ResponseWriter)]
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		(*reply.Load())(w)
	})
	s := newSender(t)
	word := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9+_&=. -]{8,30}[A-Za-z0-9]`)
	rapid.Check(t, func(t *rapid.T) {
		secrets := map[string]string{
			"path": word.Draw(t, "path"), "query": word.Draw(t, "query"), "password": word.Draw(t, "password"),
			"header": word.Draw(t, "header"), "signing": base64.StdEncoding.EncodeToString([]byte(rapid.StringN(24, 30, 60).Draw(t, "signing"))),
		}
		target, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		target.User = url.UserPassword("sender", secrets["password"])
		target = target.JoinPath("hooks", url.PathEscape(secrets["path"]))
		target.RawQuery = url.Values{"key": {secrets["query"]}}.Encode()
		d := delivery(target.String(), func(d *notify.Delivery) {
			d.Webhook.Headers = map[string]string{"Authorization": "Bearer " + secrets["header"], "X-Key": secrets["header"]}
			d.Webhook.SigningSecret = "whsec_" + secrets["signing"]
			d.At = instant()
			if rapid.Bool().Draw(t, "slack") {
				slackKind(d)
			}
		})
		var echo []string
		for _, name := range []string{"path", "query", "password", "header", "signing"} {
			inJSON, err := json.Marshal(secrets[name])
			if err != nil {
				t.Fatal(err)
			}
			echo = append(echo, secrets[name], string(inJSON), url.QueryEscape(secrets[name]), url.PathEscape(secrets[name]))
		}
		echo = append(echo, target.String(), target.RequestURI(), base64.StdEncoding.EncodeToString([]byte("sender:"+secrets["password"])))
		text := rapid.StringN(0, 20, 40).Draw(t, "before") + rapid.SampledFrom(echo).Draw(t, "echo") + rapid.StringN(0, 20, 40).Draw(t, "between") + rapid.SampledFrom(echo).Draw(t, "again")
		status := rapid.SampledFrom([]int{200, 302, 400, 404, 429, 503}).Draw(t, "status")
		header := rapid.SampledFrom([]string{"X-Echo", "Location", "Retry-After", "Www-Authenticate", "Content-Location"}).Draw(t, "in")
		padding := rapid.IntRange(0, 4090).Draw(t, "padding")
		answer := func(w http.ResponseWriter) {
			w.Header().Set(header, strings.Map(printable, text))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.Repeat("x", padding)+text)
		}
		reply.Store(&answer)
		kept, err := json.Marshal(map[string]any{"request": s.Head(d), "outcome": send2(t, s, d)})
		if err != nil {
			t.Fatal(err)
		}
		shown := string(kept) + fmt.Sprintf("%+v", s.Head(d))
		for name, secret := range secrets {
			for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
				if strings.Contains(shown, form) {
					t.Errorf("the secret of the %s, %q, is kept in %s", name, form, shown)
				}
			}
		}
	})
}

func send2(t *rapid.T, s *webhook.Sender, d *notify.Delivery) notify.Outcome {
	t.Helper()
	d.Webhook.Timeout = 10 * time.Second
	return s.Send(t.Context(), d)
}

// printable replaces characters that a header cannot contain.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '.'
	}
	return r
}

func TestDescribesABotsCall(t *testing.T) {
	s := apiOf(t, answer(200, nil, `{"ok":true,"channel":"C1","ts":"1.2"}`))
	d := delivery("", bot)
	head := s.Head(d)
	kept := fmt.Sprintf("%+v %+v", head, send(t, s, d).Head)
	if head.BodyBytes <= len(d.Body.Content) || !strings.Contains(kept, "{Name:Authorization Value: Masked:true}") || strings.Contains(kept, botToken) {
		t.Errorf("kept %s", kept)
	}
}
