package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

func sample() report.Run {
	return report.Run{
		Machine: report.Machine{Date: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Commit: "abc", Peers: []string{"River v1"}, Trials: 3},
		Results: []report.Result{
			{
				ID: "B2", Title: "Drain", Unit: "a message", Floor: "POST", Peer: "River",
				Figures: []report.Figure{
					report.Of("over the floor", "×", []float64{0.70, 0.80, 0.78}, report.AtLeast(0.75)),
					report.Of("over River", "×", []float64{2.0, 2.1, 2.4}, report.AtLeast(2.5)),
					report.One("p99", "ms", 6, report.AtMost(5)),
					report.One("rate", "messages/s", 12345, nil),
					report.One("again", "%", 1.5, nil),
				},
				Bars: []report.Bar{{Name: "Tocsin", Summary: trial.Summary{Median: 3, Low: 2, High: 4}}}, BarsUnit: "messages/s",
			},
			{
				ID: "B9", Title: "Slow", Refused: "not complete", Figures: []report.Figure{report.One("kept", "×", 1, report.AtLeast(0.95))},
				Bars: []report.Bar{{Name: "Tocsin", Summary: trial.Summary{Median: 3, Low: 2, High: 4}}},
			},
		},
	}
}

// row returns the fields of the table row that begins with a name.
func row(t *testing.T, page, name string) []string {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| "+name+" |") {
			fields := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range fields {
				fields[i] = strings.TrimSpace(fields[i])
			}
			return fields
		}
	}
	t.Fatalf("no row %q in %s", name, page)
	return nil
}

func TestWhatIsNotReachedIsShown(t *testing.T) {
	run := sample()
	var page bytes.Buffer
	if err := run.Markdown(&page, []string{"targets.svg"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"over the floor": {"over the floor", "0.78×", "0.70 to 0.80", "≥ 0.75×", "reached"},
		"over River":     {"over River", "2.10×", "2 to 2.40", "≥ 2.50×", "NOT REACHED"},
		"p99":            {"p99", "6 ms", "", "≤ 5 ms", "NOT REACHED"},
		"rate":           {"rate", "12,345 messages/s", "", "", ""},
		"again":          {"again", "1.50%", "", "", ""},
		"kept":           {"kept", "1×", "", "≥ 0.95×", "refused"},
	} {
		if got := row(t, page.String(), name); !slices.Equal(got, want) {
			t.Errorf("row %q, want %q", got, want)
		}
	}
	for _, want := range []string{"**Refused:** not complete.", "Floor: POST.", "Peer: River.", "![targets](targets.svg)", "| commit | abc |"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	var text bytes.Buffer
	if err := run.Text(&text); err != nil || !strings.Contains(text.String(), "REFUSED: not complete") || strings.Count(text.String(), "NOT REACHED") != 2 {
		t.Errorf("%v: %s", err, text.String())
	}
}

func TestJSONHoldsTheRun(t *testing.T) {
	run := sample()
	var text bytes.Buffer
	if err := run.JSON(&text); err != nil {
		t.Fatal(err)
	}
	var back report.Run
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if f := back.Results[0].Figures[0]; f.Median != 0.78 || f.Low != 0.70 || f.Count != 3 || f.Bound == nil || f.Bound.Value != 0.75 {
		t.Errorf("figure %+v", f)
	}
	if back.Results[1].Refused != "not complete" || back.Machine.Commit != "abc" {
		t.Errorf("run %+v", back)
	}
}

func TestPlots(t *testing.T) {
	run := sample()
	dir := t.TempDir()
	names, err := run.Plots(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"targets.svg", "b2.svg"}; !slices.Equal(names, want) {
		t.Errorf("plots %v, want %v: what was refused is not drawn", names, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "targets.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "B2 over River", "B2 p99", "6 ms (≤ 5 ms), not reached", "prefers-color-scheme:dark"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the plot does not hold %q", want)
		}
	}
	if strings.Contains(string(text), "kept") {
		t.Error("the plot holds a refused figure")
	}
	// A colour outside the style would be the same in both themes.
	_, drawing, _ := strings.Cut(string(text), "</style>")
	for _, never := range []string{"style=", "fill=", "stroke=", "#"} {
		if strings.Contains(drawing, never) {
			t.Errorf("the plot sets a colour outside its style: %s", never)
		}
	}
}

func TestTheRecordedPagesShowTheRecordedFigures(t *testing.T) {
	const recorded = "../../../docs/performance"
	run, err := report.Read(filepath.Join(recorded, "results.json"))
	if err != nil || len(run.Results) == 0 {
		t.Fatalf("%d results, %v", len(run.Results), err)
	}
	dir := t.TempDir()
	names, err := run.Plots(dir)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := run.Markdown(&page, names); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "results.md"), page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "results.md") {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(recorded, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/performance/%s is not what results.json says (%v): run make bench-redraw", name, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 2: "2", 0.754: "0.75", 12.345: "12.3", 123.4: "123", 999: "999", 1000: "1,000", 1234567.8: "1,234,568", -1234: "-1,234", -12.5: "-12.5",
	} {
		if got := report.Number(value); got != want {
			t.Errorf("Number(%v) = %q, want %q", value, got, want)
		}
	}
}

func TestResultsStandInTheirOrder(t *testing.T) {
	run := report.Run{Results: []report.Result{{ID: "M"}, {ID: "L2"}, {ID: "B10"}, {ID: "L1"}, {ID: "B9"}, {ID: "B1"}}}
	run.Sort()
	var ids []string
	for _, r := range run.Results {
		ids = append(ids, r.ID)
	}
	if want := []string{"B1", "B9", "B10", "L1", "L2", "M"}; !slices.Equal(ids, want) {
		t.Errorf("order %v, want %v", ids, want)
	}
}

// TestKeptResultsSayWhenTheyWereMeasured measures one workload again, twice.
func TestKeptResultsSayWhenTheyWereMeasured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	if none, err := report.Read(path); err != nil || len(none.Results) != 0 {
		t.Fatalf("without a file: %+v, %v", none, err)
	}
	first := sample()
	var text bytes.Buffer
	for nth, commit := range []string{"def", "ghi"} {
		text.Reset()
		if err := first.JSON(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		former, err := report.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		again := report.Run{Machine: report.Machine{Date: first.Machine.Date.AddDate(0, 0, nth+1), Commit: commit}}
		again.Keep(former, []string{"B9"})
		again.Results = append(again.Results, report.Result{ID: "B9", Title: "Slow"})
		again.Sort()
		first = again
	}
	var page bytes.Buffer
	if err := first.Markdown(&page, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "| commit | ghi |") || strings.Count(page.String(), "Measured 2026-11-21 12:00 UTC, commit abc,") != 1 ||
		strings.Count(page.String(), "## B") != 2 || strings.Contains(page.String(), "not complete") {
		t.Errorf("the page reads %s", page.String())
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(path); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("of a broken file: %v", err)
	}
}
