// Package migrations holds the schema of Tocsin's Postgres database, as
// numbered steps. A step is appended and never edited once it has been released;
// there are no steps down. One beside which the programs before it cannot work
// says so in the table schema_compatibility. The queries of internal/postgres are
// generated from these same files, so there is no second description of the schema.
package migrations

import "embed"

// Files holds the steps, in the format of goose.
//
//go:embed *.sql
var Files embed.FS
