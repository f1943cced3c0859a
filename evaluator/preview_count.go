package evaluator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// The preview of a rule that counts takes, for each group, the steps that the
// rule takes at its interval: the count is that of the window that ends there,
// the step that of [alerts.Window.Next], from the state that the step before
// left. Only those steps are looked at that see another count, or at which an
// open alert is due; nothing changes at the others.

// counted is a matching exchange as a count needs it.
type counted struct {
	startNS, endedNS int64
	key              string
}

// sample is an alert of a counting rule that is shown, before its texts.
type sample struct {
	group    string
	observed int64
	newestNS int64
	atNS     int64
}

// counting steps through the stretch, group by group.
func (p *preview) counting(ctx context.Context) error {
	groups := map[string][]counted{}
	err := p.slices(ctx, p.out.FromNS-int64(p.rule.WindowSeconds)*secondNS, func(g *group, page []rules.Exchange, end cursor.Position) {
		for i := range page {
			e := &page[i]
			for range g.index.Candidates(e) {
				if p.judge.Wants(e) && e.EndedNS() < p.out.ToNS {
					group := p.rule.GroupBy.Of(e)
					groups[group] = append(groups[group], counted{e.StartTimeNS, e.EndedNS(), e.Key()})
				}
			}
		}
		g.judges[0].at = end
	})
	if err != nil {
		return err
	}
	if p.out.Truncated {
		// Before, a window holds what was not read.
		p.out.CoveredFromNS = min(p.out.ToNS, p.out.CoveredFromNS+int64(p.rule.WindowSeconds)*secondNS)
	}
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	var shown []sample
	for i, name := range names {
		if i == maxGroups {
			p.out.Truncated = true
			break
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("preview: %w", err)
		}
		shown = p.steps(name, distinct(groups[name]), shown)
	}
	return p.describe(ctx, shown)
}

// distinct returns each exchange once, in the order of their starts.
func distinct(list []counted) []counted {
	slices.SortFunc(list, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.startNS, b.startNS), strings.Compare(a.key, b.key))
	})
	return slices.CompactFunc(list, func(a, b counted) bool { return a.startNS == b.startNS && a.key == b.key })
}

// moment is when an exchange begins to be counted, or ceases to be.
type moment struct {
	atNS, startNS int64
	delta         int64
}

// moments returns what changes the count of a window that ends at an instant:
// it holds what began before, within its length, and had ended by then, or it
// could not be seen.
func moments(list []counted, lengthNS int64) []moment {
	out := make([]moment, 0, 2*len(list))
	for _, c := range list {
		begin, end := max(c.startNS, c.endedNS)+1, c.startNS+lengthNS+1
		if begin < end {
			out = append(out, moment{begin, c.startNS, 1}, moment{end, c.startNS, -1})
		}
	}
	slices.SortFunc(out, func(a, b moment) int { return cmp.Compare(a.atNS, b.atNS) })
	return out
}

// steps takes the steps of one group.
func (p *preview) steps(name string, list []counted, shown []sample) []sample {
	window := alerts.WindowOf(&p.rule.Definition)
	interval := int64(p.rule.IntervalSeconds) * secondNS
	ahead := moments(list, int64(p.rule.WindowSeconds)*secondNS)
	var open *alerts.Open
	var observed, newest int64
	for at := p.out.CoveredFromNS; at < p.out.ToNS; {
		for len(ahead) > 0 && ahead[0].atNS <= at {
			observed, newest = observed+ahead[0].delta, max(newest, ahead[0].startNS)
			ahead = ahead[1:]
		}
		now := time.Unix(0, at)
		step := window.Next(open, observed, now)
		open = p.take(step, open, now)
		if step == alerts.Raise || step == alerts.Fire {
			p.raised(alerts.Instance{Exchange: p.exampleOf(name)}, at)
			shown = append(shown, sample{name, observed, newest, at})
		}
		next := dueNS(window, open)
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

// take returns what a step leaves open, and counts what it tells.
func (p *preview) take(step alerts.Step, open *alerts.Open, now time.Time) *alerts.Open {
	switch step {
	case alerts.Wait:
		return &alerts.Open{State: alerts.Pending, Since: now}
	case alerts.Raise, alerts.Fire:
		p.notified(now.UnixNano())
		return &alerts.Open{State: alerts.Firing, Since: now, NotifiedAt: now}
	case alerts.Remind:
		p.notified(now.UnixNano())
		return &alerts.Open{State: alerts.Firing, Since: open.Since, NotifiedAt: now}
	case alerts.Clear:
		if p.rule.NotifyOnResolve {
			p.notified(now.UnixNano())
		}
		return nil
	case alerts.Drop:
		return nil
	case alerts.Stay:
	}
	return open
}

// dueNS returns when an open alert is to be looked at although its count does
// not change.
func dueNS(w alerts.Window, open *alerts.Open) int64 {
	switch {
	case open != nil && open.State == alerts.Pending:
		return open.Since.Add(w.For).UnixNano()
	case open != nil && w.ReNotify > 0:
		return open.NotifiedAt.Add(w.ReNotify).UnixNano()
	}
	return math.MaxInt64
}

// exampleOf returns what is known of the exchanges of a group without reading one.
func (p *preview) exampleOf(group string) rules.Exchange {
	switch p.rule.GroupBy {
	case rules.GroupByRoute:
		return rules.Exchange{Route: rules.CleanText(group, 1<<10)}
	case rules.GroupByApplication:
		return rules.Exchange{Application: rules.CleanText(group, 1<<10)}
	case rules.GroupByEnvironment, rules.GroupByNothing:
	}
	return rules.Exchange{}
}

// describe makes the newest alerts, with the newest exchange of each.
func (p *preview) describe(ctx context.Context, shown []sample) error {
	slices.SortStableFunc(shown, func(a, b sample) int { return cmp.Compare(b.atNS, a.atNS) })
	p.out.Newest = nil
	for _, s := range shown[:min(len(shown), previewNewest)] {
		q := WindowQuery{
			TenantID: p.rule.TenantID, FromNS: s.atNS - int64(p.rule.WindowSeconds)*secondNS, ToNS: s.atNS,
			EndedSinceNS: p.rule.ArmedSinceNS, GroupBy: p.rule.GroupBy, Scope: p.rule.Scope, Filter: p.rule.Filter, Limit: 1,
		}
		list, err := p.Source.Newest(ctx, q, []GroupCount{{Group: s.group, Observed: s.observed, NewestNS: s.newestNS}})
		if err != nil {
			return err
		}
		newest := &list[0]
		a := alerts.Instance{
			ID: uuid.New(), TenantID: p.rule.TenantID, RuleID: p.rule.ID, RuleVersion: p.rule.Version, RuleName: p.rule.Name,
			Severity: p.rule.Severity, State: alerts.Firing, FiredAt: time.Unix(0, s.atNS).UTC(), Exchange: newest.Clean(),
			Count: &alerts.Count{
				Observed: s.observed, Threshold: p.rule.Threshold, WindowSeconds: p.rule.WindowSeconds,
				GroupBy: p.rule.GroupBy, Group: cursor.Key(s.group),
			},
		}
		var problem error
		if a.Title, a.Message, problem = p.Texts.CountTexts(&p.rule, a.Count, newest); problem != nil {
			p.out.Problem = problem.Error()
		}
		p.out.Newest = append(p.out.Newest, a)
	}
	return nil
}
