package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

const (
	botToken  = "xoxb-1-2-abcdefghijklmnop"
	appSecret = "0123456789abcdef0123456789abcdef"
)

func bot(d *notify.Delivery) {
	d.Webhook.Kind, d.Webhook.URL = notify.KindSlack, ""
	d.Webhook.Slack = notify.SlackApp{Channel: "#ops", BotToken: botToken, SigningSecret: appSecret}
}

// apiOf returns a sender to a Slack that is implemented by h.
func apiOf(t *testing.T, h http.HandlerFunc) *webhook.Sender {
	t.Helper()
	server := receiver(t, h)
	return newSender(t, func(o *webhook.Options) { o.SlackAPI = server.URL + "/api/" })
}

func TestBotsCalls(t *testing.T) {
	var got *http.Request
	var body map[string]any
	s := apiOf(t, func(w http.ResponseWriter, r *http.Request) {
		got, body = r, nil
		_ = json.NewDecoder(r.Body).Decode(&body)
		// The response repeats the message, which is longer than what is kept.
		_, _ = fmt.Fprintf(w, `{"message":{"text":%q},"ok":true,"channel":"C1","ts":"1.2"}`, strings.Repeat("x", 50_000))
	})
	d := delivery("", bot, func(d *notify.Delivery) {
		d.Webhook.Headers = map[string]string{"Authorization": "Bearer other"}
		d.Body.Content = []byte(`{"text":"x","channel":"#elsewhere","n":1.50}`)
	})
	o := send(t, s, d)
	if o.Verdict != notify.VerdictDelivered || o.Posted == nil || *o.Posted != (notify.Posted{Channel: "C1", TS: "1.2"}) || len(o.Response) > 4096 {
		t.Errorf("outcome %+v", o)
	}
	if got.URL.Path != "/api/chat.postMessage" || got.Header.Get("Authorization") != "Bearer "+botToken ||
		got.Header.Get("Content-Type") != "application/json; charset=utf-8" || got.Header.Get("webhook-id") != d.NotificationID.String() {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	if fmt.Sprint(body) != "map[channel:#ops n:1.5 text:x]" {
		t.Errorf("body %v", body)
	}
	o = s.Update(context.Background(), &d.Webhook, notify.Posted{Channel: "C1", TS: "1.2"}, d.Body)
	if o.Verdict != notify.VerdictDelivered || got.URL.Path != "/api/chat.update" || fmt.Sprint(body) != "map[channel:C1 n:1.5 text:x ts:1.2]" {
		t.Errorf("outcome %+v of %s with %v", o, got.URL, body)
	}
}

// TestMessagesOfAnIssueGoIntoItsThread: a thread that has been deleted is forgotten.
func TestMessagesOfAnIssueGoIntoItsThread(t *testing.T) {
	var body map[string]any
	answer := `{"ok":true,"channel":"C1","ts":"1.3"}`
	s := apiOf(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&body)
		_, _ = io.WriteString(w, answer)
	})
	d := delivery("", bot, func(d *notify.Delivery) { d.Thread, d.Webhook.Slack.Threads = "1.2", true })
	if o := send(t, s, d); o.Verdict != notify.VerdictDelivered || body["thread_ts"] != "1.2" || o.Reference != nil {
		t.Errorf("outcome %+v of %v", o, body)
	}
	for reason, inChannel := range map[notify.Reason]any{notify.ReasonEscalated: true, notify.ReasonSnoozeEnded: true, notify.ReasonReminder: nil} {
		clear(body)
		d := delivery("", bot, func(d *notify.Delivery) { d.Thread, d.Webhook.Slack.Threads, d.Reason = "1.2", true, reason })
		if send(t, s, d); body["thread_ts"] != "1.2" || body["reply_broadcast"] != inChannel {
			t.Errorf("%s is posted as %v", reason, body)
		}
	}
	answer = `{"ok":false,"error":"thread_not_found"}`
	o := send(t, s, d)
	if r := notify.ReferenceOf(d, o); o.Verdict != notify.VerdictRetry || r == nil || *r != (notify.Reference{AlertID: d.Alert.ID, Gone: "1.2", Thread: true}) {
		t.Errorf("outcome %+v, forgets %+v", o, r)
	}
	for _, word := range []string{"restricted_action_non_threadable_channel", "restricted_action_thread_locked", "cannot_reply_to_message"} {
		answer = `{"ok":false,"error":"` + word + `"}`
		if r := notify.ReferenceOf(d, send(t, s, d)); r == nil || r.Gone != "1.2" {
			t.Errorf("after %s, forgets %+v", word, r)
		}
	}
	d.Webhook.Slack.Threads = false
	clear(body)
	if send(t, s, d); body["thread_ts"] != nil {
		t.Errorf("a webhook without threads posts %v", body)
	}
}

func TestAnswersToABot(t *testing.T) {
	const (
		delivered = notify.VerdictDelivered
		retry     = notify.VerdictRetry
		gone      = notify.VerdictGone
		refused   = notify.VerdictRefused
	)
	for name, c := range map[string]struct {
		status  int
		body    string
		verdict notify.Verdict
		error   string
	}{
		"without a place":       {200, `{"ok":true}`, delivered, ""},
		"not in the channel":    {200, `{"ok":false,"error":"not_in_channel"}`, gone, "not_in_channel: invite the app to the channel"},
		"revoked":               {200, `{"ok":false,"error":"token_revoked"}`, gone, "enter the new token"},
		"scope":                 {200, `{"ok":false,"error":"missing_scope","needed":"chat:write"}`, gone, "give the app the scope chat:write"},
		"too long":              {200, `{"ok":false,"error":"msg_too_long"}`, refused, "msg_too_long"},
		"gone message":          {200, `{"ok":false,"error":"message_not_found"}`, refused, "message_not_found"},
		"fatal":                 {200, `{"ok":false,"error":"fatal_error"}`, retry, "fatal_error"},
		"5xx beats words":       {500, `{"ok":false,"error":"token_revoked"}`, retry, "500"},
		"429":                   {429, `{"ok":false,"error":"ratelimited"}`, notify.VerdictThrottled, "429"},
		"429 without a word":    {429, ``, notify.VerdictThrottled, "429"},
		"ok, but 500":           {500, `{"ok":true,"channel":"C1","ts":"1.2"}`, retry, "500"},
		"a page in between":     {200, `<html>sign in</html>`, retry, "200 OK: the response is not from Slack's API"},
		"forbidden in between":  {403, `no`, retry, "403"},
		"redirected in between": {302, ``, retry, "302"},
		"gone in between":       {410, ``, retry, "410"},
		"an error that is odd":  {200, `{"ok":false,"error":"<b>"}`, retry, "unknown_error"},
	} {
		t.Run(name, func(t *testing.T) {
			o := send(t, apiOf(t, answer(c.status, nil, c.body)), delivery("", bot))
			if o.Verdict != c.verdict || o.Posted != nil || !strings.Contains(o.Error, c.error) || (o.Error == "") != (c.verdict == delivered) {
				t.Errorf("outcome %+v, want %v and …%s…", o, c.verdict, c.error)
			}
		})
	}
}

// A message that Slack says it has accepted is not sent again because the response, which repeats
// the message, arrived incompletely.
func TestAnswersToABotThatAreCut(t *testing.T) {
	place := notify.Posted{Channel: "C1", TS: "1.2"}
	for name, c := range map[string]struct {
		// length is the Content-Length of the response; 0 means that of the body.
		length  int
		body    string
		verdict notify.Verdict
		posted  notify.Posted
		error   string
	}{
		"in the message":          {5000, `{"ok":true,"channel":"C1","ts":"1.2","message":{"te`, notify.VerdictDelivered, place, ""},
		"beyond what is read":     {0, `{"ok":true,"channel":"C1","ts":"1.2","message":{"text":"` + strings.Repeat(`\u0444`, 45_000) + `"}}`, notify.VerdictDelivered, place, ""},
		"in the time":             {5000, `{"ok":true,"channel":"C1","ts":"1.`, notify.VerdictDelivered, notify.Posted{}, ""},
		"after it was taken":      {5000, `{"ok":true`, notify.VerdictDelivered, notify.Posted{}, ""},
		"an odd place":            {0, `{"ok":true,"channel":1,"ts":"1.2"}`, notify.VerdictDelivered, notify.Posted{}, ""},
		"before it was taken":     {5000, `{"ok":tr`, notify.VerdictRetry, notify.Posted{}, "the response is not from Slack's API"},
		"at once":                 {5000, ``, notify.VerdictRetry, notify.Posted{}, "the response is not from Slack's API"},
		"ok in the message alone": {5000, `{"message":{"ok":true},"cha`, notify.VerdictRetry, notify.Posted{}, "the response is not from Slack's API"},
		"ok that is none":         {5000, `{"ok":null,"channel":"C1","ts":"1.2","m`, notify.VerdictRetry, notify.Posted{}, "the response is not from Slack's API"},
		"refused":                 {5000, `{"ok":false,"error":"not_in_channel","resp`, notify.VerdictGone, notify.Posted{}, "not_in_channel: invite the app"},
		"refused without a word":  {5000, `{"ok":false,"err`, notify.VerdictRetry, notify.Posted{}, "unknown_error"},
		"a list":                  {5000, `[{"ok":true},`, notify.VerdictRetry, notify.Posted{}, "the response is not from Slack's API"},
	} {
		t.Run(name, func(t *testing.T) {
			s := apiOf(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.length > 0 {
					w.Header().Set("Content-Length", strconv.Itoa(c.length))
				}
				_, _ = io.WriteString(w, c.body)
			})
			o := send(t, s, delivery("", bot))
			var posted notify.Posted
			if o.Posted != nil {
				posted = *o.Posted
			}
			if o.Verdict != c.verdict || posted != c.posted || !strings.Contains(o.Error, c.error) || (o.Error == "") != (c.error == "") {
				t.Errorf("outcome %+v, want %v of %v and …%s…", o, c.verdict, c.posted, c.error)
			}
		})
	}
}

// late sends the header at once, and the body later than a body without influence on the result is
// waited for; an empty one never arrives.
func late(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
		if body == "" {
			<-r.Context().Done()
			return
		}
		<-time.After(1200 * time.Millisecond)
		_, _ = io.WriteString(w, body)
	}
}

// TestABodyThatDecidesIsWaitedFor has responses whose body arrives late.
func TestABodyThatDecidesIsWaitedFor(t *testing.T) {
	t.Parallel()
	patient := func(d *notify.Delivery) { d.Webhook.Timeout = time.Minute }
	o := send(t, apiOf(t, late(200, `{"ok":true,"channel":"C1","ts":"1.2"}`)), delivery("", bot, patient))
	if o.Verdict != notify.VerdictDelivered || o.Posted == nil {
		t.Errorf("to a bot: %+v", o)
	}
	unknown := receiver(t, late(400, `{"id":"web.incoming_webhook.invalid.app_error"}`))
	s := newService(t, "mattermost", func(string) map[string]string {
		return map[string]string{"url": unknown.URL + "/hooks/abcdefghijklmnopqrstuvwxyz"}
	})
	if o, _ := s.tell(notify.ReasonFired); o.Verdict != notify.VerdictGone {
		t.Errorf("of a preset that reads it: %+v", o)
	}
	if o := send(t, newSender(t), delivery(receiver(t, late(200, "")).URL, patient)); o.Verdict != notify.VerdictDelivered {
		t.Errorf("that decides nothing: %+v", o)
	}
}

func TestBotsSecretsAreRedacted(t *testing.T) {
	s := apiOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+" "+appSecret)
	})
	if o := send(t, s, delivery("", bot)); strings.Contains(fmt.Sprint(o), botToken) || strings.Contains(fmt.Sprint(o), appSecret) {
		t.Errorf("outcome %+v", o)
	}
}

func TestSlacksAPIPassesTheGuard(t *testing.T) {
	s, err := webhook.New(webhook.Options{Now: time.Now, SlackAPI: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if o := send(t, s, delivery("", bot)); !strings.Contains(o.Error, "not public") {
		t.Errorf("outcome %+v", o)
	}
	for _, bad := range []string{"slack.com", "ftp://slack.com", "https://user@slack.com", "https://slack.com?x", "https://"} {
		if _, err := webhook.New(webhook.Options{Now: time.Now, SlackAPI: bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestCheckTarget(t *testing.T) {
	valid := notify.SlackApp{Channel: "C0123456789", BotToken: botToken, SigningSecret: appSecret}
	for name, c := range map[string]struct {
		change         func(*notify.Webhook)
		field, message string
	}{
		"bot":                {func(*notify.Webhook) {}, "", ""},
		"without buttons":    {func(w *notify.Webhook) { w.Slack.SigningSecret = "" }, "", ""},
		"by name":            {func(w *notify.Webhook) { w.Slack.Channel = "#integration-ops_ä.1" }, "", ""},
		"direct message":     {func(w *notify.Webhook) { w.Slack.Channel = "D0123456789" }, "", ""},
		"URL":                {func(w *notify.Webhook) { w.Slack, w.URL = notify.SlackApp{}, "https://hooks.slack.com/x" }, "", ""},
		"neither":            {func(w *notify.Webhook) { w.Slack = notify.SlackApp{} }, "url", "or a channel and a bot token"},
		"both":               {func(w *notify.Webhook) { w.URL = "https://hooks.slack.com/x" }, "url", "either a URL or a bot token"},
		"another kind":       {func(w *notify.Webhook) { w.Kind = notify.KindGeneric }, "slack", "change the kind"},
		"generic without":    {func(w *notify.Webhook) { w.Kind, w.Slack = notify.KindGeneric, notify.SlackApp{} }, "url", "must begin with"},
		"no channel":         {func(w *notify.Webhook) { w.Slack.Channel = "" }, "slack.channel", "Enter the channel's ID"},
		"name without mark":  {func(w *notify.Webhook) { w.Slack.Channel = "ops" }, "slack.channel", "after a #"},
		"name with spaces":   {func(w *notify.Webhook) { w.Slack.Channel = "#ops team" }, "slack.channel", "Not a valid name"},
		"name with a zero":   {func(w *notify.Webhook) { w.Slack.Channel = "#ops\x00" }, "slack.channel", "Not a valid name"},
		"empty name":         {func(w *notify.Webhook) { w.Slack.Channel = "#" }, "slack.channel", "Not a valid name"},
		"user":               {func(w *notify.Webhook) { w.Slack.Channel = "U0123456789" }, "slack.channel", "begins with C, G or D"},
		"no token":           {func(w *notify.Webhook) { w.Slack.BotToken = "" }, "slack.botToken", "begins with xoxb-"},
		"user token":         {func(w *notify.Webhook) { w.Slack.BotToken = "xoxp-123456789012345678" }, "slack.botToken", "another kind of token"},
		"rotating token":     {func(w *notify.Webhook) { w.Slack.BotToken = "xoxe.xoxb-1-23456789012345678" }, "slack.botToken", "turn token rotation off"},
		"token with a space": {func(w *notify.Webhook) { w.Slack.BotToken += " " }, "slack.botToken", "Must be the Bot User OAuth Token"},
		"signing secret":     {func(w *notify.Webhook) { w.Slack.SigningSecret = "whsec_x" }, "slack.signingSecret", "32 hexadecimal digits"},
		"our signature":      {func(w *notify.Webhook) { w.SigningSecret = secretA }, "signingSecret", "slack.signingSecret"},
	} {
		t.Run(name, func(t *testing.T) {
			w := notify.Webhook{Kind: notify.KindSlack, Slack: valid}
			c.change(&w)
			fields := webhook.CheckTarget(&w)
			only(t, fields, c.field, c.message)
			if strings.Contains(fmt.Sprint(fields), "123456789012345678") {
				t.Errorf("fields %v repeat a secret", fields)
			}
		})
	}
}
