package window

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

const (
	// membersMost bounds the groups from which exchanges are expected; countedMost bounds those
	// that are counted to see which of them exist.
	membersMost, countedMost = counting.MaxGroups, 10 * counting.MaxGroups
	// learnedForNS is how long learned groups are valid. If a server could not return them, they
	// are valid for learnAgainNS longer, and are then asked for again.
	learnedForNS, learnAgainNS = 3600 * secondNS, 60 * secondNS
)

const (
	tooManyMembers = "more than 1000 groups were seen: exchanges of the 1000 with the most are expected; narrow the scope"
	tooManyValues  = "more than 1000 values of the attribute were seen: none is expected, because values that do not recur, such as IDs, would all be absent; list the expected values, or narrow the scope"
	tooManyCounted = "more than 10000 groups match, so it is not known which are absent; narrow the scope"
)

// members are the groups that a rule learned by a condition. They were last asked for at atNS, and are
// asked for again at againNS. known says that they were ever learned.
type members struct {
	by            condition
	atNS, againNS int64
	known         bool
	groups        []string
	problem       string
}

// condition is what the groups of a rule are learned by. Other edits of the rule, as of its note or its
// severity, do not change them. An edit of scope, filter or mode arms the rule again.
type condition struct {
	armedSinceNS int64
	grouping     rules.Grouping
	days         int
}

func conditionOf(w *counting.Window) condition {
	return condition{w.ArmedSinceNS, w.Grouping(), w.LearnDays}
}

// expect fills in the groups from which an item expects exchanges. It reports whether they are known,
// and whether they are to be learned: a rule learns those that it does not know or learned a while
// ago, unless only servers that may be behind could be asked.
func (p *pass) expect(it *item) (known, learns bool) {
	switch {
	case it.GroupBy == rules.GroupByNothing:
		it.members = []string{""}
		return true, false
	case it.LearnDays == 0:
		it.members = it.ExpectedGroups()
		return true, false
	}
	p.mu.Lock()
	learned := p.learned[it.ID]
	p.mu.Unlock()
	now, same := p.request.WatermarkNS, learned.by == conditionOf(&it.Window)
	if known = same && learned.known; known {
		it.members, it.memberProblem = learned.groups, learned.problem
	}
	return known, len(p.seen.Fresh) > 0 && (!same || now < learned.atNS || now >= learned.againNS)
}

// learner returns the window from which the expected groups of an item are learned. The days are
// those before the item's window: a group that has just become absent was seen in them, however long
// the window is.
func learner(it *item) *counting.Window {
	w := &counting.Window{
		Compiled: it.Compiled, Number: it.Number, Learns: true, Seconds: it.LearnDays*86_400 + it.WindowSeconds, ToNS: it.ToNS, Limit: membersMost + 1,
	}
	w.FromNS = w.CutNS()
	w.StartFromNS = w.FromNS - counting.DefaultLookBackSeconds*secondNS
	return w
}

// learn takes the groups that were counted in the window of a learner. A server that is behind has
// not seen all of them, so groups learned before stay.
func (p *pass) learn(w *counting.Window) {
	now := p.request.WatermarkNS
	p.watcher.Saw(p.request.watchRequest(), w.Server)
	if !p.seen.Fresh[w.Server] {
		p.mu.Lock()
		defer p.mu.Unlock()
		m := p.learned[w.ID]
		if by := conditionOf(w); m.by != by {
			m = members{by: by}
		}
		m.atNS, m.againNS = now, now+learnAgainNS
		p.learned[w.ID] = m
		return
	}
	m := members{by: conditionOf(w), atNS: now, againNS: now + learnedForNS, known: true}
	groups := w.Groups
	if len(groups) > membersMost {
		groups, m.problem = groups[:membersMost], tooManyMembers
		if w.GroupBy == rules.GroupByAttribute {
			groups, m.problem = nil, tooManyValues
		}
	}
	for _, g := range groups {
		// A missing or empty attribute is never expected.
		if g.Group != "" || w.GroupBy != rules.GroupByAttribute {
			m.groups = append(m.groups, g.Group)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learned[w.ID] = m
}

// unlearned notes which rules could not learn their groups. Those that know them are evaluated all the
// same, and learn them later; the others fail.
func (p *pass) unlearned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.items {
		it := &p.items[i]
		why := p.counts.Unlearned[it.ID]
		if why == nil {
			continue
		}
		m := p.learned[it.ID]
		if !m.known || m.by != conditionOf(&it.Window) {
			p.out.Failed[it.ID] = why
			continue
		}
		m.againNS = p.request.WatermarkNS + learnAgainNS
		p.learned[it.ID] = m
		p.out.Problems[it.ID] = "the expected groups could not be learned again, so those learned before are expected: " + why.Error()
	}
}

// forget removes what deleted rules learned.
func (p *pass) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.learned, func(_ uuid.UUID, m members) bool { return p.request.WatermarkNS-m.atNS > 24*learnedForNS })
}

// absences decides on the groups from which an item expects exchanges. An alert of any other group
// ends, because nothing is expected of it any more, unless it waits until the group is back.
func (p *pass) absences(it *item) {
	it.changes, it.problem = nil, it.memberProblem
	p.watcher.Saw(p.request.watchRequest(), it.Server)
	counted, byKey := make(map[string]counting.Group, len(it.Groups)), make(map[string]counting.Group, len(it.Groups))
	for _, g := range it.Groups {
		counted[g.Group], byKey[cursor.Key(g.Group)] = g, g
	}
	expected := make(map[string]bool, len(it.members))
	wanted := make([]counting.Group, len(it.members))
	for i, name := range it.members {
		g, ok := counted[name]
		if !ok {
			g = counting.Group{Group: name}
		}
		wanted[i], expected[cursor.Key(name)] = g, true
	}
	value := alerts.Value{
		ArmedAt: time.Unix(0, it.ArmedSinceNS), Partial: it.Partial(),
		Inconclusive: it.Partial() || !p.seen.Conclusive || !p.seen.Fresh[it.Server] || it.CutNS() < p.seen.Watch.SinceNS,
		Closed:       !it.Expects(it.CutNS(), it.ToNS),
	}
	if len(it.Groups) > countedMost {
		value.Inconclusive, it.problem = true, tooManyCounted
	}
	it.room = counting.MaxGroups - len(it.Open)
	for _, g := range withOpen(wanted, it.Open) {
		value.Observed = g.Observed
		if g.open != nil && !expected[g.open.Group] {
			if value.Observed = it.Bound.Threshold; it.waits(g.open) {
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
func (it *item) waits(open *alerts.OpenAlert) bool {
	forgotten := it.LearnDays > 0 && !open.Held && !open.Since.Before(time.Unix(0, it.ArmedSinceNS))
	return forgotten || it.memberProblem == tooManyValues
}

// describeAbsent fills in the texts of an item's changes. There is no exchange to show.
func (p *pass) describeAbsent(ctx context.Context, it *item) {
	for i := range it.changes {
		if c := &it.changes[i]; c.described() {
			p.describe(ctx, it, &c.Instance, new(it.Grouping().Example(c.Instance.Count.Group)))
		}
	}
}
