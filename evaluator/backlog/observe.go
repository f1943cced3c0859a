package backlog

import (
	"tocsin/cursor"
	"tocsin/evaluator/source"
)

// What a server shows is compared with what was evaluated. A scan that the same server answers concludes it.

// Observe takes the fingerprints that a server showed from fromNS on, at a watermark. Those from
// forwardNS on are after the cursor, the others behind it.
func (b *Backlog) Observe(server string, prints []source.Fingerprint, fromNS, forwardNS, watermarkNS int64) {
	b.after, b.shown, b.shownFromNS = map[int64]fingerprint{}, map[int64]fingerprint{}, fromNS
	var behind []source.Fingerprint
	for _, f := range prints {
		second := floor(f.FromNS, secondNS)
		b.shown[second] = b.shown[second].plus(fingerprint{f.Count, f.Checksum})
		if f.FromNS >= forwardNS {
			b.after[f.FromNS] = fingerprint{f.Count, f.Checksum}
		} else {
			behind = append(behind, f)
		}
	}
	b.compare(server, behind, cursor.Range{FromNS: fromNS, ToNS: forwardNS}, watermarkNS)
}

// NothingAfter reports whether the last observation showed no exchange after the cursor.
func (b *Backlog) NothingAfter() bool { return len(b.after) == 0 }

// compare notes which buckets of a range are not evaluated, by their fingerprints. The range begins at
// the beginning of a bucket; it may end within one.
func (b *Backlog) compare(server string, list []source.Fingerprint, r cursor.Range, watermarkNS int64) {
	b.several = b.several || b.server != "" && b.server != server
	b.server = server
	prints := make(map[int64]fingerprint, len(list))
	for _, f := range list {
		prints[f.FromNS] = fingerprint{f.Count, f.Checksum}
	}
	for _, at := range b.filled(prints, r) {
		now := prints[at]
		was, waiting := b.left[at]
		// A server that lags shows less. What another server showed stays in the backlog, for at
		// most a minute.
		holds := waiting && was.server != server && was.seen.count > now.count && watermarkNS-was.seenNS < minuteNS
		switch {
		case holds:
		case now == b.judged[at]:
			delete(b.left, at)
		case now == fingerprint{}:
			delete(b.left, at)
			delete(b.judged, at)
		default:
			b.left[at] = bucket{seen: now, server: server, seenNS: watermarkNS}
		}
	}
	b.unlooked = subtract(b.unlooked, r)
}

// filled returns the buckets of a range about which something is or was known. Most buckets are
// empty.
func (b *Backlog) filled(prints map[int64]fingerprint, r cursor.Range) []int64 {
	buckets := make([]int64, 0, len(prints))
	add := func(at int64) {
		if at >= r.FromNS && at < r.ToNS {
			buckets = append(buckets, at)
		}
	}
	for at := range prints {
		add(at)
	}
	for at := range b.judged {
		if _, seen := prints[at]; !seen {
			add(at)
		}
	}
	for at := range b.left {
		_, seen := prints[at]
		if _, known := b.judged[at]; !seen && !known {
			add(at)
		}
	}
	return buckets
}

// Read notes that a range was read up to an instant. conclusive says that the server that showed
// the range answered every scan. Read returns the range that is evaluated once this is committed. What
// the cursor passes outside this range is left to evaluate again.
func (b *Backlog) Read(s Stretch, endNS int64, conclusive bool, watermarkNS int64) (judged cursor.Range) {
	judged = cursor.Range{FromNS: s.FromNS, ToNS: min(s.ToNS, b.Bucket(endNS))}
	if endNS >= s.ToNS {
		judged.ToNS = s.ToNS
	}
	for at, seen := range b.after {
		if s.Forward && at < endNS && (!conclusive || at >= judged.ToNS) {
			b.left[floor(at, secondNS)] = bucket{seen: seen, server: s.Server, seenNS: watermarkNS}
		}
	}
	if !conclusive {
		return cursor.Range{}
	}
	return judged
}

// Conclude remembers that a range was evaluated in the state in which a server showed it.
func (b *Backlog) Conclude(r cursor.Range, server string) {
	for at, u := range b.left {
		if at >= r.FromNS && at < r.ToNS && u.server == server {
			b.judged[at] = u.seen
			delete(b.left, at)
		}
	}
	for at, seen := range b.after {
		if at < r.FromNS || at >= r.ToNS {
			continue
		}
		start := floor(at, secondNS)
		if at != start {
			seen = seen.plus(b.judged[start])
		}
		b.judged[start] = seen
		delete(b.after, at)
	}
}
