package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

// service is a receiver of a preset on this machine, with a sender to it.
type service struct {
	t        *testing.T
	receiver *presettest.Receiver
	renderer *webhook.Renderer
	sender   *webhook.Sender
	webhook  notify.Webhook
}

// newService starts the look-alike of a preset; inputs are derived from its address.
func newService(t *testing.T, id string, inputs func(address string) map[string]string, files ...string) *service {
	t.Helper()
	set, err := preset.Load(files...)
	if err != nil {
		t.Fatal(err)
	}
	receiver := presettest.New(set.Get(id))
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example.com", Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, receiver: receiver, renderer: renderer, sender: newSender(t, func(o *webhook.Options) { o.Presets = set })}
	s.webhook = notify.Webhook{ID: uuid.UUID{2}, Kind: notify.KindGeneric, Preset: id, Inputs: inputs(server.URL), Timeout: time.Minute}
	if fields := webhook.CheckPreset(set, &s.webhook); len(fields) > 0 {
		t.Fatal(fields)
	}
	return s
}

const secretToken = "01234567-89ab-cdef-0123-456789abcdef"

func goAlert(t *testing.T) *service {
	t.Helper()
	return newService(t, "goalert", func(address string) map[string]string {
		return map[string]string{"server": address, "token": secretToken}
	})
}

// tell renders and sends a message about an alert. GoAlert cannot be sent an acknowledgement.
func (s *service) tell(reason notify.Reason) (notify.Outcome, *notify.Delivery) {
	s.t.Helper()
	d := &notify.Delivery{NotificationID: uuid.UUID{1}, Reason: reason, Attempt: 1, Alert: template.Samples()[0], Webhook: s.webhook}
	if reason.IsEvent() {
		d.Event = &notify.Event{At: instant(), By: "Kim"}
	}
	body, problem := s.renderer.Render(d)
	if problem != nil && reason != notify.ReasonAcknowledged {
		s.t.Fatal(problem)
	}
	d.Body = &body
	return s.sender.Send(s.t.Context(), d), d
}

// TestAKeyedReceiverOpensAndCloses sends all messages of an alert over HTTP.
func TestAKeyedReceiverOpensAndCloses(t *testing.T) {
	t.Parallel()
	s := goAlert(t)
	for _, step := range []struct {
		reason notify.Reason
		want   string
	}{
		{notify.ReasonFired, "open"}, {notify.ReasonReminder, "open"}, {notify.ReasonResolved, "closed"}, {notify.ReasonReopened, "open"},
	} {
		o, d := s.tell(step.reason)
		if o.Verdict != notify.VerdictDelivered {
			t.Fatalf("%s: %+v, %v", step.reason, o, s.receiver.Refusals())
		}
		if got := s.receiver.State(d.Alert.ID.String()); got != step.want {
			t.Errorf("after %s the alert is %q", step.reason, got)
		}
	}
	o, _ := s.tell(notify.ReasonAcknowledged)
	if o.Verdict != notify.VerdictRefused || !o.NothingSent || !strings.Contains(o.Error, "not notified of acknowledged") {
		t.Errorf("an event that the receiver does not take: %+v", o)
	}
}

// TestAReceiverThatAsksForMoreKeepsItsMessages: an operator's file has got another input, which webhooks that were made before do not have. No message is lost by that.
func TestAReceiverThatAsksForMoreKeepsItsMessages(t *testing.T) {
	t.Parallel()
	s := goAlert(t)
	delete(s.webhook.Inputs, "server")
	o, _ := s.tell(notify.ReasonFired)
	if o.Verdict != notify.VerdictGone || !o.NothingSent || !strings.Contains(o.Error, "requires Server") {
		t.Errorf("a URL cannot be made: %+v", o)
	}
}

// TestMessagesFollowTheirAlert: a preset of one's own has Discord edit what it has posted, also
// where the answer with its id is long, and post again once a person has deleted it. Where the
// answer was lost, nothing is known.
func TestMessagesFollowTheirAlert(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("../preset/receivers/discord.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(own), "verdicts:\n", `capture: /id
update: {method: PATCH, url: "{{input.url}}/messages/{{event.reference}}?{{#input.thread}}thread_id={{input.thread}}{{/input.thread}}"}
verdicts:
  - {status: 404, pointer: /code, equals: "10008", verdict: RETRY, forget: true, remedy: "The message was deleted; the next attempt posts another one"}
`, 1)
	file := filepath.Join(t.TempDir(), "discord.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newService(t, "discord", func(address string) map[string]string {
		return map[string]string{"url": address + "/api/webhooks/1/" + secretToken, "thread": "123456789012345678"}
	}, file)
	follow := func(reason notify.Reason, reference string) (method string, o notify.Outcome) {
		t.Helper()
		_, d := s.tell(notify.ReasonFired)
		d.Reason, d.Reference = reason, reference
		if reason.IsEvent() {
			d.Event = &notify.Event{At: instant(), By: "Kim"}
		}
		o = s.sender.Send(t.Context(), d)
		return s.sender.Head(d).Method, o
	}
	s.receiver.Script(presettest.Answer{Status: 200, Body: `{"content":"` + strings.Repeat("x", 20_000) + `","id":"77"}`})
	if o, _ := s.tell(notify.ReasonFired); o.Reference == nil || *o.Reference != "77" || len(o.Response) > 4<<10 {
		t.Fatalf("a long answer: %v, %d bytes kept", o.Reference, len(o.Response))
	}
	s.receiver.Script(presettest.Answer{Cut: true})
	if o, _ := s.tell(notify.ReasonFired); o.Reference != nil || o.Verdict != notify.VerdictRetry {
		t.Fatalf("no answer: %+v", o)
	}
	if method, o := follow(notify.ReasonResolved, "1"); method != http.MethodPatch || o.Verdict != notify.VerdictDelivered || len(s.receiver.Changed()) != 1 {
		t.Errorf("%s: %+v, %v", method, o, s.receiver.Refusals())
	}
	if method, o := follow(notify.ReasonResolved, ""); method != http.MethodPost || o.Verdict != notify.VerdictDelivered || o.Reference == nil {
		t.Errorf("without an id: %s, %+v", method, o)
	}
	if method, _ := follow(notify.ReasonReminder, "1"); method != http.MethodPost {
		t.Errorf("a reminder is a message of its own: %s", method)
	}
	s.receiver.Script(presettest.Answer{Status: 200, Body: "{}"}, presettest.Answer{Status: 404, Body: `{"message":"Unknown Message","code":10008}`})
	if _, o := follow(notify.ReasonResolved, "1"); o.Verdict != notify.VerdictRetry || o.Reference == nil || *o.Reference != "" {
		t.Errorf("a message that was deleted: %+v", o)
	}
}

// TestAnswersOfReceivers checks that responses are interpreted by the preset, and show no secret.
func TestAnswersOfReceivers(t *testing.T) {
	t.Parallel()
	s := goAlert(t)
	for _, test := range []struct {
		what   string
		answer presettest.Answer
		want   notify.Verdict
		wait   time.Duration
		remedy string
	}{
		{"a token that is not accepted", presettest.Answer{Status: 401, Body: "unknown token " + secretToken}, notify.VerdictGone, 0, "copy the integration key again"},
		{"too many open alerts", presettest.Answer{Status: 409, Body: "too many"}, notify.VerdictRetry, 0, "close some in GoAlert"},
		{"a pause of its own length", presettest.Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}}, notify.VerdictThrottled, 7 * time.Second, ""},
		{"a pause", presettest.Answer{Status: 429}, notify.VerdictThrottled, 30 * time.Second, ""},
		{"no answer", presettest.Answer{Cut: true}, notify.VerdictRetry, 0, ""},
		{"an error of the server", presettest.Answer{Status: 503}, notify.VerdictRetry, 0, ""},
	} {
		s.receiver.Script(test.answer)
		o, d := s.tell(notify.ReasonFired)
		if o.Verdict != test.want || o.RetryAfter != test.wait || !strings.Contains(o.Error, test.remedy) {
			t.Errorf("%s: %+v", test.what, o)
		}
		head := s.sender.Head(d)
		for _, kept := range []string{o.Response, o.Error, string(d.Body.Content), head.Host} {
			if strings.Contains(kept, secretToken) {
				t.Errorf("%s: the token is in %q", test.what, kept)
			}
		}
	}
}

// TestSecretsOfAURLAreHidden has an input whose whole URL is secret.
func TestSecretsOfAURLAreHidden(t *testing.T) {
	t.Parallel()
	s := newService(t, "mattermost", func(address string) map[string]string {
		return map[string]string{"url": address + "/hooks/abcdefghijklmnopqrstuvwxyz"}
	})
	s.receiver.Script(presettest.Answer{Status: 500, Header: map[string]string{"X-Path": "/hooks/abcdefghijklmnopqrstuvwxyz"}, Body: "no handler for /hooks/abcdefghijklmnopqrstuvwxyz"})
	o, d := s.tell(notify.ReasonFired)
	if o.Verdict != notify.VerdictRetry || strings.Contains(o.Response+o.Error+o.Head.Headers[len(o.Head.Headers)-1].Value, "abcdefghij") {
		t.Errorf("%+v %+v", o, o.Head)
	}
	// The second attempt sends the same as the first.
	if o = s.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
		t.Errorf("%+v, %v", o, s.receiver.Refusals())
	}
}

// TestAReceiverThatIsNotThere disables its webhook, which keeps the messages, and stores no
// body.
func TestAReceiverThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := goAlert(t)
	_, d := s.tell(notify.ReasonFired)
	d.Webhook.Preset = "removed"
	if o := s.sender.Send(t.Context(), d); o.Verdict != notify.VerdictGone || !o.NothingSent || !strings.Contains(o.Error, "TOCSIN_RECEIVERS") {
		t.Errorf("%+v", o)
	}
	body, problem := s.renderer.Render(d)
	if problem == nil || body.Content != nil {
		t.Errorf("a body without the preset: %s, %v", body.Content, problem)
	}
	d.Body = nil
	if o := s.sender.Send(t.Context(), d); o.Verdict != notify.VerdictGone {
		t.Errorf("without a body: %+v", o)
	}
}

// TestCheckPreset rejects what does not match the receiver.
func TestCheckPreset(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	valid := func() notify.Webhook {
		return notify.Webhook{Kind: notify.KindGeneric, Preset: "goalert", Inputs: map[string]string{"server": "https://goalert.example.com", "token": secretToken}}
	}
	for field, change := range map[string]func(*notify.Webhook){
		"preset.id":            func(w *notify.Webhook) { w.Preset = "gaolert" },
		"preset.inputs.token":  func(w *notify.Webhook) { delete(w.Inputs, "token") },
		"preset.inputs.server": func(w *notify.Webhook) { w.Inputs["server"] = "goalert.example.com" },
		"kind":                 func(w *notify.Webhook) { w.Kind = notify.KindSlack },
		"url":                  func(w *notify.Webhook) { w.URL = "https://example.com" },
		"bodyTemplate":         func(w *notify.Webhook) { w.BodyTemplate = "{}" },
		"signingSecret":        func(w *notify.Webhook) { w.SigningSecret = "whsec_" },
		"digestAbove":          func(w *notify.Webhook) { w.DigestAbove = 5 },
		"events[0]":            func(w *notify.Webhook) { w.Events = []notify.Reason{notify.ReasonAcknowledged} },
	} {
		w := valid()
		if fields := webhook.CheckPreset(set, &w); len(fields) > 0 {
			t.Fatal(fields)
		}
		change(&w)
		if fields := webhook.CheckPreset(set, &w); len(fields) == 0 || fields[0].Field != field {
			t.Errorf("%s: %v", field, fields)
		}
	}
}
