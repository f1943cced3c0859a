package window

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"tocsin/evaluator"
)

// What is not there yet looks like what is not there. So the source is watched for rules
// on absence: how many exchanges of their tenants ended in each bucket of the last quarter
// of an hour. Where a bucket of which all had ended before holds more than it did, an
// exchange became visible late, by no more than from the beginning of its bucket to now. The
// windows of these rules end by the most of an hour before the watermark, so that an
// exchange that is late again delays an alert, and raises none.
//
// Where a bucket holds less than it did, whoever answered is behind whoever answered
// before. Only answers of servers that the same pass found not to be behind say that
// something is absent. Servers that are asked in turn are watched one after the other, and
// each is held against the others as well. Who remembers no counts concludes nothing before
// the next watch, and takes no server that shows less of the minutes before the last watch
// than the checkpoint says.
//
// Who did not watch for a while does not know whether those who write exchanges could.
// Windows that reach into a pause raise nothing: an outage of the source is no absence.
//
// What a process remembers is valid only as long as the checkpoint says that this process
// watched last; the checkpoint holds the lateness, and since when there was no pause.

const (
	// bucketNS is the width of a bucket.
	bucketNS = 10 * secondNS
	// lateLeastNS is how late exchanges are taken to be at least, lateMostNS at most.
	lateLeastNS, lateMostNS = 10 * secondNS, 900 * secondNS
	// lateForNS is for how long a lateness stands.
	lateForNS = 3600 * secondNS
	// pauseNS is how far apart two watermarks may be for the source to have been watched
	// between them.
	pauseNS = 60 * secondNS
	// serversMost is how many servers are watched in one pass.
	serversMost = 3
	// shownNS is how far before a watch exchanges ended that the checkpoint has the number of.
	shownNS = 300 * secondNS
	// shownForNS is how long after that watch the source still answers for all of them.
	shownForNS = lateMostNS - shownNS
)

// ArrivalsQuery asks how many exchanges ended in each bucket.
type ArrivalsQuery struct {
	Tenants evaluator.Tenants
	// FromNS, inclusive, and ToNS, exclusive, are when exchanges ended, in nanoseconds
	// since the Unix epoch; StartFromNS is as in [Query]. CutNS is an instant between them
	// at which the bucket that holds it is cut in two.
	FromNS, ToNS, CutNS, StartFromNS int64
	// WidthNS is the width of a bucket; bucket n begins at n × WidthNS.
	WidthNS int64
}

// Arrivals is the answer to an [ArrivalsQuery].
type Arrivals struct {
	// Server is as in [evaluator.Observation].
	Server string
	// Counts holds how many exchanges ended in each bucket that has some, by where the
	// bucket, or the part of it behind the cut, begins.
	Counts map[int64]int64
}

// watched is what a process remembers of the watch over a partition.
type watched struct {
	untilNS int64
	tenants []string
	// server is who gave the counts.
	server string
	counts map[int64]int64
	// late holds how late exchanges became visible, and when that was seen.
	late []lateness
	// servers holds when each server answered last.
	servers map[string]int64
	// fresh, toNS and conclusive are what the watch came to.
	fresh      map[string]bool
	toNS       int64
	conclusive bool
}

type lateness struct{ byNS, atNS int64 }

// watch watches the source, and fills in what the checkpoint is to hold, and where windows of
// rules on absence end.
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
		asks = serversMost // nobody knows which there are
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
		return nil // it is as if nobody had watched
	}
	for _, server := range slices.Sorted(maps.Keys(answers)) {
		lateNS, behind := answers[server].among(answers, p.request)
		next.late = append(next.late, lateness{min(lateMostNS, lateNS), now})
		if behind {
			continue // so it is where each shows what the other one does not
		}
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

// saw notes that a server answers, so that it is watched as well: where two are asked in
// turn, the same one might be watched each time, and the other one asked what is absent.
func (p *pass) saw(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.watches[p.request.Partition]; known != nil && server != "" {
		known.servers[server] = p.request.WatermarkNS
	}
}

// arrivalsQuery asks for what ended in the last quarter of an hour, cut where the last
// watch ended.
func (p *pass) arrivalsQuery(untilNS int64) ArrivalsQuery {
	to := p.request.WatermarkNS
	from := (to - lateMostNS) / bucketNS * bucketNS
	return ArrivalsQuery{
		Tenants: p.request.Tenants, FromNS: from, ToNS: to, CutNS: min(max(untilNS, from), to),
		StartFromNS: StartFromNS(int(lateMostNS/secondNS), to), WidthNS: bucketNS,
	}
}

// answer is what a server showed: the counts of whole buckets, and of what ended before the
// last watch. By what it shows that was not known, exchanges were lateNS late. It is behind
// where it misses what was known before.
type answer struct {
	whole, before map[int64]int64
	lateNS        int64
	behind        bool
}

// compare takes over an answer that misses nothing which was known before. After a pause
// nobody knows when what is new became visible.
func (w *watched) compare(known *watched, seen *Arrivals, paused bool, r *evaluator.WindowRequest) (a answer) {
	a = answer{whole: map[int64]int64{}, before: map[int64]int64{}}
	for from, count := range seen.Counts {
		bucket := from / bucketNS * bucketNS
		a.whole[bucket] += count
		if from < r.Watch.UntilNS {
			a.before[bucket] += count
		}
	}
	// What a server has shown, it takes back only where it is gone.
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

// among holds an answer against the others of the same pass. Where it misses what ended before
// the last watch, its server is behind; of what ended since, it is late.
func (a answer) among(others map[string]answer, r *evaluator.WindowRequest) (lateNS int64, behind bool) {
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

// misses returns how long ago the first bucket began of which counts hold less than others,
// 0 where there is none.
func misses(counts, others map[int64]int64, r *evaluator.WindowRequest) (missing int64) {
	oldest := (r.WatermarkNS - lateMostNS) / bucketNS * bucketNS
	for bucket, count := range others {
		if bucket >= oldest && counts[bucket] < count {
			missing = max(missing, r.WatermarkNS-bucket)
		}
	}
	return missing
}

// shownFromNS is from where on shown counts what ended before an instant.
func shownFromNS(untilNS int64) int64 { return (untilNS - shownNS) / bucketNS * bucketNS }

// shown returns how many exchanges ended within the minutes before an instant at which counts
// were cut.
func shown(counts map[int64]int64, untilNS int64) (n int64) {
	for from, count := range counts {
		if from >= shownFromNS(untilNS) && from < untilNS {
			n += count
		}
	}
	return n
}

// showsLess reports whether counts hold less than somebody saw at the last watch, as long as
// the watch reaches back that far: for ten minutes. A server that shows less for longer is
// believed.
func showsLess(counts map[int64]int64, r *evaluator.WindowRequest) bool {
	last := &r.Watch
	since := r.WatermarkNS - last.UntilNS
	return since >= 0 && since <= shownForNS && shown(counts, last.UntilNS) < last.Shown
}

// mostNS forgets what is long ago, and returns the greatest lateness of the rest.
func (w *watched) mostNS(now int64) (most int64) {
	var kept []lateness
	for _, l := range w.late {
		if now-l.atNS <= lateForNS && l.byNS > 0 {
			most = max(most, l.byNS)
			kept = append(kept, l)
		}
	}
	// Of those no older than another one that is no less, nothing is needed.
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

// absenceToNS returns where windows of rules on absence end, and whether what such a
// window lacks is absent: where exchanges became visible later than before, windows end
// where they ended, and say nothing until time has caught up.
func (p *pass) absenceToNS() (toNS int64, conclusive bool) {
	w := &p.out.Watch
	to := p.request.WatermarkNS - max(lateLeastNS, w.LateNS)
	if last := p.request.Watch.UntilNS; p.request.WatermarkNS-last <= pauseNS {
		to = min(to, last) // by what ended since then, no server was held against another one
	}
	if to < w.JudgedNS && w.JudgedNS <= p.request.WatermarkNS {
		return w.JudgedNS, false
	}
	if len(p.fresh) > 0 {
		w.JudgedNS = to
	}
	return to, len(p.fresh) > 0
}
