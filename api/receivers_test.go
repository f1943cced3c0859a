package api_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/webhook"
)

const routingKey = "0123456789abcdef0123456789abcdef"

// newReceiversBench returns a bench whose webhooks can use receivers.
func newReceiversBench(t *testing.T, change ...func(*api.Options)) *bench {
	t.Helper()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example", Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	return newBench(t, func(o *api.Options) {
		o.Receivers, o.Renderer = set, renderer
		o.CheckWebhook = func(w *notify.Webhook) []fault.Field {
			if w.Preset != "" {
				return webhook.CheckPreset(set, w)
			}
			return checkWebhook(w)
		}
		for _, f := range change {
			f(o)
		}
	})
}

func TestReceiversAreListed(t *testing.T) {
	t.Parallel()
	b := newReceiversBench(t)
	list := into[api.ReceiverList](b.do("GET", "/api/v1/receivers", "").want(200))
	if len(list.Items) < 16 {
		t.Fatalf("%d receivers", len(list.Items))
	}
	at := slices.IndexFunc(list.Items, func(r api.Receiver) bool { return r.ID == "pagerduty" })
	if r := list.Items[at]; !r.Keyed || r.Own || len(r.Events) != 3 || r.Inputs[0].Name != "routingKey" || !r.Inputs[0].Secret || !r.Inputs[0].Required || r.Inputs[1].Required {
		t.Errorf("%+v", r)
	}
	// A server without receivers lists none, and rejects webhooks for them.
	bare := newBench(t)
	if list := into[api.ReceiverList](bare.do("GET", "/api/v1/receivers", "").want(200)); len(list.Items) != 0 {
		t.Error(list)
	}
}

func TestReceiversArePreviewed(t *testing.T) {
	t.Parallel()
	b := newReceiversBench(t)
	got := into[api.ReceiverPreview](b.do("POST", "/api/v1/receivers/jsm/preview", `{"inputs":{"apiKey":"very-secret-api-key","base":"https://api.eu.opsgenie.com"}}`).want(200))
	var events []string
	for _, r := range got.Requests {
		events = append(events, string(r.Event))
		if strings.Contains(r.URL+r.Body, "very-secret") || !strings.HasPrefix(r.URL, "https://api.eu.opsgenie.com/v2/alerts") {
			t.Errorf("%+v", r)
		}
		for _, h := range r.Headers {
			if h.Name == "Authorization" && (!h.Masked || h.Value != nil) {
				t.Errorf("%+v", h)
			}
		}
	}
	if !slices.Equal(events, []string{"fired", "reminder", "acknowledged", "resolved", "reopened"}) {
		t.Error(events)
	}
	b.do("POST", "/api/v1/receivers/telegram/preview", `{}`).want(200)
	b.do("POST", "/api/v1/receivers/none/preview", `{}`).problem(404, "not_found")
	p := b.do("POST", "/api/v1/receivers/jsm/preview", `{"inputs":{"base":"https://evil.example.com"}}`).problem(400, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "preset.inputs.base" || p.Detail == nil || *p.Detail != "The request is not valid" {
		t.Errorf("%+v", p)
	}
}

func TestWebhooksForReceivers(t *testing.T) {
	t.Parallel()
	b := newReceiversBench(t)
	w := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"pager","kind":"generic","preset":{"id":"pagerduty","inputs":{"routingKey":"`+routingKey+`"}}}`).want(201))
	if w.Preset == nil || w.Preset.Name != "PagerDuty" || !slices.Equal(w.Preset.SecretInputs, []string{"routingKey"}) || len(w.Preset.Inputs) != 0 {
		t.Fatalf("%+v", w.Preset)
	}
	if w.DigestAbove != 0 || w.RatePerSecond != 2 || len(w.Events) != 3 {
		t.Errorf("what PagerDuty begins with: %+v", w)
	}
	for body, field := range map[string]string{
		`{"name":"n","kind":"generic","preset":{"id":"pagre"}}`:                                                                                        "preset.id",
		`{"name":"n","kind":"generic","preset":{"id":"pagerduty","inputs":{"routingKey":"short1"}}}`:                                                   "preset.inputs.routingKey",
		`{"name":"n","kind":"generic","preset":{"id":"pagerduty"}}`:                                                                                    "preset.inputs.routingKey",
		`{"name":"n","kind":"generic","preset":{"id":"pagerduty","inputs":{"routingKey":"` + routingKey + `"}},"digestAbove":5}`:                       "digestAbove",
		`{"name":"n","kind":"generic","url":"https://x.example","preset":{"id":"pagerduty","inputs":{"routingKey":"` + routingKey + `"}}}`:             "url",
		`{"name":"n","kind":"generic","preset":{"id":"goalert","inputs":{"server":"https://g.example","token":"abcdefgh"}},"events":["ACKNOWLEDGED"]}`: "events[0]",
	} {
		p := b.do("POST", "/api/v1/webhooks", body).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field || strings.Contains(p.Errors[0].Message, "short1") {
			t.Errorf("%s: %+v", body, p.Errors)
		}
	}
	path := "/api/v1/webhooks/" + w.ID.String()
	b.do("PUT", path, `{"name":"renamed"}`, "If-Match", `"1"`).want(200)
	b.do("PUT", path, `{"name":"renamed","preset":{"inputs":{"region":"https://events.pagerduty.com"}}}`, "If-Match", `"2"`).want(200)
	stored, err := b.webhooks.get("acme", w.ID)
	if err != nil || stored.Preset != "pagerduty" || !maps.Equal(stored.Inputs, map[string]string{"routingKey": routingKey, "region": "https://events.pagerduty.com"}) {
		t.Fatalf("what was left out did not stay: %v, %v", stored.Inputs, err)
	}
	b.do("POST", path+"/rotate-secret", `{}`).problem(409, "conflict")
	plain, _ := b.aWebhook()
	p := b.do("PUT", plain, `{"name":"hook","preset":{"inputs":{}}}`, "If-Match", `"1"`).problem(400, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "preset" {
		t.Error(p.Errors)
	}
}

// TestNobodyReadsInputsElsewhere rejects edits that would send a secret to another host than the
// one for which it was entered.
func TestNobodyReadsInputsElsewhere(t *testing.T) {
	t.Parallel()
	b := newReceiversBench(t)
	w := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"g","kind":"generic","preset":{"id":"goalert","inputs":{"server":"https://goalert.example.com","token":"secret-token"}}}`).want(201))
	path := "/api/v1/webhooks/" + w.ID.String()
	for _, elsewhere := range []string{"https://evil.example.com", "http://goalert.example.com", "https://goalert.example.com:8443"} {
		p := b.do("PUT", path, `{"name":"g","preset":{"inputs":{"server":"`+elsewhere+`"}}}`, "If-Match", `"1"`).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != "preset.inputs.token" || p.Errors[0].Code != "required" {
			t.Errorf("moved to %s: %+v", elsewhere, p.Errors)
		}
	}
	b.do("PUT", path, `{"name":"g","preset":{"inputs":{"server":"https://goalert.example.com/base"}}}`, "If-Match", `"1"`).want(200)
	b.do("PUT", path, `{"name":"g","preset":{"inputs":{"server":"https://other.example.com","token":"another-token"}}}`, "If-Match", `"2"`).want(200)
}

// TestWebhooksForEMail checks that they are previewed as e-mails, show their addresses but not
// their password, and send it to no other server.
func TestWebhooksForEMail(t *testing.T) {
	t.Parallel()
	b := newReceiversBench(t)
	inputs := `"host":"smtp.example.com","from":"alerts@example.com","to":"kim@example.com, ann@example.com"`
	got := into[api.ReceiverPreview](b.do("POST", "/api/v1/receivers/email/preview", `{"inputs":{`+inputs+`}}`).want(200))
	if len(got.Requests) != len(preset.Events()) {
		t.Errorf("%d events", len(got.Requests))
	}
	for _, r := range got.Requests {
		if r.Method != "SMTP" || r.URL != "smtp://smtp.example.com:587" || !strings.Contains(r.Body, `"subject":"[`) || !strings.Contains(r.Body, `"html":"<!DOCTYPE html>`) {
			t.Errorf("%+v", r)
		}
	}
	w := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"mail","kind":"generic","preset":{"id":"email","inputs":{`+inputs+`,"user":"tocsin","password":"mail-password"}}}`).want(201))
	if w.Preset == nil || !slices.Equal(w.Preset.SecretInputs, []string{"password"}) || w.Preset.Inputs["to"] != "kim@example.com, ann@example.com" || w.DigestAbove != 20 || w.RatePerSecond != 1 {
		t.Fatalf("%+v", w)
	}
	path := "/api/v1/webhooks/" + w.ID.String()
	for _, elsewhere := range []string{`"host":"evil.example.com"`, `"port":"2525"`} {
		p := b.do("PUT", path, `{"name":"mail","preset":{"inputs":{`+elsewhere+`}}}`, "If-Match", `"1"`).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != "preset.inputs.password" {
			t.Errorf("%s: %+v", elsewhere, p.Errors)
		}
	}
	p := b.do("PUT", path, `{"name":"mail","preset":{"inputs":{"security":"none"}}}`, "If-Match", `"1"`).problem(400, "invalid")
	if len(p.Errors) == 0 || p.Errors[0].Field != "preset.inputs.user" || strings.Contains(p.Errors[0].Message, "mail-password") {
		t.Errorf("a password in the clear: %+v", p.Errors)
	}
	b.do("PUT", path, `{"name":"mail","preset":{"inputs":{"to":"kim@example.com"}}}`, "If-Match", `"1"`).want(200)
}

// TestATestEndsWhatItOpens tests webhooks of receivers that know alerts by a key.
func TestATestEndsWhatItOpens(t *testing.T) {
	t.Parallel()
	b := newReceiversBench(t)
	b.sender.outcome = notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 202}
	w := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"pager","kind":"generic","preset":{"id":"pagerduty","inputs":{"routingKey":"`+routingKey+`"}}}`).want(201))
	result := into[api.TestResult](b.do("POST", "/api/v1/webhooks/"+w.ID.String()+"/test", "").want(200))
	if result.Verdict != "DELIVERED" || result.Problem != nil || len(b.sender.sent) != 2 {
		t.Fatalf("%+v, %d sent", result, len(b.sender.sent))
	}
	opened, ended := b.sender.sent[0], b.sender.sent[1]
	if opened.Reason != notify.ReasonFired || ended.Reason != notify.ReasonResolved || opened.Alert.ID != ended.Alert.ID || !ended.Test {
		t.Errorf("%s %s, then %s %s", opened.Reason, opened.Alert.ID, ended.Reason, ended.Alert.ID)
	}
	if body := string(ended.Body.Content); !strings.Contains(body, `"resolve"`) || !strings.Contains(body, opened.Alert.ID.String()) {
		t.Error(body)
	}
	b.sender.sent, b.sender.outcome = nil, notify.Outcome{Verdict: notify.VerdictGone, Error: "The receiver answered 401"}
	b.do("POST", "/api/v1/webhooks/"+w.ID.String()+"/test", "").want(200)
	if len(b.sender.sent) != 1 {
		t.Errorf("%d sent, although nothing was opened", len(b.sender.sent))
	}
}
