package main

import (
	"fmt"
	"io/fs"
	"strings"
)

// The statements that sqlc compiles, and the number of lines from which a statement is too long to take in at once.
const (
	statementsGlob   = "internal/postgres/query/*.sql"
	statementTooLong = 40
)

// checkStatements finds statements that are too long. Comments and empty lines do not count.
func checkStatements(tree fs.FS) ([]string, error) {
	names, err := fs.Glob(tree, statementsGlob)
	if err != nil {
		return nil, fmt.Errorf("list statements: %w", err)
	}
	var found []string
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read statements: %w", err)
		}
		for _, statement := range strings.Split("\n"+string(text), "\n-- name: ")[1:] {
			title, body, _ := strings.Cut(statement, " ")
			_, body, _ = strings.Cut(body, "\n")
			lines := 0
			for line := range strings.Lines(body) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
					lines++
				}
			}
			if lines >= statementTooLong {
				found = append(found, fmt.Sprintf("%s: the statement %s has %d lines: split it, or simplify it, to fewer than %d", name, title, lines, statementTooLong))
			}
		}
	}
	return found, nil
}
