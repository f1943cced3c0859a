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

// TestRulesThatFailAreNotBehind has a rule that reads by itself: it is behind while its tenant is deferred, and does not count
// while it cannot be evaluated, so that it does not hide others.
func TestRulesThatFailAreNotBehind(t *testing.T) {
	e := newEditor(t)
	rule := e.create(definition("a"))
	e.exec(`delete from rule_backfill`)
	e.exec(`update checkpoint set committed_at = now(), cursor = to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"000Z"') || '|e'`)
	e.exec(`insert into rule_backfill (rule_id, position, failing) values ($1, to_char((now() - interval '2 hours') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"000Z"') || '|e', false)`, rule.ID)
	slowest := func() time.Duration {
		got, err := e.db.Reconciliation().Gauges(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return got.Slowest
	}
	if got := slowest(); got < 2*time.Hour {
		t.Errorf("a deferred rule is behind by %v, want two hours", got)
	}
	e.exec(`update rule_backfill set failing = true`)
	if got := slowest(); got > time.Hour {
		t.Errorf("a rule that fails counts as %v behind", got)
	}
}
