package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// TestReconciliationOfWindowRules deletes alerts of window rules, changes their content, and has
// exchanges that become visible late, for each kind of rule.
func TestReconciliationOfWindowRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := w.ch.Now(t)
	ago := func(d time.Duration) int64 { return now - d.Nanoseconds() }
	base := rules.Definition{Enabled: true, Severity: rules.Warning, IntervalSeconds: 1, WindowSeconds: 300, GroupBy: rules.GroupByRoute}
	kinds := map[string]func(d *rules.Definition){
		"count": func(d *rules.Definition) { d.FireMode, d.Threshold = rules.CountInWindow, 5 },
		"customers": func(d *rules.Definition) {
			d.FireMode, d.Threshold, d.GroupBy, d.GroupByAttribute = rules.CountInWindow, 5, rules.GroupByAttribute, "customer"
		},
		"ratio": func(d *rules.Definition) { d.FireMode, d.Percent, d.MinVolume = rules.RatioInWindow, 40, 10 },
		"duration": func(d *rules.Definition) {
			d.FireMode, d.Percentile, d.DurationMS, d.MinVolume = rules.DurationInWindow, 95, 200, 10
		},
		"absent": func(d *rules.Definition) {
			d.FireMode, d.Threshold, d.Expected = rules.AbsentInWindow, 1, []string{"gone"}
		},
	}
	all := map[string]rules.Rule{}
	for name, change := range kinds {
		d := base
		d.Name = name
		change(&d)
		if d.FireMode == rules.DurationInWindow || d.FireMode == rules.AbsentInWindow {
			d.Filter.Statuses = []rules.Status{rules.Completed, rules.Failed}
		}
		rule, err := w.db.Rules().Create(t.Context(), tenant, d)
		if err != nil {
			t.Fatal(err)
		}
		w.armed(rule, ago(3*time.Hour))
		all[name] = rule
	}
	w.exec(`update rule set updated_at = now() - interval '3 hours'`)
	// On one route half of all exchanges fail, after a long time; it ends 14 minutes before the
	// watermark of the last pass. On the other route none fails.
	var list []rules.Exchange
	for at := ago(50 * time.Minute); at < ago(20*time.Minute); at += 2 * time.Second.Nanoseconds() {
		for i, route := range []string{"bad", "bad", "good"} {
			e := rules.Exchange{
				TenantID: tenant, StartTimeNS: at - 300*time.Millisecond.Nanoseconds(), EndTimeNS: new(at + int64(i)), ExecutionID: fmt.Sprint(at, i), Application: "orders",
				Route: route, Status: rules.Completed, DurationNS: 300e6, Attributes: map[string]string{"customer": "of " + route},
			}
			if route == "good" {
				e.DurationNS, e.StartTimeNS = 1e6, at
			}
			if i == 0 {
				e.Status, e.ErrorMessage = rules.Failed, "refused"
			}
			list = append(list, e)
		}
	}
	w.ch.Insert(t, list...)
	// One pass while it lasts, one when it is over: windows end at the watermark.
	passAt := func(settle time.Duration) {
		t.Helper()
		if _, err := w.tickWith(w.newEvaluator(evaluator.Options{Settle: settle})); err != nil {
			t.Fatal(err)
		}
	}
	passAt(40 * time.Minute)
	passAt(25 * time.Minute)
	passAt(24*time.Minute + 30*time.Second)
	w.exec(`update checkpoint set watched_since_ns = $1`, ago(3*time.Hour))
	passAt(6 * time.Minute)
	passAt(5*time.Minute + 30*time.Second)
	w.exec(`update rule_state set evaluated_since = now() - interval '2 hours'`)
	if got := w.column(`select r.name || ' ' || coalesce(a.group_key, a.message) || ' ' || a.state from alert a join rule r using (rule_id) order by 1`); len(got) == 0 {
		t.Fatal("nothing was raised")
	} else {
		t.Log(got)
	}

	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	store := w.db.Reconciliation()
	compare := func(name string) reconcile.Reconciliation {
		t.Helper()
		r := &reconcile.Reconciler{Source: source, Alerts: store, Windows: source, Groups: store}
		got, err := r.Rule(t.Context(), tenant, all[name].ID, time.Hour)
		if err != nil {
			t.Fatal(name, err)
		}
		return got
	}
	for name := range all {
		if name == "absent" {
			continue
		}
		if got := compare(name); got.Missing+got.Different+got.Unexpected+got.Late+got.Unchecked != 0 || got.Matching == 0 || got.Alerted != got.Matching {
			t.Errorf("%s, when all is well: %+v", name, got)
		}
	}

	// The content of the alert.
	kind := func(got reconcile.Reconciliation) string {
		var found []string
		for _, f := range got.Findings {
			found = append(found, string(f.Kind)+" "+f.Group)
		}
		return strings.Join(found, ", ")
	}
	of := func(name string) string { return "rule_id = '" + all[name].ID.String() + "'" }
	w.exec(`update alert set count = jsonb_set(count, '{fired,observed}', '400') where ` + of("count"))
	if got := compare("count"); got.Different != 1 || kind(got) != "DIFFERENT bad" {
		t.Errorf("a count that is too high: %s, %+v", kind(got), got)
	}
	w.exec(`update alert set count = jsonb_set(count, '{fired,observed}', '70') where ` + of("count"))
	if got := compare("count"); got.Different != 1 || kind(got) != "DIFFERENT bad" {
		t.Errorf("a count that is too low by more than is late: %s, %+v", kind(got), got)
	}
	w.exec(`update alert set count = jsonb_set(count, '{fired,observed}', '4') where ` + of("count"))
	if got := compare("count"); got.Unexpected != 1 || kind(got) != "UNEXPECTED bad" {
		t.Errorf("a count below the threshold: %s, %+v", kind(got), got)
	}
	w.exec(`update alert set count = jsonb_set(count, '{fired,durationNs}', '5') where ` + of("duration"))
	if got := compare("duration"); got.Different != 1 {
		t.Errorf("another percentile: %s, %+v", kind(got), got)
	}
	w.exec(`update alert set count = jsonb_set(count, '{fired,volume}', '200') where ` + of("ratio"))
	if got := compare("ratio"); got.Different != 1 {
		t.Errorf("another volume: %s, %+v", kind(got), got)
	}

	// An alert that does not exist.
	w.exec(`delete from notification; delete from alert where ` + of("count") + ` or ` + of("customers"))
	for _, name := range []string{"count", "customers"} {
		if got := compare(name); got.Missing != 1 || len(got.MissingSample) != 1 || !strings.Contains(kind(got), "MISSING") {
			t.Errorf("%s without its alert: %+v", name, got)
		}
	}
	if out, code := w.command("reconcile", "--confirm=0s", "--hours=1", "--rule="+all["count"].ID.String()); code != 1 || !strings.Contains(out, "missing \"bad\"") {
		t.Errorf("exit %d, %s", code, out)
	}
	// No evaluation looked at it at the time.
	w.exec(`update rule_state set evaluated_since = now() - interval '10 minutes' where ` + of("count"))
	if got := compare("count"); got.Missing != 0 || got.Unchecked != 1 || !strings.Contains(got.Findings[0].Why, "not evaluated") {
		t.Errorf("count, while it was not evaluated: %+v", got)
	}

	// What became visible after the window was counted, shortly before its end, is late.
	var late []rules.Exchange
	var firedTo int64
	if _, err := fmt.Sscan(w.column(`select count->'fired'->>'toNs' from alert where ` + of("duration"))[0], &firedTo); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		at := firedTo - 7*time.Second.Nanoseconds()
		late = append(late, rules.Exchange{
			TenantID: tenant, StartTimeNS: at, EndTimeNS: &at, ExecutionID: fmt.Sprint("late ", i), Route: "bad", Application: "orders",
			Status: rules.Failed, DurationNS: 300e6,
		})
	}
	w.exec(`update alert set count = jsonb_set(count, '{fired,durationNs}', '300000000') where ` + of("duration"))
	w.ch.Insert(t, late...)
	got := compare("duration")
	if got.Late != 1 || got.Different != 0 || got.LateBy < time.Second || got.LateBy > 10*time.Second {
		t.Errorf("three that came late: %+v", got)
	}

	// Another condition applies from now on, and what the alert was about is not known.
	w.exec(`update rule_state set armed_since_ns = $1, former = '[]' where `+of("duration"), ago(15*time.Minute))
	if got := compare("duration"); got.Unchecked == 0 || got.Different+got.Late+got.Unexpected != 0 {
		t.Errorf("armed again: %+v", got)
	}
	// What the source has deleted is not reported as different.
	if err := w.ch.Conn.Exec(t.Context(), "TRUNCATE TABLE exchanges"); err != nil {
		t.Fatal(err)
	}
	if got := compare("ratio"); got.Different != 0 || got.Unchecked == 0 {
		t.Errorf("dropped: %+v", got)
	}
}
