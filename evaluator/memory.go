package evaluator

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// What a process remembers of a partition serves one question: what changed behind the
// cursor since it was judged? It remembers a fingerprint of what was judged, for each
// second of the last hour and for each minute before. A bucket whose fingerprint is
// another one is in the backlog until it was judged again.
//
// A fingerprint is remembered as judged only when the scan that judged it was answered
// by the server that gave the fingerprint, after it gave it: what the fingerprint counts,
// that scan saw. A server that lags thus never hides what another one showed.
//
// Memory is valid only while the checkpoint has the revision that this process committed
// last. Otherwise it starts empty, and the whole look-back is in the backlog.

const (
	secondNS = int64(time.Second)
	minuteNS = 60 * secondNS
	hourNS   = 60 * minuteNS

	// recentNS is what every pass compares.
	recentNS = 2 * minuteNS
	// fineNS is how far back fingerprints are kept by second: an hour, the default
	// look-back, and what [WaitNS] adds to it, rounded up.
	fineNS = 62 * minuteNS
)

// WaitNS returns how long an exchange that became visible within a look-back may wait
// behind the cursor until it is found, in nanoseconds: the partition looks back as much
// further. Both are nanoseconds.
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

// fingerprint is that of a bucket; the zero value is that of one without exchanges.
type fingerprint struct{ count, sum uint64 }

func (f fingerprint) plus(g fingerprint) fingerprint {
	return fingerprint{f.count + g.count, f.sum + g.sum}
}

// unjudged is a bucket of the backlog: what was observed of it last.
type unjudged struct {
	seen   fingerprint
	server string
	// seenNS is the watermark of the observation.
	seenNS int64
}

// look is the last look at the rows of a range.
type look struct {
	of     Range
	server string
	rows   uint64
	// lookedNS and comparedNS are the watermarks of the last count, and of the last
	// comparison of fingerprints.
	lookedNS, comparedNS int64
}

// memory is what a process remembers of a partition.
type memory struct {
	// fromNS is where the look-back begins. baseNS is the start time of the cursor from
	// which the look-back of each rule is counted: where the cursor stood when the
	// backlog was last empty.
	fromNS, baseNS int64
	// fineFromNS parts the buckets: of a minute before it, of a second from it on.
	fineFromNS int64
	// statuses are those of the exchanges that are counted.
	statuses []rules.Status
	judged   map[int64]fingerprint
	backlog  map[int64]unjudged
	// unlooked are ranges behind the cursor that were not observed yet, ascending.
	unlooked []Range
	looks    map[int64]look
	// skipped are the ranges of looks that were due when the last pass ended, because they
	// failed or there was no time: what they would show may not be forgotten either.
	skipped []Range
	// raised are alerts that exist, with the starts of their exchanges: a change in
	// their second offers them again.
	raised map[uuid.UUID]int64
}

func newMemory(statuses []rules.Status) *memory {
	return &memory{
		statuses: statuses,
		judged:   map[int64]fingerprint{}, backlog: map[int64]unjudged{}, looks: map[int64]look{}, raised: map[uuid.UUID]int64{},
	}
}

// lookAt puts a range behind the cursor into the backlog before it was looked at.
func (m *memory) lookAt(r Range) {
	if r.FromNS < r.ToNS {
		m.unlooked = subtract(m.unlooked, r)
		m.unlooked = append(m.unlooked, r)
		slices.SortFunc(m.unlooked, func(a, b Range) int { return int(min(max(a.FromNS-b.FromNS, -1), 1)) })
	}
}

// subtract returns ranges without another one.
func subtract(ranges []Range, r Range) []Range {
	var out []Range
	for _, u := range ranges {
		if before := (Range{u.FromNS, min(u.ToNS, r.FromNS)}); before.FromNS < before.ToNS {
			out = append(out, before)
		}
		if after := (Range{max(u.FromNS, r.ToNS), u.ToNS}); after.FromNS < after.ToNS {
			out = append(out, after)
		}
	}
	return out
}

func (r Range) overlaps(o Range) bool { return r.FromNS < o.ToNS && o.FromNS < r.ToNS }

// empty reports whether nothing behind the cursor is left to judge, nor to look at.
func (m *memory) empty() bool {
	return len(m.backlog) == 0 && len(m.unlooked) == 0 && len(m.skipped) == 0
}

// widthNS returns the width of the bucket that begins at an instant.
func (m *memory) widthNS(fromNS int64) int64 {
	if fromNS < m.fineFromNS {
		return minuteNS
	}
	return secondNS
}

// advance moves the bounds of the memory to a watermark, adds up the seconds that leave
// the fine part, and forgets what lies before the look-back.
func (m *memory) advance(watermarkNS int64) {
	fine := floor(watermarkNS-fineNS, minuteNS)
	if m.fineFromNS == 0 {
		m.fineFromNS = fine
	}
	for minute := m.fineFromNS; minute < fine && len(m.judged)+len(m.backlog) > 0; minute += minuteNS {
		m.coarsen(minute)
	}
	m.fineFromNS = max(m.fineFromNS, fine)
	for at := range m.judged {
		if at < floor(m.fromNS, hourNS) {
			delete(m.judged, at)
		}
	}
	for at := range m.backlog {
		if at < floor(m.fromNS, hourNS) {
			delete(m.backlog, at)
		}
	}
	for key := range m.looks {
		if key != fineLook && key+hourNS <= m.fromNS {
			delete(m.looks, key)
		}
	}
	m.unlooked = slices.DeleteFunc(m.unlooked, func(r Range) bool { return r.ToNS <= m.fromNS })
	for id, startNS := range m.raised {
		if startNS < watermarkNS-2*recentNS {
			delete(m.raised, id)
		}
	}
}

// coarsen makes one bucket of the seconds of a minute. Where one of them is in the
// backlog, the minute has to be observed again.
func (m *memory) coarsen(minute int64) {
	var whole fingerprint
	waiting := false
	for second := minute; second < minute+minuteNS; second += secondNS {
		whole = whole.plus(m.judged[second])
		delete(m.judged, second)
		if _, there := m.backlog[second]; there {
			waiting = true
			delete(m.backlog, second)
		}
	}
	if waiting {
		m.lookAt(Range{minute, minute + minuteNS})
		return
	}
	if whole != (fingerprint{}) {
		m.judged[minute] = whole
	}
}

// compare notes what an observation of a range shows to be unjudged. The range begins at
// a bucket; it may end within one.
func (m *memory) compare(o Observation, r Range, watermarkNS int64) {
	prints := make(map[int64]fingerprint, len(o.Fingerprints))
	for _, f := range o.Fingerprints {
		prints[f.FromNS] = fingerprint{f.Count, f.Checksum}
	}
	for _, at := range m.filled(prints, r) {
		now := prints[at]
		was, waiting := m.backlog[at]
		// A server that lags shows less; what another one showed stays in the backlog,
		// for a minute at the most.
		holds := waiting && was.server != o.Server && was.seen.count > now.count && watermarkNS-was.seenNS < minuteNS
		switch {
		case holds:
		case now == m.judged[at]:
			delete(m.backlog, at)
		case now == fingerprint{}:
			delete(m.backlog, at)
			delete(m.judged, at)
		default:
			m.backlog[at] = unjudged{seen: now, server: o.Server, seenNS: watermarkNS}
		}
	}
	m.unlooked = subtract(m.unlooked, r)
}

// filled returns the buckets of a range of which anything is or was known. Most hold nothing.
func (m *memory) filled(prints map[int64]fingerprint, r Range) []int64 {
	buckets := make([]int64, 0, len(prints))
	add := func(at int64) {
		if at >= r.FromNS && at < r.ToNS {
			buckets = append(buckets, at)
		}
	}
	for at := range prints {
		add(at)
	}
	for at := range m.judged {
		if _, seen := prints[at]; !seen {
			add(at)
		}
	}
	for at := range m.backlog {
		_, seen := prints[at]
		if _, known := m.judged[at]; !seen && !known {
			add(at)
		}
	}
	return buckets
}

// concluded remembers that a range was judged as a server showed it.
func (m *memory) concluded(r Range, server string) {
	for at, u := range m.backlog {
		if at >= r.FromNS && at < r.ToNS && u.server == server {
			m.judged[at] = u.seen
			delete(m.backlog, at)
		}
	}
}

// mark returns what is left to judge behind the cursor once a range that a server showed
// is judged; nil is nothing.
func (m *memory) mark(judged Range, server string) *Mark {
	fromNS, left := int64(0), false
	note := func(ns int64) {
		if !left || ns < fromNS {
			fromNS, left = ns, true
		}
	}
	for _, ranges := range [][]Range{m.unlooked, m.skipped} {
		for _, r := range ranges {
			note(r.FromNS)
		}
	}
	for at, u := range m.backlog {
		if at < judged.FromNS || at >= judged.ToNS || u.server != server {
			note(at)
		}
	}
	if !left {
		return nil
	}
	return &Mark{FromNS: max(fromNS, m.fromNS), CursorNS: m.baseNS}
}

// backlogNS returns how many nanoseconds of start times are in the backlog.
func (m *memory) backlogNS() int64 {
	sum := int64(0)
	for at := range m.backlog {
		sum += m.widthNS(at)
	}
	unlooked := m.unlooked
	for _, r := range m.skipped {
		unlooked = append(subtract(unlooked, r), r)
	}
	for _, r := range unlooked {
		sum += r.ToNS - r.FromNS
	}
	return sum
}

func floor(ns, width int64) int64 { return ns - ((ns%width)+width)%width }
