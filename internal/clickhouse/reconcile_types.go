package clickhouse

import (
	"tocsin/cursor"
	"tocsin/rules"
)

// MatchedQuery asks for the exchanges of a tenant that a condition matches.
type MatchedQuery struct {
	TenantID string
	Scope    rules.Scope
	Filter   rules.Filter
	// EndedFromNS is inclusive, EndedToNS exclusive. Where the source does not
	// tell the end, the start stands for it.
	EndedFromNS, EndedToNS int64
	// After is the position strictly after which the answer begins, BeforeNS the
	// start time before which it ends, exclusive.
	After    cursor.Position
	BeforeNS int64
	// Limit is the most exchanges to return, at least 1.
	Limit int
}

// Matched is an exchange that matches.
type Matched struct {
	cursor.Position
	EndedNS int64
}
