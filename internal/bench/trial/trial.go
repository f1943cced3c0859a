// Package trial runs the sides of a comparison, and says what the comparison is worth.
//
// Sides are run in alternation: forwards in one trial, backwards in the next (ABBA), so that a
// machine that becomes slower or faster favours none. The first trial warms everything up and is
// discarded. Ratios are calculated within a trial, between neighbours in time, and only then summed
// up by their median.
//
// Two things make a comparison worthless, and it is refused: work that was not complete (the
// numbers sent, recorded and requested must be equal, without a repetition), and a floor that
// varied by more than a fifth, since then the machine was measured and not the program.
package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MostSpread is the largest difference between the rates of a floor, relative to their median.
const MostSpread = 0.20

// ErrNotQuiet says that a floor varied by more than [MostSpread]. Another run may succeed.
var ErrNotQuiet = errors.New("the machine was not quiet")

// Measure is the result of one run of one side.
type Measure struct {
	// Asked is how many operations there were, Sent how many different ones the receiver got,
	// Recorded how many are recorded as done. They are equal in a complete run.
	Asked    int `json:"asked"`
	Sent     int `json:"sent"`
	Recorded int `json:"recorded"`
	// Repeats is how many the receiver got again.
	Repeats int           `json:"repeats"`
	Elapsed time.Duration `json:"elapsedNs"`
	// CPU is the CPU time of each process.
	CPU map[string]time.Duration `json:"cpuNs,omitempty"`
}

// Whole returns the measure of a run without a receiver, in which n operations were done.
func Whole(n int, elapsed time.Duration, cpu map[string]time.Duration) Measure {
	return Measure{Asked: n, Sent: n, Recorded: n, Elapsed: elapsed, CPU: cpu}
}

// Check returns an error that says what was not complete.
func (m *Measure) Check() error {
	switch {
	case m.Asked <= 0 || m.Elapsed <= 0:
		return fmt.Errorf("nothing was measured: %d operations in %v", m.Asked, m.Elapsed)
	case m.Sent != m.Asked || m.Recorded != m.Asked:
		return fmt.Errorf("not complete: of %d, %d were received and %d recorded", m.Asked, m.Sent, m.Recorded)
	case m.Repeats != 0:
		return fmt.Errorf("%d of %d came more than once", m.Repeats, m.Asked)
	}
	return nil
}

// Rate is operations per second.
func (m *Measure) Rate() float64 { return float64(m.Asked) / m.Elapsed.Seconds() }

// Micros is the CPU time per operation in microseconds, of all processes.
func (m *Measure) Micros() float64 {
	var all time.Duration
	for _, used := range m.CPU {
		all += used
	}
	return float64(all) / float64(time.Microsecond) / float64(m.Asked)
}

// Side is one of the things that are compared.
type Side struct {
	Name string
	// Floor says that other sides are compared with this one.
	Floor bool
	// Run does the work once; nth counts from 0, which warms up.
	Run func(ctx context.Context, nth int) (Measure, error)
}

// Runs holds the measures of each side, in the order of the trials.
type Runs map[string][]Measure

// Alternate runs the sides in the given number of trials and one to warm up. report is called with
// each run. It ends with the first run that fails or is not complete.
func Alternate(ctx context.Context, sides []Side, trials int, report func(string)) (Runs, error) {
	runs := make(Runs, len(sides))
	for nth := range trials + 1 {
		order := slices.Clone(sides)
		if nth%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			m, err := side.Run(ctx, nth)
			if err == nil {
				err = m.Check()
			}
			if err != nil {
				return runs, fmt.Errorf("%s, trial %d: %w", side.Name, nth, err)
			}
			report(fmt.Sprintf("trial %d of %d, %s: %.0f/s, %.1f µs of CPU each", nth, trials, side.Name, m.Rate(), m.Micros()))
			if nth > 0 {
				runs[side.Name] = append(runs[side.Name], m)
			}
		}
	}
	return runs, CheckFloors(sides, runs)
}

// CheckFloors returns an [ErrNotQuiet] with the floors whose rates differ too much.
func CheckFloors(sides []Side, runs Runs) error {
	for _, side := range sides {
		if !side.Floor {
			continue
		}
		if s := Summarise(runs.Of(side.Name, (*Measure).Rate)); s.Spread() > MostSpread {
			return fmt.Errorf("the floor %s varied by %.0f%% (%.0f/s to %.0f/s), more than %.0f%%: %w",
				side.Name, 100*s.Spread(), s.Low, s.High, 100*MostSpread, ErrNotQuiet)
		}
	}
	return nil
}

// Of returns a figure of each run of a side.
func (r Runs) Of(side string, figure func(*Measure) float64) []float64 {
	out := make([]float64, len(r[side]))
	for i := range r[side] {
		out[i] = figure(&r[side][i])
	}
	return out
}

// Ratios returns the rate of one side over that of another, trial by trial.
func (r Runs) Ratios(side, over string) []float64 {
	a, b := r.Of(side, (*Measure).Rate), r.Of(over, (*Measure).Rate)
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

// Summary sums up values.
type Summary struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Count  int     `json:"count"`
}

// Summarise returns the zero summary of no values.
func Summarise(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Summary{Median: median, Low: sorted[0], High: sorted[len(sorted)-1], Count: len(sorted)}
}

// Spread is the difference between the extreme values, relative to their median.
func (s Summary) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.High - s.Low) / s.Median
}

// Quantile returns the value at or below which the part q of the values is, by nearest rank; 0
// without values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}
