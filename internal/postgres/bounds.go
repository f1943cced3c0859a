package postgres

import (
	"cmp"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
)

// A whole look goes through the queue from webhook to webhook, and its cost grows with the number
// of webhooks that have messages. While a transaction is open in Postgres (a report or a backup may
// take half an hour), the index of the queue keeps an entry for each row settled since then, and a
// whole look passes over all of them. So two kinds of whole looks take at most a hundredth of the
// time: those that are not quick, and those after a wake-up that names webhooks. All other looks
// are limited to the webhooks that are named or had messages at the last look. For each webhook
// they begin at a bound, before which there was nothing.
//
// Messages that exist when a bound is made are behind it, leased or not, and keep their place. A
// message that is written later is ready at the start of its transaction or later. That is also
// behind the bound, because the bound stays a margin behind the clock. There are two exceptions: a
// transaction that lasts longer than the margin, and a clock of Postgres that was set back. The
// next whole look finds their messages. Correctness does not depend on bounds: losing them only
// costs a longer look.
const (
	// boundMargin is how far a bound stays behind the clock.
	boundMargin = 2 * time.Second
	// wholeShare is the pause between two whole looks, in multiples of the time that one takes;
	// mostWholePeriod is the upper bound of the pause.
	wholeShare      = 100
	mostWholePeriod = 5 * time.Minute
	// quickLook is the time up to which a whole look counts as quick. Quick looks are made whenever
	// no webhook is named.
	quickLook = 20 * time.Millisecond
)

// bounds keeps where looks begin. The zero value makes the first look a whole one.
type bounds struct {
	mu sync.Mutex
	// at is the bound of each webhook, by Postgres's clock; busy are the webhooks that had
	// messages.
	at   map[uuid.UUID]time.Time
	busy map[uuid.UUID]bool
	// nextWhole is the earliest time of the next whole look, by this process's clock. former is how
	// long the last one took. took is the shorter of the last two, because a process may have been
	// paused during one of them.
	nextWhole    time.Time
	took, former time.Duration
}

// look returns the parameters of a look that covers at least the webhooks in hints.
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

// note stores what a look found that began at an instant. It returns the time until the next whole
// look, or 0 if this look was a whole one.
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
