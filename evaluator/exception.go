package evaluator

import (
	"context"
	"errors"

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

// fail leaves a rule out of the partition's evaluation, and has the next commit record that,
// with all that it may have to evaluate behind the cursor, and the range of what the database
// refused; nil is nothing.
func (p *pass) fail(r *ruleset.Rule, why error, refused *cursor.Range) {
	p.pending.Fails(r, why, p.Clock())
	if failed := r.Backfill != nil && r.Backfill.Failing; r.FireMode == rules.PerExchange && (!failed || refused != nil) {
		b := ruleset.Backfill{RuleID: r.ID, At: p.judgedBy(r), Failing: true, Refused: refused}
		if r.Backfill != nil && (failed || b.At.After(r.Backfill.At)) {
			b.At = r.Backfill.At
		}
		p.rules.Except(r, &b)
		p.pending.Backfill(b)
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
	for first := true; first || !p.cut && !p.over(); first = false {
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
