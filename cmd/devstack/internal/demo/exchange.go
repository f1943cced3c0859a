package demo

import "time"

// Tenant is the tenant of all demo exchanges.
const Tenant = "default"

// The statuses of an exchange, as they are stored.
const (
	StatusRunning   = "RUNNING"
	StatusCompleted = "COMPLETED"
	StatusFailed    = "FAILED"
)

// The environments of the demo company.
const (
	Production = "production"
	Staging    = "staging"
)

// Exchange is one state of one execution of a route, a row of the table
// "exchanges". While it is RUNNING, EndTime is zero and so is Duration.
type Exchange struct {
	StartTime     time.Time
	EndTime       time.Time
	Duration      time.Duration
	Environment   string
	Application   string
	Route         string
	ExecutionID   string
	Status        string
	ErrorType     string
	ErrorMessage  string
	ErrorStack    string
	CorrelationID string
	Attributes    map[string]string
}

// Row is an exchange at the instant at which its writer inserts it.
type Row struct {
	InsertAt time.Time
	Exchange
	// Repeat says that the writer inserted this very row before.
	Repeat bool

	// seq keeps rows of the same instant in the order in which they were made.
	seq uint64
}
