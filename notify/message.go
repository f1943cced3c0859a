package notify

import (
	"github.com/google/uuid"

	"tocsin/alerts"
)

// SlackApp lets a webhook of [KindSlack] post as a bot instead of to a URL. Its messages are
// updated when their alerts change, and can have buttons.
type SlackApp struct {
	// Channel is the id of a channel, or its name after a "#".
	Channel string
	// BotToken is a secret ("xoxb-…").
	BotToken string
	// SigningSecret proves that a button press comes from Slack. It is a secret; if it is empty,
	// messages have no buttons.
	SigningSecret string
	// Threads posts the messages of an issue into the thread of its first message, within a day.
	Threads bool
}

// Used reports whether the webhook posts as a bot.
func (a SlackApp) Used() bool { return a.BotToken != "" }

// Posted is the place of a message, by which its receiver can change it.
type Posted struct{ Channel, TS string }

// Message is an accepted message that can be changed later.
type Message struct {
	Posted

	AlertID uuid.UUID
	Reason  Reason
	// Shown is the state of the alert that the message shows. It is empty for a body that an
	// earlier attempt froze; such a message is always updated.
	Shown alerts.State
	// Begins says that later messages of its issue may go into its thread.
	Begins bool
}

// MessageOf returns the posted message; nil for a message that never changes, and if the receiver
// did not return its place.
func MessageOf(d *Delivery, o Outcome) *Message {
	if o.Posted == nil || !d.Reason.Changes() {
		return nil
	}
	m := &Message{Posted: *o.Posted, AlertID: d.Alert.ID, Reason: d.Reason, Begins: d.Webhook.Slack.Threads && d.Thread == ""}
	if d.Fresh {
		m.Shown = d.Alert.State
	}
	return m
}

// Reference is the receiver's name for an alert: an id of what was opened or posted there. It is
// stored with the outcome, even under a lost claim, because what was opened exists. A later
// reference replaces it.
type Reference struct {
	AlertID uuid.UUID
	// ID is empty if the receiver does not know Gone any more. Then the next message opens
	// something new.
	ID, Gone string
	// Thread says that Gone is a thread.
	Thread bool
}

// ReferenceOf returns the reference in an outcome; nil if there is none. A known reference is kept
// when something happens to the alert, because that may be a message of its own.
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

// Changes reports whether messages of the reason are updated when the alert changes. Messages about
// an end or about many alerts are not.
func (r Reason) Changes() bool {
	switch r {
	case ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated, ReasonRuleFailing, ReasonSourceFailing, ReasonWebhookOff, ReasonWebhookFailing:
		return true
	case ReasonResolved, ReasonAcknowledged, ReasonReopened, ReasonRuleRecovered, ReasonSourceRecovered, ReasonUndelivered, ReasonDigest:
	}
	return false
}
