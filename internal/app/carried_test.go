package app_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
)

// The schema before partitions has an unfinished look-back, and an alert that was raised by it. The
// new schema raises the rest, and not that one again.
func TestUnfinishedLookBackIsCarriedOver(t *testing.T) {
	w := newWorld(t)
	url := pgtest.Empty(t)
	pgtest.MigrateTo(t, url, 24)
	conn := pgtest.Conn(t, url)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UnixNano()
	ago := func(d time.Duration) int64 { return now - d.Nanoseconds() }
	rule := uuid.New()
	exec(`insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
			interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds, threshold, window_seconds)
		values ($1, $2, 'every failure', true, 'PER_EXCHANGE', 'INFO', '{}', '{"statuses": ["FAILED"]}', '', '', '[]', 1, 60, 0, 0, 0, 0)`, rule, tenant)
	// Its cursor is at 5 s ago, and the look-back is still to be evaluated from half an hour ago on.
	at := cursor.Position{StartTimeNS: ago(5 * time.Second)}
	exec(`insert into rule_state (rule_id, armed_since_ns, next_run_at, cursor, owed_from_ns) values ($1, $2, now(), $3, $4)`,
		rule, ago(3*time.Hour), at.String(), ago(30*time.Minute))
	exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
			application, route, exchange, signature)
		values (gen_random_uuid(), $2, $1, 1, 'INFO', 'FIRING', '', '', 'raised before', $3, 'orders', 'order-to-erp', '{}', '')`,
		rule, tenant, ago(20*time.Minute))
	w.fail(ago(2*time.Hour), "long evaluated")
	w.fail(ago(20*time.Minute), "raised before", "left to evaluate")
	w.fail(ago(30*time.Second), "within the look-back")
	w.fail(ago(time.Second), "new")

	if err := postgres.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), url, w.box)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	raised := func() []string {
		rows, err := conn.Query(t.Context(), `select execution_id from alert order by execution_id`)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	want := []string{"left to evaluate", "new", "raised before", "within the look-back"}
	// The first process dies with the commit of its first page, the second one continues.
	for _, replica := range []string{"dies", "goes on"} {
		store := evaluator.Store(db.Evaluation(time.Minute))
		if replica == "dies" {
			store = &dying{Store: store}
		}
		e := w.newEvaluator(evaluator.Options{Store: store, Replica: replica, PageSize: 1, Workers: 1})
		for range 5 {
			if _, err := e.Tick(t.Context()); err != nil && replica != "dies" {
				t.Fatal(err)
			}
		}
		exec(`update checkpoint set owner = null, token = null, lease_until = null`)
	}
	if got := raised(); !slices.Equal(got, want) {
		t.Errorf("alerts of %q, want %q", got, want)
	}
}

// dying is a store whose process dies after its first commit that contains an alert.
type dying struct {
	evaluator.Store
	dead bool
}

func (d *dying) Commit(ctx context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	if d.dead {
		return evaluator.Committed{}, context.Canceled
	}
	done, err := d.Store.Commit(ctx, b)
	d.dead = len(b.Instances) > 0
	return done, err
}
