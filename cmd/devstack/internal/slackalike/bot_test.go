package slackalike

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/webhook"
)

const sayInOrders = `{"channel":"C0ORDERS","text":"a"}`

// asBot makes a call with the bot's token.
func (b *bench) asBot(t *testing.T, status int, method, body string) map[string]any {
	t.Helper()
	got := b.must(t, status, "POST", "/api/"+method, body, "Authorization", "Bearer "+DefaultBot().Token)
	var said map[string]any
	if err := json.Unmarshal([]byte(got.body), &said); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	return said
}

func TestBotIsAnsweredAsByTheWebAPI(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	first := b.asBot(t, 200, "chat.postMessage", sayInOrders)
	if first["ok"] != true || first["channel"] != "C0ORDERS" || first["ts"] != "1795255200.123456" {
		t.Fatalf("posted: %v", first)
	}
	if second := b.asBot(t, 200, "chat.postMessage", `{"channel":"#orders","text":"b"}`); second["ts"] != "1795255200.123457" {
		t.Errorf("posted in the same instant: %v", second)
	}
	for name, c := range map[string]struct{ method, body, word string }{
		"unknown channel":   {"chat.postMessage", `{"channel":"C1","text":"a"}`, "channel_not_found"},
		"no channel":        {"chat.postMessage", `{"text":"a"}`, "channel_not_found"},
		"no text":           {"chat.postMessage", `{"channel":"C0ORDERS"}`, "no_text"},
		"invalid blocks":    {"chat.postMessage", `{"channel":"C0ORDERS","text":"a","blocks":[{}]}`, "invalid_blocks"},
		"not JSON":          {"chat.postMessage", `{`, "invalid_json"},
		"unknown ts":        {"chat.update", `{"channel":"C0ORDERS","ts":"1.1","text":"a"}`, "message_not_found"},
		"no ts":             {"chat.update", sayInOrders, "message_not_found"},
		"update by name":    {"chat.update", `{"channel":"#orders","ts":"1795255200.123456","text":"a"}`, "channel_not_found"},
		"update, no blocks": {"chat.update", `{"channel":"C0ORDERS","ts":"1795255200.123456","text":"a","blocks":[{}]}`, "invalid_blocks"},
		"unknown method":    {"chat.delete", sayInOrders, "unknown_method"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := b.asBot(t, 200, c.method, c.body); got["ok"] != false || got["error"] != c.word {
				t.Errorf("answered %v, want %s", got, c.word)
			}
		})
	}
	for token, word := range map[string]string{"": "not_authed", "Bearer other": "invalid_auth", DefaultBot().Token: "not_authed"} {
		if got := b.must(t, 200, "POST", "/api/chat.postMessage", sayInOrders, "Authorization", token); !strings.Contains(got.body, word) {
			t.Errorf("token %q: %s", token, got.body)
		}
	}
}

func TestRatesOfABot(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *Options) { o.Rate, o.Burst = 1, 2 })
	ts, _ := b.asBot(t, 200, "chat.postMessage", sayInOrders)["ts"].(string)
	b.asBot(t, 200, "chat.postMessage", sayInOrders)
	if got := b.asBot(t, 429, "chat.postMessage", sayInOrders); got["error"] != "ratelimited" {
		t.Errorf("answered %v", got)
	}
	change := `{"channel":"C0ORDERS","ts":"` + ts + `","text":"b"}`
	for range updatesBurst {
		b.asBot(t, 200, "chat.update", change)
	}
	b.asBot(t, 429, "chat.update", change)
	b.clock.move(2 * time.Second)
	b.asBot(t, 200, "chat.update", change)
}

func TestFaultsOfABot(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	for kind, c := range map[string]struct {
		status int
		word   string
	}{"not_in_channel": {200, "not_in_channel"}, "rate_limited": {429, "ratelimited"}, "error": {500, "internal_server_error"}} {
		b.must(t, 200, "POST", "/control/faults", `{"hook":"api/C0ORDERS","kind":"`+kind+`","count":1}`)
		if got := b.asBot(t, c.status, "chat.postMessage", sayInOrders); got["error"] != c.word {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

func TestPageShowsTheLastChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	keep := func(o *Options) { o.Journal = path }
	b := start(t, keep)
	ts, _ := b.asBot(t, 200, "chat.postMessage", `{"channel":"C0ORDERS","text":"before"}`)["ts"].(string)
	b.asBot(t, 200, "chat.update", `{"channel":"C0ORDERS","ts":"`+ts+`","text":"<b>after"}`)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = start(t, keep)
	page := b.must(t, 200, "GET", "/?view=%23orders", "").body
	if strings.Contains(page, ">before<") || !strings.Contains(page, "&lt;b&gt;after") || !strings.Contains(page, "edited") || strings.Contains(page, `id="m2"`) {
		t.Error("the page does not show the message as it was last changed")
	}
	if counts := b.list(t, "").Counts["#orders"]; counts.Accepted != 1 {
		t.Errorf("%+v, want the change not to count as a message", counts)
	}
	events, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/events?view=%23orders&after=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(events)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	head := make([]byte, 16<<10)
	n, err := io.ReadAtLeast(stream.Body, head, 200)
	if err != nil || !strings.Contains(string(head[:n]), `id=\"m1\"`) {
		t.Errorf("the change is not reported as one of message 1: %v, %s", err, head[:n])
	}
}

// TestTocsinsBot posts with the product's sender, presses as a user does, and reads the press as
// the product does.
func TestTocsinsBot(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	sender, err := webhook.New(webhook.Options{
		Now: time.Now, SlackAPI: b.url + "/api", AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example"})
	if err != nil {
		t.Fatal(err)
	}
	bot := DefaultBot()
	d := notify.Delivery{
		NotificationID: uuid.New(), Reason: notify.ReasonFired, Alert: alerts.Instance{ID: uuid.New(), State: alerts.Firing, Title: "ERP is down"},
		Webhook: notify.Webhook{
			Kind: notify.KindSlack, Timeout: time.Minute,
			Slack: notify.SlackApp{Channel: "#orders", BotToken: bot.Token, SigningSecret: bot.SigningSecret},
		},
	}
	if problems := webhook.CheckTarget(&d.Webhook); len(problems) > 0 {
		t.Error(problems)
	}
	body, err := renderer.Render(&d)
	if err != nil {
		t.Fatal(err)
	}
	d.Body = &body
	outcome := sender.Send(context.Background(), &d)
	if outcome.Posted == nil {
		t.Fatalf("outcome %+v", outcome)
	}

	var mu sync.Mutex
	var pressed []slack.Press
	status := http.StatusOK
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		proof := slack.Proof{Timestamp: r.Header.Get(slack.HeaderTimestamp), Signature: r.Header.Get(slack.HeaderSignature)}
		press, ours, err := slack.ReadPress(content)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && ours && slack.Verify(bot.SigningSecret, proof, content, b.clock.read()) == nil {
			pressed = append(pressed, press)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(app.Close)
	press := func(message int64, action string) string {
		return fmt.Sprintf(`{"message":%d,"action":%q}`, message, action)
	}
	b.must(t, 502, "POST", "/control/press", press(1, "tocsin_acknowledge")) // nothing listens
	b.SetRequestURL(app.URL)
	b.must(t, 200, "POST", "/control/press", press(1, "tocsin_acknowledge"))
	mu.Lock()
	if len(pressed) != 1 || pressed[0].AlertID != d.Alert.ID || pressed[0].Action != slack.ActionAcknowledge ||
		pressed[0].Message != *outcome.Posted || pressed[0].User != (slack.User{ID: "U0YOU", Team: team, Name: "slack:you"}) {
		t.Errorf("pressed %+v", pressed)
	}
	status = http.StatusUnauthorized
	mu.Unlock()
	if got := b.must(t, 502, "POST", "/control/press", press(1, "tocsin_resolve")); !strings.Contains(got.body, strconv.Itoa(http.StatusUnauthorized)) {
		t.Errorf("a refused press: %s", got.body)
	}
	b.must(t, 502, "POST", "/control/press", press(1, "tocsin_delete"))
	b.must(t, 502, "POST", "/control/press", press(7, "tocsin_resolve"))
	b.must(t, 403, "POST", "/control/press", press(1, "tocsin_resolve"), "Origin", "https://evil.example")

	if page := b.must(t, 200, "GET", "/?view=%23orders", "").body; !strings.Contains(page, `data-action="tocsin_acknowledge"`) {
		t.Error("the page has no button to press")
	}
	d.Alert.State = alerts.Resolved
	if body, err = renderer.Render(&d); err != nil {
		t.Fatal(err)
	}
	if o := sender.Update(context.Background(), &d.Webhook, *outcome.Posted, &body); o.Verdict != notify.VerdictDelivered {
		t.Errorf("update: %+v", o)
	}
	if page := b.must(t, 200, "GET", "/?view=%23orders", "").body; strings.Contains(page, "data-action") || !strings.Contains(page, "Resolved: ERP is down") {
		t.Error("the page does not show the end")
	}
}

// TestPeopleOfAWorkspace uses the product's sender to look up a user and to send them a message.
func TestPeopleOfAWorkspace(t *testing.T) {
	t.Parallel()
	bot := DefaultBot()
	bot.Addresses = true
	bot.People = []Person{{ID: "U1", Name: "ann", Email: "ann@example.com"}, {ID: "U2", Name: "guest", Email: "guest@example.com", Guest: true}}
	b := start(t, func(o *Options) { o.Bot = &bot })
	sender, err := webhook.New(webhook.Options{
		Now: time.Now, SlackAPI: b.url + "/api", AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	w := notify.Webhook{Kind: notify.KindSlack, Timeout: time.Minute, Slack: notify.SlackApp{Channel: "#orders", BotToken: bot.Token}}
	for user, want := range map[string]slack.Member{"U1": {Email: "ann@example.com", Team: team}, "U2": {Team: team}} {
		if got, err := sender.SlackMember(t.Context(), &w, user); err != nil || got != want {
			t.Errorf("%s: %+v, %v", user, got, err)
		}
	}
	if got, err := sender.SlackMember(t.Context(), &w, "U9"); err == nil {
		t.Errorf("a stranger: %+v", got)
	}
	press := slack.Press{Message: notify.Posted{Channel: "C0ORDERS", TS: "1.2"}, User: slack.User{ID: "U1"}, Thread: "1.1"}
	if err := sender.SlackTell(t.Context(), &w, press, "You & <!channel>"); err != nil {
		t.Error(err)
	}
	press.User.ID = "U9"
	if err := sender.SlackTell(t.Context(), &w, press, "x"); err == nil || !strings.Contains(err.Error(), "user_not_in_channel") {
		t.Errorf("a stranger: %v", err)
	}
	if got := b.must(t, 200, "GET", "/control/ephemerals", "").body; !strings.Contains(got, `"user":"U1"`) || strings.Count(got, `"user"`) != 1 {
		t.Errorf("ephemerals %s", got)
	}
	w.Slack.BotToken = "xoxb-other"
	if got, err := sender.SlackMember(t.Context(), &w, "U1"); err == nil || strings.Contains(err.Error(), "xoxb-other") {
		t.Errorf("another token: %+v, %v", got, err)
	}
	blind := start(t, nil) // the default bot sees no addresses
	if got := blind.must(t, 200, "POST", "/api/users.info", "user=U0YOU", "Authorization", "Bearer "+bot.Token, "Content-Type", "application/x-www-form-urlencoded"); !strings.Contains(got.body, "missing_scope") {
		t.Errorf("without the scope: %s", got.body)
	}
}
