package silences

import "time"

// DigestPlan says what the next digests of a silence list, one for each webhook: what the silence
// suppressed from an instant on and before another one, at which they are due.
type DigestPlan struct {
	// From is zero if no digest was ever planned.
	From time.Time
	// At is nil if no digest is due.
	At *time.Time
	// Since is when the window that ends at At began, if an edit within the window has changed the
	// definition, which cannot say it any more. Otherwise nil, or before From.
	Since *time.Time
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
	var before Status
	if was != nil {
		before = was.At(now)
	}
	if before.State == Active {
		plan.Since = &before.From
		if since := planned.since(); since != nil && since.Before(before.From) {
			plan.Since = since
		}
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

// since returns when the window of the next digests began, if only the plan knows it. One of a window
// before, which an earlier program has left, does not count.
func (p *DigestPlan) since() *time.Time {
	if p.At == nil || p.Since == nil || p.Since.Before(p.From) {
		return nil
	}
	return p.Since
}

// DigestedFrom returns from when on a silence was in force, for digests that are due. Those of a
// window after the first also list what was suppressed between it and the window before; the silence
// was in force from the beginning of the later one.
func (c *Compiled) DigestedFrom(due DigestPlan) time.Time {
	if since := due.since(); since != nil {
		return *since
	}
	if last := c.At(due.At.Add(-time.Microsecond)); last.State == Active && last.From.After(due.From) {
		return last.From
	}
	return due.From
}

// AfterDigests returns the plan after the digests that were due at an instant are written.
func (c *Compiled) AfterDigests(at time.Time) DigestPlan {
	plan := DigestPlan{From: at}
	if next := c.At(at); next.State != Past {
		plan.At = &next.Until
	}
	return plan
}
