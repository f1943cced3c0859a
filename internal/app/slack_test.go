package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/app"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/refresh"
	"tocsin/notify/slack"
	"tocsin/notify/webhook"
)

const (
	botToken      = "xoxb-1-2-abcdefghijklmnop"
	signingSecret = "0123456789abcdef0123456789abcdef"
)

// workspace is a Slack with one channel: messages in the order in which they were posted, each as
// last changed.
type workspace struct {
	url string

	mu       sync.Mutex
	order    []string
	messages map[string]posted
	// calls are the methods called, in order.
	calls []string
	// people are the e-mail addresses of members by their ids; nil means that the app sees none.
	people map[string]string
	// ephemerals is what was shown to one user only, as "U1: text".
	ephemerals []string
	// before may answer in place of Slack; it returns whether it did.
	before func(method string, w http.ResponseWriter, r *http.Request) bool
}

type posted struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// ThreadTS is the message into whose thread this one was posted.
	ThreadTS string `json:"thread_ts"`
	// User is the only one who sees it.
	User   string `json:"user"`
	Text   string `json:"text"`
	Blocks []struct {
		Elements []struct {
			ActionID string `json:"action_id"`
			Value    string `json:"value"`
			// Text is a string in a context block, an object in a button.
			Text any `json:"text"`
		} `json:"elements"`
	} `json:"blocks"`
}

// buttons are what can be pressed.
func (p posted) buttons() string {
	var ids []string
	for _, b := range p.Blocks {
		for _, e := range b.Elements {
			if e.Value != "" || e.ActionID == "tocsin_snooze" {
				ids = append(ids, strings.TrimPrefix(e.ActionID, "tocsin_"))
			}
		}
	}
	return strings.Join(ids, " ")
}

// says returns the texts of the context blocks.
func (p posted) says() string {
	var texts []string
	for _, b := range p.Blocks {
		for _, e := range b.Elements {
			if text, ok := e.Text.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

func newWorkspace(tb testing.TB) *workspace {
	tb.Helper()
	s := &workspace{messages: map[string]posted{}}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *workspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	method := strings.TrimPrefix(r.URL.Path, "/")
	s.mu.Lock()
	before := s.before
	s.calls = append(s.calls, method)
	s.mu.Unlock()
	if before != nil && before(method, w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.judge(method, r, body)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *workspace) judge(method string, r *http.Request, body []byte) map[string]any {
	refuse := func(word string) map[string]any { return map[string]any{"ok": false, "error": word} }
	var m posted
	switch {
	case r.Header.Get("Authorization") != "Bearer "+botToken:
		return refuse("invalid_auth")
	case method == "users.info":
		return s.member(body)
	case json.Unmarshal(body, &m) != nil || slack.Valid(body) != nil || m.Text == "":
		return refuse("invalid_blocks")
	case m.Channel != "C0123456":
		return refuse("channel_not_found")
	case method == "chat.postEphemeral":
		s.ephemerals = append(s.ephemerals, m.User+": "+m.Text)
		return map[string]any{"ok": true, "message_ts": "1.1"}
	}
	if method == "chat.postMessage" {
		m.TS = fmt.Sprintf("1795244520.%06d", len(s.order)+1)
		s.order = append(s.order, m.TS)
	} else if _, known := s.messages[m.TS]; !known {
		return refuse("message_not_found")
	}
	s.messages[m.TS] = m
	return map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS, "message": json.RawMessage(body)}
}

// member answers users.info.
func (s *workspace) member(body []byte) map[string]any {
	form, err := url.ParseQuery(string(body))
	email, known := s.people[form.Get("user")]
	switch {
	case err != nil || s.people == nil:
		return map[string]any{"ok": false, "error": "missing_scope"}
	case !known:
		return map[string]any{"ok": false, "error": "user_not_found"}
	}
	return map[string]any{"ok": true, "user": map[string]any{"team_id": "T1", "profile": map[string]any{"email": email}}}
}

// lastShown returns what was shown to single users since the last call.
func (s *workspace) lastShown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := strings.Join(s.ephemerals, " | ")
	s.ephemerals = nil
	return shown
}

// shown returns the messages as they are.
func (s *workspace) shown() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []posted
	for _, ts := range s.order {
		if m, there := s.messages[ts]; there {
			list = append(list, m)
		}
	}
	return list
}

func (s *workspace) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// misbehave sets the handler that answers in place of Slack; nil removes it.
func (s *workspace) misbehave(before func(method string, w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *workspace) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.messages)
}

// refuses answers a method with an error code.
func refuses(method, word string) func(string, http.ResponseWriter, *http.Request) bool {
	return func(called string, w http.ResponseWriter, _ *http.Request) bool {
		if called == method {
			_, _ = fmt.Fprintf(w, `{"ok":false,"error":%q}`, word)
		}
		return called == method
	}
}

// slackWorld is a world with a bot in a workspace.
type slackWorld struct {
	*world

	slack     *workspace
	sender    *webhook.Sender
	refresher *refresh.Refresher
	hook      uuid.UUID
	// later is how far the refreshers' clock is ahead.
	later time.Duration
}

func newSlackWorld(t *testing.T) *slackWorld {
	t.Helper()
	w := &slackWorld{world: newWorld(t), slack: newWorkspace(t)}
	var err error
	w.sender, err = webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback(), SlackAPI: w.slack.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.sender.Close)
	w.dispatcher = w.newDispatcher(dispatch.Options{Sender: w.sender})
	w.refresher = w.newRefresher()
	w.hook = w.bot("bot")
	return w
}

func (w *slackWorld) newRefresher() *refresh.Refresher {
	w.t.Helper()
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := refresh.New(refresh.Options{
		Store: w.db.Slack(), Renderer: renderer, Sender: w.sender, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Now().Add(w.later) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// bot stores a webhook that posts as a bot.
func (w *slackWorld) bot(name string) uuid.UUID {
	w.t.Helper()
	hook, err := w.db.Webhooks().Create(w.t.Context(), tenant, notify.Webhook{
		Name: name, Kind: notify.KindSlack, Enabled: true, Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
		Slack: notify.SlackApp{Channel: "C0123456", BotToken: botToken, SigningSecret: signingSecret},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return hook.ID
}

// update makes one pass of the refresher.
func (w *slackWorld) update() int {
	w.t.Helper()
	made, err := w.refresher.Tick(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// act acts on an alert as a user does in the browser.
func (w *slackWorld) act(alert uuid.UUID, action alerts.Action) {
	w.t.Helper()
	if _, err := w.db.Inbox().Act(w.t.Context(), tenant, api.AlertAction{AlertID: alert, Action: action, Actor: "ann"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *slackWorld) wantShown(want ...string) {
	w.t.Helper()
	var got []string
	for _, m := range w.slack.shown() {
		sign, _, _ := strings.Cut(m.Text, " ")
		got = append(got, sign+" "+m.buttons())
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("Slack shows %q, want %q", got, want)
	}
}

const (
	showsFiring       = "🔴 acknowledge resolve assign snooze"
	showsAcknowledged = "👀 resolve assign snooze"
	showsResolved     = "🟢 "
	openUpdates       = `select message_id::text from slack_update`
)

func TestMessageFollowsItsAlert(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	w.wantColumn("messages", `select channel || ' ' || ts from slack_message`, "C0123456 1795244520.000001")
	w.wantShown(showsFiring)
	if made := w.update(); made != 0 {
		t.Errorf("%d updates of an alert that has not changed", made)
	}
	alert := w.firing()[0].ID
	w.act(alert, alerts.Acknowledge)
	w.update()
	w.wantShown(showsAcknowledged)
	w.act(alert, alerts.Resolve)
	w.update()
	w.wantShown(showsResolved)
	w.wantColumn("open", openUpdates)
	if got := w.slack.called(); !slices.Equal(got, []string{"chat.postMessage", "chat.update", "chat.update"}) {
		t.Errorf("called %q", got)
	}
}

// TestMessagesOfAnIssueShareAThread checks that they do so for a day, unless the first is deleted,
// at the webhooks with that setting.
func TestMessagesOfAnIssueShareAThread(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.exec(`update webhook set slack_threads = true, version = version + 1`)
	threads := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range w.slack.shown() {
			got = append(got, m.ThreadTS)
		}
		if !slices.Equal(got, want) {
			t.Errorf("threads %q, want %q", got, want)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		w.raiseFor(w.hook, id)
		w.deliver()
	}
	const first, fourth, sixth = "1795244520.000001", "1795244520.000004", "1795244520.000006"
	threads("", first, first)
	w.exec(`update slack_thread set begun_at = now() - interval '25 hours'`)
	w.raiseFor(w.hook, "d")
	w.deliver()
	w.raiseFor(w.hook, "e")
	w.deliver()
	threads("", first, first, "", fourth)
	w.wantColumn("threads", `select ts from slack_thread`, fourth)
	w.slack.misbehave(refuses("chat.postMessage", "thread_not_found"))
	w.raiseFor(w.hook, "f")
	w.deliver()
	w.wantColumn("threads after one is gone", `select ts from slack_thread`)
	w.slack.misbehave(nil)
	w.hasten()
	w.deliver()
	threads("", first, first, "", fourth, "")
	w.wantColumn("threads again", `select ts from slack_thread`, sixth)
	w.exec(`update webhook set slack_threads = false, version = version + 1`)
	w.raiseFor(w.hook, "g")
	w.deliver()
	threads("", first, first, "", fourth, "", "")
}

func TestChangesInARowAreOneUpdate(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	alert := w.firing()[0].ID
	w.act(alert, alerts.Acknowledge)
	w.act(alert, alerts.Acknowledge)
	w.act(alert, alerts.Resolve)
	w.update()
	w.update()
	w.wantShown(showsResolved)
	if got := w.slack.called(); len(got) != 2 {
		t.Errorf("called %q, want one update", got)
	}
}

func TestPostOfAnAcknowledgedAlertShowsIt(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.act(w.firing()[0].ID, alerts.Acknowledge)
	w.deliver()
	w.wantShown(showsAcknowledged)
	w.wantColumn("open", openUpdates)
}

// TestAcknowledgedWhileItIsPosted acknowledges the alert during the call.
func TestAcknowledgedWhileItIsPosted(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	alert := w.firing()[0].ID
	w.slack.misbehave(func(string, http.ResponseWriter, *http.Request) bool {
		w.act(alert, alerts.Acknowledge)
		return false
	})
	w.deliver()
	w.slack.misbehave(nil)
	w.wantShown(showsFiring)
	w.update()
	w.wantShown(showsAcknowledged)
}

// TestPostOfUnknownOutcome loses a process between the post and its record.
func TestPostOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	lost := w.claim()[0]
	if o := w.sender.Send(t.Context(), &lost); o.Posted == nil || o.Posted.TS != "1795244520.000001" {
		t.Fatalf("posted %+v", o)
	}
	alert := w.firing()[0].ID
	w.act(alert, alerts.Acknowledge)
	w.update()
	w.wantShown(showsFiring) // it is unknown where it is

	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.deliver()
	w.wantShown(showsFiring, showsFiring) // the stored body once more
	w.update()
	w.wantShown(showsFiring, showsAcknowledged)

	// A press of a button of the first message reveals where it is.
	err := w.db.Slack().Show(t.Context(), api.SlackPress{
		Tenant: tenant, WebhookID: w.hook, AlertID: alert, At: notify.Posted{Channel: "C0123456", TS: "1795244520.000001"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.update()
	w.wantShown(showsAcknowledged, showsAcknowledged)
}

// TestFencedPostIsStillFollowed settles a post whose claim has passed to another.
func TestFencedPostIsStillFollowed(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.slack.misbehave(func(string, http.ResponseWriter, *http.Request) bool {
		w.exec(`update outbox set claim_token = nextval('claim_token')`)
		return false
	})
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	w.wantColumn("messages", `select ts from slack_message`, "1795244520.000001")
}

func TestUpdateIsRetriedAndOutlivesItsReplica(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	w.act(w.firing()[0].ID, alerts.Acknowledge)
	w.slack.misbehave(refuses("chat.update", "internal_error"))
	w.update()
	w.wantColumn("open", `select attempts || ' ' || (due_at > now()) from slack_update`, "1 true")
	w.slack.misbehave(nil)
	w.exec(`update slack_update set due_at = now()`)
	claimed, err := w.db.Slack().Claim(t.Context(), time.Minute, func(uuid.UUID) bool { return true })
	if err != nil || len(claimed.Updates) != 1 {
		t.Fatalf("claimed %d, %v", len(claimed.Updates), err)
	}
	if made := w.update(); made != 0 {
		t.Error("an update was made twice at once")
	}
	w.exec(`update slack_update set due_at = now()`) // its lease has expired
	w.update()
	w.wantShown(showsAcknowledged)
	// The slower one may have reached Slack last.
	if err := w.db.Slack().Settle(t.Context(), refresh.Settlement{Update: &claimed.Updates[0]}); err != nil {
		t.Fatal(err)
	}
	w.update()
	w.wantColumn("open", openUpdates)
	if got := w.slack.called(); len(got) != 4 {
		t.Errorf("called %q, want three updates", got)
	}
}

func TestAlertThatChangesDuringItsUpdate(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	alert := w.firing()[0].ID
	w.act(alert, alerts.Acknowledge)
	var once sync.Once
	w.slack.misbehave(func(string, http.ResponseWriter, *http.Request) bool {
		once.Do(func() { w.act(alert, alerts.Resolve) })
		return false
	})
	w.update()
	w.wantShown(showsAcknowledged)
	w.update()
	w.wantShown(showsResolved)
	w.wantColumn("open", openUpdates)
}

func TestUpdateRefusedForGoodIsDroppedQuietly(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a", "b")
	w.exec(`update webhook set rate_per_second = 0`)
	w.deliver()
	w.slack.forget()
	w.act(w.firing()[0].ID, alerts.Resolve)
	w.update()
	w.slack.misbehave(refuses("chat.update", "token_revoked"))
	w.act(w.firing()[0].ID, alerts.Resolve)
	w.update()
	w.wantColumn("open", openUpdates)
	w.wantColumn("statuses", statuses, "DELIVERED 2")
	w.wantColumn("webhook", `select enabled::text from webhook`, "true")
}

func TestUpdatesThatSlackSlowsDownHoldNoMessage(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	w.act(w.firing()[0].ID, alerts.Acknowledge)
	w.slack.misbehave(func(method string, rw http.ResponseWriter, _ *http.Request) bool {
		if method == "chat.update" {
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
		}
		return method == "chat.update"
	})
	w.update()
	w.wantColumn("attempts", `select attempts::text from slack_update`, "0")
	w.exec(`update slack_update set due_at = now()`)
	if made := w.update(); made != 0 {
		t.Error("updates went on while they were held")
	}
	w.raiseFor(w.hook, "b")
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 2")
}

// TestLastChangeIsShownFirst presses while many messages and updates wait.
func TestLastChangeIsShownFirst(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a", "b", "c", "d")
	w.exec(`update webhook set rate_per_second = 0`)
	w.deliver()
	w.exec(`update alert set state = 'ACKNOWLEDGED' where execution_id <> 'a'`)
	last := w.firing()[0].ID
	w.act(last, alerts.Resolve)
	w.raiseFor(w.hook, "e", "f")
	if made := w.update(); made != 1 {
		t.Fatalf("%d updates in one pass", made)
	}
	w.wantColumn("open", `select count(*)::text from slack_update`, "3")
	w.wantColumn("open for the last change", `select count(*)::text from slack_update join slack_message using (message_id) where alert_id = '`+last.String()+`'`, "0")
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 6")
}

// TestHeldMessagesHoldTheirUpdates has a Slack that asks for a pause after a message.
func TestHeldMessagesHoldTheirUpdates(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	w.act(w.firing()[0].ID, alerts.Acknowledge)
	w.exec(`update webhook set held_until = now() + interval '1 minute'`)
	if made := w.update(); made != 0 {
		t.Error("an update was made while the webhook was held")
	}
}

// TestBulkQueuesABoundedNumberOfUpdates acknowledges more than Slack could show.
func TestBulkQueuesABoundedNumberOfUpdates(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.exec(`insert into slack_message (webhook_id, alert_id, reason, channel, ts)
		select webhook_id, alert_id, 'FIRED', 'C0123456', n::text from notification, generate_series(1, 3000) n`)
	w.act(w.firing()[0].ID, alerts.Acknowledge)
	w.wantColumn("written by one statement", `select count(*) || ' ' || min(ts::int) from slack_update join slack_message using (message_id)`, "500 2501")
	w.exec(`delete from outbox`)
	w.exec(`insert into slack_update (message_id, webhook_id) select message_id, webhook_id from slack_message on conflict do nothing`)
	w.slack.misbehave(refuses("chat.update", "internal_error"))
	w.later = time.Minute
	w.update()
	w.wantColumn("open after a pass", `select count(*)::text from slack_update`, "500")
}

// TestSlacksWordsAboutABot has a bot of its own for each word.
func TestSlacksWordsAboutABot(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	for word, want := range map[string]string{
		"channel_not_found": "RETRYING 1 false", "not_in_channel": "RETRYING 1 false", "is_archived": "RETRYING 1 false",
		"invalid_auth": "RETRYING 1 false", "account_inactive": "RETRYING 1 false", "token_revoked": "RETRYING 1 false",
		"missing_scope": "RETRYING 1 false", "msg_too_long": "FAILED 1 true", "invalid_blocks": "FAILED 1 true",
		"no_text": "FAILED 1 true", "internal_error": "RETRYING 1 true", "fatal_error": "RETRYING 1 true",
		"service_unavailable": "RETRYING 1 true", "request_timeout": "RETRYING 1 true", "ratelimited": "RETRYING 1 true",
		"a_word_of_tomorrow": "RETRYING 1 true",
	} {
		w.slack.misbehave(refuses("chat.postMessage", word))
		w.raiseFor(w.bot(word), word)
		w.deliver()
		w.wantColumn("what became of "+word, `select s.status || ' ' || count(*) || ' ' || w.enabled from notification_status s join webhook w using (webhook_id)
			where w.name = '`+word+`' group by s.status, w.enabled`, want)
	}
}

// press makes the request that Slack makes when a button is pressed.
func press(t *testing.T, target, action, alert, ts string) *http.Request {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "user": map[string]any{"id": "U1", "username": "ann"}, "team": map[string]any{"id": "T1"},
		"container": map[string]any{"channel_id": "C0123456", "message_ts": ts},
		"actions":   []any{map[string]any{"action_id": action, "value": alert}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, target, url.Values{"payload": {string(payload)}}.Encode(), signingSecret, time.Now())
}

func signed(t *testing.T, target, body, secret string, at time.Time) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set(slack.HeaderTimestamp, stamp)
	req.Header.Set(slack.HeaderSignature, slack.Sign(secret, stamp, []byte(body)))
	return req
}

// answer returns the status and the body of the response.
func answer(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close() //nolint:errcheck // read to its end
	var body bytes.Buffer
	if _, err := body.ReadFrom(got.Body); err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, body.String()
}

func TestPressedInSlack(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	base, logged := w.replica(func(o *app.Options) {
		o.Roles = []app.Role{app.RoleAPI, app.RoleDispatch}
		o.SlackAPIURL, o.PollInterval, o.PublicURL = w.slack.url, 50*time.Millisecond, "https://tocsin.example"
		o.Access = app.AccessOptions{}
	})
	w.raiseFor(w.hook, "a")
	w.until("the message is posted", func() bool { return len(w.slack.shown()) == 1 && len(w.column(unsettledOutbox)) == 0 })
	message, target := w.slack.shown()[0], base+"/slack/interactions/"+w.hook.String()
	alert := w.firing()[0].ID.String()

	acknowledge := press(t, target, "tocsin_acknowledge", alert, message.TS)
	acknowledge.Host = "slack-facing.example" // Slack may know the server by another name
	if status, body := answer(t, acknowledge); status != http.StatusOK || body != "" {
		t.Fatalf("press: %d %s", status, body)
	}
	w.wantColumn("who", `select state || ' ' || acknowledged_by from alert`, "ACKNOWLEDGED slack:ann")
	w.until("the message says so", func() bool { return w.slack.shown()[0].buttons() == "resolve assign snooze" })

	// Twice, and once more as the same bytes: nothing changes.
	at := w.column(`select acknowledged_at::text from alert`)[0]
	for range 2 {
		if status, body := answer(t, press(t, target, "tocsin_acknowledge", alert, message.TS)); status != http.StatusOK {
			t.Errorf("second press: %d %s", status, body)
		}
	}
	w.wantColumn("when", `select acknowledged_at::text from alert`, at)
	if shown := w.slack.lastShown(); shown != "U1: The alert was already acknowledged by ann. | U1: The alert was already acknowledged by ann." {
		t.Errorf("shown %q", shown)
	}
	if status, _ := answer(t, press(t, target, "tocsin_resolve", alert, message.TS)); status != http.StatusOK {
		t.Errorf("resolve: %d", status)
	}
	w.until("the message has no buttons", func() bool { return w.slack.shown()[0].buttons() == "" })
	// A button that is pressed too late changes nothing, and the message is right in the end.
	if status, _ := answer(t, press(t, target, "tocsin_acknowledge", alert, message.TS)); status != http.StatusOK {
		t.Errorf("late press: %d", status)
	}
	if shown := w.slack.lastShown(); shown != "U1: The alert is resolved; a resolved alert cannot be acknowledged." {
		t.Errorf("shown %q", shown)
	}
	w.wantColumn("state", `select state || ' ' || resolved_by from alert`, "RESOLVED slack:ann")
	w.until("nothing is open", func() bool { return len(w.column(openUpdates)) == 0 })
	if len(w.slack.shown()) != 1 {
		t.Errorf("Slack shows %d messages, want one", len(w.slack.shown()))
	}
	for what, text := range map[string]string{"log": logged.String(), "database": strings.Join(w.column(`select w::text from webhook w`), "")} {
		if strings.Contains(text, botToken) || strings.Contains(text, signingSecret) {
			t.Errorf("the %s shows a secret", what)
		}
	}
}

func TestPressesThatAreRefused(t *testing.T) {
	w := newSlackWorld(t)
	base, _ := w.replica(func(o *app.Options) { o.Roles, o.SlackAPIURL = []app.Role{app.RoleAPI}, w.slack.url })
	w.raiseFor(w.hook, "a")
	alert := w.firing()[0].ID.String()
	plain := w.webhook("generic")
	target := base + "/slack/interactions/" + w.hook.String()
	form := func(payload string) string { return url.Values{"payload": {payload}}.Encode() }
	good := form(`{"type":"block_actions","actions":[{"action_id":"tocsin_resolve","value":"` + alert + `"}]}`)
	w.exec(`insert into rule select gen_random_uuid(), 'other', (r).name, (r).enabled, (r).fire_mode, (r).severity, (r).scope, (r).filter,
		(r).title_template, (r).message_template, (r).targets, 1, 0, 0, 0 from (select r from rule r limit 1) x`)
	others := uuid.NewString()
	w.exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		select $1, 'other', rule_id, 1, 'INFO', 'FIRING', '', '', 'x', 1, '', '', '{}' from rule where tenant_id = 'other'`, others)

	unsigned := signed(t, target, good, signingSecret, time.Now())
	unsigned.Header.Del(slack.HeaderSignature)
	for name, c := range map[string]struct {
		req  *http.Request
		want int
	}{
		"wrong secret":         {signed(t, target, good, "ffffffffffffffffffffffffffffffff", time.Now()), http.StatusUnauthorized},
		"no secret":            {signed(t, target, good, "", time.Now()), http.StatusUnauthorized},
		"stale":                {signed(t, target, good, signingSecret, time.Now().Add(-6*time.Minute)), http.StatusUnauthorized},
		"from the future":      {signed(t, target, good, signingSecret, time.Now().Add(6*time.Minute)), http.StatusUnauthorized},
		"unsigned":             {unsigned, http.StatusUnauthorized},
		"unknown webhook":      {signed(t, base+"/slack/interactions/"+uuid.NewString(), good, signingSecret, time.Now()), http.StatusUnauthorized},
		"no webhook":           {signed(t, base+"/slack/interactions/x", good, signingSecret, time.Now()), http.StatusUnauthorized},
		"not a bot's":          {signed(t, base+"/slack/interactions/"+plain.String(), good, "", time.Now()), http.StatusUnauthorized},
		"another body":         {withBody(signed(t, target, good, signingSecret, time.Now()), good+"&x=1"), http.StatusUnauthorized},
		"no form":              {signed(t, target, "%zz", signingSecret, time.Now()), http.StatusBadRequest},
		"no payload":           {signed(t, target, "a=b", signingSecret, time.Now()), http.StatusBadRequest},
		"payload not JSON":     {signed(t, target, form("{"), signingSecret, time.Now()), http.StatusBadRequest},
		"value not an id":      {signed(t, target, form(`{"type":"block_actions","actions":[{"action_id":"tocsin_resolve","value":"1"}]}`), signingSecret, time.Now()), http.StatusBadRequest},
		"too long":             {signed(t, target, form(strings.Repeat("x", 600<<10)), signingSecret, time.Now()), http.StatusRequestEntityTooLarge},
		"another tenant's":     {press(t, target, "tocsin_resolve", others, "1.1"), http.StatusOK},
		"a deleted alert's":    {press(t, target, "tocsin_resolve", uuid.NewString(), "1.1"), http.StatusOK},
		"a link":               {press(t, target, "open_alert", "", "1.1"), http.StatusOK},
		"another app's button": {press(t, target, "deploy", alert, "1.1"), http.StatusOK},
		"another interaction":  {signed(t, target, form(`{"type":"view_submission"}`), signingSecret, time.Now()), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := answer(t, c.req)
			if status != c.want {
				t.Errorf("%d %s, want %d", status, body, c.want)
			}
			shown := ""
			if name == "another tenant's" || name == "a deleted alert's" {
				shown = "U1: This alert no longer exists in Tocsin. There is nothing left to do."
			}
			if got := w.slack.lastShown(); got != shown {
				t.Errorf("shown %q, want %q", got, shown)
			}
			if c.want == http.StatusUnauthorized && strings.Contains(body, "detail") {
				t.Errorf("the answer says why: %s", body)
			}
		})
	}
	w.wantColumn("states", alertStates, "FIRING 2")
	w.wantColumn("messages", `select ts from slack_message`)
}

func withBody(req *http.Request, body string) *http.Request {
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return req
}

// TestChangesByAnybodyAreShown changes an alert by an arbitrary statement.
func TestChangesByAnybodyAreShown(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	w.deliver()
	w.exec(`update alert set state = 'RESOLVED', resolved_at = now()`)
	w.update()
	w.wantShown(showsResolved)
}
