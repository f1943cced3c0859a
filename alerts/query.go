package alerts

import (
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// Query selects alerts for the inbox, newest first.
type Query struct {
	Filter

	// Before continues a listing after its last alert; nil begins it.
	Before *Mark
	// Limit is the number of alerts wanted, 1 to 200.
	Limit int
}

// Page is a stretch of the inbox.
type Page struct {
	// Alerts are newest first.
	Alerts []Instance
	// Next is from where the listing goes on; nil where nothing is left. A search
	// for a text looks at a bounded number of alerts at a time, so that its page
	// may be short, or empty, and yet go on.
	Next *Mark
}

// Filter restricts alerts: its parts are combined by AND, the entries of one by
// OR. An empty part is no restriction.
type Filter struct {
	// IDs are those of alerts.
	IDs        []uuid.UUID
	States     []State
	Severities []rules.Severity
	Rules      []uuid.UUID
	// Applications and Routes are compared for equality.
	Applications []string
	Routes       []string
	Environments []string
	// ExecutionID and CorrelationID are those of exchanges; empty is no restriction.
	ExecutionID   string
	CorrelationID string
	// Attributes must all hold; nil is no restriction.
	Attributes map[string]string
	// Signatures are those of [Signature].
	Signatures []string
	// PerExchange restricts to alerts about one exchange each, which issues consist of.
	PerExchange bool
	// Text is looked for in title and message, case ignored.
	Text string
	// MineOf restricts to rules with one of these targets, to rules that the teams among them
	// own, and to what is assigned to the users among them; nil is no restriction, and an empty
	// one matches nothing.
	MineOf []rules.Target
	// Assignees selects alerts by assignee; an empty string is nobody.
	Assignees []string
	// Snoozed restricts to what is snoozed, or is not; nil is no restriction.
	Snoozed *bool
	// UnreadBy restricts to what somebody has not read.
	UnreadBy string
	// From restricts to alerts that fired at or after it; nil is no restriction.
	From *time.Time
	// UpTo restricts to alerts that fired at or before it; nil is no restriction.
	UpTo *time.Time
}

// Mark is the place of an alert in the inbox's order.
type Mark struct {
	FiredAt time.Time
	ID      uuid.UUID
}

// Fold is what alerts are put together by.
type Fold string

// The folds.
const (
	ByRule      Fold = "rule"
	BySignature Fold = "signature"
	// ByIssue folds alerts of one signature, application and route, the most severe
	// first. An alert that is not about one exchange is a group of its own.
	ByIssue Fold = "issue"
)

// Group is alerts that are folded into one.
type Group struct {
	// Key is the rule's id or the signature. For issues, it only distinguishes groups.
	Key string
	// Rank orders issues: 2 for critical, 1 for warning, 0 for info and other folds.
	Rank int64
	// Counts holds the alerts of the group by state, Unread those not read.
	Counts Counts
	Unread int64
	Newest Instance
	// FirstAt is when the first alert of the group fired.
	FirstAt time.Time
	// Issue is nil of other folds.
	Issue *Issue
}

// TrendHours is how many hours the trend of an issue covers.
const TrendHours = 24

// Issue is what is known of a group of alerts that failed alike in one place.
type Issue struct {
	Signature, Application, Route string
	// AcknowledgedBy is who has acknowledged alerts that are acknowledged now, and
	// AcknowledgedAt when that was done last, nil where nobody has.
	AcknowledgedBy []string
	AcknowledgedAt *time.Time
	// Trend counts the alerts that fired in each of the last hours, the oldest first.
	Trend [TrendHours]int64
}

// GroupMark is the place of a group in the order of groups: by rank, the newest
// alert first, those of one instant by key.
type GroupMark struct {
	Rank     int64
	NewestAt time.Time
	Key      string
}
