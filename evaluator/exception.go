package evaluator

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/ruleset"
	"tocsin/rules"
)

// A rule has progress of its own only while it is an exception:
//
//   - It is new, or enabled again: what it wants behind the partition's cursor is its
//     own to read, up to where the partition's evaluation of the rule begins.
//   - It fails: the database refuses what it raises, or it does not compile. The
//     partition leaves it out, and tries it alone from time to time. Once that
//     succeeds, the partition evaluates it again, and the rule reads what lies between.
//   - Its tenant took more than its share of a pass: what was deferred is read here.
//
// All of them are read in the time that a pass has left, a page at least.

// extra is what the next commit writes beside what it is made for.
type extra struct {
	// backfills replace the rules' own progress, health what is recorded on rules.
	backfills map[uuid.UUID]ruleset.Backfill
	health    map[uuid.UUID]Health
	// evaluated are window rules of which it is noted that they were evaluated.
	evaluated []uuid.UUID
	// watched says that the checkpoint's watch is another one than is stored.
	watched bool
}

func (x *extra) empty() bool {
	return len(x.backfills)+len(x.health)+len(x.evaluated) == 0 && !x.watched
}

func (x *extra) backfill(b ruleset.Backfill) { put(&x.backfills, b.RuleID, b) }

func (x *extra) record(id uuid.UUID, h Health) { put(&x.health, id, h) }

// put sets a value of a map, which may be nil.
func put[V any](m *map[uuid.UUID]V, id uuid.UUID, v V) {
	if *m == nil {
		*m = map[uuid.UUID]V{}
	}
	(*m)[id] = v
}

// into adds everything to a batch.
func (x *extra) into(b *Batch) {
	for _, id := range sorted(x.backfills) {
		b.Backfills = append(b.Backfills, x.backfills[id])
	}
	b.Health, b.Evaluated = x.health, x.evaluated
}

func sorted[V any](m map[uuid.UUID]V) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}

// applied takes over what a commit wrote.
func (x *extra) applied(s *ruleset.Set) {
	for id, b := range x.backfills {
		if r := s.Rule(id); b.Done() {
			s.Except(r, nil)
		} else {
			s.Except(r, &b)
		}
	}
	for _, id := range x.evaluated {
		if r := s.Rule(id); r != nil {
			r.Noted()
		}
	}
	for id, h := range x.health {
		r := s.Rule(id)
		if r.Problem = h.Problem; !h.Failed {
			r.Failing = false
			r.Again.Succeeds()
		}
	}
}

// settle records that a rule was evaluated, and what is wrong with it all the same; "" is
// nothing.
func (x *extra) settle(r *ruleset.Rule, problem string) {
	problem = rules.CleanText(problem, maxProblemBytes)
	if r.Failing || problem != r.Problem {
		x.record(r.ID, Health{Problem: problem})
	}
}

// maxProblemBytes bounds what is kept of a problem's text.
const maxProblemBytes = 2000

// fail leaves a rule out of the partition's evaluation, and has the next commit record that,
// with all that it may have to evaluate behind the cursor, and the range of what the database
// refused; nil is nothing.
func (p *pass) fail(r *ruleset.Rule, why error, refused *cursor.Range) {
	problem := rules.CleanText(why.Error(), maxProblemBytes)
	r.Failing = true
	r.Again.Fails(p.Clock())
	if failed := r.Backfill != nil && r.Backfill.Failing; r.FireMode == rules.PerExchange && (!failed || refused != nil) {
		b := ruleset.Backfill{RuleID: r.ID, At: p.judgedBy(r), Failing: true, Refused: refused}
		if r.Backfill != nil && (failed || b.At.After(r.Backfill.At)) {
			b.At = r.Backfill.At
		}
		p.rules.Except(r, &b)
		p.extra.backfill(b)
	}
	delete(p.extra.health, r.ID)
	if r.Problem != problem {
		p.extra.record(r.ID, Health{problem, true})
	}
}

// judgedBy returns a position up to which a rule has certainly evaluated everything.
func (p *pass) judgedBy(r *ruleset.Rule) cursor.Position {
	baseNS := r.ArmedSinceNS
	switch {
	case p.backlog != nil:
		baseNS = p.backlog.BaseNS()
	case p.at.Backfill != nil:
		baseNS = p.at.Backfill.CursorNS
	case p.at.Cursor != nil:
		baseNS = p.at.Cursor.StartTimeNS
	}
	return cursor.Position{StartTimeNS: baseNS - r.ReachNS() - 1}
}

// catchUp reads on behalf of the rules that are behind, as far as there is time. Where the
// source cannot be read for some, they wait for a while, and the others go on.
func (p *pass) catchUp(ctx context.Context) error {
	for first := true; first || !p.over(); first = false {
		list := p.rules.Behind(p.Clock(), p.caughtUp)
		if p.stopping() || len(list) == 0 {
			return nil
		}
		p.caughtUp = list[0].TenantID
		advanced, err := p.catchUpWith(ctx, list)
		if errors.As(err, new(sourceError)) {
			p.putOff(ctx, "catch up", err)
			continue
		}
		if err != nil || !advanced {
			return err
		}
	}
	return nil
}

// catchUpWith reads and evaluates one page for rules that are behind, and commits how far
// they have come. Where another server answers than the one that the pass has observed,
// they come no further: it may lag, and not show what that one has shown to the
// partition, which does not evaluate it again.
func (p *pass) catchUpWith(ctx context.Context, list []*ruleset.Rule) (advanced bool, err error) {
	n := ruleset.ExtentOf(list)
	q := reading{Scan: n.Scan(p.at.Index, p.at.Of), server: p.server, within: p.queryTimeout()}
	for _, r := range list {
		q.spans = append(q.spans, &r.Span)
	}
	q.After, q.BeforeNS, q.end = ruleset.NextRange(list, *p.at.Cursor)
	q.EndedSinceNS, q.Limit = n.EndedSinceNS, p.pageSize*bulk
	if len(q.Tenants.Names) < len(p.rules.Extent.Tenants) {
		q.Tenants.Of = 0
	}
	page, at, matched, err := p.page(ctx, q)
	if err != nil {
		return false, err
	}
	found, judged := p.judgeFor(list, page)
	if judged < len(page) {
		at = page[judged-1].Position()
	}
	next := p.stay()
	switch {
	case matched && list[0].Backfill.Refused != nil:
		next.behind, next.to = list, q.end
	case matched:
		next.behind, next.to = list, at
	case list[0].Failing:
		return false, nil
	}
	next.own = cursor.Range{FromNS: q.After.StartTimeNS, ToNS: at.StartTimeNS + 1}
	return matched, p.commit(ctx, found, next)
}

// advanced returns all that the next commit writes beside what was found: what waits for
// it, and how far the rules of a step come.
func (p *pass) advanced(next step) extra {
	// A commit that is refused is followed by others.
	x := extra{maps.Clone(p.extra.backfills), maps.Clone(p.extra.health), p.extra.evaluated, p.extra.watched}
	for _, r := range next.behind {
		if r.Backfill.Failing && r.Failing {
			x.record(r.ID, Health{})
		}
		x.backfill(r.Backfill.Advanced(next.to, next.cursor))
	}
	return x
}
