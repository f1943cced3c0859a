package preview

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Difference is what an edit of a rule would have changed in a range of the past, if each version
// had been armed at its beginning.
type Difference struct {
	// FromNS, ToNS, CoveredFromNS and Truncated are as in [Result]. What was covered for both
	// versions was compared.
	FromNS, ToNS, CoveredFromNS int64
	Truncated                   bool
	// Scanned is the number of exchanges read.
	Scanned int
	// Before and After are how many alerts each version would have raised.
	Before, After int64
	// Added would be raised only by the later version, Removed only by the earlier one.
	Added, Removed Changed
}

// Changed are the alerts of only one version.
type Changed struct {
	Alerts int64
	// Newest are the newest of them, newest first, at most 20.
	Newest []alerts.Instance
}

// Difference compares two versions of a rule. They have the same tenant, rule and length of the
// range. Two alerts about exchanges are the same if the exchange is; two alerts about windows are
// the same if they are about one group and fire within one window. A fault of the earlier version is a
// [fault.Conflict], because it is none of the edit.
func (p *Previewer) Difference(ctx context.Context, before, after Request) (Difference, error) {
	began := p.Clock()
	to, err := p.end(ctx, &after)
	if err != nil {
		return Difference{}, err
	}
	var runs [2]*run
	for i, r := range []*Request{&before, &after} {
		// Each gets half of the time.
		if runs[i], err = p.begin(r, to, began.Add(p.budget()*time.Duration(i+1)/2)); err != nil {
			return Difference{}, err
		}
		runs[i].comparing = true
		err := runs[i].read(ctx)
		if r == &before && fault.KindOf(err) == fault.Invalid {
			return Difference{}, fault.New(fault.Conflict, "the stored version of the rule cannot be previewed, so nothing can be compared with it; preview the new version by itself")
		}
		if err != nil {
			return Difference{}, err
		}
	}
	was, is := runs[0], runs[1]
	d := Difference{
		FromNS: is.out.FromNS, ToNS: to, CoveredFromNS: max(was.out.CoveredFromNS, is.out.CoveredFromNS),
		Truncated: was.out.Truncated || is.out.Truncated, Scanned: was.out.Scanned + is.out.Scanned,
	}
	for _, r := range runs {
		r.samples = slices.DeleteFunc(r.samples, func(s sample) bool { return s.atNS < d.CoveredFromNS })
	}
	d.Before, d.After = int64(len(was.samples)), int64(len(is.samples))
	removed, added := apart(was, is)
	if d.Removed, err = was.changed(ctx, removed); err != nil {
		return Difference{}, err
	}
	d.Added, err = is.changed(ctx, added)
	return d, err
}

// apart returns the samples of each run that the other run does not have.
func apart(a, b *run) (onlyA, onlyB []sample) {
	if a.rule.FireMode != b.rule.FireMode {
		return a.samples, b.samples
	}
	within := int64(math.MaxInt64)
	name := func(s sample) string { return s.newest.key }
	if a.rule.FireMode != rules.PerExchange {
		within = int64(max(a.rule.WindowSeconds, b.rule.WindowSeconds)) * secondNS
		name = func(s sample) string { return s.group }
	}
	order := func(x, y sample) int { return cmp.Or(strings.Compare(name(x), name(y)), cmp.Compare(x.atNS, y.atNS)) }
	slices.SortFunc(a.samples, order)
	slices.SortFunc(b.samples, order)
	x, y := a.samples, b.samples
	for len(x) > 0 && len(y) > 0 {
		switch {
		case name(x[0]) == name(y[0]) && max(x[0].atNS, y[0].atNS)-min(x[0].atNS, y[0].atNS) <= within:
			x, y = x[1:], y[1:]
		case order(x[0], y[0]) < 0:
			onlyA, x = append(onlyA, x[0]), x[1:]
		default:
			onlyB, y = append(onlyB, y[0]), y[1:]
		}
	}
	return append(onlyA, x...), append(onlyB, y...)
}

// changed counts samples, and makes the alerts of the newest ones.
func (p *run) changed(ctx context.Context, samples []sample) (Changed, error) {
	c := Changed{Alerts: int64(len(samples))}
	slices.SortStableFunc(samples, func(a, b sample) int { return cmp.Compare(b.atNS, a.atNS) })
	for _, s := range samples[:min(len(samples), newestMost)] {
		a, err := p.alertOf(ctx, s)
		if err != nil {
			return c, err
		}
		c.Newest = append(c.Newest, a)
	}
	return c, nil
}
