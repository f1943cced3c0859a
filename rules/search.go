package rules

import "tocsin/cursor"

// ExchangeQuery asks for terminal exchanges of a tenant, newest first.
type ExchangeQuery struct {
	TenantID string
	// FromNS is inclusive, ToNS exclusive; both are start times.
	FromNS, ToNS int64
	Scope        Scope
	Filter       Filter
	// ExecutionID, if not empty, restricts the search to the exchanges with this id.
	ExecutionID string
	// Before continues a listing after its last exchange; nil starts a listing.
	Before *cursor.Position
	// Limit is the number of exchanges to return, at least 1.
	Limit int
}

// Facet is a field of exchanges whose values are counted.
type Facet string

// The facets. For attributes, the keys are counted.
const (
	FacetEnvironment Facet = "environment"
	FacetApplication Facet = "application"
	FacetRoute       Facet = "route"
	FacetErrorType   Facet = "errorType"
	FacetAttribute   Facet = "attribute"
)

// FacetQuery asks for the most frequent values of a field.
type FacetQuery struct {
	TenantID string
	Field    Facet
	// FromNS is inclusive, ToNS exclusive; both are start times.
	FromNS, ToNS int64
	// Scope restricts the exchanges.
	Scope Scope
	// Prefix is a prefix of the values, ignoring case.
	Prefix string
	// Limit is the number of values to return, at least 1.
	Limit int
}

// FacetValue is a value and the number of rows that contain it.
type FacetValue struct {
	Value string
	Count int64
}

// DurationQuery asks how long exchanges take.
type DurationQuery struct {
	TenantID string
	// FromNS is inclusive, ToNS exclusive; both are start times.
	FromNS, ToNS int64
	// Those of the exchanges, in which a * stands for itself; empty means any.
	Application, Route, Environment string
	// Limit is how many exchanges, newest first, are read; at least 1.
	Limit int
}

// Durations is how long completed exchanges took, in nanoseconds. Without exchanges both are 0.
type Durations struct {
	Exchanges       int64
	MedianNS, P95NS int64
}
