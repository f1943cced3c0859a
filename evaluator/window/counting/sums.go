package counting

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"tocsin/cursor"
	"tocsin/rules"
)

// tenantSet is the rules of one tenant of which there are tallies. Most of many tenants have none in
// a window.
type tenantSet struct {
	windows []*Window
	// index finds the windows that an exchange matches and, under the numbers that follow
	// theirs, those that compare with it: compared holds their numbers.
	index    *rules.Index
	compared []int
	sums     []map[string]*Group
	// wide says which windows have too many groups to be summed here. summed counts the groups of all
	// tenants of a tally, which together may have no more than summedMost.
	wide   []bool
	summed *int
	// whole is what the groups of a ratio by error type are compared with.
	whole []Group
}

func newTenantSet(windows []*Window, summed *int) *tenantSet {
	s := &tenantSet{windows: windows, sums: make([]map[string]*Group, len(windows)), whole: make([]Group, len(windows)), wide: make([]bool, len(windows)), summed: summed}
	judges := make([]*rules.Judge, len(windows))
	for i, w := range windows {
		judges[i] = w.Judge
	}
	for i, w := range windows {
		if w.FireMode == rules.RatioInWindow {
			judges, s.compared = append(judges, w.Place()), append(s.compared, i)
		}
	}
	s.index = rules.NewIndex(judges)
	return s
}

// sumUp counts windows from tallies, concludes, and returns the windows for which tallies do not
// suffice.
func (p *Pass) sumUp(ctx context.Context, windows []*Window, answer *Tallies) (rest []*Window) {
	byTenantID := map[string][]*Tally{}
	for i := range answer.Tallies {
		t := &answer.Tallies[i]
		byTenantID[t.TenantID] = append(byTenantID[t.TenantID], t)
	}
	counted, summed := make([]*Window, 0, len(windows)), 0
	for _, some := range byTenant(windows) {
		if slices.Contains(answer.Inexact, some[0].TenantID) {
			continue
		}
		var set *tenantSet
		if tallies := byTenantID[some[0].TenantID]; len(tallies) > 0 {
			set = newTenantSet(some, &summed)
			for _, t := range tallies {
				set.add(t)
			}
		}
		for i, w := range some {
			w.Server = answer.Server
			if set != nil && set.wide[i] {
				p.remember(wide{w.key()})
				continue
			}
			if set != nil {
				w.choose(set.sums[i], set.whole[i])
			}
			if w.decided() {
				w.tallied = true
				counted = append(counted, w)
			}
		}
	}
	slices.SortFunc(counted, byNumber)
	p.conclude(ctx, counted)
	return slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return w.tallied })
}

// choose gives a window the summed groups with an open alert and those that may reach its threshold,
// as a source does. whole is what the groups of a ratio by error type are compared with.
func (w *Window) choose(sums map[string]*Group, whole Group) {
	if w.Absent() {
		w.Groups = largest(slices.Collect(maps.Values(sums)), w.Limit)
		return
	}
	open := make(map[string]bool, len(w.Open))
	for i := range w.Open {
		open[w.Open[i].Group] = true
	}
	var first, others []*Group
	for _, g := range sums {
		if w.byErrorType() {
			g.Volume, g.ShortVolume = whole.Volume, whole.ShortVolume
		}
		switch {
		case len(open) > 0 && open[cursor.Key(g.Group)]:
			first = append(first, g)
		case w.Partial() && g.Observed >= w.Bound.Least() || !w.Partial() && w.Bound.Reached(g.Value()):
			others = append(others, g)
		}
	}
	w.Groups = append(largest(first, len(first)), largest(others, w.Limit)...)
}

// decided reports whether sums are enough to decide on a window. Those of a partial window are upper
// bounds: nothing is absent in it, and an open alert needs the number.
func (w *Window) decided() bool {
	return !w.Partial() || len(w.Open) == 0 && (w.Absent() || len(w.Groups) == 0)
}

// byTenant splits windows that are sorted by tenant.
func byTenant(windows []*Window) (tenants [][]*Window) {
	for from := 0; from < len(windows); {
		to := from
		for to < len(windows) && windows[to].TenantID == windows[from].TenantID {
			to++
		}
		tenants = append(tenants, windows[from:to])
		from = to
	}
	return tenants
}

// add adds a tally to the sums of the rules that match it or compare with it.
func (s *tenantSet) add(t *Tally) {
	e := rules.Exchange{
		Status: t.Status, Environment: t.Environment, Application: t.Application, Route: t.Route, ErrorType: t.ErrorType,
	}
	for _, number := range s.index.Candidates(&e) {
		n := int(number)
		compared := n >= len(s.windows)
		if compared {
			n = s.compared[n-len(s.windows)]
		}
		w := s.windows[n]
		if s.wide[n] || t.FromNS < w.CutNS() || t.Attribute != w.GroupByAttribute || !compared && !w.Matches(&e) {
			continue
		}
		g := &s.whole[n]
		if !compared || !w.byErrorType() {
			if g = s.group(n, w.groupOf(t, &e)); g == nil {
				continue
			}
		}
		g.sum(t, w, compared)
	}
}

// groupOf returns the group in which a window counts a tally.
func (w *Window) groupOf(t *Tally, e *rules.Exchange) string {
	if w.GroupBy == rules.GroupByAttribute {
		return t.Group
	}
	return w.Grouping().Of(e)
}

// sum adds a tally that a window matches, or compares with.
func (g *Group) sum(t *Tally, w *Window, compared bool) {
	short := w.ShortWindowSeconds > 0 && t.FromNS >= w.shortCutNS()
	if compared || w.FireMode == rules.DurationInWindow {
		g.Volume += t.Observed
		if short {
			g.ShortVolume += t.Observed
		}
	}
	if !compared && t.LeastNS >= w.LeastNS() {
		g.observe(t)
		if short {
			g.ShortObserved += t.Observed
		}
	}
}

// group returns the sum of a group of a window, or nil if the window has too many groups. Many rules
// that each have many groups, as with an attribute, would take too much memory. Those rules are
// counted by their conditions, for which the source returns only the groups that are wanted.
func (s *tenantSet) group(number int, name string) *Group {
	if s.sums[number] == nil {
		s.sums[number] = map[string]*Group{}
	}
	g := s.sums[number][name]
	if g != nil {
		return g
	}
	if *s.summed >= summedMost && len(s.sums[number]) > MaxGroups {
		*s.summed -= len(s.sums[number])
		s.sums[number], s.wide[number] = nil, true
		return nil
	}
	*s.summed++
	g = &Group{Group: name}
	s.sums[number][name] = g
	return g
}

// largest returns the largest groups, in order.
func largest(sums []*Group, limit int) []Group {
	slices.SortFunc(sums, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Observed, a.Observed), strings.Compare(a.Group, b.Group))
	})
	groups := make([]Group, min(len(sums), limit))
	for i := range groups {
		groups[i] = *sums[i]
	}
	return groups
}
