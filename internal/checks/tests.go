package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
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

// reportTests prints what `go test` prints, out of `go test -json`, and then the tests that took longest. Of a test that
// passes nothing is shown, as go test does.
func reportTests(in io.Reader, out io.Writer) error {
	said := map[testID]*bytes.Buffer{}
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
					show(out, said, id)
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
			return fmt.Errorf("read the tests' report: %w", err)
		}
	}
	showSlowest(out, tests, packages)
	return nil
}

// show prints what was said by what failed: of a package, also by its tests that never ended.
func show(out io.Writer, said map[testID]*bytes.Buffer, failed testID) {
	var ids []testID
	for id := range said {
		if id == failed || failed.test == "" && id.pkg == failed.pkg {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b testID) int { return -cmp.Compare(a.test, b.test) })
	for _, id := range ids {
		_, _ = out.Write(said[id].Bytes())
		delete(said, id)
	}
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
