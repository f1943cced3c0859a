// Package retry says when something that failed is tried again, and how much of it at once.
package retry

import (
	"cmp"
	"time"

	"tocsin/cursor"
)

const (
	secondNS = int64(time.Second)
	hourNS   = 3600 * secondNS

	// firstPause and mostPause bound the pause before something that failed is tried again.
	firstPause, mostPause = 5 * time.Second, 5 * time.Minute

	leastSpanNS, firstSpanNS, mostSpanNS = 10 * secondNS, 24 * hourNS, 32 * 24 * hourNS
)

// Backoff says when to retry something that failed. The zero value belongs to something that has not failed.
type Backoff struct {
	// failures counts how often in a row.
	failures int
	retryAt  time.Time
}

// Failed reports whether the last attempt failed.
func (b *Backoff) Failed() bool { return b.failures > 0 }

// Waits reports whether it is not yet time to try it again.
func (b *Backoff) Waits(now time.Time) bool { return now.Before(b.retryAt) }

// Fails notes that it failed once more. The pause doubles each time.
func (b *Backoff) Fails(now time.Time) {
	b.retryAt = now.Add(min(firstPause<<min(b.failures, 10), mostPause))
	b.failures++
}

// Pauses makes it wait as long as after a first failure, without counting one.
func (b *Backoff) Pauses(now time.Time) { b.retryAt = now.Add(firstPause) }

// Succeeds forgets how often it failed.
func (b *Backoff) Succeeds() { *b = Backoff{} }

// Span is how much start time is read at once on behalf of a rule that reads for itself:
// less after the source could not be read, more where little was found. The zero value is a day.
type Span struct {
	Backoff

	ns int64
}

// SpanOf returns the span of a length in nanoseconds.
func SpanOf(ns int64) Span { return Span{ns: ns} }

// EndNS returns where the next read ends that begins at a position.
func (s *Span) EndNS(from cursor.Position) int64 {
	return from.StartTimeNS + cmp.Or(s.ns, firstSpanNS)
}

// Widen doubles it, up to 32 days.
func (s *Span) Widen() { s.ns = min(2*cmp.Or(s.ns, firstSpanNS), mostSpanNS) }

// Fails notes that the source could not be read: less is read the next time, ten seconds at the least.
func (s *Span) Fails(now time.Time) {
	s.Backoff.Fails(now)
	s.ns = max(cmp.Or(s.ns, firstSpanNS)/4, leastSpanNS)
}
