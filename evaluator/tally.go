package evaluator

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"

	"tocsin/rules"
)

// A tally is how many exchanges of one kind began in one stretch of time; a
// kind is what conditions on names, status and error type can tell apart. The
// stretches are those into which the beginnings of the windows cut time, so a
// window is made up of whole ones, to the nanosecond.
//
// Sums over tallies are exact unless an exchange is in two of them, as when
// two rows of it name different error types. The source says so, and then the
// whole set is counted by its conditions. So is a rule of which a kind that it
// matches holds an exchange that ended before the rule was armed.

// TallyQuery asks for the tallies of a tenant.
type TallyQuery struct {
	TenantID string
	// FromNS holds where stretches begin, ascending and distinct, at least one;
	// each lasts to the next, the last one to ToNS, exclusive.
	FromNS   []int64
	ToNS     int64
	Statuses []rules.Status
	// The fields that tell kinds apart, beside the status.
	Environment, Application, Route, ErrorType bool
	// Limit is the most tallies to return; more are an error.
	Limit int
}

// Tally counts the exchanges of one kind and stretch. Fields that were not
// asked for are empty.
type Tally struct {
	Status                                     rules.Status
	Environment, Application, Route, ErrorType string
	// FromNS is where the stretch begins.
	FromNS int64
	// Observed is the number of exchanges, NewestNS when the newest began, and
	// EarliestEndNS when the first of them ended.
	Observed, NewestNS, EarliestEndNS int64
}

const (
	// tallyLeast is for how many rules it pays to tally: what is read is not
	// narrowed by their conditions.
	tallyLeast = 8
	// maxTallies bounds what is held of one answer.
	maxTallies = 100_000
)

// tally counts those windows of a set whose conditions allow it, and returns
// the others.
func (t *tick) tally(ctx context.Context, windows []*window) (counted, rest []*window) {
	var simple []*window
	for _, w := range windows {
		if w.simple() {
			simple = append(simple, w)
		} else {
			rest = append(rest, w)
		}
	}
	key := windows[0].key()
	if !t.untallied[key].IsZero() || len(simple) < tallyLeast {
		return nil, windows
	}
	tallies, exact, err := t.Source.Tally(ctx, tallyQuery(simple))
	if t.spent() {
		// Whoever is counted after it would wait again in the next tick.
		t.untallied[key] = t.Clock().Add(suspectFor)
	}
	if err != nil || !exact {
		// Nothing is lost: the conditions are sent instead.
		t.Logger.DebugContext(ctx, "exchanges not tallied", slog.Int("rules", len(simple)), slog.Any("error", err))
		return nil, windows
	}
	judges := make([]*judge, len(simple))
	for i, w := range simple {
		judges[i] = w.judge
	}
	index := t.cache.index(judges)
	sums := make([]sum, len(simple))
	for i := range tallies {
		e := tallies[i].exchange()
		for _, number := range index.Candidates(&e) {
			sums[number].add(simple[number], &tallies[i], &e)
		}
	}
	for i, w := range simple {
		if sums[i].inexact {
			rest = append(rest, w)
			continue
		}
		w.counted = sums[i].largest(w.query.Limit)
		counted = append(counted, w)
	}
	return counted, rest
}

// simple reports whether a window's condition looks at no more than a tally tells.
func (w *window) simple() bool {
	f := &w.query.Filter
	return f.ErrorMessageContains == "" && f.ErrorMessageMatches == "" && f.MinDurationMS == nil && f.MaxDurationMS == nil && len(f.Attributes) == 0
}

// tallyQuery asks for the kinds that the windows of one set tell apart.
func tallyQuery(windows []*window) TallyQuery {
	first := &windows[0].query
	q := TallyQuery{TenantID: first.TenantID, ToNS: first.ToNS, Statuses: first.Filter.StatusesOrDefault(), Limit: maxTallies}
	for _, w := range windows {
		q.FromNS = append(q.FromNS, w.query.FromNS)
		scope, by := &w.query.Scope, w.query.GroupBy
		q.Environment = q.Environment || len(scope.Environments) > 0 || by == rules.GroupByEnvironment
		q.Application = q.Application || len(scope.Applications) > 0 || by == rules.GroupByApplication
		q.Route = q.Route || len(scope.Routes) > 0 || by == rules.GroupByRoute
		q.ErrorType = q.ErrorType || len(w.query.Filter.ErrorTypes) > 0
	}
	slices.Sort(q.FromNS)
	q.FromNS = slices.Compact(q.FromNS)
	return q
}

// exchange returns an exchange of the kind.
func (t *Tally) exchange() rules.Exchange {
	return rules.Exchange{
		Status: t.Status, Environment: t.Environment, Application: t.Application, Route: t.Route, ErrorType: t.ErrorType,
	}
}

// sum adds up what one window matches.
type sum struct {
	groups  map[string]*GroupCount
	inexact bool
}

func (s *sum) add(w *window, t *Tally, e *rules.Exchange) {
	if t.FromNS < w.query.FromNS || !w.Matches(e) {
		return
	}
	if t.EarliestEndNS < w.query.EndedSinceNS {
		s.inexact = true
		return
	}
	if s.groups == nil {
		s.groups = map[string]*GroupCount{}
	}
	name := w.query.GroupBy.Of(e)
	g := s.groups[name]
	if g == nil {
		g = &GroupCount{Group: name}
		s.groups[name] = g
	}
	g.Observed += t.Observed
	g.NewestNS = max(g.NewestNS, t.NewestNS)
}

// largest returns the largest groups, in order.
func (s *sum) largest(limit int) []GroupCount {
	groups := make([]GroupCount, 0, len(s.groups))
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		groups = append(groups, *s.groups[name])
	}
	slices.SortStableFunc(groups, func(a, b GroupCount) int { return cmp.Compare(b.Observed, a.Observed) })
	return groups[:min(len(groups), limit)]
}
