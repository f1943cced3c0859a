package product

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// announce has the evaluators ask at their next tick, as whoever makes rules due by
// the product does. It stands in a statement that makes some due.
const announce = `select pg_notify('tocsin-wake-ups-ev', '{"notifications":0}')`

// Due makes rules due at once; without any, all.
func (w *World) Due(ctx context.Context, rules ...uuid.UUID) error {
	return w.Exec(ctx, `
		with alone as (update rule_state set next_run_at = now() where cohort_id is null and ($1::uuid[] is null or rule_id = any($1))), company as (
			update cohort c set next_run_at = now()
			where $1::uuid[] is null or exists (select from rule_state s where s.cohort_id = c.cohort_id and s.rule_id = any($1)))
		`+announce, rules)
}

// AwaitRun waits until no rule is due any more, and returns when that was seen.
// It wants rules of an interval that is longer than their evaluation takes.
func (w *World) AwaitRun(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return Await(ctx, func() (bool, error) {
		// The commit that releases a rule puts this off; a claim does not.
		n, err := w.Number(ctx, `
			select count(*) from (select from rule_state where next_run_at <= now() union all select from cohort where next_run_at <= now() limit 1) due`)
		return n == 0, err
	})
}

// Prepare waits until a rule has run for the first time, and then writes
// exchanges that fail after its cursor, which it finds when it is next due.
func (w *World) Prepare(ctx context.Context, count int, prefix string) error {
	if _, err := w.AwaitRun(ctx); err != nil {
		return fmt.Errorf("await the first run: %w", err)
	}
	return w.Fresh(ctx, Exchanges{Count: count, Prefix: prefix})
}

// Steady writes exchanges that fail one after the other from half a second on,
// each so much later than the one before.
func (w *World) Steady(ctx context.Context, count int, every time.Duration) error {
	if _, err := w.AwaitRun(ctx); err != nil {
		return err
	}
	now, err := w.NowNS(ctx)
	if err != nil {
		return err
	}
	start := now + int64(500*time.Millisecond)
	return w.Insert(ctx, Exchanges{Count: count, Prefix: "execution-", StartNS: start, StepNS: int64(every)})
}

// WhilePaced makes a rule due again and again while f runs. Meanwhile evaluators
// ask at every tick, without being told each time: another rule is due that seems to
// be claimed.
func (w *World) WhilePaced(ctx context.Context, rule uuid.UUID, every time.Duration, f func() error) error {
	held, err := w.Rule(ctx, 3600, nil, "nothing")
	if err != nil {
		return err
	}
	err = w.Exec(ctx, `
		with held as (
			update rule_state
			set next_run_at = now(), claim_token = nextval('claim_token'), claimed_by = 'bench', claimed_until = now() + interval '1 h'
			where rule_id = $1)
		`+announce, held.ID)
	if err != nil {
		return err
	}
	pacing, stop := context.WithCancel(ctx)
	defer stop()
	paced := make(chan error, 1)
	go func() { paced <- w.pace(pacing, rule, every) }()
	err = f()
	stop()
	return errors.Join(err, <-paced)
}

func (w *World) pace(ctx context.Context, rule uuid.UUID, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// Whoever evaluates the rule holds its row for moments only.
		err := w.Exec(ctx, `update rule_state set next_run_at = now() where rule_id = $1 and next_run_at > now() and claimed_until is null`, rule)
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// Commits returns when the alert of each exchange was committed, by Postgres's
// record, in nanoseconds since the Unix epoch.
func (w *World) Commits(ctx context.Context) (map[string]int64, error) {
	rows, err := w.Pool.Query(ctx, `select execution_id, (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000000)::bigint from alert`)
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
