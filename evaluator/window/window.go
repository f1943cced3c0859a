// Package window evaluates window rules.
//
// Such a rule counts the matching exchanges that ended within the window that ends at the
// watermark. Package counting counts them, [alerts.Window.Next] decides, and the commit of the pass
// makes the steps. Each step requires the state that it starts from. So an action of a person in the
// meantime makes the step void, and the next pass decides again. The database ensures that each rule
// and group has at most one open or held alert. Late exchanges count while the window still covers
// them, so such a rule needs no cursor.
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
package window

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window/counting"
	"tocsin/notify"
	"tocsin/rules"
)

const secondNS = int64(1e9)

const (
	// watchMost is how long the watch over the source may take.
	watchMost = 3 * time.Second
	// inARowNS is how far apart two watches that fail may be: another replica may have held the
	// partition meanwhile.
	inARowNS = 600 * secondNS
)

// Source shows what arrives, and counts it.
type Source interface {
	watch.Source
	counting.Source
}

// Texts renders the texts of an alert. It always returns texts to show; where a template cannot be
// rendered, it falls back and says why in problem. Newest is the zero exchange where none is known.
type Texts interface {
	CountTexts(rule *rules.Rule, c *alerts.Count, newest *rules.Exchange) (title, message string, problem error)
}

// Request asks for the evaluation of the window rules of one partition.
type Request struct {
	counting.Request

	// Rules are due, in the order in which they should be evaluated.
	Rules []counting.Compiled
	// Open holds the open alerts of these rules, and those that a person resolved while
	// their value was above the threshold.
	Open []alerts.OpenAlert
	// Watch is that of the checkpoint; Watches says that there are rules on absence, and
	// that the source is to be watched for them.
	Watch   watch.State
	Watches bool
}

// Outcome is what became of window rules.
type Outcome struct {
	Changes []Change
	// Evaluated are the rules that were evaluated, with or without a change.
	Evaluated []uuid.UUID
	// Failed are rules that could not be evaluated although others could; Problems are
	// those of rules that could, as a text that is a fallback.
	Failed   map[uuid.UUID]error
	Problems map[uuid.UUID]string
	// Watch replaces that of the checkpoint.
	Watch watch.State
	// SourceErr is set when the source could not be read at all.
	SourceErr error
}

// Change is a step of one alert of a window rule. It is made if the alert still
// stands where the step leads from; else nothing of it is written.
type Change struct {
	Step alerts.Step
	// Instance is whole for a new alert; for an open one it holds the id, the
	// rule, and what changes: texts, count and newest exchange.
	Instance alerts.Instance
	// Notifications belong to the step.
	Notifications []notify.Notification
}

// Options configures an [Evaluator]. Source, Texts and Logger are required.
type Options struct {
	Source Source
	Texts  Texts
	Logger *slog.Logger
	// TallyLeast is that of [counting.Options].
	TallyLeast int
}

// Evaluator evaluates window rules. It is safe for concurrent use.
type Evaluator struct {
	Options

	counter *counting.Counter
	watcher *watch.Watcher
	mu      sync.Mutex
	// learned holds the groups that rules learned.
	learned map[uuid.UUID]members
	// unwatched holds the watermarks at which the last watch over a partition failed.
	unwatched map[int]int64
}

// New returns an evaluator.
func New(o Options) *Evaluator {
	counter := counting.New(counting.Options{Source: o.Source, Logger: o.Logger, TallyLeast: o.TallyLeast})
	return &Evaluator{Options: o, counter: counter, watcher: watch.New(o.Source), learned: map[uuid.UUID]members{}, unwatched: map[int]int64{}}
}

// item is a rule that is being evaluated.
type item struct {
	counting.Window
	// members are the groups from which a rule on absence expects exchanges. memberProblem is a
	// problem with them that does not prevent an evaluation.
	members       []string
	memberProblem string
	// room is how many more alerts the rule may open.
	room    int
	changes []change
	problem string
}

// pass is one evaluation.
type pass struct {
	*Evaluator
	request *Request
	out     Outcome
	counts  *counting.Pass
	// items are the rules of the request, in its order.
	items []item
	// seen is what the watch came to; the zero value where there is no rule on absence.
	seen watch.Seen
}

// Evaluate returns what happens to the alerts of some rules.
func (e *Evaluator) Evaluate(ctx context.Context, request Request) Outcome {
	p := &pass{Evaluator: e, request: &request, out: Outcome{
		Failed: map[uuid.UUID]error{}, Problems: map[uuid.UUID]string{}, Watch: request.Watch,
	}}
	p.counts = e.counter.Pass(&request.Request, p.conclude)
	p.forget()
	fails, unwatched := p.watchFor(ctx)
	if p.counts.SourceErr == nil {
		p.counts.Count(ctx, p.windows(fails, unwatched))
		p.unlearned()
	}
	maps.Copy(p.out.Failed, p.counts.Failed)
	p.out.SourceErr = p.counts.SourceErr
	return p.out
}

// watchFor watches the source if there are rules on absence. If the source answers other queries
// but not this one, those rules are left out, and fail if that happens twice in a row.
func (p *pass) watchFor(ctx context.Context) (fails bool, unwatched error) {
	if !p.request.Watches {
		return false, nil
	}
	watching, cancel := context.WithTimeout(ctx, watchMost)
	defer cancel()
	seen, err := p.watcher.Watch(watching, p.request.watchRequest())
	if err != nil && !p.counts.Answers(ctx, err) {
		return false, nil
	}
	p.seen, p.out.Watch = seen, seen.Watch
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.unwatched, p.request.Partition)
		return false, nil
	}
	before, failed := p.unwatched[p.request.Partition]
	p.unwatched[p.request.Partition] = p.request.WatermarkNS
	return failed && p.request.WatermarkNS-before < inARowNS, err
}

// watchRequest asks for the watch over what the request is about.
func (r *Request) watchRequest() *watch.Request {
	return &watch.Request{Partition: r.Partition, Tenants: r.Tenants, WatermarkNS: r.WatermarkNS, Watch: r.Watch}
}

// windows returns the windows to count: those of rules that can be evaluated, and those from which
// groups are learned. If the source could not be watched, rules on absence are left out, or fail.
func (p *pass) windows(fails bool, unwatched error) (list []*counting.Window) {
	open := map[uuid.UUID][]alerts.OpenAlert{}
	for _, alert := range p.request.Open {
		open[alert.RuleID] = append(open[alert.RuleID], alert)
	}
	p.items, list = make([]item, len(p.request.Rules)), make([]*counting.Window, 0, len(p.request.Rules))
	for i, rule := range p.request.Rules {
		it, absent, toNS := &p.items[i], rule.FireMode == rules.AbsentInWindow, p.request.WatermarkNS
		if absent {
			toNS = p.seen.ToNS
		}
		it.Window = counting.WindowOf(rule, open[rule.ID], toNS)
		it.Number = i
		switch {
		case !absent:
			list = append(list, &it.Window)
		case fails:
			p.out.Failed[rule.ID] = unwatched
		case unwatched != nil:
		default:
			it.Limit = countedMost + 1
			known, learns := p.expect(it)
			if known {
				list = append(list, &it.Window)
			}
			if learns {
				list = append(list, learner(it))
			}
		}
	}
	return list
}
