package trial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/bench/trial"
)

func quiet(string) {}

// took makes a complete measure of 100 operations.
func took(d time.Duration) trial.Measure { return trial.Whole(100, d, nil) }

func TestSidesAlternate(t *testing.T) {
	var order []string
	side := func(name string) trial.Side {
		return trial.Side{Name: name, Run: func(context.Context, int) (trial.Measure, error) {
			order = append(order, name)
			return took(time.Second), nil
		}}
	}
	runs, err := trial.Alternate(t.Context(), []trial.Side{side("A"), side("B"), side("C")}, 2, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "ABCCBAABC" {
		t.Errorf("order %s, want ABCCBAABC", got)
	}
	if len(runs["A"]) != 2 || len(runs["C"]) != 2 {
		t.Errorf("%d and %d measures, want 2 of each: the first trial warms up", len(runs["A"]), len(runs["C"]))
	}
}

func TestIncompleteRunsAreRefused(t *testing.T) {
	whole := trial.Measure{Asked: 10, Sent: 10, Recorded: 10, Elapsed: time.Second}
	tests := map[string]struct {
		spoil func(*trial.Measure)
		want  string
	}{
		"one was not received":  {func(m *trial.Measure) { m.Sent = 9 }, "9 were received"},
		"one too many":          {func(m *trial.Measure) { m.Sent = 11 }, "11 were received"},
		"one was not recorded":  {func(m *trial.Measure) { m.Recorded = 9 }, "9 recorded"},
		"one came twice":        {func(m *trial.Measure) { m.Repeats = 1 }, "1 of 10 came more than once"},
		"there was nothing":     {func(m *trial.Measure) { *m = trial.Measure{Elapsed: time.Second} }, "nothing was measured"},
		"it took no time":       {func(m *trial.Measure) { m.Elapsed = 0 }, "nothing was measured"},
		"time went backwards":   {func(m *trial.Measure) { m.Elapsed = -time.Second }, "nothing was measured"},
		"nothing is wrong here": {func(*trial.Measure) {}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spoilt := whole
			test.spoil(&spoilt)
			// The second trial is the one that is not complete.
			side := trial.Side{Name: "A", Run: func(_ context.Context, nth int) (trial.Measure, error) {
				if nth == 1 {
					return spoilt, nil
				}
				return whole, nil
			}}
			runs, err := trial.Alternate(t.Context(), []trial.Side{side}, 2, quiet)
			if test.want == "" {
				if err != nil || len(runs["A"]) != 2 {
					t.Errorf("%d measures, %v", len(runs["A"]), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
			if len(runs["A"]) != 0 {
				t.Errorf("%d measures are kept, want none", len(runs["A"]))
			}
		})
	}
}

func TestFailureEndsTheAlternation(t *testing.T) {
	broken := errors.New("broken")
	ran := 0
	sides := []trial.Side{
		{Name: "A", Run: func(context.Context, int) (trial.Measure, error) { return trial.Measure{}, broken }},
		{Name: "B", Run: func(context.Context, int) (trial.Measure, error) { ran++; return took(1), nil }},
	}
	if _, err := trial.Alternate(t.Context(), sides, 3, quiet); !errors.Is(err, broken) || ran > 0 {
		t.Errorf("error %v after %d more runs, want the failure and none", err, ran)
	}
}

func TestFloorsThatVaryAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		floor   bool
		last    time.Duration
		refused bool
	}{
		"a floor that varies by less":         {true, 1180 * time.Millisecond, false},
		"a floor that varies by more":         {true, 1300 * time.Millisecond, true},
		"another side may vary as it pleases": {false, 9 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			side := trial.Side{Name: "floor", Floor: test.floor, Run: func(_ context.Context, nth int) (trial.Measure, error) {
				if nth == 0 {
					return took(time.Minute), nil // that of the trial that warms up does not count
				}
				if nth == 3 {
					return took(test.last), nil
				}
				return took(time.Second), nil
			}}
			_, err := trial.Alternate(t.Context(), []trial.Side{side}, 3, quiet)
			if (err != nil) != test.refused {
				t.Errorf("error %v, want refused = %v", err, test.refused)
			}
		})
	}
}

func TestRatiosAreOfTheSameTrial(t *testing.T) {
	// The machine grows slower: each trial says that A is twice as fast.
	runs := trial.Runs{
		"A": {took(1 * time.Second), took(2 * time.Second), took(4 * time.Second)},
		"B": {took(2 * time.Second), took(4 * time.Second), took(8 * time.Second)},
	}
	if got := runs.Ratios("A", "B"); !slices.Equal(got, []float64{2, 2, 2}) {
		t.Errorf("ratios %v, want 2 in each trial", got)
	}
	if got := runs.Ratios("A", "nobody"); len(got) != 0 {
		t.Errorf("ratios %v over a side that never ran, want none", got)
	}
}

func TestProcessorTimeIsSummed(t *testing.T) {
	m := trial.Whole(1000, time.Second, map[string]time.Duration{"a": 30 * time.Millisecond, "b": 12 * time.Millisecond})
	if got := m.Micros(); got != 42 {
		t.Errorf("%v µs, want 42", got)
	}
	if got := m.Rate(); got != 1000 {
		t.Errorf("%v/s, want 1000", got)
	}
}

func TestSummaries(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   trial.Summary
	}{
		{nil, trial.Summary{}},
		{[]float64{3}, trial.Summary{Median: 3, Low: 3, High: 3, Count: 1}},
		{[]float64{9, 1, 2}, trial.Summary{Median: 2, Low: 1, High: 9, Count: 3}},
		{[]float64{4, 1, 2, 9}, trial.Summary{Median: 3, Low: 1, High: 9, Count: 4}},
	} {
		if got := trial.Summarise(test.values); got != test.want {
			t.Errorf("Summarise(%v) = %+v, want %+v", test.values, got, test.want)
		}
	}
	if got := (trial.Summary{Median: 10, Low: 9, High: 12}).Spread(); got != 0.3 {
		t.Errorf("spread %v, want 0.3", got)
	}
}

func TestQuantiles(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for _, test := range []struct {
		values  []float64
		q, want float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.99, 7},
		{[]float64{7}, 0.01, 7},
		{hundred, 0.50, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{[]float64{1, 2, 3}, 0.5, 2},
	} {
		if got := trial.Quantile(test.values, test.q); got != test.want {
			t.Errorf("the quantile %v of %d values is %v, want %v", test.q, len(test.values), got, test.want)
		}
	}
}
