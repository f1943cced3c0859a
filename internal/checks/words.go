package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// usual has words that no text of the repository uses, with the usual ones for them. They are words that no identifier and
// no quoted output needs, so that each occurrence is a finding.
func usual() map[string]string {
	return map[string]string{
		"anew":         "again",
		"behindhand":   "behind",
		"betimes":      "early",
		"heretofore":   "before",
		"hitherto":     "until now",
		"lest":         "so that … not",
		"muster":       "member, group",
		"nought":       "nothing",
		"owed":         "open, pending",
		"owes":         "has to",
		"owing":        "open, pending",
		"reaped":       "released",
		"reaper":       "check for dead replicas",
		"reaps":        "releases",
		"sign of life": "heartbeat",
		"sweeper":      "retention",
		"sweepers":     "retention",
		"sweeping":     "deleting, retention",
		"sweeps":       "deletes, passes",
		"swept":        "deleted",
		"testify":      "show",
		"thereof":      "of it",
		"whence":       "from where",
		"whoever":      "the person, process or webhook that",
	}
}

// usualInProse has such words that identifiers of Go and SQL use. They are refused in pages, in descriptions and in the
// web application.
func usualInProse() map[string]string {
	return map[string]string{
		"judged":    "evaluated",
		"judges":    "evaluates",
		"judging":   "evaluation",
		"told":      "notified, informed, said",
		"unfounded": "unexpected",
	}
}

// checkWords refuses words for which the repository has a usual one. Migrations are never edited, so they keep theirs.
// The changelog may quote former names.
func checkWords(tree fs.FS, tracked []string) ([]string, error) {
	everywhere, prose := pattern(usual()), pattern(usualInProse())
	var findings []string
	for _, name := range tracked {
		kind := path.Ext(name)
		code := slices.Contains([]string{".go", ".sql", ".qnt"}, kind)
		written := slices.Contains([]string{".md", ".ts", ".tsx", ".mjs", ".mts", ".css", ".html", ".yaml", ".yml", ".svg"}, kind)
		if !code && !written || strings.HasPrefix(name, "migrations/") || strings.HasPrefix(name, "internal/checks/words") {
			continue
		}
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		for number, line := range bytes.Split(text, []byte("\n")) {
			if name == "CHANGELOG.md" {
				line = quoted.ReplaceAll(line, nil)
			}
			found := everywhere.FindAll(line, -1)
			if written {
				found = append(found, prose.FindAll(line, -1)...)
			}
			for _, word := range found {
				key := strings.ToLower(string(word))
				instead := usual()[key] + usualInProse()[key]
				findings = append(findings, fmt.Sprintf("%s:%d says %q: the usual word is %q", name, number+1, word, instead))
			}
		}
	}
	return findings, nil
}

// quoted matches names in a text.
var quoted = regexp.MustCompile("`[^`]*`")

// pattern matches any of some words, in any case.
func pattern(words map[string]string) *regexp.Regexp {
	var list []string
	for word := range words {
		list = append(list, regexp.QuoteMeta(word))
	}
	slices.Sort(list)
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(list, "|") + `)\b`)
}
