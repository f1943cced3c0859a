package evaluator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// evaluateWindows evaluates the window rules that are due.
func (p *pass) evaluateWindows(ctx context.Context) error {
	due := p.dueWindows()
	if len(due) == 0 || p.Windows == nil {
		return nil
	}
	request := WindowRequest{
		Partition: p.number, Tenants: Tenants{Names: p.rules.windowTenants, Index: p.at.Index, Of: p.at.Of},
		WatermarkNS: p.watermarkNS, Now: p.heldAt, Over: p.overSince(p.Clock()),
	}
	ids := make([]uuid.UUID, len(due))
	for i, r := range due {
		ids[i] = r.ID
		request.Rules = append(request.Rules, WindowRule{Rule: &r.Rule, Judge: r.Judge})
	}
	var err error
	if request.Open, err = p.Store.OpenAlerts(ctx, ids); err != nil {
		return fmt.Errorf("read open alerts: %w", err)
	}
	outcome := p.Windows.Evaluate(ctx, request)
	for _, id := range outcome.Evaluated {
		r := p.rules.byID[id]
		r.evaluatedNS = p.watermarkNS
		p.settle(r, outcome.Problems[id])
	}
	for id, why := range outcome.Failed {
		p.rules.byID[id].evaluatedNS = p.watermarkNS
		p.fail(p.rules.byID[id], why)
	}
	if outcome.SourceErr != nil {
		return sourceError{outcome.SourceErr}
	}
	p.extra.evaluated = outcome.Evaluated
	return p.commitChanges(ctx, outcome.Changes)
}

// dueWindows returns the window rules whose interval is over, those that wait for longest
// first.
func (p *pass) dueWindows() []*rule {
	var due []*rule
	now := p.Clock()
	for _, r := range p.rules.windows {
		if p.watermarkNS-r.evaluatedNS >= int64(r.IntervalSeconds)*secondNS-p.Interval.Nanoseconds()/4 || p.watermarkNS < r.evaluatedNS {
			if !r.failing || !now.Before(r.retryAt) {
				due = append(due, r)
			}
		}
	}
	slices.SortStableFunc(due, func(a, b *rule) int { return int(min(max(a.evaluatedNS-b.evaluatedNS, -1), 1)) })
	return due
}

// overSince returns when window rules have to end that begin at an instant: with the
// interval, and after half of it where that is over already.
func (p *pass) overSince(now time.Time) func() bool {
	until := p.began.Add(p.Interval)
	if least := now.Add(p.Interval / 2); least.After(until) {
		until = least
	}
	return func() bool { return p.ending() || !p.Clock().Before(until) }
}
