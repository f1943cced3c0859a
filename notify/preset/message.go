package preset

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/template"
	"tocsin/rules"
)

// Message is the content of a request.
type Message struct {
	Event Event
	// Word is the event in words for people; empty means [Event.Word].
	Word     string
	Severity string
	// Values are those of the alert; [Preset.Body] adds the inputs.
	Values *template.Values
	// Request is what a preset knows in addition, without inputs.
	Request template.Request
}

// Key is the key by which a receiver knows the subject of a delivery: the id of the alert. For a
// message without an alert that could end, it is the id of the message.
func Key(d *notify.Delivery) string {
	if d.Reason == notify.ReasonDigest || d.Reason == notify.ReasonUndelivered {
		return d.NotificationID.String()
	}
	return d.Alert.ID.String()
}

// undeliveredFor is how long receivers with an end time show that a message was not delivered.
const undeliveredFor = 24 * time.Hour

// untilEnded is the end time of what ends with a message.
func untilEnded() time.Time { return time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC) }

// MessageOf returns the content of a delivery. url is where people see it, or empty. A digest is
// sent as one alert that sums up many.
func MessageOf(d *notify.Delivery, url string) *Message {
	a := d.Alert
	if d.Digest != nil {
		a = summed(d.Digest)
	}
	if a.Health && a.Count == nil {
		// The alert is not about an exchange, and the variables of an exchange are empty.
		a.Count = &alerts.Count{}
	}
	if strings.TrimSpace(clean(a.Title)) == "" {
		// No receiver accepts a message without a title.
		a.Title = "Alert " + Key(d)
	}
	m := &Message{
		Event: EventOf(d.Reason), Severity: string(a.Severity), Values: template.ForReason(&a, d.Reason, url),
		Request: template.Request{Key: Key(d), Reference: d.Reference, At: a.FiredAt, Until: untilEnded()},
	}
	if d.Reason == notify.ReasonEscalated {
		m.Word = "Escalated"
	}
	if d.Reason == notify.ReasonUndelivered {
		// No other message reports what becomes of that message.
		m.Request.Until = cmp.Or(d.At, a.FiredAt).Add(undeliveredFor)
	}
	switch {
	case d.Event != nil:
		m.Request.By, m.Request.At = d.Event.By, d.Event.At
	case (d.Reason == notify.ReasonReminder || d.Reason == notify.ReasonSnoozeEnded || d.Reason == notify.ReasonEscalated) && !d.At.IsZero():
		m.Request.At = d.At
	case m.Event == Resolved && a.ResolvedAt != nil:
		m.Request.By, m.Request.At = a.ResolvedBy, *a.ResolvedAt
	}
	return m
}

// summed returns an alert with the content of a digest.
func summed(g *notify.Digest) alerts.Instance {
	a := alerts.Instance{
		Title: fmt.Sprintf("%d notifications in one message, from %s to %s UTC", g.Size, g.FirstFiredAt.UTC().Format(time.DateTime), g.LastFiredAt.UTC().Format(time.TimeOnly)),
		// The alert is not about an exchange.
		Severity: rules.Info, State: alerts.Firing, FiredAt: g.LastFiredAt, Health: true, Count: &alerts.Count{Observed: int64(g.Size)},
	}
	if s := g.Silence; s != nil {
		a.Title = fmt.Sprintf("%d notifications suppressed by silence %s, from %s to %s UTC", g.Size, rules.CleanText(s.Name, maxNameBytes),
			s.From.UTC().Format(time.DateTime), s.Until.UTC().Format(time.DateTime))
		a.FiredAt = s.Until
	}
	var lines []string
	part := func(what string, named, all int, line func(int) string) {
		if named == 0 {
			return
		}
		lines = append(lines, what+":")
		for i := range named {
			lines = append(lines, "- "+line(i))
		}
		if all > named {
			lines = append(lines, fmt.Sprintf("- and %d more", all-named))
		}
	}
	part("Rules", len(g.Rules), g.AllRules, func(i int) string {
		return fmt.Sprintf("%d × %s (%s)", g.Rules[i].Count, rules.CleanText(g.Rules[i].Name, maxNameBytes), g.Rules[i].Severity)
	})
	part("Routes", len(g.Places), g.AllPlaces, func(i int) string {
		return fmt.Sprintf("%d × %s", g.Places[i].Count, rules.CleanText(strings.Trim(g.Places[i].Application+" · "+g.Places[i].Route, " ·"), maxNameBytes))
	})
	part("Errors", len(g.Errors), g.AllErrors, func(i int) string {
		return fmt.Sprintf("%d × %s", g.Errors[i].Count, rules.CleanText(strings.Trim(g.Errors[i].Type+": "+g.Errors[i].Message, ": \n"), maxNameBytes))
	})
	a.Message = strings.Join(lines, "\n")
	if len(g.Rules) > 0 {
		// The rules are ordered by severity.
		a.Severity = g.Rules[0].Severity
		a.RuleName = g.Rules[0].Name
	}
	if g.AllRules > 1 {
		a.RuleName = fmt.Sprintf("%d rules", g.AllRules)
	}
	return a
}

const maxNameBytes = 300
