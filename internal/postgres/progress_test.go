package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/reconcile"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/postgres"
	"tocsin/rules"
)

// TestHealthReportsProgress reads rules that progress with their partition, by themselves, and not at
// all.
func TestHealthReportsProgress(t *testing.T) {
	e := newEditor(t)
	together, alone, behind, disabled := e.create(definition("together")), e.create(definition("alone")), e.create(definition("behind")), e.create(definition("disabled"))
	window := e.create(rules.Definition{
		Name: "window", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Info, IntervalSeconds: 30, Threshold: 1, WindowSeconds: 60,
	})
	e.enable(disabled, false)
	now := time.Now()
	at := func(ago time.Duration) cursor.Position { return cursor.At(now.Add(-ago)) }
	c := e.hold("x").Checkpoints[e.partition]
	// The rules look back a minute.
	reach := int64(time.Minute) + backlog.WaitNS(int64(time.Minute))
	fresh := at(time.Minute)
	fresh.StartTimeNS -= reach
	foreign := at(time.Second)
	foreign.ExecutionID = "of another tenant"
	_, err := e.store.Commit(t.Context(), evaluator.Batch{
		Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor, Cursor: &foreign,
		Backfill:  &backlog.Mark{FromNS: now.Add(-time.Hour).UnixNano(), CursorNS: now.Add(-5 * time.Second).UnixNano()},
		Backfills: []ruleset.Backfill{{RuleID: alone.ID, At: fresh}, {RuleID: behind.ID, At: at(2 * time.Hour), Until: &foreign}, {RuleID: together.ID, At: foreign, Until: &foreign}},
		Evaluated: []uuid.UUID{window.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := []uuid.UUID{together.ID, alone.ID, behind.ID, disabled.ID, window.ID}
	health, err := e.db.Rules().Health(t.Context(), tenantName, ids)
	if err != nil {
		t.Fatal(err)
	}
	// None evaluates what the partition marked an hour ago.
	mark := now.Add(-5*time.Second).UnixNano() - reach
	for _, want := range []struct {
		rule   rules.Rule
		cursor *cursor.Position
		fromNS int64
	}{
		{together, new(at(time.Second)), mark}, {alone, new(at(time.Minute)), fresh.StartTimeNS}, {behind, new(at(time.Second)), at(2 * time.Hour).StartTimeNS}, {disabled, nil, 0}, {window, nil, 0},
	} {
		h := health[want.rule.ID]
		if (h.Cursor == nil) != (want.cursor == nil) || h.Cursor != nil && *h.Cursor != *want.cursor || (h.Lag == nil) != (want.cursor == nil) {
			t.Errorf("%s: cursor %v, lag %v, want %v", want.rule.Name, h.Cursor, h.Lag, want.cursor)
		}
		if (h.BackfillFrom == nil) != (want.fromNS == 0) || h.BackfillFrom != nil && h.BackfillFrom.UnixNano() != want.fromNS {
			t.Errorf("%s: backfill from %v, want %v", want.rule.Name, h.BackfillFrom, time.Unix(0, want.fromNS).UTC())
		}
		if h.Partition == nil || *h.Partition != e.partition || h.Failing || h.LastError != "" {
			t.Errorf("%s: %+v", want.rule.Name, h)
		}
	}
	for _, want := range []struct {
		rule rules.Rule
		from cursor.Position
	}{{together, at(5 * time.Second)}, {alone, fresh}, {behind, at(2 * time.Hour)}} {
		_, progress, err := e.db.Reconciliation().Reconcilable(t.Context(), tenantName, want.rule.ID)
		if err != nil || progress.LookBackFromNS != want.from.StartTimeNS || progress.Earlier != nil {
			t.Errorf("%s: progress %+v, %v; want its look-back to be counted from %v", want.rule.Name, progress, err, want.from)
		}
	}
	if h := health[window.ID]; h.LastRunAt == nil || h.NextRunAt == nil || h.NextRunAt.Sub(*h.LastRunAt) != 30*time.Second {
		t.Errorf("the window rule ran at %v, and next at %v", h.LastRunAt, h.NextRunAt)
	}
	if lag := *health[alone.ID].Lag; lag < time.Minute || lag > 2*time.Minute {
		t.Errorf("a rule that was armed a minute ago, and not evaluated since, has a lag of %v", lag)
	}

	status, err := e.db.Record(nil).Status(t.Context(), tenantName)
	if err != nil || status.Rules != 5 || status.EnabledRules != 4 || status.FailingRules != 0 || status.Backfilling != 3 {
		t.Errorf("Status = %+v, %v", status, err)
	}
	if status.Slowest == nil || status.Slowest.RuleID != alone.ID || status.BackfillFrom == nil || status.BackfillFrom.UnixNano() != at(2*time.Hour).StartTimeNS {
		t.Errorf("slowest %+v, backfill from %v", status.Slowest, status.BackfillFrom)
	}
	if p := status.Partitions; len(p) != 8 || p[e.partition].Owner != "x" || p[e.partition].CursorAt.UnixNano() != foreign.StartTimeNS || p[e.partition].BackfillFrom == nil {
		t.Errorf("partitions %+v", p)
	}
}

// TestADeferredRuleIsBehind has two rules that their partition evaluates and that have something of their own to read up to there:
// one of a deferred tenant, which has missed the last two hours, and a new one, which is not behind by its look-back.
func TestADeferredRuleIsBehind(t *testing.T) {
	e := newEditor(t)
	deferred, fresh := e.create(definition("deferred")), e.create(definition("new"))
	e.exec(`update rule_state set armed_since_ns = armed_since_ns - 3 * 3600 * 1000000000::bigint where rule_id = $1`, deferred.ID)
	c := e.hold("x").Checkpoints[e.partition]
	now := time.Now()
	at, from := cursor.At(now.Add(-time.Second)), cursor.At(now.Add(-2*time.Hour))
	_, err := e.store.Commit(t.Context(), evaluator.Batch{
		Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor, Cursor: &at,
		Backfills: []ruleset.Backfill{{RuleID: deferred.ID, At: from, Until: &at}, {RuleID: fresh.ID, At: from, Until: &at}},
	})
	if err != nil {
		t.Fatal(err)
	}
	health, err := e.db.Rules().Health(t.Context(), tenantName, []uuid.UUID{deferred.ID, fresh.ID})
	if err != nil {
		t.Fatal(err)
	}
	if h := health[deferred.ID]; h.Cursor == nil || *h.Cursor != from || h.Lag == nil || *h.Lag < 2*time.Hour {
		t.Errorf("the rule of a deferred tenant is at %v, behind by %v; want %v and two hours", h.Cursor, h.Lag, from)
	}
	if h := health[fresh.ID]; h.Cursor == nil || *h.Cursor != at || h.Lag == nil || *h.Lag > time.Hour {
		t.Errorf("a new rule is at %v, behind by %v; want %v", h.Cursor, h.Lag, at)
	}
	status, err := e.db.Record(nil).Status(t.Context(), tenantName)
	if err != nil || status.Slowest == nil || status.Slowest.RuleID != deferred.ID || status.Slowest.Lag < 2*time.Hour {
		t.Errorf("slowest %+v, %v", status.Slowest, err)
	}
}

// TestTheSlowestRuleHasItsOwnName asks for the slowest of two rules that are equally far, and whose
// names are in another order than their ids.
func TestTheSlowestRuleHasItsOwnName(t *testing.T) {
	e := newEditor(t)
	names := map[uuid.UUID]string{}
	for _, name := range []string{"zinc", "amber"} {
		names[e.create(definition(name)).ID] = name
	}
	c := e.hold("x").Checkpoints[e.partition]
	at := cursor.At(time.Now())
	batch := evaluator.Batch{
		Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor, Cursor: &at,
	}
	for id := range names {
		batch.Backfills = append(batch.Backfills, ruleset.Backfill{RuleID: id, At: at, Until: &at})
	}
	if _, err := e.store.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	status, err := e.db.Record(nil).Status(t.Context(), tenantName)
	if err != nil || status.Slowest == nil || status.Slowest.RuleName != names[status.Slowest.RuleID] {
		t.Errorf("slowest %+v of %v, %v", status.Slowest, names, err)
	}
}

// TestWindowRulesShowHowFarTheyAre has a tenant with a window rule alone, which reads what its partition reads.
func TestWindowRulesShowHowFarTheyAre(t *testing.T) {
	e := newEditor(t)
	d := definition("counts")
	d.FireMode, d.Threshold, d.WindowSeconds, d.LookBackSeconds = rules.CountInWindow, 2, 60, 0
	id := e.create(d).ID
	c := e.hold("x").Checkpoints[e.partition]
	at := cursor.At(time.Now().Add(-time.Hour))
	if _, err := e.store.Commit(t.Context(), evaluator.Batch{
		Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor, Cursor: &at,
	}); err != nil {
		t.Fatal(err)
	}
	status, err := e.db.Record(nil).Status(t.Context(), tenantName)
	if err != nil || status.Slowest == nil || status.Slowest.RuleID != id {
		t.Errorf("slowest %+v, %v", status.Slowest, err)
	}
}

func TestReplicasShowTheirPartitions(t *testing.T) {
	e := newEditor(t)
	e.create(definition("a"))
	e.beat("x", "y")
	for range 2 {
		e.hold("x")
		e.hold("y")
	}
	list, err := e.db.Replicas().List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("List = %+v, %v", list, err)
	}
	seen := map[int]bool{}
	for _, r := range list {
		owns := slices.Contains(r.Partitions, e.partition)
		if len(r.Partitions) != 4 || (r.ClaimedRules == 1) != owns || (r.ClaimedRules == 0) == owns {
			t.Errorf("replica %+v", r)
		}
		for _, number := range r.Partitions {
			seen[number] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("replicas show %d partitions", len(seen))
	}
	e.exec(`update checkpoint set lease_until = now() - interval '1 s'`)
	list, err = e.db.Replicas().List(t.Context())
	if err != nil || slices.ContainsFunc(list, func(r api.ReplicaRecord) bool { return len(r.Partitions) != 0 }) {
		t.Errorf("expired leases are shown: %+v, %v", list, err)
	}
}

// TestLateDroppedIsCountedOnce stores the findings of comparisons that cover the same hours.
func TestLateDroppedIsCountedOnce(t *testing.T) {
	e := newEditor(t)
	rule, store := e.create(definition("a")), e.db.Reconciliation()
	hour := func(n int64) int64 { return time.Now().Truncate(time.Hour).UnixNano() - n*int64(time.Hour) }
	want := func(want int64) {
		t.Helper()
		gauges, err := store.Gauges(t.Context(), time.Minute)
		if err != nil || gauges.LateDropped != want || gauges.Backfills != 1 || len(gauges.Partitions) != 8 {
			t.Errorf("gauges %+v, %v; want %d late-dropped", gauges, err, want)
		}
		health, err := e.db.Rules().Health(t.Context(), tenantName, []uuid.UUID{rule.ID})
		if err != nil || health[rule.ID].LateDropped != want {
			t.Errorf("health %+v, %v; want %d late-dropped", health[rule.ID], err, want)
		}
	}
	want(0)
	for _, found := range []struct {
		byHour map[int64]int64
		want   int64
	}{
		{map[int64]int64{hour(0): 2, hour(800): 5}, 7},
		{map[int64]int64{hour(0): 2}, 7},
		{map[int64]int64{hour(0): 3, hour(1): 1}, 9},
		{map[int64]int64{hour(0): 1}, 9},
		{nil, 9},
	} {
		if err := store.Compared(t.Context(), &reconcile.Reconciliation{RuleID: rule.ID, LateDroppedByHour: found.byHour}); err != nil {
			t.Fatal(err)
		}
		want(found.want)
	}
	// Old hours are summed up, and count as before.
	_, err := store.Pass(t.Context(), 0, noPass)
	if n := one[int](t, e.conn, `select count(*)::int from late_dropped`); err != nil || n != 2 {
		t.Errorf("%d hours are kept, %v", n, err)
	}
	want(9)
}

// TestTheTotalOfLateDroppedNeverFalls deletes a rule for which late-dropped exchanges were counted, and has its hours
// become old. A fall of the number would be a reset of the counter, after which Prometheus counts all of them again.
func TestTheTotalOfLateDroppedNeverFalls(t *testing.T) {
	e := newEditor(t)
	store := e.db.Reconciliation()
	hour := func(n int64) int64 { return time.Now().Truncate(time.Hour).UnixNano() - n*int64(time.Hour) }
	total := func(when string, want int64) {
		t.Helper()
		if gauges, err := store.Gauges(t.Context(), time.Minute); err != nil || gauges.LateDropped != want {
			t.Errorf("%s: %d late-dropped, %v; want %d", when, gauges.LateDropped, err, want)
		}
	}
	fold := func() {
		t.Helper()
		if _, err := store.Pass(t.Context(), 0, noPass); err != nil {
			t.Fatal(err)
		}
	}
	gone, stays := e.create(definition("a")), e.create(definition("b"))
	for _, rule := range []uuid.UUID{gone.ID, stays.ID} {
		if err := store.Compared(t.Context(), &reconcile.Reconciliation{RuleID: rule, LateDroppedByHour: map[int64]int64{hour(0): 3, hour(800): 4}}); err != nil {
			t.Fatal(err)
		}
	}
	fold()
	total("of two rules", 14)
	if err := e.db.Rules().Delete(t.Context(), tenantName, gone.ID); err != nil {
		t.Fatal(err)
	}
	total("once a rule is deleted", 14)
	if _, err := e.conn.Exec(t.Context(), `update late_dropped set hour_ns = $1`, hour(800)); err != nil {
		t.Fatal(err)
	}
	fold()
	total("once its hours are added up", 14)
	if err := store.Compared(t.Context(), &reconcile.Reconciliation{RuleID: stays.ID, LateDroppedByHour: map[int64]int64{hour(0): 1}, LateDroppedNew: 2}); err != nil {
		t.Fatal(err)
	}
	total("after another comparison", 17)
	health, err := e.db.Rules().Health(t.Context(), tenantName, []uuid.UUID{stays.ID})
	if err != nil || health[stays.ID].LateDropped != 10 {
		t.Errorf("the rule that stays has %d late-dropped, %v; want 10", health[stays.ID].LateDropped, err)
	}
	if err := store.Compared(t.Context(), &reconcile.Reconciliation{RuleID: gone.ID, LateDroppedNew: 5}); err != nil {
		t.Fatal(err)
	}
	total("after a comparison of a rule that is gone", 17)
}

// TestAComparisonIsKept stores what comparisons of a rule leave, the last of which the next one reads.
func TestAComparisonIsKept(t *testing.T) {
	e := newEditor(t)
	rule, store := e.create(definition("a")), e.db.Reconciliation()
	for _, c := range []*reconcile.Comparison{
		{Version: 1, PassedNS: 5, Parts: []reconcile.Part{{FromNS: 3, ToNS: 9_007_199_254_740_993, Missing: []string{"a", cursor.Key("\x00\xff"), `"`}, CutOff: true}}},
		{Version: 2, Late: []string{"é"}},
	} {
		if err := store.Compared(t.Context(), &reconcile.Reconciliation{RuleID: rule.ID, Comparison: c}); err != nil {
			t.Fatal(err)
		}
		_, progress, err := store.Reconcilable(t.Context(), tenantName, rule.ID)
		if err != nil || !cmp.Equal(progress.Earlier, c) {
			t.Errorf("read %+v, %v; want %+v", progress, err, c)
		}
	}
	if err := e.db.Rules().Delete(t.Context(), tenantName, rule.ID); err != nil {
		t.Fatal(err)
	}
	if err := store.Compared(t.Context(), &reconcile.Reconciliation{RuleID: rule.ID, Comparison: &reconcile.Comparison{}}); err != nil {
		t.Error(err)
	}
	if n := one[int](t, e.conn, `select count(*)::int from rule_comparison`); n != 0 {
		t.Errorf("%d comparisons of a deleted rule", n)
	}
}

// noPass is a pass that compares nothing.
func noPass(context.Context, uuid.UUID) (postgres.ReconcilePass, error) {
	return postgres.ReconcilePass{}, nil
}
