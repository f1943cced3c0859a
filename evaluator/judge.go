package evaluator

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/notify"
	"tocsin/rules"
)

// judge is a claimed rule at work, and how far it has come in this tick.
type judge struct {
	claim Claim
	*rules.Judge
	// from is the cursor in the database, at is where judging stands, and start
	// where it stood when the tick began.
	from      *cursor.Position
	at, start cursor.Position
	// backToNS is the start time from which on the look-back judges.
	backToNS int64
	// problem is the first that came up while judging in this tick.
	problem string
}

// group is rules of one tenant that share scans.
type group struct {
	tenantID string
	judges   []*judge
	// index finds the judges of an exchange; nil until there is one to judge, and
	// after a judge was dropped.
	index *rules.Index
	// behindhand says that the budget was spent before everything was judged: the
	// rules are due again at once, however long their intervals are.
	behindhand bool
}

// spreadNS is how far apart the cursors of one group may be. A rule that lags
// more reads its own way until it has caught up, and slows no other.
const spreadNS = int64(60e9)

// byTenant and byCursor say which judges, sorted by tenant and cursor, stand in
// one group with its first one.
func byTenant(first, next *judge) bool { return first.claim.Rule.TenantID == next.claim.Rule.TenantID }

func byCursor(first, next *judge) bool {
	return byTenant(first, next) && next.at.StartTimeNS-first.at.StartTimeNS <= spreadNS
}

// groups partitions judges, ordered by tenant and cursor.
func groups(judges []*judge, together func(first, next *judge) bool) []group {
	judges = slices.Clone(judges)
	slices.SortStableFunc(judges, func(a, b *judge) int {
		return cmp.Or(cmp.Compare(a.claim.Rule.TenantID, b.claim.Rule.TenantID), a.at.Compare(b.at))
	})
	var out []group
	for _, j := range judges {
		if n := len(out); n > 0 && together(out[n-1].judges[0], j) {
			out[n-1].judges = append(out[n-1].judges, j)
			continue
		}
		out = append(out, group{tenantID: j.claim.Rule.TenantID, judges: []*judge{j}})
	}
	return out
}

// reaches returns how far behind the horizon the look-backs of the group's rules
// reach, and how often each is compared, the longest first. A look-back is
// counted from the cursor: after an outage it reaches behind what was judged
// before it. The lag is rounded up to minutes, so that it is the same from tick
// to tick.
func (g *group) reaches(horizonNS int64) []reach {
	distinct := map[reach]bool{}
	for _, j := range g.judges {
		if back := j.reachNS(); back > 0 {
			lag := max(0, horizonNS-j.start.StartTimeNS)
			distinct[reach{
				windowNS: back + (lag+minuteNS-1)/minuteNS*minuteNS,
				periodNS: fullPeriodNS(int64(j.claim.Rule.LookBackSeconds) * secondNS),
			}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(distinct), func(a, b reach) int {
		return cmp.Or(cmp.Compare(b.windowNS, a.windowNS), cmp.Compare(a.periodNS, b.periodNS))
	})
}

// reachNS returns how far behind its cursor a rule judges again, 0 when it does
// not look back: the look-back, and as long as something may wait there until
// the comparison of the whole comes round.
func (j *judge) reachNS() int64 {
	back := int64(j.claim.Rule.LookBackSeconds) * secondNS
	if back == 0 {
		return 0
	}
	return back + fullPeriodNS(back)
}

// start returns the earliest position that a judge of the group stands at.
func (g *group) start() cursor.Position {
	return slices.MinFunc(g.judges, func(a, b *judge) int { return a.at.Compare(b.at) }).at
}

// statuses returns the union of what the group's rules can match, in a fixed order.
func (g *group) statuses() []rules.Status {
	var union []rules.Status
	for _, status := range []rules.Status{rules.Completed, rules.Failed} {
		if slices.ContainsFunc(g.judges, func(j *judge) bool {
			return j.CanWant(status)
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
	for _, j := range g.judges {
		names := j.Applications()
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if union[name] {
				continue
			}
			union[name] = true
			if bytes += len(name); bytes > maxApplicationBytes || len(union) > maxApplications {
				return nil
			}
		}
	}
	return slices.Sorted(maps.Keys(union))
}

// scan returns what all scans for the group have in common: its tenant, and the
// union of what its rules can match. It holds while judges are only dropped.
func (g *group) scan() Scan {
	return Scan{TenantID: g.tenantID, Statuses: g.statuses(), Applications: g.applications()}
}

// forward judges a page that a scan found after the group's start, and moves
// every judge to the position where the page ends. It returns what the rules
// raise.
func (g *group) forward(page []rules.Exchange, end cursor.Position, raise raiser) findings {
	var f findings
	for i := range page {
		e := &page[i]
		for _, number := range g.index.Candidates(e) {
			if j := g.judges[number]; e.Position().After(j.at) && j.Wants(e) {
				raise.add(&f, j, e, false)
			}
		}
	}
	for _, j := range g.judges {
		if end.After(j.at) {
			j.at = end
		}
	}
	return f
}

// again judges a page of a changed stretch: what lies at or before the cursor
// that the tick began with, and within the rule's look-back. The rest is the
// forward scan's.
func (g *group) again(page []rules.Exchange, raise raiser) findings {
	var f findings
	for i := range page {
		e := &page[i]
		for _, number := range g.index.Candidates(e) {
			j := g.judges[number]
			if e.StartTimeNS >= j.backToNS && !e.Position().After(j.start) && j.Wants(e) {
				raise.add(&f, j, e, true)
			}
		}
	}
	return f
}

// behind returns those seconds that reach behind the cursor of any judge. What
// begins after all of them is the forward scan's alone.
func (g *group) behind(seconds []int64) []int64 {
	last := slices.MaxFunc(g.judges, func(a, b *judge) int { return a.start.Compare(b.start) }).start
	end, _ := slices.BinarySearch(seconds, floor(last.StartTimeNS, secondNS)/secondNS+1)
	return seconds[:end]
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
	finders := make(map[uuid.UUID]bool)
	for i := range found.instances {
		finders[found.instances[i].RuleID] = true
	}
	var out []Advance
	for _, j := range g.judges {
		if !release && !finders[j.claim.Rule.ID] {
			continue
		}
		out = append(out, Advance{
			RuleID: j.claim.Rule.ID, Token: j.claim.Token, Version: j.claim.Rule.Version,
			From: j.from, To: j.at, Release: release, AtOnce: release && g.behindhand, Problem: j.problem,
		})
	}
	return out
}

// findings are alerts and what is owed for them.
type findings struct {
	instances     []alerts.Instance
	notifications []notify.Notification
}

// raiser makes alerts.
type raiser struct {
	newID func() uuid.UUID
	texts Texts
}

func (r raiser) add(f *findings, j *judge, e *rules.Exchange, late bool) {
	rule := &j.claim.Rule
	title, message, problem := r.texts.Texts(rule, e)
	if problem != nil && j.problem == "" {
		j.problem = problem.Error()
	}
	alert := alerts.Instance{
		ID: r.newID(), TenantID: rule.TenantID, RuleID: rule.ID, RuleVersion: rule.Version, RuleName: rule.Name,
		Severity: rule.Severity, State: alerts.Firing, Title: title, Message: message, Exchange: e.Clean(), Late: late,
	}
	f.instances = append(f.instances, alert)
	for _, webhook := range rule.WebhookIDs {
		f.notifications = append(f.notifications, notify.Notification{
			ID: r.newID(), TenantID: rule.TenantID, AlertID: alert.ID, RuleID: rule.ID,
			WebhookID: webhook, Reason: notify.ReasonFired, Status: notify.Pending,
		})
	}
}
