package product

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/cursor"
)

// Every rule is evaluated in every pass, and passes are made when the ticks of a replica
// want them. Work begins at a tick, whose instant is that of the one before and the
// interval; or exchanges are written that begin one after the other, from an instant to
// come on: no pass reads them before its watermark has reached them.

// lead is how long before the first of them begins exchanges are written.
const lead = 500 * time.Millisecond

// behind counts the partitions with rules whose cursor is before a position.
const behind = `
	select count(*) from checkpoint
	where partition in (select partition from tenant_partition) and (cursor is null or cursor < $1)`

// AwaitJudged waits until the cursor of every partition with rules has reached an instant.
func (w *World) AwaitJudged(ctx context.Context, ns int64) error {
	_, err := w.await(ctx, "evaluated up to an instant", behind, cursor.Position{StartTimeNS: ns}.String())
	return err
}

// caughtUp counts what keeps rules from being caught up since an instant.
const caughtUp = `
	select (` + behind + `) + (select count(*) from checkpoint where backfill_from_ns is not null)
	     + (select count(*) from rule_backfill where not failing)`

// AwaitCaughtUp waits until a pass that began after the call has evaluated everything new,
// and nothing behind the cursors is left to evaluate. It returns when that was seen.
func (w *World) AwaitCaughtUp(ctx context.Context) (time.Time, error) {
	return w.await(ctx, "caught up", caughtUp, cursor.At(time.Now()).String())
}

// CaughtUp reports whether the cursors have reached an instant, and nothing behind them is
// left to evaluate.
func (w *World) CaughtUp(ctx context.Context, ns int64) (bool, error) {
	n, err := w.Number(ctx, caughtUp, cursor.Position{StartTimeNS: ns}.String())
	return n == 0, err
}

// LeftBehind sets the partition of the only tenant back to where it was a while ago, and its
// rules be armed for two hours, as if a replica had evaluated them until then. No replica
// may run.
func (w *World) LeftBehind(ctx context.Context, ago time.Duration) error {
	err := w.Exec(ctx, `update rule_state set armed_since_ns = ((extract(epoch from now()) - 7200) * 1e9)::bigint`)
	if err == nil {
		err = w.Exec(ctx, `delete from rule_backfill`)
	}
	if err == nil {
		err = w.Exec(ctx, `update checkpoint set cursor = $1 where partition in (select partition from tenant_partition)`,
			cursor.At(time.Now().Add(-ago)).String())
	}
	return err
}

// Owner names the replica that holds the partition of the only tenant, "" where none does.
func (w *World) Owner(ctx context.Context) (owner string, err error) {
	err = w.Pool.QueryRow(ctx, `select coalesce(owner, '') from checkpoint join tenant_partition using (partition)`).Scan(&owner)
	return owner, err
}

// AwaitShares waits until all of a number of partitions are held, and no replica of so
// many holds more than its part.
func (w *World) AwaitShares(ctx context.Context, replicas, partitions int) (time.Time, error) {
	return w.await(ctx, "been shared fairly", `
		with share as (select count(*) as n from checkpoint where lease_until > now() group by owner)
		select abs($1::bigint - (select count(*) from share)) + abs($2::bigint - (select coalesce(sum(n), 0)::bigint from share))
		     + (select count(*) from share where n > ceil($2::numeric / $1::numeric))`, replicas, partitions)
}

// TrickleUntil writes a failure every 100 ms, of so many applications in turn, until
// something holds, and returns when each became visible.
func (w *World) TrickleUntil(ctx context.Context, prefix string, applications int, holds func() (bool, error)) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	visible := map[string]int64{}
	var next time.Time
	_, err := awaitEvery(ctx, 10*time.Millisecond, func() (bool, error) {
		if now := time.Now(); now.After(next) {
			next = now.Add(100 * time.Millisecond)
			n := len(visible)
			err := w.Fresh(ctx, Exchanges{Count: 1, Prefix: fmt.Sprintf("%s%d-", prefix, n), Applications: applications, First: n})
			if err != nil {
				return false, err
			}
			visible[fmt.Sprintf("%s%d-0", prefix, n)] = time.Now().UnixNano()
		}
		return holds()
	})
	return visible, err
}

// await waits until a query answers 0. It asks rarely, since who asks uses the processors
// that are measured.
func (w *World) await(ctx context.Context, what, query string, args ...any) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	at, err := awaitEvery(ctx, 10*time.Millisecond, func() (bool, error) {
		n, err := w.Number(ctx, query, args...)
		return n == 0, err
	})
	if err != nil {
		return at, fmt.Errorf("await that partitions have %s: %w", what, err)
	}
	return at, nil
}

// Prepare waits until all rules are caught up, writes exchanges that fail, and returns at
// the next tick of the only replica, which has the role api. Its ticks are so far apart
// that what passes cost which find nothing does not matter.
func (w *World) Prepare(ctx context.Context, replica *Replica, tick time.Duration, x Exchanges) (next time.Time, err error) {
	if _, err := w.AwaitCaughtUp(ctx); err != nil {
		return next, err
	}
	last, err := w.lastTick(ctx, replica)
	if err != nil {
		return next, err
	}
	if err := w.Fresh(ctx, x); err != nil {
		return next, err
	}
	next = last.Add(tick)
	for !next.After(time.Now()) {
		next = next.Add(tick)
	}
	select {
	case <-ctx.Done():
		return next, ctx.Err()
	case <-time.After(time.Until(next)):
		return next, nil
	}
}

// lastTick waits for a pass, and returns when it began: so long before its commit as the
// replica's histogram says that it took.
func (w *World) lastTick(ctx context.Context, replica *Replica) (time.Time, error) {
	const query = `
		select coalesce(max((extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000000)::bigint), 0) from checkpoint
		where partition in (select partition from tenant_partition)`
	const tries = 5
	for range tries {
		before, err := replica.Passes(ctx)
		if err != nil {
			return time.Time{}, err
		}
		was, err := w.Number(ctx, query)
		if err != nil {
			return time.Time{}, err
		}
		is := was
		if _, err := awaitEvery(ctx, 5*time.Millisecond, func() (bool, error) {
			is, err = w.Number(ctx, query)
			return is != was, err
		}); err != nil {
			return time.Time{}, err
		}
		// The pass ends shortly after its commit.
		after, err := replica.AwaitPasses(ctx, before.Count+1)
		if err != nil {
			return time.Time{}, err
		}
		if made := after.Since(before); made.Count == 1 {
			return time.UnixMicro(is).Add(-made.Took), nil
		}
	}
	return time.Time{}, errors.New("the passes of a replica come too quickly to see when one begins")
}

// Steady writes exchanges that fail one after the other from half a second on,
// each so much later than the one before.
func (w *World) Steady(ctx context.Context, count int, every time.Duration) error {
	if _, err := w.AwaitCaughtUp(ctx); err != nil {
		return err
	}
	_, err := w.ahead(ctx, Exchanges{Count: count, Prefix: "execution-", StepNS: int64(every)}, lead)
	return err
}

// ahead writes exchanges of which the first begins after a while, and returns that instant.
func (w *World) ahead(ctx context.Context, x Exchanges, after time.Duration) (time.Time, error) {
	now, err := w.NowNS(ctx)
	if err != nil {
		return time.Time{}, err
	}
	x.StartNS = now + int64(after)
	if err := w.Insert(ctx, x); err != nil {
		return time.Time{}, err
	}
	if now, err = w.NowNS(ctx); err == nil && now >= x.StartNS {
		err = fmt.Errorf("writing %d exchanges took longer than %v, after which the first one begins", x.Count, after)
	}
	return time.Unix(0, x.StartNS), err
}

// Commits returns when the alert of each exchange was committed, by Postgres's
// record, in nanoseconds since the Unix epoch.
func (w *World) Commits(ctx context.Context) (map[string]int64, error) {
	rows, err := w.Pool.Query(ctx, `select execution_id, (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000000)::bigint from alert where not health`)
	if err != nil {
		return nil, err
	}
	commits := make(map[string]int64)
	var id string
	var micros int64
	_, err = pgx.ForEachRow(rows, []any{&id, &micros}, func() error {
		commits[id] = micros * int64(time.Microsecond)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("when alerts were committed: %w (start Postgres with --postgres-setting track_commit_timestamp=on)", err)
	}
	return commits, nil
}
