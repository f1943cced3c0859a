package silences

import "time"

// DigestPlan says what the next digests of a silence list, one for each webhook: what the silence
// suppressed from an instant on and before another one, at which they are due.
type DigestPlan struct {
	// From is zero if no digest was ever planned.
	From time.Time
	// At is nil if no digest is due.
	At *time.Time
}

// PlanDigests returns the plan of a silence after a change at an instant, which may also be its
// creation or its early end. was is the silence before, nil if there was none or it was not usable,
// and planned is its plan, of which nothing is due yet.
//
// A change that puts a silence out of force ends its window: its digests are due at once. If the
// change asks for digests, they list the whole window in force, but nothing that an earlier digest
// may have listed.
func (c *Compiled) PlanDigests(was *Compiled, planned DigestPlan, now time.Time) DigestPlan {
	plan := DigestPlan{From: planned.From}
	if !c.Digest {
		return plan
	}
	var before Standing
	if was != nil {
		before = was.At(now)
	}
	if planned.At == nil {
		from := now
		switch {
		case before.State == Active:
			from = before.From
		case was == nil && c.StartsAt.After(now):
			from = c.StartsAt
		}
		if from.After(plan.From) {
			plan.From = from
		}
	}
	is := c.At(now)
	switch {
	case is.State != Active && before.State == Active, is.State == Past && planned.At != nil:
		plan.At = &now
	case is.State != Past:
		plan.At = &is.Until
	}
	return plan
}

// DigestedFrom returns from when on a silence was in force, for digests that are due at an instant and
// list what it suppressed from another one on. Those of a later window also list what was suppressed
// between it and the window before; the silence was in force from the beginning of the later one.
func (c *Compiled) DigestedFrom(from, until time.Time) time.Time {
	if last := c.At(until.Add(-time.Microsecond)); last.State == Active && last.From.After(from) {
		return last.From
	}
	return from
}

// AfterDigests returns the plan after the digests that were due at an instant are written.
func (c *Compiled) AfterDigests(at time.Time) DigestPlan {
	plan := DigestPlan{From: at}
	if next := c.At(at); next.State != Past {
		plan.At = &next.Until
	}
	return plan
}
