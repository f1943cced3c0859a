package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/notify"
)

func (m *webhookMemory) Update(_ context.Context, tenant string, edited notify.Webhook) (notify.Webhook, error) {
	return m.change(tenant, edited.ID, func(w *notify.Webhook) error {
		if w.Version != edited.Version {
			return fault.New(fault.Stale, "the webhook has been edited since")
		}
		*w = edited
		w.Version++
		return nil
	})
}

func (m *webhookMemory) SetEnabled(_ context.Context, tenant string, id uuid.UUID, enabled bool) (notify.Webhook, error) {
	return m.change(tenant, id, func(w *notify.Webhook) error {
		w.Enabled = enabled
		return nil
	})
}

func (m *webhookMemory) Rotate(_ context.Context, tenant string, id uuid.UUID, r api.Rotation) (notify.Webhook, error) {
	return m.change(tenant, id, func(w *notify.Webhook) error {
		w.FormerSecret, w.FormerSecretUntil = w.SigningSecret, instant().Add(r.Overlap)
		w.SigningSecret = r.Secret
		return nil
	})
}

func (m *webhookMemory) Retire(_ context.Context, tenant string, id uuid.UUID) (notify.Webhook, error) {
	return m.change(tenant, id, func(w *notify.Webhook) error {
		w.FormerSecret = ""
		return nil
	})
}

// senderMemory records what it is given to send.
type senderMemory struct {
	sent    []notify.Delivery
	outcome notify.Outcome
	// until is the deadline of the last one.
	until time.Time
}

func (m *senderMemory) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	m.sent = append(m.sent, *d)
	m.until, _ = ctx.Deadline()
	return m.outcome
}

const firstSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// aWebhook creates a webhook and returns its path.
func (b *bench) aWebhook() (path string, id uuid.UUID) {
	b.t.Helper()
	w := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"hook","kind":"generic","url":"https://example.com/secret-path",
"headers":{"Authorization":"Bearer hunter2"},"signingSecret":"`+firstSecret+`"}`).want(201))
	return "/api/v1/webhooks/" + w.ID.String(), w.ID
}

func TestWebhooksAreEdited(t *testing.T) {
	b := newBench(t)
	path, id := b.aWebhook()
	b.do("PUT", path, `{"name":"renamed"}`).problem(428, "precondition_required")
	b.do("PUT", path, `{"name":"renamed"}`, "If-Match", `"7"`).problem(412, "stale")
	b.do("PUT", "/api/v1/webhooks/"+uuid.NewString(), `{"name":"renamed"}`, "If-Match", `"1"`).problem(404, "not_found")

	w := into[api.Webhook](b.do("PUT", path, `{"name":"renamed","timeoutSeconds":20,"enabled":false}`, "If-Match", `"1"`).want(200))
	if w.Name != "renamed" || w.TimeoutSeconds != 20 || w.Enabled || w.Version != 2 || w.MaxConcurrent != notify.DefaultMaxConcurrent {
		t.Errorf("edited %+v", w)
	}
	stored, err := b.webhooks.get("acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if stored.URL != "https://example.com/secret-path" || stored.Headers["Authorization"] != "Bearer hunter2" || stored.SigningSecret != firstSecret {
		t.Error("secrets that were left out did not stay")
	}
	// Nobody can read the values by having them sent to another address.
	for _, elsewhere := range []string{"https://example.org/x", "http://example.com/secret-path", "https://example.com:8443/secret-path"} {
		p := b.do("PUT", path, `{"name":"renamed","url":"`+elsewhere+`"}`, "If-Match", `"2"`).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != "headers" || p.Errors[0].Code != "required" {
			t.Errorf("moved to %s without headers: %+v", elsewhere, p.Errors)
		}
	}
	second, secondID := b.aWebhook()
	b.do("PUT", second, `{"name":"other path","url":"https://EXAMPLE.com/other-path"}`, "If-Match", `"1"`).want(200)
	if stored, err := b.webhooks.get("acme", secondID); err != nil || stored.URL != "https://EXAMPLE.com/other-path" || stored.Headers["Authorization"] != "Bearer hunter2" {
		t.Errorf("another path: %+v, %v", stored.Headers, err)
	}
	w = into[api.Webhook](b.do("PUT", path, `{"name":"renamed","url":"https://example.org/x","headers":{},"signingSecret":""}`, "If-Match", `"2"`).want(200))
	if w.URLHost != "example.org" || w.HasSigningSecret || len(w.HeaderNames) != 0 || !w.Enabled {
		t.Errorf("edited %+v", w)
	}
	for body, field := range map[string]string{
		`{"name":""}`:                          "name",
		`{"name":"n","url":"ftp://x"}`:         "url",
		`{"name":"n","url":""}`:                "url",
		`{"name":"n","kind":"slack"}`:          "kind",
		`{"name":"n","signingSecret":"short"}`: "signingSecret",
		`{"name":"n","timeoutSeconds":0}`:      "timeoutSeconds",
		`{"name":"n","bodyTemplate":"{"}`:      "bodyTemplate",
	} {
		p := b.do("PUT", path, body, "If-Match", `"3"`).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: errors %+v", body, p.Errors)
		}
	}
}

func TestSlackAppsAreEdited(t *testing.T) {
	b := newBench(t)
	w := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"bot","kind":"slack","slack":{"channel":"#ops","botToken":"xoxb-1234567890-secret"}}`).want(201))
	path := "/api/v1/webhooks/" + w.ID.String()
	w = into[api.Webhook](b.do("PUT", path, `{"name":"bot","slack":{"channel":"#alerts"}}`, "If-Match", `"1"`).want(200))
	if w.Slack == nil || w.Slack.Channel != "#alerts" || !w.Slack.HasBotToken {
		t.Errorf("edited %+v", w)
	}
	b.do("PUT", path, `{"name":"renamed"}`, "If-Match", `"2"`).want(200)
	if stored, err := b.webhooks.get("acme", w.ID); err != nil || stored.Slack.BotToken != "xoxb-1234567890-secret" {
		t.Errorf("the token did not stay: %v", err)
	}
	b.do("POST", path+"/rotate-secret", `{}`).problem(409, "conflict")
	w = into[api.Webhook](b.do("PUT", path, `{"name":"renamed","url":"https://hooks.slack.com/services/x"}`, "If-Match", `"3"`).want(200))
	if w.Slack != nil || w.URLHost != "hooks.slack.com" {
		t.Errorf("edited %+v", w)
	}
}

func TestSecretsAreRotated(t *testing.T) {
	b := newBench(t)
	path, id := b.aWebhook()
	rotated := into[api.RotatedSecret](b.do("POST", path+"/rotate-secret", `{"overlapSeconds":60}`).want(200))
	stored, err := b.webhooks.get("acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(rotated.SigningSecret, "whsec_") || stored.SigningSecret != rotated.SigningSecret || stored.FormerSecret != firstSecret ||
		rotated.FormerSecretUntil == nil || !rotated.FormerSecretUntil.Equal(instant().Add(time.Minute)) {
		t.Errorf("rotated %+v", rotated)
	}
	if got := b.do("GET", path, "").want(200).Body.String(); strings.Contains(got, "whsec_") || !strings.Contains(got, "formerSecretUntil") {
		t.Errorf("webhook %s", got)
	}
	if w := into[api.Webhook](b.do("POST", path+"/retire-secret", "").want(200)); w.FormerSecretUntil != nil || !w.HasSigningSecret {
		t.Errorf("retired %+v", w)
	}
	b.do("POST", path+"/rotate-secret", `{"overlapSeconds":-1}`).problem(400, "invalid")
	b.do("POST", path+"/rotate-secret", `{"overlapSeconds":604801}`).problem(400, "invalid")
}

func TestWebhooksAreTested(t *testing.T) {
	b := newBench(t)
	path, id := b.aWebhook()
	b.sender.outcome = notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 404, Error: "404 Not Found", Response: "no such hook", Duration: 12 * time.Millisecond}
	got := into[api.TestResult](b.do("POST", path+"/test", "").want(200))
	if got.WebhookID != id || got.Verdict != "REFUSED" || *got.StatusCode != 404 || got.DurationMs != 12 || *got.Error != "404 Not Found" || *got.Response != "no such hook" || got.Problem != nil {
		t.Errorf("result %+v", got)
	}
	// A receiver may need longer than the webhook's timeout: the sender knows the actual one.
	if bound := b.sender.sent[0].Webhook.Timeout; bound != notify.DefaultTimeout || time.Until(b.sender.until) <= bound {
		t.Errorf("a test may take %v, and ends after %v", bound, time.Until(b.sender.until))
	}
	var message struct {
		Test bool
		Data struct{ Alert struct{ Title string } }
	}
	if err := json.Unmarshal(b.sender.sent[0].Body.Content, &message); err != nil || !message.Test || !strings.HasPrefix(message.Data.Alert.Title, "[Test] ") {
		t.Errorf("message %s, %v", b.sender.sent[0].Body.Content, err)
	}
	b.do("POST", "/api/v1/webhooks/"+uuid.NewString()+"/test", "").problem(404, "not_found")
	if w := into[api.Webhook](b.do("POST", path+"/disable", "").want(200)); w.Enabled {
		t.Errorf("disabled %+v", w)
	}
	if w := into[api.Webhook](b.do("POST", path+"/enable", "").want(200)); !w.Enabled {
		t.Errorf("enabled %+v", w)
	}
}

func (m *senderMemory) Head(d *notify.Delivery) notify.RequestHead {
	return notify.RequestHead{Method: "POST", Host: "example.com", Headers: []notify.HeaderField{
		{Name: "Webhook-Id", Value: d.NotificationID.String()}, {Name: "X-Key", Masked: true},
	}}
}
