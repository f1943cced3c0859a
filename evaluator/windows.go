package evaluator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// Windows evaluates window rules: package evaluator/window implements it. It
// reads the source and writes nothing.
type Windows interface {
	// Evaluate returns what becomes of the alerts of some rules at a watermark. It ends
	// early when request.Over says so or ctx ends: rules that it had no time for are
	// left out of the outcome.
	Evaluate(ctx context.Context, request window.Request) window.Outcome
}

// watchNS is how far apart the watermarks are, at least, at which the source is watched.
const watchNS = 10 * secondNS

// evaluateWindows evaluates the window rules that are due. Where they come first in the pass, they have
// half of the interval.
func (p *pass) evaluateWindows(ctx context.Context, first bool) error {
	due := p.rules.Due(p.watermarkNS, p.Interval/4, p.Clock())
	absent := func(r *ruleset.Rule) bool { return r.FireMode == rules.AbsentInWindow && !r.Resting(p.Clock()) }
	watches := slices.ContainsFunc(due, absent) ||
		slices.ContainsFunc(p.rules.Windows, absent) && abs(p.watermarkNS-p.at.Watch.UntilNS) >= watchNS
	if len(due) == 0 && !watches || p.Windows == nil {
		return nil
	}
	request := window.Request{
		Request: counting.Request{
			Partition: p.number, Tenants: source.Tenants{Names: p.rules.WindowTenants, Index: p.at.Index, Of: p.at.Of},
			WatermarkNS: p.watermarkNS, Now: p.heldAt,
		},
		Watch: p.at.Watch, Watches: watches,
	}
	ids := make([]uuid.UUID, len(due))
	request.Rules = make([]counting.Compiled, len(due))
	for i, r := range due {
		ids[i] = r.ID
		request.Rules[i] = counting.Compiled{Rule: &r.Rule, Judge: r.Judge, Router: r.Router}
	}
	var err error
	if request.Open, err = p.Store.OpenAlerts(ctx, ids); err != nil {
		return fmt.Errorf("read open alerts: %w", err)
	}
	request.Over = p.overSince(p.Clock(), first)
	// What was decided is to be committed, however long others take.
	until, _ := ctx.Deadline()
	evaluating, cancel := context.WithDeadline(ctx, until.Add(-p.LeaseFor/6))
	defer cancel()
	outcome := p.Windows.Evaluate(evaluating, request)
	if len(outcome.Evaluated)+len(outcome.Failed) > 0 {
		p.windowsMissed = false
	}
	if outcome.Watch != p.at.Watch {
		p.at.Watch, p.pending.Watched = outcome.Watch, true
	}
	steps := make(map[uuid.UUID]bool, len(outcome.Changes))
	for i := range outcome.Changes {
		steps[outcome.Changes[i].Instance.RuleID] = true
	}
	for _, id := range outcome.Evaluated {
		r := p.rules.Rule(id)
		if r.Notes(p.watermarkNS) {
			p.pending.Evaluated = append(p.pending.Evaluated, id)
		}
		if r.EvaluatedNS = p.watermarkNS; !steps[id] {
			p.pending.Settles(r, outcome.Problems[id])
		}
	}
	for id, why := range outcome.Failed {
		p.rules.Rule(id).EvaluatedNS = p.watermarkNS
		p.fail(p.rules.Rule(id), why, nil)
	}
	const most = 500 // steps in one commit
	for chunk := range slices.Chunk(outcome.Changes, most) {
		if err := p.commit(ctx, findings{changes: chunk, problems: outcome.Problems}, p.stay()); err != nil {
			for _, r := range due {
				r.EvaluatedNS = 0 // the next pass takes the steps that were not written
			}
			return err
		}
	}
	if outcome.SourceErr != nil {
		return sourceError{outcome.SourceErr}
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// overSince returns when window rules have to end that begin at an instant: with the
// interval, and after half of it where that is over already. Where they come first, it is
// half of the interval, whatever the pass has taken before.
func (p *pass) overSince(now time.Time, first bool) func() bool {
	half, until := now.Add(p.Interval/2), p.began.Add(p.Interval)
	if first || half.After(until) {
		until = half
	}
	return func() bool { return p.stopping() || !first && p.ending() || !p.Clock().Before(until) }
}
