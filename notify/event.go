package notify

import (
	"time"

	"tocsin/alerts"
)

// Bounds of [Webhook.EventMaxAge].
const (
	DefaultEventMaxAge = 24 * time.Hour
	MinEventMaxAge     = time.Minute
	MaxEventMaxAge     = 30 * 24 * time.Hour
)

// DiscardedByTocsin is who discards what is of no use to its receiver any more: events that are too old, and
// escalations of alerts that somebody looks after.
const DiscardedByTocsin = "Tocsin"

// Events returns what happens to alerts and a webhook may choose to be notified of. A
// message about an event is written in the transaction of the change, for each webhook that
// was notified when the alert was raised.
//
// That an alert fires or escalates is no choice of the webhook: the rule, the route or the step that names the
// webhook decides, and each of them promises one message. A webhook that could decline would turn a step into one
// that notifies nobody, and the place where that is decided would be none of those where people look for it.
func Events() []Reason { return []Reason{ReasonAcknowledged, ReasonResolved, ReasonReopened} }

// IsEvent reports whether a message is about what happened to an alert after it was raised.
func (r Reason) IsEvent() bool {
	switch r {
	case ReasonAcknowledged, ReasonResolved, ReasonReopened:
		return true
	case ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated, ReasonRuleFailing, ReasonRuleRecovered, ReasonSourceFailing, ReasonSourceRecovered,
		ReasonWebhookOff, ReasonWebhookFailing, ReasonUndelivered, ReasonDigest:
	}
	return false
}

// Event is when something happened to an alert, and who did it; empty is Tocsin.
type Event struct {
	At time.Time
	By string
}

// Tell returns the alert as the event left it, whatever has become of it since: messages
// arrive later than what they tell.
func (e Event) Tell(reason Reason, a alerts.Instance) alerts.Instance {
	switch reason {
	case ReasonAcknowledged:
		a.State, a.AcknowledgedAt, a.AcknowledgedBy = alerts.Acknowledged, e.at(a.AcknowledgedAt), e.By
		a.ResolvedAt, a.ResolvedBy = nil, ""
	case ReasonResolved:
		a.State, a.ResolvedAt, a.ResolvedBy = alerts.Resolved, e.at(a.ResolvedAt), e.By
	case ReasonReopened:
		a.State, a.ResolvedAt, a.ResolvedBy = alerts.Firing, nil, ""
		if a.AcknowledgedAt != nil && a.AcknowledgedAt.Before(e.At) {
			a.State = alerts.Acknowledged
		}
	case ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated, ReasonRuleFailing, ReasonRuleRecovered, ReasonSourceFailing, ReasonSourceRecovered,
		ReasonWebhookOff, ReasonWebhookFailing, ReasonUndelivered, ReasonDigest:
	}
	return a
}

// at returns the instant that the alert has, unless that is of a later event.
func (e Event) at(stored *time.Time) *time.Time {
	if stored != nil && !stored.After(e.At) {
		return stored
	}
	return &e.At
}
