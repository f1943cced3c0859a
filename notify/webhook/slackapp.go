package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tocsin/notify"
	"tocsin/notify/slack"
)

// DefaultSlackAPI is the base URL of Slack's Web API.
const DefaultSlackAPI = "https://slack.com/api"

// maxUpdateTimeout bounds the change of a message, below the lease of its claim.
const maxUpdateTimeout = 10 * time.Second

func slackAPIURL(text string) (*url.URL, error) {
	if text == "" {
		text = DefaultSlackAPI
	}
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("TOCSIN_SLACK_API_URL must have the form %s", DefaultSlackAPI)
	}
	return u, nil
}

// Update makes one attempt to change a message that a bot has posted.
func (s *Sender) Update(ctx context.Context, w *notify.Webhook, at notify.Posted, body *notify.Body) notify.Outcome {
	bounded := *w
	bounded.Timeout = min(w.Timeout, maxUpdateTimeout)
	t := s.targets.get(w)
	r, err := s.slackRequest(w.Slack, slackCall{
		method: "chat.update", body: body, place: map[string]any{"channel": at.Channel, "ts": at.TS},
	})
	if err != nil {
		return refused(t, err)
	}
	return s.attempt(ctx, t, &bounded, r, s.now())
}

// slackCall is a call of a method of the Web API.
type slackCall struct {
	method string
	body   *notify.Body
	// id is the id of the notification. Slack ignores it; stand-ins for Slack may use it.
	id string
	// place is added to the body: the channel and the message.
	place map[string]any
}

// slackRequest makes the request of a call. The token goes only to the API, whatever headers a
// webhook has.
func (s *Sender) slackRequest(app notify.SlackApp, call slackCall) (*http.Request, error) {
	content, err := call.content()
	if err != nil {
		return nil, err
	}
	// The request uses the URL in the form in which it is written.
	to, err := parseURL(s.slackAPI.JoinPath(call.method).String())
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	header.Set("Authorization", "Bearer "+app.BotToken)
	header.Set("Content-Type", contentType+"; charset=utf-8")
	header.Set("User-Agent", s.agent)
	if call.id != "" {
		header.Set(headerID, call.id)
	}
	return post(to, header, content), nil
}

// content is the body with the place of the call.
func (c *slackCall) content() ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(c.body.Content, &fields); err != nil {
		return nil, errors.New("the body is not a JSON object")
	}
	for name, value := range c.place {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		fields[name] = text
	}
	content, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the call: %w", err)
	}
	return content, nil
}

// notTheAPI is said of an answer in which nothing is the Web API's.
const notTheAPI = "the response is not from Slack's API"

// byWebAPI checks the answer of a method. The part that was read decides what became of the
// message, even if the rest did not arrive.
func byWebAPI(byStatus notify.Verdict, a answer) (verdict notify.Verdict, said string, posted *notify.Posted) {
	parsed, ok := slack.ReadAnswer(a.body)
	if !ok {
		parsed, ok = slack.ReadCutAnswer(a.body)
	}
	switch {
	case !ok && (byStatus == notify.VerdictThrottled || byStatus == notify.VerdictRetry):
		return byStatus, "", nil
	case !ok:
		return notify.VerdictRetry, notTheAPI, nil
	case !parsed.OK:
		return bySlack(byStatus, a.status, parsed.Error), parsed.Error, nil
	case byStatus != notify.VerdictDelivered:
		return byStatus, "", nil
	case parsed.Channel == "" || parsed.TS == "":
		return notify.VerdictDelivered, "", nil
	}
	return notify.VerdictDelivered, "", &notify.Posted{Channel: parsed.Channel, TS: parsed.TS}
}
