package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestUnusualWordsAreRefused(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"fine.go":                {Data: []byte("// Judge judges; owed_from_ns is a column, and a renewal is no other word.\nvar judged int\n")},
		"migrations/00001_a.sql": {Data: []byte("-- What is owed.\n")},
		"LICENSE":                {Data: []byte("Derivative Works thereof\n")},
		"CHANGELOG.md":           {Data: []byte("It is `judged` no more, and `UNFOUNDED` is `UNEXPECTED`.\n")},
		"page2.md":               {Data: []byte("It was `told`.\n")},
		"unusual.go":             {Data: []byte("package a\n\n// Whoever comes later waits.\n")},
		"page.md":                {Data: []byte("An exchange is judged once.\n")},
		"page.html":              {Data: []byte("<p>Judges alike</p>\n")},
	}
	found, err := checkWords(tree, []string{"fine.go", "migrations/00001_a.sql", "LICENSE", "CHANGELOG.md", "deleted.md"})
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v; want no finding", found, err)
	}
	found, err = checkWords(tree, []string{"unusual.go", "page.md", "page.html", "page2.md"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 4 || !strings.HasPrefix(found[0], `unusual.go:3 says "Whoever"`) || !strings.Contains(found[1], `page.md:1 says "judged": the usual word is "evaluated"`) ||
		!strings.Contains(found[2], `page.html:1 says "Judges"`) || !strings.Contains(found[3], `page2.md:1 says "told"`) {
		t.Errorf("%q", found)
	}
}
