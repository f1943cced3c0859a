package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/template"
	"tocsin/rules"
)

func slackAlert(d *notify.Delivery, url string) *slack.Alert {
	a, e := &d.Alert, &d.Alert.Exchange
	about := slack.Alert{
		ID: a.ID.String(), Reason: d.Reason, Severity: string(a.Severity), Title: a.Title, Message: a.Message, URL: url, Rule: a.RuleName,
		// A test does not show an alert that can be acknowledged.
		State: a.State, Buttons: d.Webhook.Slack.Used() && d.Webhook.Slack.SigningSecret != "" && !d.Test,
	}
	switch {
	case d.Reason == notify.ReasonReopened && d.Event != nil:
		about.ChangedBy, about.ChangedAt = d.Event.By, d.Event.At
	case a.State == alerts.Acknowledged && a.AcknowledgedAt != nil:
		about.ChangedBy, about.ChangedAt = a.AcknowledgedBy, *a.AcknowledgedAt
	case a.State == alerts.Resolved && a.ResolvedAt != nil:
		about.ChangedBy, about.ChangedAt, about.Resolution = a.ResolvedBy, *a.ResolvedAt, template.Resolution(a)
	}
	if about.Assignee = a.Assignee; a.SnoozedUntil != nil {
		about.SnoozedUntil, about.SnoozedBy = *a.SnoozedUntil, a.SnoozedBy
	}
	if !a.Health {
		about.Owner, about.Labels, about.RunbookURL, about.Note = a.About.Owner, a.About.Labels, a.About.RunbookURL, a.About.Note
	}
	if c := a.Count; c != nil {
		about.Count = &slack.Count{
			Observed: c.Observed, Threshold: c.Threshold, Window: template.Seconds(c.WindowSeconds),
			GroupBy: groupName(c.Grouping()), Group: c.Group,
		}
		measured(about.Count, c)
	}
	if !a.Health && template.HasExample(a.Count, e) {
		about.Application, about.Route, about.Environment = e.Application, e.Route, e.Environment
		about.StartTimeNS, about.Start, about.Duration = e.StartTimeNS, template.Time(e.StartTimeNS), template.Duration(e.DurationNS)
		about.ErrorType, about.ErrorMessage, about.StackTop = e.ErrorType, e.ErrorMessage, template.StackTop(e.ErrorStack)
		about.ExecutionID, about.CorrelationID = e.ExecutionID, e.CorrelationID
	}
	return &about
}

// measured adds what a rule measured, unless it is a count.
func measured(about *slack.Count, c *alerts.Count) {
	switch c.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		about.Name, about.Value = "Ratio", fmt.Sprintf("%s (%d of %d)", template.CountValue(c), c.Observed, c.Volume)
	case rules.DurationInWindow:
		about.Name, about.Value = fmt.Sprintf("p%d", c.Percentile), fmt.Sprintf("%s over %d exchanges", template.CountValue(c), c.Volume)
	case rules.AbsentInWindow:
		about.Name, about.Value = "Exchanges", template.CountValue(c)
		about.Bound = "at least " + template.CountThreshold(c)
		return
	default:
		return
	}
	about.Bound = template.CountThreshold(c)
}

func groupName(g rules.Grouping) string {
	switch g.By {
	case rules.GroupByRoute:
		return "Route"
	case rules.GroupByApplication:
		return "Application"
	case rules.GroupByEnvironment:
		return "Environment"
	case rules.GroupByErrorType:
		return "Error type"
	case rules.GroupByAttribute:
		return g.Attribute
	case rules.GroupByNothing:
	}
	return ""
}

// Bounds of the payload's texts, in bytes.
const (
	maxNameBytes  = 1 << 10
	maxTextBytes  = 16 << 10
	maxStackBytes = 16 << 10
	maxAttributes = 100
)

// event returns the payload of generic webhooks. Its form is an interface: members are added, never
// renamed or removed. It is written member by member, with the same result as encoding/json, at
// half the cost, because there is one for each message.
func event(d *notify.Delivery, url string) []byte {
	a := &d.Alert
	fired, resolved := template.Time(a.FiredAt.UnixNano()), ""
	if a.ResolvedAt != nil {
		resolved = template.Time(a.ResolvedAt.UnixNano())
	}
	// Never the time of the attempt.
	timestamp := fired
	if resolved != "" && (d.Reason == notify.ReasonResolved || d.Reason == notify.ReasonRuleRecovered || d.Reason == notify.ReasonSourceRecovered) {
		timestamp = resolved
	}
	if d.Event != nil && d.Reason != notify.ReasonResolved {
		timestamp = template.Time(d.Event.At.UnixNano())
	}
	b := text(make([]byte, 0, 1024), `{"type":`, eventType(d.Reason))
	b = text(b, `,"timestamp":`, timestamp)
	b = text(b, `,"data":{"alert":{"id":`, a.ID.String())
	b = text(b, `,"title":`, name(a.Title))
	b = text(b, `,"message":`, rules.CleanText(a.Message, maxTextBytes))
	b = text(b, `,"severity":`, string(a.Severity))
	b = text(b, `,"state":`, string(a.State))
	if url != "" {
		b = text(b, `,"url":`, url)
	}
	b = text(b, `,"firedAt":`, fired)
	// While the alert is open, there is none.
	if resolved != "" {
		b = text(b, `,"resolvedAt":`, resolved)
	}
	if why := template.Resolution(a); why != "" {
		b = text(b, `,"resolution":`, why)
	}
	b = text(b, `},"rule":{"id":`, a.RuleID.String())
	b = text(b, `,"name":`, name(a.RuleName))
	b = about(b, &a.About)
	// For an alert about a webhook that was disabled.
	if a.WebhookID != uuid.Nil {
		b = text(b, `},"webhook":{"id":`, a.WebhookID.String())
	}
	b = append(b, '}')
	if a.Count != nil {
		b = count(append(b, `,"count":`...), a.Count)
	}
	// The exchange that the alert is about. For a count it is the newest that matched, if one is
	// known.
	if !a.Health && template.HasExample(a.Count, &a.Exchange) {
		b = exchange(append(b, `,"exchange":`...), &a.Exchange)
	}
	// Who caused the event; absent if it was Tocsin.
	if d.Event != nil && d.Event.By != "" {
		b = text(b, `,"by":`, name(d.Event.By))
	}
	b = append(b, '}')
	// Somebody is testing the webhook.
	if d.Test {
		b = append(b, `,"test":true`...)
	}
	return append(b, '}')
}

// about appends the information of the rule; empty fields are absent.
func about(b []byte, a *rules.About) []byte {
	for i, key := range slices.Sorted(maps.Keys(a.Labels)) {
		before := map[bool]string{true: `,"labels":{`, false: `,`}[i == 0]
		b = text(text(b, before, name(key)), `:`, name(a.Labels[key]))
	}
	if len(a.Labels) > 0 {
		b = append(b, '}')
	}
	for _, part := range []struct{ before, text string }{
		{`,"owner":`, a.Owner}, {`,"runbookUrl":`, a.RunbookURL}, {`,"note":`, a.Note},
	} {
		if part.text != "" {
			b = text(b, part.before, rules.CleanText(part.text, maxTextBytes))
		}
	}
	return b
}

// text appends before, and then the text as a JSON string.
func text(b []byte, before, s string) []byte {
	b = append(b, before...)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // cannot fail for a text
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func eventType(reason notify.Reason) string {
	switch reason {
	case notify.ReasonFired:
		return "alert.fired"
	case notify.ReasonReminder:
		return "alert.reminder"
	case notify.ReasonSnoozeEnded:
		return "alert.snooze_ended"
	case notify.ReasonEscalated:
		return "alert.escalated"
	case notify.ReasonResolved:
		return "alert.resolved"
	case notify.ReasonAcknowledged:
		return "alert.acknowledged"
	case notify.ReasonReopened:
		return "alert.reopened"
	case notify.ReasonRuleFailing:
		return "rule.failing"
	case notify.ReasonRuleRecovered:
		return "rule.recovered"
	case notify.ReasonSourceFailing:
		return "source.failing"
	case notify.ReasonSourceRecovered:
		return "source.recovered"
	case notify.ReasonWebhookOff:
		return "webhook.off"
	case notify.ReasonWebhookFailing:
		return "webhook.failing"
	case notify.ReasonUndelivered:
		return "message.undelivered"
	case notify.ReasonDigest:
		return "digest"
	}
	return "alert." + strings.ToLower(string(reason))
}

// count appends the count. Group and grouping are left out if all are counted together.
func count(b []byte, c *alerts.Count) []byte {
	b = append(fmt.Appendf(b, `{"observed":%d,"threshold":`, c.Observed), number(c.Bound())...)
	b = fmt.Appendf(b, `,"windowSeconds":%d`, c.WindowSeconds)
	if c.Mode != "" {
		b = text(b, `,"fireMode":`, string(c.Mode))
	}
	if c.Measured() {
		b = append(append(b, `,"value":`...), number(c.Value())...)
		b = fmt.Appendf(b, `,"volume":%d,"minVolume":%d`, c.Volume, c.MinVolume)
	}
	if c.Percentile != 0 {
		b = fmt.Appendf(b, `,"percentile":%d`, c.Percentile)
	}
	if c.ShortWindowSeconds != 0 {
		b = fmt.Appendf(b, `,"shortWindowSeconds":%d,"shortValue":%s`, c.ShortWindowSeconds, number(c.ShortValue()))
	}
	if c.GroupBy != rules.GroupByNothing {
		b = text(b, `,"groupBy":`, string(c.GroupBy))
		if c.GroupByAttribute != "" {
			b = text(b, `,"groupByAttribute":`, c.GroupByAttribute)
		}
		b = text(b, `,"group":`, name(c.Group))
	}
	return append(b, '}')
}

// number formats a number with the fewest digits that represent it.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// exchange appends an exchange. Its times are RFC 3339 with nanoseconds, which JSON numbers cannot
// represent.
func exchange(b []byte, e *rules.Exchange) []byte {
	b = text(b, `{"executionId":`, name(e.ExecutionID))
	b = text(b, `,"application":`, name(e.Application))
	b = text(b, `,"route":`, name(e.Route))
	b = text(b, `,"environment":`, name(e.Environment))
	b = text(b, `,"status":`, name(string(e.Status)))
	b = text(b, `,"startTime":`, template.Time(e.StartTimeNS))
	if e.EndTimeNS != nil {
		b = text(b, `,"endTime":`, template.Time(*e.EndTimeNS))
	} else {
		b = append(b, `,"endTime":null`...)
	}
	b = append(append(b, `,"durationMs":`...), template.Milliseconds(e.DurationNS)...)
	b = text(b, `,"errorType":`, name(e.ErrorType))
	b = text(b, `,"errorMessage":`, rules.CleanText(e.ErrorMessage, maxTextBytes))
	b = text(b, `,"errorStack":`, rules.CleanText(e.ErrorStack, maxStackBytes))
	b = text(b, `,"correlationId":`, name(e.CorrelationID))
	before := `,"attributes":{`
	names := sortedNames(e.Attributes)
	for _, key := range names[:min(len(names), maxAttributes)] {
		b = append(text(b, before, name(key)), ':')
		b = text(b, "", name(e.Attributes[key]))
		before = ","
	}
	if len(names) == 0 {
		b = append(b, before...)
	}
	return append(b, "}}"...)
}

func name(text string) string { return rules.CleanText(text, maxNameBytes) }
