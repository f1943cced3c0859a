package app_test

import (
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/internal/mailtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/webhook"
)

const receiverSecret = "0123456789secret0123456789secret"

// TestAlertsLiveAtEightReceivers takes alerts through their states with seven services and a mail
// server as receivers, which also throttle, fail, break connections, and reject a recipient for a
// while. Nothing is lost, incidents with a key are opened and closed, posted messages are updated,
// what Jira has done without its response arriving is not done twice, no recipient gets an e-mail
// again, and no secret is in the database.
func TestAlertsLiveAtEightReceivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	sender, err := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback(), Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example", Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	w.dispatcher = w.newDispatcher(dispatch.Options{Sender: sender, Renderer: renderer})
	receivers := map[string]*presettest.Receiver{}
	at := func(id string) string {
		receivers[id] = presettest.New(set.Get(id))
		server := httptest.NewServer(receivers[id])
		t.Cleanup(server.Close)
		return server.URL
	}
	post, err := mailtest.New(mailtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(post.Close)
	host, port, err := net.SplitHostPort(post.Address)
	if err != nil {
		t.Fatal(err)
	}
	post.Say(mailtest.Recipient+"later@example.com", mailtest.Answer{Code: 450, Text: "4.2.0 greylisted"}, mailtest.Answer{Code: 450, Text: "4.2.0 greylisted"})
	jira := presettest.NewJira(set.Get("jira"))
	jira.Lose(2)
	jiraServer := httptest.NewServer(jira)
	t.Cleanup(jiraServer.Close)
	var hooks []uuid.UUID
	for id, inputs := range map[string]map[string]string{
		"goalert":     {"server": at("goalert"), "token": "01234567-89ab-cdef-0123-456789abcdef"},
		"servicenow":  {"instance": at("servicenow"), "user": "tocsin", "password": receiverSecret},
		"mattermost":  {"url": at("mattermost") + "/hooks/" + receiverSecret},
		"teams":       {"url": at("teams") + "/workflows/x?sig=" + receiverSecret},
		"email":       {"host": host, "port": port, "security": "none", "from": "alerts@example.com", "to": "now@example.com, later@example.com"},
		"discord":     {"url": at("discord") + "/api/webhooks/1/" + receiverSecret},
		"jira":        {"site": jiraServer.URL, "user": "tocsin", "token": receiverSecret, "project": "OPS"},
		"grafana-irm": {"url": at("grafana-irm") + "/formatted_webhook/" + receiverSecret},
	} {
		hook, err := w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
			Name: id, Kind: notify.KindGeneric, Preset: id, Inputs: inputs, Enabled: true, Timeout: time.Minute, MaxConcurrent: 4,
			Events: set.Get(id).Takes(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if hook.Preset != id || hook.Inputs["url"] != inputs["url"] {
			t.Fatalf("stored as %s with %d inputs", hook.Preset, len(hook.Inputs))
		}
		hooks = append(hooks, hook.ID)
	}
	rule := w.rule(hooks...)
	receivers["goalert"].Script(presettest.Answer{Status: 500, Body: "no such token: 01234567-89ab-cdef-0123-456789abcdef"})
	receivers["teams"].Script(presettest.Answer{Status: 502, Body: "/workflows/x?sig=" + receiverSecret})
	receivers["mattermost"].Script(presettest.Answer{Cut: true})
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	raised := w.raise("a", "b", "c")
	for _, alert := range raised {
		w.doTo(alert, alerts.Acknowledge)
		w.doTo(alert, alerts.Resolve)
	}
	w.until("all is delivered", func() bool {
		w.deliverAll()
		w.hasten()
		return len(w.column(unsettledOutbox)) == 0
	})
	w.wantColumn("not delivered", `select status from settlement where status <> 'DELIVERED'`)
	for id, receiver := range receivers {
		if refusals := receiver.Refusals(); len(refusals) > 0 {
			t.Errorf("%s refused: %v", id, refusals)
		}
		want := 3 * (1 + len(set.Get(id).Takes()) - 1) // these alerts are not reopened
		if got := len(receiver.Messages()); got != want {
			t.Errorf("%s got %d messages, want %d", id, got, want)
		}
		for _, alert := range raised {
			if state := receiver.State(alert.String()); set.Get(id).Keyed && state != "closed" {
				t.Errorf("%s: the alert is %q after its end", id, state)
			}
		}
	}
	issues := jira.Issues()
	for _, i := range issues {
		if i.Status != "Done" || len(i.Comments) != 2 {
			t.Errorf("issue %+v", i)
		}
	}
	if len(issues) != 3 {
		t.Errorf("%d issues of 3 alerts, refused: %v", len(issues), jira.Refusals())
	}
	w.wantColumn("ids that receivers have given", `select preset || ' ' || count(*) from receiver_reference join webhook using (webhook_id) group by preset order by 1`, "jira 3")
	var mailed []string
	for _, m := range post.Messages() {
		for _, to := range m.To {
			at := slices.IndexFunc(m.Header(), func(line string) bool { return strings.HasPrefix(line, "Message-ID: ") })
			mailed = append(mailed, to+" "+m.Header()[at])
		}
	}
	slices.Sort(mailed)
	if messages := 3 * 3; len(mailed) != 2*messages || len(slices.Compact(mailed)) != 2*messages {
		t.Errorf("e-mails came to %d recipients, want %d, each once: %v", len(mailed), 2*messages, mailed)
	}
	w.wantColumn("attempts that reached one recipient", `select count(*)::text from attempt where error like '1 of 2 recipients have received the message%'`, "2")
	kept := slices.Concat(
		w.column(`select w::text from webhook w`), w.column(`select convert_from(content, 'UTF8') from notification_body`), w.column(`select a::text from attempt a`),
		w.column(`select s::text from settlement s`), w.column(`select a::text from audit a`),
		w.column(`select r::text from receiver_reference r`))
	if len(kept) < 50 {
		t.Fatalf("looked at %d rows alone", len(kept))
	}
	for _, text := range kept {
		if strings.Contains(text, receiverSecret) || strings.Contains(text, "01234567-89ab-cdef") {
			t.Errorf("a secret is kept: %s", text)
		}
	}
}

// TestWebhooksForReceiversInFiles applies, compares and exports them.
func TestWebhooksForReceiversInFiles(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("everything", access.Admin).token
	key := f.write("KEY", receiverSecret+"\n")
	content := "webhooks:\n  - name: on call\n    kind: generic\n    preset:\n      id: goalert\n      inputs:\n        server: https://goalert.example.com\n        token: {file: " + key + "}\n"
	path := f.write("hooks.yaml", content)
	f.does(1, []string{"+ webhook on call", "would be 1 created"}, "diff", "-f", path)
	f.does(0, []string{"1 created"}, "apply", "-f", path)
	f.does(0, []string{"1 unchanged"}, "diff", "-f", path)
	f.wantColumn("events", `select array_to_string(events, ' ') || ' ' || preset from webhook where name = 'on call'`, "RESOLVED REOPENED goalert")

	moved := f.write("moved.yaml", strings.Replace(content, "goalert.example.com", "other.example.com", 1))
	f.does(1, []string{"preset.inputs.server"}, "diff", "-f", moved)
	f.does(0, []string{"1 updated"}, "apply", "-f", moved)
	f.does(0, []string{"1 unchanged"}, "diff", "-f", moved)
	f.does(2, []string{"A webhook with this name is for the receiver"}, "diff", "-f", f.write("other.yaml", strings.Replace(content, "id: goalert", "id: rootly", 1)))
	// An input that is dropped from the file is removed.
	routing, region := f.write("ROUTING", "0123456789abcdef0123456789abcdef\n"), "        region: https://events.eu.pagerduty.com\n"
	pager := "webhooks:\n  - name: pager\n    kind: generic\n    preset:\n      id: pagerduty\n      inputs:\n        routingKey: {file: " + routing + "}\n"
	f.does(0, []string{"1 created"}, "apply", "-f", f.write("pager.yaml", pager+region))
	plain := f.write("plain.yaml", pager)
	f.does(1, []string{"preset.inputs.region"}, "diff", "-f", plain)
	f.does(0, []string{"1 updated"}, "apply", "-f", plain)
	f.does(0, []string{"1 unchanged"}, "diff", "-f", plain)

	out, _ := f.command("export", "--kind", "webhooks", "--url", f.base, "--token", f.token)
	if !strings.Contains(out, "id: goalert") || !strings.Contains(out, "server: https://other.example.com") || strings.Contains(out, receiverSecret) {
		t.Errorf("exported as\n%s", out)
	}
}
