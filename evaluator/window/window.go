// Package window evaluates window rules.
//
// Such a rule counts the matching exchanges that ended within the window that ends at the
// watermark. The source counts, [alerts.Window.Next] decides, and the commit of the pass makes the
// steps. Each step requires the state that it starts from. So an action of a person in the meantime
// makes the step void, and the next pass decides again. The database ensures that each rule and
// group has at most one open or held alert. Late exchanges count while the window still covers
// them, so such a rule needs no cursor.
//
// # Few queries
//
// The number of queries does not depend on the number of tenants, and hardly on the number of
// rules:
//
//   - For conditions that use only names, status and error type, one query tallies the
//     exchanges of all tenants by these, and the process sums what each rule matches
//     (tally.go, sums.go). There is one such query for each set of statuses and each class of window
//     lengths, and a few of them are made at once.
//
//   - The other conditions are sent to the source, many in one query. It answers each of them
//     exactly as if it were asked separately.
//
// # Servers that lag
//
// Servers behind one address may be asked in turn, and one of them may lag. If an answer lacks the
// exchange that an open alert names, although it should still be in the window, no step resolves,
// drops or releases the alert.
//
// # Absence
//
// Rules on absence raise where exchanges are missing, of which groups they list or learn
// from recent days (absence.go). Nothing is missing that may merely not be there yet: the
// source is watched, and their windows end that much before the watermark (package watch).
//
// # Failures
//
// A query that fails is repeated for each half of its rules, and so on, so that only the rules at
// fault fail. Before that, a query that reads nothing shows whether the source answers at all: if
// not, no rule is at fault.
//
// If the time is up before the rule at fault is found, the rules of that query are asked one by one
// for a while, after all others, and none for longer than [aloneMost]. Otherwise a rule that takes
// all the time would keep the others from being evaluated, and nobody would be notified of it.
package window

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/watch"
	"tocsin/rules"
)

const (
	// maxGroups bounds the groups of one rule, and its open alerts.
	maxGroups = 1000
	// batchMost is how many conditions are sent in one query, because ClickHouse's time for parsing
	// grows faster than their number.
	batchMost = 50
	// slowFor is how long a query that took too long comes last.
	slowFor = 10 * time.Minute
	// aloneMost is how long a slow rule may take when it is asked alone.
	aloneMost = 3 * time.Second
)

// Options configures an [Evaluator]. All fields are required.
type Options struct {
	Source Source
	Texts  evaluator.Texts
	Logger *slog.Logger
}

// Evaluator evaluates window rules. It is safe for concurrent use.
type Evaluator struct {
	Options

	mu sync.Mutex
	// slow holds until when a rule, by its id, is asked alone, and a set of rules, by its key, is
	// not tallied.
	slow map[any]time.Time
	// learned holds the groups that rules learned.
	learned map[uuid.UUID]members
	watcher *watch.Watcher
}

// New returns an evaluator.
func New(o Options) *Evaluator {
	return &Evaluator{Options: o, slow: map[any]time.Time{}, learned: map[uuid.UUID]members{}, watcher: watch.New(o.Source)}
}

// item is a rule that is being evaluated.
type item struct {
	evaluator.WindowRule
	// number is its index in the request.
	number int
	window alerts.Window
	// fromNS, toNS, startFromNS and limit are those of the [Query] of the item.
	fromNS, toNS, startFromNS int64
	limit                     int
	// seconds is the length of the window.
	seconds int
	// learns says that the item learns the groups from which exchanges are expected.
	learns bool
	// members are the groups from which a rule on absence expects exchanges. memberProblem is a
	// problem with them that does not prevent an evaluation. server is the server that counted the
	// groups.
	members               []string
	memberProblem, server string
	// partial says that the window begins before the rule was armed.
	partial bool
	open    []evaluator.OpenAlert
	// groups are the counted groups: those with an open alert, and those that may reach the
	// threshold, the largest first. A rule on absence has all groups here. If there are more than
	// fit, it has one more than that.
	groups []Group
	// room is how many more alerts the rule may open.
	room    int
	changes []change
	problem string
}

// pass is one evaluation.
type pass struct {
	*Evaluator
	request *evaluator.WindowRequest
	out     evaluator.WindowOutcome
	// concluding says that counts are being concluded, regardless of the time: otherwise a count
	// that takes all the time would never raise anything.
	concluding bool
	// asked says that something was counted. Each pass counts something, however long the watch
	// took: otherwise rules that wait might wait for ever.
	asked bool
	// seen is what the watch came to; the zero value where there is no rule on absence.
	seen watch.Seen
}

// Evaluate returns what happens to the alerts of some rules.
func (e *Evaluator) Evaluate(ctx context.Context, request evaluator.WindowRequest) evaluator.WindowOutcome {
	p := &pass{Evaluator: e, request: &request, out: evaluator.WindowOutcome{
		Failed: map[uuid.UUID]error{}, Problems: map[uuid.UUID]string{}, Watch: request.Watch,
	}}
	p.expire()
	unwatched := p.watchFor(ctx)
	if p.out.SourceErr != nil {
		return p.out
	}
	items := p.items()
	if unwatched != nil {
		items = slices.DeleteFunc(items, func(it *item) bool {
			if it.absent() {
				p.out.Failed[it.ID] = unwatched
			}
			return it.absent()
		})
	}
	known := slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.absent() && !p.expect(it) })
	p.evaluate(ctx, known)
	p.evaluate(ctx, p.learners(items))
	return p.out
}

// watchFor watches the source if there are rules on absence. If the source answers other queries
// but not this one, only those rules fail.
func (p *pass) watchFor(ctx context.Context) error {
	if !p.request.Watches {
		return nil
	}
	watching, cancel := context.WithTimeout(ctx, aloneMost)
	defer cancel()
	seen, err := p.watcher.Watch(watching, p.request)
	if err != nil && !p.answers(ctx, err) {
		return nil
	}
	p.seen, p.out.Watch = seen, seen.Watch
	return err
}

// evaluate counts items, by tallies if possible, and concludes.
func (p *pass) evaluate(ctx context.Context, items []*item) {
	rest := p.tally(ctx, sets(items))
	for _, batch := range p.batches(rest) {
		p.ask(ctx, batch, p.count)
	}
}

func (p *pass) items() []*item {
	open := map[uuid.UUID][]evaluator.OpenAlert{}
	for _, alert := range p.request.Open {
		open[alert.RuleID] = append(open[alert.RuleID], alert)
	}
	items, all := make([]*item, len(p.request.Rules)), make([]item, len(p.request.Rules))
	for i, rule := range p.request.Rules {
		to, most := p.request.WatermarkNS, maxGroups+len(open[rule.ID])
		if rule.FireMode == rules.AbsentInWindow {
			to, most = p.seen.ToNS, countedMost
		}
		from := to - int64(rule.WindowSeconds)*secondNS
		it := &all[i]
		*it = item{
			WindowRule: rule, number: i, open: open[rule.ID], partial: rule.ArmedSinceNS > from, window: alerts.WindowOf(&rule.Definition), seconds: rule.WindowSeconds,
			fromNS: max(from, rule.ArmedSinceNS), toNS: to, startFromNS: StartFromNS(rule.WindowSeconds, to), limit: most + 1,
		}
		items[i] = it
	}
	return items
}

// batches returns the items for each query, longest waiting first. Slow ones come last, one by one.
func (p *pass) batches(items []*item) [][]*item {
	var quick, slow []*item
	for _, it := range items {
		if !p.slowUntil(it.ID).IsZero() {
			slow = append(slow, it)
		} else {
			quick = append(quick, it)
		}
	}
	sortByNames(quick)
	batches := slices.Collect(slices.Chunk(quick, batchMost))
	slices.SortStableFunc(batches, func(a, b []*item) int { return first(a) - first(b) })
	// Rules that were slow alone come after those that were slow together with others.
	slices.SortStableFunc(slow, func(a, b *item) int {
		return cmp.Or(p.slowUntil(a.ID).Compare(p.slowUntil(b.ID)), a.number-b.number)
	})
	return slices.AppendSeq(batches, slices.Chunk(slow, 1))
}

// first returns the index of the item that comes first in the request.
func first(items []*item) int {
	return slices.MinFunc(items, func(a, b *item) int { return a.number - b.number }).number
}

// sortByNames groups items that use the same names, because a query for several is narrowed by
// them. Items without names come last.
func sortByNames(items []*item) {
	byNames := func(a, b []string) int {
		if (len(a) == 0) != (len(b) == 0) {
			return len(b) - len(a)
		}
		return slices.Compare(a, b)
	}
	slices.SortStableFunc(items, func(a, b *item) int {
		x, y := &a.Scope, &b.Scope
		return cmp.Or(byNames(x.Applications, y.Applications), byNames(x.Routes, y.Routes), byNames(x.Environments, y.Environments))
	})
}

// ask asks about some items in one query. If it fails, each half is asked about separately, and so
// on. An item that fails alone has failed.
func (p *pass) ask(ctx context.Context, items []*item, question func(context.Context, []*item) error) {
	if len(items) == 0 || p.over(ctx) {
		return
	}
	p.asked = true
	err := p.bounded(ctx, items, question)
	switch {
	case err == nil:
		if len(items) == 1 {
			p.forget(items[0].ID)
		}
	case errors.Is(ctx.Err(), context.Canceled):
	case p.over(ctx) && (len(items) > 1 || ctx.Err() != nil):
		// There is no time left to find out which rule it was.
		for _, it := range items {
			p.remember(it.ID)
		}
	case !p.answers(ctx, err):
	case len(items) == 1:
		p.remember(items[0].ID)
		p.out.Failed[items[0].ID] = err
	default:
		middle := len(items) / 2
		p.ask(ctx, items[:middle], question)
		p.ask(ctx, items[middle:], question)
	}
}

// bounded runs a question. For a slow rule it is bounded to the time that one rule may take.
func (p *pass) bounded(ctx context.Context, items []*item, question func(context.Context, []*item) error) error {
	if len(items) > 1 || p.slowUntil(items[0].ID).IsZero() {
		return question(ctx, items)
	}
	alone, cancel := context.WithTimeout(ctx, aloneMost)
	defer cancel()
	err := question(alone, items)
	if err != nil && alone.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("ClickHouse takes longer than %v for this rule alone; narrow its scope or shorten its window: %w", aloneMost, err)
	}
	return err
}

// count counts items by their conditions.
func (p *pass) count(ctx context.Context, items []*item) error {
	var queries []Query
	for _, it := range items {
		queries = append(queries, it.queries()...)
	}
	counted, err := p.Source.CountWindows(ctx, queries)
	if err != nil {
		return fmt.Errorf("count exchanges: %w", err)
	}
	groups := counted.Groups
	for _, it := range items {
		it.groups, it.server, groups = groups[0], counted.Server, groups[1:]
		if it.byErrorType() {
			it.compareWith(groups[0])
			groups = groups[1:]
		}
	}
	p.conclude(ctx, items)
	return nil
}

// query is what an item asks for.
func (it *item) query() Query {
	q := Query{
		TenantID: it.TenantID, FromNS: it.fromNS, ToNS: it.toNS, StartFromNS: it.startFromNS, Grouping: it.Grouping(), Scope: it.Scope, Filter: it.Filter,
		Limit: it.limit, Mode: it.FireMode, LeastNS: it.leastNS(), Percentile: it.Percentile,
	}
	if it.ShortWindowSeconds > 0 {
		q.ShortFromNS = max(it.shortCutNS(), it.ArmedSinceNS)
	}
	if it.absent() {
		return q
	}
	if q.Bound = &it.window; it.byErrorType() {
		// What the groups are compared with is not in this query.
		q.Bound = &alerts.Window{Threshold: it.window.Least()}
	}
	q.Open = make([]string, len(it.open))
	for i := range it.open {
		q.Open[i] = it.open[i].Group
	}
	return q
}

// leastNS is the duration from which an exchange is observed by a rule on durations.
func (it *item) leastNS() int64 { return it.DurationMS * 1e6 }

// byErrorType reports whether the item is a ratio by error type. A completed exchange has none, so
// each group is compared with all exchanges of the scope.
func (it *item) byErrorType() bool {
	return it.FireMode == rules.RatioInWindow && it.GroupBy == rules.GroupByErrorType
}

// queries returns the query of an item and, for a ratio by error type, a query for everything that
// its groups are compared with.
func (it *item) queries() []Query {
	if !it.byErrorType() {
		return []Query{it.query()}
	}
	whole := it.query()
	whole.Grouping, whole.Bound, whole.Open = rules.Grouping{}, nil, nil
	return []Query{it.query(), whole}
}

// compareWith compares all groups with the volume of a group that contains everything.
func (it *item) compareWith(whole []Group) {
	for i := range it.groups {
		if g := &it.groups[i]; len(whole) > 0 {
			g.Volume, g.ShortVolume = whole[0].Volume, whole[0].ShortVolume
		}
	}
}

// answers reports whether the source answers a query that reads nothing. If it does not, the pass
// ends with the previous error.
func (p *pass) answers(ctx context.Context, before error) bool {
	to := p.request.WatermarkNS
	_, err := p.Source.Tally(ctx, TallyQuery{
		Tenants: evaluator.Tenants{Names: p.request.Tenants.Names[:1]}, StartFromNS: to, FromNS: []int64{to}, ToNS: to,
		Statuses: []rules.Status{rules.Failed}, Limit: 1,
	})
	if err != nil {
		p.out.SourceErr = before
	}
	return err == nil
}

// over reports whether nothing more may be asked.
func (p *pass) over(ctx context.Context) bool {
	return p.out.SourceErr != nil || ctx.Err() != nil || p.asked && !p.concluding && p.request.Over()
}

// slowUntil returns the zero instant if something is not slow.
func (p *pass) slowUntil(key any) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slow) == 0 {
		return time.Time{}
	}
	return p.slow[key]
}

func (p *pass) remember(key any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow[key] = p.request.Now.Add(slowFor)
}

func (p *pass) forget(key any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.slow, key)
}

func (p *pass) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.slow, func(_ any, until time.Time) bool { return !p.request.Now.Before(until) })
	// Removes deleted rules.
	maps.DeleteFunc(p.learned, func(_ uuid.UUID, m members) bool { return p.request.WatermarkNS-m.atNS > 24*learnedForNS })
}
