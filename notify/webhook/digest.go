package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/template"
)

// renderDigest returns the body of a digest. It always has the layout of the webhook's kind,
// because a body template is about one alert.
func (r *Renderer) renderDigest(d *notify.Delivery) (content []byte, problem error) {
	if d.Webhook.Kind == notify.KindSlack {
		digest := slackDigest(d, r.inboxURL(d.Digest))
		content, err := slack.DigestMessage(digest)
		if err == nil {
			err = slack.Valid(content)
		}
		if err == nil {
			return content, nil
		}
		plain, plainErr := slack.PlainDigest(digest)
		return plain, errors.Join(err, plainErr)
	}
	content, err := json.Marshal(r.digestEvent(d))
	if err != nil {
		return fmt.Appendf(nil, `{"type":"digest","data":{"digest":{"id":%q}}}`, d.NotificationID), fmt.Errorf("marshal digest: %w", err)
	}
	return content, nil
}

// inboxURL returns where people find the alerts of a digest, filtered by rule if the digest names
// all rules, or "" without a public URL.
func (r *Renderer) inboxURL(d *notify.Digest) string {
	if r.publicURL == "" {
		return ""
	}
	filter := url.Values{}
	if d.AllRules == len(d.Rules) {
		for _, rule := range d.Rules {
			filter.Add("rule", rule.ID.String())
		}
	}
	if len(filter) == 0 {
		return r.publicURL + "/inbox"
	}
	return r.publicURL + "/inbox?" + filter.Encode()
}

func slackDigest(d *notify.Delivery, inbox string) *slack.Digest {
	g := d.Digest
	digest := slack.Digest{
		ID: d.NotificationID.String(), Size: g.Size, Reasons: g.Reasons, AllRules: g.AllRules, AllPlaces: g.AllPlaces,
		AllErrors: g.AllErrors, Silence: silenceOf(g.Silence), From: second(g.FirstFiredAt), To: second(g.LastFiredAt), URL: inbox,
	}
	for _, r := range g.Rules {
		digest.Rules = append(digest.Rules, slack.DigestRule{Name: r.Name, Severity: string(r.Severity), Count: r.Count})
	}
	for _, p := range g.Places {
		digest.Places = append(digest.Places, slack.DigestCount{What: strings.Trim(p.Application+" · "+p.Route, " ·"), Count: p.Count})
	}
	for _, e := range g.Errors {
		digest.Errors = append(digest.Errors, slack.DigestCount{What: strings.Trim(e.Type+": "+e.Message, ": \n"), Count: e.Count})
	}
	digest.First, digest.Last = slackEnd(g.First), slackEnd(g.Last)
	return &digest
}

func silenceOf(s *notify.DigestSilence) *slack.DigestSilence {
	if s == nil {
		return nil
	}
	return &slack.DigestSilence{Name: s.Name, From: second(s.From), Until: second(s.Until)}
}

func slackEnd(a *alerts.Instance) *slack.Alert {
	if a == nil {
		return nil
	}
	return slackAlert(&notify.Delivery{Alert: *a}, "")
}

func second(at time.Time) string { return at.UTC().Format(time.DateTime) + " UTC" }

// digestEvent is the payload of a digest for generic webhooks. The rules for the form of [event]
// apply to it as well.
type digestEvent struct {
	Type string `json:"type"`
	// Timestamp is when the newest of the alerts fired, or when the silence ended.
	Timestamp string          `json:"timestamp"`
	Data      digestEventData `json:"data"`
}

type digestEventData struct {
	Digest digestSummary `json:"digest"`
	// Rules, Places and Errors are the most frequent ones.
	Rules  []digestRule  `json:"rules"`
	Places []digestPlace `json:"places"`
	Errors []digestError `json:"errors"`
	// First and Last are left out if no alert is about an exchange.
	First *digestEnd `json:"first,omitempty"`
	Last  *digestEnd `json:"last,omitempty"`
	// Alerts contains the id of the alert of each notification, oldest first. MoreAlerts is how
	// many are left out; NotificationsURL lists all of them.
	Alerts           []string `json:"alerts"`
	MoreAlerts       int      `json:"moreAlerts,omitempty"`
	NotificationsURL string   `json:"notificationsUrl,omitempty"`
}

type digestSummary struct {
	ID string `json:"id"`
	// Size is the number of notifications; Reasons is their number for each reason.
	Size         int            `json:"size"`
	Reasons      map[string]int `json:"reasons"`
	Rules        int            `json:"rules"`
	Places       int            `json:"places"`
	Errors       int            `json:"errors"`
	FirstFiredAt string         `json:"firstFiredAt"`
	LastFiredAt  string         `json:"lastFiredAt"`
	URL          string         `json:"url,omitempty"`
	// Silence is the silence that suppressed the notifications, which were not sent.
	Silence *digestSilence `json:"silence,omitempty"`
}

type digestSilence struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	From  string `json:"from"`
	Until string `json:"until"`
}

type digestRule struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
}

type digestPlace struct {
	Application string `json:"application"`
	Route       string `json:"route"`
	Count       int    `json:"count"`
}

type digestError struct {
	ErrorType    string `json:"errorType"`
	ErrorMessage string `json:"errorMessage"`
	Count        int    `json:"count"`
}

type digestEnd struct {
	AlertID  string          `json:"alertId"`
	Exchange json.RawMessage `json:"exchange"`
}

func (r *Renderer) digestEvent(d *notify.Delivery) digestEvent {
	g := d.Digest
	e := digestEvent{
		Type: "digest", Timestamp: template.Time(g.LastFiredAt.UnixNano()),
		Data: digestEventData{
			Digest: digestSummary{
				ID: d.NotificationID.String(), Size: g.Size, Reasons: map[string]int{},
				Rules: g.AllRules, Places: g.AllPlaces, Errors: g.AllErrors,
				FirstFiredAt: template.Time(g.FirstFiredAt.UnixNano()), LastFiredAt: template.Time(g.LastFiredAt.UnixNano()),
				URL: r.inboxURL(g),
			},
			Rules: make([]digestRule, len(g.Rules)), Places: make([]digestPlace, len(g.Places)),
			Errors: make([]digestError, len(g.Errors)), Alerts: make([]string, len(g.Alerts)),
			First: endOf(g.First), Last: endOf(g.Last), MoreAlerts: g.Size - len(g.Alerts),
		},
	}
	if s := g.Silence; s != nil {
		e.Timestamp = template.Time(s.Until.UnixNano())
		e.Data.Digest.Silence = &digestSilence{
			ID: s.ID.String(), Name: name(s.Name), From: template.Time(s.From.UnixNano()), Until: template.Time(s.Until.UnixNano()),
		}
	}
	for reason, count := range g.Reasons {
		e.Data.Digest.Reasons[string(reason)] = count
	}
	for i, rule := range g.Rules {
		e.Data.Rules[i] = digestRule{ID: rule.ID.String(), Name: name(rule.Name), Severity: string(rule.Severity), Count: rule.Count}
	}
	for i, p := range g.Places {
		e.Data.Places[i] = digestPlace{Application: name(p.Application), Route: name(p.Route), Count: p.Count}
	}
	for i, f := range g.Errors {
		e.Data.Errors[i] = digestError{ErrorType: name(f.Type), ErrorMessage: name(f.Message), Count: f.Count}
	}
	for i, id := range g.Alerts {
		e.Data.Alerts[i] = id.String()
	}
	if r.publicURL != "" {
		e.Data.NotificationsURL = r.publicURL + "/api/v1/notifications?digestId=" + d.NotificationID.String()
	}
	return e
}

func endOf(a *alerts.Instance) *digestEnd {
	if a == nil {
		return nil
	}
	return &digestEnd{AlertID: a.ID.String(), Exchange: exchange(nil, &a.Exchange)}
}
