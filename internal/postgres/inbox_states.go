package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
)

// InboxStates reports whether inboxes have changed, and counts their alerts. Each look reads the number
// of the newest change, which is cheap with an index. Counting reads the alerts, which takes half a
// second for a million. So the alerts are counted when there is a new change, and also from time to
// time, because a transaction may commit after one that began later and has a greater number. If
// counting takes long, it is done only part of the time.
//
// The changed alerts are those with a greater number than the newest one shortly before the
// previous look, so that a transaction that commits late is not missed. If the counts differ
// without a new change, a transaction took longer than that or alerts were deleted. Then it is
// unknown what changed.
type InboxStates struct {
	db    *DB
	clock func() time.Time

	mu      sync.Mutex
	inboxes map[string]counted
}

// InboxStates returns the watch on inboxes for the API. The clock measures how long counting takes.
func (db *DB) InboxStates(clock func() time.Time) *InboxStates {
	return &InboxStates{db: db, clock: clock, inboxes: map[string]counted{}}
}

// counted is the last count of an inbox.
type counted struct {
	newest int64
	counts alerts.Counts
	// began is zero before the first count.
	began time.Time
	took  time.Duration
	// looks are the newest changes at past looks, oldest first, back to one look that is older than
	// lateCommit.
	looks []look
}

// look is the time of a look at an inbox, and the newest change at that time.
type look struct {
	at     time.Time
	newest int64
}

// since returns the change number after which changes are reported at a look, and stores the look.
// known is false at the first look.
func (c *counted) since(newest int64, now time.Time) (change int64, known bool) {
	for len(c.looks) > 1 && now.Sub(c.looks[1].at) >= lateCommit {
		c.looks = c.looks[1:]
	}
	if known = len(c.looks) > 0; known {
		change = c.looks[0].newest
	}
	c.looks = append(slices.Clip(c.looks), look{now, newest})
	return change, known
}

const (
	// countAgain is how long a transaction that commits late may go unnoticed.
	countAgain = 2 * time.Second
	// lateCommit is how long before a look a change may have received its number.
	lateCommit = 3 * time.Second
	// If counting takes longer than longCount, the next count waits for countShare times as long.
	longCount  = 100 * time.Millisecond
	countShare = 10
)

// due reports whether to count.
func (c *counted) due(newest int64, now time.Time) bool {
	since := now.Sub(c.began)
	if c.took > longCount && since < countShare*c.took {
		return false
	}
	return newest != c.newest || since >= countAgain
}

// InboxState returns the state of an inbox, with its counts as of a moment ago.
func (p *InboxStates) InboxState(ctx context.Context, tenant string) (api.InboxState, error) {
	newest, err := p.db.queries.AlertNewestChange(ctx, tenant)
	if err != nil {
		return api.InboxState{}, fmt.Errorf("read newest change: %w", err)
	}
	p.mu.Lock()
	c := p.inboxes[tenant]
	p.mu.Unlock()
	before := c
	if began := p.clock(); c.began.IsZero() || c.due(newest, began) {
		counts, err := p.db.Inbox().Counts(ctx, tenant)
		if err != nil {
			return api.InboxState{}, err
		}
		c.newest, c.counts, c.began, c.took = newest, counts, began, p.clock().Sub(began)
	}
	n := c.counts
	state := api.InboxState{
		Fingerprint: fmt.Sprintf("%d-%d-%d-%d-%d", newest, n.Pending, n.Firing, n.Acknowledged, n.Resolved), Counts: n,
	}
	since, known := c.since(newest, p.clock())
	explained := newest > before.newest || n == before.counts
	if known && explained {
		if state.Changed, err = p.changed(ctx, tenant, since); err != nil {
			return api.InboxState{}, err
		}
	}
	p.mu.Lock()
	p.inboxes[tenant] = c
	p.mu.Unlock()
	return state, nil
}

// changed returns the alerts that changed after a change; nil if there are too many.
func (p *InboxStates) changed(ctx context.Context, tenant string, since int64) ([]uuid.UUID, error) {
	rows, err := p.db.pool.Query(ctx, `
select a.alert_id from alert a
where a.tenant_id = $1 and a.change > $2
order by a.change desc limit $3`, tenant, since, api.MaxChanged+1)
	if err != nil {
		return nil, fmt.Errorf("read changed alerts: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("read changed alerts: %w", err)
	}
	if len(ids) > api.MaxChanged {
		return nil, nil
	}
	return ids, nil
}
