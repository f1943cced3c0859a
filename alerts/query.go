package alerts

import (
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// Query selects alerts for the inbox, newest first.
type Query struct {
	Filter

	// Before continues a listing after its last alert; nil starts a listing.
	Before *Mark
	// Limit is the number of alerts wanted, 1 to 200.
	Limit int
}

// Page is a page of the inbox.
type Page struct {
	// Alerts are newest first.
	Alerts []Instance
	// Next is where the listing continues; nil at the end. A search for a text reads a bounded
	// number of alerts at a time, so a page may be short or empty although more follow.
	Next *Mark
}

// Filter restricts alerts. Its parts are combined by AND, and the entries of one part by OR. An
// empty part means no restriction.
type Filter struct {
	// IDs are the ids of alerts.
	IDs        []uuid.UUID
	States     []State
	Severities []rules.Severity
	Rules      []uuid.UUID
	// Applications and Routes are compared for equality.
	Applications []string
	Routes       []string
	Environments []string
	// ExecutionID and CorrelationID are those of exchanges; empty means no restriction.
	ExecutionID   string
	CorrelationID string
	// Attributes must all be present with these values; nil means no restriction.
	Attributes map[string]string
	// Signatures are results of [Signature].
	Signatures []string
	// PerExchange restricts to alerts about one exchange each, of which issues consist.
	PerExchange bool
	// Text is searched for in title and message, ignoring case.
	Text string
	// MineOf restricts to rules with one of these targets, to rules that the teams among them own,
	// and to alerts assigned to the users among them. Nil means no restriction; an empty list
	// matches nothing.
	MineOf []rules.Target
	// Assignees selects alerts by assignee; an empty string means nobody.
	Assignees []string
	// Snoozed restricts to alerts that are snoozed, or are not; nil means no restriction.
	Snoozed *bool
	// UnreadBy restricts to alerts that a person has not read.
	UnreadBy string
	// From restricts to alerts that fired at or after it; nil means no restriction.
	From *time.Time
	// UpTo restricts to alerts that fired at or before it; nil means no restriction.
	UpTo *time.Time
}

// Mark is the place of an alert in the inbox's order.
type Mark struct {
	FiredAt time.Time
	ID      uuid.UUID
}

// Fold is the property by which alerts are grouped in the inbox.
type Fold string

// The folds.
const (
	ByRule      Fold = "rule"
	BySignature Fold = "signature"
	// ByIssue folds alerts of one signature, application and route, the most severe
	// first. An alert that is not about one exchange is a group of its own.
	ByIssue Fold = "issue"
)

// Group is a group of folded alerts.
type Group struct {
	// Key is the rule's id or the signature. For issues, it only distinguishes groups.
	Key string
	// Rank orders issues: 2 for critical, 1 for warning, 0 for info and other folds.
	Rank int64
	// Counts is the number of alerts of the group in each state; Unread is how many are not read.
	Counts Counts
	Unread int64
	Newest Instance
	// FirstAt is when the first alert of the group fired.
	FirstAt time.Time
	// Issue is nil for other folds.
	Issue *Issue
}

// TrendHours is how many hours the trend of an issue covers.
const TrendHours = 24

// Issue describes a group of alerts with the same failure in one place.
type Issue struct {
	Signature, Application, Route string
	// Severity is the highest of its alerts.
	Severity rules.Severity
	// AcknowledgedBy is who has acknowledged alerts that are acknowledged now. AcknowledgedAt is
	// when that was last done; nil if nobody has.
	AcknowledgedBy []string
	AcknowledgedAt *time.Time
	// Trend counts the alerts that fired in each of the last hours, oldest first.
	Trend [TrendHours]int64
}

// GroupMark is the place of a group in the order of groups: by rank, then newest alert first, then
// by key.
type GroupMark struct {
	Rank     int64
	NewestAt time.Time
	Key      string
}
