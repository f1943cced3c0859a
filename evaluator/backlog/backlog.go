// Package backlog keeps what is left to evaluate behind the cursor of a partition.
//
// A [Backlog] is the memory of one process. It answers one question: what has changed behind the
// cursor since it was evaluated? For each second of the last hour, and for each minute before, it
// stores the fingerprint of what was evaluated. If the fingerprint of a bucket changes, the bucket is
// left to evaluate until it was evaluated again. A bucket is such a second or minute. What began in
// the last two minutes is recent: every pass compares it. Looks compare what is older, less often.
//
// A fingerprint counts as evaluated only if the scan was answered by the server that gave the
// fingerprint, after it gave it. Then that scan saw everything that the fingerprint counts. So a
// server that lags never hides what another one showed.
//
// A Backlog is valid only while the checkpoint has the revision that the process committed last.
// Otherwise a process begins with a new Backlog, and the whole look-back is left to evaluate. A [Mark]
// is the part of it that is stored.
//
// A pass makes these calls, in this order:
//
//   - [New] or [Backlog.LookBack], and [Backlog.LookAt] after a pause;
//   - [Backlog.Advance];
//   - [Backlog.Observe] with the fingerprints of the last two minutes;
//   - for each range of [Backlog.Recent] and later of [Backlog.Older]: [Backlog.Read], [Backlog.Mark] for
//     what is to be stored, and [Backlog.Conclude] after the commit; around each of the older ones
//     [Backlog.Waits], and [Backlog.ReadFailed] or [Backlog.ReadSucceeded];
//   - between them, for each look of [Backlog.Looks] at what is older: [Backlog.Compares],
//     [Backlog.Compare], [Backlog.Quick] and [Backlog.Looked], or [Backlog.LookFailed];
//   - at the end, [Backlog.Skip].
//
// The look-back of each rule is counted from the base. The base is the position of the cursor when
// last nothing was left to evaluate or to look at, and nothing was skipped. Otherwise the base does
// not move, and nothing drops out of the look-back.
//
// Everything in this package is pure. Instants are start times of exchanges, or watermarks of the
// source, in nanoseconds since the Unix epoch. The only other instant is now in [Backlog.Waits] and
// [Backlog.ReadFailed]: it is of the process's clock.
package backlog

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
)

const (
	secondNS = int64(time.Second)
	minuteNS = 60 * secondNS
	hourNS   = 60 * minuteNS

	// recentNS is the range of start times before the watermark that every pass compares.
	recentNS = 2 * minuteNS
	// fineNS is how far back fingerprints are kept by second: an hour, the default look-back, plus
	// what [WaitNS] adds to it, rounded up.
	fineNS = 62 * minuteNS
)

// RecentFromNS returns the beginning of the range that every pass compares at a watermark. It is on
// a whole minute.
func RecentFromNS(watermarkNS int64) int64 { return floor(watermarkNS-recentNS, minuteNS) }

// WaitNS returns how long an exchange that became visible within a look-back may wait behind the
// cursor until it is found. The partition looks back further by that time. Argument and result are
// in nanoseconds.
func WaitNS(lookBackNS int64) int64 {
	switch {
	case lookBackNS <= 0:
		return 0
	case lookBackNS+10*secondNS <= recentNS-minuteNS:
		return 10 * secondNS
	case lookBackNS <= hourNS:
		return (fineLookEvery + fineCompareEvery).Nanoseconds() + 10*secondNS
	default:
		return (coarseLookEvery + coarseCompareEvery).Nanoseconds() + 10*secondNS
	}
}

// CoarseLookEvery returns how often the part of a look-back before its last hour is looked at; 0 if
// there is none. The look-back is in nanoseconds. What becomes visible there is found by the next look,
// unless as many rows were merged away: see [WaitNS].
func CoarseLookEvery(lookBackNS int64) time.Duration {
	if lookBackNS <= hourNS {
		return 0
	}
	return coarseLookEvery
}

// Mark says which range behind its cursor a partition still has to evaluate.
type Mark struct {
	// FromNS is the start time from which exchanges may not be evaluated yet.
	FromNS int64
	// CursorNS is the start time of the cursor from which the look-back of each rule is counted: in
	// this range, a rule evaluates nothing that starts before CursorNS minus its look-back.
	CursorNS int64
}

// fingerprint is the fingerprint of a bucket; the zero value is that of an empty bucket.
type fingerprint struct{ count, sum uint64 }

func (f fingerprint) plus(g fingerprint) fingerprint {
	return fingerprint{f.count + g.count, f.sum + g.sum}
}

// bucket is a bucket of the backlog, with its last observation.
type bucket struct {
	seen   fingerprint
	server string
	// seenNS is the watermark of the observation.
	seenNS int64
}

// lastLook is the last look at the rows of a range.
type lastLook struct {
	of     cursor.Range
	server string
	rows   uint64
	// lookedNS and comparedNS are the watermarks of the last count, and of the last comparison of
	// fingerprints. failedNS is the watermark of an attempt that failed since then; 0 if there is
	// none.
	lookedNS, comparedNS, failedNS int64
	// quick says that the last comparison took little of its time.
	quick bool
}

// Backlog is the memory of a process about a partition.
type Backlog struct {
	// fromNS is the beginning of the look-back. baseNS is the start time of the cursor from which
	// the look-back of each rule is counted: the position of the cursor when last nothing was left
	// to evaluate.
	fromNS, baseNS int64
	// fineFromNS separates the buckets: those before it are a minute long, those from it on a
	// second.
	fineFromNS int64
	judged     map[int64]fingerprint
	left       map[int64]bucket
	// after are the fingerprints after the cursor.
	after map[int64]fingerprint
	// server is the server that showed something last. several says whether other servers did as
	// well.
	server  string
	several bool
	// shown is the last observation by second, from shownFromNS on.
	shown       map[int64]fingerprint
	shownFromNS int64
	// unlooked are the ranges behind the cursor that were not observed yet, in ascending order.
	unlooked []cursor.Range
	looks    map[lookKey]lastLook
	// others says that other looks were due with the fine one when looks were planned last. passedOver says
	// that the fine one was taken then, and none of the others since.
	others, passedOver bool
	// cuts are where looks are cut, because longer ones failed: whole minutes, in ascending order.
	cuts []int64
	// skipped are the ranges of looks that were overdue when the last pass ended, because they failed
	// or there was no time. What they would show must not be forgotten either.
	skipped []cursor.Range
	// unread are the older changes that could not be read, by where they begin.
	unread map[int64]*unread
	// raised are the alerts known to exist, with the start times of their exchanges. Nothing
	// depends on them but cost: a change in the same second would otherwise render and offer them
	// again (BenchmarkChangedSecond).
	raised map[uuid.UUID]int64
}

// New returns the backlog of a partition of which only the cursor and the mark (nil for none) are
// known. reachNS is how far the rules look back, in nanoseconds.
func New(cursorNS, reachNS int64, mark *Mark) *Backlog {
	b := &Backlog{
		baseNS: cursorNS, fromNS: cursorNS - reachNS,
		judged: map[int64]fingerprint{}, left: map[int64]bucket{}, looks: map[lookKey]lastLook{}, unread: map[int64]*unread{}, raised: map[uuid.UUID]int64{},
	}
	if mark != nil {
		b.baseNS, b.fromNS = min(b.baseNS, mark.CursorNS), min(b.fromNS, mark.FromNS)
	}
	return b
}

// LookBack counts the look-back from a cursor, if nothing is left to evaluate. Otherwise the base does
// not change, and the look-back is extended if the rules look back further.
func (b *Backlog) LookBack(cursorNS, reachNS int64) {
	if b.empty() {
		b.baseNS, b.fromNS = cursorNS, cursorNS-reachNS
		return
	}
	b.fromNS = min(b.fromNS, b.baseNS-reachNS)
}

// BaseNS returns the start time of the cursor from which the look-back of each rule is
// counted.
func (b *Backlog) BaseNS() int64 { return b.baseNS }

// FromNS returns the beginning of the look-back.
func (b *Backlog) FromNS() int64 { return b.fromNS }

// Raised notes that an alert exists about an exchange with a start time.
func (b *Backlog) Raised(id uuid.UUID, startNS int64) { b.raised[id] = startNS }

// HasRaised reports whether an alert is known to exist. Only alerts about recent exchanges are
// known.
func (b *Backlog) HasRaised(id uuid.UUID) bool {
	_, known := b.raised[id]
	return known
}

// Several reports whether more than one server has shown what is in memory.
func (b *Backlog) Several() bool { return b.several }

// Forget forgets what was evaluated in a range behind the cursor, except for what the server of the
// last observation showed of it. The rest is evaluated again.
func (b *Backlog) Forget(r cursor.Range) {
	r.FromNS = max(r.FromNS, b.fromNS)
	for at, judged := range b.judged {
		if at+b.widthNS(at) > r.FromNS && at < r.ToNS && judged != b.shown[at] {
			delete(b.judged, at)
		}
	}
	// Every pass observes the recent part.
	b.LookAt(cursor.Range{FromNS: r.FromNS, ToNS: min(r.ToNS, b.shownFromNS)})
}

// LookAt makes later looks observe a range behind the cursor.
func (b *Backlog) LookAt(r cursor.Range) {
	if r.FromNS < r.ToNS {
		b.unlooked = subtract(b.unlooked, r)
		b.unlooked = append(b.unlooked, r)
		slices.SortFunc(b.unlooked, func(r, s cursor.Range) int { return cmp.Compare(r.FromNS, s.FromNS) })
	}
}

// subtract returns ranges without the part that another one covers.
func subtract(ranges []cursor.Range, r cursor.Range) []cursor.Range {
	var out []cursor.Range
	for _, u := range ranges {
		if before := (cursor.Range{FromNS: u.FromNS, ToNS: min(u.ToNS, r.FromNS)}); before.FromNS < before.ToNS {
			out = append(out, before)
		}
		if after := (cursor.Range{FromNS: max(u.FromNS, r.ToNS), ToNS: u.ToNS}); after.FromNS < after.ToNS {
			out = append(out, after)
		}
	}
	return out
}

// empty reports whether nothing behind the cursor is left to evaluate or to look at.
func (b *Backlog) empty() bool {
	return len(b.left) == 0 && len(b.unlooked) == 0 && len(b.skipped) == 0
}

// widthNS returns the width of the bucket that begins at an instant.
func (b *Backlog) widthNS(fromNS int64) int64 {
	if fromNS < b.fineFromNS {
		return minuteNS
	}
	return secondNS
}

// Advance moves the bounds of the memory to a watermark, merges the seconds that leave the fine
// part into minutes, and forgets what is before the look-back.
func (b *Backlog) Advance(watermarkNS int64) {
	fine := floor(watermarkNS-fineNS, minuteNS)
	if b.fineFromNS == 0 {
		b.fineFromNS = fine
	}
	for minute := b.fineFromNS; minute < fine && len(b.judged)+len(b.left) > 0; minute += minuteNS {
		b.coarsen(minute)
	}
	b.fineFromNS = max(b.fineFromNS, fine)
	for at := range b.judged {
		if at < floor(b.fromNS, hourNS) {
			delete(b.judged, at)
		}
	}
	for at := range b.left {
		if at < floor(b.fromNS, hourNS) {
			delete(b.left, at)
		}
	}
	for key := range b.looks {
		if key.fromNS != 0 && key.fromNS+hourNS <= b.fromNS {
			delete(b.looks, key)
		}
	}
	b.cuts = slices.DeleteFunc(b.cuts, func(at int64) bool { return at+hourNS <= b.fromNS })
	b.unlooked = slices.DeleteFunc(b.unlooked, func(r cursor.Range) bool { return r.ToNS <= b.fromNS })
	for id, startNS := range b.raised {
		if startNS < watermarkNS-2*recentNS {
			delete(b.raised, id)
		}
	}
}

// coarsen merges the seconds of a minute into one bucket. If one of them is left to evaluate, the
// minute must be observed again.
func (b *Backlog) coarsen(minute int64) {
	var whole fingerprint
	waiting := false
	for second := minute; second < minute+minuteNS; second += secondNS {
		whole = whole.plus(b.judged[second])
		delete(b.judged, second)
		if _, there := b.left[second]; there {
			waiting = true
			delete(b.left, second)
		}
	}
	if waiting {
		b.LookAt(cursor.Range{FromNS: minute, ToNS: minute + minuteNS})
		return
	}
	if whole != (fingerprint{}) {
		b.judged[minute] = whole
	}
}

// Mark returns what is left to evaluate behind the cursor once a range that a server showed is evaluated;
// nil if nothing is.
func (b *Backlog) Mark(judged cursor.Range, server string) *Mark {
	fromNS, left := int64(0), false
	note := func(ns int64) {
		if !left || ns < fromNS {
			fromNS, left = ns, true
		}
	}
	for _, ranges := range [][]cursor.Range{b.unlooked, b.skipped} {
		for _, r := range ranges {
			note(r.FromNS)
		}
	}
	for at, u := range b.left {
		if at < judged.FromNS || at >= judged.ToNS || u.server != server {
			note(at)
		}
	}
	if !left {
		return nil
	}
	return &Mark{FromNS: max(fromNS, b.fromNS), CursorNS: b.baseNS}
}

// LengthNS returns the length of the start times that are left to evaluate, in nanoseconds.
func (b *Backlog) LengthNS() int64 {
	sum := int64(0)
	for at := range b.left {
		sum += b.widthNS(at)
	}
	ranges := slices.Concat(b.unlooked, b.skipped)
	slices.SortFunc(ranges, func(r, s cursor.Range) int { return cmp.Compare(r.FromNS, s.FromNS) })
	counted := int64(math.MinInt64)
	for _, r := range ranges {
		if r.ToNS > counted {
			sum += r.ToNS - max(r.FromNS, counted)
			counted = r.ToNS
		}
	}
	return sum
}

// AgeNS returns how long before a watermark last nothing was left to evaluate or to look at, in nanoseconds; 0 if nothing is.
func (b *Backlog) AgeNS(watermarkNS int64) int64 {
	if b.empty() {
		return 0
	}
	return max(0, watermarkNS-b.baseNS)
}

// Bucket returns the beginning of the bucket of an instant.
func (b *Backlog) Bucket(ns int64) int64 { return floor(ns, b.widthNS(ns)) }

func floor(ns, width int64) int64 { return ns - ((ns%width)+width)%width }
