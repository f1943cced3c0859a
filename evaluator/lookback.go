package evaluator

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"

	"tocsin/rules"
)

// The look-back finds exchanges that became visible behind the cursor: rows
// are written when an exchange ends, while the cursor orders by when it began.
//
// A ledger keeps a fingerprint (count and checksum of ids) of each second of
// each tenant's terminal exchanges. A second whose fingerprint differs from the
// last one seen holds something new, and is read and judged again; the alerts
// that it already has are there already. So a quiet look-back costs one small
// aggregation, however many exchanges and alerts lie in it.
//
// The last two minutes are compared in each tick, everything else within the
// look-back less often (see fullPeriodNS), first by minute and then by second.
// A comparison reads all rows that it compares, though, and so costs what history
// is long. Therefore the rows are counted first, which a source that is sorted by
// start time does without reading them: as long as there are as many in the very
// range that was compared last, it is left at that. What a count does not tell,
// because a row was changed in place, or as many were merged away as came, is found
// when the range has moved on, each minute.
// Fingerprints are taken before the forward scan of the same tick, over the
// same range: what they count, that scan can see; what comes later, changes
// them. The second in which the comparison before ended is counted in two parts,
// so that what has begun since then does not have all of it judged again.
//
// The look-back is counted from the cursor, not from the present: after an
// outage, what became visible shortly behind the cursor before or during it is
// as far behind the cursor as ever.
//
// The ledger lives in memory and is only ever a reason to read more. A process
// that starts, or a rule that is new to it, has seen nothing and judges its
// whole look-back once, and what was owed when the rule was claimed (see owing.go).

const (
	secondNS = int64(1e9)
	minuteNS = 60 * secondNS
	recentNS = 2 * minuteNS
	// gapSeconds is how far apart changed seconds may be to be read in one scan.
	gapSeconds = 5
)

// fullPeriodNS is how often a whole look-back is looked at: one of an hour each
// ten seconds, one of a day each four minutes.
func fullPeriodNS(window int64) int64 { return max(10*secondNS, window/360) }

// waitNS bounds how long something may wait in a look-back until it is found: a
// count can tell nothing of it until the range begins with another minute.
func waitNS(window int64) int64 { return fullPeriodNS(window) + minuteNS }

// FingerprintQuery asks for the fingerprints of a range of a tenant's terminal
// exchanges, by buckets of start time.
type FingerprintQuery struct {
	TenantID string
	Statuses []rules.Status
	// FromNS is inclusive, ToNS exclusive.
	FromNS, ToNS int64
	// WidthNS is the width of a bucket; bucket n begins at n × WidthNS.
	WidthNS int64
	// EdgeNS parts what is counted: what begins at or after it is fresh.
	EdgeNS int64
}

// Fingerprint tells whether the exchanges of a bucket are still the same. A bucket
// with the edge in it may have two.
type Fingerprint struct {
	Status   rules.Status
	Bucket   int64
	Fresh    bool
	Count    uint64
	Checksum uint64
}

// reach is a look-back to compare: how far it reaches behind the horizon, and
// how often all of it is looked at.
type reach struct{ windowNS, periodNS int64 }

// extent is the exchanges of one status within a window behind the horizon.
type extent struct {
	status   rules.Status
	windowNS int64
}

// look is a look at the rows of a range: at which horizon, and how many there
// were before they were compared.
type look struct {
	atNS, fromNS, toNS int64
	rows               uint64
}

type bucket struct {
	status rules.Status
	number int64
}

// checksum stands for the exchanges of a bucket.
type checksum struct{ count, sum uint64 }

// parts are the checksums of what began before the edge, and of everything.
type parts struct{ before, whole checksum }

// ledger remembers what was seen of each tenant, and what each rule judged of it.
type ledger struct {
	serial  int64
	tenants map[string]*seen
	// rules holds what each rule has judged that is alone, and each cohort.
	rules map[uuid.UUID]*memory
}

// seen is the ledger of one tenant.
type seen struct {
	minutes, seconds map[bucket]checksum
	// full holds how all of an extent was last looked at.
	full map[extent]look
	// edgeNS is the horizon of the last observation.
	edgeNS int64
	// forgottenNS is the start time before which nothing is remembered.
	forgottenNS int64
	// changes holds what changed, in the order of the serials.
	changes []change
}

// change is the start time from which on a second holds something new.
type change struct{ serial, fromNS int64 }

// memory is what one rule has judged again.
type memory struct {
	version int64
	// serial is that of the last observation whose changes are in pending or judged.
	serial int64
	// pending holds the start times from which on seconds are still to be judged,
	// ascending, one of a second. It is shared between rules and never changed in
	// place.
	pending []int64
	// backToNS is the start time back to which pending is judged.
	backToNS int64
	usedNS   int64
}

func newLedger() *ledger {
	return &ledger{tenants: map[string]*seen{}, rules: map[uuid.UUID]*memory{}}
}

// observe compares a tenant's look-backs, the longest first, with what was seen
// of them.
func (l *ledger) observe(ctx context.Context, source Source, q FingerprintQuery, reaches []reach) error {
	s := l.tenants[q.TenantID]
	if s == nil {
		s = &seen{minutes: map[bucket]checksum{}, seconds: map[bucket]checksum{}, full: map[extent]look{}}
		l.tenants[q.TenantID] = s
	}
	l.serial++
	horizon := q.ToNS
	recent := max(floor(horizon-reaches[0].windowNS, minuteNS), floor(horizon-recentNS, minuteNS))
	if err := s.compareSeconds(ctx, source, q, recent, horizon, l.serial); err != nil {
		return err
	}
	for _, r := range reaches {
		if !s.fullDue(q.Statuses, r, horizon) {
			continue
		}
		if err := s.compareWhole(ctx, source, q, r, recent, l.serial); err != nil {
			return err
		}
	}
	s.edgeNS = horizon
	s.forget(horizon, reaches[0].windowNS)
	return nil
}

// fullDue reports whether a whole look-back has to be compared for any of the
// statuses. What was compared on behalf of other rules, which want less, does
// not count: a rule may never be due at the same tick as they.
func (s *seen) fullDue(statuses []rules.Status, r reach, horizonNS int64) bool {
	return slices.ContainsFunc(statuses, func(status rules.Status) bool {
		for e, last := range s.full {
			if e.status == status && e.windowNS >= r.windowNS && last.atNS <= horizonNS && horizonNS-last.atNS < r.periodNS {
				return false
			}
		}
		return true
	})
}

// compareWhole compares a look-back up to an instant, unless it holds as many rows
// as when it was compared last. They are counted before they are compared: what
// comes between the two is counted by the next look.
func (s *seen) compareWhole(ctx context.Context, source Source, q FingerprintQuery, r reach, toNS, serial int64) error {
	now := look{atNS: q.ToNS, fromNS: floor(q.ToNS-r.windowNS, minuteNS), toNS: toNS}
	if now.fromNS < now.toNS {
		var err error
		if now.rows, err = source.Rows(ctx, q.TenantID, now.fromNS, now.toNS); err != nil {
			return fmt.Errorf("count rows: %w", err)
		}
		if !s.counted(q.Statuses, r, now) {
			if err := s.compareMinutes(ctx, source, q, now.fromNS, now.toNS, serial); err != nil {
				return err
			}
		}
	}
	for _, status := range q.Statuses {
		s.full[extent{status, r.windowNS}] = now
	}
	return nil
}

// counted reports whether the same range was compared for all of the statuses when
// it held as many rows.
func (s *seen) counted(statuses []rules.Status, r reach, now look) bool {
	for _, status := range statuses {
		last := s.full[extent{status, r.windowNS}]
		if last.atNS = now.atNS; last != now {
			return false
		}
	}
	return true
}

// compareMinutes finds the minutes of a range that changed, and compares their seconds.
func (s *seen) compareMinutes(ctx context.Context, source Source, q FingerprintQuery, from, to, serial int64) error {
	q.FromNS, q.ToNS, q.WidthNS = from, to, minuteNS
	prints, err := source.Fingerprints(ctx, q)
	if err != nil {
		return fmt.Errorf("fingerprint minutes: %w", err)
	}
	sums := sumsOf(prints)
	var changed []int64
	for key, now := range sums {
		if s.minutes[key] != now.whole {
			changed = append(changed, key.number*minuteNS)
		}
	}
	slices.Sort(changed)
	for _, r := range runs(changed, minuteNS, 0) {
		if err := s.compareSeconds(ctx, source, q, r.fromNS, r.toNS, serial); err != nil {
			return err
		}
	}
	// Only now: had the seconds not been read, the minutes must differ again.
	for key, now := range sums {
		s.minutes[key] = now.whole
	}
	return nil
}

// compareSeconds notes the seconds of a range that changed. Where all that had
// begun by the last observation is as it was, only what began since then is new.
func (s *seen) compareSeconds(ctx context.Context, source Source, q FingerprintQuery, from, to, serial int64) error {
	q.FromNS, q.ToNS, q.WidthNS, q.EdgeNS = from, to, secondNS, s.edgeNS
	prints, err := source.Fingerprints(ctx, q)
	if err != nil {
		return fmt.Errorf("fingerprint seconds: %w", err)
	}
	var changed []int64
	for key, now := range sumsOf(prints) {
		was := s.seconds[key]
		if was == now.whole {
			continue
		}
		s.seconds[key] = now.whole
		begin := key.number * secondNS
		if was == now.before {
			begin = max(begin, s.edgeNS)
		}
		changed = append(changed, begin)
	}
	for _, from := range firstOfSeconds(changed) {
		s.changes = append(s.changes, change{serial, from})
	}
	return nil
}

// sumsOf joins the parts of each bucket.
func sumsOf(prints []Fingerprint) map[bucket]parts {
	sums := make(map[bucket]parts, len(prints))
	for _, p := range prints {
		key := bucket{p.Status, p.Bucket}
		sum := sums[key]
		sum.whole.count += p.Count
		sum.whole.sum += p.Checksum
		if !p.Fresh {
			sum.before = checksum{p.Count, p.Checksum}
		}
		sums[key] = sum
	}
	return sums
}

// forgetNS is how long a window is remembered that no rule asks for any more.
const forgetNS = 120 * minuteNS

// forget drops what lies before every window that was asked for of late.
func (s *seen) forget(horizonNS, windowNS int64) {
	for e, last := range s.full {
		if horizonNS-last.atNS > forgetNS {
			delete(s.full, e)
			continue
		}
		windowNS = max(windowNS, e.windowNS)
	}
	beginNS := floor(horizonNS-windowNS, minuteNS)
	if beginNS <= s.forgottenNS {
		return
	}
	s.forgottenNS = beginNS
	for key := range s.minutes {
		if key.number < beginNS/minuteNS {
			delete(s.minutes, key)
		}
	}
	for key := range s.seconds {
		if key.number < beginNS/secondNS {
			delete(s.seconds, key)
		}
	}
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.fromNS < beginNS })
}

// since returns the start times from which on seconds changed after an
// observation, ascending, one of a second.
func (s *seen) since(serial int64) []int64 {
	at, _ := slices.BinarySearchFunc(s.changes, serial+1, func(c change, want int64) int {
		switch {
		case c.serial < want:
			return -1
		case c.serial > want:
			return 1
		}
		return 0
	})
	var changed []int64
	for _, c := range s.changes[at:] {
		changed = append(changed, c.fromNS)
	}
	return firstOfSeconds(changed)
}

// recall brings the memories of a group's rules up to the last observation and
// returns the start times from which on any of them has to judge seconds again.
func (l *ledger) recall(g *group, horizonNS int64) []int64 {
	s := l.tenants[g.tenantID]
	if s == nil {
		return nil
	}
	fresh := map[int64][]int64{}
	var union []int64
	for j := range g.stands {
		if j.reachNS() == 0 {
			// Its look-back is empty: nothing begins then.
			j.backToNS, j.pendingNS, j.unreachedNS = math.MaxInt64, math.MaxInt64, owesNothing
			continue
		}
		m := l.rules[j.id]
		if m == nil || m.version != j.version {
			m = &memory{version: j.version}
			l.rules[j.id] = m
		}
		m.usedNS = horizonNS
		j.unreachedNS = owesNothing
		if horizonNS < j.start.StartTimeNS && j.owedFromNS != owesNothing {
			j.unreachedNS = max(j.owedFromNS, horizonNS)
		}
		j.backToNS = min(j.start.StartTimeNS-j.reachNS(), j.owedFromNS)
		changed, known := fresh[m.serial]
		if !known {
			changed = s.since(m.serial)
			fresh[m.serial] = changed
			union = append(union, changed...)
		}
		if len(m.pending) > 0 {
			j.backToNS = min(j.backToNS, m.backToNS)
			union = append(union, m.pending...)
			changed = firstOfSeconds(slices.Concat(m.pending, changed))
		}
		m.pending, m.backToNS, m.serial = changed, j.backToNS, l.serial
		j.pendingNS = math.MaxInt64
		if len(changed) > 0 {
			j.pendingNS = changed[0]
		}
	}
	return firstOfSeconds(union)
}

// judged notes that a group has judged again everything but what is left.
func (l *ledger) judged(g *group, left []int64) {
	g.owe(left)
	for j := range g.stands {
		if m := l.rules[j.id]; m != nil {
			m.pending = left
		}
	}
}

// covers reports whether a cohort has judged no change that a rule has not: then
// nothing is missed when the rule joins it.
func (l *ledger) covers(cohort, rule *stand) bool {
	if cohort.reachNS() == 0 {
		return true
	}
	c, r := l.rules[cohort.id], l.rules[rule.id]
	return c != nil && r != nil && len(r.pending) == 0 && c.serial <= r.serial
}

// merge has a cohort remember what all of some rules have judged.
func (l *ledger) merge(cohort uuid.UUID, judges []*judge) {
	var merged *memory
	for _, j := range judges {
		m := l.rules[j.id]
		if m == nil || len(m.pending) > 0 {
			return // all is judged again
		}
		if merged == nil {
			merged = &memory{serial: m.serial, usedNS: m.usedNS}
		}
		merged.serial = min(merged.serial, m.serial)
	}
	if merged != nil {
		l.rules[cohort] = merged
	}
}

// sweep drops the memories of rules that have not been claimed for an hour.
func (l *ledger) sweep(horizonNS int64) {
	for id, m := range l.rules {
		if horizonNS-m.usedNS > 60*minuteNS {
			delete(l.rules, id)
		}
	}
}
