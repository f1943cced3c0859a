package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
)

// How much waits to be sent is asked for every few seconds, by each page that is open and by
// whoever reads metrics. To count a million rows would take a second each time, and
// a counter would be the row that all deliveries wait for. So rows are counted up to
// a bound. Beyond it Postgres's own count of live rows is taken, which it keeps
// beside all transactions: it is some seconds old, nearly exact, and lost when
// Postgres crashes, until the table is analyzed. A tenant's part of it is that of a
// sample of the table's pages.

// mostCounted is how many rows are counted; more are estimated.
const mostCounted = 10_000

// beginCount has rows counted along an index, which ends at the bound: a bitmap
// would be made of all of them first.
const beginCount = beginWork + `; set local enable_bitmapscan = off`

// waiting is how much waits to be sent.
type waiting struct {
	// depth is the number of messages, exact unless it is an estimate. An estimate is
	// above mostCounted.
	depth     int64
	estimated bool
	// oldest is the age of the oldest; nil when nothing waits. Where replicas' clocks
	// differ, it is one that was made about as long ago.
	oldest *time.Duration
}

// waitingInAll returns how much waits for all tenants together.
func (db *DB) waitingInAll(ctx context.Context) (waiting, error) {
	return db.countWaiting(ctx, nil, (*pgq.Queries).WaitingLive)
}

// waitingFor tells how much waits for a tenant. Beyond mostCounted the age of the oldest is
// that of an old one.
func (db *DB) waitingFor(ctx context.Context, tenant string) (waiting, error) {
	return db.countWaiting(ctx, &tenant, func(q *pgq.Queries, ctx context.Context) (int64, error) {
		e, err := q.WaitingEstimate(ctx, tenant)
		if err != nil || e.Sampled == 0 {
			return 0, err
		}
		return int64(float64(e.Live) * float64(e.Own) / float64(e.Sampled)), nil
	})
}

// countWaiting counts what waits for a tenant, nil for all, up to the bound, and takes
// an estimate beyond it, if that is more than was counted.
func (db *DB) countWaiting(ctx context.Context, tenant *string, estimate func(*pgq.Queries, context.Context) (int64, error)) (o waiting, err error) {
	err = db.begun(ctx, beginCount, func(tx pgx.Tx) error {
		q := db.queries.WithTx(tx)
		p := pgq.WaitingCountParams{TenantID: tenant, Most: mostCounted + 1}
		p.WebhookIds, p.Bounds = db.bounds.known()
		row, err := q.WaitingCount(ctx, p)
		if err != nil {
			return fmt.Errorf("count what waits: %w", err)
		}
		o = waitingOf(row.Counted, row.OldestSeconds)
		if !o.estimated {
			return nil
		}
		depth, err := estimate(q, ctx)
		if err != nil {
			return fmt.Errorf("estimate what waits: %w", err)
		}
		o.depth = max(o.depth, depth)
		return nil
	})
	return o, err
}

func waitingOf(counted int64, oldestSeconds float64) waiting {
	o := waiting{depth: counted, estimated: counted > mostCounted}
	if counted > 0 {
		o.oldest = new(time.Duration(oldestSeconds * float64(time.Second)))
	}
	return o
}
