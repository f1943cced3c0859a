package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// The preview of a window rule takes, for each group, the steps that the rule takes at its
// interval. The count is that of the window that ends there, and [alerts.Window.Next] decides the
// step, from the state after the previous step. Only steps are computed at which the count changes
// or an open alert is due; the others change nothing.

// groupsMost bounds the groups of a preview, like those of a rule.
const groupsMost = 1000

// counted is an exchange with what a count needs.
type counted struct {
	startNS, endedNS, durationNS int64
	key                          string
	observed                     bool
}

// group is the exchanges of a group: those that are observed, and those that they are compared
// with.
type group struct{ observed, compared []counted }

// sample is an alert of a window rule that is shown, before its texts are written.
type sample struct {
	group  string
	value  alerts.Value
	newest counted
	// durationNS is the percentile of the durations.
	durationNS int64
	atNS       int64
}

// counted returns what a count needs of an exchange.
func (p *run) counted(e *rules.Exchange) counted {
	c := counted{startNS: e.StartTimeNS, endedNS: e.EndedNS(), durationNS: e.DurationNS, key: e.Key(), observed: true}
	switch p.rule.FireMode { //nolint:exhaustive // a count observes everything that it reads
	case rules.RatioInWindow:
		c.observed = p.judge.Matches(e)
	case rules.DurationInWindow:
		c.observed = e.DurationNS >= p.rule.DurationMS*1e6
	}
	return c
}

// grouped returns the groups of the exchanges read. A ratio by error type compares each of its
// groups with all exchanges.
func (p *run) grouped(read map[string][]counted) map[string]group {
	var whole []counted
	byErrorType := p.rule.FireMode == rules.RatioInWindow && p.rule.GroupBy == rules.GroupByErrorType
	groups := map[string]group{}
	for name, all := range read {
		all = distinct(all)
		whole = append(whole, all...)
		var g group
		for _, c := range all {
			if c.observed {
				g.observed = append(g.observed, c)
			}
		}
		if p.rule.FireMode == rules.RatioInWindow || p.rule.FireMode == rules.DurationInWindow {
			g.compared = all
		}
		if len(g.observed) > 0 {
			groups[name] = g
		}
	}
	if byErrorType {
		whole = distinct(whole)
		for name, g := range groups {
			groups[name] = group{g.observed, whole}
		}
	}
	return groups
}

// windows steps through the range, group by group.
func (p *run) windows(ctx context.Context) error {
	read := map[string][]counted{}
	err := p.slices(ctx, counting.StartFromNS(p.rule.WindowSeconds, p.out.FromNS), func(e *rules.Exchange) {
		name := p.rule.Grouping().Of(e)
		read[name] = append(read[name], p.counted(e))
	})
	if err != nil {
		return err
	}
	groups := p.grouped(read)
	if p.rule.FireMode == rules.AbsentInWindow {
		groups = p.expected(groups)
	}
	if p.out.Truncated {
		// Before that, windows contain exchanges that were not read.
		p.out.CoveredFromNS = min(p.out.ToNS, p.out.CoveredFromNS+int64(p.rule.WindowSeconds)*secondNS)
	}
	var shown []sample
	for i, name := range slices.Sorted(maps.Keys(groups)) {
		if i == groupsMost {
			p.out.Truncated = true
			break
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("preview: %w", err)
		}
		shown = p.steps(name, groups[name], shown)
	}
	if p.comparing {
		p.samples = shown
		return nil
	}
	return p.describe(ctx, shown)
}

// expected returns the groups from which exchanges are expected. A rule that learns groups is
// assumed to have learned those of the range.
func (p *run) expected(groups map[string]group) map[string]group {
	names := p.rule.ExpectedGroups()
	switch {
	case p.rule.GroupBy == rules.GroupByNothing:
		names = []string{""}
	case p.rule.LearnDays > 0:
		if p.rule.GroupBy == rules.GroupByAttribute {
			delete(groups, "")
		}
		return groups
	}
	listed := make(map[string]group, len(names))
	for _, name := range names {
		listed[name] = groups[name]
	}
	return listed
}

// judged sets what the value of an absence means if its window ends at an instant, and returns the
// next instant at which that changes. All exchanges are assumed to have become visible in time.
func (p *run) judged(v *alerts.Value, atNS int64) (nextNS int64) {
	if p.rule.FireMode != rules.AbsentInWindow {
		return math.MaxInt64
	}
	lengthNS := int64(p.rule.WindowSeconds) * secondNS
	whole := p.out.FromNS + lengthNS
	v.Inconclusive, v.Closed = atNS < whole, !p.judge.Expects(atNS-lengthNS, atNS)
	if v.Inconclusive {
		return whole
	}
	if p.rule.Calendar == nil {
		return math.MaxInt64
	}
	if p.edges == nil {
		p.edges = edges(whole, p.out.ToNS, func(atNS int64) bool { return p.judge.Expects(atNS-lengthNS, atNS) })
	}
	next, _ := slices.BinarySearch(p.edges, atNS+1)
	if next == len(p.edges) {
		return math.MaxInt64
	}
	return p.edges[next]
}

// edges returns the instants of a range at which a property changes that changes at most once a
// minute.
func edges(fromNS, toNS int64, is func(atNS int64) bool) []int64 {
	list := []int64{}
	was := is(fromNS)
	for at := fromNS; at < toNS; at += minuteNS {
		if is(at+minuteNS) == was {
			continue
		}
		n := sort.Search(int(minuteNS), func(n int) bool { return is(at+int64(n)) != was })
		list, was = append(list, at+int64(n)), !was
	}
	return list
}

// distinct returns each exchange once. If there are several rows, an observed one counts, and of
// these the one that ended last, with the longest duration of all rows.
func distinct(list []counted) []counted {
	last := map[bool]int{true: 0, false: 1}
	slices.SortFunc(list, func(a, b counted) int {
		return cmp.Or(strings.Compare(a.key, b.key), last[a.observed]-last[b.observed], cmp.Compare(b.endedNS, a.endedNS), cmp.Compare(b.startNS, a.startNS))
	})
	once := list[:0]
	for _, c := range list {
		if n := len(once); n > 0 && once[n-1].key == c.key {
			once[n-1].durationNS = max(once[n-1].durationNS, c.durationNS)
		} else {
			once = append(once, c)
		}
	}
	return once
}

// sum is a part of a value.
type sum int

// The sums.
const (
	observed sum = iota
	volume
	shortObserved
	shortVolume
)

// moment is when an exchange begins, or ceases, to be counted in a sum.
type moment struct {
	atNS  int64
	of    sum
	delta int64
	counted
}

// apply adds a moment to a value.
func (m *moment) apply(v *alerts.Value) {
	*[]*int64{&v.Observed, &v.Volume, &v.ShortObserved, &v.ShortVolume}[m.of] += m.delta
}

// moments returns the changes of the value of a window as its end moves.
func (p *run) moments(g group) []moment {
	out := p.within(nil, observed, g.observed, p.rule.WindowSeconds)
	out = p.within(out, volume, g.compared, p.rule.WindowSeconds)
	if short := p.rule.ShortWindowSeconds; short > 0 {
		out = p.within(out, shortObserved, g.observed, short)
		out = p.within(out, shortVolume, g.compared, short)
	}
	slices.SortFunc(out, func(a, b moment) int { return cmp.Compare(a.atNS, b.atNS) })
	return out
}

// within appends the changes of a sum over a window of a length. The window contains what ended
// before its end, within its length, and began neither later nor too early.
func (p *run) within(out []moment, of sum, list []counted, seconds int) []moment {
	lengthNS := int64(seconds) * secondNS
	reachNS := -counting.StartFromNS(p.rule.WindowSeconds, 0)
	for _, c := range list {
		begin, end := max(c.startNS, c.endedNS)+1, min(c.endedNS+lengthNS, c.startNS+reachNS)+1
		if begin < end {
			out = append(out, moment{begin, of, 1, c}, moment{end, of, -1, c})
		}
	}
	return out
}

// percentile returns the percentile of the durations in the window that ends at an instant; 0 if
// the rule is not about durations.
func (p *run) percentile(g group, atNS int64) int64 {
	if p.rule.FireMode != rules.DurationInWindow {
		return 0
	}
	var durations []int64
	for _, m := range p.within(nil, volume, g.compared, p.rule.WindowSeconds) {
		if m.delta > 0 && m.atNS <= atNS && min(m.endedNS+int64(p.rule.WindowSeconds)*secondNS, m.startNS-counting.StartFromNS(p.rule.WindowSeconds, 0)) >= atNS {
			durations = append(durations, m.durationNS)
		}
	}
	slices.Sort(durations)
	if len(durations) == 0 {
		return 0
	}
	return durations[rules.Rank(p.rule.Percentile, int64(len(durations)))-1]
}

// later reports whether c is newer than d.
func (c counted) later(d counted) bool {
	return cmp.Or(cmp.Compare(c.endedNS, d.endedNS), cmp.Compare(c.startNS, d.startNS), strings.Compare(c.key, d.key)) > 0
}

// steps takes the steps of one group.
func (p *run) steps(name string, g group, shown []sample) []sample {
	w := new(alerts.WindowOf(&p.rule.Definition))
	interval := int64(p.rule.IntervalSeconds) * secondNS
	ahead := p.moments(g)
	value := alerts.Value{ArmedAt: time.Unix(0, p.rule.ArmedSinceNS)}
	newest := counted{endedNS: math.MinInt64}
	var open *alerts.Open
	for at := p.out.CoveredFromNS; at < p.out.ToNS; {
		for len(ahead) > 0 && ahead[0].atNS <= at {
			ahead[0].apply(&value)
			if ahead[0].of == observed && ahead[0].later(newest) {
				newest = ahead[0].counted
			}
			ahead = ahead[1:]
		}
		now := time.Unix(0, at)
		turn := p.judged(&value, at)
		step := w.Next(open, value, now)
		open = p.take(name, step, open, now)
		if step == alerts.Raise || step == alerts.Fire {
			p.raised(p.alert(p.exampleOf(name), at))
			shown = append(shown, sample{group: name, value: value, newest: newest, durationNS: p.percentile(g, at), atNS: at})
		}
		next := min(dueNS(w, open), turn)
		if len(ahead) > 0 {
			next = min(next, ahead[0].atNS)
		}
		if next >= p.out.ToNS {
			break
		}
		at += max(1, (next-at+interval-1)/interval) * interval
	}
	return shown
}

// take returns what a step of a group leaves open, and counts its notifications.
func (p *run) take(name string, step alerts.Step, open *alerts.Open, now time.Time) *alerts.Open {
	about := func() alerts.Instance {
		a := p.alert(p.exampleOf(name), now.UnixNano())
		a.Count = new(alerts.CountOf(&p.rule.Definition))
		a.Count.Group = cursor.Key(name)
		return a
	}
	switch step {
	case alerts.Wait:
		return &alerts.Open{State: alerts.Pending, Since: now}
	case alerts.Raise, alerts.Fire:
		p.notified(now.UnixNano(), about)
		return &alerts.Open{State: alerts.Firing, Since: now, NotifiedAt: now}
	case alerts.Remind:
		p.notified(now.UnixNano(), about)
		return &alerts.Open{State: alerts.Firing, Since: open.Since, NotifiedAt: now}
	case alerts.Clear:
		if p.rule.NotifyOnResolve {
			p.notified(now.UnixNano(), about)
		}
		return nil
	case alerts.Drop, alerts.Release:
		return nil
	case alerts.Stay:
	}
	return open
}

// dueNS returns when an open alert is due although its count does not change.
func dueNS(w *alerts.Window, open *alerts.Open) int64 {
	switch {
	case open != nil && open.State == alerts.Pending:
		return open.Since.Add(w.For).UnixNano()
	case open != nil && w.ReNotify > 0:
		return open.NotifiedAt.Add(w.ReNotify).UnixNano()
	}
	return math.MaxInt64
}

// exampleOf returns an exchange with the known fields of a group, without reading one.
func (p *run) exampleOf(group string) *rules.Exchange { return new(p.rule.Grouping().Example(group)) }

// describe makes the newest alerts, with the newest exchange of each.
func (p *run) describe(ctx context.Context, shown []sample) error {
	slices.SortStableFunc(shown, func(a, b sample) int { return cmp.Compare(b.atNS, a.atNS) })
	p.out.Newest = nil
	for _, s := range shown[:min(len(shown), newestMost)] {
		a, err := p.alertOf(ctx, s)
		if err != nil {
			return err
		}
		p.out.Newest = append(p.out.Newest, a)
	}
	return nil
}

// alertOf makes the alert of a sample.
func (p *run) alertOf(ctx context.Context, s sample) (alerts.Instance, error) {
	newest := p.exampleOf(s.group)
	if p.rule.FireMode != rules.AbsentInWindow {
		read, err := p.newest(ctx, s)
		if err != nil {
			return alerts.Instance{}, err
		}
		newest = read
	}
	a := p.alert(newest, s.atNS)
	var problem error
	if p.rule.FireMode == rules.PerExchange {
		a.ID = alerts.ID(p.rule.ID, newest)
		a.Title, a.Message, problem = p.Texts.Texts(&p.rule, newest)
	} else {
		a.Count = new(alerts.CountOf(&p.rule.Definition))
		a.Count.Group, a.Count.DurationNS = cursor.Key(s.group), s.durationNS
		a.Count.Observed, a.Count.Volume = s.value.Observed, s.value.Volume
		a.Count.ShortObserved, a.Count.ShortVolume = s.value.ShortObserved, s.value.ShortVolume
		a.ID = alerts.WindowID(p.rule.ID, a.Count.Group, uuid.Nil, s.atNS)
		a.Title, a.Message, problem = p.Texts.CountTexts(&p.rule, a.Count, newest)
	}
	p.note(problem)
	return a, nil
}

// newest reads the newest exchange of an alert, or makes an example if it is gone.
func (p *run) newest(ctx context.Context, s sample) (*rules.Exchange, error) {
	scan := p.scan
	scan.After, scan.BeforeNS = cursor.Position{StartTimeNS: s.newest.startNS - 1}, s.newest.startNS+1
	for {
		page, err := p.Source.Scan(ctx, scan)
		if errors.Is(err, source.ErrTooMuch) && scan.Limit > 1 {
			scan.Limit /= 2
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("preview: %w", err)
		}
		for i := range page.Exchanges {
			if e := &page.Exchanges[i]; e.Key() == s.newest.key && e.EndedNS() == s.newest.endedNS && p.rule.Grouping().Of(e) == s.group {
				return e, nil
			}
		}
		if !page.More || len(page.Exchanges) == 0 {
			return p.exampleOf(s.group), nil
		}
		scan.After = page.Exchanges[len(page.Exchanges)-1].Position()
	}
}
