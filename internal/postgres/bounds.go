package postgres

import (
	"cmp"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
)

// A whole look passes through the queue from webhook to webhook, and costs as much as
// there are webhooks with messages. While anybody holds a transaction open in Postgres,
// which may be a report or a backup of half an hour, the index of the queue keeps an
// entry of each row that was settled meanwhile, and a whole look passes over all of them.
// So whole looks that are not quick take a hundredth of the time at most, as do those
// after a wake-up that names webhooks. All other looks are at the webhooks that had
// messages at the last look, or are named, each from a bound on before which there was
// nothing.
//
// What exists when a bound is made lies behind it, leased or not, and keeps its place.
// What is written later is ready at the instant at which its transaction began or after
// that: also behind the bound, which stays a margin behind the clock. What a transaction
// that lasts longer than the margin writes, or one after Postgres's clock was set back, is
// found by the next whole look. Nothing is decided by a bound: losing it costs a longer look.
const (
	// boundMargin is how far a bound stays behind the clock.
	boundMargin = 2 * time.Second
	// wholeShare is how many times as long as a whole look takes pass until the next, up
	// to mostWholePeriod.
	wholeShare      = 100
	mostWholePeriod = 5 * time.Minute
	// quickLook is what a look takes at most that is made whenever nobody names webhooks.
	quickLook = 20 * time.Millisecond
)

// bounds are where looks begin. The zero value has the first look be a whole one.
type bounds struct {
	mu sync.Mutex
	// at are the bounds, by Postgres's clock; busy are the webhooks that had messages.
	at   map[uuid.UUID]time.Time
	busy map[uuid.UUID]bool
	// nextWhole is when the next whole look may be, by this process's clock. Took is how long
	// the last one did, or the one before, former, if that was quicker: a process may have
	// stood still.
	nextWhole    time.Time
	took, former time.Duration
}

// look returns what a look is to know that looks at some webhooks at least.
func (b *bounds) look(hints []uuid.UUID) pgq.OutboxLookParams {
	b.mu.Lock()
	defer b.mu.Unlock()
	quick := len(hints) == 0 && b.took < quickLook
	//nolint:forbidigo // how long looks take, which is compared with nothing else
	now := time.Now()
	p := pgq.OutboxLookParams{Whole: quick || !now.Before(b.nextWhole), WebhookIds: []uuid.UUID{}, Bounds: []time.Time{}}
	if p.Whole {
		return p
	}
	named := make(map[uuid.UUID]bool, len(b.busy)+len(hints))
	for id := range b.busy {
		named[id] = true
	}
	for _, id := range hints {
		named[id] = true
	}
	for id := range named {
		p.WebhookIds, p.Bounds = append(p.WebhookIds, id), append(p.Bounds, b.at[id])
	}
	return p
}

// known returns the bounds of webhooks that had messages.
func (b *bounds) known() (ids []uuid.UUID, at []time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids, at = make([]uuid.UUID, 0, len(b.at)), make([]time.Time, 0, len(b.at))
	for id, instant := range b.at {
		ids, at = append(ids, id), append(at, instant)
	}
	return ids, at
}

// note keeps what a look has found that began at an instant, and returns the time until
// the next whole look where this one was none; else 0.
func (b *bounds) note(p pgq.OutboxLookParams, rows []pgq.OutboxLookRow, began time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Whole {
		took := time.Since(began)
		b.took, b.former = min(took, cmp.Or(b.former, took)), took
		b.nextWhole = began.Add(took + min(wholeShare*b.took, mostWholePeriod))
		b.at = map[uuid.UUID]time.Time{}
	}
	b.busy = make(map[uuid.UUID]bool, len(rows))
	for i := range rows {
		row := &rows[i]
		settled := row.At.Add(-boundMargin)
		if b.at[row.WebhookID] = settled; !row.HasRows {
			continue
		}
		b.busy[row.WebhookID] = true
		if row.FirstAt.Before(settled) {
			b.at[row.WebhookID] = row.FirstAt
		}
	}
	if p.Whole {
		return 0
	}
	return max(time.Until(b.nextWhole), time.Millisecond)
}
