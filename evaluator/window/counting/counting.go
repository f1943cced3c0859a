// Package counting counts the exchanges of window rules: for each rule, how many of each group ended
// within its window.
//
// A [Pass] counts the windows of one evaluation, and hands them over as they are counted, so that
// something follows from them even if there is no time left for others.
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
// # Failures
//
// A query that fails is repeated for each half of its rules, and so on, so that only the rules at
// fault fail, if the next pass does not count them either. Before that, a query that reads nothing shows whether the source answers at all: if
// not, no rule is at fault.
//
// If the time is up before the rule at fault is found, the rules of that query are asked one by one
// for a while, after all others, and none for longer than [aloneMost]. Otherwise a rule that takes
// all the time would keep the others from being counted, and nobody would be notified of it. A tally
// that takes all the time is not asked again for a while: the conditions of its rules are sent, which
// make progress step by step.
//
// Whatever waits for longest is counted first, by a tally or by its conditions, and each pass counts
// something. Slow rules come last, and if there is no time for all of them, one of them comes first in every
// other pass. So no rule waits for ever because others take all the time.
package counting

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

	"tocsin/evaluator/source"
	"tocsin/rules"
)

const (
	// batchMost is how many conditions are sent in one query, because ClickHouse's time for parsing
	// grows faster than their number.
	batchMost = 50
	// slowFor is how long a query that took too long comes last.
	slowFor = 10 * time.Minute
	// aloneMost is how long a slow rule may take when it is asked alone.
	aloneMost = 3 * time.Second
)

// Options configures a [Counter]. Source and Logger are required.
type Options struct {
	Source Source
	Logger *slog.Logger
	// TallyLeast is the number of rules from which a tally counts them, 8 by default. Below it, a tally
	// does not pay, because its reading is not narrowed by their conditions. Operators cannot set it: the
	// simulation has few rules.
	TallyLeast int
}

// Counter counts windows, and remembers what is slow. It is safe for concurrent use.
type Counter struct {
	Options

	mu sync.Mutex
	// slow holds until when a window is asked alone or not tallied, and a set of windows, by its key,
	// is not tallied.
	slow map[any]time.Time
	// leftOut holds the partitions whose last pass left out a slow window, and cutOff those whose last pass began
	// with one and ended before its time was up.
	leftOut, cutOff map[int]bool
	// warned holds until when it is not logged again for a partition that its windows are asked about one by one.
	warned map[int]time.Time
}

// New returns a counter of what a source holds.
func New(o Options) *Counter {
	o.TallyLeast = cmp.Or(o.TallyLeast, 8)
	return &Counter{
		Options: o, slow: map[any]time.Time{}, leftOut: map[int]bool{}, cutOff: map[int]bool{}, warned: map[int]time.Time{},
	}
}

// Request is what a [Pass] has to know.
type Request struct {
	Partition int
	Tenants   source.Tenants
	// WatermarkNS is where the windows end, exclusive: each counts what ended in
	// [WatermarkNS - window, WatermarkNS). Those of rules on absence end before it.
	WatermarkNS int64
	// Now is the present by the clock of the store, by which alerts are dated.
	Now time.Time
	// Over reports that there is no more time.
	Over func() bool
}

// Pass counts the windows of one evaluation. It is not safe for concurrent use.
type Pass struct {
	counter *Counter
	request *Request
	// conclude takes counted windows.
	conclude func(context.Context, []*Window)
	// asked says that something was counted. Each pass counts something, however long the watch
	// took: otherwise rules that wait might wait for ever.
	asked bool
	// Failed holds why rules could not be counted although others could, Unlearned the same of the
	// windows from which groups are learned.
	Failed, Unlearned map[uuid.UUID]error
	// SourceErr is set when the source could not be read at all. Then the pass asks nothing more.
	SourceErr error
}

// Pass begins the pass of a request. [Pass.Count] gives conclude the windows that one query counted,
// and the context in which conclude may ask more about them by [Pass.Newest] and [Window.Recount].
func (c *Counter) Pass(request *Request, conclude func(context.Context, []*Window)) *Pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.slow, func(_ any, until time.Time) bool { return !request.Now.Before(until) })
	return &Pass{counter: c, request: request, conclude: conclude, Failed: map[uuid.UUID]error{}, Unlearned: map[uuid.UUID]error{}}
}

// Count counts windows, by tallies if possible, those with the lowest numbers first, and slow ones last.
// It leaves out those for which there is no time. If that leaves out a slow window, the next pass begins
// with the slow window that waits for longest, but never two passes in a row: nothing is left out for
// ever, whether slow windows take the time of each pass, or the others do. If the pass ends before that window
// has had its time, the next one begins with it once more: a pass that counted nothing is followed by one that counts
// before anything else.
func (p *Pass) Count(ctx context.Context, windows []*Window) {
	questions, rest := p.questions(windows)
	quick, slow := p.batches(rest)
	begins := len(slow) > 0 && p.takeLeftOut()
	if begins {
		longest := slices.MinFunc(slow, byNumber)
		p.ask(ctx, []*Window{longest}, p.over, p.count)
		slow = slices.DeleteFunc(slow, func(w *Window) bool { return w == longest })
	}
	p.cutsOff(begins && ctx.Err() != nil)
	asked := 0
	var undecided []*Window
	for i, q := range questions {
		for len(quick) > 0 && first(quick[0]) < first(q.windows) {
			p.ask(ctx, quick[0], p.over, p.count)
			quick = quick[1:]
		}
		for ; asked < min(len(questions), i+QueriesAtOnce); asked++ {
			p.put(ctx, questions[asked])
		}
		undecided = append(undecided, p.tallied(ctx, q)...)
	}
	for _, batch := range quick {
		p.ask(ctx, batch, p.over, p.count)
	}
	for _, w := range slow {
		if p.over(ctx) && !begins {
			p.leaveOut()
		}
		p.ask(ctx, []*Window{w}, p.over, p.count)
	}
	quick, slow = p.batches(undecided)
	for _, batch := range slices.AppendSeq(quick, slices.Chunk(slow, 1)) {
		if p.over(ctx) {
			// They would come after the tallies each time.
			for _, w := range batch {
				p.remember(wide{w.key()})
			}
		}
		p.ask(ctx, batch, p.over, p.count)
	}
}

// leaveOut notes that a pass over the partition left out a slow window; takeLeftOut reports it once.
func (p *Pass) leaveOut() {
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	p.counter.leftOut[p.request.Partition] = true
}

// cutsOff notes whether a pass over the partition ended while it counted the slow window with which it began. It is left
// out then, unless the last pass cut it off as well.
func (p *Pass) cutsOff(now bool) {
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	of := p.request.Partition
	if now = now && !p.counter.cutOff[of]; now {
		p.counter.cutOff[of], p.counter.leftOut[of] = true, true
	} else {
		delete(p.counter.cutOff, of)
	}
}

func (p *Pass) takeLeftOut() bool {
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	leftOut := p.counter.leftOut[p.request.Partition]
	delete(p.counter.leftOut, p.request.Partition)
	return leftOut
}

// batches returns the windows for each query, longest waiting first, and the slow ones, which are asked
// one by one.
func (p *Pass) batches(windows []*Window) (batches [][]*Window, slow []*Window) {
	quick, slow := split(windows, func(w *Window) bool { return p.slowUntil(w.key()).IsZero() })
	learners, quick := split(quick, func(w *Window) bool { return w.Learns })
	for _, some := range [][]*Window{quick, learners} {
		sortByReading(some)
		batches = slices.AppendSeq(batches, slices.Chunk(some, batchMost))
	}
	slices.SortStableFunc(batches, func(a, b []*Window) int { return first(a) - first(b) })
	// Rules that were slow alone come after those that were slow together with others.
	slices.SortStableFunc(slow, func(a, b *Window) int {
		return cmp.Or(p.slowUntil(a.key()).Compare(p.slowUntil(b.key())), byNumber(a, b))
	})
	return batches, slow
}

// split returns the windows that are of a kind, in their order, and the others.
func split(windows []*Window, of func(*Window) bool) (some, others []*Window) {
	for _, w := range windows {
		if of(w) {
			some = append(some, w)
		} else {
			others = append(others, w)
		}
	}
	return some, others
}

func byNumber(a, b *Window) int { return a.Number - b.Number }

// first returns the lowest number of some windows.
func first(windows []*Window) int { return slices.MinFunc(windows, byNumber).Number }

// sortByReading puts windows beside each other for which a query reads the same: those of one length,
// because it reads the longest window of all, and of these those with the same names, because it is
// narrowed by them. Windows without names come last.
func sortByReading(windows []*Window) {
	byNames := func(a, b []string) int {
		if (len(a) == 0) != (len(b) == 0) {
			return len(b) - len(a)
		}
		return slices.Compare(a, b)
	}
	slices.SortStableFunc(windows, func(a, b *Window) int {
		x, y := &a.Scope, &b.Scope
		return cmp.Or(cmp.Compare(lengthOf(a.Seconds), lengthOf(b.Seconds)), byNames(x.Applications, y.Applications), byNames(x.Routes, y.Routes), byNames(x.Environments, y.Environments))
	})
}

// query reads something about windows, and returns what follows from it, which is not bounded as the
// query may be. then takes whether a slow window was quick.
type query = func(context.Context, []*Window) (then func(ctx context.Context, quick bool), err error)

// ask asks about some windows in one query, unless the time is over. If the query fails, each half
// is asked about separately, and so on. A window that fails alone in two passes has failed.
func (p *Pass) ask(ctx context.Context, windows []*Window, over func(context.Context) bool, query query) {
	if len(windows) == 0 || over(ctx) {
		return
	}
	p.asked = true
	then, quick, err := p.bounded(ctx, windows, query)
	switch {
	case err == nil:
		then(ctx, quick)
	case errors.Is(ctx.Err(), context.Canceled):
	case ctx.Err() == nil && !p.Answers(ctx, err):
	case over(ctx) && (len(windows) > 1 || ctx.Err() != nil):
		// There is no time left to find out which rule it was.
		p.askAlone(ctx, windows, err)
	case len(windows) == 1:
		again := !p.slowUntil(windows[0].key()).IsZero()
		p.remember(windows[0].key())
		switch {
		case !again:
			// It may pass: the next pass asks again before anybody is notified.
		case windows[0].Learns:
			p.Unlearned[windows[0].ID] = err
		default:
			p.Failed[windows[0].ID] = err
		}
	default:
		middle := len(windows) / 2
		p.ask(ctx, windows[:middle], over, query)
		p.ask(ctx, windows[middle:], over, query)
	}
}

// askAlone has the next passes ask about windows one by one. They may take turns with queries for several that fail again,
// so the log says it once in a while.
func (p *Pass) askAlone(ctx context.Context, windows []*Window, err error) {
	for _, w := range windows {
		p.remember(w.key())
	}
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	if p.request.Now.Before(p.counter.warned[p.request.Partition]) {
		return
	}
	p.counter.warned[p.request.Partition] = p.request.Now.Add(slowFor)
	p.counter.Logger.WarnContext(ctx, "window rules are counted one by one until they answer in time, because a query for several of them failed or took too long; "+
		"shorten their windows, or raise intervalSeconds", slog.Int("partition", p.request.Partition), slog.Int("rules", len(windows)), slog.Any("error", err))
}

// bounded makes a query. For a slow rule it is bounded to the time that one rule may take. quick says
// that it took less than half of that: one that takes longer would be slow again beside others.
func (p *Pass) bounded(ctx context.Context, windows []*Window, query query) (then func(context.Context, bool), quick bool, err error) {
	if len(windows) > 1 || p.slowUntil(windows[0].key()).IsZero() {
		then, err = query(ctx, windows)
		return then, false, err
	}
	half, cancelHalf := context.WithTimeout(ctx, aloneMost/2)
	defer cancelHalf()
	alone, cancel := context.WithTimeout(ctx, aloneMost)
	defer cancel()
	then, err = query(alone, windows)
	if err != nil && alone.Err() != nil && ctx.Err() == nil {
		remedy := "narrow its scope or shorten its window"
		if windows[0].Learns {
			remedy = "learn fewer days, list the expected groups, or narrow its scope"
		}
		return nil, false, fmt.Errorf("ClickHouse takes longer than %v for this rule alone: %w; %s", aloneMost, err, remedy)
	}
	return then, half.Err() == nil, err
}

// count counts windows by their conditions.
func (p *Pass) count(ctx context.Context, windows []*Window) (then func(context.Context, bool), err error) {
	var queries []Query
	for _, w := range windows {
		queries = append(queries, w.queries()...)
	}
	counted, err := p.counter.Source.CountWindows(ctx, queries)
	if err != nil {
		return nil, fmt.Errorf("count exchanges: %w", err)
	}
	groups := counted.Groups
	for _, w := range windows {
		w.Groups, w.Server, groups = groups[0], counted.Server, groups[1:]
		if w.byErrorType() {
			w.compareWith(groups[0])
			groups = groups[1:]
		}
	}
	return func(ctx context.Context, quick bool) {
		p.conclude(ctx, windows)
		if quick && p.Failed[windows[0].ID] == nil {
			p.forget(windows[0].key()) // it was asked alone, and its newest exchanges could be read
		}
	}, nil
}

// Answers reports whether the source answers a query that reads nothing. If it does not, the pass
// ends with the previous error.
func (p *Pass) Answers(ctx context.Context, before error) bool {
	to := p.request.WatermarkNS
	_, err := p.counter.Source.Tally(ctx, TallyQuery{
		Tenants: source.Tenants{Names: p.request.Tenants.Names[:1]}, StartFromNS: to, FromNS: []int64{to}, ToNS: to,
		Statuses: []rules.Status{rules.Failed}, Limit: 1,
	})
	if err != nil {
		p.SourceErr = before
	}
	return err == nil
}

// ended reports whether nothing more may be asked.
func (p *Pass) ended(ctx context.Context) bool { return p.SourceErr != nil || ctx.Err() != nil }

// over reports whether nothing more may be counted.
func (p *Pass) over(ctx context.Context) bool { return p.ended(ctx) || p.asked && p.request.Over() }

// slowUntil returns the zero instant if something is not slow.
func (p *Pass) slowUntil(key any) time.Time {
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	return p.counter.slow[key]
}

func (p *Pass) remember(key any) {
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	p.counter.slow[key] = p.request.Now.Add(slowFor)
}

func (p *Pass) forget(key any) {
	p.counter.mu.Lock()
	defer p.counter.mu.Unlock()
	delete(p.counter.slow, key)
}
