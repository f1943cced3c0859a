// Package schema holds the definition of Tocsin's default source table.
//
// The table belongs to the programs that write exchanges; Tocsin only reads it. It is a
// ReplacingMergeTree. A row that is written at the start of an exchange with status RUNNING and a
// row with the same sort key that is written at its end are one exchange; after parts are merged,
// the row inserted last remains.
//
// The table is sorted by start time first, so that new rows are adjacent, whichever tenants they
// belong to. So what a pass reads depends neither on the number of tenants nor on the length of the
// history. A preview of one tenant reads the tenant column of all of them.
package schema

import _ "embed"

// Exchanges is the CREATE TABLE statement of the default source table "exchanges", for the current
// database. It does nothing if the table exists.
//
//go:embed exchanges.sql
var Exchanges string
