package evaluator

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A tick evaluates tenant after tenant, and counts. A query that fails only after all of
// the budget would leave nothing for what comes after it, at each tick anew. Therefore:
//
//   - A tenant of which something failed and took that long is slow until it is evaluated
//     in less. Slow tenants come after all others and, once the budget is spent, are given
//     back as they are: those that were tried last wait.
//
//   - Counting rules have a share of the budget, whatever was spent before. They come
//     before the slow tenants, but for where none of these had its turn in the tick before.

// turns is who has to wait.
type turns struct {
	// slow holds when each slow tenant was tried last.
	slow map[string]time.Time
	// passedOver says that no slow tenant was tried although there were some.
	passedOver bool
}

// countShare is the part of the budget that is left to counting.
const countShare = 4

// inTurn evaluates tenants, and counts.
func (t *tick) inTurn(ctx context.Context, tenants []group, counting []*judge) error {
	t.turnAt = t.readAt
	var slow []*group
	for i := range tenants {
		g := &tenants[i]
		if _, isSlow := t.turns.slow[g.tenantID]; isSlow {
			slow = append(slow, g)
			continue
		}
		if err := t.timed(ctx, g); err != nil {
			return err
		}
	}
	slices.SortStableFunc(slow, func(a, b *group) int {
		return cmp.Or(t.turns.slow[a.tenantID].Compare(t.turns.slow[b.tenantID]), cmp.Compare(a.tenantID, b.tenantID))
	})
	parts := []func() error{
		func() error { return t.countInShare(ctx, counting) },
		func() error { return t.evaluateSlow(ctx, slow) },
	}
	if t.turns.passedOver {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// timed evaluates a tenant, and notes whether it is slow.
func (t *tick) timed(ctx context.Context, g *group) error {
	began, failed := t.turnAt, t.result.Failed
	err := t.evaluateTenant(ctx, g)
	t.turnAt = t.Clock()
	if ctx.Err() != nil || t.result.Failed > failed && t.turnAt.Sub(began) >= t.Budget {
		t.turns.slow[g.tenantID] = t.turnAt
	} else {
		delete(t.turns.slow, g.tenantID)
	}
	return err
}

// countInShare counts, for which there is time however much was spent before.
func (t *tick) countInShare(ctx context.Context, counting []*judge) error {
	deadline := t.deadline
	if least := t.turnAt.Add(t.Budget / countShare); least.After(deadline) {
		t.deadline = least
	}
	err := t.count(ctx, counting)
	t.deadline, t.turnAt = deadline, t.Clock()
	return err
}

// evaluateSlow evaluates slow tenants while there is time, the first one also without
// any where none had its turn in the tick before, and gives back the others.
func (t *tick) evaluateSlow(ctx context.Context, slow []*group) error {
	due := t.turns.passedOver
	t.turns.passedOver = false
	for i, g := range slow {
		evaluate := t.timed
		if t.spent() && (i > 0 || !due) {
			evaluate = t.giveBack
			t.turns.passedOver = t.turns.passedOver || i == 0
		}
		if err := evaluate(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// giveBack releases a group that was not judged, due again at once.
func (t *tick) giveBack(ctx context.Context, g *group) error {
	g.behindhand = true
	for _, j := range g.judges {
		j.unjudged = true
	}
	return t.commit(ctx, g, findings{}, true)
}
