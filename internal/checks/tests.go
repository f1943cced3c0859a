package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// testEvent is a line of `go test -json`.
type testEvent struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// testID names a test; of a package as a whole it has no name.
type testID struct{ pkg, test string }

// timed is how long a test took.
type timed struct {
	testID
	seconds float64
}

// slowestShown is how many tests are listed.
const slowestShown = 10

// slowPackage is how long a package may take before it is named.
const slowPackage = 90 * time.Second

// repeatable is how many failed tests are worth a second try; more are no accident.
const repeatable = 3

// failures are the tests that failed, and whether each of them may have done so for want of time.
type failures struct {
	byPackage map[string][]string
	certain   bool
}

// add takes in what failed. A data race and a panic are findings, however seldom they show; and a package that fails
// without a failed test did not compile, or ended before its time.
func (f *failures) add(id testID, said string) {
	if strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic:") {
		f.certain = true
	}
	switch {
	case id.test == "":
		f.certain = f.certain || len(f.byPackage[id.pkg]) == 0
	case !strings.Contains(id.test, "/"):
		f.byPackage[id.pkg] = append(f.byPackage[id.pkg], id.test)
	}
}

// commands returns, for each package, its path and the pattern that runs what failed there and may be tried again.
func (f *failures) commands() string {
	var lines strings.Builder
	n := 0
	for _, pkg := range slices.Sorted(maps.Keys(f.byPackage)) {
		n += len(f.byPackage[pkg])
		_, _ = fmt.Fprintf(&lines, "%s ^(%s)$\n", pkg, strings.Join(f.byPackage[pkg], "|"))
	}
	if f.certain || n > repeatable {
		return ""
	}
	return lines.String()
}

// reportTests prints what `go test` prints, out of `go test -json`, and then the tests that took longest. Of a test that
// passes nothing is shown, as go test does. It returns the failed tests that may be tried again, a line for each package.
func reportTests(in io.Reader, out io.Writer) (again string, err error) {
	said := map[testID]*bytes.Buffer{}
	failed := failures{byPackage: map[string][]string{}}
	var tests, packages []timed
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e testEvent
			if json.Unmarshal(line, &e) != nil {
				// Not of go test: whoever runs it says something.
				_, _ = out.Write(line)
				continue
			}
			id := testID{e.Package, e.Test}
			switch e.Action {
			case "build-output":
				_, _ = io.WriteString(out, e.Output)
			case "build-fail":
				failed.certain = true
			case "output":
				if e.Test == "" && packageLine(e.Output) {
					_, _ = io.WriteString(out, e.Output)
					continue
				}
				if said[id] == nil {
					said[id] = &bytes.Buffer{}
				}
				said[id].WriteString(e.Output)
			case "pass", "skip", "fail":
				if e.Action == "fail" {
					failed.add(id, show(out, said, id))
				}
				delete(said, id)
				took := timed{id, e.Elapsed}
				if e.Test == "" {
					packages = append(packages, took)
				} else {
					tests = append(tests, took)
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the tests' report: %w", err)
		}
	}
	showSlowest(out, tests, packages)
	return failed.commands(), nil
}

// show prints and returns what was said by what failed: of a package, also by its tests that never ended.
func show(out io.Writer, said map[testID]*bytes.Buffer, failed testID) string {
	var shown strings.Builder
	var ids []testID
	for id := range said {
		if id == failed || failed.test == "" && id.pkg == failed.pkg {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b testID) int { return -cmp.Compare(a.test, b.test) })
	for _, id := range ids {
		shown.Write(said[id].Bytes())
		delete(said, id)
	}
	_, _ = io.WriteString(out, shown.String())
	return shown.String()
}

// packageLine says whether a line is the result of a package.
func packageLine(line string) bool {
	for _, beginning := range []string{"ok  \t", "FAIL\t", "?   \t"} {
		if strings.HasPrefix(line, beginning) {
			return true
		}
	}
	return false
}

func showSlowest(out io.Writer, tests, packages []timed) {
	longest := func(a, b timed) int { return -cmp.Compare(a.seconds, b.seconds) }
	slices.SortStableFunc(tests, longest)
	slices.SortStableFunc(packages, longest)
	// A test takes as long as its subtests.
	var listed []timed
	for _, t := range tests {
		if !strings.Contains(t.test, "/") && len(listed) < slowestShown {
			listed = append(listed, t)
		}
	}
	if len(listed) < slowestShown {
		return
	}
	_, _ = fmt.Fprintf(out, "\nThe slowest tests:\n")
	for _, t := range listed {
		_, _ = fmt.Fprintf(out, "%8.1f s  %s %s\n", t.seconds, t.pkg, t.test)
	}
	for _, p := range packages {
		if p.seconds > slowPackage.Seconds() {
			_, _ = fmt.Fprintf(out, "%s takes %.0f s, longer than the %.0f s that a package may take.\n", p.pkg, p.seconds, slowPackage.Seconds())
		}
	}
}
