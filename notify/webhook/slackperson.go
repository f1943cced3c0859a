package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tocsin/notify"
	"tocsin/notify/slack"
)

// maxSlackWait bounds a call during which a person who pressed a button waits, for at most three
// seconds.
const maxSlackWait = time.Second

// SlackMember asks Slack who a user is, with the bot's token.
func (s *Sender) SlackMember(ctx context.Context, w *notify.Webhook, user string) (slack.Member, error) {
	to, err := parseURL(s.slackAPI.JoinPath("users.info").String())
	if err != nil {
		return slack.Member{}, fmt.Errorf("ask Slack for a user: %w", err)
	}
	header := http.Header{}
	header.Set("Authorization", "Bearer "+w.Slack.BotToken)
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	header.Set("User-Agent", s.agent)
	o, body, err := s.askSlack(ctx, w, post(to, header, []byte(url.Values{"user": {user}}.Encode())))
	if err != nil {
		return slack.Member{}, fmt.Errorf("ask Slack for a user: %w", err)
	}
	m, err := slack.ReadMember(body)
	if err != nil {
		return slack.Member{}, fmt.Errorf("ask Slack for a user: %w (%s)", err, o.Error)
	}
	return m, nil
}

// SlackTell shows a text to one person at the place of the press. It is not stored anywhere.
func (s *Sender) SlackTell(ctx context.Context, w *notify.Webhook, press slack.Press, text string) error {
	content, err := json.Marshal(map[string]string{"text": slack.Escape(text, maxError)})
	if err != nil {
		return fmt.Errorf("notify a user: %w", err)
	}
	place := map[string]any{"channel": press.Message.Channel, "user": press.User.ID}
	if press.Thread != "" {
		place["thread_ts"] = press.Thread
	}
	r, err := s.slackRequest(w.Slack, slackCall{method: "chat.postEphemeral", body: &notify.Body{Content: content}, place: place})
	if err != nil {
		return fmt.Errorf("notify a user: %w", err)
	}
	o, _, err := s.askSlack(ctx, w, r)
	switch {
	case err != nil:
		return fmt.Errorf("notify a user: %w", err)
	case o.Verdict != notify.VerdictDelivered:
		return fmt.Errorf("notify a user: %s", o.Error)
	}
	return nil
}

// askSlack makes a call for which a person waits. Its error says why there is no answer.
func (s *Sender) askSlack(ctx context.Context, w *notify.Webhook, r *http.Request) (notify.Outcome, []byte, error) {
	bounded := *w
	bounded.Timeout = min(timeoutOf(w), maxSlackWait)
	o, body := s.exchange(ctx, s.targets.get(w), &bounded, r, s.now())
	if body == nil {
		return o, nil, errors.New(o.Error)
	}
	return o, body, nil
}
