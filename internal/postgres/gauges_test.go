package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestOnlyPartitionsWithRulesAreLate has partitions whose last commit is long ago, as when commits
// fail or no replica holds them.
func TestOnlyPartitionsWithRulesAreLate(t *testing.T) {
	e := newEditor(t)
	want := func(what string, age, lag time.Duration) {
		t.Helper()
		got, err := e.db.Reconciliation().Gauges(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		// The clocks go on meanwhile.
		about := func(got, want time.Duration) bool { return got >= want && got < want+10*time.Minute }
		if !about(got.CommitAge, age) || !about(got.Slowest, lag) {
			t.Errorf("%s: last commit %v ago, lag %v; want %v and %v", what, got.CommitAge, got.Slowest, age, lag)
		}
	}
	e.exec(`update checkpoint set committed_at = now() - interval '5 hours', cursor = to_char((now() - interval '5 hours') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"000Z"') || '|e'`)
	want("no rules", 0, 0)
	rule := e.create(definition("a"))
	e.exec(`delete from rule_backfill`)
	want("the partition has a rule", 5*time.Hour, 5*time.Hour)
	e.exec(`update checkpoint set committed_at = null, cursor = null`)
	e.exec(`update rule_state set armed_since_ns = (extract(epoch from now() - interval '2 hours') * 1e9)::bigint`)
	want("it was never committed", 2*time.Hour, 0)
	e.exec(`update checkpoint set committed_at = now()`)
	want("it was committed just now", 0, 0)
	e.exec(`update checkpoint set committed_at = now() - interval '3 hours'`)
	e.exec(`insert into rule_failing (rule_id, alert_id) values ($1, $2)`, rule.ID, uuid.New())
	want("its only rule cannot be evaluated", 0, 0)
	e.create(definition("b"))
	e.exec(`delete from rule_backfill`)
	want("another one can", 3*time.Hour, 0)
	e.exec(`update rule set enabled = false`)
	want("no rule is enabled", 0, 0)
}
