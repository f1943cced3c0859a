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

// testID identifies a test. For a whole package, test is empty.
type testID struct{ pkg, test string }

// timed is the duration of a test.
type timed struct {
	testID
	seconds float64
}

// slowestShown is how many tests are listed.
const slowestShown = 10

// slowPackage is the duration from which a package is named.
const slowPackage = 90 * time.Second

// repeatable is how many failed tests deserve a second try; more are not an accident.
const repeatable = 6

// failures are the failed tests, and whether each of them may have failed because it was too slow.
type failures struct {
	byPackage map[string][]string
	certain   bool
}

// add adds a failure. A data race and a panic are real, however rarely they occur. A package that
// fails without a failed test did not compile, or ended early. One that ran out of time ends with a panic of its own, and
// says nothing of the tests that had not begun, so that all of them are tried again.
func (f *failures) add(id testID, said string) {
	outOfTime := strings.Count(said, "panic: test timed out after")
	if strings.Contains(said, "DATA RACE") || strings.Count(said, "panic:") > outOfTime {
		f.certain = true
	}
	switch {
	case id.test == "" && outOfTime > 0:
		f.byPackage[id.pkg] = []string{".*"}
	case id.test == "":
		f.certain = f.certain || len(f.byPackage[id.pkg]) == 0
	case !strings.Contains(id.test, "/"):
		f.byPackage[id.pkg] = append(f.byPackage[id.pkg], id.test)
	}
}

// commands returns, for each package, its path and the pattern that runs the failed tests that may
// be tried again.
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

// reportTests prints the output of `go test` from that of `go test -json`, and then the slowest
// tests. Like go test, it shows nothing for a passed test. It returns the failed tests that may be
// tried again, one line for each package.
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
				// This line is not from go test but from its caller.
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

// show prints and returns the output of a failure. For a package, this includes its tests that
// never ended.
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

// packageLine reports whether a line is the result of a package.
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
	showSlow(out, packages)
}

// showSlow prints the packages that take too long, the longest first, or that there are none.
func showSlow(out io.Writer, packages []timed) {
	n, seconds := 0, 0.0
	for n < len(packages) && packages[n].seconds > slowPackage.Seconds() {
		seconds += packages[n].seconds
		n++
	}
	if n == 0 {
		_, _ = fmt.Fprintf(out, "\nNo package takes longer than %.0f s.\n", slowPackage.Seconds())
		return
	}
	_, _ = fmt.Fprintf(out, "\nTOO LONG: %d of %d packages take more than %.0f s each, %.0f s together:\n", n, len(packages), slowPackage.Seconds(), seconds)
	for _, p := range packages[:n] {
		_, _ = fmt.Fprintf(out, "%8.1f s  %s\n", p.seconds, p.pkg)
	}
}
