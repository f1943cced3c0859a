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

// DefaultSlackAPI is where Slack's Web API is.
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

// Update makes one attempt to change a message that was posted by a bot.
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
	// id names the notification; Slack does not look at it, what stands in for Slack may.
	id string
	// place is added to the body: which channel, which message.
	place map[string]any
}

// slackRequest makes the request of a call. The token goes only to the API, whatever headers a
// webhook has.
func (s *Sender) slackRequest(app notify.SlackApp, call slackCall) (*http.Request, error) {
	content, err := call.content()
	if err != nil {
		return nil, err
	}
	// A request is made of what the URL says when it is written out.
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

// content is the body with the call's place in it.
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
const notTheAPI = "the answer is not from Slack's API"

// byWebAPI judges the answer of a method. What was read of it says what became of
// the message, whatever befell the rest.
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
