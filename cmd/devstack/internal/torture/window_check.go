//go:build unix

package torture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// checkWindows compares the alerts of window rules with what was written.
func (w *world) checkWindows(report *Report, t *tables) error {
	passes := t.passes()
	needed, err := w.passesNeeded()
	if err != nil {
		return err
	}
	for _, l := range w.truth.lives {
		if !l.rule.counts() {
			continue
		}
		r := l.rule.window
		fired := map[string][]alert{}
		for _, a := range t.alerts {
			if a.About != aGroup || a.RuleID != l.id {
				continue
			}
			report.Counts++
			fired[a.Group] = append(fired[a.Group], a)
			w.checkCounted(report, l, &a)
		}
		for _, group := range r.groups() {
			w.checkGroup(report, l, group, fired[group], passes, needed)
		}
		for group := range fired {
			if !slices.Contains(r.groups(), group) {
				report.find(unexpected, "%s: alerts of the group %q", l.rule.name, group)
			}
		}
	}
	return nil
}

// checkGroup holds the alerts of a group, in the order in which they fired, to their number and their states.
func (w *world) checkGroup(report *Report, l *life, group string, fired []alert, passes []int64, needed int) {
	w.checkApart(report, fired)
	if l.rule.window.mode == modeAbsence {
		// Nothing comes any more.
		if len(fired) == 0 {
			report.find(missed, "%s: %q is absent, and has no alert", l.rule.name, group)
		}
		for i, a := range fired {
			if want := map[bool]string{true: "FIRING", false: "RESOLVED"}[i == len(fired)-1]; a.State != want {
				report.find(altered, "alert %s of %q of %s, the %d of %d, is %s", a.ID, group, l.rule.name, i+1, len(fired), a.State)
			}
		}
		return
	}
	end, first, fell := w.began.Add(w.options.Length), 0, 0
	for i, a := range fired {
		if a.State != "RESOLVED" {
			report.find(altered, "alert %s of %q of %s is %s, and nothing has come for long", a.ID, group, l.rule.name, a.State)
		}
		if a.FiredAt.Before(end) {
			if first++; i > 0 && w.fellBetween(l, &fired[i-1], &a) {
				fell++
			}
		}
	}
	what := fmt.Sprintf("%s: %d alerts of %q while exchanges came", l.rule.name, first, group)
	if first == 0 && w.truth.evaluatedAbove(l, group, passes, needed, end.UnixNano()) {
		report.find(missed, "%s", what)
	} else if first == 0 {
		report.Unevaluated++
	}
	if first-fell > 1 {
		report.find(duplicated, "%s", what)
	}
}

// checkCounted holds what an alert says of its window, when it fired and when it resolved, to what was written: for some
// instant at which the window can have ended, that is what a server could show.
func (w *world) checkCounted(report *Report, l *life, a *alert) {
	r, at := l.rule.window, question{group: a.Group, toNS: a.FiredAt.UnixNano()}
	if _, err := fmt.Sscanf(a.Title, "%d of %d", &at.observed, &at.volume); err != nil {
		if _, err := fmt.Sscanf(a.Title, "%d", &at.observed); err != nil {
			report.find(miscounted, "alert %s of %s: %q names no count", a.ID, l.rule.name, a.Title)
			return
		}
	}
	// A window that begins before the arming counts from then on; of one on absence none does.
	began := l.periods[0].began
	at.fromNS = began.fromNS
	if r.mode == modeAbsence {
		at.fromNS += windowSeconds * 1e9
	} else {
		newest := slices.IndexFunc(w.truth.exchanges, func(e exchange) bool { return e.correlation() == a.Correlation })
		if newest < 0 || r.group(&w.truth.exchanges[newest]) != a.Group || !r.observes(&l.rule.condition, &w.truth.exchanges[newest]) {
			report.find(miscounted, "alert %s of %q of %s: its newest exchange is %q, which does not count", a.ID, a.Group, l.rule.name, a.Correlation)
			return
		}
		// The window holds the exchange.
		at.fromNS = w.truth.exchanges[newest].endNS + 1
		at.toNS = min(at.toNS, w.truth.exchanges[newest].endNS+windowSeconds*1e9)
	}
	if !r.fires(at.observed, at.volume) {
		report.find(miscounted, "alert %s of %q of %s fired at %d of %d", a.ID, a.Group, l.rule.name, at.observed, at.volume)
	}
	if !w.truth.shows(&l.rule, at) {
		report.find(miscounted, "alert %s of %q of %s fired at %d of %d at %.3f s, which nothing that was written makes up", a.ID, a.Group, l.rule.name,
			at.observed, at.volume, a.FiredAt.Sub(w.began).Seconds())
	}
	if a.ResolvedAt == nil {
		return
	}
	at.toNS, at.observed, at.volume = a.ResolvedAt.UnixNano(), a.Observed, a.Volume
	if r.fires(at.observed, at.volume) {
		report.find(miscounted, "alert %s of %q of %s resolved at %d of %d", a.ID, a.Group, l.rule.name, at.observed, at.volume)
	}
	if !w.truth.shows(&l.rule, at) {
		report.find(miscounted, "alert %s of %q of %s resolved at %d of %d at %.3f s, which nothing that was written makes up", a.ID, a.Group, l.rule.name,
			at.observed, at.volume, a.ResolvedAt.Sub(w.began).Seconds())
	}
}

// observes says whether an exchange is one of those that a rule observes, compares whether it is one that these are
// compared with.
func (r *windowRule) observes(c *condition, e *exchange) bool {
	return c.holds(e) && (r.mode != modeDuration || e.durationNS() >= r.minMS*1e6)
}

func (r *windowRule) compares(c *condition, e *exchange) bool {
	return r.mode == modeShare || r.mode == modeDuration && c.holds(e)
}

// question asks whether a group can have been counted so, at an instant from fromNS to toNS.
type question struct {
	group            string
	fromNS, toNS     int64
	observed, volume int64
}

// change is an instant from which on more or fewer exchanges are in the window. Certain are those that every server showed
// before the window ended, possible also those that one may have shown by the time of the alert.
type change struct {
	atNS int64
	// observed, volume and their certain parts change by so much.
	observed, volume, certain, certainVolume int64
}

// shows says whether there was an instant at which a window that ended there can have been counted so. The window moves
// over all instants in question, and stops where an exchange enters or leaves it. What it holds for certain was visible
// before its end, for nobody asks sooner. Of an absence, nobody asks sooner than ten seconds after that.
func (t *truth) shows(r *rule, q question) bool {
	const lengthNS = windowSeconds * int64(1e9)
	var changes []change
	var waits int64
	if r.window.mode == modeAbsence {
		waits = 10e9
	}
	for i := range t.exchanges {
		e, seen := &t.exchanges[i], t.seen[i]
		if e.endNS < q.fromNS-lengthNS || e.endNS >= q.toNS || seen == (span{}) || seen.fromNS > q.toNS || r.window.group(e) != q.group {
			continue
		}
		var in change
		if r.window.observes(&r.condition, e) {
			in.observed = 1
		}
		if r.window.compares(&r.condition, e) {
			in.volume = 1
		}
		// A window that ends at an instant holds what ended before it, and not what ended its length before.
		enters, leaves := e.endNS+1, e.endNS+lengthNS+1
		changes = append(changes, change{atNS: enters, observed: in.observed, volume: in.volume}, change{atNS: leaves, observed: -in.observed, volume: -in.volume})
		if certain := max(enters, seen.toNS-waits); certain < leaves {
			changes = append(changes, change{atNS: certain, certain: in.observed, certainVolume: in.volume}, change{atNS: leaves, certain: -in.observed, certainVolume: -in.volume})
		}
	}
	changes = append(changes, change{atNS: q.fromNS}, change{atNS: math.MaxInt64})
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.atNS, b.atNS) })
	var held change
	for i, next := range changes[:len(changes)-1] {
		held.observed, held.volume = held.observed+next.observed, held.volume+next.volume
		held.certain, held.certainVolume = held.certain+next.certain, held.certainVolume+next.certainVolume
		// Up to the next change it stays so.
		if until := changes[i+1].atNS; until == next.atNS || until <= q.fromNS || next.atNS > q.toNS-waits {
			continue
		}
		if held.certain <= q.observed && q.observed <= held.observed && held.certainVolume <= q.volume && q.volume <= held.volume {
			return true
		}
	}
	return false
}
