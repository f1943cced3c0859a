package slackalike

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// pressTimeout is how long Slack waits for the answer to a pressed button:
// https://docs.slack.dev/interactivity/handling-user-interaction.
const pressTimeout = 3 * time.Second

// Press is a button to press, in the form of POST /control/press.
type Press struct {
	// Message is the id of the message's request.
	Message int64 `json:"message"`
	// Action is the action_id of the button or the menu. Value is the choice from a menu.
	Action string `json:"action"`
	Value  string `json:"value,omitempty"`
	// User is the id of the person who presses; empty means the first of the people.
	User string `json:"user,omitempty"`
}

// press answers POST /control/press: it notifies the bot's app of a pressed button, as Slack does,
// and returns the app's answer and what the app showed the person meanwhile.
func (s *Server) press(w http.ResponseWriter, r *http.Request) {
	var p Press
	if !read(w, r, &p) {
		return
	}
	_, before := s.bots.ephemeralsSince(0)
	status, err := s.notifyApp(r.Context(), p)
	if err != nil {
		respond(w, http.StatusBadGateway, map[string]string{"error": err.Error()})
		return
	}
	if status != http.StatusOK {
		respond(w, http.StatusBadGateway, map[string]string{"error": fmt.Sprintf("the app answered %d", status)})
		return
	}
	ephemerals, _ := s.bots.ephemeralsSince(before)
	respond(w, http.StatusOK, map[string]any{"ephemerals": ephemerals})
}

func (s *Server) notifyApp(ctx context.Context, p Press) (status int, err error) {
	e := s.record.byID(p.Message)
	if e == nil || !e.Accepted || !e.isBots() || e.Edits != 0 {
		return 0, errors.New("there is no such message of a bot")
	}
	s.bots.mu.Lock()
	target := s.bots.requestURL
	s.bots.mu.Unlock()
	if target == "" {
		return 0, errors.New("the app has no request URL for buttons")
	}
	by, known := s.bots.person(p.User)
	if !known {
		return 0, errors.New("there is no such person")
	}
	payload, err := s.payloadOf(e, p, by)
	if err != nil {
		return 0, err
	}
	body := url.Values{"payload": {string(payload)}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("notify the app: %w", err)
	}
	stamp := strconv.FormatInt(s.opts.Clock().Unix(), 10)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	request.Header.Set("X-Slack-Request-Timestamp", stamp)
	request.Header.Set("X-Slack-Signature", signature(s.bots.SigningSecret, stamp, body))
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("the app did not answer: %w", err)
	}
	return answer.StatusCode, answer.Body.Close()
}

// signature is documented at https://docs.slack.dev/authentication/verifying-requests-from-slack.
func signature(secret, stamp, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":" + body))
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}
