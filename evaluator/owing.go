package evaluator

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"
)

// A group owes what of its look-back is not judged yet, while its cursors move on.
// Each commit says with the cursor from which start time on that is, so that
// whoever evaluates next looks back as far as this process had to.
//
//	look-back, far ── a share of the tick ──▶ near the cursors ──▶ forward
//	      └── what is left: owed, committed with the cursors ──┘
//
// Each tick comes further with all three, by a page at least. What is owed is judged
// from its beginning on, so that processes that die one after the other come further.
//
//   - Whoever claims a rule with a cursor and what is owed judges what it has not seen
//     from the earlier of both on: the cursor less the reach of the look-back, and the
//     start of what is owed. Nobody owes less than it was told, but for what it judged.
//
//   - This process remembers which seconds are left (see ledger), and judges these
//     alone. What it remembers and what is stored never contradict each other: a
//     commit that fails stores neither cursor nor debt, one whose success is not
//     learned of leaves it with more to judge than is owed.
//
//   - A process that has judged a rule and gets it back from another one looks back as
//     far as that one owes, at all that has changed since it judged last.
//
//   - A rule takes along what its cohort owes. A rule that owes joins none.
//
//   - What is owed and lies in the future of a clock that was set back stays owed.

const (
	// owesNothing is a stand's owedFromNS where nothing is owed.
	owesNothing = math.MaxInt64
	// nearNS is how far behind the cursors seconds may be to be judged before what is
	// new, whatever else is owed: in them lies what has ended just now.
	nearNS = recentNS
	// farShare is the part of the interval between ticks that is spent on what is
	// further back, and nearShare the part of the budget within which the rest of the
	// look-back has to leave off for what is new.
	farShare, nearShare = 2, 2
	// bulk is how many usual pages are read at once where much is owed: what a query
	// costs for itself is several times what a page of rows costs.
	bulk = 10
	// bulkNS bounds the start times that such a query spans, most of whose exchanges
	// may be of no interest.
	bulkNS = 10 * minuteNS
	// tellEvery is how often it is told how much is owed.
	tellEvery = time.Minute
)

// owedIn returns from where on a claim owes a look-back.
func owedIn(c *Claim) int64 {
	if c.OwedFromNS == nil {
		return owesNothing
	}
	return *c.OwedFromNS
}

// owed returns the same as it is stored.
func (s *stand) owed() *int64 {
	if s.owedFromNS == owesNothing {
		return nil
	}
	from := s.owedFromNS
	return &from
}

// owe notes what is left to judge behind the cursors of a group, in the order of
// the start times. Who does not look back so far owes nothing of it.
func (g *group) owe(left []int64) {
	for s := range g.stands {
		s.owedFromNS = s.unreachedNS
		if s.reachNS() > 0 && len(left) > 0 && left[len(left)-1]+secondNS > s.backToNS {
			s.owedFromNS = min(s.owedFromNS, max(left[0], s.backToNS))
		}
	}
}

// parted parts changed seconds into those far behind a group's cursors and those near.
func (g *group) parted(changed []int64) (far, near []int64) {
	at, _ := slices.BinarySearch(changed, floor(g.start().StartTimeNS-nearNS, secondNS))
	return changed[:at], changed[at:]
}

// backwardFar judges again what changed far behind a group's cursors, and returns
// what is left of it.
func (t *tick) backwardFar(ctx context.Context, g *group, far, near []int64) (left []int64, err error) {
	if len(far) == 0 {
		return nil, nil
	}
	s := sweep{changed: far, after: near, over: t.within(t.Interval / farShare), limit: t.pace.size}
	if !s.over() {
		s.limit = t.pace.bulk()
	}
	left, _, err = t.backward(ctx, g, s)
	g.behindhand = len(left) > 0
	return left, err
}

// backwardNear judges again what changed near the cursors, with what is new where a
// page holds both, and returns what is left of it and of what is further back.
func (t *tick) backwardNear(ctx context.Context, g *group, left, near []int64) (still []int64, drained bool, err error) {
	s := sweep{before: left, changed: near, joins: true, over: t.within(t.Budget / nearShare), limit: t.pace.size}
	if len(left) > 0 && !s.over() {
		s.limit = t.pace.bulk()
	}
	still, drained, err = t.backward(ctx, g, s)
	g.behindhand = len(still) > 0
	return still, drained, err
}

// within returns whether so much of the tick is over since its horizon was read.
func (t *tick) within(part time.Duration) (over func() bool) {
	until := t.readAt.Add(part)
	return func() bool { return t.spent() || !t.Clock().Before(until) }
}

// note adds up what groups owe.
func (t *tick) note(left []int64) {
	if len(left) == 0 {
		return
	}
	if t.owes == 0 || left[0] < t.owesFromNS {
		t.owesFromNS = left[0]
	}
	t.owes += len(left)
}

// owing is what this process last knew to be owed.
type owing struct {
	since, told time.Time
	// seconds is 0 while nothing is owed.
	seconds int
}

// tell logs that a look-back goes on beside what is new, from time to time how much
// of it is left, and its end.
func (t *tick) tell(ctx context.Context) {
	o, now := &t.owing, t.Clock()
	switch {
	case t.owes == 0 && o.seconds > 0:
		t.Logger.InfoContext(ctx, "look-back is done", slog.Duration("took", now.Sub(o.since)))
	case t.owes > 0 && (o.seconds == 0 || now.Sub(o.told) >= tellEvery):
		if o.seconds == 0 {
			o.since = now
		}
		o.told = now
		t.Logger.InfoContext(ctx, "look-back goes on beside what is new",
			slog.Int("seconds_owed", t.owes), slog.Time("back_to", time.Unix(0, t.owesFromNS).UTC()))
	}
	o.seconds = t.owes
	if t.owes == 0 {
		t.pace.sparing = false
	}
}
