package evaluator

import (
	"context"
	"fmt"
	"slices"

	"tocsin/cursor"
	"tocsin/rules"
)

// evaluate reads what is new to a group, first the seconds behind its cursors
// that changed, then forward, until both are drained or the budget is spent,
// and releases its rules.
//
// In this order, because the look-back is counted from the cursor: were the
// cursor to move first and the process to die then, the next one would look
// back less far than this one had to. Where the last of these seconds reach up to
// the cursors, and a page holds all from there to the horizon, both are one scan
// and one commit (see together).
func (t *tick) evaluate(ctx context.Context, g *group) error {
	again := g.behind(t.ledger.recall(g, t.horizon.StartTimeNS))
	left, drained, err := t.backward(ctx, g, again)
	if err != nil || drained || g.empty() {
		return err
	}
	if len(left) > 0 {
		g.behindhand = true
		return t.commit(ctx, g, findings{}, true)
	}
	return t.forward(ctx, g)
}

// backward judges again what changed, from each of some start times to the end of
// its second. It returns those for which the budget did not suffice, which are
// left to the next tick; it ends between two seconds at the earliest, so that
// each tick comes further. Drained says that the group was judged up to the
// horizon as well, and is released.
func (t *tick) backward(ctx context.Context, g *group, changed []int64) (left []int64, drained bool, err error) {
	scan := g.scan()
	// What begins after every cursor is the forward scan's.
	beforeNS := g.foremost().StartTimeNS + 1
	left = changed
	stretches := runs(changed, secondNS, gapSeconds)
	for i, s := range stretches {
		if t.spent() && len(left) < len(changed) {
			return left, false, nil
		}
		to := min(s.toNS, beforeNS)
		// A scan begins strictly after its position; one nanosecond early is all of the stretch.
		for at := (cursor.Position{StartTimeNS: s.fromNS - 1}); ; {
			until, joined := to, i == len(stretches)-1 && joins(g, at, to)
			if joined {
				until = max(to, t.aheadNS())
			}
			page, err := t.page(ctx, scan, at, until)
			if err != nil {
				return left, false, t.failAll(ctx, g, err)
			}
			if joined && len(page) < t.pace.size {
				return nil, true, t.together(ctx, g, page)
			}
			page = before(page, to)
			t.indexFor(g, page)
			if found := g.again(page, t.raise, t.known); len(found.instances) > 0 {
				if err := t.commit(ctx, g, found, false); err != nil {
					return left, false, err
				}
			}
			drained := len(page) < t.pace.size
			next := s.toNS
			if !drained {
				at = page[len(page)-1].Position()
				next = at.StartTimeNS
			}
			// Whatever becomes of the rest of this tick, this much is judged.
			first, _ := slices.BinarySearch(changed, floor(next, secondNS))
			left = changed[first:]
			t.ledger.judged(g, left)
			if g.empty() || (t.spent() && floor(next, secondNS) > s.fromNS) {
				return left, false, nil
			}
			if drained {
				break
			}
		}
	}
	t.ledger.judged(g, nil)
	return nil, false, nil
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
// process that dies leaves both to the next one.
func (t *tick) together(ctx context.Context, g *group, page []rules.Exchange) error {
	old := 0
	for start := g.start(); old < len(page) && !page[old].Position().After(start); {
		old++
	}
	fresh, _ := t.upToHorizon(page[old:])
	page = page[:old+len(fresh)]
	t.indexFor(g, page)
	late := g.again(page, t.raise, t.known)
	if err := t.commit(ctx, g, late.and(g.forward(page, t.horizon, t.raise, t.known)), true); err != nil {
		return err
	}
	t.ledger.judged(g, nil)
	return nil
}

// forward reads the pages after the group's cursors, and releases the rules
// after the last one.
func (t *tick) forward(ctx context.Context, g *group) error {
	scan := g.scan()
	for at := g.start(); ; {
		page, err := t.page(ctx, scan, at, t.aheadNS())
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

// page reads the exchanges after a position and before an instant, none where
// the position has already reached it (a source's clock may step back).
func (t *tick) page(ctx context.Context, scan Scan, after cursor.Position, beforeNS int64) ([]rules.Exchange, error) {
	if after.StartTimeNS >= beforeNS {
		return nil, nil
	}
	scan.After, scan.BeforeNS, scan.Limit = after, beforeNS, t.pace.size
	page, err := t.Source.Scan(ctx, scan)
	if err != nil {
		return nil, fmt.Errorf("scan exchanges: %w", err)
	}
	t.pages++
	t.result.Scanned += len(page)
	return page, nil
}
