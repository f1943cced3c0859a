//go:build unix

package torture

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// rest waits until everything expected has happened, restarts every replica, and waits until their
// look-backs, which begin without knowledge, have evaluated everything again: any alert that they
// raise twice, they have raised by then.
func (w *world) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	w.logf("waiting for rest")
	if !w.until(ctx, w.settled) {
		w.logf("no rest within %v", w.options.Timeout)
	}
	for _, r := range w.replicas {
		r.signal(syscall.SIGTERM)
	}
	for range 2 {
		if !w.until(ctx, w.ranSince(time.Now())) {
			w.logf("the replicas did not come back to work")
			return
		}
	}
	if w.until(ctx, w.settled) {
		w.rested = time.Now()
		w.logf("at rest")
	}
}

// settled reports whether every rule has raised all its alerts, every count is below its threshold
// again, all expected absences are found, every rule can be evaluated again, and every message is
// settled.
func (w *world) settled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var left int
	if err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM alert_escalation JOIN alert USING (alert_id) WHERE state = 'FIRING') +
		(SELECT count(*) FROM alert LEFT JOIN rule r USING (rule_id)
			WHERE execution_id IS NULL AND state <> 'RESOLVED' AND (health OR r.fire_mode <> 'ABSENT_IN_WINDOW'))`).Scan(&left); err != nil || left > 0 {
		return false, err
	}
	if ready, err := w.resolved(ctx, conn); err != nil || !ready {
		return false, err
	}
	for _, l := range w.truth.lives {
		if !l.enabled {
			continue
		}
		if ready, err := l.settled(ctx, conn); err != nil || !ready {
			return false, err
		}
		if missing, err := w.missing(ctx, conn, l, time.Now().UnixNano()); err != nil || len(missing) > 0 {
			return false, err
		}
	}
	return true, nil
}

// ranSince returns a condition: every rule has been completely evaluated after an instant.
func (w *world) ranSince(instant time.Time) func(context.Context, *pgx.Conn) (bool, error) {
	return func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		var left int
		err := conn.QueryRow(ctx, `SELECT count(*) FROM rule_progress JOIN rule USING (rule_id)
			WHERE enabled AND deleted_at IS NULL AND (committed_at < $1 OR committed_at IS NULL OR backfill_from_ns IS NOT NULL OR position IS NOT NULL
				OR fire_mode <> 'PER_EXCHANGE' AND (last_run_at < $1 OR last_run_at IS NULL))`,
			instant.Add(time.Second)).Scan(&left)
		return left == 0, err
	}
}

// awaitAlerts waits until a rule has alerts for all that was visible at an instant. It gives up
// after a while: the checker will report it.
func (w *world) awaitAlerts(ctx context.Context, l *life, atNS int64) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	w.until(ctx, func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		missing, err := w.missing(ctx, conn, l, atNS)
		return len(missing) == 0, err
	})
}

// missing returns the exchanges visible at an instant for which a rule must have alerts, and has
// none.
func (w *world) missing(ctx context.Context, conn *pgx.Conn, l *life, atNS int64) ([]string, error) {
	must := w.truth.visibleMust(l, atNS)
	rows, err := conn.Query(ctx, `SELECT m FROM unnest($1::text[]) m
		WHERE NOT EXISTS (SELECT FROM alert WHERE rule_id = $2::text::uuid AND exchange->>'correlationId' = m)`, must, l.id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// until repeatedly queries Postgres, ignoring its failures, and reports whether the condition was
// met in time.
func (w *world) until(ctx context.Context, holds func(context.Context, *pgx.Conn) (bool, error)) bool {
	for {
		asked := time.Now()
		var yes bool
		err := w.postgres.query(ctx, func(conn *pgx.Conn) (err error) {
			yes, err = holds(ctx, conn)
			return err
		})
		if err == nil && yes {
			return true
		}
		// The queries must not be a load on the database.
		if !pause(ctx.Done(), max(250*time.Millisecond, 4*time.Since(asked))) {
			return false
		}
	}
}

// persist runs f until it succeeds.
func (w *world) persist(ctx context.Context, f func(*pgx.Conn) error) error {
	var last error
	done := w.until(ctx, func(_ context.Context, conn *pgx.Conn) (bool, error) {
		last = f(conn)
		return last == nil, last
	})
	if !done {
		return errors.Join(ctx.Err(), last)
	}
	return nil
}
