package webhook

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/template"
	"tocsin/rules"
)

func slackAlert(d *notify.Delivery, url string) *slack.Alert {
	a, e := &d.Alert, &d.Alert.Exchange
	told := slack.Alert{
		ID: a.ID.String(), Reason: d.Reason, Severity: string(a.Severity), Title: a.Title, Message: a.Message, URL: url, Rule: a.RuleName,
		// What a test shows is no alert that one could acknowledge.
		State: a.State, Buttons: d.Webhook.Slack.Used() && d.Webhook.Slack.SigningSecret != "" && !d.Test,
	}
	switch {
	case a.State == alerts.Acknowledged && a.AcknowledgedAt != nil:
		told.ChangedBy, told.ChangedAt = a.AcknowledgedBy, *a.AcknowledgedAt
	case a.State == alerts.Resolved && a.ResolvedAt != nil:
		told.ChangedBy, told.ChangedAt = a.ResolvedBy, *a.ResolvedAt
	}
	if c := a.Count; c != nil {
		told.Count = &slack.Count{
			Observed: c.Observed, Threshold: c.Threshold, Window: template.Seconds(c.WindowSeconds),
			GroupBy: groupName(c.GroupBy), Group: c.Group,
		}
	}
	if !a.Health && template.HasExample(a.Count, e) {
		told.Application, told.Route, told.Environment = e.Application, e.Route, e.Environment
		told.StartTimeNS, told.Start, told.Duration = e.StartTimeNS, template.Time(e.StartTimeNS), template.Duration(e.DurationNS)
		told.ErrorType, told.ErrorMessage, told.StackTop = e.ErrorType, e.ErrorMessage, template.StackTop(e.ErrorStack)
		told.ExecutionID, told.CorrelationID = e.ExecutionID, e.CorrelationID
	}
	return &told
}

func groupName(g rules.GroupBy) string {
	switch g {
	case rules.GroupByRoute:
		return "Route"
	case rules.GroupByApplication:
		return "Application"
	case rules.GroupByEnvironment:
		return "Environment"
	case rules.GroupByNothing:
	}
	return ""
}

// event is the payload of generic webhooks. Its form is an interface: fields
// are added, never renamed or removed.
type event struct {
	Type string `json:"type"`
	// Timestamp is when the alert fired, of alert.resolved when it was resolved;
	// never when the attempt was made.
	Timestamp string    `json:"timestamp"`
	Data      eventData `json:"data"`
	// Test is there, and true, when somebody tries the webhook.
	Test bool `json:"test,omitempty"`
}

type eventData struct {
	Alert eventAlert `json:"alert"`
	Rule  eventRule  `json:"rule"`
	// Webhook is the one that was switched off, left out in all other events.
	Webhook *eventWebhook `json:"webhook,omitempty"`
	// Count is there for counting rules only.
	Count *eventCount `json:"count,omitempty"`
	// Exchange is what the alert is about; of a count the newest that matched,
	// left out where none is known.
	Exchange *eventExchange `json:"exchange,omitempty"`
}

type eventAlert struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
	State    string `json:"state"`
	URL      string `json:"url,omitempty"`
	FiredAt  string `json:"firedAt"`
	// ResolvedAt is left out while the alert is open.
	ResolvedAt string `json:"resolvedAt,omitempty"`
}

type eventRule struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type eventWebhook struct {
	ID string `json:"id"`
}

type eventCount struct {
	Observed      int64 `json:"observed"`
	Threshold     int   `json:"threshold"`
	WindowSeconds int   `json:"windowSeconds"`
	// GroupBy is ROUTE, APPLICATION or ENVIRONMENT; it and Group are left out
	// where all are counted together.
	GroupBy string  `json:"groupBy,omitempty"`
	Group   *string `json:"group,omitempty"`
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
	fired := template.Time(a.FiredAt.UnixNano())
	e := event{
		Type:      eventType(d.Reason),
		Timestamp: fired,
		Test:      d.Test,
		Data: eventData{
			Alert: eventAlert{
				ID: a.ID.String(), Title: name(a.Title), Message: rules.CleanText(a.Message, maxTextBytes),
				Severity: string(a.Severity), State: string(a.State), URL: url, FiredAt: fired,
			},
			Rule:  eventRule{ID: a.RuleID.String(), Name: name(a.RuleName)},
			Count: countOf(a.Count),
		},
	}
	if !a.Health && template.HasExample(a.Count, &a.Exchange) {
		e.Data.Exchange = exchangeOf(&a.Exchange)
	}
	if a.WebhookID != uuid.Nil {
		e.Data.Webhook = &eventWebhook{ID: a.WebhookID.String()}
	}
	if a.ResolvedAt != nil {
		e.Data.Alert.ResolvedAt = template.Time(a.ResolvedAt.UnixNano())
		if d.Reason == notify.ReasonResolved || d.Reason == notify.ReasonRuleRecovered {
			e.Timestamp = e.Data.Alert.ResolvedAt
		}
	}
	return e
}

func eventType(reason notify.Reason) string {
	switch reason {
	case notify.ReasonFired:
		return "alert.fired"
	case notify.ReasonReminder:
		return "alert.reminder"
	case notify.ReasonResolved:
		return "alert.resolved"
	case notify.ReasonRuleFailing:
		return "rule.failing"
	case notify.ReasonRuleRecovered:
		return "rule.recovered"
	case notify.ReasonWebhookOff:
		return "webhook.off"
	case notify.ReasonDigest:
		return "digest"
	}
	return "alert." + strings.ToLower(string(reason))
}

// countOf returns nil for an alert about one exchange.
func countOf(c *alerts.Count) *eventCount {
	if c == nil {
		return nil
	}
	counted := &eventCount{Observed: c.Observed, Threshold: c.Threshold, WindowSeconds: c.WindowSeconds}
	if c.GroupBy != rules.GroupByNothing {
		group := name(c.Group)
		counted.GroupBy, counted.Group = string(c.GroupBy), &group
	}
	return counted
}

func exchangeOf(e *rules.Exchange) *eventExchange {
	x := &eventExchange{
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
	for _, key := range sortedNames(e.Attributes) {
		if len(x.Attributes) == maxAttributes {
			break
		}
		x.Attributes[name(key)] = name(e.Attributes[key])
	}
	return x
}

func name(text string) string { return rules.CleanText(text, maxNameBytes) }
