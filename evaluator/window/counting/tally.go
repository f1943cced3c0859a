package counting

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"tocsin/evaluator/source"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// A tally is how many exchanges of one kind ended in one interval. A kind is what conditions on
// names, status and error type can distinguish. The intervals are those between the beginnings of
// the windows, so a window consists of whole intervals, to the nanosecond. In the same way,
// durations are divided at the bounds of rules. So the number of exchanges that lasted at least as
// long as a bound is exact, and it decides whether a percentile reaches the bound. A tally does not
// contain the percentile itself: if an alert of a rule changes, the rule is counted by its
// condition.
//
// Rules that group by an attribute are tallied separately from the others, all of them together.
// The keys that most of them use also distinguish kinds; rules with other keys are counted by their
// conditions. An attribute may have any number of values. If there are more than a tally holds, the
// rules of the tenants with too many are counted by their conditions for a while, and each answer
// contains the largest groups.
//
// Sums over tallies are exact unless an exchange is in two of them, for example if two of its rows
// have different error types. The source reports this, and then the rules of that tenant are
// counted by their conditions. For a window that begins before its rule was armed, the sum is an
// upper bound: if it is below the threshold it decides, otherwise the condition is sent.

const (
	// maxTallies bounds the size of one answer.
	maxTallies = 100_000
	// QueriesAtOnce is how many tallies a pass queries concurrently. Waiting for them one by one took most
	// of the time of a pass over many rules.
	QueriesAtOnce = 4
	// summedMost bounds the groups of all rules that are summed from a tally, not counting the
	// first MaxGroups of each rule.
	summedMost = 200_000
	// maxKeys is how many attributes one query tallies by, because each exchange counts for each of
	// them.
	maxKeys = 8
)

// wide identifies a window that is not tallied: its tenant has too many kinds, or a tally does not
// decide on it.
type wide struct{ window any }

// setKey is the common part of the rules of a set.
type setKey struct {
	partition         int
	completed, failed bool
	// durations says that durations are distinguished.
	durations bool
	// absent says that windows end where those of rules on absence do; learns says that groups are
	// learned from the tally.
	absent, learns bool
	// attributes says that the values of attributes are distinguished.
	attributes bool
	length     int
}

func (w *Window) setKey() setKey {
	statuses := statusesOf(w.FireMode, &w.Filter)
	return setKey{
		completed: slices.Contains(statuses, rules.Completed), failed: slices.Contains(statuses, rules.Failed),
		durations: w.FireMode == rules.DurationInWindow, absent: w.Absent(), learns: w.Learns,
		attributes: w.GroupBy == rules.GroupByAttribute, length: lengthOf(w.Seconds),
	}
}

// sets returns the sets of windows that can be tallied together, each ordered by tenant.
func sets(windows []*Window) [][]*Window {
	byKey := map[setKey][]*Window{}
	for _, w := range windows {
		byKey[w.setKey()] = append(byKey[w.setKey()], w)
	}
	all := slices.SortedFunc(maps.Values(byKey), func(a, b []*Window) int { return byNumber(a[0], b[0]) })
	byTenantID := func(a, b *Window) int { return strings.Compare(a.TenantID, b.TenantID) }
	for _, set := range all {
		// As a rule they come so, and many of them take longer to sort than to be evaluated.
		if !slices.IsSortedFunc(set, byTenantID) {
			slices.SortStableFunc(set, byTenantID)
		}
	}
	return all
}

// question is a set of windows that one query tallies.
type question struct {
	key     setKey
	windows []*Window
	// asked is closed when the source has answered; nil if it was not asked.
	asked  chan struct{}
	answer Tallies
	err    error
}

// questions returns what is asked by tallies, longest waiting first, and the windows that are counted
// in another way.
func (p *Pass) questions(windows []*Window) (questions []*question, rest []*Window) {
	for _, set := range sets(windows) {
		q, others := p.question(set)
		if rest = append(rest, others...); q != nil {
			questions = append(questions, q)
		}
	}
	slices.SortStableFunc(questions, func(a, b *question) int { return first(a.windows) - first(b.windows) })
	return questions, rest
}

// question returns the windows of a set that can be tallied; nil if there are none. The others
// are counted in another way.
func (p *Pass) question(set []*Window) (q *question, rest []*Window) {
	plain, rest := split(set, func(w *Window) bool { return w.plain() && p.slowUntil(wide{w.key()}).IsZero() })
	plain, others := byUsualKeys(plain)
	if rest = append(rest, others...); len(plain) < p.counter.TallyLeast {
		return nil, append(rest, plain...)
	}
	key := plain[0].setKey()
	key.partition = p.request.Partition
	if !p.slowUntil(key).IsZero() {
		return nil, set
	}
	return &question{key: key, windows: plain}, rest
}

// put asks the source a question, unless the time is up.
func (p *Pass) put(ctx context.Context, q *question) {
	if p.over(ctx) {
		return
	}
	p.asked, q.asked = true, make(chan struct{})
	query := p.tallyQuery(q.windows)
	go func() {
		defer close(q.asked)
		q.err = fault.Guard(func() (err error) { q.answer, err = p.counter.Source.Tally(ctx, query); return err })
	}()
}

// tallied takes the answer to a question, and returns the windows that must be counted in another
// way. If the tally failed, for example because of too many kinds, it tries each half of the
// rules.
func (p *Pass) tallied(ctx context.Context, q *question) (rest []*Window) {
	if q.asked == nil {
		return nil // there is no time for it
	}
	<-q.asked
	if fault.Panicked(q.err) {
		panic(q.err) // the pass fails
	}
	switch {
	case q.err == nil:
		return p.sumUp(ctx, q.windows, &q.answer)
	case errors.Is(ctx.Err(), context.Canceled):
		return nil
	case p.SourceErr != nil || ctx.Err() == nil && !p.Answers(ctx, q.err):
		return nil // no rule is at fault
	case p.over(ctx):
		// The next pass sends the conditions, which make progress step by step.
		p.remember(q.key)
		p.counter.Logger.WarnContext(ctx, "window rules are counted in many queries for ten minutes, because one query for all of them failed or took too long; "+
			"shorten their windows, or raise intervalSeconds", slog.Int("partition", p.request.Partition), slog.Int("rules", len(q.windows)), slog.Any("error", q.err))
		return nil
	}
	p.counter.Logger.DebugContext(ctx, "exchanges not tallied", slog.Int("rules", len(q.windows)), slog.Any("error", q.err))
	middle := len(q.windows) / 2
	if middle < p.counter.TallyLeast {
		for _, w := range q.windows {
			p.remember(wide{w.key()})
		}
		return q.windows
	}
	for _, half := range [][]*Window{q.windows[:middle], q.windows[middle:]} {
		part := &question{key: q.key, windows: half}
		p.put(ctx, part)
		rest = append(rest, p.tallied(ctx, part)...)
	}
	return rest
}

// byUsualKeys returns the windows that one query can tally, in their order, and the others. Windows
// that are grouped by an attribute can be tallied if they use the keys that most of them use.
func byUsualKeys(windows []*Window) (some, others []*Window) {
	named := map[string]int{}
	for _, w := range windows {
		named[w.GroupByAttribute]++
	}
	if len(named) <= maxKeys {
		return windows, nil
	}
	keys := slices.SortedFunc(maps.Keys(named), func(a, b string) int { return cmp.Or(named[b]-named[a], strings.Compare(a, b)) })
	return split(windows, func(w *Window) bool { return slices.Contains(keys[:maxKeys], w.GroupByAttribute) })
}

// plain reports whether a condition uses only what a tally distinguishes.
func (w *Window) plain() bool { return !rules.FieldsOf(&w.Scope, &w.Filter).Others }

// tallyQuery asks for the kinds that the rules of one set distinguish.
func (p *Pass) tallyQuery(windows []*Window) TallyQuery {
	first := windows[0]
	q := TallyQuery{
		Tenants:     source.Tenants{Index: p.request.Tenants.Index, Of: p.request.Tenants.Of},
		StartFromNS: first.StartFromNS, ToNS: first.ToNS, Statuses: statusesOf(first.FireMode, &first.Filter), Limit: maxTallies, NamesServer: first.Absent(),
	}
	for _, w := range windows {
		q.Tenants.Names = append(q.Tenants.Names, w.TenantID)
		q.FromNS = append(q.FromNS, w.CutNS())
		if w.ShortWindowSeconds > 0 {
			q.FromNS = append(q.FromNS, w.shortCutNS())
		}
		if w.FireMode == rules.DurationInWindow {
			q.LeastNS = append(q.LeastNS, w.LeastNS())
		}
		looksAt, by := rules.FieldsOf(&w.Scope, &w.Filter), w.Grouping()
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
