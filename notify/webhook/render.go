package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/template"
	"tocsin/rules"
)

const contentType = "application/json"

// errNoAlertID refuses a body by which a receiver cannot tell a repeat.
var errNoAlertID = errors.New("{{alert.id}} must stand somewhere in the body, so that a receiver can tell a repeat; for Slack, as the block_id of a block")

// RendererOptions configure a [Renderer].
type RendererOptions struct {
	// PublicURL is the address under which people see Tocsin, for links;
	// empty means that messages hold none.
	PublicURL string
}

// Renderer makes the bodies of notifications. It is safe for concurrent use.
type Renderer struct{ publicURL string }

var _ notify.Renderer = (*Renderer)(nil)

// NewRenderer returns a renderer.
func NewRenderer(o RendererOptions) (*Renderer, error) {
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("the public URL must be of the form https://tocsin.example.com")
		}
	}
	return &Renderer{publicURL: strings.TrimRight(o.PublicURL, "/")}, nil
}

// AlertURL returns where a person finds an alert, or "" without a public URL.
func (r *Renderer) AlertURL(a *alerts.Instance) string {
	if r.publicURL == "" {
		return ""
	}
	return r.publicURL + "/inbox/" + a.ID.String()
}

// Render returns the body of a notification: the webhook's own template, else
// the layout of its kind. Where the template does not work out with this alert,
// the layout stands in for it and problem says why.
func (r *Renderer) Render(d *notify.Delivery) (body notify.Body, problem error) {
	values := template.ForAlert(&d.Alert, r.AlertURL(&d.Alert))
	if d.Webhook.BodyTemplate != "" {
		content, err := custom(&d.Webhook, values)
		if err == nil {
			return notify.Body{ContentType: contentType, Content: content}, nil
		}
		problem = fmt.Errorf("body template: %w", err)
	}
	content, err := r.layout(d)
	if err != nil {
		problem = errors.Join(problem, err)
	}
	return notify.Body{ContentType: contentType, Content: content}, problem
}

// custom renders the webhook's own template and holds it to what its receiver takes.
func custom(w *notify.Webhook, values *template.Values) ([]byte, error) {
	parsed, err := template.ParseJSON(w.BodyTemplate, template.InBody)
	if err != nil {
		return nil, err
	}
	content, err := renderCustom(parsed, w.Kind, values)
	if err != nil {
		return nil, err
	}
	if w.Kind == notify.KindSlack {
		if err := slack.Valid(content); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// maxSlackValue bounds a variable's value in a body for Slack, escaped.
const maxSlackValue = 1000

func renderCustom(body *template.JSON, kind notify.WebhookKind, values *template.Values) ([]byte, error) {
	if kind == notify.KindSlack {
		content, err := body.Render(values, func(s string) string { return slack.Escape(s, maxSlackValue) })
		if err != nil {
			return nil, err
		}
		return slack.Fit(content)
	}
	return body.Render(values, nil)
}

// layout returns the body of the webhook's kind. An error comes with a body
// that the receiver can read all the same.
func (r *Renderer) layout(d *notify.Delivery) ([]byte, error) {
	if d.Webhook.Kind == notify.KindSlack {
		a := slackAlert(&d.Alert, r.AlertURL(&d.Alert))
		content, err := slack.Message(a)
		if err == nil {
			err = slack.Valid(content)
		}
		if err == nil {
			return content, nil
		}
		plain, plainErr := slack.PlainMessage(a)
		return plain, errors.Join(err, plainErr)
	}
	content, err := json.Marshal(eventOf(d, r.AlertURL(&d.Alert)))
	if err != nil {
		return fmt.Appendf(nil, `{"type":"alert.fired","data":{"alert":{"id":%q}}}`, d.Alert.ID), fmt.Errorf("marshal payload: %w", err)
	}
	return content, nil
}

func slackAlert(a *alerts.Instance, url string) *slack.Alert {
	e := &a.Exchange
	return &slack.Alert{
		ID: a.ID.String(), Severity: string(a.Severity), Title: a.Title, Message: a.Message, URL: url, Rule: a.RuleName,
		Application: e.Application, Route: e.Route, Environment: e.Environment,
		StartTimeNS: e.StartTimeNS, Start: template.Time(e.StartTimeNS), Duration: template.Duration(e.DurationNS),
		ErrorType: e.ErrorType, ErrorMessage: e.ErrorMessage, StackTop: template.StackTop(e.ErrorStack),
		ExecutionID: e.ExecutionID, CorrelationID: e.CorrelationID,
	}
}

// event is the payload of generic webhooks. Its form is an interface: fields
// are added, never renamed or removed.
type event struct {
	Type string `json:"type"`
	// Timestamp is when the alert fired, not when the attempt was made.
	Timestamp string    `json:"timestamp"`
	Data      eventData `json:"data"`
}

type eventData struct {
	Alert    eventAlert    `json:"alert"`
	Rule     eventRule     `json:"rule"`
	Exchange eventExchange `json:"exchange"`
}

type eventAlert struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
	State    string `json:"state"`
	URL      string `json:"url,omitempty"`
	FiredAt  string `json:"firedAt"`
}

type eventRule struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// eventExchange holds times as RFC 3339 with nanoseconds, which JSON numbers lose.
type eventExchange struct {
	ExecutionID   string            `json:"executionId"`
	Application   string            `json:"application"`
	Route         string            `json:"route"`
	Environment   string            `json:"environment"`
	Status        string            `json:"status"`
	StartTime     string            `json:"startTime"`
	EndTime       *string           `json:"endTime"`
	DurationMS    json.Number       `json:"durationMs"`
	ErrorType     string            `json:"errorType"`
	ErrorMessage  string            `json:"errorMessage"`
	ErrorStack    string            `json:"errorStack"`
	CorrelationID string            `json:"correlationId"`
	Attributes    map[string]string `json:"attributes"`
}

// Bounds of the payload's texts, in bytes.
const (
	maxNameBytes  = 1 << 10
	maxTextBytes  = 16 << 10
	maxStackBytes = 16 << 10
	maxAttributes = 100
)

func eventOf(d *notify.Delivery, url string) event {
	a := &d.Alert
	return event{
		Type:      eventType(d.Reason),
		Timestamp: template.Time(a.FiredAt.UnixNano()),
		Data: eventData{
			Alert: eventAlert{
				ID: a.ID.String(), Title: name(a.Title), Message: rules.CleanText(a.Message, maxTextBytes),
				Severity: string(a.Severity), State: string(a.State), URL: url, FiredAt: template.Time(a.FiredAt.UnixNano()),
			},
			Rule:     eventRule{ID: a.RuleID.String(), Name: name(a.RuleName)},
			Exchange: exchangeOf(&a.Exchange),
		},
	}
}

func eventType(reason notify.Reason) string {
	switch reason {
	case notify.ReasonFired:
		return "alert.fired"
	}
	return "alert." + strings.ToLower(string(reason))
}

func exchangeOf(e *rules.Exchange) eventExchange {
	x := eventExchange{
		ExecutionID: name(e.ExecutionID), Application: name(e.Application), Route: name(e.Route),
		Environment: name(e.Environment), Status: name(string(e.Status)),
		StartTime: template.Time(e.StartTimeNS), DurationMS: json.Number(template.Milliseconds(e.DurationNS)),
		ErrorType: name(e.ErrorType), ErrorMessage: rules.CleanText(e.ErrorMessage, maxTextBytes),
		ErrorStack: rules.CleanText(e.ErrorStack, maxStackBytes), CorrelationID: name(e.CorrelationID),
		Attributes: make(map[string]string, len(e.Attributes)),
	}
	if e.EndTimeNS != nil {
		end := template.Time(*e.EndTimeNS)
		x.EndTime = &end
	}
	for _, key := range slices.Sorted(maps.Keys(e.Attributes)) {
		if len(x.Attributes) == maxAttributes {
			break
		}
		x.Attributes[name(key)] = name(e.Attributes[key])
	}
	return x
}

func name(text string) string { return rules.CleanText(text, maxNameBytes) }
