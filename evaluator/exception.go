package evaluator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/rules"
)

// A rule has progress of its own only while it is an exception:
//
//   - It is new, or enabled again: what it wants behind the partition's cursor is its
//     own to read, up to where the partition's judging of the rule begins.
//   - It fails: the database refuses what it raises, or it does not compile. The
//     partition leaves it out, and tries it alone from time to time. Once that
//     succeeds, the partition judges it again, and the rule reads what lies between.
//   - Its tenant took more than its share of a pass: what was deferred is read here.
//
// All of them are read in the time that a pass has left, a page at least.

// extra is what the next commit writes beside what it is made for.
type extra struct {
	backfills map[uuid.UUID]Backfill
	finished  map[uuid.UUID]bool
	problems  map[uuid.UUID]string
	failed    map[uuid.UUID]string
	recovered map[uuid.UUID]bool
	evaluated []uuid.UUID
	// watched says that the checkpoint's watch is another one than is stored.
	watched bool
}

func (x *extra) empty() bool {
	return len(x.backfills)+len(x.finished)+len(x.problems)+len(x.failed)+len(x.recovered)+len(x.evaluated) == 0 && !x.watched
}

// put sets an entry of a map that may not be there yet.
func put[V any](m *map[uuid.UUID]V, id uuid.UUID, value V) {
	if *m == nil {
		*m = map[uuid.UUID]V{}
	}
	(*m)[id] = value
}

func (x *extra) backfill(b Backfill) {
	put(&x.backfills, b.RuleID, b)
	delete(x.finished, b.RuleID)
}

func (x *extra) finish(id uuid.UUID) {
	put(&x.finished, id, true)
	delete(x.backfills, id)
}

// into adds everything to a batch.
func (x *extra) into(b *Batch) {
	for _, id := range sorted(x.backfills) {
		b.Backfills = append(b.Backfills, x.backfills[id])
	}
	b.Finished, b.Recovered = sorted(x.finished), sorted(x.recovered)
	b.Problems, b.Failed, b.Evaluated = x.problems, x.failed, x.evaluated
}

func sorted[V any](m map[uuid.UUID]V) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}

// applied takes over what a commit wrote.
func (x *extra) applied(s *ruleset) {
	for id, b := range x.backfills {
		s.byID[id].backfill = &b
	}
	for id := range x.finished {
		s.byID[id].backfill = nil
	}
	for id, problem := range x.problems {
		s.byID[id].problem = problem
	}
	for id := range x.recovered {
		r := s.byID[id]
		r.problem, r.failing, r.failed = "", false, 0
	}
	for id, problem := range x.failed {
		s.byID[id].problem = problem
	}
}

// settle has the next commit record that a rule was evaluated, and what is wrong with it
// all the same; "" is nothing.
func (p *pass) settle(r *rule, problem string) {
	problem = rules.CleanText(problem, maxProblemBytes)
	switch {
	case problem == "" && (r.failing || r.problem != ""):
		put(&p.extra.recovered, r.ID, true)
	case problem != r.problem:
		put(&p.extra.problems, r.ID, problem)
	}
}

const (
	// maxProblemBytes bounds what is kept of a problem's text.
	maxProblemBytes = 2000
	// retryFirst and retryMost bound the pause before a rule that fails is tried again.
	retryFirst, retryMost = 5 * time.Second, 5 * time.Minute
)

// fail leaves a rule out of the partition's judging, and has the next commit record that,
// with all that it may have to judge behind the cursor.
func (p *pass) fail(r *rule, why error) {
	problem := rules.CleanText(why.Error(), maxProblemBytes)
	r.failing = true
	r.retryAt = p.Clock().Add(min(retryFirst<<min(r.failed, 10), retryMost))
	r.failed++
	if r.FireMode == rules.PerExchange && (r.backfill == nil || !r.backfill.Failing) {
		b := Backfill{RuleID: r.ID, At: p.judgedBy(r), Failing: true}
		if r.backfill != nil && b.At.After(r.backfill.At) {
			b.At = r.backfill.At
		}
		r.backfill = &b
		p.extra.backfill(b)
	}
	delete(p.extra.recovered, r.ID)
	delete(p.extra.problems, r.ID)
	if r.problem != problem {
		put(&p.extra.failed, r.ID, problem)
	}
}

// judgedBy returns a position up to which a rule has certainly judged everything.
func (p *pass) judgedBy(r *rule) cursor.Position {
	switch {
	case p.memory != nil:
		return cursor.Position{StartTimeNS: p.memory.baseNS - r.reachNS() - 1}
	case p.at.Backfill != nil:
		return cursor.Position{StartTimeNS: p.at.Backfill.CursorNS - r.reachNS() - 1}
	case p.at.Cursor != nil:
		return cursor.Position{StartTimeNS: p.at.Cursor.StartTimeNS - r.reachNS() - 1}
	default:
		return cursor.Position{StartTimeNS: r.ArmedSinceNS - r.reachNS() - 1}
	}
}

// catchUp reads on behalf of the rules that are behind, as far as there is time.
func (p *pass) catchUp(ctx context.Context) error {
	for first := true; first || !p.over(); first = false {
		list := p.rules.behind(p.Clock())
		if p.stopping() || len(list) == 0 {
			return nil
		}
		if err := p.catchUpWith(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// catchUpWith reads and judges one page for rules that are behind, and commits how far
// they have come.
func (p *pass) catchUpWith(ctx context.Context, list []*rule) error {
	end := *p.at.Cursor
	if !list[0].failing {
		end = until(list)
	}
	n := narrowed(list)
	q := n.scan(p.at)
	q.After, q.BeforeNS, q.EndedSinceNS, q.Limit = list[0].backfill.At, end.StartTimeNS+1, n.endedSinceNS, p.pageSize*bulk
	if len(q.Tenants.Names) < len(p.rules.narrow.tenants) {
		q.Tenants.Of = 0
	}
	var page Page
	if q.After.StartTimeNS < q.BeforeNS {
		var err error
		if page, _, err = p.scan(ctx, q, p.server); err != nil {
			return fmt.Errorf("catch up: %w", err)
		}
	}
	next := p.stay()
	next.behind, next.to = list, end
	if page.More && len(page.Exchanges) > 0 {
		next.to = page.Exchanges[len(page.Exchanges)-1].Position()
	}
	return p.commit(ctx, p.judgeFor(list, page.Exchanges), next)
}

// advanced returns all that the next commit writes beside what was found: what waits for
// it, and how far the rules of a step come that have not just failed.
func (p *pass) advanced(next step) extra {
	if len(next.behind) == 0 {
		return p.extra
	}
	// A commit that is refused is followed by others.
	x := extra{
		maps.Clone(p.extra.backfills), maps.Clone(p.extra.finished), maps.Clone(p.extra.problems),
		maps.Clone(p.extra.failed), maps.Clone(p.extra.recovered), p.extra.evaluated, p.extra.watched,
	}
	for _, r := range next.behind {
		if r.resting(p.Clock()) {
			continue
		}
		b := *r.backfill
		if next.to.After(b.At) {
			b.At = next.to
		}
		if r.failing {
			// The partition judges it again from its cursor on.
			b.Failing, b.Until = false, next.cursor
			put(&x.recovered, r.ID, true)
		}
		if b.Until.After(b.At) {
			x.backfill(b)
		} else {
			x.finish(r.ID)
		}
	}
	return x
}
