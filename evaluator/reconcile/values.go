package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// check is the count in an alert.
type check struct {
	alert *WindowAlert
	count *alerts.Count
	// cleared says that Tocsin resolved the alert because of it.
	cleared bool
}

// windowKey is the common part of counts that are measured by one query.
type windowKey struct {
	toNS, durationMS       int64
	seconds, short, centil int
	mode                   rules.FireMode
	by                     rules.Grouping
}

// values measures again the counts in alerts, within the compared range.
func (c *comparison) values(ctx context.Context) error {
	checks := map[windowKey][]check{}
	add := func(a *WindowAlert, count *alerts.Count, cleared bool) {
		if count == nil || count.ToNS < c.out.FromNS || count.ToNS > c.out.ToNS {
			return
		}
		key := windowKey{
			count.ToNS, count.DurationMS, count.WindowSeconds, count.ShortWindowSeconds, count.Percentile,
			cmp.Or(count.Mode, rules.CountInWindow), count.Grouping(),
		}
		checks[key] = append(checks[key], check{a, count, cleared})
	}
	for i := range c.alerts {
		a := &c.alerts[i]
		if a.Count.Fired == nil {
			add(a, &a.Count, false)
			continue
		}
		add(a, a.Count.Fired, false)
		add(a, &a.Count, true)
	}
	// The newest windows come first.
	keys := slices.SortedFunc(maps.Keys(checks), func(a, b windowKey) int {
		return cmp.Or(cmp.Compare(b.toNS, a.toNS), cmp.Compare(a.seconds, b.seconds))
	})
	for i, key := range keys {
		if i == checksMost {
			c.unchecked(fmt.Sprintf("the alerts are about more than %d windows; only the newest are measured", checksMost))
			break
		}
		if err := c.measure(ctx, key, checks[key]); err != nil {
			return err
		}
	}
	return nil
}

// era returns the condition that was in force at the end of a window; nil if it is not known.
func (c *comparison) era(toNS int64) *rules.Era {
	if toNS > c.rule.ArmedSinceNS {
		return &rules.Era{Scope: c.rule.Scope, Filter: c.rule.Filter, FromNS: c.rule.ArmedSinceNS, ToNS: cursor.MaxStartTimeNS}
	}
	for i := range c.rule.Former {
		if era := &c.rule.Former[i]; toNS > era.FromNS && toNS <= era.ToNS {
			return era
		}
	}
	return nil
}

// query returns the window that the counts of a key measured.
func (k *windowKey) query(tenant string, era *rules.Era) counting.Query {
	q := counting.Query{
		TenantID: tenant, ToNS: k.toNS, FromNS: max(k.toNS-int64(k.seconds)*secondNS, era.FromNS), StartFromNS: counting.StartFromNS(k.seconds, k.toNS),
		Grouping: k.by, Scope: era.Scope, Filter: era.Filter, Mode: k.mode, LeastNS: k.durationMS * 1e6, Percentile: k.centil, Limit: groupsRead,
	}
	if k.short > 0 {
		q.ShortFromNS = max(k.toNS-int64(k.short)*secondNS, era.FromNS)
	}
	return q
}

// measured is a measured window. Everything else about it is read only once, however many alerts
// are about it.
type measured struct {
	counting.Query
	// older says whether the source has an exchange that began before the window.
	older *bool
	// byGroup and whole are what ended in each cell, by group and for all groups together.
	byGroup, whole *[]Cell
}

// widthNS is the width of the cells for measuring lateness.
func (m *measured) widthNS() int64 { return max(secondNS, (m.ToNS-m.FromNS)/600) }

func (c *comparison) older(ctx context.Context, m *measured) (bool, error) {
	if m.older == nil {
		older, err := c.Windows.Older(ctx, m.TenantID, m.FromNS)
		if err != nil {
			return false, err
		}
		m.older = &older
	}
	return *m.older, nil
}

// cells returns what ended in each cell of a window, by group or for all groups together.
func (c *comparison) cells(ctx context.Context, m *measured, whole bool) ([]Cell, error) {
	into, q := &m.byGroup, CellsQuery{Query: m.Query, WidthNS: m.widthNS()}
	if whole {
		into, q.Grouping = &m.whole, rules.Grouping{}
	}
	if *into == nil {
		q.Limit = cellsMost
		list, err := c.Windows.Cells(ctx, q)
		if err != nil {
			return nil, err
		}
		*into = &list
	}
	return **into, nil
}

// measure measures one window, and compares the alerts about it.
func (c *comparison) measure(ctx context.Context, key windowKey, list []check) error {
	era := c.era(key.toNS)
	if era == nil {
		for _, k := range list {
			c.find(Finding{Kind: Unchecked, AlertID: k.alert.ID, Group: k.count.Group, AtNS: key.toNS, Why: "the condition of that time is no longer known, because the rule was edited or enabled since"})
		}
		return nil
	}
	m := measured{Query: key.query(c.rule.TenantID, era)}
	q := m.Query
	groups, err := c.Windows.Measure(ctx, q)
	if err != nil {
		return err
	}
	if err := c.compareWithAll(ctx, q, groups); err != nil {
		return err
	}
	found := make(map[string]*counting.Group, len(groups))
	for i := range groups {
		found[cursor.Key(groups[i].Group)] = &groups[i]
	}
	for _, k := range list {
		g := found[k.count.Group]
		switch {
		case g == nil && len(groups) == groupsRead:
			c.find(Finding{Kind: Unchecked, AlertID: k.alert.ID, Group: k.count.Group, AtNS: key.toNS, Why: "there are too many groups"})
			continue
		case g == nil:
			g = &counting.Group{Group: k.count.Group}
			if byErrorType(&q) && len(groups) > 0 {
				g.Volume, g.ShortVolume = groups[0].Volume, groups[0].ShortVolume
			}
		}
		if err := c.compare(ctx, &m, k, g); err != nil {
			return err
		}
	}
	return nil
}

// byErrorType reports whether each group is compared with all exchanges of the scope, because a
// completed exchange has no error type.
func byErrorType(q *counting.Query) bool {
	return q.Mode == rules.RatioInWindow && q.Grouping.By == rules.GroupByErrorType
}

func (c *comparison) compareWithAll(ctx context.Context, q counting.Query, groups []counting.Group) error {
	if !byErrorType(&q) {
		return nil
	}
	q.Grouping = rules.Grouping{}
	whole, err := c.Windows.Measure(ctx, q)
	if err != nil || len(whole) == 0 {
		return err
	}
	for i := range groups {
		groups[i].Volume, groups[i].ShortVolume = whole[0].Volume, whole[0].ShortVolume
	}
	return nil
}

// compare compares an alert with the content of its window.
func (c *comparison) compare(ctx context.Context, m *measured, k check, g *counting.Group) error {
	count, q := k.count, &m.Query
	compares := q.Mode == rules.RatioInWindow || q.Mode == rules.DurationInWindow
	stored, found := [4]int64{count.Observed}, [4]int64{g.Observed}
	if compares {
		stored[1], found[1] = count.Volume, g.Volume
	}
	if q.ShortFromNS > 0 {
		stored[2], stored[3], found[2], found[3] = count.ShortObserved, count.ShortVolume, g.ShortObserved, g.ShortVolume
	}
	f := Finding{
		AlertID: k.alert.ID, Group: count.Group, AtNS: count.ToNS,
		Stored: Volumes{stored[0], stored[1]}, Found: Volumes{found[0], found[1]},
	}
	says := bound{count.Mode, int64(count.Threshold), count.Measure}
	// An alert that ended because nothing was expected of its group any more has no value to check.
	if reached := says.reached(stored); reached == k.cleared && (!k.cleared || q.Mode != rules.AbsentInWindow) {
		f.Kind, f.Why = Unexpected, "it fired at a value that does not reach the threshold"
		if k.cleared {
			f.Why = "it was resolved at a value that reaches the threshold"
		}
		c.find(f)
		return nil
	}
	if k.cleared && stored[0] == 0 && found[0] == 0 {
		return nil // an empty window is compared with nothing
	}
	var fewer, more bool
	for i := range stored {
		fewer, more = fewer || stored[i] < found[i], more || stored[i] > found[i]
	}
	switch {
	case more:
		older, err := c.older(ctx, m)
		if err != nil {
			return err
		}
		f.Kind, f.Why = Different, "it counted more exchanges than the table contains: exchanges were deleted or changed, or the count is wrong"
		if !older {
			f.Kind, f.Why = Unchecked, "the source no longer has an exchange that is older than the window"
		}
	case fewer && stored[0] == found[0] && stored[1] == found[1]:
		f.Kind, f.Why = Different, "it counted fewer exchanges in the short window than the table contains"
	case fewer:
		late, known, err := c.lateness(ctx, m, g.Group, Volumes{found[0] - stored[0], found[1] - stored[1]})
		if err != nil {
			return err
		}
		f.Kind, f.LateBy, f.Why = Late, late, "the exchanges that it did not count became visible later"
		switch {
		case !known:
			f.Kind, f.LateBy, f.Why = Unchecked, 0, "it counted fewer exchanges than the table contains, and the window has too many groups to measure how late they became visible"
		case late > c.lateMost(q):
			f.Kind, f.Why = Different, fmt.Sprintf("it counted fewer exchanges than the table contains; some of them would have become visible %v after their end", late.Truncate(time.Second))
		}
	case q.Mode == rules.DurationInWindow && !k.cleared && count.DurationNS != g.DurationNS:
		f.Kind, f.Why = Different, fmt.Sprintf("it says %v, and the percentile is %v", time.Duration(count.DurationNS), time.Duration(g.DurationNS))
	default:
		return nil
	}
	c.find(f)
	return nil
}

// lateMost is how late uncounted exchanges may have been: the measured lateness or, if that is
// less, a lateness that is no defect.
func (c *comparison) lateMost(q *counting.Query) time.Duration {
	return time.Duration(max(leastLateNS, min(lateShareNS, (q.ToNS-q.FromNS)/2), c.progress.LateNS))
}

// lateness returns how late the exchanges must at least have been that a window contains but an
// alert did not count: the newest ones are missing. It is exact to a second, or to a 600th of the
// window. It is unknown if there are too many cells to read those of the group.
func (c *comparison) lateness(ctx context.Context, m *measured, group string, more Volumes) (by time.Duration, known bool, err error) {
	late := func(whole bool, group string, more Volumes) (lateNS int64, known bool, err error) {
		cells, err := c.cells(ctx, m, whole)
		if err != nil {
			return 0, false, err
		}
		for _, cell := range slices.Backward(cells) {
			if cell.Group == group && (more.Observed > 0 || more.Volume > 0) {
				lateNS = m.ToNS - (m.FromNS + cell.Number*m.widthNS())
				more = Volumes{more.Observed - cell.Possible.Observed, more.Volume - cell.Possible.Volume}
			}
		}
		return lateNS, len(cells) < cellsMost || cells[len(cells)-1].Group > group, nil
	}
	observed := more
	if byErrorType(&m.Query) {
		observed.Volume = 0
	}
	lateNS, known, err := late(false, group, observed)
	if err != nil || !known || !byErrorType(&m.Query) {
		return time.Duration(lateNS), known, err
	}
	allNS, known, err := late(true, "", Volumes{Volume: more.Volume})
	return time.Duration(max(lateNS, allNS)), known, err
}
