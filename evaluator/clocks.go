package evaluator

import (
	"context"
	"fmt"
	"time"

	"tocsin/cursor"
	"tocsin/rules"
)

// A cursor follows the source's clock. Were it to follow one that is ahead, what
// begins from then on would lie behind it: once the clock is right again, a forward
// scan finds nothing before time has caught up, and a look-back, which is counted
// from the cursor, reaches back less far by as much. Nobody would see it, as such a
// rule is behind nothing.
//
// Therefore the rules of a tick fail whose horizon lies beyond the store's clock, and
// their cursors stand: whichever clock was wrong, the rules go on from there when it
// is right. A clock that is behind loses nothing, and is left alone.
//
//   - The store's clock is asked only where the horizon lies beyond the instant of the
//     claim, and after the source's. So a process that stood still between the claim
//     and the horizon finds no fault in the source.
//
//   - A cursor that lies ahead all the same, because both clocks were set back, or it
//     was stored without this check, is told on its rule, whose look-back goes on. Where
//     that reaches nothing which has begun, the rule fails.
//
//   - A rule that counts looks at the windows before the horizon, wherever its cursor is.

// mostAhead is how far beyond the store's clock a horizon or a cursor may lie. Clocks
// that are kept in step differ by milliseconds; and what begins within a minute behind
// a cursor is compared by each tick, so that even the shortest look-back finds it.
const mostAhead = time.Minute

// readHorizon reads the source's clock. It refuses one that is ahead of the store's.
func (t *tick) readHorizon(ctx context.Context) error {
	now, err := t.Source.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the source's clock: %w", err)
	}
	t.horizon, t.readAt = cursor.Position{StartTimeNS: now - t.Settle.Nanoseconds()}, t.Clock()
	if t.claimed.IsZero() || !ahead(t.horizon, t.claimed) {
		return nil
	}
	present, err := t.Store.Clock(ctx)
	if err != nil {
		return fmt.Errorf("read the store's clock: %w", err)
	}
	if !ahead(t.horizon, present) {
		return nil
	}
	// Rounded, so that a problem which lasts is the same from tick to tick.
	return fmt.Errorf("ClickHouse's clock is %v ahead of Postgres's: the rule stands still, or it would pass over what begins meanwhile; "+
		"set the clock that is wrong, and the rule goes on from where it stands", time.Unix(0, now).Sub(present).Round(time.Minute))
}

// ahead reports whether a position lies so far beyond an instant that clocks must differ.
func ahead(p cursor.Position, present time.Time) bool {
	return p.StartTimeNS-present.UnixNano() > mostAhead.Nanoseconds()
}

// ahead reports whether the cursor lies beyond the instant of the claim.
func (c *Claim) ahead() bool { return c.From != nil && !c.Now.IsZero() && ahead(*c.From, c.Now) }

// checkCursor notes on a rule that its cursor is ahead, and returns that where the
// rule has nothing to judge.
func (j *judge) checkCursor() error {
	if !j.claim.ahead() || j.claim.Rule.FireMode != rules.PerExchange {
		return nil
	}
	problem := fmt.Errorf("the cursor stands at %s, which is yet to come by Postgres's clock: until then, only what the look-back before it holds is judged; "+
		"disable and enable the rule, and it judges all that ends from then on", time.Unix(0, j.start.StartTimeNS).UTC().Format(time.RFC3339))
	if min(j.start.StartTimeNS-j.reachNS(), j.owedFromNS) >= j.claim.Now.UnixNano() {
		return problem
	}
	j.problem = problem.Error()
	return nil
}
