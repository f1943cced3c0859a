package notify

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/rules"
)

// Bounds of digests.
const (
	// MaxDigestAbove bounds [Webhook.DigestAbove].
	MaxDigestAbove = 100_000
	// DigestSize is the largest number of notifications in a digest. If the bound of its webhook is
	// higher, it is one more than that bound.
	DigestSize = 5000
	// DigestAlerts is how many alerts a digest lists.
	DigestAlerts = 5000
	// DigestTop is how many rules, places and errors a digest lists of each.
	DigestTop = 8
)

// Digest is the content of one message that replaces many, or that lists what a silence suppressed.
// Its lists contain the largest entries;
// the others are only counted.
type Digest struct {
	// Size is the number of notifications; Reasons is their number for each reason.
	Size    int
	Reasons map[Reason]int
	// Silence is set in a digest that lists what a silence suppressed: its notifications were not sent.
	Silence *DigestSilence
	// Rules are ordered by severity and then by count. AllRules is the number of all rules.
	Rules    []DigestRule
	AllRules int
	// Places are applications and routes.
	Places    []DigestPlace
	AllPlaces int
	// Errors are distinguished without the numbers in their messages.
	Errors    []DigestError
	AllErrors int
	// FirstFiredAt and LastFiredAt are when the alerts fired.
	FirstFiredAt, LastFiredAt time.Time
	// First and Last are the alerts whose exchanges started first and last; nil if no alert is
	// about an exchange.
	First, Last *alerts.Instance
	// Alerts lists the alert of each notification, in the order in which they were made, at most
	// [DigestAlerts]. An alert that fired and resolved is listed twice.
	Alerts []uuid.UUID
}

// DigestSilence is a silence of which a digest lists what it suppressed from an instant on and before
// another one.
type DigestSilence struct {
	ID          uuid.UUID
	Name        string
	From, Until time.Time
}

// DigestRule is a rule in a digest.
type DigestRule struct {
	ID       uuid.UUID
	Name     string
	Severity rules.Severity
	Count    int
}

// DigestPlace is an application and route of exchanges in a digest.
type DigestPlace struct {
	Application, Route string
	Count              int
}

// DigestError is an error of exchanges in a digest, with an example of its message, or the reason
// why rules cannot be evaluated.
type DigestError struct {
	Type, Message string
	Count         int
}
