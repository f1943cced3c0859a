package simulate

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/internal/simulate/model"
	"tocsin/rules"
)

// watching is since when a partition's source was watched without a pause, and until when,
// by the source's clock.
type watching struct {
	sinceNS, untilNS int64
	// looks are the watches that were committed since the last failover, pending the questions of
	// each process that belong to no commit so far.
	looks   []look
	pending map[*process][]look
}

// look is a watch of the source: who asked its questions, when first and when last, and for
// which exchanges, those that ended before an instant of the source's clock.
type look struct {
	p               *process
	firstNS, lastNS int64
	untilNS         int64
	tenants         []string
	// follows says that the process remembers what its look before this one showed.
	follows bool
}

const (
	// watchPause is how far apart two looks at the source may be for it to have been watched between
	// them; latenessLeast is how late exchanges are taken to be at least, latenessMost at most, and
	// latenessFor for how long.
	watchPause                  = int64(time.Minute)
	latenessLeast, latenessMost = int64(10 * time.Second), int64(15 * time.Minute)
	latenessFor                 = int64(time.Hour)
)

// watched notes that a partition's source was watched. Where its clock went back by more than a
// pause, the watch starts again, by the clock as it is now.
func (t *truth) watched(p *process, q *watch.ArrivalsQuery) {
	was := t.watches[q.Tenants.Index]
	if was == nil {
		was = &watching{sinceNS: q.ToNS, untilNS: q.ToNS, pending: map[*process][]look{}}
		t.watches[q.Tenants.Index] = was
	}
	if q.ToNS-was.untilNS > watchPause || q.ToNS < was.untilNS-watchPause {
		was.sinceNS, was.untilNS = q.ToNS, q.ToNS
	}
	was.untilNS = max(was.untilNS, q.ToNS)
	now := t.w.Now().UnixNano()
	mine := was.pending[p]
	if n := len(mine); n > 0 && mine[n-1].untilNS == q.ToNS {
		mine[n-1].lastNS = now
		return
	}
	was.pending[p] = append(mine, look{p: p, firstNS: now, lastNS: now, untilNS: q.ToNS, tenants: slices.Clone(q.Tenants.Names)})
}

// watchCommitted notes that a look is on record.
func (t *truth) watchCommitted(p *process, b *evaluator.Batch) {
	w := t.watches[uint32(b.Partition)]
	if w == nil || len(w.pending[p]) == 0 {
		return
	}
	mine := w.pending[p]
	last := mine[len(mine)-1]
	if last.untilNS != b.Watch.UntilNS {
		return // it did not count
	}
	if n := len(w.looks); n > 0 {
		before := &w.looks[n-1]
		apart := last.untilNS - before.untilNS
		last.follows = before.p == p && len(mine) == 1 && apart >= 0 && apart <= watchPause && slices.Equal(before.tenants, last.tenants)
	}
	delete(w.pending, p)
	w.looks = append(slices.DeleteFunc(w.looks, func(l look) bool { return last.untilNS-l.untilNS > 2*latenessFor }), last)
}

// unwatched forgets looks that a failover may have taken back.
func (t *truth) unwatched() {
	for _, w := range t.watches {
		w.looks = nil
		clear(w.pending)
	}
}

// lateness returns how late exchanges of a partition became visible within the last hour, as
// the process that watched saw it: one look found no server that showed an exchange which had
// ended, and a later one of the same process found none that did not.
func (t *truth) lateness(partition uint32) int64 {
	w, most := t.watches[partition], latenessLeast
	if w == nil || len(w.looks) == 0 {
		return most
	}
	present := w.looks[len(w.looks)-1].untilNS
	for _, x := range t.exchanges {
		if !slices.Contains(w.looks[len(w.looks)-1].tenants, x.tenant) || x.endNS-x.startNS > time.Hour.Nanoseconds() {
			continue
		}
		seen := slices.IndexFunc(w.looks, func(l look) bool { return l.lastNS >= x.seenNS })
		if seen < 1 || x.endNS >= w.looks[seen-1].untilNS || present-w.looks[seen].untilNS > latenessFor {
			continue
		}
		for i := seen; i < len(w.looks) && w.looks[i].follows; i++ {
			if late := w.looks[seen-1].untilNS - x.endNS; w.looks[i].firstNS > x.visibleNS && late <= latenessMost {
				most = max(most, late)
				break
			}
		}
	}
	return most
}

// presentIn returns how many exchanges ended in a window, whether any server shows them or not, but
// for those that come later than any other one of the last hour: nobody could know of them.
func (t *truth) presentIn(r *ruleTruth, group string, questions []asked, watchedNS int64) (n int64) {
	last, e := questions[len(questions)-1], r.present()
	from := max(last.toNS-int64(e.def.WindowSeconds)*int64(time.Second), e.armedNS)
	late := t.lateness(uint32(partitionOf(r.tenant)))
	for _, x := range t.exchanges {
		if x.tenant != r.tenant || x.endNS < from || x.endNS >= last.toNS || groupOf(&e.def, x) != group || !matches(&e.def, x) || x.endNS-x.startNS > time.Hour.Nanoseconds() {
			continue
		}
		if x.visibleNS < questions[0].atNS || watchedNS-x.endNS <= late {
			n++
		}
	}
	return n
}

// checkAbsence holds that exchanges were absent where an alert says so: few were seen, no more had
// ended than come later than any did within the last hour, and the source was watched for as long as
// the window. Where the alert ends, enough were seen. A hold, and the wait of a pending alert, may also end with the arming of its rule. Of
// instants that the source's clock passed twice, nobody knows when they were watched.
func (t *truth) checkAbsence(b *evaluator.Batch, c *window.Change, r *ruleTruth, questions []asked, was model.Alert) {
	a, e := &c.Instance, r.present()
	least, most := t.held(r, a.Count.Group, questions)
	threshold, watch := int64(e.def.Threshold), t.watches[uint32(partitionOf(r.tenant))]
	from := questions[0].toNS - int64(e.def.WindowSeconds)*int64(time.Second)
	must, may := t.expects(r, a.Count.Group, questions[0], questions[len(questions)-1])
	switch {
	case c.Step.Lessens() && !must && a.Count.Observed == 0: // nothing is expected of it any more
	case a.Count.Observed < least || a.Count.Observed > most:
		t.w.violate("P1", "rule %s makes the step %s for %q by a count of %d, and the servers show %d to %d", short(r.id), c.Step, a.Count.Group, a.Count.Observed, least, most)
	case c.Step.Lessens() && c.Step != alerts.Release && a.Count.Observed < threshold && !rearmed(c.Step, &was, e.armedNS):
		t.w.violate("P4", "rule %s makes the step %s for %q, although %d exchanges are fewer than %d", short(r.id), c.Step, a.Count.Group, a.Count.Observed, threshold)
	case c.Step.Lessens():
	case a.Count.Observed >= threshold:
		t.w.violate("P1", "rule %s makes the step %s for %q, although %d exchanges are seen of %d", short(r.id), c.Step, a.Count.Group, a.Count.Observed, threshold)
	case watch == nil || from < e.armedNS || from < watch.sinceNS && from >= t.setBackNS:
		t.w.violate("P1", "rule %s makes the step %s for %q by a window that begins at %s, and it was armed at %s", short(r.id), c.Step, a.Count.Group, t.w.instant(from), t.w.instant(e.armedNS))
	case !may && (c.Step != alerts.Remind && c.Step != alerts.Fire || e.def.LearnDays == 0): // of a group that is forgotten, an alert stays open, and a pending one fires
		t.w.violate("P1", "rule %s makes the step %s for %q, of which nothing is expected", short(r.id), c.Step, a.Count.Group)
	default:
		t.w.stats.Absences++
		if n := t.presentIn(r, a.Count.Group, questions, b.Watch.UntilNS); n >= threshold {
			t.w.violate("P1", "rule %s makes the step %s for %q, although %d exchanges of %d ended in its window, none of them more than %v late", short(r.id), c.Step, a.Count.Group, n, threshold,
				time.Duration(t.lateness(uint32(partitionOf(r.tenant)))))
		}
	}
}

// member is a group of which a rule expects exchanges.
type member struct {
	r     *ruleTruth
	group string
}

// expects reports whether a rule on absence has to expect exchanges of a group, and whether it may. What
// it learns it may have learned hours ago, where nobody could since.
func (t *truth) expects(r *ruleTruth, group string, first, last asked) (must, may bool) {
	d := &r.present().def
	if d.LearnDays == 0 {
		listed := d.GroupBy == rules.GroupByNothing && group == "" || slices.ContainsFunc(d.Expected, func(name string) bool {
			return groupOf(d, &exchange{app: name, customer: name}) == group
		})
		return listed, listed
	}
	const ago = int64(5 * time.Hour)
	since := last.toNS - int64(d.LearnDays)*int64(24*time.Hour)
	for _, x := range t.exchanges {
		if x.tenant != r.tenant || groupOf(d, x) != group || group == "" || !matches(d, x) {
			continue
		}
		may = may || x.seenNS <= last.atNS && x.endNS >= since-ago
		must = must || x.visibleNS <= first.atNS-ago && x.endNS >= since+ago
	}
	return must, may
}

// members returns the groups of which rules on absence have to expect exchanges.
func (w *world) members() (list []member) {
	now := asked{toNS: w.Now().UnixNano(), atNS: w.Now().UnixNano()}
	for _, r := range w.windowRules() {
		if !r.absent() {
			continue
		}
		d := &r.present().def
		var groups []string
		for _, name := range []string{"", "orders", "billing", "stock", "elsewhere", "7", "8", longCustomer()} {
			group := groupOf(d, &exchange{app: name, customer: name})
			if must, _ := w.truth.expects(r, group, now, now); must && !slices.Contains(groups, group) {
				groups = append(groups, group)
				list = append(list, member{r, group})
			}
		}
	}
	return list
}

// appear writes an exchange of a member that ends at an instant, which a server shows after a while. It
// reports whether the scope of the rule allows one.
func (w *world) appear(m member, end time.Time, afterNS int64) bool {
	d := &m.r.present().def
	e := &exchange{tenant: m.r.tenant, app: appOf(d), customer: "8", status: rules.Completed}
	switch d.GroupBy { //nolint:exhaustive // no rule groups by anything else
	case rules.GroupByApplication:
		e.app = m.group
	case rules.GroupByAttribute:
		for _, customer := range customers() {
			if e.customer = customer; groupOf(d, e) == m.group {
				break
			}
		}
	}
	e.endNS = end.UnixNano()
	e.startNS = e.endNS - int64(time.Second)
	if groupOf(d, e) != m.group || !matches(d, e) {
		return false
	}
	w.write(e, afterNS)
	return true
}

// pass lets a while pass in which there is a pass now and then, often enough for the source to be
// watched all the time.
func (w *world) pass(d time.Duration) {
	const apart = 6 * time.Second
	for end := w.Now().Add(d); w.violation == nil && w.Now().Before(end); {
		w.Sleep(min(apart, end.Sub(w.Now())))
		w.Wait()
		w.run(time.Millisecond)
	}
}

// steadily has, in seeds with rules on absence, the members of one appear as seldom as they may, all
// equally late, or later and later. It reports whether it did.
func (w *world) steadily() bool {
	list := slices.DeleteFunc(w.members(), func(m member) bool { return m.r.present().def.WindowSeconds > 60 })
	if len(list) == 0 || w.rand.IntN(20) > 0 {
		return false
	}
	r := list[w.rand.IntN(len(list))].r
	d := &r.present().def
	apart := time.Duration(d.WindowSeconds)*time.Second/time.Duration(d.Threshold) - 2*time.Second
	late, grows := []int64{0, 8, 20, 40, 90}[w.rand.IntN(5)], []int64{0, 0, 4}[w.rand.IntN(3)]
	w.note("the members of rule %s appear every %v, each time %d s late and %d s more", short(r.id), apart, late, grows)
	for n := range int64(3 + w.rand.IntN(12)) {
		for _, m := range list {
			if m.r == r {
				w.appear(m, w.Now().Add(w.makerSkew), (late+n*grows)*int64(time.Second))
			}
		}
		w.pass(apart)
		w.check()
	}
	return true
}

// vanish lets time pass in which no member appears, and holds that each rule on absence then has
// an alert of each, or a person has resolved that, once its window is over and the most that exchanges
// may be late.
func (w *world) vanish() {
	var longest time.Duration
	members := w.members()
	for _, m := range members {
		d := &m.r.present().def
		longest = max(longest, time.Duration(d.WindowSeconds+d.ForDurationSeconds)*time.Second)
	}
	missing := w.until(members, longest+time.Duration(latenessMost)+2*time.Minute, func(m member) bool {
		return slices.ContainsFunc(w.db.OpenOrHeld(m.r.id), func(a model.Alert) bool { return a.Group == m.group && a.State != alerts.Pending })
	})
	for _, m := range missing {
		w.violate("P1", "rule %s has no alert of %q, of which nothing ended for %v", short(m.r.id), m.group, longest+time.Duration(latenessMost))
	}
}

// comeBack has the members appear once, by the source's clock, and holds that what was raised about them
// ends. By a clock that is behind, they might come later than a window reaches. After a short window they are absent again,
// and have another alert.
func (w *world) comeBack() {
	if w.violation != nil {
		return
	}
	gone, members, open := map[member]bool{}, w.members(), map[uuid.UUID]bool{}
	for _, m := range members {
		for _, a := range w.db.OpenOrHeld(m.r.id) {
			open[a.ID] = true
		}
		for range m.r.present().def.Threshold {
			gone[m] = !w.appear(m, w.Now().Add(w.chSkew), 0)
		}
	}
	stays := w.until(members, time.Duration(latenessMost)+2*time.Minute, func(m member) bool {
		gone[m] = gone[m] || !slices.ContainsFunc(w.db.OpenOrHeld(m.r.id), func(a model.Alert) bool { return a.Group == m.group && open[a.ID] })
		return gone[m]
	})
	for _, m := range stays {
		w.violate("P4", "rule %s still has an alert of %q, of which %d exchanges ended", short(m.r.id), m.group, m.r.present().def.Threshold)
	}
}

// until lets time pass until something holds for all members, and returns those for which it does
// not hold after the most that there may pass.
func (w *world) until(members []member, most time.Duration, holds func(m member) bool) []member {
	for end := w.Now().Add(most); ; {
		left := slices.DeleteFunc(slices.Clone(members), holds)
		if len(left) == 0 || w.violation != nil || w.Now().After(end) {
			return left
		}
		w.pass(12 * time.Second)
	}
}
