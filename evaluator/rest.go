package evaluator

import (
	"context"
	"time"
)

// A claim that takes nothing is told how long there will be nothing to take, as a
// duration by the store's clock, and this process sleeps through the ticks that
// come before. That may end too early, by the time that the answer took, and then
// the next tick asks again; never too late.
//
//   - After a tick that claimed something, or failed, the next one asks: a rule of
//     the least interval is due at every tick.
//
//   - A rule cannot be claimed by anybody before the instant until which this replica
//     sleeps. So nobody can die with it meanwhile, and whoever evaluates it first then
//     only puts off when it is due next.
//
//   - While another replica holds a rule that is due, each tick asks: it may be free
//     at any moment, because its commit left more to do, or the claim lapsed or was
//     released. So replicas share many rules as if none of them ever slept. A cohort
//     that another one evaluates is this one's when it is late, and not before.
//
//   - What makes something due earlier (a rule is created, edited, enabled or retried;
//     a replica leaves, or is found dead) is announced, and the next tick asks.
//
//   - Everything else costs [Options].Rest at most: an announcement that is lost, a
//     clock of the store that is set forward, a store restored from a copy, a row
//     changed by hand, members that leave a cohort with a replica that dies just then.
//
//   - A process that stood still finds its sleep over, since its own clock went on.

// defaultRest is the longest time without a question.
const defaultRest = 5 * time.Second

// rest waits for the next tick at which there may be something to claim, and
// reports whether ctx still stands.
func (e *Evaluator) rest(ctx context.Context, ticks <-chan time.Time) bool {
	roused := false
	for {
		select {
		case <-ctx.Done():
			return false
		case signal := <-e.WakeUps:
			roused = true
			if signal.Claimed != nil {
				signal.Claimed(false, nil)
			}
		case <-ticks:
			if roused || !e.Clock().Before(e.askAt) {
				return true
			}
		}
	}
}
