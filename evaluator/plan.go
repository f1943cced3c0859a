package evaluator

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A plan says what to read, and in which order. It is a pure function of what is
// remembered: recent changes and what is new come first, in one range where they lie
// near each other; everything older follows from its beginning on, so that processes
// that die one after the other come further.

const (
	// gapBuckets is how many buckets may lie between two changed ones that are read in
	// one scan: a query costs more than the rows of some seconds.
	gapBuckets = 5
	// spanNS bounds the start times of one range of older changes.
	spanNS = 10 * minuteNS

	// How often the rows of the older look-back are counted, and how often its
	// fingerprints are compared although their number is the same: as many may have
	// been merged away as came. Fine is the last hour, coarse what lies before.
	fineLookEvery, fineCompareEvery     = 10 * time.Second, time.Minute
	coarseLookEvery, coarseCompareEvery = time.Minute, 15 * time.Minute
	// fineLook is the key of the look at the fine part; those at hours before it have
	// their beginnings as keys.
	fineLook = int64(-1)
)

// stretch is a range of start times to read and to judge.
type stretch struct {
	Range
	// server showed the changes of the range: only it can conclude them.
	server string
	// forward says that the range ends at the watermark, to which it moves the cursor.
	forward bool
}

// planRecent returns the ranges of recent changes, and last the one that goes forward
// from an instant to the watermark.
func (m *memory) planRecent(server string, fromNS, forwardNS, watermarkNS int64) []stretch {
	var plan []stretch
	for _, at := range slices.Sorted(maps.Keys(m.backlog)) {
		if at >= fromNS && at < forwardNS {
			plan = m.join(plan, at, min(at+m.widthNS(at), forwardNS))
		}
	}
	last := len(plan) - 1
	if last >= 0 && forwardNS-plan[last].ToNS <= gapBuckets*secondNS {
		plan[last].ToNS, plan[last].forward, plan[last].server = watermarkNS, true, server
		return plan
	}
	return append(plan, stretch{Range: Range{forwardNS, watermarkNS}, server: server, forward: true})
}

// planOlder returns the ranges of changes before an instant, the oldest first.
func (m *memory) planOlder(beforeNS int64) []stretch {
	var plan []stretch
	for _, at := range slices.Sorted(maps.Keys(m.backlog)) {
		if at < beforeNS {
			plan = m.join(plan, at, at+m.widthNS(at))
		}
	}
	return plan
}

// join adds a bucket of the backlog to a plan.
func (m *memory) join(plan []stretch, fromNS, toNS int64) []stretch {
	server := m.backlog[fromNS].server
	if n := len(plan); n > 0 {
		last := &plan[n-1]
		if last.server == server && fromNS-last.ToNS <= gapBuckets*m.widthNS(fromNS) && toNS-last.FromNS <= spanNS {
			last.ToNS = toNS
			return plan
		}
	}
	return append(plan, stretch{Range: Range{fromNS, toNS}, server: server})
}

// planned is a look to take.
type planned struct {
	key int64
	Range
	compareEvery time.Duration
}

// planLooks returns the looks that are due at a watermark over the look-back up to where
// every pass compares: those first that were taken longest ago, and of those that never
// were the fine one, then the oldest.
func (m *memory) planLooks(recentFromNS, watermarkNS int64) []planned {
	var plan []planned
	add := func(p planned, every time.Duration) {
		last, taken := m.looks[p.key]
		due := !taken || watermarkNS-last.lookedNS >= every.Nanoseconds() || watermarkNS < last.lookedNS
		if p.FromNS < p.ToNS && (due || m.isUnlooked(p.Range)) {
			plan = append(plan, p)
		}
	}
	fine := max(floor(m.fromNS, minuteNS), m.fineFromNS)
	add(planned{fineLook, Range{fine, recentFromNS}, fineCompareEvery}, fineLookEvery)
	for hour := floor(m.fromNS, hourNS); hour < m.fineFromNS; hour += hourNS {
		add(planned{hour, Range{hour, min(hour+hourNS, m.fineFromNS)}, coarseCompareEvery}, coarseLookEvery)
	}
	slices.SortStableFunc(plan, func(a, b planned) int { return cmp.Compare(m.looks[a.key].lookedNS, m.looks[b.key].lookedNS) })
	return plan
}

// isUnlooked reports whether any of a range was not observed yet.
func (m *memory) isUnlooked(r Range) bool { return slices.ContainsFunc(m.unlooked, r.overlaps) }

// compares reports whether the fingerprints of a planned look have to be compared,
// because the rows may be others than at the last look.
func (m *memory) compares(p planned, server string, rows uint64, watermarkNS int64) bool {
	last, taken := m.looks[p.key]
	return !taken || last.server != server || last.of != p.Range || last.rows != rows ||
		watermarkNS-last.comparedNS >= p.compareEvery.Nanoseconds() || m.isUnlooked(p.Range)
}
