package evaluator

import (
	"math"
	"slices"
)

// A rule wants nothing that ended before it was armed, but its look-back reaches
// further behind: what began before and failed afterwards counts. So the first look
// of a rule would read all that its look-back holds, for the sake of what ran at one
// moment, and the rules that share its scans would wait for that. Therefore a scan
// behind the cursors leaves out what ended before anybody who has to judge it there
// wants anything.
//
// Whoever has nothing to judge before an instant does not count there: what began
// before is judged already. Rules that have run for long have to judge the last
// seconds alone, and one that was just made has to judge everything. Their changed
// seconds are therefore parted where the former ones begin to judge, and what lies
// before is not read in one go with what is new.

// wanted is what a group wants behind its cursors: of what begins before splitNS,
// what ended at or after firstNS, and of the rest, what ended at or after allNS.
type wanted struct{ splitNS, firstNS, allNS int64 }

// wanted looks at who has to judge from where on, as [ledger.recall] left it, if
// anything changed.
func (g *group) wanted(changed []int64) wanted {
	w := wanted{splitNS: math.MinInt64, firstNS: math.MaxInt64, allNS: math.MaxInt64}
	if len(changed) == 0 {
		return w
	}
	begin := int64(math.MaxInt64)
	for s := range g.sinces {
		begin = min(begin, s.pendingNS)
	}
	for s, since := range g.sinces {
		w.allNS = min(w.allNS, since)
		if s.pendingNS == begin {
			w.firstNS = min(w.firstNS, since)
		}
	}
	if w.allNS == w.firstNS {
		return w
	}
	w.splitNS = math.MaxInt64
	for s, since := range g.sinces {
		if since < w.firstNS {
			w.splitNS = min(w.splitNS, floor(s.pendingNS, secondNS))
		}
	}
	return w
}

// sinces yields the stand of each rule that is alone, and of each cohort, with the
// instant before which nothing ended that it wants.
func (g *group) sinces(yield func(*stand, int64) bool) {
	for _, j := range g.judges {
		if !yield(j.stand, j.WantsSinceNS()) {
			return
		}
	}
	for _, c := range g.cohorts {
		if !yield(c.stand, c.sinceNS) {
			return
		}
	}
}

// stretches returns the ranges of changed seconds, parted where the split lies.
func (w wanted) stretches(changed []int64) []stretch {
	all := runs(changed, secondNS, gapSeconds)
	for i, s := range all {
		if s.fromNS < w.splitNS && w.splitNS < s.toNS {
			return slices.Replace(all, i, i+1, stretch{s.fromNS, w.splitNS}, stretch{w.splitNS, s.toNS})
		}
	}
	return all
}

// ofAll reports whether everybody may have to judge in a stretch.
func (w wanted) ofAll(s stretch) bool { return s.toNS > w.splitNS }

// endedSince returns what [Scan.EndedSinceNS] is to be for a stretch: nothing where
// all of it begins later.
func (w wanted) endedSince(s stretch) int64 {
	since := w.firstNS
	if w.ofAll(s) {
		since = w.allNS
	}
	if since <= s.fromNS {
		return 0
	}
	return since
}

// wantsSince returns the instant before which nothing ended that any judge wants.
func wantsSince(judges []*judge) int64 {
	since := int64(math.MaxInt64)
	for _, j := range judges {
		since = min(since, j.WantsSinceNS())
	}
	return since
}
