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
	// Signatures are those of [Signature].
	Signatures []string
	// Text is looked for in title and message, case ignored.
	Text string
	// MineOf restricts to rules with one of these targets; nil is no restriction,
	// and an empty one matches nothing.
	MineOf []rules.Target
	// UnreadBy restricts to what somebody has not read.
	UnreadBy string
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
)

// Group is alerts that are folded into one.
type Group struct {
	// Key is the rule's id or the signature.
	Key string
	// Counts holds the alerts of the group by state, Unread those not read.
	Counts Counts
	Unread int64
	Newest Instance
}

// GroupMark is the place of a group in the order of groups: the newest alert
// first, those of one instant by key.
type GroupMark struct {
	NewestAt time.Time
	Key      string
}
