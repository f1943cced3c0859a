package simulate

import (
	"errors"
	"time"

	"tocsin/evaluator/window/counting"
)

// countingManner is how ClickHouse answers queries about windows.
type countingManner int

const (
	countsAll countingManner = iota
	// fewKinds limits the tallies of an answer; noTallies has each query that tallies fail; talliesHang has it take longer
	// than a pass may.
	fewKinds
	noTallies
	talliesHang
	// slowCounts has each count by conditions take as long as a pass; failingCounts has those of one tenant fail, and
	// hangingCounts take longer than a pass may.
	slowCounts
	failingCounts
	hangingCounts
	countingManners
)

func (m countingManner) String() string {
	return [...]string{
		"answers all", "returns one tally at most", "fails to tally", "takes an hour to tally", "takes as long as a pass to count by conditions",
		"fails to count by the conditions of one tenant", "takes an hour to count by the conditions of one tenant",
	}[m]
}

// takesLong reports whether time passes while a process waits for an answer.
func (m countingManner) takesLong() bool {
	return m == talliesHang || m == slowCounts || m == hangingCounts
}

var errMemory = errors.New("memory limit exceeded")

// countsBy changes how ClickHouse answers queries about windows.
func (w *world) countsBy(m countingManner) {
	if w.counting == m {
		return
	}
	w.counting, w.ch.MostTallies = m, 0
	if m == fewKinds {
		w.ch.MostTallies = 1
	}
	w.note("from now on, ClickHouse %s", m)
}

// miscount has ClickHouse answer differently, or as it should again, and some exchanges arrive that count.
func (w *world) miscount() {
	m := countsAll
	if w.counting == countsAll {
		m = countingManner(1 + w.rand.IntN(int(countingManners)-1))
	}
	w.countsBy(m)
	for range 2 + w.rand.IntN(6) {
		w.row(-int64(10*time.Second), int64(time.Second)/2, true)
	}
	w.run(time.Duration(5+w.rand.IntN(30)) * time.Second)
}

// tallyTakes is how long a tally takes, and its error.
func (w *world) tallyTakes(q *counting.TallyQuery) (takes time.Duration, err error) {
	switch { // a query that reads nothing succeeds
	case q.FromNS[0] == q.ToNS:
	case w.counting == noTallies:
		return 0, errMemory
	case w.counting == talliesHang:
		return time.Hour, nil
	}
	return 0, nil
}

// countTakes is the same for a count by conditions.
func (w *world) countTakes(list []counting.Query) (takes time.Duration, err error) {
	ofOne := false
	for i := range list {
		ofOne = ofOne || list[i].TenantID == w.people.tenants[0]
	}
	switch {
	case w.counting == slowCounts:
		return min(w.conf.interval, 2*time.Second), nil
	case w.counting == failingCounts && ofOne:
		return 0, errMemory
	case w.counting == hangingCounts && ofOne:
		return time.Hour, nil
	}
	return 0, nil
}
