package window

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tocsin/evaluator"
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
	// tallyLeast is the number of rules from which a tally pays, because its reading is not
	// narrowed by their conditions.
	tallyLeast = 8
	// maxTallies bounds the size of one answer.
	maxTallies = 100_000
	// tallyAhead is how many tallies are queried concurrently. Waiting for them one by one took most
	// of the time of a pass over many rules.
	tallyAhead = 4
	// summedMost bounds the groups of all rules that are summed from a tally, not counting the
	// first maxGroups of each rule.
	summedMost = 200_000
	// maxKeys is how many attributes one query tallies by, because each exchange counts for each of
	// them.
	maxKeys = 8
)

// wide identifies a rule of a tenant that has too many kinds to be tallied.
type wide struct{ rule uuid.UUID }

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

func (it *item) key() setKey {
	statuses := statusesOf(it.FireMode, &it.Filter)
	return setKey{
		completed: slices.Contains(statuses, rules.Completed), failed: slices.Contains(statuses, rules.Failed),
		durations: it.FireMode == rules.DurationInWindow, absent: it.absent(), learns: it.learns,
		attributes: it.GroupBy == rules.GroupByAttribute, length: lengthOf(it.seconds),
	}
}

// sets returns the sets of items that can be tallied together, longest waiting first, each ordered
// by tenant.
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

// question is a set of items that one query tallies.
type question struct {
	key   setKey
	items []*item
	// asked is closed when the source has answered; nil if it was not asked.
	asked  chan struct{}
	answer Tallies
	err    error
	// panicked is what made the query panic, with the stack; "" is nothing.
	panicked string
}

// tally counts the items of sets whose conditions allow it, and returns the others.
func (p *pass) tally(ctx context.Context, sets [][]*item) (rest []*item) {
	var questions []*question
	for _, set := range sets {
		q, others := p.question(set)
		if rest = append(rest, others...); q != nil {
			questions = append(questions, q)
		}
	}
	asked := 0
	for i, q := range questions {
		for ; asked < min(len(questions), i+tallyAhead); asked++ {
			p.put(ctx, questions[asked])
		}
		rest = append(rest, p.tallied(ctx, q)...)
	}
	return rest
}

// question returns the items of a set that can be tallied; nil if there are none. The others
// are counted in another way.
func (p *pass) question(set []*item) (q *question, rest []*item) {
	var plain []*item
	for _, it := range set {
		if it.plain() && p.slowUntil(wide{it.ID}).IsZero() {
			plain = append(plain, it)
		} else {
			rest = append(rest, it)
		}
	}
	plain, others := byUsualKeys(plain)
	if rest = append(rest, others...); len(plain) < tallyLeast {
		return nil, append(rest, plain...)
	}
	key := plain[0].key()
	key.partition = p.request.Partition
	if !p.slowUntil(key).IsZero() {
		return nil, set
	}
	return &question{key: key, items: plain}, rest
}

// put asks the source a question, unless the time is up.
func (p *pass) put(ctx context.Context, q *question) {
	if p.over(ctx) {
		return
	}
	p.asked, q.asked = true, make(chan struct{})
	query := p.tallyQuery(q.items)
	go func() {
		defer close(q.asked)
		defer func() {
			if why := recover(); why != nil {
				q.panicked = fmt.Sprintf("%v\n%s", why, debug.Stack())
			}
		}()
		q.answer, q.err = p.Source.Tally(ctx, query)
	}()
}

// tallied takes the answer to a question, and returns the items that must be counted in another
// way. If the tally failed, for example because of too many kinds, it tries each half of the
// tenants.
func (p *pass) tallied(ctx context.Context, q *question) (rest []*item) {
	if q.asked == nil {
		return q.items
	}
	<-q.asked
	if q.panicked != "" {
		panic(q.panicked) // the pass fails
	}
	switch {
	case q.err == nil:
		return p.sumUp(ctx, q.items, &q.answer)
	case p.over(ctx):
		// The next pass sends the conditions, which make progress step by step.
		p.remember(q.key)
		return q.items
	case !p.answers(ctx, q.err):
		return q.items
	}
	p.Logger.DebugContext(ctx, "exchanges not tallied", slog.Int("rules", len(q.items)), slog.Any("error", q.err))
	middle := len(q.items) / 2
	if middle < tallyLeast {
		for _, it := range q.items {
			p.remember(wide{it.ID})
		}
		return q.items
	}
	for _, half := range [][]*item{q.items[:middle], q.items[middle:]} {
		part := &question{key: q.key, items: half}
		p.put(ctx, part)
		rest = append(rest, p.tallied(ctx, part)...)
	}
	return rest
}

// byUsualKeys returns the items that one query can tally, in their order, and the others. Items
// that group by an attribute can be tallied if they use the keys that most of them use.
func byUsualKeys(items []*item) (some, others []*item) {
	named := map[string]int{}
	for _, it := range items {
		named[it.GroupByAttribute]++
	}
	if len(named) <= maxKeys {
		return items, nil
	}
	keys := slices.SortedFunc(maps.Keys(named), func(a, b string) int { return cmp.Or(named[b]-named[a], strings.Compare(a, b)) })
	for _, it := range items {
		if slices.Contains(keys[:maxKeys], it.GroupByAttribute) {
			some = append(some, it)
		} else {
			others = append(others, it)
		}
	}
	return some, others
}

// plain reports whether a condition uses only what a tally distinguishes.
func (it *item) plain() bool { return !rules.FieldsOf(&it.Scope, &it.Filter).Others }

// cutNS is the beginning of the window, whenever the rule was armed.
func (it *item) cutNS() int64 { return it.toNS - int64(it.seconds)*secondNS }

// shortCutNS is the beginning of the short window; its end if there is none.
func (it *item) shortCutNS() int64 {
	return it.toNS - int64(it.ShortWindowSeconds)*secondNS
}

// tallyQuery asks for the kinds that the rules of one set distinguish.
func (p *pass) tallyQuery(items []*item) TallyQuery {
	first := items[0]
	q := TallyQuery{
		Tenants:     evaluator.Tenants{Index: p.request.Tenants.Index, Of: p.request.Tenants.Of},
		StartFromNS: first.startFromNS, ToNS: first.toNS, Statuses: statusesOf(first.FireMode, &first.Filter), Limit: maxTallies, NamesServer: first.absent(),
	}
	for _, it := range items {
		q.Tenants.Names = append(q.Tenants.Names, it.TenantID)
		q.FromNS = append(q.FromNS, it.cutNS())
		if it.ShortWindowSeconds > 0 {
			q.FromNS = append(q.FromNS, it.shortCutNS())
		}
		if it.FireMode == rules.DurationInWindow {
			q.LeastNS = append(q.LeastNS, it.leastNS())
		}
		looksAt, by := rules.FieldsOf(&it.Scope, &it.Filter), it.Grouping()
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
