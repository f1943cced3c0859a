// Package preset makes requests for services with a protocol of their own, such as PagerDuty or
// Teams, and interprets their answers.
//
// A preset is data: one YAML file for each receiver. It contains the inputs that a person enters,
// the URL, headers and body for each event, the limits of the receiver's fields, and the meanings
// of its answers. The files of this package are part of the program; operators add their own. A
// preset contains no code, and the dispatcher does not know about presets: a preset only renders
// and checks.
//
// A body is a tree whose texts are Mustache templates ([template.InPreset]). Empty parts are left
// out. Beyond templates there are eight mappings with a "$" key:
//
//	{$number: TEXT}   a number
//	{$severity: true} the severity in the receiver's own words or numbers
//	{$url: TEXT}      an http or https URL, never escaped or cut; anything else is left out
//	{$html: TEXT}     a text of HTML, whose values are escaped for HTML
//	{$plain: TEXT}    a text in which nothing is escaped
//	{$json: TREE}     a tree as JSON inside of a text
//	{$first: [TREES]} the first that is not empty
//	$needs: [NAMES]   with other members: without these, the whole mapping is left out
//
// # References
//
// If a receiver returns an id of what a message has opened or posted, capture says where the answer
// contains it. Later messages about the alert can use the id as event.reference, and update says
// where they are sent to change what was opened. Without an id, for example after an answer that
// was lost, they are sent like other messages. A verdict with forget says that what was opened does
// not exist any more: the next attempt is made without the id.
//
// # Fitting
//
// If a receiver refuses a text that is too long, the alert is lost. So every text is made to fit
// first: all values are shortened, then escaped, until the field is within its limit in the
// receiver's own unit (fit.go). An escape is never cut. Then the whole body is compared with its
// limit, and the fields listed in shrink are shortened in order.
//
// # Services that need several requests
//
// protocol: jira looks for an issue before it creates one, and moves it through its workflow.
// protocol: alertmanager sends open alerts again when the server has restarted.
// Requests, answers and texts are still those of the preset.
//
// # E-mail
//
// With encoding email a body is a mapping of subject, text and html, and goes to the mail server in
// the inputs ([Preset.Mail]) instead of a URL.
//
// # Secrets
//
// Inputs are secrets if the preset says so. Bodies are stored; URLs and headers are not. So a
// secret input may only be the whole value of a member of a body. It is stored as "[redacted]" and
// filled in when the request is sent ([Preset.Reveal]).
package preset

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tocsin/notify"
)

// Event is what a request is about.
type Event string

// The events.
const (
	Fired        Event = "fired"
	Reminder     Event = "reminder"
	Acknowledged Event = "acknowledged"
	Resolved     Event = "resolved"
	Reopened     Event = "reopened"
	Digest       Event = "digest"
)

// Events returns all events, in the order of an alert's life.
func Events() []Event { return []Event{Fired, Reminder, Acknowledged, Resolved, Reopened, Digest} }

// Word returns the event in words for people.
func (e Event) Word() string {
	switch e {
	case Fired:
		return "Fired"
	case Reminder:
		return "Reminder"
	case Acknowledged:
		return "Acknowledged"
	case Resolved:
		return "Resolved"
	case Reopened:
		return "Reopened"
	case Digest:
		return "Digest"
	}
	return string(e)
}

// EventOf returns the event for the reason of a message.
func EventOf(reason notify.Reason) Event {
	switch reason {
	case notify.ReasonFired, notify.ReasonEscalated, notify.ReasonRuleFailing, notify.ReasonSourceFailing, notify.ReasonWebhookOff,
		notify.ReasonWebhookFailing, notify.ReasonUndelivered:
		return Fired
	case notify.ReasonReminder, notify.ReasonSnoozeEnded:
		return Reminder
	case notify.ReasonAcknowledged:
		return Acknowledged
	case notify.ReasonResolved, notify.ReasonRuleRecovered, notify.ReasonSourceRecovered:
		return Resolved
	case notify.ReasonReopened:
		return Reopened
	case notify.ReasonDigest:
		return Digest
	}
	return Fired
}

// EventOf returns the event of a delivery. At Jira an escalation is a comment on the issue if the
// issue is known when the body is made; this does not change later.
func (p *Preset) EventOf(d *notify.Delivery) Event {
	event := EventOf(d.Reason)
	if p.Protocol != ProtocolJira || d.Reason != notify.ReasonEscalated || !p.Sends(Reminder) {
		return event
	}
	comments := d.Reference != ""
	if d.Body != nil {
		var body struct{ Fields json.RawMessage }
		comments = json.Unmarshal(d.Body.Content, &body) == nil && body.Fields == nil
	}
	if comments {
		return Reminder
	}
	return event
}

// InputType says what kind of value an input takes.
type InputType string

// The types of inputs.
const (
	InputText   InputType = "text"
	InputURL    InputType = "url"
	InputChoice InputType = "choice"
)

// Input is a value that a person enters about a receiver.
type Input struct {
	Name  string `yaml:"name"`
	Label string `yaml:"label"`
	// Help says what the input is and where to find it. Link is the address of that place: a URL with https, or
	// "{{input.NAME}}/PATH", a page of the server that another input names.
	Help string    `yaml:"help"`
	Link string    `yaml:"link"`
	Type InputType `yaml:"type"`
	// Secret inputs are never shown again.
	Secret bool `yaml:"secret"`
	// Optional inputs may be left empty.
	Optional bool `yaml:"optional"`
	// Pattern is a regular expression that the whole text must match.
	Pattern string   `yaml:"pattern"`
	Choices []Choice `yaml:"choices"`
	// Default replaces an empty text.
	Default string `yaml:"default"`
	// Example is a valid value.
	Example string `yaml:"example"`
}

// Choice is one of several values.
type Choice struct {
	Value string `yaml:"value"`
	Label string `yaml:"label"`
}

// Preset is a receiver. It is safe for concurrent use, and must not be changed.
type Preset struct {
	ID, Name, About, Docs string
	// Own says that an operator has added the preset.
	Own bool
	// Keyed receivers identify alerts by a key, and never get digests.
	Keyed bool
	// Protocol names a protocol with several requests; empty means none.
	Protocol string
	Inputs   []Input
	// RatePerSecond and DigestAbove are the defaults of new webhooks.
	RatePerSecond float64
	DigestAbove   int
	// Schedule says when messages are repeated, and until when, if that differs from other
	// webhooks.
	Schedule notify.Schedule
	// Schema describes the bodies that the receiver accepts, as JSON Schema; empty if unknown.
	Schema []byte

	file     string
	encoding encoding
	escape   escaper
	// plainURLs says that escape does not apply to URLs.
	plainURLs  bool
	severity   map[string]any
	requests   map[Event]*request
	limits     []Limit
	totalBytes int
	shrink     []string
	verdicts   []verdict
	retryAfter []retryAfter
	hold       time.Duration
	// capture is where an answer contains the receiver's own id of what a message opened. update
	// has the requests of later events that change it, with the same bodies.
	capture string
	update  *request
	// secretAt are the inputs in bodies, by their pointers.
	secretAt map[string]string
	// compiled returns the schema, which is parsed when it is first needed.
	compiled func() (*jsonschema.Schema, error)
}

// The protocols. ProtocolJira looks for an issue before it creates one, and moves it on.
// ProtocolAlertmanager asks the server when its process began, and sends open alerts again after a
// restart.
const (
	ProtocolJira         = "jira"
	ProtocolAlertmanager = "alertmanager"
)

// AlertmanagerPath is the path of Alertmanager's API to which alerts are sent, and
// AlertmanagerStatus the one where it describes itself.
const (
	AlertmanagerPath   = "/api/v2/alerts"
	AlertmanagerStatus = "/api/v2/status"
)

// Completed returns the inputs with defaults for empty ones.
func (p *Preset) Completed(inputs map[string]string) map[string]string { return p.withDefaults(inputs) }

// Sends reports whether the receiver is notified of an event.
func (p *Preset) Sends(e Event) bool { return p.requests[e] != nil }

// Takes returns the events that a webhook of the preset may choose. If the receiver is keyed, new
// webhooks begin with all of them.
func (p *Preset) Takes() []notify.Reason {
	var reasons []notify.Reason
	for _, reason := range notify.Events() {
		if p.Sends(EventOf(reason)) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// Limit is the limit of a field.
type Limit struct {
	// Pointer points into the body's tree, with * for each element of a list. It also leads into
	// JSON inside of a text.
	Pointer string
	Max     int
	// Unit is bytes, runes or utf16.
	Unit string
}

// Limits returns the limits of the receiver's fields.
func (p *Preset) Limits() []Limit { return slices.Clone(p.limits) }

// TotalBytes returns the largest size of a whole body; 0 means no limit.
func (p *Preset) TotalBytes() int { return p.totalBytes }

// input returns an input by its name; nil if there is none.
func (p *Preset) input(name string) *Input {
	for i := range p.Inputs {
		if p.Inputs[i].Name == name {
			return &p.Inputs[i]
		}
	}
	return nil
}

// Secrets returns the values that must not be shown.
func (p *Preset) Secrets(inputs map[string]string) []string {
	var secrets []string
	for i := range p.Inputs {
		if value := inputs[p.Inputs[i].Name]; p.Inputs[i].Secret && value != "" {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// Examples returns a valid value for each input.
func (p *Preset) Examples() map[string]string {
	inputs := map[string]string{}
	for i := range p.Inputs {
		inputs[p.Inputs[i].Name] = p.Inputs[i].Example
	}
	return inputs
}

// Error is an error in the file of a preset, with its place.
type Error struct {
	File string
	Line int
	// Message says what is wrong and what to write instead.
	Message string
}

// Error returns the place and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }
