package app_test

import (
	"context"
	"testing"
	"time"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

// interrupted does something between a scan and what is made of it.
type interrupted struct {
	*clickhouse.Source
	meanwhile func()
}

func (i *interrupted) Scan(ctx context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	page, err := i.Source.Scan(ctx, s)
	if i.meanwhile != nil {
		i.meanwhile()
	}
	return page, err
}

// TestAnEditTakesTheRuleFromATickUnderWay edits the texts of a rule while one
// replica judges by the former version. Another goes on at once, without waiting
// for the claim to lapse, and nothing of the first one's tick is written.
func TestAnEditTakesTheRuleFromATickUnderWay(t *testing.T) {
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	w.fail(rule.ArmedSinceNS+1000, "a")
	source := &interrupted{Source: w.countedSource().Source.(*clickhouse.Source)}
	slow := w.newEvaluator(evaluator.Options{Source: source, Replica: "slow"})
	other := w.newEvaluator(evaluator.Options{Replica: "other"})
	source.meanwhile = func() {
		source.meanwhile = nil
		if result, err := other.Tick(t.Context()); err != nil || result.Rules != 0 {
			t.Errorf("Tick before the edit = %+v, %v, want the rule claimed by another", result, err)
		}
		definition := rule.Definition
		definition.TitleTemplate = "{{exchange.route}} broke"
		if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition}); err != nil {
			t.Error(err)
		}
		if result, err := other.Tick(t.Context()); err != nil || result.Rules != 1 || result.Alerts != 1 || result.Notifications != 1 {
			t.Errorf("Tick after the edit = %+v, %v, want the rule at once, and its alert", result, err)
		}
	}
	if result, err := slow.Tick(t.Context()); err != nil || result.Rules != 1 || result.Stale != 1 || result.Alerts != 0 || result.Notifications != 0 {
		t.Errorf("Tick that was overtaken = %+v, %v, want it stale", result, err)
	}
	w.wantColumn("titles", `select title from alert`, "order-to-erp broke")
	w.wantColumn("claims", `select count(claimed_by)::text from rule_state`, "0")
	w.tick()
	w.wantColumn("alerts", alertIDs, "a")
	w.wantColumn("owed", `select count(*)::text from notification`, "1")
}

// TestAnEditMakesARuleDue edits what would be evaluated in an hour, and what is
// switched off.
func TestAnEditMakesARuleDue(t *testing.T) {
	w := newWorld(t)
	definition := w.ruleOf(rules.Definition{Name: "hourly"})
	w.tick()
	w.exec(`update rule_state set next_run_at = now() + interval '1 hour'`)
	edit := func(version int64, enabled bool, message string) {
		t.Helper()
		d := definition.Definition
		d.Enabled, d.MessageTemplate = enabled, message
		if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: definition.ID, Version: version, Definition: d}); err != nil {
			t.Fatal(err)
		}
	}
	edit(1, true, "sooner")
	w.wantColumn("due", `select (next_run_at <= now())::text from rule_state`, "true")
	edit(2, false, "sooner")
	edit(3, false, "never")
	w.wantColumn("due although disabled", `select next_run_at::text from rule_state where next_run_at is not null`)
}

// TestTheFormerApplicationIsStillScanned moves a rule to another application:
// what failed before the edit and shows up after it is found, although scans
// name the applications of their rules.
func TestTheFormerApplicationIsStillScanned(t *testing.T) {
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "moved", Scope: rules.Scope{Applications: []string{"orders"}}})
	w.tick()
	before := w.ch.Now(t)
	definition := rule.Definition
	definition.Scope.Applications = []string{"billing"}
	edited, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition})
	if err != nil {
		t.Fatal(err)
	}
	failed := func(id, application string, ended int64) rules.Exchange {
		return rules.Exchange{TenantID: tenant, StartTimeNS: rule.ArmedSinceNS - 1000, EndTimeNS: &ended, ExecutionID: id, Status: rules.Failed, Application: application}
	}
	after := edited.ArmedSinceNS
	w.ch.Insert(t, failed("orders before", "orders", before), failed("billing before", "billing", before),
		failed("orders after", "orders", after), failed("billing after", "billing", after),
		failed("elsewhere", "elsewhere", before))
	if result := w.tick(); result.Scanned != 4 {
		t.Errorf("Tick = %+v, want the four of both applications read, and not the fifth", result)
	}
	w.wantColumn("alerts", alertIDs, "billing after", "orders before")
}

// TestALongerLookBackReachesFormerConditions edits a scope twice under a short
// look-back, which is then made longer: what the first condition decides on, and
// shows up only now, is found.
func TestALongerLookBackReachesFormerConditions(t *testing.T) {
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "moved", Scope: rules.Scope{Applications: []string{"orders"}}})
	d := rule.Definition
	minute := time.Minute.Nanoseconds()
	w.tick()
	w.exec(`update rule_state set armed_since_ns = $1`, rule.ArmedSinceNS-200*minute)
	edit := func(application string, lookBack int, turned int64) {
		t.Helper()
		d.Scope.Applications, d.LookBackSeconds = []string{application}, lookBack
		var err error
		if rule, err = w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: d}); err != nil {
			t.Fatal(err)
		}
		w.exec(`update rule_state set armed_since_ns = $1, former = jsonb_set(former, '{-1,toNs}', to_jsonb($1::bigint))`, turned)
	}
	now := w.ch.Now(t)
	edit("billing", 60, now-150*minute)
	edit("shipping", 60, now-140*minute)
	w.fail(now-145*minute, "while the second stood")
	w.fail(now-160*minute, "while the first stood")
	edit("shipping", 4*3600, now-140*minute)
	w.tick()
	w.wantColumn("alerts", alertIDs, "while the first stood")
}

// TestFormerConditionsAreKept edits a rule that had 150 other conditions before.
func TestFormerConditionsAreKept(t *testing.T) {
	const hour, day = int64(time.Hour), 24 * int64(time.Hour)
	for name, c := range map[string]struct {
		// The conditions stood for a second each, the last one until so long ago.
		agoNS int64
		owed  bool
		want  string
	}{
		"within the look-back":             {hour, false, "151"},
		"within the longest look-back":     {day, false, "100"},
		"before the longest look-back":     {8 * day, false, "1"},
		"while their time is still judged": {8 * day, true, "151"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rule := w.ruleOf(rules.Definition{Name: "edited often"})
			w.tick()
			last := rule.ArmedSinceNS - c.agoNS
			w.exec(`update rule_state set former = (
				select jsonb_agg(jsonb_build_object('scope', '{}'::jsonb, 'filter', '{}'::jsonb, 'fromNs', at - 1000000000, 'toNs', at) order by at)
				from (select $1::bigint - n * 1000000000::bigint as at from generate_series(0, 149) n) era)`, last)
			if c.owed {
				w.exec(`update rule_state set owed_from_ns = $1`, last-day)
			}
			d := rule.Definition
			d.Scope.Applications, d.LookBackSeconds = []string{"orders"}, 7200
			if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: d}); err != nil {
				t.Fatal(err)
			}
			w.wantColumn("conditions kept", `select jsonb_array_length(former)::text from rule_state`, c.want)
		})
	}
}

// TestAnotherFireModeArmsAnew has a rule that counts raise an alert for each
// exchange, and count again: each time, what failed before the edit is history.
func TestAnotherFireModeArmsAnew(t *testing.T) {
	const all = `select coalesce(execution_id, 'count') || ' ' || state from alert order by fired_at, execution_id`
	w := newWorld(t)
	rule := w.counting(rules.Definition{ForDurationSeconds: 3600})
	hour := time.Hour.Nanoseconds()
	counts, each := rule.Definition, rule.Definition
	counts.ForDurationSeconds = 0
	each.FireMode, each.Threshold, each.WindowSeconds, each.ForDurationSeconds, each.LookBackSeconds = rules.PerExchange, 0, 0, 0, 3600
	edit := func(d rules.Definition) rules.Rule {
		t.Helper()
		edited, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: d})
		if err != nil {
			t.Fatal(err)
		}
		rule = edited
		return edited
	}

	w.exec(`update rule_state set armed_since_ns = $1`, rule.ArmedSinceNS-5*hour)
	w.fail(rule.ArmedSinceNS-2*hour, "behind the look-back")
	w.failIn("r", "a", "b", "c")
	w.tick()
	w.wantColumn("while it counts", all, "count PENDING")
	before := w.ch.Now(t)
	w.fail(edit(each).ArmedSinceNS+1000, "d", "e", "f")
	w.fail(before, "late")
	w.tick()
	w.wantColumn("one for each that failed since", all, "d FIRING", "e FIRING", "f FIRING")
	if got := w.reconcile(rule); got.Matching != 0 || got.Missing != 0 {
		t.Errorf("reconciliation = %+v, want nothing of what failed while it counted", got)
	}

	edit(counts)
	w.tick()
	w.wantColumn("none is counted that failed before", all, "d FIRING", "e FIRING", "f FIRING")
	w.failIn("r", "g", "h", "i")
	w.tick()
	w.wantColumn("three that failed since", all, "d FIRING", "e FIRING", "f FIRING", "count FIRING")
	edit(each)
	w.tick()
	w.wantColumn("a count that fires stays", all, "d FIRING", "e FIRING", "f FIRING", "count FIRING")
	edit(counts)
	w.tick()
	w.wantColumn("and is decided on when it counts again", all, "d FIRING", "e FIRING", "f FIRING", "count RESOLVED")
}

// TestAnEditThatWaitedArmsWhenItsTurnComes holds the state of a rule, as a commit
// does, while its fire mode is edited: what the commit judged is not judged again.
func TestAnEditThatWaitedArmsWhenItsTurnComes(t *testing.T) {
	w := newWorld(t)
	rule := w.counting(rules.Definition{})
	d := rule.Definition
	d.FireMode, d.Threshold, d.WindowSeconds = rules.PerExchange, 0, 0
	commit := pgtest.Conn(t, w.pgURL)
	tx, err := commit.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from rule_state for update`); err != nil {
		t.Fatal(err)
	}
	done := make(chan rules.Rule, 1)
	go func() {
		edited, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: d})
		if err != nil {
			t.Error(err)
		}
		done <- edited
	}()
	w.until("the edit waits", func() bool {
		return len(w.column(`select pid::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) > 0
	})
	judged := w.ch.Now(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if edited := <-done; edited.ArmedSinceNS < judged {
		t.Errorf("armed since %d, before what was judged meanwhile, %d", edited.ArmedSinceNS, judged)
	}
}
