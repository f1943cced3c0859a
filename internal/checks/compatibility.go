package main

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What is said and tested about earlier programs with a newer schema. A migration with which they
// cannot work says so: `update schema_compatibility set least = N;`, where N is the least schema
// that a program has to know.
var (
	leastStated  = regexp.MustCompile(`(?m)^update schema_compatibility set least = (\d+);$`)
	leastInText  = regexp.MustCompile(`(?s)\nSchemas ([^:]*?) work with no program before them`)
	besideCommit = regexp.MustCompile(`(?m)^BESIDE \?= *(\w*)$`)
	wholeNumber  = regexp.MustCompile(`\d+`)
)

const updatingPage = "docs/operations.md"

// leastSchemas lists the values in the migrations, in the order in which they run.
func leastSchemas(tree fs.FS) ([]int, error) {
	names, err := fs.Glob(tree, migrationsDir+"/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var all []int
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read a migration: %w", err)
		}
		for _, stated := range leastStated.FindAllSubmatch(text, -1) {
			all = append(all, numberIn(string(stated[1])))
		}
	}
	return all, nil
}

// numberIn returns the first number in a text; 0 if there is none.
func numberIn(text string) int {
	n, err := strconv.Atoi(wholeNumber.FindString(text))
	if err != nil {
		return 0
	}
	return n
}

// checkUpdatingPage checks that the page about updates names the schemas with which no earlier
// program works: an update to one of them requires stopping every replica first.
func checkUpdatingPage(tree fs.FS) ([]string, error) {
	want, err := leastSchemas(tree)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(tree, updatingPage)
	if err != nil {
		return nil, fmt.Errorf("read the page about updates: %w", err)
	}
	var got []int
	if sentence := leastInText.FindSubmatch(text); sentence != nil {
		for _, number := range wholeNumber.FindAllString(string(sentence[1]), -1) {
			got = append(got, numberIn(number))
		}
	}
	if !slices.Equal(got, want) {
		return []string{fmt.Sprintf(`%s says that schemas %v work with no program before them, migrations state %v: correct the sentence "Schemas … work with no program before them"`, updatingPage, got, want)}, nil
	}
	return nil, nil
}

// checkBeside checks that the earlier program that `make test-rollback` runs beside this one can
// work with the schema. A clone without its commit has nothing to compare.
func checkBeside(ctx context.Context, git runGit, tree fs.FS) ([]string, error) {
	stated, err := leastSchemas(tree)
	if err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return nil, fmt.Errorf("read the Makefile: %w", err)
	}
	found := besideCommit.FindSubmatch(text)
	if found == nil {
		return []string{"Makefile: there is no line `BESIDE ?= COMMIT`, which names the program of before that make test-rollback runs beside this one"}, nil
	}
	commit := string(found[1])
	if commit == "" || len(stated) == 0 {
		return nil, nil
	}
	listed, err := git(ctx, "ls-tree", "--name-only", commit, migrationsDir+"/")
	if err != nil {
		return nil, nil //nolint:nilerr // a clone without its history
	}
	known, knows := 0, map[string]bool{}
	for name := range strings.Lines(listed) {
		name = strings.TrimSpace(name)
		knows[name], known = true, max(known, numberIn(path.Base(name)))
	}
	names, err := fs.Glob(tree, migrationsDir+"/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	for _, name := range names {
		if numberIn(path.Base(name)) < known && !knows[name] {
			return []string{fmt.Sprintf("Makefile: BESIDE=%s knows schema %d and not %s, so that this version cannot migrate its database: name a later commit, or none while there is none", commit, known, name)}, nil
		}
	}
	if least := stated[len(stated)-1]; known < least {
		return []string{fmt.Sprintf("Makefile: BESIDE=%s knows schema %d and cannot work with this one, which asks for %d: name a commit that knows it, or none while there is none", commit, known, least)}, nil
	}
	return nil, nil
}
