package slackalike

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bot is an app that posts by Slack's Web API and is notified of pressed buttons.
type Bot struct {
	// Name is the name under which its messages appear.
	Name string
	// Token is the token of its calls; SigningSecret signs the requests that it receives.
	Token, SigningSecret string
	// Channels are the channels that it was invited to.
	Channels []BotChannel
	// People press its buttons. The first one does if nobody is named.
	People []Person
	// Addresses lets it see people's e-mail addresses, like the scopes users:read and
	// users:read.email.
	Addresses bool
}

// Person is a member of the workspace.
type Person struct {
	// ID is U…; Name is the name that others see.
	ID, Name, Email string
	// Guest says that the person is not a full member.
	Guest bool
}

// BotChannel is a channel as the Web API knows it.
type BotChannel struct {
	// ID is C… or G…, Name begins with #.
	ID, Name string
}

// DefaultBot is the bot of a server for which none is configured. Its secrets give no access to
// anything.
func DefaultBot() Bot {
	return Bot{
		Name: "Tocsin", Token: "xoxb-0-0-look-alike-of-slack", SigningSecret: "0000000000000000000000000000cafe",
		Channels: []BotChannel{{ID: "C0ORDERS", Name: "#orders"}}, People: []Person{{ID: "U0YOU", Name: "you"}},
	}
}

// Rates of chat.update for each app, 50 a minute and more, as Slack's tier 3 says.
const (
	updatesPerSecond = 50.0 / 60
	updatesBurst     = 20
)

// hookOfBot is the prefix of a bot's channel in the place of a webhook's path, for faults and
// counts.
const hookOfBot = "api/"

// bots is the state of the bot. It is safe for concurrent use.
type bots struct {
	Bot

	updates *rate.Limiter

	mu         sync.Mutex
	requestURL string
	last       time.Time // of the newest ts
	ephemerals []Ephemeral
	forgotten  int // how many texts are no longer in ephemerals
}

func newBots(b Bot, perSecond float64) (*bots, error) {
	for _, c := range b.Channels {
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		if c.ID == "" || c.ID[0] != 'C' && c.ID[0] != 'G' || strings.Trim(c.ID, letters) != "" || len(c.Name) < 2 || c.Name[0] != '#' {
			return nil, fmt.Errorf("channel %q (%s) is no id and name of a channel", c.ID, c.Name)
		}
	}
	limit := rate.Limit(updatesPerSecond)
	if perSecond < 0 {
		limit = rate.Inf
	}
	return &bots{Bot: b, updates: rate.NewLimiter(limit, updatesBurst)}, nil
}

// SetRequestURL sets where the bot is notified of pressed buttons.
func (s *Server) SetRequestURL(url string) {
	s.bots.mu.Lock()
	defer s.bots.mu.Unlock()
	s.bots.requestURL = url
}

// stamp returns the ts of a message that is posted now. Each ts is unique.
func (b *bots) stamp(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now = now.Truncate(time.Microsecond)
	if !now.After(b.last) {
		now = b.last.Add(time.Microsecond)
	}
	b.last = now
	return fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
}

// channel finds a channel by id or name. Names are only for posting.
func (b *bots) channel(given string, byName bool) (BotChannel, bool) {
	for _, c := range b.Channels {
		if c.ID == given || byName && c.Name == "#"+strings.TrimPrefix(given, "#") {
			return c, true
		}
	}
	return BotChannel{}, false
}

// post answers chat.postMessage.
func (s *Server) post(w http.ResponseWriter, r *http.Request) { s.call(w, r, false) }

// update answers chat.update.
func (s *Server) update(w http.ResponseWriter, r *http.Request) { s.call(w, r, true) }

// call checks a call of the Web API, in the same order as for webhooks.
func (s *Server) call(w http.ResponseWriter, r *http.Request, changes bool) {
	e := &Entry{At: s.opts.Clock().UTC(), Hook: hookOfBot, App: s.bots.Name, WebhookID: r.Header.Get("webhook-id"), Headers: redacted(r.Header)}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	e.Body = strings.ToValidUTF8(string(body), "\uFFFD")
	if err != nil {
		e.Reason = "the body ended early: " + err.Error()
		s.note(r, e)
		panic(http.ErrAbortHandler)
	}
	fields, v := s.placed(r, e, body, changes)
	fault, misbehaves := s.registry.fault(e.Hook)
	if misbehaves {
		e.Fault = fault.Kind
		if done := s.misbehave(w, r, e, fault); done {
			return
		}
	}
	if v.accepted() {
		v = s.spared(w, e, changes)
	}
	if v.accepted() {
		if _, v = judge(r.Header.Get("Content-Type"), body); v.word == invalidPayload {
			v.word = invalidJSON
		}
	}
	if v.accepted() && changes {
		v = s.find(e, fields)
	}
	if !v.accepted() {
		s.reply(w, r, e, v.word.status(), string(v.word), v.detail)
		return
	}
	e.Accepted, e.Status, e.Answer = true, http.StatusOK, "ok"
	if !changes {
		e.TS = s.bots.stamp(e.At)
	}
	if fault.Kind == FaultLoseAnswer {
		e.Status, e.Answer, e.Reason = 0, "", "accepted, but the answer was lost on request"
		s.note(r, e)
		panic(http.ErrAbortHandler)
	}
	s.note(r, e)
	respond(w, http.StatusOK, map[string]any{
		"ok": true, "channel": strings.TrimPrefix(e.Hook, hookOfBot), "ts": e.TS, "message": json.RawMessage(body),
	})
}

// placed finds out who calls, and for which channel.
func (s *Server) placed(r *http.Request, e *Entry, body []byte, changes bool) (map[string]any, verdict) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.Method != http.MethodPost:
		return nil, refuse(methodNotAllowed, "a method that writes takes POST")
	case !bearer || token == "":
		return nil, refuse(notAuthed, "there is no bearer token")
	case token != s.bots.Token:
		return nil, refuse(invalidAuth, "the token is not the bot's")
	}
	fields, err := object(body)
	if err != nil {
		return nil, refuse(invalidJSON, err.Error())
	}
	given, _ := fields["channel"].(string)
	channel, known := s.bots.channel(given, !changes)
	if !known {
		return nil, refuse(channelNotFound, fmt.Sprintf("the bot knows no channel %q", given))
	}
	e.Hook, e.Channel = hookOfBot+channel.ID, channel.Name
	return fields, verdict{}
}

// spared takes a call from its allowance.
func (s *Server) spared(w http.ResponseWriter, e *Entry, changes bool) verdict {
	now := s.opts.Clock()
	if !changes {
		if wait := s.registry.admit(e.Hook, now); wait > 0 {
			retryAfter(w, wait.Seconds())
			return refuse(rateLimitedAPI, fmt.Sprintf("more than %g messages a second", s.opts.Rate))
		}
		return verdict{}
	}
	if !s.bots.updates.AllowN(now, 1) {
		retryAfter(w, 1/updatesPerSecond)
		return refuse(rateLimitedAPI, "more updates than Slack takes in a minute")
	}
	return verdict{}
}

// find finds the message that a call changes.
func (s *Server) find(e *Entry, fields map[string]any) verdict {
	ts, _ := fields["ts"].(string)
	original := s.record.find(e.Hook, ts)
	if original == nil {
		return refuse(messageNotFound, fmt.Sprintf("there is no message of ts %q in %s", ts, e.Channel))
	}
	e.TS, e.Edits, e.WebhookID = ts, original.ID, ""
	return verdict{}
}

// unknownMethod answers calls of methods that are not copied here.
func (s *Server) unknownMethod(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, map[string]any{"ok": false, "error": "unknown_method"})
}

// isBots reports whether an entry is a call of the Web API.
func (e *Entry) isBots() bool { return strings.HasPrefix(e.Hook, hookOfBot) }

// shown is the body that a message shows: that of its last change.
func (s *Server) shown(e *Entry) (body string, edited bool) {
	if last := s.record.lastEdit(e.ID); last != nil {
		return last.Body, true
	}
	return e.Body, false
}

// payloadOf returns the payload that Slack sends about a pressed button, or a choice from a menu.
func (s *Server) payloadOf(e *Entry, p Press, by Person) ([]byte, error) {
	body, _ := s.shown(e)
	var message map[string]any
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	var pressed map[string]any
	for _, b := range items(message, "blocks") {
		fields, _ := b.(map[string]any)
		for _, value := range items(fields, "elements") {
			element, _ := value.(map[string]any)
			if str(element, "action_id") != p.Action {
				continue
			}
			if pressed = pressedOf(element, p.Value); pressed != nil {
				pressed["action_id"], pressed["block_id"] = p.Action, cmp.Or(str(fields, "block_id"), "b1")
				pressed["action_ts"] = s.bots.stamp(s.opts.Clock())
			}
		}
	}
	if pressed == nil {
		return nil, fmt.Errorf("the message has no button %q, or no such choice", p.Action)
	}
	channel := strings.TrimPrefix(e.Hook, hookOfBot)
	message["type"], message["ts"] = "message", e.TS
	return json.Marshal(map[string]any{
		"type": "block_actions", "team": map[string]any{"id": team, "domain": "demo"},
		"user":       map[string]any{"id": by.ID, "username": by.Name, "name": by.Name, "team_id": team},
		"api_app_id": "A0DEMO", "trigger_id": "1.1.1", "response_url": "",
		"container": map[string]any{"type": "message", "message_ts": e.TS, "channel_id": channel, "is_ephemeral": false},
		"channel":   map[string]any{"id": channel, "name": strings.TrimPrefix(e.Channel, "#")},
		"message":   message, "actions": []any{pressed},
	})
}

// pressedOf returns the payload's part about an element; nil if it cannot be pressed in this way.
func pressedOf(element map[string]any, chosen string) map[string]any {
	switch str(element, "type") {
	case "button":
		return map[string]any{"type": "button", "text": element["text"], "value": str(element, "value")}
	case "static_select":
		for _, o := range items(element, "options") {
			if option, ok := o.(map[string]any); ok && str(option, "value") == chosen {
				return map[string]any{"type": "static_select", "placeholder": element["placeholder"], "selected_option": option}
			}
		}
	}
	return nil
}
