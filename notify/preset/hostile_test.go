package preset_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/rules"
)

// texts are what failing programs write: markup of every dialect, escapes, characters of all
// lengths, bytes that are no text, and very long texts.
func texts() *rapid.Generator[string] {
	pieces := []string{
		"a", "order 4711 ", "<b>", "</b>", "<", ">", "&", "&amp;", "@all", "@", "here", "@channel ", "<!channel>", "<users/all>", "*", "_", "`", "```", "[x](http://e)", "![",
		"]", "(", "\\", "\\*", "\"", "'", "{{", "}}", "{{alert.title}}", "{\"a\":1}", "\n", "\r", "\t", "\x00", "\x1b", "\u202e", "\u2028", "\u200b", "😀", "é", "漢", "\xff",
		"%2F", "?", "&token=", "#", "/", "…", "$needs", "[redacted]", "  ", "0", "null",
	}
	part := rapid.SampledFrom(pieces)
	short := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "") })
	long := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), ""), rapid.IntRange(100, 3000).Draw(t, "times"))
	})
	return rapid.OneOf(short, short, short, long)
}

func hostileAlert(t *rapid.T) alerts.Instance {
	pool := rapid.SliceOfN(texts(), 3, 3).Draw(t, "texts")
	text := func(name string) string { return rapid.SampledFrom(pool).Draw(t, name) }
	a := alerts.Instance{
		ID: uuid.UUID{15: rapid.Byte().Draw(t, "id")}, RuleName: text("rule"), Severity: rapid.SampledFrom([]rules.Severity{rules.Critical, rules.Warning, rules.Info}).Draw(t, "severity"),
		State: alerts.Firing, Title: text("title"), Message: text("message"), FiredAt: time.Unix(1_795_244_522, 0), Health: rapid.Bool().Draw(t, "health"),
		About: rules.About{Owner: text("owner"), Note: text("note"), RunbookURL: rapid.SampledFrom([]string{"", "https://wiki.example/a?b=c", "javascript:alert(1)", "https://" + strings.Repeat("x", 1900)}).Draw(t, "runbook")},
		Exchange: rules.Exchange{
			ExecutionID: text("execution"), Application: text("application"), Route: text("route"), Environment: text("environment"), Status: rules.Failed,
			StartTimeNS: rapid.Int64().Draw(t, "start"), DurationNS: rapid.Int64().Draw(t, "duration"), ErrorType: text("type"), ErrorMessage: text("error"), ErrorStack: text("stack"),
			CorrelationID: text("correlation"), Attributes: map[string]string{text("key"): text("value")},
		},
	}
	if rapid.Bool().Draw(t, "counts") {
		a.Count = &alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: text("group")}
	}
	return a
}

// request makes the request that a webhook would send, and checks that what is stored of it
// contains no secret.
func request(t *rapid.T, p *preset.Preset, d *notify.Delivery, inputs map[string]string) *http.Request {
	body, _, problem := p.Body(preset.MessageOf(d, rapid.SampledFrom([]string{"", "https://tocsin.example.com/inbox/1", "http://localhost:8080/inbox/1"}).Draw(t, "url")), inputs)
	if problem != nil {
		t.Fatal(problem)
	}
	for _, secret := range p.Secrets(inputs) {
		if bytes.Contains(body.Content, []byte(secret)) {
			t.Fatalf("the stored body holds the secret %q", secret)
		}
	}
	content, err := p.Reveal(body.Content, inputs)
	if err != nil {
		t.Fatal(err)
	}
	target, err := p.Target(preset.EventOf(d.Reason), preset.AboutOf(d), inputs)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), target.Method, target.URL.String(), bytes.NewReader(content))
	r.Header = target.Header
	r.Header.Set("Content-Type", body.ContentType)
	return r
}

// TestHostileExchanges takes alerts through their states at each receiver: whatever their texts
// are, every message is accepted and mentions nobody, and incidents with a key are opened and
// closed.
func TestHostileExchanges(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	// E-mails go to a mail server; see the tests of notify/webhook. Jira needs more than requests;
	// see there, too.
	overHTTP := slices.DeleteFunc(slices.Clone(set.All()), func(p *preset.Preset) bool { return p.Mails() || p.Protocol == preset.ProtocolJira })
	// make test-go PKG=./notify/preset CHECKS=2000 sends some hundred alerts to each.
	rapid.Check(t, func(t *rapid.T) {
		live(t, rapid.SampledFrom(overHTTP).Draw(t, "preset"))
	})
}

// live takes one alert through its states.
func live(t *rapid.T, p *preset.Preset) {
	receiver := presettest.New(p)
	a := hostileAlert(t)
	by, reference := texts().Draw(t, "by"), ""
	life := []notify.Reason{notify.ReasonFired, notify.ReasonReminder, notify.ReasonAcknowledged, notify.ReasonReopened, notify.ReasonResolved}
	if p.Sends(preset.Digest) {
		life = append(life, notify.ReasonDigest)
	}
	for _, reason := range life {
		if !p.Sends(preset.EventOf(reason)) {
			continue
		}
		d := &notify.Delivery{NotificationID: uuid.UUID{14: 9}, Reason: reason, Alert: a, Reference: reference}
		if reason.IsEvent() {
			d.Event = &notify.Event{At: a.FiredAt.Add(time.Minute), By: by}
			d.Alert = d.Event.Tell(reason, a)
		}
		if reason == notify.ReasonDigest {
			d.Alert, d.Reference = alerts.Instance{}, ""
			d.Digest = &notify.Digest{
				Size: 30, AllRules: 1, AllErrors: 40, Rules: []notify.DigestRule{{Name: a.RuleName, Severity: a.Severity, Count: 30}},
				Errors: []notify.DigestError{{Type: a.Exchange.ErrorType, Message: a.Exchange.ErrorMessage, Count: 9}},
			}
		}
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, request(t, p, d, p.Examples()))
		if answer.Code/100 != 2 {
			t.Fatalf("%s: %d: %s", reason, answer.Code, answer.Body)
		}
		j := p.Judge(answer.Code, answer.Header(), answer.Body.Bytes(), preset.Judgement{Verdict: notify.VerdictDelivered}, a.FiredAt)
		if kept := notify.ReferenceOf(d, notify.Outcome{Reference: j.Reference}); kept != nil {
			reference = kept.ID
		}
	}
	if changed := receiver.Changed(); p.Captures() && (len(changed) < 3 || slices.Contains(changed[1:], "none")) {
		t.Fatalf("messages changed or replied to: %v", changed)
	}
	for i, m := range receiver.Messages() {
		if p.Keyed && m.Key != a.ID.String() {
			t.Fatalf("message %d has the key %q", i, m.Key)
		}
	}
	if state := receiver.State(a.ID.String()); p.Keyed && state != "closed" {
		t.Fatalf("after its end the alert is %q", state)
	}
}

// TestStoredBodiesAreFilled gives each secret a value that also occurs in an exchange.
func TestStoredBodiesAreFilled(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	p := set.Get("pagerduty")
	inputs := p.Examples()
	a := alerts.Instance{ID: uuid.UUID{15: 1}, Title: "[redacted]", Message: "{{input.routingKey}}", Severity: rules.Info}
	body, _, err := p.Body(preset.MessageOf(&notify.Delivery{Reason: notify.ReasonFired, Alert: a}, ""), inputs)
	if err != nil {
		t.Fatal(err)
	}
	content, err := p.Reveal(body.Content, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(content, []byte(inputs["routingKey"])); n != 1 {
		t.Errorf("the key occurs %d times in %s", n, content)
	}
	var sent struct {
		RoutingKey string `json:"routing_key"` //nolint:tagliatelle // PagerDuty's
		Payload    struct {
			Summary string `json:"summary"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(content, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.RoutingKey != inputs["routingKey"] || sent.Payload.Summary != "[redacted]" {
		t.Errorf("sent %s", content)
	}
}
