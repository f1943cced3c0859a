package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// outage has rules stand still for five hours, with exchanges that became visible an
// hour behind their cursors. It returns how many, and a cursor of an hour ago.
func (w *world) outage() (late int, present string) {
	w.t.Helper()
	now := w.ch.Now(w.t)
	stood := now - 5*time.Hour.Nanoseconds()
	w.exec(`update rule_state set armed_since_ns = $1`, stood-3*time.Hour.Nanoseconds())
	at := cursor.Position{StartTimeNS: stood}.String()
	w.exec(`update rule_state set cursor = $1 where cohort_id is null`, at)
	w.exec(`update cohort set cursor = $1`, at)
	var rows []rules.Exchange
	for ago := 3590; ago > 300; ago -= 3 {
		start := stood - int64(ago)*time.Second.Nanoseconds()
		rows = append(rows, rules.Exchange{
			TenantID: tenant, StartTimeNS: start, EndTimeNS: &stood, ExecutionID: fmt.Sprint("late ", ago), Status: rules.Failed,
		})
	}
	w.ch.Insert(w.t, rows...)
	return len(rows), cursor.Position{StartTimeNS: now - time.Hour.Nanoseconds()}.String()
}

// TestKilledWhileALookBackIsOwed kills replicas after an outage, the first one once
// its cursor has come to the present and before it has looked back: what was to be
// found there has one alert in the end, and what is new is alerted meanwhile.
func TestKilledWhileALookBackIsOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	w.tick()
	late, present := w.outage()
	w.fail(w.ch.Now(t), "new 0")
	goOn := w.pauseInside(`create trigger pause before update on rule_state for each row when (old.cursor > '` + present + `') execute function pause()`)
	first := w.serve("TOCSIN_PAGE_SIZE=1")
	w.untilInside()
	first.kill()
	w.wantColumn("what is new", `select execution_id from alert where execution_id like 'new%'`, "new 0")
	w.wantColumn("rules that have come to the present, and owe a look-back",
		`select (cursor > '`+present+`' and owed_from_ns is not null)::text from rule_progress`, "true")
	goOn()
	second := w.serve("TOCSIN_PAGE_SIZE=1")
	w.fail(w.ch.Now(t), "new 1")
	w.until("what is new is alerted", func() bool {
		return len(w.column(`select execution_id from alert where execution_id = 'new 1'`)) == 1
	})
	second.kill()
	w.serve()
	w.until("nothing is owed", func() bool {
		return len(w.column(`select cursor from rule_progress where owed_from_ns is null`)) == 1
	})
	w.wantColumn("alerts", `select count(*) || ' ' || count(distinct execution_id) from alert`, fmt.Sprintf("%[1]d %[1]d", late+2))
	w.wantColumn("notifications", `select count(*)::text from notification where reason = 'FIRED'`, fmt.Sprint(late+2))
}

// TestWhatACohortOwesGoesWithItsRules has two rules that share a cursor owe a
// look-back, and one of them leave: it owes the same, and joins again when it is done.
// Meanwhile what is owed is not said to be missing.
func TestWhatACohortOwesGoesWithItsRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.namedRules("a", "b")
	w.drained(w.cohortEvaluator(evaluator.Options{}), "a", "b")
	late, _ := w.outage()
	tick := func(o evaluator.Options) *evaluator.Evaluator {
		t.Helper()
		e := w.cohortEvaluator(o)
		if _, err := w.tickWith(e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	// A tick without time: a page of each part.
	tick(evaluator.Options{PageSize: 1, Budget: time.Nanosecond})
	const owed = `select owed_from_ns::text from rule_progress order by rule_id`
	before := w.column(owed)
	if len(before) != 2 || before[0] != before[1] {
		t.Fatalf("two rules of a cohort owe %q", before)
	}
	w.wantLookingBack(before[0], made["a"].ID, made["b"].ID)
	rule := made["a"]
	rule.TitleTemplate = "it broke"
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: rule.Definition}); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("members", memberNames, "b")
	w.wantColumn("owed", owed, before...)
	if got := w.reconcile(rule); got.Missing != 0 || got.Matching == int64(late) {
		t.Errorf("what is owed is compared: %+v", got)
	}
	e := tick(evaluator.Options{})
	w.until("nothing is owed, and the rules share a cursor again", func() bool {
		if _, err := w.tickWith(e); err != nil {
			t.Fatal(err)
		}
		return len(w.column(memberNames)) == 2
	})
	w.wantColumn("owed", `select rule_id::text from rule_progress where owed_from_ns is not null`)
	w.wantLookingBack("")
	w.wantColumn("alerts", `select count(*) || ' ' || count(distinct (rule_id, execution_id)) from alert`, fmt.Sprintf("%[1]d %[1]d", 2*late))
	if got := w.reconcile(rule); got.Missing != 0 || got.Matching != int64(late) {
		t.Errorf("in the end: %+v", got)
	}
}

// wantLookingBack checks what is told of look-backs that are not done: which rules
// owe one, and from which start time on, in nanoseconds.
func (w *world) wantLookingBack(fromNS string, ids ...uuid.UUID) {
	w.t.Helper()
	status, err := w.db.Record(nil).Status(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	told := ""
	if status.LookingBackTo != nil {
		told = fmt.Sprint(status.LookingBackTo.UnixNano())
	}
	if status.LookingBack != int64(len(ids)) || told != fromNS {
		w.t.Errorf("status tells of %d rules looking back to %q, want %d and %q", status.LookingBack, told, len(ids), fromNS)
	}
	health, err := w.db.Rules().Health(w.t.Context(), tenant, ids)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, id := range ids {
		if at := health[id].LookingBackTo; at == nil || fmt.Sprint(at.UnixNano()) != fromNS {
			w.t.Errorf("a rule is said to look back to %v, want %s", at, fromNS)
		}
	}
}

// TestRetentionKeepsOffWhatIsOwed has a rule owe a look-back that reaches behind old
// alerts: they stay, or else it would raise them again.
func TestRetentionKeepsOffWhatIsOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oldRule("a", "b")
	w.exec(resolvedLongAgo)
	w.exec(`update rule_state set owed_from_ns = $1`, w.ch.Now(t)-41*24*time.Hour.Nanoseconds())
	if got := w.sweep(); got.Alerts != 0 {
		t.Errorf("swept %+v of what is owed", got)
	}
	w.exec(`update rule_state set owed_from_ns = null`)
	if got := w.sweep(); got.Alerts != 2 {
		t.Errorf("swept %+v of what is not", got)
	}
}
