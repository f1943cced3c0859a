package postgres

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
)

// While anybody holds a transaction open in Postgres, which may be a report or a
// backup of half an hour, the index of the queue keeps an entry of each row that was
// settled meanwhile. A look that began at the first entry would pass over all of
// them, each time. So a look at a webhook begins at a bound, before which nothing was
// owed when it was looked at last.
//
// What exists when a bound is made lies behind it, leased or not, and keeps its place
// when it is released. What is written later is ready at the instant at which its
// transaction began or after that: also behind the bound, which stays a margin behind
// the clock. Only a transaction that lasts longer than the margin writes a row before
// the bound; so does a Postgres whose clock was set back, or one that has come back
// from an older copy. Their rows are found by the next whole look, which knows no
// bound. A bound is never truth: losing it costs one longer look.
const (
	// boundMargin is how far a bound stays behind the clock.
	boundMargin = 2 * time.Second
	// The period of whole looks is so many times as long as one takes, within limits;
	// of the last two, the one that took less: Postgres may have stood still meanwhile,
	// and with it a transaction whose rows the next one is to find.
	wholeShare       = 100
	leastWholePeriod = 5 * time.Second
	mostWholePeriod  = 5 * time.Minute
)

// bounds are where looks begin. The zero value has the first look be a whole one.
// All instants are Postgres's.
type bounds struct {
	mu sync.Mutex
	at map[uuid.UUID]time.Time
	// wholeAt is when the last whole look was, took how long it lasted, and period when
	// the next one is due.
	wholeAt time.Time
	took    time.Duration
	period  time.Duration
}

// look returns what a look is to know.
func (b *bounds) look() pgq.OutboxBacklogParams {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := pgq.OutboxBacklogParams{Margin: boundMargin, WholeAt: b.wholeAt, Period: b.period}
	p.WebhookIds, p.Bounds = b.list()
	return p
}

// known returns the bounds of webhooks.
func (b *bounds) known() ([]uuid.UUID, []time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list()
}

func (b *bounds) list() (ids []uuid.UUID, at []time.Time) {
	ids, at = make([]uuid.UUID, 0, len(b.at)), make([]time.Time, 0, len(b.at))
	for id, instant := range b.at {
		ids, at = append(ids, id), append(at, instant)
	}
	return ids, at
}

// note keeps what a look has found, and returns the time until the next whole look
// where this one was none; else 0.
func (b *bounds) note(backlog []pgq.OutboxBacklogRow) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(backlog) == 0 {
		// There is no webhook to look at.
		b.at = nil
		return 0
	}
	// The last one knows how long all took.
	last := &backlog[len(backlog)-1]
	if last.Whole {
		took := time.Duration(last.TookUs) * time.Microsecond
		b.period = min(max(wholeShare*min(took, b.took), leastWholePeriod), mostWholePeriod)
		b.wholeAt, b.took = last.At, took
	}
	// Webhooks that are deleted or off are forgotten.
	b.at = make(map[uuid.UUID]time.Time, len(backlog))
	for i := range backlog {
		b.at[backlog[i].WebhookID] = backlog[i].Bound
	}
	if last.Whole {
		return 0
	}
	return max(b.wholeAt.Add(b.period).Sub(last.At), time.Millisecond)
}
