package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tocsin/api"
	"tocsin/notify"
)

// signedReceiver records the headers and bodies that it receives.
type signedReceiver struct {
	mu     sync.Mutex
	heads  []http.Header
	bodies []string
}

func (r *signedReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heads, r.bodies = append(r.heads, req.Header.Clone()), append(r.bodies, string(body))
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "thanks")
}

// verifies reports whether the last message has a valid signature with secret.
func (r *signedReceiver) verifies(t *testing.T, secret string) bool {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	last := len(r.heads) - 1
	return wh.Verify([]byte(r.bodies[last]), r.heads[last]) == nil
}

func TestAWebhooksLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rest()
	other := &signedReceiver{}
	server := httptest.NewServer(other)
	t.Cleanup(server.Close)

	hook := answerOf[api.Webhook](t, r.do(201, "POST", "/webhooks", `{"name":"hook","kind":"generic","url":"`+server.URL+`/secret-path","headers":{"X-Key":"hunter2"}}`))
	path := "/webhooks/" + hook.ID.String()
	first := answerOf[api.RotatedSecret](t, r.do(200, "POST", path+"/rotate-secret", `{}`))
	if first.FormerSecretUntil != nil {
		t.Errorf("an unsigned webhook has a former secret: %+v", first)
	}
	second := answerOf[api.RotatedSecret](t, r.do(200, "POST", path+"/rotate-secret", `{"overlapSeconds":3600}`))
	if second.FormerSecretUntil == nil || time.Until(*second.FormerSecretUntil) < 59*time.Minute {
		t.Errorf("rotated %+v", second)
	}
	signs := func(when string, byFirst, bySecond bool) {
		t.Helper()
		result := answerOf[api.TestResult](t, r.do(200, "POST", path+"/test", ""))
		if result.Verdict != "DELIVERED" || *result.StatusCode != 202 || *result.Response != "thanks" {
			t.Fatalf("%s: %+v", when, result)
		}
		if got := other.verifies(t, first.SigningSecret); got != byFirst {
			t.Errorf("%s, the first secret verifies: %v", when, got)
		}
		if got := other.verifies(t, second.SigningSecret); got != bySecond {
			t.Errorf("%s, the second secret verifies: %v", when, got)
		}
		if head := other.heads[len(other.heads)-1]; head.Get("X-Key") != "hunter2" {
			t.Errorf("%s, the headers are lost: %v", when, head)
		}
	}
	signs("while both are valid", true, true)

	// An edit without a secret keeps all secrets.
	tag := r.do(200, "GET", path, "").Header().Get("ETag")
	r.do(428, "PUT", path, `{"name":"renamed"}`)
	edited := answerOf[api.Webhook](t, r.do(200, "PUT", path, `{"name":"renamed","enabled":false}`, "If-Match", tag))
	if edited.Name != "renamed" || edited.Enabled || !edited.HasSigningSecret || edited.FormerSecretUntil == nil || edited.URLHost != strings.TrimPrefix(server.URL, "http://") {
		t.Errorf("edited %+v", edited)
	}
	r.do(412, "PUT", path, `{"name":"again"}`, "If-Match", tag)
	signs("after an edit, though disabled", true, true)

	w.exec(`update webhook set former_secret_until = now() - interval '1 second'`)
	signs("after the overlap", false, true)
	r.do(200, "POST", path+"/rotate-secret", `{"overlapSeconds":3600}`)
	if retired := answerOf[api.Webhook](t, r.do(200, "POST", path+"/retire-secret", "")); retired.FormerSecretUntil != nil {
		t.Errorf("retired %+v", retired)
	}
	signs("after it was replaced and retired", false, false)
	w.wantColumn("what tests left in the record", `select count(*)::text from notification`, "0")

	w.exec(`update webhook set enabled = false, disabled_reason = 'gone', held_until = now() + interval '1 hour'`)
	enabled := answerOf[api.Webhook](t, r.do(200, "POST", path+"/enable", ""))
	if !enabled.Enabled || enabled.DisabledReason != nil || enabled.HeldUntil != nil {
		t.Errorf("enabled %+v", enabled)
	}
	if again := answerOf[api.Webhook](t, r.do(200, "POST", path+"/enable", "")); again.Version != enabled.Version {
		t.Error("enabling an enabled webhook changes it")
	}
	if disabled := answerOf[api.Webhook](t, r.do(200, "POST", path+"/disable", "")); disabled.Enabled {
		t.Errorf("disabled %+v", disabled)
	}
	r.do(409, "POST", "/webhooks", `{"name":"renamed","kind":"generic","url":"https://example.com"}`)
}

func TestTwoEditsOfAWebhookAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.webhook("hook")
	hooks := w.db.Webhooks()
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		all.Go(func() {
			hook, err := hooks.Get(t.Context(), tenant, id)
			if err != nil {
				t.Error(err)
				return
			}
			hook.Version, hook.MaxConcurrent = 1, 2
			if _, err := hooks.Update(t.Context(), tenant, hook); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if won != 1 {
		t.Errorf("%d edits of version 1 were stored", won)
	}
}

func TestATestThatFailsSaysWhyWithoutSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rest()
	hook := answerOf[api.Webhook](t, r.do(201, "POST", "/webhooks", `{"name":"hook","kind":"slack","url":"http://169.254.169.254/services/very-secret-path"}`))
	result := r.do(200, "POST", "/webhooks/"+hook.ID.String()+"/test", "")
	var got api.TestResult
	if err := json.Unmarshal(result.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Verdict) != notify.VerdictRetry.String() || got.Error == nil || strings.Contains(result.Body.String(), "very-secret") {
		t.Errorf("result %s", result.Body)
	}
}
