package window

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"tocsin/evaluator"
)

// An exchange that is not visible yet looks like an exchange that does not exist. So the source is
// watched for rules on absence: how many exchanges of their tenants ended in each bucket of the
// last quarter of an hour. If a bucket that was over at the last watch now contains more, an
// exchange became visible late, at most by the time from the beginning of its bucket to now. The
// windows of these rules end before the watermark, by the largest lateness of an hour. So an
// exchange that is as late again delays an alert, and raises none.
//
// If a bucket contains less than before, the server that answered is behind the one that answered
// before. Only answers of servers that the same pass found not to be behind can show that something
// is absent. If servers are asked in turn, they are watched one after the other, and are also
// compared with each other. A process without remembered counts concludes nothing before the next
// watch. It also rejects a server that shows fewer exchanges in the minutes before the last watch
// than the checkpoint says.
//
// After a pause in watching, it is unknown whether the writers of exchanges could write. Windows
// that reach into a pause raise nothing, because an outage of the source is not an absence.
//
// The memory of a process is valid only while the checkpoint says that this process watched last.
// The checkpoint stores the lateness, and since when there was no pause.

const (
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
)

// ArrivalsQuery asks how many exchanges ended in each bucket.
type ArrivalsQuery struct {
	Tenants evaluator.Tenants
	// FromNS, inclusive, and ToNS, exclusive, bound the ends of exchanges, in nanoseconds since the
	// Unix epoch. StartFromNS is as in [Query]. CutNS is an instant between them at which the
	// bucket that contains it is split.
	FromNS, ToNS, CutNS, StartFromNS int64
	// WidthNS is the width of a bucket. Bucket n begins at n × WidthNS.
	WidthNS int64
}

// Arrivals is the answer to an [ArrivalsQuery].
type Arrivals struct {
	// Server is as in [evaluator.Observation].
	Server string
	// Counts is the number of exchanges that ended in each bucket that is not empty, by the
	// beginning of the bucket, or of its part after the cut.
	Counts map[int64]int64
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
	// fresh, toNS and conclusive are the result of the watch.
	fresh      map[string]bool
	toNS       int64
	conclusive bool
}

type lateness struct{ byNS, atNS int64 }

// watch watches the source. It fills in what the checkpoint will store, and where windows of rules
// on absence end.
func (p *pass) watch(ctx context.Context) error {
	at, now := p.request.Watch, p.request.WatermarkNS
	p.mu.Lock()
	known := p.watches[p.request.Partition]
	p.mu.Unlock()
	if known != nil && known.untilNS == now && at.UntilNS == now {
		p.fresh, p.toNS, p.conclusive = known.fresh, known.toNS, known.conclusive
		return nil // a pass evaluates rules twice
	}
	if now <= at.UntilNS && at.UntilNS-now <= pauseNS {
		p.toNS, p.conclusive = p.absenceToNS()
		return nil // the clocks of servers differ
	}
	paused := now < at.UntilNS || now-at.UntilNS > pauseNS
	if known == nil || known.untilNS != at.UntilNS {
		known = &watched{late: []lateness{{at.LateNS, now}}}
	}
	if !slices.Equal(known.tenants, p.request.Tenants.Names) {
		known = &watched{servers: known.servers, late: known.late}
	}
	next := &watched{untilNS: now, tenants: p.request.Tenants.Names, servers: map[string]int64{}, late: slices.Clone(known.late)}
	maps.Copy(next.servers, known.servers)
	asks := max(1, min(len(known.servers), serversMost))
	if known.counts == nil {
		asks = serversMost // it is unknown which servers there are
	}
	answers := map[string]answer{}
	for range asks {
		seen, err := p.Source.Arrivals(ctx, p.arrivalsQuery(at.UntilNS))
		if err != nil {
			return fmt.Errorf("watch for what is late: %w", err)
		}
		next.servers[seen.Server] = now
		answers[seen.Server] = next.compare(known, &seen, paused, p.request)
	}
	if next.counts == nil {
		p.toNS, p.conclusive = p.absenceToNS()
		return nil // the same as without a watch
	}
	for _, server := range slices.Sorted(maps.Keys(answers)) {
		lateNS, behind := answers[server].among(answers, p.request)
		if behind {
			continue // this happens if each shows what the other does not
		}
		next.late = append(next.late, lateness{min(lateMostNS, lateNS), now})
		if known.counts != nil {
			p.fresh[server] = true
		}
	}
	maps.DeleteFunc(next.servers, func(_ string, last int64) bool { return now-last > lateForNS })
	if paused {
		p.out.Watch.SinceNS = now
	}
	p.out.Watch.UntilNS, p.out.Watch.LateNS, p.out.Watch.Shown = now, next.mostNS(now), shown(next.counts, now)
	p.toNS, p.conclusive = p.absenceToNS()
	next.fresh, next.toNS, next.conclusive = p.fresh, p.toNS, p.conclusive
	p.mu.Lock()
	p.watches[p.request.Partition] = next
	p.mu.Unlock()
	return nil
}

// saw notes that a server answers, so that it is watched as well. If two servers are asked in turn,
// the watch might otherwise always ask one of them, and the query for absences the other one.
func (p *pass) saw(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.watches[p.request.Partition]; known != nil && server != "" {
		known.servers[server] = p.request.WatermarkNS
	}
}

// arrivalsQuery asks for what ended in the last quarter of an hour, split where the last watch
// ended.
func (p *pass) arrivalsQuery(untilNS int64) ArrivalsQuery {
	to := p.request.WatermarkNS
	from := (to - lateMostNS) / bucketNS * bucketNS
	return ArrivalsQuery{
		Tenants: p.request.Tenants, FromNS: from, ToNS: to, CutNS: min(max(untilNS, from), to),
		StartFromNS: StartFromNS(int(lateMostNS/secondNS), to), WidthNS: bucketNS,
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

// compare takes an answer that lacks nothing that was known before. After a pause it is unknown
// when new exchanges became visible.
func (w *watched) compare(known *watched, seen *Arrivals, paused bool, r *evaluator.WindowRequest) (a answer) {
	a = answer{whole: map[int64]int64{}, before: map[int64]int64{}}
	for from, count := range seen.Counts {
		bucket := from / bucketNS * bucketNS
		a.whole[bucket] += count
		if from < r.Watch.UntilNS {
			a.before[bucket] += count
		}
	}
	// A server shows less than it did before only if exchanges were deleted.
	if seen.Server != known.server && misses(a.before, known.counts, r) > 0 || known.counts == nil && showsLess(seen.Counts, r) {
		a.behind = true
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
func (a answer) among(others map[string]answer, r *evaluator.WindowRequest) (lateNS int64, behind bool) {
	lateNS, behind = a.lateNS, a.behind
	for _, other := range others {
		behind = behind || misses(a.before, other.before, r) > 0
		lateNS = max(lateNS, misses(a.whole, other.whole, r))
	}
	return lateNS, behind
}

// misses returns how long ago the first bucket began in which counts contain less than others; 0 if
// there is none.
func misses(counts, others map[int64]int64, r *evaluator.WindowRequest) (missing int64) {
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

// shown returns how many exchanges ended within the minutes before an instant at which counts were
// split.
func shown(counts map[int64]int64, untilNS int64) (n int64) {
	for from, count := range counts {
		if from >= shownFromNS(untilNS) && from < untilNS {
			n += count
		}
	}
	return n
}

// showsLess reports whether counts contain less than was seen at the last watch, if the counts
// reach back that far.
func showsLess(counts map[int64]int64, r *evaluator.WindowRequest) bool {
	last := &r.Watch
	return last.UntilNS <= r.WatermarkNS && shownFromNS(last.UntilNS) >= r.WatermarkNS-lateMostNS && shown(counts, last.UntilNS) < last.Shown
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

// absenceToNS returns where windows of rules on absence end, and whether exchanges that such a
// window lacks are absent. If exchanges became visible later than before, the end of windows does
// not move, and they show nothing until time has caught up.
func (p *pass) absenceToNS() (toNS int64, conclusive bool) {
	w := &p.out.Watch
	to := p.request.WatermarkNS - max(lateLeastNS, w.LateNS)
	if last := p.request.Watch.UntilNS; p.request.WatermarkNS-last <= pauseNS {
		to = min(to, last) // no other server was compared on what ended since then
	}
	if to < w.JudgedNS && w.JudgedNS <= p.request.WatermarkNS {
		return w.JudgedNS, false
	}
	if len(p.fresh) > 0 {
		w.JudgedNS = to
	}
	return to, len(p.fresh) > 0
}
