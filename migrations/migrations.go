// Package migrations contains the schema of Tocsin's Postgres database, as numbered steps. Steps
// are only appended. A released step is never edited, and there are no down steps. A step after
// which earlier programs cannot work says so in the table schema_compatibility. The queries of
// internal/postgres are generated from these same files, so there is no second description of the
// schema.
package migrations

import "embed"

// Files contains the steps, in the format of goose.
//
//go:embed *.sql
var Files embed.FS
