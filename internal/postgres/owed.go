package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
)

// How much is owed is asked for every few seconds, by each page that is open and by
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

// owed is how much is owed.
type owed struct {
	// depth is the number of messages, exact unless it is an estimate. An estimate is
	// above mostCounted.
	depth     int64
	estimated bool
	// oldest is the age of the oldest; nil when nothing is owed. Where replicas' clocks
	// differ, it is one that was made about as long ago.
	oldest *time.Duration
}

// owedInAll tells what is owed to all tenants together.
func (db *DB) owedInAll(ctx context.Context) (owed, error) {
	return db.countOwed(ctx, nil, (*pgq.Queries).OwedLive)
}

// owedTo tells what is owed to a tenant. Beyond mostCounted the age of the oldest is
// that of an old one.
func (db *DB) owedTo(ctx context.Context, tenant string) (owed, error) {
	return db.countOwed(ctx, &tenant, func(q *pgq.Queries, ctx context.Context) (int64, error) {
		e, err := q.OwedEstimate(ctx, tenant)
		if err != nil || e.Sampled == 0 {
			return 0, err
		}
		return int64(float64(e.Live) * float64(e.Own) / float64(e.Sampled)), nil
	})
}

// countOwed counts what is owed to a tenant, nil for all, up to the bound, and takes
// an estimate beyond it, if that is more than was counted.
func (db *DB) countOwed(ctx context.Context, tenant *string, estimate func(*pgq.Queries, context.Context) (int64, error)) (o owed, err error) {
	err = db.begun(ctx, beginCount, func(tx pgx.Tx) error {
		q := db.queries.WithTx(tx)
		p := pgq.OwedCountParams{TenantID: tenant, Most: mostCounted + 1}
		p.WebhookIds, p.Bounds = db.bounds.known()
		row, err := q.OwedCount(ctx, p)
		if err != nil {
			return fmt.Errorf("count what is owed: %w", err)
		}
		o = owedOf(row.Counted, row.OldestSeconds)
		if !o.estimated {
			return nil
		}
		depth, err := estimate(q, ctx)
		if err != nil {
			return fmt.Errorf("estimate what is owed: %w", err)
		}
		o.depth = max(o.depth, depth)
		return nil
	})
	return o, err
}

func owedOf(counted int64, oldestSeconds float64) owed {
	o := owed{depth: counted, estimated: counted > mostCounted}
	if counted > 0 {
		o.oldest = new(time.Duration(oldestSeconds * float64(time.Second)))
	}
	return o
}
