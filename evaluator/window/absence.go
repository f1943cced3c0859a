package window

import (
	"context"
	"time"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/rules"
)

const (
	// membersMost bounds the groups from which exchanges are expected; countedMost bounds those
	// that are counted to see which of them exist.
	membersMost, countedMost = maxGroups, 10 * maxGroups
	// learnedForNS is how long learned groups are valid. If a server could not return them, they
	// are valid for learnAgainNS longer, and are then asked for again.
	learnedForNS, learnAgainNS = 3600 * secondNS, 60 * secondNS
)

const (
	tooManyMembers = "more than 1000 groups were seen: exchanges of the 1000 with the most are expected; narrow the scope"
	tooManyValues  = "more than 1000 values of the attribute were seen: none is expected, because values that do not recur, such as IDs, would all be absent; list the expected values, or narrow the scope"
	tooManyCounted = "more than 10000 groups match, so it is not known which are absent; narrow the scope"
)

// members are the groups that a rule learned. They were last asked for at atNS, and are asked for
// again at againNS. known says that they were ever learned.
type members struct {
	version, atNS, againNS int64
	known                  bool
	groups                 []string
	problem                string
}

// absent reports whether the item is a rule on absence.
func (it *item) absent() bool { return it.FireMode == rules.AbsentInWindow }

// expect fills in the groups from which an item expects exchanges, and reports whether they are
// known.
func (p *pass) expect(it *item) bool {
	switch {
	case it.GroupBy == rules.GroupByNothing:
		it.members = []string{""}
	case it.LearnDays == 0:
		it.members = it.ExpectedGroups()
	default:
		p.mu.Lock()
		learned := p.learned[it.ID]
		p.mu.Unlock()
		if !learned.known || learned.version != it.Version {
			return false
		}
		it.members, it.memberProblem = learned.groups, learned.problem
	}
	return true
}

// learners returns items that learn the expected groups, for rules that do not know them or learned
// them a while ago. A server that may be behind is not asked.
func (p *pass) learners(items []*item) (list []*item) {
	if len(p.seen.Fresh) == 0 {
		return nil
	}
	for _, it := range items {
		if !it.absent() || it.GroupBy == rules.GroupByNothing || it.LearnDays == 0 {
			continue
		}
		p.mu.Lock()
		learned, ok := p.learned[it.ID]
		p.mu.Unlock()
		if ok && learned.version == it.Version && p.request.WatermarkNS < learned.againNS && p.request.WatermarkNS >= learned.atNS {
			continue
		}
		// The days are those before the window: a group that has just become absent was seen in them,
		// however long the window is.
		learner := &item{WindowRule: it.WindowRule, number: it.number, learns: true, seconds: it.LearnDays*86_400 + it.WindowSeconds, toNS: it.toNS}
		learner.fromNS, learner.limit = learner.cutNS(), membersMost+1
		learner.startFromNS = learner.fromNS - DefaultLookBackSeconds*secondNS
		list = append(list, learner)
	}
	return list
}

// learn takes the groups that a learner counted. A server that is behind has not seen all of them,
// so groups learned before stay.
func (p *pass) learn(it *item) {
	now := p.request.WatermarkNS
	p.watcher.Saw(p.request, it.server)
	if !p.seen.Fresh[it.server] {
		p.mu.Lock()
		defer p.mu.Unlock()
		m := p.learned[it.ID]
		if m.version != it.Version {
			m = members{version: it.Version}
		}
		m.atNS, m.againNS = now, now+learnAgainNS
		p.learned[it.ID] = m
		return
	}
	m := members{version: it.Version, atNS: now, againNS: now + learnedForNS, known: true}
	groups := it.groups
	if len(groups) > membersMost {
		groups, m.problem = groups[:membersMost], tooManyMembers
		if it.GroupBy == rules.GroupByAttribute {
			groups, m.problem = nil, tooManyValues
		}
	}
	for _, g := range groups {
		// A missing or empty attribute is never expected.
		if g.Group != "" || it.GroupBy != rules.GroupByAttribute {
			m.groups = append(m.groups, g.Group)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learned[it.ID] = m
}

// absences decides on the groups from which an item expects exchanges. An alert of any other group
// ends, because nothing is expected of it any more, unless it waits until the group is back.
func (p *pass) absences(it *item) {
	it.changes, it.problem = nil, it.memberProblem
	p.watcher.Saw(p.request, it.server)
	counted, byKey := make(map[string]Group, len(it.groups)), make(map[string]Group, len(it.groups))
	for _, g := range it.groups {
		counted[g.Group], byKey[groupKey(g.Group)] = g, g
	}
	expected := make(map[string]bool, len(it.members))
	wanted := make([]Group, len(it.members))
	for i, name := range it.members {
		g, ok := counted[name]
		if !ok {
			g = Group{Group: name}
		}
		wanted[i], expected[groupKey(name)] = g, true
	}
	value := alerts.Value{
		ArmedAt: time.Unix(0, it.ArmedSinceNS), Partial: it.partial,
		Inconclusive: it.partial || !p.seen.Conclusive || !p.seen.Fresh[it.server] || it.cutNS() < p.seen.Watch.SinceNS,
		Closed:       !it.Expects(it.cutNS(), it.toNS),
	}
	if len(it.groups) > countedMost {
		value.Inconclusive, it.problem = true, tooManyCounted
	}
	it.room = maxGroups - len(it.open)
	for _, g := range withOpen(wanted, it.open) {
		value.Observed = g.Observed
		if g.open != nil && !expected[g.open.Group] {
			if value.Observed = it.window.Threshold; it.waits(g.open) {
				g.Group = byKey[g.open.Group]
				value.Observed = g.Observed
			}
		}
		p.decide(it, g, value)
	}
}

// waits reports whether an alert of a group from which nothing is expected any more ends only when
// the group is back. A group that is silent for longer than the rule learns is forgotten, and
// nothing got better by that. A hold ends, and so does an alert from before the rule's present
// condition.
func (it *item) waits(open *evaluator.OpenAlert) bool {
	forgotten := it.LearnDays > 0 && !open.Held && !open.Since.Before(time.Unix(0, it.ArmedSinceNS))
	return forgotten || it.memberProblem == tooManyValues
}

// describeAbsent fills in the texts of an item's changes. There is no exchange to show.
func (p *pass) describeAbsent(ctx context.Context, it *item) {
	for i := range it.changes {
		if c := &it.changes[i]; c.described() {
			p.describeOne(ctx, it, &c.Instance, new(it.Grouping().Example(c.Instance.Count.Group)))
		}
	}
}
