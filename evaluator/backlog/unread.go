package backlog

import (
	"slices"
	"time"

	"tocsin/evaluator/retry"
)

// A range of older changes that cannot be read waits for a while, and is then read in halves: a source that is
// slow answers about a shorter range, and what cannot be read at all ends up alone.

// unread is a range that could not be read. The next time, at most mostNS of it is read at once.
type unread struct {
	retry.Backoff

	mostNS int64
}

// cutUnread cuts the ranges of a plan that could not be read, and forgets those that are not in it.
func (b *Backlog) cutUnread(plan []Stretch) []Stretch {
	planned := map[int64]*unread{}
	for i := 0; i < len(plan); i++ {
		s := plan[i]
		failed := b.unread[s.FromNS]
		if failed == nil {
			continue
		}
		planned[s.FromNS] = failed
		if endNS := b.Bucket(s.FromNS + failed.mostNS); s.FromNS < endNS && endNS < s.ToNS {
			rest := s
			rest.FromNS, plan[i].ToNS = endNS, endNS
			plan = slices.Insert(plan, i+1, rest)
		}
	}
	b.unread = planned
	return plan
}

// Waits reports whether a range of [Backlog.Older] could not be read, and it is not yet time to try it again.
func (b *Backlog) Waits(s Stretch, now time.Time) bool {
	failed := b.unread[s.FromNS]
	return failed != nil && failed.Waits(now)
}

// ReadFailed notes that a range of [Backlog.Older] could not be read.
func (b *Backlog) ReadFailed(s Stretch, now time.Time) {
	failed := b.unread[s.FromNS]
	if failed == nil {
		failed = &unread{}
		b.unread[s.FromNS] = failed
	}
	failed.mostNS = (s.ToNS - s.FromNS) / 2
	if b.Bucket(s.FromNS+failed.mostNS) > s.FromNS {
		failed.Succeeds() // its half does not wait longer than it did
	}
	failed.Fails(now)
}

// ReadSucceeded notes that the server that showed a range of [Backlog.Older] answered every scan of it. Where
// another one did, the range stays in the backlog, and its server may still be unable to read it.
func (b *Backlog) ReadSucceeded(s Stretch) { delete(b.unread, s.FromNS) }
