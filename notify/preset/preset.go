// Package preset makes requests for services that have a dialect of their own, such as
// PagerDuty or Teams, and understands their answers.
//
// A preset is data, one YAML file for each receiver: the inputs that a person enters,
// for each event URL, headers and body, what the receiver's fields hold at most, and what
// its answers mean. The files of this package are part of the program; operators add
// their own. Nothing in a preset is code, and the dispatcher knows none of it: a preset
// only renders and judges.
//
// A body is a tree whose texts are Mustache templates ([template.InPreset]); what is
// empty is left out. Eight things go beyond that, each a mapping with a "$" key:
//
//	{$number: TEXT}   a number
//	{$severity: true} the severity in the receiver's own words or numbers
//	{$url: TEXT}      an http or https URL, never escaped or cut; anything else is left out
//	{$html: TEXT}     a text of HTML, whose values are escaped for HTML
//	{$plain: TEXT}    a text in which nothing is escaped
//	{$json: TREE}     a tree as JSON inside of a text
//	{$first: [TREES]} the first that is not empty
//	$needs: [NAMES]   beside other members: without these, the whole mapping is left out
//
// # What is there already
//
// Where a receiver names what a message has opened or posted, capture says where in its answer
// that id is. Later messages about the alert know it as event.reference, and update says
// where they go then, to change what is there; without an id, such as after an answer that
// was lost, they go where others go. A verdict with forget says that it is there no more: the
// next attempt is made without.
//
// # Fitting
//
// A receiver that refuses a long text has lost the alert, so every text is made to fit
// first: values are shortened one and all, then escaped, until the field is within its
// limit in the receiver's own unit (fit.go). No escape is ever cut in half. Then the
// whole body is held against its bound, and the fields named by shrink give way in order.
//
// # Services that take more than requests
//
// protocol: jira has its issues looked for before one is created, and moved on; requests,
// answers and texts are the preset's all the same.
//
// # E-mail
//
// With encoding email a body is a mapping of subject, text and html, and goes to the mail
// server that the inputs name ([Preset.Mail]) instead of a URL.
//
// # Secrets
//
// Inputs are secrets if the preset says so. Bodies are stored, URLs and headers are not:
// a secret input may only be the whole value of a member of a body, which is stored as
// "[redacted]" and filled in when the request is sent ([Preset.Reveal]).
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

// Word returns the event for people.
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

// InputType says what a person can enter.
type InputType string

// The types of inputs.
const (
	InputText   InputType = "text"
	InputURL    InputType = "url"
	InputChoice InputType = "choice"
)

// Input is what a person enters about a receiver.
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
	// Pattern is what a text must match as a whole.
	Pattern string   `yaml:"pattern"`
	Choices []Choice `yaml:"choices"`
	// Default is used in place of an empty text.
	Default string `yaml:"default"`
	// Example is a valid value.
	Example string `yaml:"example"`
}

// Choice is one of several values.
type Choice struct {
	Value string `yaml:"value"`
	Label string `yaml:"label"`
}

// Preset is a receiver. It is safe for concurrent use, and not to be changed.
type Preset struct {
	ID, Name, About, Docs string
	// Own says that an operator has added it.
	Own bool
	// Keyed receivers know alerts by a key, and never get digests.
	Keyed bool
	// Protocol names what is done around the requests; empty is nothing.
	Protocol string
	Inputs   []Input
	// RatePerSecond and DigestAbove are what new webhooks begin with.
	RatePerSecond float64
	DigestAbove   int
	// Schedule is how messages are repeated, and until when, where that differs from other webhooks.
	Schedule notify.Schedule
	// Schema describes the bodies that the receiver takes, as JSON Schema; empty when unknown.
	Schema []byte

	file       string
	encoding   encoding
	escape     escaper
	severity   map[string]any
	requests   map[Event]*request
	limits     []Limit
	totalBytes int
	shrink     []string
	verdicts   []verdict
	retryAfter []retryAfter
	hold       time.Duration
	// capture is where an answer names the receiver's own id of what a message has opened, and
	// update what changes that: the requests of later events, with the same bodies.
	capture string
	update  *request
	// secretAt are the inputs that stand in bodies, by the names that lead there.
	secretAt map[string]string
	// compiled is the schema, read when it is first needed.
	compiled func() (*jsonschema.Schema, error)
}

// ProtocolJira looks for an issue before it creates one, and moves it on.
const ProtocolJira = "jira"

// Completed returns what a person entered, with defaults for what was left empty.
func (p *Preset) Completed(inputs map[string]string) map[string]string { return p.withDefaults(inputs) }

// Sends reports whether the receiver is notified of an event.
func (p *Preset) Sends(e Event) bool { return p.requests[e] != nil }

// Takes returns the events that a webhook of the preset may choose, all of which new
// webhooks begin with where the receiver is keyed.
func (p *Preset) Takes() []notify.Reason {
	var reasons []notify.Reason
	for _, reason := range notify.Events() {
		if p.Sends(EventOf(reason)) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// Limit is what a receiver takes of a field.
type Limit struct {
	// Pointer leads through the body's tree, with * for each element of a list, and into
	// what stands as JSON inside of a text.
	Pointer string
	Max     int
	// Unit is bytes, runes or utf16.
	Unit string
}

// Limits returns the limits of the receiver's fields.
func (p *Preset) Limits() []Limit { return slices.Clone(p.limits) }

// TotalBytes returns the most that a whole body may have; 0 is no bound.
func (p *Preset) TotalBytes() int { return p.totalBytes }

// input returns an input by its name, nil when there is none.
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

// Error says what is wrong with the file of a preset, and where.
type Error struct {
	File string
	Line int
	// Message says what is wrong and what to write instead.
	Message string
}

// Error returns the place and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }
