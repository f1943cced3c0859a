package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
)

// Every open page and every scrape of metrics asks every few seconds how much waits to be sent.
// Counting a million rows would take a second each time, and a counter would be a row that all
// deliveries wait for. So rows are counted up to a bound.
//
// Above the bound the number of live rows is taken from the statistics of Postgres, which are kept
// outside transactions. It is some seconds old and nearly exact; it is lost when Postgres crashes,
// until the table is analyzed. The share of a tenant is estimated from a sample of the table's
// pages.

// mostCounted is how many rows are counted; a larger number is estimated.
const mostCounted = 10_000

// beginCount makes Postgres count along an index and stop at the bound: a bitmap scan would first
// read all rows.
const beginCount = beginWork + `; set local enable_bitmapscan = off`

// waiting is how much waits to be sent.
type waiting struct {
	// depth is the number of messages. It is exact, or an estimate above mostCounted.
	depth     int64
	estimated bool
	// oldest is the age of the oldest message; nil if none waits. If the clocks of replicas differ,
	// it may be the age of another message written at about the same time.
	oldest *time.Duration
}

// waitingInAll returns how much waits for all tenants together.
func (db *DB) waitingInAll(ctx context.Context) (waiting, error) {
	return db.countWaiting(ctx, nil, (*pgq.Queries).WaitingLive)
}

// waitingFor returns how much waits for a tenant. Above mostCounted, the age is that of an old
// message, not always of the oldest.
func (db *DB) waitingFor(ctx context.Context, tenant string) (waiting, error) {
	return db.countWaiting(ctx, &tenant, func(q *pgq.Queries, ctx context.Context) (int64, error) {
		e, err := q.WaitingEstimate(ctx, tenant)
		if err != nil || e.Sampled == 0 {
			return 0, err
		}
		return int64(float64(e.Live) * float64(e.Own) / float64(e.Sampled)), nil
	})
}

// countWaiting counts what waits for a tenant (nil for all) up to the bound. Above the bound it
// takes an estimate, if that is more than was counted.
func (db *DB) countWaiting(ctx context.Context, tenant *string, estimate func(*pgq.Queries, context.Context) (int64, error)) (o waiting, err error) {
	err = db.begun(ctx, beginCount, func(tx pgx.Tx) error {
		q := db.queries.WithTx(tx)
		p := pgq.WaitingCountParams{TenantID: tenant, Most: mostCounted + 1}
		p.WebhookIds, p.Bounds = db.bounds.known()
		row, err := q.WaitingCount(ctx, p)
		if err != nil {
			return fmt.Errorf("count waiting messages: %w", err)
		}
		o = waitingOf(row.Counted, row.OldestSeconds)
		if !o.estimated {
			return nil
		}
		depth, err := estimate(q, ctx)
		if err != nil {
			return fmt.Errorf("estimate waiting messages: %w", err)
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
