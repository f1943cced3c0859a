package backlog

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"tocsin/cursor"
)

// A plan says what to read, and in which order. It is a pure function of the backlog. Recent
// changes and new exchanges come first, in one range if they are close to each other. Everything
// older follows in ascending order, so that processes that die one after the other still make
// progress.

const (
	// gapBuckets is how many buckets may be between two changed ones that are read in one scan: a
	// query costs more than the rows of some seconds.
	gapBuckets = 5
	// mostRangeNS bounds the length of one range of older changes: a pass whose interval is over
	// still ends the range at hand.
	mostRangeNS = 10 * minuteNS

	// How often the rows of the older look-back are counted, and how often its fingerprints are
	// compared although the count is the same, because as many rows may have been merged away as
	// were added. Fine is the last hour, coarse the part before.
	fineLookEvery, fineCompareEvery     = 10 * time.Second, time.Minute
	coarseLookEvery, coarseCompareEvery = time.Minute, 15 * time.Minute
	// fineLook is the key of the look at the fine part. The keys of the looks at earlier hours are
	// their beginnings.
	fineLook = int64(-1)
)

// Stretch is a range of start times to read and to evaluate.
type Stretch struct {
	cursor.Range
	// Server is the server that showed the changes of the range. Only its answers can conclude
	// them.
	Server string
	// Forward says that the range ends at the watermark, and that reading it moves the cursor
	// there.
	Forward bool
}

// Recent returns the ranges of recent changes, and last the range forward from an instant to the
// watermark.
func (b *Backlog) Recent(server string, fromNS, forwardNS, watermarkNS int64) []Stretch {
	var plan []Stretch
	for _, at := range slices.Sorted(maps.Keys(b.left)) {
		if at >= fromNS && at < forwardNS {
			plan = b.join(plan, at, min(at+b.widthNS(at), forwardNS))
		}
	}
	last := len(plan) - 1
	if last >= 0 && forwardNS-plan[last].ToNS <= gapBuckets*secondNS {
		plan[last].ToNS, plan[last].Forward, plan[last].Server = watermarkNS, true, server
		return plan
	}
	return append(plan, Stretch{Range: cursor.Range{FromNS: forwardNS, ToNS: watermarkNS}, Server: server, Forward: true})
}

// Older returns the ranges of changes before an instant, oldest first.
func (b *Backlog) Older(beforeNS int64) []Stretch {
	var plan []Stretch
	for _, at := range slices.Sorted(maps.Keys(b.left)) {
		if at < beforeNS {
			plan = b.join(plan, at, at+b.widthNS(at))
		}
	}
	return plan
}

// join adds a bucket of the backlog to a plan.
func (b *Backlog) join(plan []Stretch, fromNS, toNS int64) []Stretch {
	server := b.left[fromNS].server
	if n := len(plan); n > 0 {
		last := &plan[n-1]
		if last.Server == server && fromNS-last.ToNS <= gapBuckets*b.widthNS(fromNS) && toNS-last.FromNS <= mostRangeNS {
			last.ToNS = toNS
			return plan
		}
	}
	return append(plan, Stretch{Range: cursor.Range{FromNS: fromNS, ToNS: toNS}, Server: server})
}

// Look is a look at a range of the older look-back.
type Look struct {
	cursor.Range
	// WidthNS is the width of its buckets.
	WidthNS      int64
	key          int64
	every        time.Duration
	compareEvery time.Duration
}

// Looks returns the looks to take at a watermark: those that are due, except those that failed
// shortly before. The fine one comes first, unless it failed. The others are ordered by when they
// were last taken or tried, longest ago first.
func (b *Backlog) Looks(recentFromNS, watermarkNS int64) []Look {
	plan := slices.DeleteFunc(b.due(recentFromNS, watermarkNS), func(l Look) bool {
		failedNS := b.looks[l.key].failedNS
		return failedNS != 0 && watermarkNS >= failedNS && watermarkNS-failedNS < l.every.Nanoseconds()
	})
	last := func(l Look) int64 {
		if l.key == fineLook && b.looks[l.key].failedNS == 0 {
			return math.MinInt64
		}
		return max(b.looks[l.key].lookedNS, b.looks[l.key].failedNS)
	}
	slices.SortStableFunc(plan, func(l, o Look) int { return cmp.Compare(last(l), last(o)) })
	return plan
}

// due returns the looks that are due at a watermark, over the look-back up to the range that every
// pass compares.
func (b *Backlog) due(recentFromNS, watermarkNS int64) []Look {
	var plan []Look
	add := func(l Look) {
		last, known := b.looks[l.key]
		due := !known || watermarkNS-last.lookedNS >= l.every.Nanoseconds() || watermarkNS < last.lookedNS
		if l.FromNS < l.ToNS && (due || b.isUnlooked(l.Range)) {
			plan = append(plan, l)
		}
	}
	fine := cursor.Range{FromNS: max(floor(b.fromNS, minuteNS), b.fineFromNS), ToNS: recentFromNS}
	add(Look{fine, secondNS, fineLook, fineLookEvery, fineCompareEvery})
	for hour := floor(b.fromNS, hourNS); hour < b.fineFromNS; hour += hourNS {
		coarse := cursor.Range{FromNS: hour, ToNS: min(hour+hourNS, b.fineFromNS)}
		add(Look{coarse, minuteNS, hour, coarseLookEvery, coarseCompareEvery})
	}
	return plan
}

// isUnlooked reports whether a part of a range was not observed yet.
func (b *Backlog) isUnlooked(r cursor.Range) bool { return slices.ContainsFunc(b.unlooked, r.Overlaps) }

// Compares reports whether the fingerprints of a look must be compared: the rows that a server
// counts there may differ from the last look, or were not counted.
func (b *Backlog) Compares(l Look, server string, rows uint64, watermarkNS int64) bool {
	last, known := b.looks[l.key]
	return !known || server == "" || last.server != server || last.of != l.Range || last.rows != rows ||
		watermarkNS-last.comparedNS >= l.compareEvery.Nanoseconds() || b.isUnlooked(l.Range)
}

// Compare takes the fingerprints that a server showed for a look.
func (b *Backlog) Compare(l Look, server string, prints []Fingerprint, watermarkNS int64) {
	b.compare(server, prints, l.Range, watermarkNS)
	last := b.looks[l.key]
	last.comparedNS = watermarkNS
	b.looks[l.key] = last
}

// Looked notes that a look was taken in which a server counted rows. server is "" if the count says
// nothing about what was compared.
func (b *Backlog) Looked(l Look, server string, rows uint64, watermarkNS int64) {
	last := b.looks[l.key]
	last.of, last.server, last.rows, last.lookedNS, last.failedNS = l.Range, server, rows, watermarkNS, 0
	b.looks[l.key] = last
}

// LookFailed notes that a look failed. It stays due, but comes after the others for a while.
func (b *Backlog) LookFailed(l Look, watermarkNS int64) {
	last := b.looks[l.key]
	last.failedNS = watermarkNS
	b.looks[l.key] = last
}

// Skip notes which looks are due and were not taken by a pass, for whatever reason. Until they are
// taken, the base of the look-back does not move, so that exchanges that become visible meanwhile
// at the far end of the look-back are still looked at.
func (b *Backlog) Skip(recentFromNS, watermarkNS int64) {
	b.skipped = nil
	for _, l := range b.due(recentFromNS, watermarkNS) {
		b.skipped = append(b.skipped, l.Range)
	}
}

// SkipAll notes that no rule evaluates what is behind the cursor, so there is nothing to look at.
func (b *Backlog) SkipAll() { b.unlooked, b.skipped = nil, nil }
