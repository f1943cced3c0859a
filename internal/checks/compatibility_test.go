package main

import (
	"os"
	"strings"
	"testing"
)

func TestWhatIsSaidOfProgramsBeforeFitsTheSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := repository(t, dir)
	write(t, dir, "migrations/00001_first.sql", "select 1;\nupdate schema_compatibility set least = 1;\n")
	write(t, dir, "migrations/00002_second.sql", "select 2;")
	write(t, dir, "Makefile", "BESIDE ?= \n")
	commit := func() string {
		t.Helper()
		for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "more"}} {
			if _, err := git(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		out, err := git(t.Context(), "rev-parse", "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	page := func(numbers string) {
		t.Helper()
		write(t, dir, updatingPage, "# Operations\n\nSchemas "+numbers+" work with no program before them: stop.\n")
	}
	check := func(page, beside string) {
		t.Helper()
		found, err := checkUpdatingPage(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		expectFinding(t, found, page)
		if found, err = checkBeside(t.Context(), git, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		expectFinding(t, found, beside)
	}
	page("1")
	knowsTwo := commit()
	write(t, dir, "Makefile", "BESIDE ?= "+knowsTwo+"\n")
	check("", "")
	write(t, dir, "migrations/00003_third.sql", "update schema_compatibility set least = 3;\n")
	check("says that schemas [1] work with no program before them, migrations state [1 3]", "knows schema 2 and cannot work with this one, which asks for 3")
	page("1 and 3")
	write(t, dir, "Makefile", "BESIDE ?=\n")
	check("", "")
	write(t, dir, "Makefile", "BESIDE ?= "+commit()+"\n")
	check("", "")
	write(t, dir, "migrations/00002_between.sql", "select 2;")
	check("", "and not migrations/00002_between.sql")
	write(t, dir, "Makefile", "BESIDE ?= 0123456789\n")
	check("", "")
	write(t, dir, "Makefile", "\n")
	check("", "there is no line")
}
