package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"tocsin/cursor"
	"tocsin/rules"
)

// evaluate reads what changed behind the cursors of a group, then forward, until
// all is drained or its part of the tick is over, and releases its rules.
//
// The look-back is counted from the cursor: were the cursor to move first and the
// process to die then, the next one would look back less far than this one had to.
// Therefore the look-back comes first and, as far as there was no time for it, is
// owed by the very commits that move the cursors (see owing.go). Where the last of
// the changed seconds reach up to the cursors, and a page holds all from there to the
// horizon, both are one scan and one commit (see together).
func (t *tick) evaluate(ctx context.Context, g *group) error {
	again := g.behind(t.ledger.recall(g, t.horizon.StartTimeNS))
	g.owe(again)
	far, near := g.parted(again)
	left, err := t.backwardFar(ctx, g, far, near)
	if err != nil || g.empty() {
		return err
	}
	left, drained, err := t.backwardNear(ctx, g, left, near)
	if err != nil {
		return err
	}
	t.note(left)
	if drained || g.empty() {
		return nil
	}
	return t.forward(ctx, g)
}

// sweep is a part of a look-back, judged in the order of the start times.
type sweep struct {
	// changed holds the start times from each of which on the rest of a second is
	// judged; before and after those that come before and after them, and are left.
	before, changed, after []int64
	// joins says that what is new may be judged with the last of it.
	joins bool
	// over tells that there is no more time for it.
	over func() bool
	// limit is the most exchanges to read at once.
	limit int
}

// backward judges again what changed, and returns what is left of it and before it;
// it ends between two seconds at the earliest, so that each tick comes further.
// Drained says that the group was judged up to the horizon as well, and is released.
func (t *tick) backward(ctx context.Context, g *group, s sweep) (left []int64, drained bool, err error) {
	scan := g.scan()
	// What begins after every cursor is the forward scan's.
	beforeNS := g.foremost().StartTimeNS + 1
	left = slices.Concat(s.before, s.changed)
	wanted := g.wanted(s.changed)
	stretches := wanted.stretches(s.changed)
	bulk := s.limit > t.pace.size
	if bulk {
		scan.CompletedLeastNS = g.completedLeastNS()
		stretches = cut(stretches, bulkNS)
	}
	for i, r := range stretches {
		if s.over() && len(left) < len(s.before)+len(s.changed) {
			return left, false, nil
		}
		scan.EndedSinceNS = wanted.endedSince(r)
		to := min(r.toNS, beforeNS)
		// A scan begins strictly after its position; one nanosecond early is all of the stretch.
		for at := (cursor.Position{StartTimeNS: r.fromNS - 1}); ; {
			until, joined := to, s.joins && !bulk && wanted.ofAll(r) && i == len(stretches)-1 && joins(g, at, to)
			if joined {
				until = max(to, t.aheadNS())
			}
			page, err := t.page(ctx, scan, at, until, s.limit)
			if err != nil && bulk {
				t.Logger.WarnContext(ctx, "a look-back reads page by page from now on", slog.Any("error", err))
				t.pace.sparing = true
				return left, false, nil
			}
			if err != nil {
				return left, false, t.failAll(ctx, g, err)
			}
			if !bulk {
				s.limit = t.pace.size // it may have been too much
			}
			if joined && len(page) < t.pace.size {
				return s.before, true, t.together(ctx, g, page, s.before)
			}
			page = before(page, to)
			drained := len(page) < s.limit
			for more := true; more; {
				some := page[:min(len(page), t.pace.size)]
				page = page[len(some):]
				if err := t.commitAgain(ctx, g, some); err != nil {
					return left, false, err
				}
				next := r.toNS
				if more = len(page) > 0; more || !drained {
					at = some[len(some)-1].Position()
					next = at.StartTimeNS
				}
				// Whatever becomes of the rest of this tick, this much is judged.
				first, _ := slices.BinarySearch(s.changed, floor(next, secondNS))
				left = slices.Concat(s.before, s.changed[first:])
				t.ledger.judged(g, slices.Concat(left, s.after))
				if g.empty() || (s.over() && floor(next, secondNS) > r.fromNS) {
					return left, false, nil
				}
			}
			if drained {
				break
			}
		}
	}
	t.ledger.judged(g, slices.Concat(s.before, s.after))
	return s.before, false, nil
}

// commitAgain judges exchanges behind the cursors again, and commits what is found.
func (t *tick) commitAgain(ctx context.Context, g *group, page []rules.Exchange) error {
	t.indexFor(g, page)
	found := g.again(page, t.raise, t.known)
	if len(found.instances) == 0 {
		return nil
	}
	return t.commit(ctx, g, found, false)
}

// joins reports whether what lies between a position and an instant behind the
// cursors may be read in one go with what is new: nobody has yet to judge anything
// before the position but what changed, and the instant is as near to the first
// cursor as changed seconds are to each other.
func joins(g *group, after cursor.Position, toNS int64) bool {
	first := g.start()
	return !after.After(first) && first.StartTimeNS-toNS <= gapSeconds*secondNS
}

// before returns the exchanges of a page that begin before an instant.
func before(page []rules.Exchange, ns int64) []rules.Exchange {
	for len(page) > 0 && page[len(page)-1].StartTimeNS >= ns {
		page = page[:len(page)-1]
	}
	return page
}

// together judges a page that holds all that is left to judge behind the cursors
// and all that is new, commits both, and releases the rules. What the look-back
// finds and the cursor that it is counted from are written by one transaction: a
// process that dies leaves both to the next one. What is left from before is owed.
func (t *tick) together(ctx context.Context, g *group, page []rules.Exchange, left []int64) error {
	old := 0
	for start := g.start(); old < len(page) && !page[old].Position().After(start); {
		old++
	}
	fresh, _ := t.upToHorizon(page[old:])
	page = page[:old+len(fresh)]
	t.indexFor(g, page)
	late := g.again(page, t.raise, t.known)
	g.owe(left)
	if err := t.commit(ctx, g, late.and(g.forward(page, t.horizon, t.raise, t.known)), true); err != nil {
		return err
	}
	t.ledger.judged(g, left)
	return nil
}

// forward reads the pages after the group's cursors, and releases the rules
// after the last one.
func (t *tick) forward(ctx context.Context, g *group) error {
	scan := g.scan()
	for at := g.start(); ; {
		page, err := t.page(ctx, scan, at, t.aheadNS(), t.pace.size)
		if err != nil {
			return t.failAll(ctx, g, err)
		}
		page, last := t.upToHorizon(page)
		end := t.horizon
		if !last {
			end = page[len(page)-1].Position()
		}
		t.indexFor(g, page)
		found := g.forward(page, end, t.raise, t.known)
		if !last && t.spent() {
			last, g.behindhand = true, true
		}
		if len(found.instances) > 0 || last {
			if err := t.commit(ctx, g, found, last); err != nil {
				return err
			}
		}
		if last || g.empty() {
			return nil
		}
		at = end
	}
}

// indexFor gives a group the indexes that it needs to judge a page.
func (t *tick) indexFor(g *group, page []rules.Exchange) {
	if len(page) == 0 {
		return
	}
	if g.index == nil && len(g.judges) > 0 {
		g.index = t.cache.index(g.judges)
	}
	for _, c := range g.cohorts {
		if c.index == nil {
			c.index = newIndex(c.judges)
		}
	}
}

// page reads the exchanges after a position and before an instant, at most limit,
// none where the position has already reached it (a source's clock may step back).
// Where a page of the usual size is too much, that size, and so the limit, is less
// from then on.
func (t *tick) page(ctx context.Context, scan Scan, after cursor.Position, beforeNS int64, limit int) ([]rules.Exchange, error) {
	if after.StartTimeNS >= beforeNS {
		return nil, nil
	}
	scan.After, scan.BeforeNS, scan.Limit = after, beforeNS, limit
	page, err := t.Source.Scan(ctx, scan)
	for errors.Is(err, ErrTooMuch) && scan.Limit > 1 && scan.Limit <= t.pace.size {
		t.pace.tooMuch()
		scan.Limit = t.pace.size
		page, err = t.Source.Scan(ctx, scan)
	}
	if err != nil {
		return nil, fmt.Errorf("scan exchanges: %w", err)
	}
	t.pages++
	t.result.Scanned += len(page)
	return page, nil
}
