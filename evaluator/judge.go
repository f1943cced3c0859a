package evaluator

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/rules"
)

// judge is a rule at work.
type judge struct {
	claim Claim
	*rules.Judge
	// stand is its own, or that of its cohort.
	*stand
	// problem is the first that came up while judging in this tick.
	problem string
	// unjudged says that the tick had no time for the rule, which is due again at once.
	unjudged bool
}

// stand is how far one claim, of a rule or of a cohort, has come in this tick.
type stand struct {
	id uuid.UUID
	// version is that of a rule, 0 of a cohort.
	version         int64
	tenantID        string
	lookBackSeconds int
	// from is the cursor in the database, at is where judging stands, and start
	// where it stood when the tick began.
	from      *cursor.Position
	at, start cursor.Position
	// backToNS is the start time from which on the look-back judges, pendingNS that
	// from which on there is anything for it to judge.
	backToNS, pendingNS int64
	// owedFromNS is the start time from which on anything behind the cursor is still
	// to be judged, beside what a process that starts judges anyway; owesNothing is none.
	owedFromNS int64
	// unreachedNS is the start time from which on nothing of what was owed can be judged
	// yet, because the clock was set back behind it; owesNothing is none.
	unreachedNS int64
}

// party is a rule alone, or a cohort; the other one is nil.
type party struct {
	*stand
	judge  *judge
	cohort *cohort
}

// group is rules and cohorts of one tenant that share scans.
type group struct {
	tenantID string
	judges   []*judge
	cohorts  []*cohort
	// index finds the judges of an exchange; nil until there is one to judge, and
	// after a judge was dropped. Those of cohorts have their own.
	index *rules.Index
	// behindhand says that the budget was spent before everything was judged: the
	// rules are due again at once, however long their intervals are.
	behindhand bool
}

// spreadNS is how far apart the cursors of one group may be. A rule that lags
// more reads its own way until it has caught up, and slows no other.
const spreadNS = int64(60e9)

// byTenant and byCursor say which stands, sorted by tenant and cursor, belong to
// one group with its first one.
func byTenant(first, next *stand) bool { return first.tenantID == next.tenantID }

func byCursor(first, next *stand) bool {
	return byTenant(first, next) && next.at.StartTimeNS-first.at.StartTimeNS <= spreadNS
}

// groups partitions parties, ordered by tenant and cursor.
func groups(parties []party, together func(first, next *stand) bool) []group {
	slices.SortStableFunc(parties, func(a, b party) int {
		return cmp.Or(cmp.Compare(a.tenantID, b.tenantID), a.at.Compare(b.at))
	})
	var out []group
	var first *stand
	for _, p := range parties {
		if first == nil || !together(first, p.stand) {
			first = p.stand
			out = append(out, group{tenantID: p.tenantID})
		}
		g := &out[len(out)-1]
		if p.cohort != nil {
			g.cohorts = append(g.cohorts, p.cohort)
		} else {
			g.judges = append(g.judges, p.judge)
		}
	}
	return out
}

// partiesOf returns rules and cohorts as parties.
func partiesOf(judges []*judge, cohorts []*cohort) []party {
	parties := make([]party, 0, len(judges)+len(cohorts))
	for _, j := range judges {
		parties = append(parties, party{stand: j.stand, judge: j})
	}
	for _, c := range cohorts {
		parties = append(parties, party{stand: c.stand, cohort: c})
	}
	return parties
}

// stands yields the stand of each rule that is alone, and of each cohort.
func (g *group) stands(yield func(*stand) bool) {
	for _, j := range g.judges {
		if !yield(j.stand) {
			return
		}
	}
	for _, c := range g.cohorts {
		if !yield(c.stand) {
			return
		}
	}
}

// empty reports whether nobody is left in the group.
func (g *group) empty() bool { return len(g.judges) == 0 && len(g.cohorts) == 0 }

// reaches returns how far behind the horizon the look-backs of the group's rules
// reach, and how often each is compared, the longest first. A look-back is
// counted from the cursor: after an outage it reaches behind what was judged
// before it. The lag is rounded up to minutes, so that it is the same from tick
// to tick.
func (g *group) reaches(horizonNS int64) []reach {
	distinct := map[reach]bool{}
	for s := range g.stands {
		if back := s.reachNS(); back > 0 {
			lag := max(0, horizonNS-s.start.StartTimeNS)
			if s.owedFromNS < s.start.StartTimeNS {
				back = max(back, s.start.StartTimeNS-s.owedFromNS)
			}
			distinct[reach{
				windowNS: ceil(back, minuteNS) + ceil(lag, minuteNS),
				periodNS: fullPeriodNS(int64(s.lookBackSeconds) * secondNS),
			}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(distinct), func(a, b reach) int {
		return cmp.Or(cmp.Compare(b.windowNS, a.windowNS), cmp.Compare(a.periodNS, b.periodNS))
	})
}

// reachNS returns how far behind its cursor a rule judges again, 0 when it does
// not look back: the look-back, and as long as something may wait there until it
// is found.
func (s *stand) reachNS() int64 {
	back := int64(s.lookBackSeconds) * secondNS
	if back == 0 {
		return 0
	}
	return back + waitNS(back)
}

// start returns the earliest position that anybody of the group stands at.
func (g *group) start() cursor.Position {
	var first *stand
	for s := range g.stands {
		if first == nil || first.at.After(s.at) {
			first = s
		}
	}
	return first.at
}

// statuses returns the union of what the group's rules can match, in a fixed order.
func (g *group) statuses() []rules.Status {
	var union []rules.Status
	for _, status := range []rules.Status{rules.Completed, rules.Failed} {
		if slices.ContainsFunc(g.judges, func(j *judge) bool {
			return j.CanWant(status)
		}) || slices.ContainsFunc(g.cohorts, func(c *cohort) bool {
			return slices.Contains(c.statuses, status)
		}) {
			union = append(union, status)
		}
	}
	return union
}

// maxApplications and maxApplicationBytes bound the names that a scan carries,
// so that a source which is read by HTTP gets them in a URL of less than 8 KiB.
const (
	maxApplications     = 100
	maxApplicationBytes = 2000
)

// applications returns the applications outside of which none of the group's
// rules wants anything, in a fixed order; none where any rule looks everywhere
// or by wildcard, or where they are too many to name.
//
// A name that is left out would lose alerts in silence: the cursor moves over
// what a scan narrows away. Therefore former conditions count like present ones.
func (g *group) applications() []string {
	union := map[string]bool{}
	bytes := 0
	add := func(names []string) bool {
		for _, name := range names {
			if union[name] {
				continue
			}
			union[name] = true
			if bytes += len(name); bytes > maxApplicationBytes || len(union) > maxApplications {
				return false
			}
		}
		return len(names) > 0
	}
	for _, j := range g.judges {
		if !add(j.Applications()) {
			return nil
		}
	}
	for _, c := range g.cohorts {
		if !add(c.applications) {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(union))
}

// scan returns what all scans for the group have in common: its tenant, and the
// union of what its rules can match. It holds while judges are only dropped.
func (g *group) scan() Scan {
	return Scan{TenantID: g.tenantID, Statuses: g.statuses(), Applications: g.applications()}
}

// completedLeastNS returns the duration below which nobody of the group wants an
// exchange that completed.
func (g *group) completedLeastNS() int64 {
	least := int64(math.MaxInt64)
	for _, j := range g.judges {
		least = min(least, j.LeastDurationNS(rules.Completed))
	}
	for _, c := range g.cohorts {
		for _, j := range c.judges {
			least = min(least, j.LeastDurationNS(rules.Completed))
		}
	}
	return least
}

// candidates yields the judges that may want an exchange.
func (g *group) candidates(e *rules.Exchange) iter.Seq[*judge] {
	return func(yield func(*judge) bool) {
		if g.index != nil {
			for _, number := range g.index.Candidates(e) {
				if !yield(g.judges[number]) {
					return
				}
			}
		}
		for _, c := range g.cohorts {
			for _, number := range c.index.Candidates(e) {
				if !yield(c.judges[number]) {
					return
				}
			}
		}
	}
}

// forward judges a page that a scan found after the group's start, and moves
// everybody to an end, which part of the page may lie beyond. It returns what the
// rules raise, but for what was written together with the cursor that they had.
func (g *group) forward(page []rules.Exchange, end cursor.Position, raise raiser, known *known) findings {
	var f findings
	for i := range page {
		e := &page[i]
		for j := range g.candidates(e) {
			if !e.Position().After(j.at) || !j.Wants(e) {
				continue
			}
			if to, there := known.with(j.claim.Rule.ID, e.Key()); !there || j.from == nil || to != *j.from {
				raise.add(&f, j, e, false)
			}
		}
	}
	for s := range g.stands {
		if end.After(s.at) {
			s.at = end
		}
	}
	return f
}

// again judges a page of a changed stretch: what lies at or before the cursor
// that the tick began with, and within the rule's look-back. The rest is the
// forward scan's, and what is known has its alert.
func (g *group) again(page []rules.Exchange, raise raiser, known *known) findings {
	var f findings
	for i := range page {
		e := &page[i]
		for j := range g.candidates(e) {
			if e.StartTimeNS >= j.backToNS && !e.Position().After(j.start) && j.Wants(e) && !known.has(j.claim.Rule.ID, e.Key()) {
				raise.add(&f, j, e, true)
			}
		}
	}
	return f
}

// behind returns those start times from which on anything lies behind the cursor
// of anybody. What begins after all of them is the forward scan's alone, and no
// exchange has the empty id that a cursor at the horizon has.
func (g *group) behind(changed []int64) []int64 {
	foremost := g.foremost()
	before := foremost.StartTimeNS
	if foremost.ExecutionID != "" {
		before++
	}
	end, _ := slices.BinarySearch(changed, before)
	return changed[:end]
}

// foremost returns the last cursor that the tick began with.
func (g *group) foremost() cursor.Position {
	last := cursor.Position{StartTimeNS: math.MinInt64}
	for s := range g.stands {
		if s.start.After(last) {
			last = s.start
		}
	}
	return last
}

// keep drops the judges for which standing does not hold.
func (g *group) keep(standing func(*judge) bool) {
	before := len(g.judges)
	g.judges = slices.DeleteFunc(g.judges, func(j *judge) bool { return !standing(j) })
	if len(g.judges) != before {
		g.index = nil
	}
}

// advances returns what a commit says about the group's rules: of those that
// found something and, when they are released, of all. The others move later,
// over what they did not want. A cursor may advance to where it is: its
// compare-and-set still proves that the claim stands.
func (g *group) advances(found findings, release bool) []Advance {
	var out []Advance
	for _, j := range g.judges {
		if !release && found.finders[j.claim.Rule.ID] == nil {
			continue
		}
		out = append(out, Advance{
			RuleID: j.claim.Rule.ID, Token: j.claim.Token, Version: j.claim.Rule.Version,
			From: j.from, To: j.at, OwedFromNS: j.owed(), Release: release,
			AtOnce: release && (g.behindhand || j.unjudged), Problem: j.problem, Unjudged: j.unjudged,
		})
	}
	return out
}

// cohortAdvances returns the same about the group's cohorts.
func (g *group) cohortAdvances(found findings, release bool) []CohortAdvance {
	var out []CohortAdvance
	for _, c := range g.cohorts {
		if a := c.advance(found, release, release && g.behindhand); release || len(a.Finders) > 0 {
			out = append(out, a)
		}
	}
	return out
}
