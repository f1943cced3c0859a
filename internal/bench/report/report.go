// Package report presents the results: as a table for a terminal and for Markdown, as JSON, and as
// plots.
//
// A figure with a bound either reaches it or does not, and is shown as it is. A refused workload
// shows its reason, together with what was measured until then, marked as not to be trusted.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tocsin/internal/bench/trial"
)

// Run is one run of the benchmark.
type Run struct {
	Machine Machine  `json:"machine"`
	Results []Result `json:"results"`
}

// Machine says where, when and of which commit the run was made.
type Machine struct {
	Date       time.Time `json:"date"`
	Commit     string    `json:"commit"`
	Processor  string    `json:"processor"`
	Cores      int       `json:"cores"`
	MemoryMB   int64     `json:"memoryMb"`
	Kernel     string    `json:"kernel"`
	Go         string    `json:"go"`
	Postgres   string    `json:"postgres"`
	ClickHouse string    `json:"clickHouse"`
	// Peers are the versions of what Tocsin is compared with.
	Peers []string `json:"peers"`
	// Durable says whether Postgres waited for the disk.
	Durable bool `json:"durable"`
	// Load is the load average of the last minute before the run.
	Load float64 `json:"load"`
	// Quick says that the run was short, and only shows that everything works.
	Quick  bool `json:"quick"`
	Trials int  `json:"trials"`
}

// Result is the result of a workload.
type Result struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Unit is what an operation is.
	Unit string `json:"unit"`
	// Floor and Peer are what it is compared with; empty if there is none.
	Floor   string   `json:"floor,omitempty"`
	Peer    string   `json:"peer,omitempty"`
	Figures []Figure `json:"figures"`
	// Measured names the run that measured this, if it is another one than the one that contains
	// it.
	Measured *Machine `json:"measured,omitempty"`
	// Refused says why the figures are worthless.
	Refused string   `json:"refused,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Bars are for the plot of this workload, in the unit of the bars.
	Bars     []Bar         `json:"bars,omitempty"`
	BarsUnit string        `json:"barsUnit,omitempty"`
	Took     time.Duration `json:"tookNs"`
}

// Bar is one value of a plot, with its spread.
type Bar struct {
	Name string `json:"name"`
	trial.Summary
}

// Figure is one thing that was found.
type Figure struct {
	Name string `json:"name"`
	trial.Summary
	Unit  string `json:"unit"`
	Bound *Bound `json:"bound,omitempty"`
}

// Bound is what a figure should reach.
type Bound struct {
	Value float64 `json:"value"`
	// AtMost means that less is better; otherwise more is.
	AtMost bool `json:"atMost"`
}

// AtLeast bounds a figure from below.
func AtLeast(value float64) *Bound { return &Bound{Value: value} }

// AtMost bounds a figure from above.
func AtMost(value float64) *Bound { return &Bound{Value: value, AtMost: true} }

// Of makes a figure of the values of all trials.
func Of(name, unit string, values []float64, bound *Bound) Figure {
	return Figure{Name: name, Unit: unit, Summary: trial.Summarise(values), Bound: bound}
}

// One makes a figure of one value.
func One(name, unit string, value float64, bound *Bound) Figure {
	return Of(name, unit, []float64{value}, bound)
}

// Reached reports whether the median is within the bound; without a bound it is true.
func (f *Figure) Reached() bool {
	switch {
	case f.Bound == nil:
		return true
	case f.Bound.AtMost:
		return f.Median <= f.Bound.Value
	default:
		return f.Median >= f.Bound.Value
	}
}

// Verdict is one word about a figure.
func (r *Result) verdict(f *Figure) string {
	switch {
	case r.Refused != "":
		return "refused"
	case f.Bound == nil:
		return ""
	case f.Reached():
		return "reached"
	}
	return "NOT REACHED"
}

func (b *Bound) text(unit string) string {
	if b == nil {
		return ""
	}
	sign := "≥ "
	if b.AtMost {
		sign = "≤ "
	}
	return sign + Number(b.Value) + suffix(unit)
}

func suffix(unit string) string {
	if unit == "" || unit == "×" || unit == "%" {
		return unit
	}
	return " " + unit
}

// Number formats a value with three significant digits, with separated thousands.
func Number(v float64) string {
	switch {
	case v == float64(int64(v)) && v < 1000 && v > -1000:
		return strconv.FormatInt(int64(v), 10)
	case v >= 1000 || v <= -1000:
		digits := strconv.FormatInt(int64(math.Round(v)), 10)
		for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	case v >= 100 || v <= -100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10 || v <= -10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func (f *Figure) spread() string {
	if f.Count < 2 {
		return ""
	}
	return Number(f.Low) + " to " + Number(f.High)
}

// measured returns the figures that have a value; a refused workload may lack some.
func (r *Result) measured() []Figure {
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f Figure) bool { return f.Count == 0 })
}

// Sort orders the results by letters and numbers, those without a number last.
func (r *Run) Sort() {
	slices.SortStableFunc(r.Results, func(a, b Result) int {
		letterOfA, numberOfA := split(a.ID)
		letterOfB, numberOfB := split(b.ID)
		return cmp.Or(cmp.Compare(letterOfA, letterOfB), cmp.Compare(numberOfA, numberOfB))
	})
}

// split parts an id, as B12.
func split(id string) (letter string, number int) {
	n, err := strconv.Atoi(strings.TrimLeft(id, "BL"))
	if err != nil {
		return "~", 0
	}
	return id[:1], n
}

// Keep adds the results of a former run, except those of the workloads that are measured again, and
// lets each say of which run it is.
func (r *Run) Keep(former *Run, again []string) {
	for i := range former.Results {
		kept := former.Results[i]
		if slices.Contains(again, kept.ID) {
			continue
		}
		if kept.Measured == nil {
			kept.Measured = &former.Machine
		}
		r.Results = append(r.Results, kept)
	}
}

// Read returns a run that was written as JSON, an empty one where there is no such file.
func Read(path string) (*Run, error) {
	var r Run
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("former results, which another --out leaves alone: %w", err)
	}
	return &r, nil
}

// JSON writes the run.
func (r *Run) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Text writes the tables for a terminal.
func (r *Run) Text(w io.Writer) error {
	var b strings.Builder
	for i := range r.Results {
		b.WriteString(r.Results[i].Text())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Text is the table of one result for a terminal.
func (r *Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s %s (%.0f s)\n", r.ID, r.Title, r.Took.Seconds())
	if r.Refused != "" {
		fmt.Fprintf(&b, "  REFUSED: %s\n", r.Refused)
	}
	figures := r.measured()
	for i := range figures {
		f := &figures[i]
		fmt.Fprintf(&b, "  %-58s %12s%-10s %-22s %-16s %s\n", f.Name, Number(f.Median), suffix(f.Unit), f.spread(), f.Bound.text(f.Unit), r.verdict(f))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "  - %s\n", note)
	}
	return b.String()
}

// Markdown writes the tables as a page, which shows plots that are beside it.
func (r *Run) Markdown(w io.Writer, plots []string) error {
	var b strings.Builder
	m := &r.Machine
	b.WriteString("# Measurements\n\nWritten by `make bench`; see [the method](../performance.md). Do not edit this page by hand.\n\n")
	if m.Quick {
		b.WriteString("**A quick run: it shows that everything works, not how fast.**\n\n")
	}
	fmt.Fprintf(&b, "| | |\n| --- | --- |\n| date | %s |\n| commit | %s |\n| machine | %s, %d cores, %d MB, Linux %s |\n",
		m.Date.UTC().Format(minute), m.Commit, m.Processor, m.Cores, m.MemoryMB, m.Kernel)
	fmt.Fprintf(&b, "| load before | %.2f |\n| versions | %s, Postgres %s (%s), ClickHouse %s |\n| peers | %s |\n| trials | %d |\n\n",
		m.Load, m.Go, m.Postgres, durability(m.Durable), m.ClickHouse, strings.Join(m.Peers, "; "), m.Trials)
	b.WriteString("Figures are medians over the trials. The spread is from the lowest to the highest value.\n\n")
	for _, plot := range plots {
		fmt.Fprintf(&b, "![%s](%s)\n\n", strings.TrimSuffix(plot, ".svg"), plot)
	}
	for i := range r.Results {
		r.Results[i].markdown(&b)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// minute is how instants are written.
const minute = "2006-01-02 15:04 UTC"

func durability(durable bool) string {
	if durable {
		return "waits for the disk"
	}
	return "does not wait for the disk"
}

func (r *Result) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "## %s %s\n\nUnit: %s.", r.ID, r.Title, r.Unit)
	if r.Floor != "" {
		fmt.Fprintf(b, " Floor: %s.", r.Floor)
	}
	if r.Peer != "" {
		fmt.Fprintf(b, " Peer: %s.", r.Peer)
	}
	fmt.Fprintf(b, " Took %.0f s.\n\n", r.Took.Seconds())
	if m := r.Measured; m != nil {
		fmt.Fprintf(b, "Measured %s, commit %s, %s, %d cores, load before %.2f, %d trials.\n\n",
			m.Date.UTC().Format(minute), m.Commit, m.Processor, m.Cores, m.Load, m.Trials)
	}
	if r.Refused != "" {
		fmt.Fprintf(b, "**Refused:** %s.\n\n", r.Refused)
	}
	if figures := r.measured(); len(figures) > 0 {
		b.WriteString("| figure | median | spread | target | |\n| --- | --: | --- | --- | --- |\n")
		for i := range figures {
			f := &figures[i]
			fmt.Fprintf(b, "| %s | %s%s | %s | %s | %s |\n", f.Name, Number(f.Median), suffix(f.Unit), f.spread(), f.Bound.text(f.Unit), r.verdict(f))
		}
		b.WriteString("\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "- %s\n", note)
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n")
	}
}
