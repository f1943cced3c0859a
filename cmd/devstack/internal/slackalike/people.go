package slackalike

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// team is the workspace.
const team = "T0DEMO"

// Ephemeral is a text that the bot showed to only one person.
type Ephemeral struct {
	User    string `json:"user"`
	Channel string `json:"channel"`
	Text    string `json:"text"`
}

// maxEphemerals bounds how many of these texts are kept.
const maxEphemerals = 200

// person finds a member; the empty id means the first one.
func (b *bots) person(id string) (Person, bool) {
	if id == "" && len(b.People) > 0 {
		return b.People[0], true
	}
	i := slices.IndexFunc(b.People, func(p Person) bool { return p.ID == id })
	if i < 0 {
		return Person{}, false
	}
	return b.People[i], true
}

// ephemeralsSince returns the kept texts after the first n, and how many there were.
func (b *bots) ephemeralsSince(n int) (ephemerals []Ephemeral, all int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all = b.forgotten + len(b.ephemerals)
	return append([]Ephemeral{}, b.ephemerals[max(0, n-b.forgotten):]...), all
}

// ephemeral answers chat.postEphemeral. The people are in every channel.
func (s *Server) ephemeral(w http.ResponseWriter, r *http.Request) {
	e := &Entry{Headers: redacted(r.Header)}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fields, v := s.placed(r, e, body, true)
	if v.accepted() {
		_, v = judge(r.Header.Get("Content-Type"), body)
	}
	user, known := s.bots.person(str(fields, "user"))
	if v.accepted() && (!known || str(fields, "user") == "") {
		v = refuse("user_not_in_channel", "nobody has this id")
	}
	if fault, misbehaves := s.registry.fault(e.Hook); misbehaves && v.accepted() {
		if done := s.misbehave(w, r, e, fault); done {
			return
		}
	}
	if !v.accepted() {
		respond(w, http.StatusOK, map[string]any{"ok": false, "error": string(v.word)})
		return
	}
	s.bots.mu.Lock()
	s.bots.ephemerals = append(s.bots.ephemerals, Ephemeral{User: user.ID, Channel: e.Channel, Text: unescape(str(fields, "text"))})
	if len(s.bots.ephemerals) > maxEphemerals {
		s.bots.ephemerals, s.bots.forgotten = slices.Delete(s.bots.ephemerals, 0, 1), s.bots.forgotten+1
	}
	s.bots.mu.Unlock()
	respond(w, http.StatusOK, map[string]any{"ok": true, "message_ts": s.bots.stamp(s.opts.Clock())})
}

// userInfo answers users.info, which accepts only a form.
func (s *Server) userInfo(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	refused := func(word string) { respond(w, http.StatusOK, map[string]any{"ok": false, "error": word}) }
	if token != s.bots.Token {
		refused(string(invalidAuth))
		return
	}
	if !s.bots.Addresses {
		respond(w, http.StatusOK, map[string]any{"ok": false, "error": string(missingScope), "needed": "users:read", "provided": "chat:write"})
		return
	}
	p, known := s.bots.person(r.PostFormValue("user"))
	if !known || r.PostFormValue("user") == "" {
		refused(string(userNotFound))
		return
	}
	profile := map[string]any{"display_name": p.Name}
	if p.Email != "" {
		profile["email"] = p.Email
	}
	respond(w, http.StatusOK, map[string]any{"ok": true, "user": map[string]any{
		"id": p.ID, "team_id": team, "name": p.Name, "deleted": false, "is_bot": false, "is_restricted": p.Guest,
		"is_email_confirmed": p.Email != "", "profile": profile,
	}})
}

// ephemeralsList answers GET /control/ephemerals.
func (s *Server) ephemeralsList(w http.ResponseWriter, _ *http.Request) {
	ephemerals, _ := s.bots.ephemeralsSince(0)
	respond(w, http.StatusOK, ephemerals)
}

// menu checks a menu of choices:
// https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element.
func (c *blockCheck) menu(e map[string]any, at string) {
	c.members(e, at, "placeholder", "action_id", "options", "option_groups", "initial_option", "confirm", "focus_on_load")
	if placeholder, given := e["placeholder"]; given {
		c.text(placeholder, at+"/placeholder", maxPlaceholder, "plain_text")
	}
	for i, o := range c.items(e["options"], at+"/options", maxOptions) {
		here := fmt.Sprintf("%s/options/%d", at, i)
		option, ok := o.(map[string]any)
		if !ok {
			c.fail(here, "must be an object")
			return
		}
		c.members(option, here, "text", "value", "description")
		c.text(option["text"], here+"/text", maxButtonText, "plain_text")
		c.str(option, "value", here, maxOptionValue, true)
	}
}
