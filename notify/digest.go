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
	// DigestSize is how many notifications a digest gathers at most, unless its
	// webhook's bound is higher: then one more than that.
	DigestSize = 5000
	// DigestAlerts is how many alerts a digest names.
	DigestAlerts = 5000
	// DigestTop is how many rules, places and errors a digest names of each.
	DigestTop = 8
)

// Digest is what one message tells instead of many. Its lists are cut, the
// greatest first; what they leave out is counted.
type Digest struct {
	// Size is the number of notifications, Reasons how many there are of each reason.
	Size    int
	Reasons map[Reason]int
	// Rules are ordered by severity, then by count. AllRules is how many there are.
	Rules    []DigestRule
	AllRules int
	// Places are applications and routes.
	Places    []DigestPlace
	AllPlaces int
	// Errors are told apart without regard to the numbers in their messages.
	Errors    []DigestError
	AllErrors int
	// FirstFiredAt and LastFiredAt are when the alerts fired.
	FirstFiredAt, LastFiredAt time.Time
	// First and Last are the alerts whose exchanges started first and last; nil
	// when none is about an exchange.
	First, Last *alerts.Instance
	// Alerts names the alert of each notification, in the order in which they were
	// made, at most [DigestAlerts]. One that fired and resolved is named twice.
	Alerts []uuid.UUID
}

// DigestRule is a rule in a digest.
type DigestRule struct {
	ID       uuid.UUID
	Name     string
	Severity rules.Severity
	Count    int
}

// DigestPlace is where exchanges of a digest ran.
type DigestPlace struct {
	Application, Route string
	Count              int
}

// DigestError is an error of exchanges in a digest, with a message as an example,
// or why rules cannot be evaluated.
type DigestError struct {
	Type, Message string
	Count         int
}
