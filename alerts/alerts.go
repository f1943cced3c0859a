// Package alerts holds alerts, and what people do about them.
//
// An alert instance is raised once, for one exchange, by one rule. A unique constraint of the
// database ensures this. A PER_EXCHANGE alert stays FIRING until a person acts, unless its rule
// says that age or evidence resolves it ([rules.Resolution]):
//
//	FIRING ──acknowledge──▶ ACKNOWLEDGED ──resolve, age, evidence──▶ RESOLVED
//	   └──────────────resolve, age, evidence───────────────────────────▲
//
// However the alert was resolved, the next exchange that fails raises a new alert.
//
// The alert of a window rule is about a group of exchanges. It opens when the threshold is reached
// (for an absence: when the number is below it), and closes when this is no longer so. Each rule
// and group has at most one open alert. [Window.Next] decides:
//
//	PENDING ──for duration──▶ FIRING ──acknowledge──▶ ACKNOWLEDGED
//	   └─below─▶ (gone)          ├───────below───────────────┴──▶ RESOLVED
//	                             └──────resolve──▶ RESOLVED, held ──below──▶ RESOLVED
//
// An alert that a person resolves is held: its group raises no other alert until the value has been
// below the threshold once, until the time that the person chose is over, or until the rule is
// armed again. So a person who resolves an alert about a continuing problem is not disturbed again.
//
// An edit of the condition arms the rule again, and counting begins with the edit. Open alerts stay
// until the new condition has been below the threshold for a whole window. If the rule then groups
// by something else, or does not count any more, the edit resolves them, because nothing can show
// any more whether their groups are below the threshold.
//
// An alert about the health of a rule fires when the rule cannot be evaluated, and resolves when it
// can again. An alert about a webhook fires when the webhook is disabled, and resolves when a
// person enables it.
//
// An action that leads to the state that the alert already has changes nothing and succeeds. So if
// two people press the same button, both see that it is done.
package alerts

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/rules"
)

// State is the state of an alert.
type State string

// The states.
const (
	// Pending means that the threshold is reached, but not for long enough to fire.
	Pending      State = "PENDING"
	Firing       State = "FIRING"
	Acknowledged State = "ACKNOWLEDGED"
	Resolved     State = "RESOLVED"
)

// States returns every state, in the order in which an alert has them.
func States() []State { return []State{Pending, Firing, Acknowledged, Resolved} }

// Action is what a person does about an alert.
type Action string

// The actions.
const (
	Acknowledge Action = "acknowledge"
	Resolve     Action = "resolve"
)

// Instance is an alert: what a rule raised for an exchange, or for a count.
type Instance struct {
	ID          uuid.UUID
	TenantID    string
	RuleID      uuid.UUID
	RuleVersion int64
	// RuleName is the rule's present name; it is read, never stored with the alert.
	RuleName string
	// About is the rule's present description; it is also only read.
	About    rules.About
	Severity rules.Severity
	State    State
	Title    string
	Message  string
	// Exchange is the cleaned exchange. Its execution id is the key under which the alert is unique
	// for its rule. For a count, it is the newest exchange that matched.
	Exchange rules.Exchange
	// Signature is common to the alerts of an issue, besides application and route. It is set only
	// if a single alert is read and the alert is about one exchange; otherwise it is nil.
	Signature *string
	// Count is what a window rule counted or measured; nil for other rules.
	Count *Count
	// Health says that the alert is about Tocsin itself; then there is no exchange. It is about its
	// rule, which cannot be evaluated, and resolves when the rule recovers; or it is about
	// WebhookID.
	Health bool
	// WebhookID is the webhook that was disabled because its receiver is gone or no longer accepts
	// its messages; [uuid.Nil] in other alerts. The alert's rule is the rule of the message that found this. The alert resolves
	// when a person enables the webhook.
	WebhookID uuid.UUID
	// Routing is how the routing policy decided who is notified. It is nil if the rule names
	// webhooks itself, and while the alert is PENDING.
	Routing *Routing
	// Late says that the exchange became visible behind the rule's cursor, and that the look-back
	// found it.
	Late bool
	// LateBy is the time from the end of the exchange (its start, if the source has no end) to
	// FiredAt. It is never negative. It includes the delay of the source, the settle time, the
	// interval of the rule, and any downtime. It is nil if the alert is not about one exchange, or
	// is older than this field.
	LateBy *time.Duration
	// FiredAt is the instant of the commit, by Postgres's clock.
	FiredAt                    time.Time
	AcknowledgedAt, ResolvedAt *time.Time
	AcknowledgedBy, ResolvedBy string
	// Assignee is who handles the alert; empty means nobody. It is set in lists of alerts, and if a
	// single alert is read.
	Assignee, AssignedBy string
	AssignedAt           *time.Time
	// SnoozedUntil is when somebody wants to be reminded of the alert, SnoozedAt when they said so.
	// Both are nil if nobody does, if the time is over, or if the alert is resolved. They are set in
	// the same cases as Assignee.
	SnoozedUntil, SnoozedAt *time.Time
	SnoozedBy               string
	// HeldUntil is until when nothing is raised for the group of a window alert, as chosen by the
	// person who resolved it; nil if nobody chose a time. Lists leave it out.
	HeldUntil *time.Time
	// Resolution is why Tocsin resolved the alert, if the reason is not the value of a window rule;
	// otherwise nil. Lists leave it out.
	Resolution *Resolution
}

// ResolutionReason is the kind of reason for which Tocsin resolved an alert.
type ResolutionReason string

// The reasons.
const (
	ByAge      ResolutionReason = "AGE"
	ByEvidence ResolutionReason = "EVIDENCE"
	// ByEdit means that a window rule was given another grouping, or does not count any more.
	ByEdit ResolutionReason = "EDIT"
)

// Resolution is why Tocsin resolved an alert.
type Resolution struct {
	Reason ResolutionReason `json:"reason"`
	// ExecutionID and StartTimeNS belong to the exchange that is the evidence. The id is its key,
	// as in an alert's exchange.
	ExecutionID string `json:"executionId,omitempty"`
	StartTimeNS *int64 `json:"startTimeNs,omitempty"`
}

// After returns the state to which an action leads from s. Its error is a
// conflict that says why the action is not possible.
func (s State) After(a Action) (State, error) {
	if s == Pending {
		return s, fault.New(fault.Conflict, "the alert is not firing yet; acknowledge or resolve it when it is")
	}
	switch a {
	case Acknowledge:
		if s == Resolved {
			return s, fault.New(fault.Conflict, "the alert is resolved; a resolved alert cannot be acknowledged")
		}
		return Acknowledged, nil
	case Resolve:
		return Resolved, nil
	}
	return s, fmt.Errorf("alert: unknown action %q", a)
}

// FireMode returns the fire mode of the rule that raised the alert, as far as the alert shows it.
func (a *Instance) FireMode() rules.FireMode {
	if a.Count == nil {
		return rules.PerExchange
	}
	return cmp.Or(a.Count.Mode, rules.CountInWindow)
}

// Count is the count or measurement when an alert last changed.
type Count struct {
	// Mode is the fire mode; absent means COUNT_IN_WINDOW.
	Mode rules.FireMode `json:"mode,omitempty"`
	// Observed is the number of exchanges that matched. For durations, it is the number of
	// exchanges that lasted at least as long as the rule's bound.
	Observed int64 `json:"observed"`
	// Threshold is the number that a count must reach, or that an absence is below; 0 in other
	// modes.
	Threshold     int `json:"threshold"`
	WindowSeconds int `json:"windowSeconds"`
	// Measure is what the other modes compare with.
	rules.Measure

	// Volume is how many exchanges Observed is compared with; 0 for counts. ShortObserved and
	// ShortVolume are the same for the short window.
	Volume        int64 `json:"volume,omitempty"`
	ShortObserved int64 `json:"shortObserved,omitempty"`
	ShortVolume   int64 `json:"shortVolume,omitempty"`
	// DurationNS is the percentile of the durations.
	DurationNS int64 `json:"durationNs,omitempty"`
	// ToNS is the end of the window, exclusive, in nanoseconds since the Unix epoch. It is 0 in
	// alerts that are older than this field.
	ToNS int64 `json:"toNs,omitempty"`
	// Fired is set if Tocsin resolved the alert because of its value: then it is the count at the
	// last notification. Otherwise it is nil.
	Fired *Count `json:"fired,omitempty"`

	GroupBy rules.GroupBy `json:"groupBy,omitempty"`
	// GroupByAttribute is the key of the attribute that exchanges are grouped by.
	GroupByAttribute string `json:"groupByAttribute,omitempty"`
	// Group is the value of the field that GroupBy names, as clean text.
	Group string `json:"group,omitempty"`
}

// CountOf returns an empty count, with the thresholds of a rule.
func CountOf(d *rules.Definition) Count {
	c := Count{Threshold: d.Threshold, WindowSeconds: d.WindowSeconds, Measure: d.Measure(), GroupBy: d.GroupBy, GroupByAttribute: d.GroupByAttribute}
	if d.FireMode != rules.CountInWindow {
		c.Mode = d.FireMode
	}
	return c
}

// Grouping returns how exchanges were counted.
func (c *Count) Grouping() rules.Grouping {
	return rules.Grouping{By: c.GroupBy, Attribute: c.GroupByAttribute}
}

// Measured reports whether the compared value is something other than a number of exchanges.
func (c *Count) Measured() bool {
	return c.Mode == rules.RatioInWindow || c.Mode == rules.DurationInWindow
}

// Value returns the compared value: exchanges, a ratio in percent, or milliseconds.
func (c *Count) Value() float64 {
	switch c.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return ratio(c.Observed, c.Volume)
	case rules.DurationInWindow:
		return float64(c.DurationNS) / 1e6
	default:
		return float64(c.Observed)
	}
}

// ShortValue returns the ratio in the short window.
func (c *Count) ShortValue() float64 { return ratio(c.ShortObserved, c.ShortVolume) }

// Bound returns the value's threshold, in the same unit.
func (c *Count) Bound() float64 {
	switch c.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return c.Percent
	case rules.DurationInWindow:
		return float64(c.DurationMS)
	default:
		return float64(c.Threshold)
	}
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Counts is the number of alerts of a tenant in each state.
type Counts struct {
	Pending, Firing, Acknowledged, Resolved int64
}
