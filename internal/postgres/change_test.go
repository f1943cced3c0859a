package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/rules"
)

// editor changes the rules of a tenant, and reads them as an evaluator does.
type editor struct {
	*fleet
	partition int
	// seen is the revision up to which an evaluator has read.
	seen int64
}

const tenantName = "acme"

func newEditor(tb testing.TB) *editor {
	tb.Helper()
	return &editor{fleet: newFleet(tb), partition: int(xxhash.Sum64String(tenantName) % 8), seen: 1}
}

func definition(name string) rules.Definition {
	return rules.Definition{
		Name: name, Enabled: true, FireMode: rules.PerExchange, Severity: rules.Info, IntervalSeconds: 1, LookBackSeconds: 60,
		Filter: rules.Filter{Statuses: []rules.Status{rules.Failed}},
	}
}

func (e *editor) create(d rules.Definition) rules.Rule {
	e.tb.Helper()
	rule, err := e.db.Rules().Create(context.Background(), tenantName, d)
	if err != nil {
		e.tb.Fatal(err)
	}
	return rule
}

func (e *editor) update(rule rules.Rule, change func(*rules.Definition)) rules.Rule {
	e.tb.Helper()
	d := rule.Definition
	change(&d)
	edited, err := e.db.Rules().Update(context.Background(), tenantName, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: d})
	if err != nil {
		e.tb.Fatal(err)
	}
	return edited
}

func (e *editor) enable(rule rules.Rule, enabled bool) rules.Rule {
	e.tb.Helper()
	rule, err := e.db.Rules().SetEnabled(context.Background(), tenantName, rule.ID, enabled)
	if err != nil {
		e.tb.Fatal(err)
	}
	return rule
}

// read reads what has changed since the last call.
func (e *editor) read() ruleset.Changed {
	e.tb.Helper()
	set, err := e.store.Rules(context.Background(), e.partition, e.seen)
	if err != nil {
		e.tb.Fatal(err)
	}
	e.seen = set.Revision
	return set
}

// want reads, and checks the names of changed rules and the ids of removed ones.
func (e *editor) want(what string, names []string, removed ...uuid.UUID) ruleset.Changed {
	e.tb.Helper()
	before := e.seen
	set := e.read()
	got := []string{}
	for _, r := range set.Rules {
		got = append(got, r.Rule.Name)
	}
	slices.Sort(got)
	if fmt.Sprint(got) != fmt.Sprint(names) || !slices.Equal(set.Removed, removed) {
		e.tb.Errorf("%s: changed are %v, removed %v; want %v and %v", what, got, set.Removed, names, removed)
	}
	if (set.Revision > before) != (len(names)+len(removed) > 0) {
		e.tb.Errorf("%s: the revision went from %d to %d", what, before, set.Revision)
	}
	return set
}

// backfill returns the stored position of a rule, or "" if there is none.
func (e *editor) backfill(id uuid.UUID) string {
	e.tb.Helper()
	return one[string](e.tb, e.conn, `select coalesce((select position || coalesce(' ' || until, '') || case when failing then ' failing' else '' end from rule_backfill where rule_id = $1), '')`, id)
}

// pass moves the evaluation of the rules to the partition, as a pass does.
func (e *editor) pass() {
	e.exec(`update checkpoint set cursor = $1 where partition = $2`, cursor.At(time.Now()).String(), e.partition)
	e.exec(`delete from rule_backfill`)
}

func TestEachChangeOfARuleIsReadAgain(t *testing.T) {
	e := newEditor(t)
	a := e.create(definition("a"))
	set := e.want("creation", []string{"a"})
	if number := one[int](t, e.conn, `select partition from tenant_partition where tenant_id = $1`, tenantName); number != e.partition {
		t.Errorf("the tenant is in partition %d, want %d", number, e.partition)
	}
	// A new rule is behind by its look-back, and has progress of its own.
	wait := int64(time.Minute) + backlog.WaitNS(int64(time.Minute))
	if len(set.Backfills) != 1 || set.Backfills[0].At != startOf(a.ArmedSinceNS-wait) || set.Backfills[0].Until != nil {
		t.Errorf("backfills %+v of a rule armed at %d", set.Backfills, a.ArmedSinceNS)
	}
	e.want("nothing", []string{})
	b := e.create(definition("b"))
	e.want("another one", []string{"b"})
	e.pass()

	a = e.update(a, func(d *rules.Definition) { d.TitleTemplate, d.Severity, d.IntervalSeconds = "t", rules.Critical, 60 })
	if set := e.want("an edit of texts", []string{"a"}); len(set.Backfills) != 0 || set.Rules[0].Rule.TitleTemplate != "t" || len(set.Rules[0].Rule.Former) != 0 {
		t.Errorf("an edit of texts changed progress: %+v", set)
	}
	armed := a.ArmedSinceNS
	a = e.update(a, func(d *rules.Definition) { d.Filter.Statuses = []rules.Status{rules.Completed} })
	set = e.want("an edit of the filter", []string{"a"})
	if r := set.Rules[0].Rule; len(r.Former) != 1 || r.Former[0].FromNS != armed || r.Former[0].ToNS != r.ArmedSinceNS || len(set.Backfills) != 0 {
		t.Errorf("the edit led to %+v with backfills %+v", r, set.Backfills)
	}
	a = e.enable(a, false)
	e.want("disabled", []string{}, a.ID)
	a = e.enable(a, true)
	set = e.want("enabled", []string{"a"})
	if len(set.Backfills) != 1 || set.Backfills[0].RuleID != a.ID || set.Backfills[0].At != startOf(a.ArmedSinceNS-wait) || len(set.Rules[0].Rule.Former) != 0 {
		t.Errorf("enabled: %+v", set)
	}
	a = e.enable(a, false)
	if e.backfill(a.ID) != "" {
		t.Error("a disabled rule has a backfill")
	}
	e.want("disabled again", []string{}, a.ID)
	a = e.update(a, func(d *rules.Definition) {
		d.Enabled, d.FireMode, d.Threshold, d.WindowSeconds, d.LookBackSeconds = true, rules.CountInWindow, 1, 60, 0
	})
	if set := e.want("another fire mode", []string{"a"}); len(set.Backfills) != 0 {
		t.Errorf("a window rule has a backfill: %+v", set.Backfills)
	}
	if err := e.db.Rules().Delete(t.Context(), tenantName, b.ID); err != nil {
		t.Fatal(err)
	}
	e.want("deleted", []string{}, b.ID)
	if _, err := e.db.Rules().Retry(t.Context(), tenantName, a.ID); err != nil {
		t.Fatal(err)
	}
	e.want("retried", []string{"a"})

	// A failed change leaves everything as it is.
	if _, err := e.db.Rules().Create(t.Context(), tenantName, definition("a")); err == nil {
		t.Error("a name was taken twice")
	}
	e.want("a refused creation", []string{})

	// After a failover that lost a revision everything is read again.
	e.seen = 1 << 62
	all, err := e.store.Rules(t.Context(), e.partition, e.seen)
	if err != nil || len(all.Rules) != 1 || !slices.Equal(all.Removed, []uuid.UUID{b.ID}) {
		t.Errorf("after a failover: %+v, %v", all, err)
	}
	if _, err := e.store.Rules(t.Context(), 999, 0); !isStale(err) {
		t.Errorf("Rules of no partition = %v", err)
	}
}

func TestApplyIsOneChange(t *testing.T) {
	e := newEditor(t)
	a, b := e.create(definition("a")), e.create(definition("b"))
	e.read()
	other := definition("a")
	other.MessageTemplate = "m"
	done, err := e.db.Rules().Apply(t.Context(), tenantName, api.RuleSet{Definitions: []rules.Definition{other, definition("c")}, Prune: true})
	if err != nil || len(done.Rules) != 3 {
		t.Fatalf("Apply = %+v, %v", done, err)
	}
	set := e.want("application", []string{"a", "c"}, b.ID)
	if slices.ContainsFunc(set.Backfills, func(f ruleset.Backfill) bool { return f.RuleID == b.ID }) || len(set.Backfills) != 2 || e.backfill(a.ID) == "" {
		t.Errorf("backfills %+v", set.Backfills)
	}
}

// TestChangesFenceCommits changes a rule between the pass and its commit.
func TestChangesFenceCommits(t *testing.T) {
	e := newEditor(t)
	rule := e.create(definition("a"))
	c := e.hold("x").Checkpoints[e.partition]
	batch := evaluator.Batch{Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor}
	done, err := e.store.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	batch.Revision = done.Revision
	e.update(rule, func(d *rules.Definition) { d.Filter.Statuses = []rules.Status{rules.Completed} })
	if _, err := e.store.Commit(t.Context(), batch); !isStale(err) {
		t.Errorf("a commit by the former version = %v", err)
	}
	// Rules of another partition do not matter.
	batch.RulesRevision = e.hold("x").Checkpoints[e.partition].RulesRevision
	for n := 0; ; n++ {
		if other := fmt.Sprint("tenant-", n); int(xxhash.Sum64String(other)%8) != e.partition {
			if _, err := e.db.Rules().Create(t.Context(), other, definition("a")); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if _, err := e.store.Commit(t.Context(), batch); err != nil {
		t.Error(err)
	}
}

// TestManyChangesAtOnce lets many users change the rules of a tenant that is not in any partition
// yet, while passes commit. An evaluator that reads meanwhile misses nothing.
func TestManyChangesAtOnce(t *testing.T) {
	e := newEditor(t)
	const people, each = 6, 8
	var changing sync.WaitGroup
	for n := range people {
		changing.Go(func() {
			for i := range each {
				rule, err := e.db.Rules().Create(context.Background(), tenantName, definition(fmt.Sprintf("%d-%d", n, i)))
				if err == nil && i%2 == 0 {
					_, err = e.db.Rules().SetEnabled(context.Background(), tenantName, rule.ID, false)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { changing.Wait(); close(ended) }()
	known := map[uuid.UUID]bool{}
	follow := func() {
		set := e.read()
		for _, id := range set.Removed {
			delete(known, id)
		}
		for _, r := range set.Rules {
			known[r.Rule.ID] = true
		}
		c := e.hold("x").Checkpoints[e.partition]
		_, err := e.store.Commit(context.Background(), evaluator.Batch{
			Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor,
		})
		if err != nil && !isStale(err) {
			t.Error(err)
		}
	}
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
		}
		follow()
	}
	follow()
	if want := one[int](t, e.conn, `select count(*)::int from rule where enabled`); len(known) != want || want != people*each/2 {
		t.Errorf("an evaluator knows %d rules of %d", len(known), want)
	}
}

// TestArmingFollowsTheSlowerClock has Postgres's clock ahead of the source's, and behind it.
func TestArmingFollowsTheSlowerClock(t *testing.T) {
	e := newEditor(t)
	near := func(what string, ns int64, want time.Time) {
		t.Helper()
		if off := time.Unix(0, ns).Sub(want); off < -30*time.Second || off > 30*time.Second {
			t.Errorf("%s: armed %v off", what, off)
		}
	}
	for offset, want := range map[time.Duration]time.Duration{-time.Hour: -time.Hour, 0: 0, time.Hour: 0} {
		e.exec(`update checkpoint set clock_offset_ns = $1`, offset.Nanoseconds())
		rule := e.create(definition(fmt.Sprint("offset ", offset)))
		near("created", rule.ArmedSinceNS, time.Now().Add(want))
		rule = e.update(rule, func(d *rules.Definition) { d.Filter.Statuses = []rules.Status{rules.Completed} })
		near("edited", rule.ArmedSinceNS, time.Now().Add(want))
		rule = e.enable(e.enable(rule, false), true)
		near("enabled", rule.ArmedSinceNS, time.Now().Add(want))
	}
	// The clock of the source is set back: no condition is in force for a negative time.
	e.exec(`update checkpoint set clock_offset_ns = 0`)
	rule := e.create(definition("set back"))
	e.exec(`update checkpoint set clock_offset_ns = $1`, -time.Hour.Nanoseconds())
	if edited := e.update(rule, func(d *rules.Definition) { d.Filter.Statuses = []rules.Status{rules.Completed} }); edited.ArmedSinceNS != rule.ArmedSinceNS {
		t.Errorf("the new condition is in force from %d on, before the rule was armed at %d", edited.ArmedSinceNS, rule.ArmedSinceNS)
	}
}

// TestPeopleEndFailures lets a user edit, disable and retry rules that fail.
func TestPeopleEndFailures(t *testing.T) {
	e := newEditor(t)
	for name, see := range map[string]func(rules.Rule) error{
		"edit": func(r rules.Rule) error {
			e.update(r, func(d *rules.Definition) { d.MessageTemplate = "m" })
			return nil
		},
		"retry": func(r rules.Rule) error {
			_, err := e.db.Rules().Retry(context.Background(), tenantName, r.ID)
			return err
		},
		"disable": func(r rules.Rule) error { e.enable(r, false); return nil },
		"delete":  func(r rules.Rule) error { return e.db.Rules().Delete(context.Background(), tenantName, r.ID) },
	} {
		rule := e.create(definition(name))
		c := e.hold("x").Checkpoints[e.partition]
		at := cursor.Position{StartTimeNS: 42}
		_, err := e.store.Commit(t.Context(), evaluator.Batch{
			Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor,
			Health: map[uuid.UUID]ruleset.Health{rule.ID: {Problem: "no", Failed: true}}, Backfills: []ruleset.Backfill{{RuleID: rule.ID, At: at, Failing: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		health, err := e.db.Rules().Health(t.Context(), tenantName, []uuid.UUID{rule.ID})
		if h := health[rule.ID]; err != nil || !h.Failing || h.LastError != "no" || h.Cursor == nil || *h.Cursor != at {
			t.Errorf("%s: health %+v, %v", name, h, err)
		}
		if err := see(rule); err != nil {
			t.Fatal(err)
		}
		if n := one[int](t, e.conn, `select (select count(*) from rule_failing)::int + (select count(*) from alert where state <> 'RESOLVED')::int
			+ (select count(*) from rule_backfill where failing)::int + (select count(*) from rule_state where problem is not null)::int`); n != 0 {
			t.Errorf("%s: %d rows still report the failure", name, n)
		}
		want := ""
		if name == "edit" || name == "retry" {
			want = at.String()
		}
		if got := e.backfill(rule.ID); got != want {
			t.Errorf("%s: the rule goes on from %q, want %q", name, got, want)
		}
	}
}
