package preset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/template"
	"tocsin/rules"
)

// Report is the result of trying a preset with samples.
type Report struct {
	// Problems are errors that make the preset unusable.
	Problems []string
	// Cuts are the texts that would be shortened with the longest samples, one for each field.
	Cuts []string
}

// Check renders all events with the worst samples of exchanges.
func (p *Preset) Check() Report { return p.check(samples{}) }

// samples are messages about the worst samples of exchanges, by event, of the events that were asked for. They are large and
// take long to make: a caller that tries several presets makes them once, and does not keep them.
type samples map[Event][]*Message

func (s samples) of(event Event) []*Message {
	if s[event] == nil {
		for _, sample := range template.Samples() {
			s[event] = append(s[event], Sample(event, &sample))
		}
	}
	return s[event]
}

func (p *Preset) check(messages samples) Report {
	var report Report
	seen := map[string]bool{}
	problem := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(report.Problems, text) {
			report.Problems = append(report.Problems, text)
		}
	}
	inputs := p.Examples()
	for _, event := range Events() {
		if !p.Sends(event) {
			continue
		}
		if _, err := p.Target(event, About{Key: uuid.Nil.String(), Reference: sampleReference}, inputs); err != nil {
			problem("%s: %v", event, err)
		}
		for _, message := range messages.of(event) {
			body, cuts, err := p.Body(message, inputs)
			if err != nil {
				problem("%s: %v", event, err)
			}
			if err := p.Valid(body.Content); err != nil {
				problem("%s: the body does not match the receiver's schema: %v", event, err)
			}
			for _, cut := range cuts {
				if key := string(event) + cut.Pointer; !seen[key] {
					seen[key] = true
					report.Cuts = append(report.Cuts, fmt.Sprintf("%s: %s", event, cut))
				}
			}
		}
	}
	return report
}

// Sample returns a message about an alert. If the event is an action, a person has taken it.
func Sample(event Event, a *alerts.Instance) *Message {
	d := SampleDelivery(event, a)
	return MessageOf(&d, "https://tocsin.example.com/inbox/"+a.ID.String())
}

// SampleDelivery returns a delivery about an alert. If the event is an action, a person has taken
// it.
func SampleDelivery(event Event, a *alerts.Instance) notify.Delivery {
	d := notify.Delivery{NotificationID: uuid.UUID{6: 0x70, 8: 0x80, 15: 1}, Alert: *a, Reason: notify.ReasonFired}
	switch event {
	case Fired:
	case Reminder:
		d.Reason = notify.ReasonReminder
	case Acknowledged:
		d.Reason = notify.ReasonAcknowledged
	case Resolved:
		d.Reason = notify.ReasonResolved
	case Reopened:
		d.Reason = notify.ReasonReopened
	case Digest:
		d.Reason, d.Digest = notify.ReasonDigest, sampleDigest(a)
	}
	if d.Reason.IsEvent() {
		d.Event = &notify.Event{At: a.FiredAt.Add(90 * time.Second), By: "Kim Berg"}
		d.Alert = d.Event.Tell(d.Reason, d.Alert)
	}
	return d
}

// sampleDigest returns a digest of alerts similar to one alert.
func sampleDigest(a *alerts.Instance) *notify.Digest {
	const size = 214
	g := &notify.Digest{
		Size: size, Reasons: map[notify.Reason]int{notify.ReasonFired: size}, AllRules: 2, AllPlaces: notify.DigestTop + 1, AllErrors: 1,
		Rules:        []notify.DigestRule{{Name: a.RuleName, Severity: a.Severity, Count: size - 1}, {Name: "Slow orders", Severity: rules.Info, Count: 1}},
		Errors:       []notify.DigestError{{Type: a.Exchange.ErrorType, Message: a.Exchange.ErrorMessage, Count: size}},
		FirstFiredAt: a.FiredAt, LastFiredAt: a.FiredAt.Add(time.Minute), First: a, Last: a,
	}
	for i := range notify.DigestTop {
		g.Places = append(g.Places, notify.DigestPlace{Application: a.Exchange.Application, Route: a.Exchange.Route, Count: size / (i + 1)})
	}
	return g
}

// Describe describes what a preset sends, in one line.
func (p *Preset) Describe() string {
	var sent []string
	for _, event := range Events() {
		if p.Sends(event) {
			sent = append(sent, string(event))
		}
	}
	return strings.Join(sent, ", ")
}
