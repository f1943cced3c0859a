package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tocsin/api"
)

// TestWhatBecomesVisibleTooLateIsNotMissing runs a replica that compares. One exchange is without an alert from its first
// comparison on. Another one becomes visible after it, twenty minutes late with a look-back of a minute.
func TestWhatBecomesVisibleTooLateIsNotMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	definition := rule.Definition
	definition.LookBackSeconds = 60
	rule, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition})
	if err != nil {
		t.Fatal(err)
	}
	now, minute := w.ch.Now(t), time.Minute.Nanoseconds()
	w.armed(rule, now-50*minute)
	w.until("the rule has read its past", func() bool {
		w.tick()
		return w.column(`select count(*)::text from rule_backfill`)[0] == "0"
	})
	w.fail(now-25*minute, "missing")
	p := w.serve("TOCSIN_RECONCILE_INTERVAL=500ms")
	found := func() string {
		m := p.metrics(t)
		return fmt.Sprintf("%s missing, %s late-dropped", m["tocsin_rule_missing"], m["tocsin_late_dropped_total"])
	}
	w.until("the first comparison is made", func() bool { return found() == "1 missing, 0 late-dropped" })
	w.fail(now-20*minute, "late")
	w.until("the other one is found", func() bool { return found() != "1 missing, 0 late-dropped" })
	passes := func() string { return w.column(`select at::text from reconciliation`)[0] }
	for range 3 {
		if got := found(); got != "1 missing, 1 late-dropped" {
			t.Fatal(got)
		}
		last := passes()
		w.until("there is another comparison", func() bool { return passes() != last })
	}
	out, code := w.command("reconcile", "--confirm=0s")
	if row := " 2 0 1 1 0 0 0 0"; code != 1 || !strings.Contains(out, ": missing\n") || !strings.Contains(strings.Join(strings.Fields(out), " "), row) {
		t.Errorf("exit %d, %s; want %s", code, out, row)
	}
	if n := w.column(`select count(*)::text from alert`)[0]; n != "0" {
		t.Errorf("%s alerts", n)
	}
	if err := w.db.Rules().Delete(t.Context(), tenant, rule.ID); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("what is left of comparisons", `select count(*)::text from rule_comparison`, "0")
}

// TestWhatArrivesBehindALookBackOfAnHourIsCounted has an exchange that becomes visible an hour and a half after its end.
func TestWhatArrivesBehindALookBackOfAnHourIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	now, minute := w.ch.Now(t), time.Minute.Nanoseconds()
	w.armed(rule, now-300*minute)
	w.until("the rule has read its past", func() bool {
		w.tick()
		return w.column(`select count(*)::text from rule_backfill`)[0] == "0"
	})
	p := w.serve("TOCSIN_RECONCILE_INTERVAL=500ms")
	w.until("the hour behind the look-back is compared", func() bool {
		return len(w.column(`select rule_id::text from rule_comparison where jsonb_array_length(comparison -> 'parts') = 2`)) == 1
	})
	w.fail(now-90*minute, "late")
	w.until("it is counted", func() bool { return p.metrics(t)["tocsin_late_dropped_total"] == "1" })
	if missing := p.metrics(t)["tocsin_rule_missing"]; missing != "0" {
		t.Errorf("%s missing", missing)
	}
	if out, code := w.command("reconcile", "--confirm=0s"); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), " 1 0 0 1 0 0 0 0") {
		t.Errorf("exit %d, %s", code, out)
	}
}
