package reconcile

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// bound is the bound of a value.
type bound struct {
	mode      rules.FireMode
	threshold int64
	rules.Measure
}

// reached reports whether a value reaches the bound. v contains the observed number and the number
// that it is compared with, in the window and in the short window.
func (b *bound) reached(v [4]int64) bool {
	switch b.mode { //nolint:exhaustive // the others count
	case rules.AbsentInWindow:
		return v[0] < b.threshold
	case rules.RatioInWindow:
		reached := func(part, whole int64) bool {
			return part > 0 && float64(part)*100_000 >= math.Round(b.Percent*1000)*float64(whole)
		}
		return v[1] >= int64(b.MinVolume) && reached(v[0], v[1]) && (b.ShortWindowSeconds == 0 || reached(v[2], v[3]))
	case rules.DurationInWindow:
		// As many durations are shorter than the bound as are not observed; the duration at the
		// rank is not shorter.
		return v[1] >= int64(b.MinVolume) && v[1]-v[0] < (int64(b.Percentile)*v[1]+99)/100
	default:
		return v[0] >= b.threshold
	}
}

// series is the content of a group over a range, as sums up to each cell.
type series struct {
	fromNS, widthNS int64
	sure, possible  []Volumes
}

func newSeries(fromNS, toNS, widthNS int64) *series {
	cells := (toNS-fromNS)/widthNS + 2
	return &series{fromNS, widthNS, make([]Volumes, cells+1), make([]Volumes, cells+1)}
}

// add adds a cell. sum is called when all cells are added.
func (s *series) add(c *Cell) {
	if n := c.Number + 1; n > 0 && n < int64(len(s.sure)) {
		s.sure[n] = Volumes{s.sure[n].Observed + c.Sure.Observed, s.sure[n].Volume + c.Sure.Volume}
		s.possible[n] = Volumes{s.possible[n].Observed + c.Possible.Observed, s.possible[n].Volume + c.Possible.Volume}
	}
}

func (s *series) sum() {
	for i := 1; i < len(s.sure); i++ {
		s.sure[i].Observed += s.sure[i-1].Observed
		s.sure[i].Volume += s.sure[i-1].Volume
		s.possible[i].Observed += s.possible[i-1].Observed
		s.possible[i].Volume += s.possible[i-1].Volume
	}
}

// between returns what is certainly within the whole cells between two instants; touched returns
// what may be in all cells that these instants touch.
func (s *series) between(fromNS, toNS int64) Volumes {
	return difference(s.sure, s.index(fromNS-s.fromNS+s.widthNS-1), s.index(toNS-s.fromNS))
}

func (s *series) touched(fromNS, toNS int64) Volumes {
	return difference(s.possible, s.index(fromNS-s.fromNS), s.index(toNS-s.fromNS+s.widthNS-1))
}

func (s *series) index(ns int64) int64 { return min(max(ns, 0)/s.widthNS, int64(len(s.sure)-1)) }

func difference(sums []Volumes, from, to int64) Volumes {
	if to <= from {
		return Volumes{}
	}
	return Volumes{sums[to].Observed - sums[from].Observed, sums[to].Volume - sums[from].Volume}
}

// state is what is known about the values of the windows that end in a step: whether all of them
// certainly reached the bound when they were evaluated, and whether any of them may have.
type state struct{ surely, possibly bool }

// at returns the state of the step that begins at an instant. It is unknown whether exchanges that
// ended within lateNS before the end of a window were visible.
func (s *series) at(b *bound, seconds int, atNS, stepNS, lateNS int64) state {
	var least, most [4]int64 // the smallest and the largest possible values
	var sureVolume int64
	for i, length := range []int{seconds, b.ShortWindowSeconds} {
		if length == 0 {
			continue
		}
		from := atNS - int64(length)*secondNS
		sure, possible := s.between(from+stepNS, atNS-lateNS), s.touched(from, atNS+stepNS)
		// What is compared with, without what is observed.
		restLeast, restMost := max(0, sure.Volume-sure.Observed), max(0, possible.Volume-possible.Observed)
		least[2*i], least[2*i+1] = sure.Observed, sure.Observed+restMost
		most[2*i], most[2*i+1] = possible.Observed, possible.Observed+restLeast
		if i == 0 {
			sureVolume = sure.Volume
			most[1] = max(most[1], min(int64(b.MinVolume), possible.Volume))
		}
	}
	if b.mode == rules.AbsentInWindow {
		return state{surely: b.reached(most), possibly: b.reached(least)}
	}
	return state{surely: least[0] > 0 && sureVolume >= int64(b.MinVolume) && b.reached(least), possibly: b.reached(most)}
}

// gapNS is how long the rule may go without an evaluation before that is a pause.
func (c *comparison) gapNS() int64 { return pauseNS + 3*int64(c.rule.IntervalSeconds)*secondNS }

// evaluated returns a range such that all windows of the present condition that end in it were
// evaluated, and why it does not begin earlier.
func (c *comparison) evaluated() (fromNS, toNS int64, why string) {
	fromNS, toNS = c.out.FromNS, c.out.ToNS
	lengthNS := int64(c.rule.WindowSeconds) * secondNS
	later := func(ns int64, reason string) {
		if ns > fromNS {
			fromNS, why = ns, reason
		}
	}
	later(c.rule.ArmedSinceNS, "")
	if c.Keep > 0 {
		later(c.progress.UntilNS-c.Keep.Nanoseconds()+lengthNS, "retention has deleted older alerts")
	}
	if c.progress.EditedNS-c.rule.ArmedSinceNS > minuteNS {
		later(c.progress.EditedNS+lengthNS, "the rule was edited")
	}
	since := c.progress.SinceNS
	if since == 0 {
		since = c.progress.UntilNS // unknown
	}
	if since-c.rule.ArmedSinceNS > minuteNS {
		later(since+c.gapNS(), "the rule was not evaluated continuously before")
	}
	if c.rule.FireMode == rules.AbsentInWindow {
		later(c.rule.ArmedSinceNS+lengthNS, "")
		later(c.progress.WatchedSinceNS+lengthNS, "the source was not watched continuously before")
		toNS = min(toNS, c.progress.JudgedNS)
	}
	return fromNS, toNS, why
}

// stretches looks for groups that reached their value for long, and for open alerts whose value is
// not reached.
func (c *comparison) stretches(ctx context.Context) error {
	fromNS, toNS, why := c.evaluated()
	if fromNS-c.out.FromNS > minuteNS && why != "" {
		c.unchecked(fmt.Sprintf("missing alerts were not searched for before %s: %s", time.Unix(0, min(fromNS, toNS)).UTC().Format(time.RFC3339), why))
	}
	if fromNS >= toNS {
		return nil
	}
	d := &c.rule.Definition
	lengthNS := int64(d.WindowSeconds) * secondNS
	q := CellsQuery{
		WidthNS: max(secondNS, min(minuteNS, lengthNS/30)), SureNS: max(lengthNS, counting.DefaultLookBackSeconds*secondNS),
		Query: counting.Query{
			TenantID: c.rule.TenantID, FromNS: max(fromNS-lengthNS, c.rule.ArmedSinceNS), ToNS: toNS, StartFromNS: counting.StartFromNS(d.WindowSeconds, fromNS),
			Grouping: d.Grouping(), Scope: d.Scope, Filter: d.Filter, Mode: d.FireMode, LeastNS: d.DurationMS * 1e6, Limit: cellsMost,
		},
	}
	q.ToNS += q.WidthNS
	cells, err := c.Windows.Cells(ctx, q)
	if err != nil {
		return err
	}
	var whole []Cell
	if byErrorType(&q.Query) {
		all := q
		all.Grouping = rules.Grouping{}
		if whole, err = c.Windows.Cells(ctx, all); err != nil {
			return err
		}
	}
	members, known, err := c.members(ctx, fromNS, toNS)
	if err != nil {
		return err
	}
	byGroup := map[string][]Cell{}
	for from := 0; from < len(cells); {
		to := from
		for to < len(cells) && cells[to].Group == cells[from].Group {
			to++
		}
		byGroup[cells[from].Group] = cells[from:to]
		from = to
	}
	for _, name := range members {
		if _, known := byGroup[name]; !known {
			byGroup[name] = nil
		}
	}
	switch steps := int64(len(byGroup)) * (toNS - fromNS) / q.WidthNS; {
	case len(cells) == cellsMost || len(byGroup) > groupsMost || steps > stepsMost:
		c.unchecked("there are too many groups to look for missing alerts; compare fewer hours")
		return nil
	case !known:
		c.unchecked("the groups that were expected are not known")
		return nil
	}
	return c.look(&q, byGroup, whole, members, fromNS, toNS)
}

// members returns the groups from which a rule on absence expected exchanges all the time, and
// whether they are known.
func (c *comparison) members(ctx context.Context, fromNS, toNS int64) (names []string, known bool, err error) {
	switch {
	case c.rule.FireMode != rules.AbsentInWindow:
		return nil, true, nil
	case c.rule.GroupBy == rules.GroupByNothing:
		return []string{""}, true, nil
	case c.rule.LearnDays == 0:
		return c.rule.ExpectedGroups(), true, nil
	}
	// Learned within the hour: groups seen two hours before, and seen recently until the end.
	q := counting.Query{
		TenantID: c.rule.TenantID, FromNS: toNS - int64(c.rule.LearnDays)*dayNS, ToNS: fromNS - 2*hourNS, Grouping: c.rule.Grouping(),
		Scope: c.rule.Scope, Filter: c.rule.Filter, Mode: c.rule.FireMode, Limit: groupsMost + 1,
	}
	if q.StartFromNS = q.FromNS - hourNS; q.FromNS >= q.ToNS {
		return nil, false, nil
	}
	seen, err := c.Windows.Measure(ctx, q)
	if err != nil || len(seen) > groupsMost {
		return nil, false, err
	}
	for _, g := range seen {
		if g.Group != "" || c.rule.GroupBy != rules.GroupByAttribute {
			names = append(names, g.Group)
		}
	}
	return names, true, nil
}

// look checks the values of groups one after the other. whole is what the groups of a ratio by
// error type are compared with.
func (c *comparison) look(q *CellsQuery, byGroup map[string][]Cell, whole []Cell, members []string, fromNS, toNS int64) error {
	judge, err := rules.NewJudge(c.rule)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	d := &c.rule.Definition
	lengthNS := int64(d.WindowSeconds) * secondNS
	b := bound{d.FireMode, int64(d.Threshold), d.Measure()}
	lateNS := max(leastLateNS, c.progress.LateNS)
	absent := d.FireMode == rules.AbsentInWindow
	list := map[string][]*WindowAlert{}
	for i := range c.alerts {
		list[c.alerts[i].Count.Group] = append(list[c.alerts[i].Count.Group], &c.alerts[i])
	}
	looked := map[string]bool{}
	one := func(name string, cells []Cell) {
		looked[cursor.Key(name)] = true
		s := newSeries(q.FromNS, q.ToNS, q.WidthNS)
		for i := range whole {
			s.add(&Cell{Number: whole[i].Number, Sure: Volumes{0, whole[i].Sure.Volume}, Possible: Volumes{0, whole[i].Possible.Volume}})
		}
		for _, cell := range cells {
			if byErrorType(&q.Query) {
				cell.Sure.Volume, cell.Possible.Volume = 0, 0
			}
			s.add(&cell)
		}
		s.sum()
		states := func(lateNS int64) (list []state) {
			for at := fromNS; at <= toNS; at += q.WidthNS {
				now := s.at(&b, d.WindowSeconds, at, q.WidthNS, lateNS)
				if absent && !judge.Expects(at-lengthNS, at) {
					now.surely = false
				}
				list = append(list, now)
			}
			return list
		}
		alertsOf := list[cursor.Key(name)]
		if len(c.alerts) < alertsMost && (!absent || slices.Contains(members, name)) {
			c.lookForMissing(name, alertsOf, states, fromNS, q.WidthNS)
		}
		c.lookForUnexpected(name, alertsOf, states(lateNS), toNS, q.WidthNS)
	}
	for _, name := range slices.Sorted(maps.Keys(byGroup)) {
		one(name, byGroup[name])
	}
	// Groups that have only an alert. For an absence, they are not expected.
	for _, key := range slices.Sorted(maps.Keys(list)) {
		if !looked[key] && !absent {
			one(key, nil)
		}
	}
	return nil
}

// lookForMissing looks for periods in which an alert should have been open. For each it computes
// how late exchanges would have to have become visible for none to be missing. Lateness is only
// measured by the watch for rules on absence, and only for the last hour.
func (c *comparison) lookForMissing(name string, list []*WindowAlert, states func(lateNS int64) []state, fromNS, stepNS int64) {
	mostNS := int64(c.rule.WindowSeconds) * secondNS
	lateNS := max(leastLateNS, c.progress.LateNS)
	reached, missing := c.missing(list, states(lateNS), fromNS, stepNS)
	c.out.Matching += int64(reached)
	c.out.Alerted += int64(reached - len(missing))
	unnamed := max(0, findingsMost-c.named[Missing])
	unexplained, explained := missing[:min(len(missing), unnamed)], map[cursor.Range]int64{}
	for lateNS < mostNS && len(unexplained) > 0 && c.rule.FireMode != rules.AbsentInWindow {
		lateNS = min(2*lateNS, mostNS)
		_, still := c.missing(list, states(lateNS), fromNS, stepNS)
		var rest []cursor.Range
		for _, m := range unexplained {
			if slices.ContainsFunc(still, func(s cursor.Range) bool { return s.FromNS <= m.ToNS && s.ToNS >= m.FromNS }) {
				rest = append(rest, m)
			} else {
				explained[m] = lateNS
			}
		}
		unexplained = rest
	}
	for _, m := range missing {
		f := Finding{
			Kind: Missing, Group: name, AtNS: m.ToNS, LateBy: time.Duration(explained[m]),
			Why: fmt.Sprintf("the threshold was reached from %s on", time.Unix(0, m.FromNS).UTC().Format(time.RFC3339)),
		}
		if f.LateBy > 0 {
			f.Why += fmt.Sprintf(", unless exchanges became visible %v after their end or later", f.LateBy)
		}
		c.find(f)
	}
}

// missing returns in how many periods an alert should have been open, and those of them without an
// alert, from the first instant to the last.
func (c *comparison) missing(list []*WindowAlert, states []state, fromNS, stepNS int64) (reached int, missing []cursor.Range) {
	needNS := int64(c.rule.ForDurationSeconds)*secondNS + 2*c.gapNS()
	for i := 0; i < len(states); i++ {
		first := i
		for i < len(states) && states[i].surely {
			i++
		}
		if int64(i-first-1)*stepNS < needNS {
			continue
		}
		reached++
		begin, end := fromNS+int64(first)*stepNS, fromNS+int64(i-1)*stepNS
		// Reports whether the value was out of reach at some time between two instants.
		out := func(since, until int64) bool {
			for n, s := range states {
				if at := fromNS + int64(n)*stepNS; at > since && at < until && !s.possibly {
					return true
				}
			}
			return false
		}
		if c.uncovered(list, begin, end, out) >= needNS {
			missing = append(missing, cursor.Range{FromNS: begin, ToNS: end})
		}
	}
	return reached, missing
}

// uncovered returns the longest part of a period in which no alert was open or held its group.
func (c *comparison) uncovered(list []*WindowAlert, begin, end int64, out func(since, until int64) bool) int64 {
	rest := []cursor.Range{{FromNS: begin, ToNS: end}}
	for _, a := range list {
		from, to := c.covered(a, begin, end, out)
		var next []cursor.Range
		for _, r := range rest {
			next = append(next, cursor.Range{FromNS: r.FromNS, ToNS: min(r.ToNS, from)}, cursor.Range{FromNS: max(r.FromNS, to), ToNS: r.ToNS})
		}
		rest = slices.DeleteFunc(next, func(r cursor.Range) bool { return r.FromNS >= r.ToNS })
	}
	longest := int64(0)
	for _, r := range rest {
		longest = max(longest, r.ToNS-r.FromNS)
	}
	return longest
}

// covered returns the part of a period in which an alert was open, or held its group. An alert that
// opened within the period counts from its beginning, because it may have come late. The instants
// of alerts are those of commits, which come after the windows that they are about.
func (c *comparison) covered(a *WindowAlert, begin, end int64, out func(since, until int64) bool) (from, to int64) {
	opened := a.FiredNS
	for _, count := range []*alerts.Count{&a.Count, a.Count.Fired} {
		if count != nil && count.ToNS > 0 {
			opened = min(opened, count.ToNS)
		}
	}
	switch {
	case opened-int64(c.rule.ForDurationSeconds)*secondNS-2*minuteNS > end:
		return end, end
	case a.Resolved == nil || a.Held:
		return begin, math.MaxInt64
	case a.ByPerson && !out(*a.Resolved, max(begin, *a.Resolved)):
		return begin, math.MaxInt64 // it was held until the value was out of reach
	}
	to = *a.Resolved + minuteNS
	if a.HeldUntil != nil {
		to = max(to, *a.HeldUntil+minuteNS)
	}
	return begin, to
}

// lookForUnexpected looks for open alerts whose value has long been out of reach.
func (c *comparison) lookForUnexpected(name string, list []*WindowAlert, states []state, toNS, stepNS int64) {
	quietNS := int64(0)
	for i := len(states) - 1; i >= 0 && !states[i].possibly; i-- {
		quietNS += stepNS
	}
	needNS := 2*c.gapNS() + max(leastLateNS, c.progress.LateNS)
	for _, a := range list {
		if a.FiredNS < c.rule.ArmedSinceNS && toNS < c.rule.ArmedSinceNS+int64(c.rule.WindowSeconds)*secondNS+needNS {
			continue // it stays open for the window of its former condition
		}
		if a.State != alerts.Resolved && quietNS > needNS && toNS-a.FiredNS > needNS && a.Count.Grouping() == c.rule.Grouping() {
			c.find(Finding{Kind: Unexpected, AlertID: a.ID, Group: name, AtNS: toNS, Why: fmt.Sprintf("it is open although the threshold has not been reached since %v", time.Duration(quietNS).Truncate(time.Second))})
		}
	}
}
