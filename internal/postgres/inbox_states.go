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
// second for a million. So the alerts are counted when something changed, and also from time to
// time, because alerts are deleted. If counting takes long, it is done only part of the time.
//
// The changed alerts are those whose rows the previous look did not see, according to its snapshot. A
// change may have a smaller number than others that were seen before: it gets its number when its
// transaction begins, and is seen when that commits, which may be much later for an action on many
// alerts. If the counts differ and nothing changed, alerts were deleted. Then it is unknown which.
//
// Two processes that look at different times may see the same newest change and counts, and only one of them
// a change that committed late. So a fingerprint is of one process.
type InboxStates struct {
	db    *DB
	clock func() time.Time
	// process is part of each fingerprint.
	process string

	mu      sync.Mutex
	inboxes map[string]counted
}

// InboxStates returns the watch on inboxes for the API. The clock measures how long counting takes.
func (db *DB) InboxStates(clock func() time.Time) *InboxStates {
	return &InboxStates{db: db, clock: clock, process: uuid.NewString()[:8], inboxes: map[string]counted{}}
}

// counted is the last count of an inbox.
type counted struct {
	counts alerts.Counts
	// began is zero before the first count.
	began time.Time
	took  time.Duration
	// stale says that something changed since.
	stale bool
	// late is when a change was seen, after the newest one, that has a smaller number; 0 means never. In
	// nanoseconds since the Unix epoch.
	late int64
	// looks are the past looks, oldest first. What the last one did not see has a greater number than
	// the newest change of the first one.
	looks []look
}

// look is the newest change at a time. Transactions before oldest had ended, and those from next on
// had not begun, according to the snapshot.
type look struct {
	at           time.Time
	newest       int64
	snapshot     string
	oldest, next int64
}

// since stores a look. It returns the look before, and the change number after which everything has
// one that the look before did not see. known is false if there is nothing to compare with.
func (c *counted) since(now look) (before look, change int64, known bool) {
	if len(c.looks) > 0 && now.next < c.looks[len(c.looks)-1].next {
		c.looks = nil // another server, or a restored one, numbers transactions in another way
	}
	if known = len(c.looks) > 0; known {
		before = c.looks[len(c.looks)-1]
		// What the look before did not see is of transactions that had not ended then. At the time of
		// this look, they had not begun.
		begun := 0
		for i := range c.looks {
			if c.looks[i].next <= before.oldest {
				begun = i
			}
		}
		for ; begun > 0 && c.looks[begun].at.Sub(c.looks[1].at) >= earlyNumber; begun-- {
			c.looks = c.looks[1:]
		}
		change = c.looks[0].newest
	}
	if len(c.looks) >= mostLooks {
		c.looks = slices.Delete(slices.Clone(c.looks), 1, 2)
	}
	c.looks = append(slices.Clip(c.looks), now)
	return before, change, known
}

const (
	// countAgain is how long deleted alerts may go unnoticed.
	countAgain = 2 * time.Second
	// earlyNumber is how long before its transaction begins a change may have received its number.
	earlyNumber = 3 * time.Second
	// mostLooks bounds the looks that are kept while a transaction of any database goes on, and mostRead
	// the changes since then that are read.
	mostLooks, mostRead = 500, 5000
	// If counting takes longer than longCount, the next count waits for countShare times as long.
	longCount  = 100 * time.Millisecond
	countShare = 10
)

// due reports whether to count.
func (c *counted) due(now time.Time) bool {
	since := now.Sub(c.began)
	if c.took > longCount && since < countShare*c.took {
		return false
	}
	return c.stale || since >= countAgain
}

// InboxState returns the state of an inbox, with its counts as of a moment ago.
func (p *InboxStates) InboxState(ctx context.Context, tenant string) (api.InboxState, error) {
	now, err := p.look(ctx, tenant)
	if err != nil {
		return api.InboxState{}, err
	}
	p.mu.Lock()
	c := p.inboxes[tenant]
	p.mu.Unlock()
	var changed []uuid.UUID
	before, since, known := c.since(now)
	if known {
		if changed, err = p.changed(ctx, tenant, since, before); err != nil {
			return api.InboxState{}, err
		}
	}
	something := len(changed) > 0 || now.newest > before.newest
	switch {
	case now.newest > before.newest:
		c.late = 0
	case something:
		c.late = now.at.UnixNano()
	}
	c.stale = c.stale || something || now.newest != before.newest
	counts := c.counts
	if began := p.clock(); c.began.IsZero() || c.due(began) {
		if c.counts, err = p.db.Inbox().Counts(ctx, tenant); err != nil {
			return api.InboxState{}, err
		}
		c.stale, c.began, c.took = false, began, p.clock().Sub(began)
	}
	p.mu.Lock()
	p.inboxes[tenant] = c
	p.mu.Unlock()
	n := c.counts
	state := api.InboxState{
		Fingerprint: fmt.Sprintf("%d-%d-%d-%d-%d-%d-%s", now.newest, c.late, n.Pending, n.Firing, n.Acknowledged, n.Resolved, p.process), Counts: n,
	}
	if (something || n == counts) && len(changed) <= api.MaxChanged {
		state.Changed = changed
	}
	return state, nil
}

// look looks at an inbox.
func (p *InboxStates) look(ctx context.Context, tenant string) (look, error) {
	now := look{at: p.clock()}
	err := p.db.pool.QueryRow(ctx, `
select coalesce((select max(a.change) from alert a where a.tenant_id = $1), 0), s::text, pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint
from pg_current_snapshot() s`, tenant).Scan(&now.newest, &now.snapshot, &now.oldest, &now.next)
	if err != nil {
		return now, fmt.Errorf("read newest change: %w", err)
	}
	return now, nil
}

// changed returns the alerts with a change after a number that a look did not see, at most one more
// than [api.MaxChanged], and only of the mostRead newest. The transaction that wrote a row is known by
// the lower half of its number.
func (p *InboxStates) changed(ctx context.Context, tenant string, since int64, before look) ([]uuid.UUID, error) {
	rows, err := p.db.pool.Query(ctx, `
with now as materialized (
    select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next
), recent as (
    select a.alert_id, a.change, a.xmin::text::bigint as writer from alert a where a.tenant_id = $1 and a.change > $2 order by a.change desc limit $5
)
select r.alert_id from recent r cross join now
where not pg_visible_in_snapshot((now.next - ((now.next - r.writer) & 4294967295))::text::xid8, $3::text::pg_snapshot)
order by r.change desc limit $4`, tenant, since, before.snapshot, api.MaxChanged+1, mostRead)
	if err != nil {
		return nil, fmt.Errorf("read changed alerts: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("read changed alerts: %w", err)
	}
	return ids, nil
}
