package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
	"tocsin/rules"
)

func newRenderer(t *testing.T, publicURL string) *webhook.Renderer {
	t.Helper()
	r, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: publicURL})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRenderGolden(t *testing.T) {
	custom := func(text string) func(*notify.Delivery) {
		return func(d *notify.Delivery) { d.Webhook.BodyTemplate = text }
	}
	for name, c := range map[string]struct {
		publicURL string
		change    []func(*notify.Delivery)
	}{
		"generic":           {"https://tocsin.example/", nil},
		"generic-completed": {"", []func(*notify.Delivery){func(d *notify.Delivery) { d.Alert = template.Samples()[1]; d.Alert.Exchange.EndTimeNS = nil }}},
		"generic-test":      {"", []func(*notify.Delivery){func(d *notify.Delivery) { d.Test = true }}},
		"slack":             {"https://tocsin.example", []func(*notify.Delivery){slackKind}},
		"custom-generic": {"https://tocsin.example", []func(*notify.Delivery){custom(
			`{"summary": "{{alert.title}}", "source": "{{exchange.application}}", "dedup_key": "{{alert.id}}", "links": [{"href": "{{alert.url}}"}], "n": 1.50}`)}},
		"custom-slack": {"", []func(*notify.Delivery){
			slackKind, custom(`{"text": "{{alert.id}} *{{exchange.route}}* {{exchange.errorMessage}}"}`),
			func(d *notify.Delivery) { d.Alert.Exchange.ErrorMessage = "<!channel> & \"quotes\"" },
		}},
		"generic-count":            {"https://tocsin.example", []func(*notify.Delivery){counting(notify.ReasonFired, 7)}},
		"generic-count-reminder":   {"", []func(*notify.Delivery){counting(notify.ReasonReminder, 9), ungrouped}},
		"generic-count-resolved":   {"https://tocsin.example", []func(*notify.Delivery){counting(notify.ReasonResolved, 0)}},
		"slack-count":              {"https://tocsin.example", []func(*notify.Delivery){slackKind, counting(notify.ReasonFired, 7)}},
		"slack-count-reminder":     {"https://tocsin.example", []func(*notify.Delivery){slackKind, counting(notify.ReasonReminder, 9), ungrouped}},
		"slack-count-resolved":     {"https://tocsin.example", []func(*notify.Delivery){slackKind, counting(notify.ReasonResolved, 0)}},
		"generic-rule-failing":     {"https://tocsin.example", []func(*notify.Delivery){health(notify.ReasonRuleFailing)}},
		"slack-rule-failing":       {"https://tocsin.example", []func(*notify.Delivery){slackKind, health(notify.ReasonRuleFailing)}},
		"slack-rule-recovered":     {"https://tocsin.example", []func(*notify.Delivery){slackKind, health(notify.ReasonRuleRecovered)}},
		"slack-source-failing":     {"https://tocsin.example", []func(*notify.Delivery){slackKind, health(notify.ReasonSourceFailing)}},
		"slack-source-recovered":   {"https://tocsin.example", []func(*notify.Delivery){slackKind, health(notify.ReasonSourceRecovered)}},
		"generic-source-recovered": {"", []func(*notify.Delivery){health(notify.ReasonSourceRecovered)}},
		"generic-webhook-off":      {"https://tocsin.example", []func(*notify.Delivery){health(notify.ReasonWebhookOff)}},
		"slack-webhook-off":        {"https://tocsin.example", []func(*notify.Delivery){slackKind, health(notify.ReasonWebhookOff)}},
		"generic-digest":           {"https://tocsin.example", []func(*notify.Delivery){digest, custom(`{"own": "{{alert.id}}"}`)}},
		"slack-digest":             {"https://tocsin.example", []func(*notify.Delivery){slackKind, digest}},
		"generic-digest-silence":   {"https://tocsin.example", []func(*notify.Delivery){digest, silenced}},
		"slack-digest-silence":     {"https://tocsin.example", []func(*notify.Delivery){slackKind, digest, silenced}},
		"custom-count": {"", []func(*notify.Delivery){counting(notify.ReasonReminder, 7), custom(
			`{"id": "{{alert.id}}", "why": "{{alert.reason}}", "text": "{{count.group}}: {{count.observed}} of {{count.threshold}} in {{count.window}} ({{count.windowSeconds}})"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery("", c.change...)
			body, problem := newRenderer(t, c.publicURL).Render(d)
			if problem != nil || body.ContentType != "application/json" {
				t.Errorf("problem %v, content type %q", problem, body.ContentType)
			}
			golden(t, name+".json", body.Content)
		})
	}
}

// digest turns the delivery into one of many alerts.
func digest(d *notify.Delivery) {
	first, last := template.Samples()[0], template.Samples()[1]
	d.Reason, d.Alert = notify.ReasonDigest, alerts.Instance{}
	d.Digest = &notify.Digest{
		Size: 5003, Reasons: map[notify.Reason]int{notify.ReasonFired: 5000, notify.ReasonRuleFailing: 1, notify.ReasonResolved: 2},
		Rules: []notify.DigestRule{
			{ID: first.RuleID, Name: first.RuleName, Severity: rules.Critical, Count: 5002},
			{ID: uuid.UUID{7}, Name: "Slow <invoices>", Severity: rules.Warning, Count: 1},
		},
		AllRules:  2,
		Places:    []notify.DigestPlace{{Application: "orders", Route: "order-to-erp", Count: 4000}, {Application: "billing", Route: "", Count: 1000}},
		AllPlaces: 12, AllErrors: 1,
		Errors:       []notify.DigestError{{Type: "java.net.SocketTimeoutException", Message: "<!channel> timed out after 1000 ms", Count: 5000}},
		FirstFiredAt: first.FiredAt, LastFiredAt: first.FiredAt.Add(90 * time.Second), First: &first, Last: &last,
		Alerts: []uuid.UUID{first.ID, last.ID},
	}
}

// silenced turns a digest into one of what a silence suppressed.
func silenced(d *notify.Delivery) {
	delete(d.Digest.Reasons, notify.ReasonRuleFailing)
	d.Digest.Silence = &notify.DigestSilence{
		ID: uuid.UUID{9}, Name: "Deploy <orders>", From: d.Digest.FirstFiredAt.Add(-time.Minute), Until: d.Digest.LastFiredAt.Add(time.Hour),
	}
}

// health turns the alert into one about its rule, or about a webhook.
func health(reason notify.Reason) func(*notify.Delivery) {
	return func(d *notify.Delivery) {
		d.Reason = reason
		d.Alert.Health, d.Alert.Severity, d.Alert.Exchange = true, rules.Warning, rules.Exchange{}
		d.Alert.Title, d.Alert.Message = "Rule Failed orders cannot be evaluated", "scan exchanges: clickhouse: connection refused"
		if reason == notify.ReasonWebhookOff {
			d.Alert.WebhookID = uuid.UUID{13: 1}
			d.Alert.Title, d.Alert.Message = "Webhook ops is disabled", "It was disabled: 410 Gone\nIts messages wait. Correct the webhook, then enable it."
		}
		if reason == notify.ReasonSourceFailing || reason == notify.ReasonSourceRecovered {
			d.Alert.Title, d.Alert.Message = "The source of exchanges cannot be read", "Rules are not evaluated until it can be read again. connection refused"
		}
		if reason == notify.ReasonRuleRecovered || reason == notify.ReasonSourceRecovered {
			at := d.Alert.FiredAt.Add(12 * time.Minute)
			d.Alert.State, d.Alert.ResolvedAt = alerts.Resolved, &at
		}
	}
}

// counting turns the alert into one of a window rule.
func counting(reason notify.Reason, observed int64) func(*notify.Delivery) {
	return func(d *notify.Delivery) {
		d.Reason = reason
		d.Alert.Title, d.Alert.Message = "order-to-erp: 7 exchanges within 10 min", "At least 5 match."
		d.Alert.Count = &alerts.Count{Observed: observed, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: "order-to-erp"}
		if reason == notify.ReasonResolved {
			at := d.Alert.FiredAt.Add(12 * time.Minute)
			d.Alert.State, d.Alert.ResolvedAt = alerts.Resolved, &at
		}
	}
}

// ungrouped counts all exchanges together, and has no newest one.
func ungrouped(d *notify.Delivery) {
	d.Alert.Count.GroupBy, d.Alert.Count.Group, d.Alert.Exchange = rules.GroupByNothing, "", rules.Exchange{}
}

func TestRenderFallsBack(t *testing.T) {
	for name, c := range map[string]struct {
		kind          notify.WebhookKind
		text, problem string
	}{
		"broken":                 {notify.KindGeneric, `{"a": "{{>x}}"}`, "body template: line 1, column 7: Partials"},
		"broken, Slack":          {notify.KindSlack, `{`, "body template: line 1"},
		"not for Slack":          {notify.KindSlack, `{"id": "{{alert.id}}"}`, "neither text nor blocks"},
		"unknown block of Slack": {notify.KindSlack, `{"blocks": [{"type": "sektion"}]}`, "no such type of block"},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery("", func(d *notify.Delivery) { d.Webhook.Kind, d.Webhook.BodyTemplate = c.kind, c.text })
			body, problem := newRenderer(t, "").Render(d)
			if problem == nil || !strings.Contains(problem.Error(), c.problem) {
				t.Errorf("problem %v, want …%s…", problem, c.problem)
			}
			d.Webhook.BodyTemplate = ""
			standard, _ := newRenderer(t, "").Render(d)
			if string(body.Content) != string(standard.Content) {
				t.Errorf("body %s, want the kind's own layout", body.Content)
			}
		})
	}
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"", "</script>", "<!channel>", "\x00", "\xff", "```", `\u0000`, "{{alert.id}}"}),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"<&>", "😀", "\x00", "\xff", "\"\\\n"}).Draw(t, "piece"), rapid.SampledFrom([]int{100, 5000, 60_000}).Draw(t, "times"))
		}),
	)
}

func TestEveryBodyIsReadableAndNamesItsAlert(t *testing.T) {
	renderers := map[string]*webhook.Renderer{"": newRenderer(t, ""), "links": newRenderer(t, "https://tocsin.example")}
	rapid.Check(t, func(t *rapid.T) {
		d := delivery("")
		d.Webhook.Kind = rapid.SampledFrom([]notify.WebhookKind{notify.KindSlack, notify.KindGeneric}).Draw(t, "kind")
		d.Webhook.BodyTemplate = rapid.SampledFrom([]string{
			"", "{", `{"text": "{{alert.id}} {{exchange.errorMessage}}"}`,
			`{"blocks": [{"type": "section", "block_id": "{{alert.id}}", "text": {"type": "mrkdwn", "text": "{{exchange.errorStack}}{{exchange.errorStack}}{{exchange.errorStack}}{{exchange.errorStack}}"}}]}`,
		}).Draw(t, "template")
		text := func(name string) string { return anyText().Draw(t, name) }
		d.Alert.Title, d.Alert.Message, d.Alert.RuleName = text("title"), text("message"), text("rule")
		d.Alert.About = rules.About{Labels: map[string]string{text("label"): text("value")}, Owner: text("owner"), RunbookURL: text("runbook"), Note: text("note")}
		raw := rules.Exchange{
			StartTimeNS: rapid.Int64().Draw(t, "start"), DurationNS: rapid.Int64().Draw(t, "duration"), ExecutionID: text("id"), Environment: text("environment"),
			Application: text("application"), Route: text("route"), Status: rules.Failed, ErrorType: text("type"), ErrorMessage: text("error"),
			ErrorStack: text("stack"), CorrelationID: text("correlation"), Attributes: map[string]string{text("key"): text("value")},
		}
		d.Alert.Exchange = raw
		if rapid.Bool().Draw(t, "cleaned") {
			d.Alert.Exchange = raw.Clean()
		}
		d.Reason = rapid.SampledFrom([]notify.Reason{notify.ReasonFired, notify.ReasonReminder, notify.ReasonResolved}).Draw(t, "reason")
		if rapid.Bool().Draw(t, "counts") {
			d.Alert.Count = &alerts.Count{
				Observed: rapid.Int64().Draw(t, "observed"), Threshold: rapid.Int().Draw(t, "threshold"),
				WindowSeconds: rapid.IntRange(0, 86_400).Draw(t, "window"), GroupBy: rules.GroupByApplication, Group: text("group"),
			}
		}
		body, _ := renderers[rapid.SampledFrom([]string{"", "links"}).Draw(t, "renderer")].Render(d)
		if !json.Valid(body.Content) || !utf8.Valid(body.Content) || len(body.Content) > 512<<10 {
			t.Fatalf("body of %d bytes: %.300q", len(body.Content), body.Content)
		}
		if !strings.Contains(string(body.Content), d.Alert.ID.String()) {
			t.Fatalf("no alert.id in %.300q", body.Content)
		}
		if title, err := json.Marshal(rules.CleanText(d.Alert.Title, 1<<10)); d.Webhook.Kind == notify.KindGeneric && d.Webhook.BodyTemplate == "" &&
			(err != nil || !strings.Contains(string(body.Content), `"title":`+string(title))) {
			t.Fatalf("the title is not %s in %.300q", title, body.Content)
		}
		if d.Webhook.Kind == notify.KindSlack {
			if err := slack.Valid(body.Content); err != nil {
				t.Fatalf("%v: %.300q", err, body.Content)
			}
		}
	})
}

func TestPublicURL(t *testing.T) {
	for _, url := range []string{"tocsin.example", "ftp://x", "https://", "https://u:p@x.example", "https://x.example/?a=b", "https://x.example/#a", "://"} {
		if _, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: url}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
}
