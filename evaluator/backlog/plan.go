package backlog

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator/source"
)

// A plan says what to read, and in which order. It depends on the backlog alone. Recent
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
			plan = b.appendBucket(plan, at, min(at+b.widthNS(at), forwardNS))
		}
	}
	last := len(plan) - 1
	if last >= 0 && forwardNS-plan[last].ToNS <= gapBuckets*secondNS {
		plan[last].ToNS, plan[last].Forward, plan[last].Server = watermarkNS, true, server
		return plan
	}
	return append(plan, Stretch{Range: cursor.Range{FromNS: forwardNS, ToNS: watermarkNS}, Server: server, Forward: true})
}

// Older returns the ranges of changes before an instant, oldest first. Those that could not be read are cut in two. It
// forgets failures of ranges that are no longer planned, so a pass calls it once.
func (b *Backlog) Older(beforeNS int64) []Stretch {
	var plan []Stretch
	for _, at := range slices.Sorted(maps.Keys(b.left)) {
		if at < beforeNS {
			plan = b.appendBucket(plan, at, at+b.widthNS(at))
		}
	}
	return b.cutUnread(plan)
}

// appendBucket adds a bucket of the backlog to a plan: to its last range if that is near enough, otherwise as a range of its own.
func (b *Backlog) appendBucket(plan []Stretch, fromNS, toNS int64) []Stretch {
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

// Look is a look at a range of the older look-back: its last hour, or an hour before. A look that failed
// is cut in two at a whole minute, and the parts are looks of their own.
type Look struct {
	cursor.Range
	// WidthNS is the width of its buckets.
	WidthNS      int64
	key          lookKey
	every        time.Duration
	compareEvery time.Duration
	// part says that the look was cut.
	part bool
}

// fine reports whether it is the look at all of the last hour.
func (l *Look) fine() bool { return l.WidthNS == secondNS && !l.part }

// lookKey identifies a look from one pass to the next: by the width of its buckets, and by the hour or
// the cut at which it begins. fromNS is 0 for the fine look that no cut precedes: its beginning moves
// with the watermark.
type lookKey struct{ widthNS, fromNS int64 }

// Looks returns the looks to take at a watermark: those that are due, except those that failed
// shortly before. The fine one comes first, unless it failed or was cut. The others are ordered by when
// they were last taken or tried, longest ago first. If a pass had time for the fine one only, the others come
// first in the next plan: a pass that has little time takes one look, and what becomes visible late would be
// found within the last hour only.
func (b *Backlog) Looks(recentFromNS, watermarkNS int64) []Look {
	b.mergeLooks(recentFromNS)
	plan := slices.DeleteFunc(b.looksTo(recentFromNS), func(l Look) bool {
		last := b.looks[l.key]
		failed := last.failedNS != 0 && watermarkNS >= last.failedNS && watermarkNS-last.failedNS < l.every.Nanoseconds()
		return failed || !b.dueAfter(l, last.lookedNS, l.every, watermarkNS)
	})
	b.others = slices.ContainsFunc(plan, func(l Look) bool { return !l.fine() })
	last := func(l Look) int64 {
		if l.fine() && b.looks[l.key].failedNS == 0 && !b.passedOver {
			return math.MinInt64
		}
		return max(b.looks[l.key].lookedNS, b.looks[l.key].failedNS)
	}
	slices.SortStableFunc(plan, func(l, o Look) int { return cmp.Compare(last(l), last(o)) })
	return plan
}

// looksTo returns all looks, in ascending order: over the look-back up to the range that every pass compares.
func (b *Backlog) looksTo(recentFromNS int64) []Look {
	var plan []Look
	add := func(l Look) {
		for _, at := range b.cuts {
			if at > l.FromNS && at < l.ToNS {
				before := l
				before.ToNS, before.part = at, true
				plan = append(plan, before)
				l.FromNS, l.part = at, true
			}
			if at <= l.FromNS {
				l.key.fromNS = max(l.key.fromNS, at)
			}
		}
		if l.FromNS < l.ToNS {
			plan = append(plan, l)
		}
	}
	for hour := floor(b.fromNS, hourNS); hour < b.fineFromNS; hour += hourNS {
		coarse := cursor.Range{FromNS: hour, ToNS: min(hour+hourNS, b.fineFromNS)}
		add(Look{Range: coarse, WidthNS: minuteNS, key: lookKey{minuteNS, hour}, every: coarseLookEvery, compareEvery: coarseCompareEvery})
	}
	fine := cursor.Range{FromNS: max(floor(b.fromNS, minuteNS), b.fineFromNS), ToNS: recentFromNS}
	add(Look{Range: fine, WidthNS: secondNS, key: lookKey{secondNS, 0}, every: fineLookEvery, compareEvery: fineCompareEvery})
	return plan
}

// dueAfter reports whether a look is due at a watermark, some time after another one. It is also due if a part of
// it was not observed yet, or came to it since it was last taken. What comes to the fine look was observed by
// every pass.
func (b *Backlog) dueAfter(l Look, lastNS int64, after time.Duration, watermarkNS int64) bool {
	last, known := b.looks[l.key]
	return !known || watermarkNS-lastNS >= after.Nanoseconds() || watermarkNS < lastNS ||
		l.WidthNS == minuteNS && last.of.ToNS < l.ToNS || b.isUnlooked(l.Range)
}

// mergeLooks takes back cuts between two looks that were both answered quickly. The look at both is taken
// at once, and is merged again only if that is quick as well.
func (b *Backlog) mergeLooks(recentFromNS int64) {
	if len(b.cuts) == 0 {
		return
	}
	all := b.looksTo(recentFromNS)
	for i := 1; i < len(all); i++ {
		one, next := all[i-1], all[i]
		if cut := slices.Index(b.cuts, next.FromNS); cut >= 0 && one.WidthNS == next.WidthNS && b.looks[one.key].quick && b.looks[next.key].quick {
			b.cuts = slices.Delete(b.cuts, cut, cut+1)
			delete(b.looks, one.key)
			delete(b.looks, next.key)
		}
	}
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
func (b *Backlog) Compare(l Look, server string, prints []source.Fingerprint, watermarkNS int64) {
	b.compare(server, prints, l.Range, watermarkNS)
	last := b.looks[l.key]
	last.comparedNS, last.quick = watermarkNS, false
	b.looks[l.key] = last
}

// Quick notes that a look was compared in so little time that one twice as long can be taken.
func (b *Backlog) Quick(l Look) {
	last := b.looks[l.key]
	last.quick = true
	b.looks[l.key] = last
}

// Looked notes that a look was taken in which a server counted rows. server is "" if the count says
// nothing about what was compared.
func (b *Backlog) Looked(l Look, server string, rows uint64, watermarkNS int64) {
	last := b.looks[l.key]
	last.of, last.server, last.rows, last.lookedNS, last.failedNS = l.Range, server, rows, watermarkNS, 0
	b.looks[l.key], b.passedOver = last, l.fine() && b.others
}

// LookFailed notes that a look failed. From now on its halves are looks of their own: a source that is slow
// answers about a shorter range, and what cannot be read at all ends up alone. A minute is not cut. It stays
// due, but comes after the others for a while.
func (b *Backlog) LookFailed(l Look, watermarkNS int64) {
	b.passedOver = false
	if middle := floor(l.FromNS+(l.ToNS-l.FromNS)/2, minuteNS); middle > l.FromNS {
		at, _ := slices.BinarySearch(b.cuts, middle)
		b.cuts = slices.Insert(b.cuts, at, middle)
		return
	}
	last := b.looks[l.key]
	last.failedNS, last.quick = watermarkNS, false
	b.looks[l.key] = last
}

// Skip notes which looks a pass leaves undone that are overdue: so long after their last comparison that
// they cover no more than [WaitNS] promises. Until they are taken, the base of the look-back does not
// move, so that exchanges that become visible meanwhile at the far end of the look-back are still looked
// at.
func (b *Backlog) Skip(recentFromNS, watermarkNS int64) {
	b.skipped = nil
	for _, l := range b.looksTo(recentFromNS) {
		if b.dueAfter(l, b.looks[l.key].comparedNS, l.every+l.compareEvery, watermarkNS) {
			b.skipped = append(b.skipped, l.Range)
		}
	}
}

// SkipAll notes that no rule evaluates what is behind the cursor, so there is nothing to look at.
func (b *Backlog) SkipAll() { b.unlooked, b.skipped = nil, nil }
