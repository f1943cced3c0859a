package window

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// A tally is how many exchanges of one kind ended in one stretch of time; a kind is what
// conditions on names, status and error type can tell apart. The stretches are those into
// which the beginnings of the windows cut time, so a window is made up of whole ones, to
// the nanosecond. In the same way the bounds of rules on durations cut these, so how many
// exchanges lasted at least that long is exact, and that decides whether a percentile
// reaches the bound. What the percentile is, the tally does not tell: a rule of which an
// alert changes is counted by its condition.
//
// Rules that group by an attribute are tallied apart from the others, all of them together:
// the keys that most of them name tell kinds apart as well, and the rest is counted by its
// conditions. An attribute may have any number of values. Where there are more than a tally
// holds, the rules of the tenants that have them are counted by their conditions for a
// while, of which each answers with its largest groups.
//
// Sums over tallies are exact unless an exchange is in two of them, as when two rows of
// it name different error types. The source says so, and then the rules of that tenant
// are counted by their conditions. Of a window that begins before its rule was armed the
// sum is an upper bound: below the threshold it decides, else the condition is sent.

const (
	// tallyLeast is for how many rules it pays to tally: what is read is not narrowed by
	// their conditions.
	tallyLeast = 8
	// maxTallies bounds what is held of one answer.
	maxTallies = 100_000
	// summedMost bounds the groups of all rules that are summed up from it, but for the first
	// maxGroups of each.
	summedMost = 200_000
	// maxKeys is how many attributes one query tallies by: each exchange counts for each.
	maxKeys = 8
)

// wide names a rule of a tenant that has too many kinds to be tallied.
type wide struct{ rule uuid.UUID }

// setKey is what the rules of a set have in common.
type setKey struct {
	partition         int
	completed, failed bool
	// durations says that durations are told apart.
	durations bool
	// absent says that windows end where those of rules on absence do, learns that groups
	// are learned from it.
	absent, learns bool
	// attributes says that the values of attributes are told apart.
	attributes bool
	length     int
}

func (it *item) key() setKey {
	statuses := it.query.Statuses()
	return setKey{
		completed: slices.Contains(statuses, rules.Completed), failed: slices.Contains(statuses, rules.Failed),
		durations: it.query.Mode == rules.DurationInWindow, absent: it.absent(), learns: it.learns,
		attributes: it.query.Grouping.By == rules.GroupByAttribute, length: lengthOf(it.seconds),
	}
}

// sets returns what can be tallied together, what waits for longest first, each in the
// order of its tenants.
func sets(items []*item) [][]*item {
	byKey := map[setKey][]*item{}
	for _, it := range items {
		byKey[it.key()] = append(byKey[it.key()], it)
	}
	all := slices.SortedFunc(maps.Values(byKey), func(a, b []*item) int { return a[0].number - b[0].number })
	byTenantID := func(a, b *item) int { return strings.Compare(a.TenantID, b.TenantID) }
	for _, set := range all {
		// As a rule they come so, and many of them take longer to sort than to be evaluated.
		if !slices.IsSortedFunc(set, byTenantID) {
			slices.SortStableFunc(set, byTenantID)
		}
	}
	return all
}

// tally counts those items of a set whose conditions allow it, and returns the others.
func (p *pass) tally(ctx context.Context, set []*item) (rest []*item) {
	var plain []*item
	for _, it := range set {
		if it.plain() && p.slowUntil(wide{it.ID}).IsZero() {
			plain = append(plain, it)
		} else {
			rest = append(rest, it)
		}
	}
	plain, others := byUsualKeys(plain)
	if rest = append(rest, others...); len(plain) == 0 {
		return rest
	}
	key := plain[0].key()
	key.partition = p.request.Partition
	if !p.slowUntil(key).IsZero() {
		return set
	}
	return append(rest, p.tallied(ctx, key, plain)...)
}

// tallied tallies items and returns those that have to be counted otherwise. Where it
// fails, as on too many kinds, it tries each half of the tenants.
func (p *pass) tallied(ctx context.Context, key setKey, items []*item) (rest []*item) {
	if len(items) < tallyLeast || p.over(ctx) {
		return items
	}
	p.asked = true
	answer, err := p.Source.Tally(ctx, p.tallyQuery(items))
	switch {
	case err == nil:
		return p.sumUp(ctx, items, &answer)
	case p.over(ctx):
		// The next pass sends the conditions, which get on little by little.
		p.remember(key)
		return items
	case !p.answers(ctx, err):
		return items
	}
	p.Logger.DebugContext(ctx, "exchanges not tallied", slog.Int("rules", len(items)), slog.Any("error", err))
	middle := len(items) / 2
	if middle < tallyLeast {
		for _, it := range items {
			p.remember(wide{it.ID})
		}
		return items
	}
	return append(p.tallied(ctx, key, items[:middle]), p.tallied(ctx, key, items[middle:])...)
}

// byUsualKeys returns the items that can be tallied by one query, in their order, and the
// others: of those that group by an attribute, it can be done for the keys that most of them
// name.
func byUsualKeys(items []*item) (some, others []*item) {
	named := map[string]int{}
	for _, it := range items {
		named[it.query.Grouping.Attribute]++
	}
	if len(named) <= maxKeys {
		return items, nil
	}
	keys := slices.SortedFunc(maps.Keys(named), func(a, b string) int { return cmp.Or(named[b]-named[a], strings.Compare(a, b)) })
	for _, it := range items {
		if slices.Contains(keys[:maxKeys], it.query.Grouping.Attribute) {
			some = append(some, it)
		} else {
			others = append(others, it)
		}
	}
	return some, others
}

// plain reports whether a condition looks at no more than a tally tells.
func (it *item) plain() bool { return !rules.FieldsOf(&it.query.Scope, &it.query.Filter).Others }

// cutNS is where the window begins, whenever the rule was armed.
func (it *item) cutNS() int64 { return it.query.ToNS - int64(it.seconds)*secondNS }

// shortCutNS is where the short window begins, with its end where there is none.
func (it *item) shortCutNS() int64 {
	return it.query.ToNS - int64(it.ShortWindowSeconds)*secondNS
}

// tallyQuery asks for the kinds that the rules of one set tell apart.
func (p *pass) tallyQuery(items []*item) TallyQuery {
	first := &items[0].query
	q := TallyQuery{
		Tenants:     evaluator.Tenants{Index: p.request.Tenants.Index, Of: p.request.Tenants.Of},
		StartFromNS: first.StartFromNS, ToNS: first.ToNS, Statuses: first.Statuses(), Limit: maxTallies, NamesServer: items[0].absent(),
	}
	for _, it := range items {
		q.Tenants.Names = append(q.Tenants.Names, it.TenantID)
		q.FromNS = append(q.FromNS, it.cutNS())
		if it.ShortWindowSeconds > 0 {
			q.FromNS = append(q.FromNS, it.shortCutNS())
		}
		if it.query.Mode == rules.DurationInWindow {
			q.LeastNS = append(q.LeastNS, it.query.LeastNS)
		}
		looksAt, by := rules.FieldsOf(&it.query.Scope, &it.query.Filter), it.query.Grouping
		q.Environment = q.Environment || looksAt.Environment || by.By == rules.GroupByEnvironment
		q.Application = q.Application || looksAt.Application || by.By == rules.GroupByApplication
		q.Route = q.Route || looksAt.Route || by.By == rules.GroupByRoute
		q.ErrorType = q.ErrorType || looksAt.ErrorType || by.By == rules.GroupByErrorType
		if by.By == rules.GroupByAttribute {
			q.Attributes = append(q.Attributes, by.Attribute)
		}
	}
	slices.Sort(q.Attributes)
	q.Attributes = slices.Compact(q.Attributes)
	q.Tenants.Names = slices.Compact(q.Tenants.Names)
	slices.Sort(q.FromNS)
	q.FromNS = slices.Compact(q.FromNS)
	slices.Sort(q.LeastNS)
	q.LeastNS = slices.Compact(q.LeastNS)
	return q
}

// tenantSet is the rules of one tenant.
type tenantSet struct {
	items []*item
	// index finds the items that an exchange matches and, under the numbers that follow
	// theirs, those that compare with it: compared holds their numbers. It is nil until there is
	// an exchange: most of many tenants have none in a window.
	index    *rules.Index
	compared []int
	sums     []map[string]*Group
	// wide says which items have too many groups to be summed up here. It holds for all tenants
	// of a tally that together they had no more than summedMost groups.
	wide   []bool
	summed *int
	// whole is what the groups of a ratio by error type are compared with.
	whole []Group
}

func newTenantSet(items []*item, summed *int) *tenantSet {
	return &tenantSet{items: items, sums: make([]map[string]*Group, len(items)), whole: make([]Group, len(items)), wide: make([]bool, len(items)), summed: summed}
}

func (s *tenantSet) indexed() *rules.Index {
	if s.index != nil {
		return s.index
	}
	judges := make([]*rules.Judge, len(s.items))
	for i, it := range s.items {
		judges[i] = it.Judge
	}
	for i, it := range s.items {
		if it.query.Mode == rules.RatioInWindow {
			judges, s.compared = append(judges, it.Place()), append(s.compared, i)
		}
	}
	s.index = rules.NewIndex(judges)
	return s.index
}

// sumUp counts items by tallies, concludes, and returns those for which these do not do.
func (p *pass) sumUp(ctx context.Context, items []*item, answer *Tallies) (rest []*item) {
	var counted []*item
	tenants, summed := map[string]*tenantSet{}, 0
	for some := range slices.Values(byTenant(items)) {
		if slices.Contains(answer.Inexact, some[0].TenantID) {
			rest = append(rest, some...)
			continue
		}
		tenants[some[0].TenantID] = newTenantSet(some, &summed)
	}
	for i := range answer.Tallies {
		if set := tenants[answer.Tallies[i].TenantID]; set != nil {
			set.add(&answer.Tallies[i])
		}
	}
	for _, set := range tenants {
		for i, it := range set.items {
			if set.wide[i] {
				p.remember(wide{it.ID})
				rest = append(rest, it)
				continue
			}
			it.groups, it.server = largest(set.sums[i], it.query.Limit), answer.Server
			if it.byErrorType() {
				it.compareWith(set.whole[i : i+1])
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

// decides reports whether a tally is all that an item needs.
func (p *pass) decides(it *item) bool {
	switch {
	case it.learns:
		return true
	case it.absent():
		// Of a window that is partial nothing is absent, and what is open needs the number.
		return !it.partial || len(it.open) == 0
	case it.partial:
		return len(it.open) == 0 && (len(it.groups) == 0 || it.groups[0].Observed < it.window.Least())
	case it.query.Mode == rules.DurationInWindow:
		p.steps(it)
		return len(it.changes) == 0
	}
	return true
}

// byTenant cuts items that are sorted by tenant into those of each.
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
	for _, number := range s.indexed().Candidates(&e) {
		n := int(number)
		compared := n >= len(s.items)
		if compared {
			n = s.compared[n-len(s.items)]
		}
		it := s.items[n]
		if s.wide[n] || t.FromNS < it.cutNS() || t.Attribute != it.query.Grouping.Attribute || !compared && !it.Matches(&e) {
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
	if it.query.Grouping.By == rules.GroupByAttribute {
		return t.Group
	}
	return it.query.Grouping.Of(e)
}

// sum adds a tally that an item matches, or compares with.
func (g *Group) sum(t *Tally, it *item, compared bool) {
	short := it.ShortWindowSeconds > 0 && t.FromNS >= it.shortCutNS()
	if compared || it.query.Mode == rules.DurationInWindow {
		g.Volume += t.Observed
		if short {
			g.ShortVolume += t.Observed
		}
	}
	if !compared && t.LeastNS >= it.query.LeastNS {
		g.observe(t)
		if short {
			g.ShortObserved += t.Observed
		}
	}
}

// group returns the sum of a group of an item, nil where the item has too many: many rules that
// each have many groups, as of an attribute, would take more memory than there is. Those are
// counted by their conditions, of which the source returns the largest groups alone.
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
func largest(sums map[string]*Group, limit int) []Group {
	groups := make([]Group, 0, len(sums))
	for _, g := range sums {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Observed, a.Observed), strings.Compare(a.Group, b.Group))
	})
	return groups[:min(len(groups), limit)]
}
