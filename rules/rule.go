// Package rules defines what an exchange is, what a rule is, and which exchanges a rule matches.
//
// A rule's condition is structured data (a [Scope] and a [Filter], with all of their parts combined
// by AND), never text in a query language. [Compile] turns it into a [Matcher]. Only the Matcher
// decides whether an exchange matches. The query to ClickHouse may be wider than the condition,
// never narrower.
//
// A rule is armed from an instant on. It ignores exchanges that ended before that instant, whatever
// their data.
package rules

import (
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
)

// FireMode says when a rule raises an alert.
type FireMode string

// The fire modes.
const (
	// PerExchange raises one alert for each matching exchange.
	PerExchange FireMode = "PER_EXCHANGE"
	// CountInWindow raises one alert while at least a threshold of exchanges
	// match within a window.
	CountInWindow FireMode = "COUNT_IN_WINDOW"
	// RatioInWindow raises one alert while at least a percentage of the exchanges of
	// the scope match within a window.
	RatioInWindow FireMode = "RATIO_IN_WINDOW"
	// DurationInWindow raises one alert while a percentile of the durations of the matching
	// exchanges within a window is at least a bound.
	DurationInWindow FireMode = "DURATION_IN_WINDOW"
	// AbsentInWindow raises one alert while fewer than a threshold of exchanges match
	// within a window.
	AbsentInWindow FireMode = "ABSENT_IN_WINDOW"
)

// Windowed reports whether rules of the mode use a window.
func (m FireMode) Windowed() bool {
	switch m {
	case CountInWindow, RatioInWindow, DurationInWindow, AbsentInWindow:
		return true
	case PerExchange:
	}
	return false
}

// FireModes returns every fire mode.
func FireModes() []FireMode {
	return []FireMode{PerExchange, CountInWindow, RatioInWindow, DurationInWindow, AbsentInWindow}
}

// Severity says how much an alert matters.
type Severity string

// The severities, most severe first.
const (
	Critical Severity = "CRITICAL"
	Warning  Severity = "WARNING"
	Info     Severity = "INFO"
)

// TargetKind says what a [Target] names.
type TargetKind string

// The kinds of target.
const (
	TargetUser TargetKind = "user"
	TargetTeam TargetKind = "team"
	TargetRole TargetKind = "role"
)

// Target is a user or a team that an alert is for.
type Target struct {
	Kind TargetKind `json:"kind" validate:"oneof=user team role"`
	Name string     `json:"name" validate:"required,max=200,text"`
}

// Definition is everything about a rule that a person writes. The JSON names
// are those of the API; validation reports fields by them.
type Definition struct {
	Name     string   `json:"name" validate:"required,max=200,text"`
	Enabled  bool     `json:"enabled"`
	FireMode FireMode `json:"fireMode" validate:"oneof=PER_EXCHANGE COUNT_IN_WINDOW RATIO_IN_WINDOW DURATION_IN_WINDOW ABSENT_IN_WINDOW"`
	Severity Severity `json:"severity" validate:"oneof=CRITICAL WARNING INFO"`
	Scope    Scope    `json:"scope"`
	Filter   Filter   `json:"filter"`
	// TitleTemplate and MessageTemplate are Mustache templates; empty means the default.
	TitleTemplate   string      `json:"titleTemplate" validate:"max=1000"`
	MessageTemplate string      `json:"messageTemplate" validate:"max=10000"`
	WebhookIDs      []uuid.UUID `json:"webhookIds" validate:"max=20,unique"`
	// UseRoutingPolicy lets the tenant's routing policy decide who is notified; then there are no
	// webhooks.
	UseRoutingPolicy bool     `json:"useRoutingPolicy,omitempty"`
	Targets          []Target `json:"targets" validate:"max=50,dive"`
	// Labels, Owner, RunbookURL and Note are the fields of [About].
	Labels     map[string]string `json:"labels,omitempty" validate:"max=20,dive,keys,label,endkeys,required,max=200,text"`
	Owner      string            `json:"owner,omitempty" validate:"max=200,text"`
	RunbookURL string            `json:"runbookUrl,omitempty" validate:"max=2000,address"`
	Note       string            `json:"note,omitempty" validate:"max=4000,text"`
	// IntervalSeconds is the time from one evaluation to the next.
	IntervalSeconds int `json:"intervalSeconds" validate:"min=1,max=3600"`
	// LookBackSeconds is how far behind the cursor the rule looks for late exchanges.
	LookBackSeconds int `json:"lookBackSeconds" validate:"min=0,max=604800"`

	// The following fields belong to the modes with a window; otherwise all of them are zero.

	WindowSeconds int `json:"windowSeconds" validate:"min=0,max=86400"`
	// Threshold is how many exchanges must match within the window of a CountInWindow rule, and how
	// many are expected in that of an AbsentInWindow rule, 1 to 1,000,000.
	Threshold int `json:"threshold" validate:"min=0,max=1000000"`
	// Percent, ShortWindowSeconds, Percentile, DurationMS and MinVolume are the fields of
	// [Measure].
	Percent            float64 `json:"percent,omitempty" validate:"min=0,max=100"`
	ShortWindowSeconds int     `json:"shortWindowSeconds,omitempty" validate:"min=0,max=86400"`
	Percentile         int     `json:"percentile,omitempty" validate:"omitempty,oneof=50 95 99"`
	DurationMS         int64   `json:"durationMs,omitempty" validate:"min=0,max=9000000000000"`
	MinVolume          int     `json:"minVolume,omitempty" validate:"min=0,max=1000000"`
	// Expected, LearnDays and Calendar are the fields of [Absence].
	Expected  []string  `json:"expected,omitempty" validate:"max=1000,unique,dive,required,max=500,text"`
	LearnDays int       `json:"learnDays,omitempty" validate:"min=0,max=14"`
	Calendar  *Calendar `json:"calendar,omitempty"`
	// GroupBy counts and alerts separately for each value of a field; empty counts all together.
	GroupBy GroupBy `json:"groupBy,omitempty" validate:"omitempty,oneof=ROUTE APPLICATION ENVIRONMENT ERROR_TYPE ATTRIBUTE"`
	// GroupByAttribute is the key of the attribute. It is used only by GroupByAttribute.
	GroupByAttribute string `json:"groupByAttribute,omitempty" validate:"max=200,text"`
	// ForDurationSeconds is how long the threshold must be reached before the
	// alert fires; it is PENDING until then.
	ForDurationSeconds int `json:"forDurationSeconds" validate:"min=0,max=86400"`
	// ReNotifyMinutes is the time between reminders while the alert fires and nobody has
	// acknowledged it; 0 means no reminders.
	ReNotifyMinutes int `json:"reNotifyMinutes" validate:"min=0,max=10080"`

	// NotifyOnResolve sends a message to the webhooks when Tocsin resolves an alert: of a window
	// rule when the value is back, of another rule when its Resolution says so.
	NotifyOnResolve bool `json:"notifyOnResolve"`
	// Resolution belongs to PerExchange rules; nil means that only people resolve alerts.
	Resolution *Resolution `json:"resolution,omitempty"`
}

// Defaults of a definition, for fields that its author did not set.
const (
	DefaultIntervalSeconds = 1
	DefaultLookBackSeconds = 3600
	DefaultTitle           = "{{exchange.application}} · {{exchange.route}}: {{exchange.status}}"
	DefaultMessage         = "{{exchange.errorType}}: {{exchange.errorMessage}}"

	// For a CountInWindow rule, without and with a group.
	DefaultCountTitle      = "{{count.observed}} exchanges within {{count.window}}"
	DefaultCountGroupTitle = "{{count.group}}: {{count.observed}} exchanges within {{count.window}}"
	DefaultCountMessage    = "The threshold of {{count.threshold}} within {{count.window}} was reached. Newest exchange: {{exchange.application}} · {{exchange.route}}: {{exchange.errorMessage}}"

	// For a rule with a ratio, without and with a group. Its message is that of a count.
	DefaultRatioTitle      = "{{count.value}} of {{count.volume}} exchanges match within {{count.window}}"
	DefaultRatioGroupTitle = "{{count.group}}: " + DefaultRatioTitle

	// For a rule on durations.
	DefaultDurationTitle      = "p{{count.percentile}} is {{count.value}} over {{count.volume}} exchanges within {{count.window}}"
	DefaultDurationGroupTitle = "{{count.group}}: " + DefaultDurationTitle
	DefaultDurationMessage    = "The threshold of {{count.threshold}} within {{count.window}} was reached. Newest slow exchange: {{exchange.application}} · {{exchange.route}}: {{exchange.status}} after {{exchange.duration}}"
)

// For a rule on absence, without and with a group.
const (
	DefaultAbsentTitle      = "{{count.observed}} exchanges within {{count.window}}, fewer than {{count.threshold}}"
	DefaultAbsentGroupTitle = "{{count.group}}: " + DefaultAbsentTitle
	DefaultAbsentMessage    = "Expected: at least {{count.threshold}} within {{count.window}}."

	// DefaultAbsentIntervalSeconds is the interval of a rule on absence.
	DefaultAbsentIntervalSeconds = 10
)

// MaxLookBackSeconds is the longest look-back that a rule may have.
const MaxLookBackSeconds = 604_800

// Rule is a stored definition.
type Rule struct {
	Definition

	ID       uuid.UUID
	TenantID string
	// Version counts the edits, from 1. A commit for an older version is stale.
	Version int64
	// ArmedSinceNS is the instant from which the rule alerts, in nanoseconds since the Unix epoch,
	// by Postgres's clock.
	ArmedSinceNS int64
	// Former holds the conditions before the present one, oldest first, at least as far back as the
	// look-back reaches. Only the evaluator reads them.
	Former []Era
	// RetentionFloorNS is the start time before which the rule raises nothing any
	// more, because its alerts of that time may have been deleted. Only the
	// reconciler reads it.
	RetentionFloorNS     int64
	CreatedAt, UpdatedAt time.Time
	// Unreadable says why the stored rule cannot be read. Scope, filter, targets and the rule's own
	// description may then be missing. It is empty for a rule that can be read.
	Unreadable string
}

// Readable returns a fault for a rule that cannot be read, which names the rule and the remedy.
func (r *Rule) Readable() error {
	if r.Unreadable == "" {
		return nil
	}
	return fault.New(fault.Conflict, "the rule %q (%s) cannot be read: %s; save its definition again (it then evaluates only exchanges that end from now on), or delete it", r.Name, r.ID, r.Unreadable)
}

// Era is a condition and the time during which it was in force: it decides about the exchanges that
// ended in that time, whenever they become visible. So an edit neither loses a failure of the
// moment before it nor evaluates the failure again.
type Era struct {
	Scope  Scope  `json:"scope"`
	Filter Filter `json:"filter"`
	// FromNS is inclusive, ToNS exclusive, in nanoseconds since the Unix epoch.
	FromNS int64 `json:"fromNs"`
	ToNS   int64 `json:"toNs"`
}

// Title returns the title template, or the default of the fire mode.
func (d *Definition) Title() string {
	grouped := d.GroupBy != GroupByNothing
	switch {
	case d.TitleTemplate != "":
		return d.TitleTemplate
	case d.FireMode == CountInWindow && grouped:
		return DefaultCountGroupTitle
	case d.FireMode == CountInWindow:
		return DefaultCountTitle
	case d.FireMode == RatioInWindow && grouped:
		return DefaultRatioGroupTitle
	case d.FireMode == RatioInWindow:
		return DefaultRatioTitle
	case d.FireMode == DurationInWindow && grouped:
		return DefaultDurationGroupTitle
	case d.FireMode == DurationInWindow:
		return DefaultDurationTitle
	case d.FireMode == AbsentInWindow && grouped:
		return DefaultAbsentGroupTitle
	case d.FireMode == AbsentInWindow:
		return DefaultAbsentTitle
	default:
		return DefaultTitle
	}
}

// Message returns the message template, or the default of the fire mode.
func (d *Definition) Message() string {
	switch {
	case d.MessageTemplate != "":
		return d.MessageTemplate
	case d.FireMode == PerExchange:
		return DefaultMessage
	case d.FireMode == DurationInWindow:
		return DefaultDurationMessage
	case d.FireMode == AbsentInWindow:
		return DefaultAbsentMessage
	default:
		return DefaultCountMessage
	}
}
