package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tocsin/alerts"
)

// Pulse tells whether inboxes have changed, and counts them. The number of the newest
// change is read at each look, which an index makes cheap; counting reads what is there,
// half a second for a million alerts. So it is counted when there is a new change, and
// from time to time otherwise, because a transaction may commit after one that began
// later and bears a greater number; and where counting takes long, it is done for a
// part of the time only.
type Pulse struct {
	db    *DB
	clock func() time.Time

	mu      sync.Mutex
	inboxes map[string]counted
}

// Pulse returns the API's watch on inboxes. The clock tells how long counting takes.
func (db *DB) Pulse(clock func() time.Time) *Pulse {
	return &Pulse{db: db, clock: clock, inboxes: map[string]counted{}}
}

// counted is an inbox as it was counted last.
type counted struct {
	newest int64
	counts alerts.Counts
	// began is zero before it was counted.
	began time.Time
	took  time.Duration
}

const (
	// countAgain is how long a late transaction may stay unnoticed.
	countAgain = 2 * time.Second
	// Counting that takes longer than longCount is done for a countShare of the time.
	longCount  = 100 * time.Millisecond
	countShare = 10
)

// due tells whether to count.
func (c *counted) due(newest int64, now time.Time) bool {
	since := now.Sub(c.began)
	if c.took > longCount && since < countShare*c.took {
		return false
	}
	return newest != c.newest || since >= countAgain
}

// Pulse returns a fingerprint of an inbox, and its counts as of a moment ago.
func (p *Pulse) Pulse(ctx context.Context, tenant string) (string, alerts.Counts, error) {
	newest, err := p.db.queries.AlertNewestChange(ctx, tenant)
	if err != nil {
		return "", alerts.Counts{}, fmt.Errorf("read newest change: %w", err)
	}
	p.mu.Lock()
	c := p.inboxes[tenant]
	p.mu.Unlock()
	if began := p.clock(); c.began.IsZero() || c.due(newest, began) {
		counts, err := p.db.Inbox().Counts(ctx, tenant)
		if err != nil {
			return "", alerts.Counts{}, err
		}
		c = counted{newest, counts, began, p.clock().Sub(began)}
		p.mu.Lock()
		p.inboxes[tenant] = c
		p.mu.Unlock()
	}
	n := c.counts
	return fmt.Sprintf("%d-%d-%d-%d-%d", newest, n.Pending, n.Firing, n.Acknowledged, n.Resolved), n, nil
}
