package window

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"tocsin/rules"
)

// tenantSet is the rules of one tenant of which there are tallies. Most of many tenants have none in
// a window.
type tenantSet struct {
	items []*item
	// index finds the items that an exchange matches and, under the numbers that follow
	// theirs, those that compare with it: compared holds their numbers.
	index    *rules.Index
	compared []int
	sums     []map[string]*Group
	// wide says which items have too many groups to be summed here. summed counts the groups of all
	// tenants of a tally, which together may have no more than summedMost.
	wide   []bool
	summed *int
	// whole is what the groups of a ratio by error type are compared with.
	whole []Group
}

func newTenantSet(items []*item, summed *int) *tenantSet {
	s := &tenantSet{items: items, sums: make([]map[string]*Group, len(items)), whole: make([]Group, len(items)), wide: make([]bool, len(items)), summed: summed}
	judges := make([]*rules.Judge, len(items))
	for i, it := range items {
		judges[i] = it.Judge
	}
	for i, it := range items {
		if it.FireMode == rules.RatioInWindow {
			judges, s.compared = append(judges, it.Place()), append(s.compared, i)
		}
	}
	s.index = rules.NewIndex(judges)
	return s
}

// sumUp counts items from tallies, concludes, and returns the items for which tallies do not
// suffice.
func (p *pass) sumUp(ctx context.Context, items []*item, answer *Tallies) (rest []*item) {
	byTenantID := map[string][]*Tally{}
	for i := range answer.Tallies {
		t := &answer.Tallies[i]
		byTenantID[t.TenantID] = append(byTenantID[t.TenantID], t)
	}
	counted, summed := make([]*item, 0, len(items)), 0
	for _, some := range byTenant(items) {
		if slices.Contains(answer.Inexact, some[0].TenantID) {
			rest = append(rest, some...)
			continue
		}
		var set *tenantSet
		if tallies := byTenantID[some[0].TenantID]; len(tallies) > 0 {
			set = newTenantSet(some, &summed)
			for _, t := range tallies {
				set.add(t)
			}
		}
		for i, it := range some {
			it.server = answer.Server
			if set != nil && !set.result(i) {
				p.remember(wide{it.ID})
				rest = append(rest, it)
				continue
			}
			if p.decides(it) {
				counted = append(counted, it)
			} else {
				rest = append(rest, it)
			}
		}
	}
	slices.SortFunc(counted, func(a, b *item) int { return a.number - b.number })
	p.conclude(ctx, counted)
	return rest
}

// result gives an item its groups, and reports whether it has few enough to be summed here.
func (s *tenantSet) result(number int) bool {
	if s.wide[number] {
		return false
	}
	it := s.items[number]
	it.choose(s.sums[number], s.whole[number])
	return true
}

// choose gives an item the summed groups with an open alert and those that may reach its threshold,
// as a source does. whole is what the groups of a ratio by error type are compared with.
func (it *item) choose(sums map[string]*Group, whole Group) {
	if it.absent() {
		it.groups = largest(slices.Collect(maps.Values(sums)), it.limit)
		return
	}
	open := make(map[string]bool, len(it.open))
	for i := range it.open {
		open[it.open[i].Group] = true
	}
	var first, others []*Group
	for _, g := range sums {
		if it.byErrorType() {
			g.Volume, g.ShortVolume = whole.Volume, whole.ShortVolume
		}
		switch {
		case len(open) > 0 && open[groupKey(g.Group)]:
			first = append(first, g)
		case it.partial && g.Observed >= it.window.Least() || !it.partial && it.window.Reached(it.value(g)):
			others = append(others, g)
		}
	}
	it.groups = append(largest(first, len(first)), largest(others, it.limit)...)
}

// decides reports whether a tally is enough for an item.
func (p *pass) decides(it *item) bool {
	switch {
	case it.learns:
		return true
	case it.absent():
		// With a partial window nothing is absent, and an open alert needs the number.
		return !it.partial || len(it.open) == 0
	case it.partial:
		return len(it.open)+len(it.groups) == 0
	case it.FireMode == rules.DurationInWindow:
		p.steps(it)
		return len(it.changes) == 0
	}
	return true
}

// byTenant splits items that are sorted by tenant.
func byTenant(items []*item) (tenants [][]*item) {
	for from := 0; from < len(items); {
		to := from
		for to < len(items) && items[to].TenantID == items[from].TenantID {
			to++
		}
		tenants = append(tenants, items[from:to])
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
		compared := n >= len(s.items)
		if compared {
			n = s.compared[n-len(s.items)]
		}
		it := s.items[n]
		if s.wide[n] || t.FromNS < it.cutNS() || t.Attribute != it.GroupByAttribute || !compared && !it.Matches(&e) {
			continue
		}
		g := &s.whole[n]
		if !compared || !it.byErrorType() {
			if g = s.group(n, it.groupOf(t, &e)); g == nil {
				continue
			}
		}
		g.sum(t, it, compared)
	}
}

// groupOf returns the group in which an item counts a tally.
func (it *item) groupOf(t *Tally, e *rules.Exchange) string {
	if it.GroupBy == rules.GroupByAttribute {
		return t.Group
	}
	return it.Grouping().Of(e)
}

// sum adds a tally that an item matches, or compares with.
func (g *Group) sum(t *Tally, it *item, compared bool) {
	short := it.ShortWindowSeconds > 0 && t.FromNS >= it.shortCutNS()
	if compared || it.FireMode == rules.DurationInWindow {
		g.Volume += t.Observed
		if short {
			g.ShortVolume += t.Observed
		}
	}
	if !compared && t.LeastNS >= it.leastNS() {
		g.observe(t)
		if short {
			g.ShortObserved += t.Observed
		}
	}
}

// group returns the sum of a group of an item, or nil if the item has too many groups. Many rules
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
	if *s.summed >= summedMost && len(s.sums[number]) > maxGroups {
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
