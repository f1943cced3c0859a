// Package watch says from when on what a source does not show is absent.
//
// What is not there yet looks like what is not there. So the source is watched for rules
// on absence: how many exchanges of their tenants ended in each bucket of the last quarter
// of an hour. Where a bucket of which all had ended before holds more than it did, an
// exchange became visible late, by no more than from the beginning of its bucket to now. The
// windows of these rules end by the most of an hour before the watermark, so that an
// exchange that is late again delays an alert, and raises none.
//
// Where a bucket holds less than it did, the server that answered is behind the one that answered
// before. Only answers of servers that the same pass found not to be behind say that
// something is absent. Servers that are asked in turn are watched one after the other, and
// each is compared with the others as well. A process that remembers no counts concludes
// nothing before the next watch, and takes no server that shows less of the minutes before
// the last watch than the checkpoint says. Where a tenant comes or goes, the servers are compared
// once more by the tenants that were watched before.
//
// A process that did not watch for a while does not know whether producers could write.
// Windows that reach into a pause raise nothing: an outage of the source is no absence.
//
// What a process remembers is valid only as long as the checkpoint says that this process
// watched last; the checkpoint holds the lateness, and since when there was no pause.
package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tocsin/evaluator/source"
)

const (
	secondNS = int64(1e9)
	// bucketNS is the width of a bucket.
	bucketNS = 10 * secondNS
	// lateLeastNS and lateMostNS bound the assumed lateness of exchanges.
	lateLeastNS, lateMostNS = 10 * secondNS, 900 * secondNS
	// lateForNS is how long a lateness counts.
	lateForNS = 3600 * secondNS
	// pauseNS is the longest distance of two watermarks without a pause in watching.
	pauseNS = 60 * secondNS
	// serversMost is how many servers are watched in one pass.
	serversMost = 3
	// shownNS is the length of the time before a watch whose number of exchanges the checkpoint
	// stores.
	shownNS = 300 * secondNS
	// longestNS is how long an exchange may last and be counted. With a bound on start times alone, longer
	// ones would cease to be counted while their ends are watched, and every server would show less than
	// before.
	longestNS = 3600 * secondNS
	// shownForNS is how long after that watch the source still answers for all of them.
	shownForNS = lateMostNS - shownNS
)

// Source counts what arrives.
type Source interface {
	// Arrivals returns how many exchanges ended in each bucket.
	Arrivals(ctx context.Context, q ArrivalsQuery) (Arrivals, error)
}

// ArrivalsQuery asks how many exchanges ended in each bucket.
type ArrivalsQuery struct {
	Tenants source.Tenants
	// FromNS, inclusive, and ToNS, exclusive, are when exchanges ended, in nanoseconds
	// since the Unix epoch; what began before StartFromNS, or lasted longer than LongestNS, is not
	// counted. What ended before CutNS, an instant between them, is counted separately as well.
	FromNS, ToNS, CutNS, StartFromNS, LongestNS int64
	// WidthNS is the width of a bucket. Bucket n begins at n × WidthNS.
	WidthNS int64
}

// Arrivals is the answer to an [ArrivalsQuery].
type Arrivals struct {
	// Server identifies the server that answered, as in [source.Observation].
	Server string
	// Counts is the number of exchanges that ended in each bucket that is not empty, by the
	// beginning of the bucket; Before is how many of them ended before the cut. An exchange that
	// is stored with two ends counts once in each, so that Before is what Counts was when the
	// cut was the end.
	Counts, Before map[int64]int64
}

// watched is the memory of a process about the watch over a partition.
type watched struct {
	untilNS int64
	tenants []string
	// server is the server that gave the counts.
	server string
	counts map[int64]int64
	// late holds how late exchanges became visible, and when that was seen.
	late []lateness
	// servers holds when each server last answered.
	servers map[string]int64
	// seen is what the watch came to.
	seen Seen
}

type lateness struct{ byNS, atNS int64 }

// Watcher remembers the watch over each partition. It is safe for concurrent use.
type Watcher struct {
	source  Source
	mu      sync.Mutex
	watches map[int]*watched
}

// New returns a watcher of a source.
func New(source Source) *Watcher { return &Watcher{source: source, watches: map[int]*watched{}} }

// State is what a partition knows about how completely the source was seen. All instants are
// in nanoseconds since the Unix epoch; the zero state knows nothing.
type State struct {
	// SinceNS is from where on the source was watched without a pause, UntilNS the last
	// watermark at which it was.
	SinceNS, UntilNS int64
	// LateNS is how long after its end an exchange became visible at most, of late.
	LateNS int64
	// Shown is how many exchanges ended within the five minutes before UntilNS, by the server
	// that showed the most of them. Who takes over knows by it which server is behind.
	Shown int64
	// JudgedNS is where the latest window ends of which the absence was evaluated. Later
	// ones never end before it.
	JudgedNS int64
}

// Request asks for a watch over the tenants of a partition at a watermark. Watch is the state of
// the checkpoint.
type Request struct {
	Partition   int
	Tenants     source.Tenants
	WatermarkNS int64
	Watch       State
}

// Seen is what a watch came to.
type Seen struct {
	// Watch replaces that of the checkpoint.
	Watch State
	// Fresh are the servers that were found not to be behind.
	Fresh map[string]bool
	// ToNS is where windows of rules on absence end. What such a window lacks is absent if the
	// watch is Conclusive and a fresh server says so.
	ToNS       int64
	Conclusive bool
}

// Watch watches the source for a partition at the watermark of a request.
func (w *Watcher) Watch(ctx context.Context, r *Request) (Seen, error) {
	at, now := r.Watch, r.WatermarkNS
	w.mu.Lock()
	known := w.watches[r.Partition]
	w.mu.Unlock()
	if known != nil && known.untilNS == now && at.UntilNS == now {
		seen := known.seen
		seen.Watch = at
		return seen, nil // a pass evaluates rules twice
	}
	unknown := Seen{Watch: at}
	if now <= at.UntilNS && at.UntilNS-now <= pauseNS {
		return unknown.ended(r), nil // the clocks of servers differ
	}
	paused := now < at.UntilNS || now-at.UntilNS > pauseNS
	if known == nil || known.untilNS != at.UntilNS {
		known = &watched{}
	}
	behind := func(got *Arrivals) bool { return known.showedMore(got, r) }
	if !slices.Equal(known.tenants, r.Tenants.Names) {
		if known.counts != nil {
			level, err := w.level(ctx, known, r)
			if err != nil {
				return unknown, err
			}
			behind = func(got *Arrivals) bool { return !level[got.Server] }
		}
		known = &watched{servers: known.servers, late: known.late}
		if at.LateNS > known.mostNS(now) {
			known.late = append(known.late, lateness{at.LateNS, now}) // the former holder, or that of a tenant that came, measured it
		}
	}
	next := &watched{untilNS: now, tenants: r.Tenants.Names, servers: map[string]int64{}, late: slices.Clone(known.late)}
	maps.Copy(next.servers, known.servers)
	asks := known.asks()
	if known.counts == nil {
		asks = serversMost // it is unknown which servers there are
	}
	answers := map[string]answer{}
	for range asks {
		got, err := w.arrivals(ctx, r, r.Tenants.Names)
		if err != nil {
			return unknown, err
		}
		next.servers[got.Server] = now
		answers[got.Server] = next.compare(known, &got, behind(&got), paused, r)
	}
	if next.counts == nil {
		return unknown.ended(r), nil // it is as if nobody had watched
	}
	next.seen = Seen{Watch: at, Fresh: map[string]bool{}}
	for _, server := range slices.Sorted(maps.Keys(answers)) {
		lateNS, behind := answers[server].among(answers, r)
		next.late = append(next.late, lateness{min(lateMostNS, lateNS), now})
		if behind {
			continue // this happens if each shows what the other does not
		}
		if known.counts != nil {
			next.seen.Fresh[server] = true
		}
	}
	maps.DeleteFunc(next.servers, func(_ string, last int64) bool { return now-last > lateForNS })
	to := &next.seen.Watch
	if paused {
		to.SinceNS = now
	}
	to.UntilNS, to.LateNS, to.Shown = now, next.mostNS(now), shown(next.counts, now)
	next.seen = next.seen.ended(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[r.Partition] = next
	return next.seen, nil
}

// level returns the servers that show what was known of the tenants that were watched until now. The counts of others
// cannot be compared with that: without a tenant that has gone, every server would seem to be behind.
func (w *Watcher) level(ctx context.Context, known *watched, r *Request) (map[string]bool, error) {
	level := map[string]bool{}
	for range known.asks() {
		got, err := w.arrivals(ctx, r, known.tenants)
		if err != nil {
			return nil, err
		}
		level[got.Server] = !known.showedMore(&got, r)
	}
	return level, nil
}

// arrivals asks what arrived of some tenants.
func (w *Watcher) arrivals(ctx context.Context, r *Request, tenants []string) (Arrivals, error) {
	q := arrivalsQuery(r)
	q.Tenants.Names = tenants
	got, err := w.source.Arrivals(ctx, q)
	if err != nil {
		return got, fmt.Errorf("watch for what is late: %w", err)
	}
	return got, nil
}

// Saw notes that a server answers, so that it is watched as well: where two are asked in
// turn, the same one might be watched each time, and the other one asked what is absent.
func (w *Watcher) Saw(r *Request, server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.watches[r.Partition]; known != nil && server != "" {
		known.servers[server] = r.WatermarkNS
	}
}

// arrivalsQuery asks for what ended in the last quarter of an hour, and before the end of the last
// watch.
func arrivalsQuery(r *Request) ArrivalsQuery {
	to := r.WatermarkNS
	from := (to - lateMostNS) / bucketNS * bucketNS
	return ArrivalsQuery{
		Tenants: r.Tenants, FromNS: from, ToNS: to, CutNS: min(max(r.Watch.UntilNS, from), to),
		StartFromNS: from - longestNS, LongestNS: longestNS, WidthNS: bucketNS,
	}
}

// answer is the answer of a server: the counts of whole buckets, and of what ended before the last
// watch. If it contains more than was known, exchanges were lateNS late. If it lacks what was known
// before, it is behind.
type answer struct {
	whole, before map[int64]int64
	lateNS        int64
	behind        bool
}

// asks returns how many servers to ask, so that each one that answers is watched.
func (w *watched) asks() int { return max(1, min(len(w.servers), serversMost)) }

// showedMore reports whether an answer lacks what was known before. A server shows less than it did before only if
// exchanges were deleted.
func (w *watched) showedMore(seen *Arrivals, r *Request) bool {
	return seen.Server != w.server && misses(seen.Before, w.counts, r) > 0 || w.counts == nil && showsLess(seen.Before, r)
}

// compare takes an answer, unless its server is behind: it lacks something that was known before. After a pause it is
// unknown when new exchanges became visible.
func (w *watched) compare(known *watched, seen *Arrivals, behind, paused bool, r *Request) (a answer) {
	a = answer{whole: seen.Counts, before: seen.Before, behind: behind}
	if a.whole == nil {
		a.whole = map[int64]int64{} // nothing ended, and that is known
	}
	if behind {
		return a
	}
	if known.counts != nil && !paused {
		for bucket, count := range a.before {
			if count > known.counts[bucket] {
				a.lateNS = max(a.lateNS, r.WatermarkNS-bucket)
			}
		}
	}
	// Another server of this pass may have shown more.
	if misses(a.whole, w.counts, r) == 0 {
		w.server, w.counts = seen.Server, a.whole
	}
	return a
}

// among compares an answer with the others of the same pass. If it lacks what ended before the last
// watch, its server is behind. If it lacks what ended since, that is late.
func (a answer) among(others map[string]answer, r *Request) (lateNS int64, behind bool) {
	lateNS, behind = a.lateNS, a.behind
	for _, other := range others {
		behind = behind || misses(a.before, other.before, r) > 0
	}
	if behind {
		return lateNS, true // what it misses says nothing of how late exchanges are
	}
	for _, other := range others {
		lateNS = max(lateNS, misses(a.whole, other.whole, r))
	}
	return lateNS, false
}

// misses returns how long ago the first bucket began in which counts contain less than others; 0 if
// there is none.
func misses(counts, others map[int64]int64, r *Request) (missing int64) {
	oldest := (r.WatermarkNS - lateMostNS) / bucketNS * bucketNS
	for bucket, count := range others {
		if bucket >= oldest && counts[bucket] < count {
			missing = max(missing, r.WatermarkNS-bucket)
		}
	}
	return missing
}

// shownFromNS is the instant from which shown counts the exchanges that ended before an instant.
func shownFromNS(untilNS int64) int64 { return (untilNS - shownNS) / bucketNS * bucketNS }

// shown returns how many exchanges ended within the minutes before an instant, of those that ended
// before it.
func shown(before map[int64]int64, untilNS int64) (n int64) {
	for bucket, count := range before {
		if bucket >= shownFromNS(untilNS) {
			n += count
		}
	}
	return n
}

// showsLess reports whether less ended before the last watch than somebody saw then, as long as
// the watch reaches back that far: for ten minutes. A server that shows less for longer is
// believed.
func showsLess(before map[int64]int64, r *Request) bool {
	last := &r.Watch
	since := r.WatermarkNS - last.UntilNS
	return since >= 0 && since <= shownForNS && shown(before, last.UntilNS) < last.Shown
}

// mostNS forgets old latenesses, and returns the largest of the others.
func (w *watched) mostNS(now int64) (most int64) {
	var kept []lateness
	for _, l := range w.late {
		if now-l.atNS <= lateForNS && l.byNS > 0 {
			most = max(most, l.byNS)
			kept = append(kept, l)
		}
	}
	// An entry is not needed if a newer one is not smaller.
	w.late = nil
	for i, l := range kept {
		needed := true
		for _, later := range kept[i+1:] {
			needed = needed && later.byNS < l.byNS
		}
		if needed {
			w.late = append(w.late, l)
		}
	}
	return most
}

// ended returns what was seen with the end of the windows of rules on absence, and whether
// what such a window lacks is absent: where exchanges became visible later than before,
// windows end where they ended, and say nothing until time has caught up.
func (s Seen) ended(r *Request) Seen {
	s.ToNS = r.WatermarkNS - max(lateLeastNS, s.Watch.LateNS)
	if last := r.Watch.UntilNS; r.WatermarkNS-last <= pauseNS {
		s.ToNS = min(s.ToNS, last) // by what ended since then, no server was compared with another one
	}
	if judged := s.Watch.JudgedNS; s.ToNS < judged && judged <= r.WatermarkNS {
		s.ToNS = judged
		return s
	}
	if s.Conclusive = len(s.Fresh) > 0; s.Conclusive {
		s.Watch.JudgedNS = s.ToNS
	}
	return s
}
