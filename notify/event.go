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

// ByTocsin is the name under which Tocsin itself discards messages that are of no use to their
// receivers any more (events that are too old, and escalations of alerts that somebody looks after),
// and sends messages again that their receivers have forgotten.
const ByTocsin = "Tocsin"

// Events returns what happens to alerts and a webhook may choose to be notified of. A
// message about an event is written in the transaction of the change, for each webhook that
// was notified of the alert.
//
// That an alert fires or escalates is no choice of the webhook: the rule, the route or the step that names the
// webhook decides, and each of them promises one message. A webhook that could decline would turn a step into one
// that notifies nobody, and the place where that is decided would be none of those where people look for it.
func Events() []Reason { return []Reason{ReasonAcknowledged, ReasonResolved, ReasonReopened} }

// OpeningReasons returns the reasons of messages that say that an alert is open.
func OpeningReasons() []Reason {
	return []Reason{
		ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated, ReasonReopened,
		ReasonRuleFailing, ReasonSourceFailing, ReasonWebhookOff, ReasonWebhookFailing,
	}
}

// ClosingReasons returns the reasons of messages that say that an alert is not open any more.
func ClosingReasons() []Reason {
	return []Reason{ReasonResolved, ReasonRuleRecovered, ReasonSourceRecovered}
}

// IsEvent reports whether a message is about an event of an alert after it was raised.
func (r Reason) IsEvent() bool {
	switch r {
	case ReasonAcknowledged, ReasonResolved, ReasonReopened:
		return true
	case ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated, ReasonRuleFailing, ReasonRuleRecovered, ReasonSourceFailing, ReasonSourceRecovered,
		ReasonWebhookOff, ReasonWebhookFailing, ReasonUndelivered, ReasonDigest:
	}
	return false
}

// Event is an event of an alert: when it happened, and who did it; empty means Tocsin.
type Event struct {
	At time.Time
	By string
}

// Tell returns the alert in its state right after the event, because messages arrive later than
// their events.
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

// at returns the stored instant, unless it belongs to a later event.
func (e Event) at(stored *time.Time) *time.Time {
	if stored != nil && !stored.After(e.At) {
		return stored
	}
	return &e.At
}
