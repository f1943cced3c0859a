package app_test

import (
	"context"
	"testing"
	"time"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

// TestPeopleChangeARuleInTheMidstOfAPass changes one of two rules after exchanges were read and
// before their alerts are committed. Nothing of that commit is written, and the next pass raises
// alerts by the changed rules.
func TestPeopleChangeARuleInTheMidstOfAPass(t *testing.T) {
	t.Parallel()
	both := []string{"a x", "a y", "b x", "b y"}
	for name, c := range map[string]struct {
		does func(ctx context.Context, w *world, rule rules.Rule) error
		want []string
	}{
		"edits the texts": {func(ctx context.Context, w *world, rule rules.Rule) error {
			rule.TitleTemplate = "it broke"
			_, err := w.db.Rules().Update(ctx, tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: rule.Definition})
			return err
		}, both},
		"edits the scope": {func(ctx context.Context, w *world, rule rules.Rule) error {
			rule.Scope.Applications = []string{"elsewhere"}
			_, err := w.db.Rules().Update(ctx, tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: rule.Definition})
			return err
		}, []string{"a x", "b x", "b y"}},
		"retries": {func(ctx context.Context, w *world, rule rules.Rule) error {
			_, err := w.db.Rules().Retry(ctx, tenant, rule.ID)
			return err
		}, both},
		"disables": {func(ctx context.Context, w *world, rule rules.Rule) error {
			_, err := w.db.Rules().SetEnabled(ctx, tenant, rule.ID, false)
			return err
		}, []string{"b x", "b y"}},
		"disables and enables": {func(ctx context.Context, w *world, rule rules.Rule) error {
			if _, err := w.db.Rules().SetEnabled(ctx, tenant, rule.ID, false); err != nil {
				return err
			}
			_, err := w.db.Rules().SetEnabled(ctx, tenant, rule.ID, true)
			return err
		}, []string{"a y", "b x", "b y"}},
		"deletes": {func(ctx context.Context, w *world, rule rules.Rule) error {
			return w.db.Rules().Delete(ctx, tenant, rule.ID)
		}, []string{"b x", "b y"}},
		"creates another": {func(ctx context.Context, w *world, rule rules.Rule) error {
			rule.Name, rule.WebhookIDs = "c", nil
			_, err := w.db.Rules().Create(ctx, tenant, rule.Definition)
			return err
		}, []string{"a x", "a y", "b x", "b y", "c y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			made := w.namedRules("a", "b")
			source := w.watched()
			e := w.newEvaluator(evaluator.Options{Source: source})
			if _, err := w.tickWith(e); err != nil {
				t.Fatal(err)
			}
			before := w.column(cursors)
			w.fail(w.ch.Now(t), "x")
			source.scanned = func() {
				source.scanned = nil
				if err := c.does(t.Context(), w, made["a"]); err != nil {
					t.Error(err)
				}
			}
			w.wantStale(e)
			w.wantColumn("alerts at first", alertsOf)
			w.wantColumn("cursors at first", cursors, before...)
			w.fail(w.ch.Now(t), "y")
			if result, err := w.tickWith(e); err != nil || result.Failed+result.Stale > 0 {
				t.Errorf("Tick = %+v, %v", result, err)
			}
			w.wantColumn("alerts", alertsOf, c.want...)
			if name == "edits the texts" {
				w.wantColumn("titles", `select distinct title from alert join rule using (rule_id) where name = 'a'`, "it broke")
			}
			w.wantColumn("alerts without a single notification", `select alert_id::text from alert a left join notification n using (alert_id)
				join rule r on r.rule_id = a.rule_id where r.name <> 'c' group by alert_id having count(n.alert_id) <> 1`)
		})
	}
}

// TestTheFormerApplicationIsStillScanned changes the application of a rule: exchanges that failed
// before the edit and become visible afterwards are found, although scans contain the applications
// of their rules.
func TestTheFormerApplicationIsStillScanned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "moved", Scope: rules.Scope{Applications: []string{"orders"}}})
	w.tick()
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
	before := after - 1
	w.ch.Insert(t, failed("orders before", "orders", before), failed("billing before", "billing", before),
		failed("orders after", "orders", after), failed("billing after", "billing", after),
		failed("elsewhere", "elsewhere", before))
	if result := w.tick(); result.Scanned != 4 || result.Alerts != 2 {
		t.Errorf("Tick = %+v, want the four of both applications read, and not the fifth", result)
	}
	w.wantColumn("alerts", alertIDs, "billing after", "orders before")
}

// TestALongerLookBackReachesFormerConditions edits a scope twice with a short look-back, which is
// then made longer: an exchange to which the first condition applies, and which becomes visible
// only now, is found.
func TestALongerLookBackReachesFormerConditions(t *testing.T) {
	t.Parallel()
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
	w.fail(now-145*minute, "during the second")
	w.fail(now-160*minute, "during the first")
	edit("shipping", 4*3600, now-140*minute)
	w.tick()
	w.wantColumn("alerts", alertIDs, "during the first")
}

// TestFormerConditionsAreKept edits a rule that had 150 other conditions before.
func TestFormerConditionsAreKept(t *testing.T) {
	t.Parallel()
	const hour, day = int64(time.Hour), 24 * int64(time.Hour)
	for name, c := range map[string]struct {
		// The conditions held for a second each, the last one until the given time ago.
		agoNS   int64
		written bool
		want    string
	}{
		"within the look-back":                {hour, false, "151"},
		"within the longest look-back":        {day, false, "100"},
		"before the longest look-back":        {8 * day, false, "1"},
		"while their time is still evaluated": {8 * day, true, "151"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.ruleOf(rules.Definition{Name: "edited often"})
			w.tick()
			last := rule.ArmedSinceNS - c.agoNS
			w.exec(`update rule_state set former = (
				select jsonb_agg(jsonb_build_object('scope', '{}'::jsonb, 'filter', '{}'::jsonb, 'fromNs', at - 1000000000, 'toNs', at) order by at)
				from (select $1::bigint - n * 1000000000::bigint as at from generate_series(0, 149) n) era)`, last)
			if c.written {
				w.exec(`update checkpoint set backfill_from_ns = $1, backfill_cursor_ns = $1`, last-day)
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

// TestAnotherFireModeArmsTheRuleAgain has a rule that counts, then raises an alert for each exchange, and
// counts again: each time, what failed before the edit is ignored.
func TestAnotherFireModeArmsTheRuleAgain(t *testing.T) {
	t.Parallel()
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
	w.wantColumn("nobody could decide on a count any more: it is resolved", all, "d FIRING", "e FIRING", "f FIRING", "count RESOLVED")
	edit(counts)
	w.tick()
	w.wantColumn("and what was counted before counts no more", all, "d FIRING", "e FIRING", "f FIRING", "count RESOLVED")
}

// TestAnEditThatWaitedArmsWhenItsTurnComes locks the checkpoint of a rule, as a commit does, while
// its fire mode is edited: what the commit evaluated is not evaluated again.
func TestAnEditThatWaitedArmsWhenItsTurnComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.counting(rules.Definition{})
	d := rule.Definition
	d.FireMode, d.Threshold, d.WindowSeconds = rules.PerExchange, 0, 0
	commit := pgtest.Conn(t, w.pgURL)
	tx, err := commit.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from checkpoint for update`); err != nil {
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
	if edited := await(t, "it is done", done); edited.ArmedSinceNS < judged {
		t.Errorf("armed since %d, before what was evaluated meanwhile, %d", edited.ArmedSinceNS, judged)
	}
}
