// Package schema holds the definition of Tocsin's default source table.
//
// The table belongs to whoever writes exchanges; Tocsin itself only reads it.
// It is a ReplacingMergeTree, so a row written at the start of an exchange with
// status RUNNING and a row written at its end with the same sort key are one
// exchange, of which the row inserted last stands once parts are merged.
//
// It is sorted by start time first, so that what is new lies together, whichever tenants
// it belongs to: what a pass reads depends neither on the number of tenants nor on the
// history. A preview of one tenant among many reads that column of all of them.
package schema

import _ "embed"

// Exchanges is the CREATE TABLE statement of the default source table
// "exchanges", for the current database. It does nothing where the table exists.
//
//go:embed exchanges.sql
var Exchanges string
