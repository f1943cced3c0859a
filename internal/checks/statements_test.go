package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLongStatementsAreRefused(t *testing.T) {
	t.Parallel()
	lines := func(n int) string { return strings.Repeat("select 1 from a\n", n) }
	tree := fstest.MapFS{
		"internal/postgres/query/fine.sql": {Data: []byte("-- name: First :one\n-- Returns it.\n" + lines(38) + "  -- why\n\n;\n" + "\n-- name: Second :many\n" + lines(39))},
		"internal/postgres/query/long.sql": {Data: []byte("-- name: Short :one\nselect 1;\n\n-- name: Long :exec\n-- Does much.\n" + lines(40) + "\n-- name: Last :one\n" + lines(3))},
		"migrations/00001_long.sql":        {Data: []byte("-- name: Table\n" + lines(90))},
	}
	found, err := checkStatements(tree)
	want := []string{"internal/postgres/query/long.sql: the statement Long has 40 lines: split it, or simplify it, to fewer than 40"}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%q, %v; want %q", found, err, want)
	}
}
