package notify

import (
	"github.com/google/uuid"

	"tocsin/alerts"
)

// SlackApp lets a webhook of [KindSlack] post as a bot instead of to a URL. Its
// messages are changed when their alerts are, and can have buttons.
type SlackApp struct {
	// Channel is a channel's id, or its name behind a "#".
	Channel string
	// BotToken is a secret ("xoxb-…").
	BotToken string
	// SigningSecret proves that a press of a button comes from Slack. It is a
	// secret; empty means that messages have no buttons.
	SigningSecret string
	// Threads has the messages of an issue posted into the thread of its first one, within a day.
	Threads bool
}

// Used reports whether the webhook posts as a bot.
func (a SlackApp) Used() bool { return a.BotToken != "" }

// Posted is where a message stands, by which its receiver changes it.
type Posted struct{ Channel, TS string }

// Message is an accepted message that can be changed later.
type Message struct {
	Posted

	AlertID uuid.UUID
	Reason  Reason
	// Shown is the alert's state that the message shows; empty of a body that an
	// earlier attempt froze, which is then brought in line in any case.
	Shown alerts.State
	// Begins says that the messages of its issue that follow may go into its thread.
	Begins bool
}

// messageOf returns what was posted; nil for what never changes, and where the
// receiver did not say where the message stands.
func messageOf(d *Delivery, o Outcome) *Message {
	if o.Posted == nil || !d.Reason.Changes() {
		return nil
	}
	m := &Message{Posted: *o.Posted, AlertID: d.Alert.ID, Reason: d.Reason, Begins: d.Webhook.Slack.Threads && d.Thread == ""}
	if d.Fresh {
		m.Shown = d.Alert.State
	}
	return m
}

// Reference is by what a receiver knows an alert: an id that it has given to what was opened
// or posted there. It is stored with the outcome, also under a claim that was lost, because
// what the outcome tells of is there; the last one stands.
type Reference struct {
	AlertID uuid.UUID
	// ID is empty where the receiver does not know Gone any more, and the next message opens anew.
	ID, Gone string
	// Thread says that Gone is a thread.
	Thread bool
}

// ReferenceOf returns what an outcome tells of how the receiver knows the alert; nil when nothing.
// What is known stays when something happens to the alert, which may be a message of its own.
func ReferenceOf(d *Delivery, o Outcome) *Reference {
	if o.Reference == nil || d.Reason == ReasonDigest || d.Reason == ReasonUndelivered || *o.Reference != "" && d.Reference != "" && d.Reason.IsEvent() {
		return nil
	}
	r := &Reference{AlertID: d.Alert.ID, ID: *o.Reference}
	if r.ID == "" {
		r.Gone = d.Reference
		if d.Thread != "" {
			r.Gone, r.Thread = d.Thread, true
		}
	}
	return r
}

// Changes reports whether a message of the reason has something to show when
// its alert changes: what tells an end or many alerts does not.
func (r Reason) Changes() bool {
	switch r {
	case ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated, ReasonRuleFailing, ReasonSourceFailing, ReasonWebhookOff, ReasonWebhookFailing:
		return true
	case ReasonResolved, ReasonAcknowledged, ReasonReopened, ReasonRuleRecovered, ReasonSourceRecovered, ReasonUndelivered, ReasonDigest:
	}
	return false
}
