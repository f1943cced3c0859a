package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// outage pauses the partition of a rule for five hours, with exchanges that became visible an hour
// behind its cursor. It returns the number of exchanges, and a cursor of an hour ago.
func (w *world) outage() (late int, present string) {
	w.t.Helper()
	now := w.ch.Now(w.t)
	stood := now - 5*time.Hour.Nanoseconds()
	w.exec(`update rule_state set armed_since_ns = $1`, stood-3*time.Hour.Nanoseconds())
	w.exec(`update checkpoint set cursor = $1 where cursor is not null`, cursor.Position{StartTimeNS: stood}.String())
	w.changed()
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

// TestKilledBeforeTheLookBackIsJudged kills replicas after an outage, the first one when its cursor
// has reached the present but the look-back has not been evaluated: in the end there is one alert for
// each exchange in it, and new exchanges have alerts meanwhile.
func TestKilledBeforeTheLookBackIsJudged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	w.tick()
	late, present := w.outage()
	w.fail(w.ch.Now(t), "new 0")
	goOn := w.pauseInside(`create trigger pause before update on checkpoint for each row when (old.cursor > '` + present + `' and old.revision <> new.revision) execute function pause()`)
	// Nobody delivers a thousand messages.
	const evaluates = "TOCSIN_ROLES=evaluate"
	first := w.serve(evaluates, "TOCSIN_PAGE_SIZE=1")
	w.untilInside()
	first.kill()
	w.wantColumn("what is new", `select execution_id from alert where execution_id like 'new%'`, "new 0")
	w.wantColumn("partitions at the present, with a look-back to evaluate",
		`select (cursor > '`+present+`' and backfill_from_ns is not null)::text from rule_progress`, "true")
	goOn()
	second := w.serve(evaluates, "TOCSIN_PAGE_SIZE=1")
	w.fail(w.ch.Now(t), "new 1")
	w.until("what is new is alerted", func() bool {
		return len(w.column(`select execution_id from alert where execution_id = 'new 1'`)) == 1
	})
	second.kill()
	w.serve(evaluates)
	w.until("the look-back is evaluated", func() bool {
		return len(w.column(`select cursor from rule_progress where backfill_from_ns is null`)) == 1
	})
	w.wantColumn("alerts", `select count(*) || ' ' || count(distinct execution_id) from alert`, fmt.Sprintf("%[1]d %[1]d", late+2))
	w.wantColumn("notifications", `select count(*)::text from notification where reason = 'FIRED'`, fmt.Sprint(late+2))
}

// TestBackfillIsShownAndNotMissing has a partition with a look-back to evaluate: status and health
// report it, and reconciliation does not count it as missing.
func TestBackfillIsShownAndNotMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.namedRules("a", "b")
	w.tick()
	late, _ := w.outage()
	// A pass without spare time reads what is new, and one page of the backfill.
	hurried := w.newEvaluator(evaluator.Options{PageSize: 1, Interval: time.Nanosecond})
	if _, err := w.tickWith(hurried); err != nil {
		t.Fatal(err)
	}
	marks := w.column(`select backfill_from_ns::text from checkpoint where backfill_from_ns is not null`)
	if len(marks) != 1 {
		t.Fatalf("marks: %q", marks)
	}
	w.wantLookingBack(true, made["a"].ID, made["b"].ID)
	if got := w.reconcile(made["a"]); got.Missing != 0 || got.Matching == int64(late) {
		t.Errorf("what is not evaluated yet is compared: %+v", got)
	}
	w.until("the look-back is evaluated", func() bool {
		w.tick()
		return len(w.column(`select partition::text from checkpoint where backfill_from_ns is not null`)) == 0
	})
	w.wantLookingBack(false, made["a"].ID, made["b"].ID)
	w.wantColumn("alerts", `select count(*) || ' ' || count(distinct (rule_id, execution_id)) from alert`, fmt.Sprintf("%[1]d %[1]d", 2*late))
	if got := w.reconcile(made["a"]); got.Missing != 0 || got.Matching != int64(late) {
		t.Errorf("in the end: %+v", got)
	}
}

// wantLookingBack checks whether status and health report rules with a look-back to evaluate.
func (w *world) wantLookingBack(want bool, ids ...uuid.UUID) {
	w.t.Helper()
	status, err := w.db.Record(nil).Status(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	n := int64(0)
	if want {
		n = int64(len(ids))
	}
	if status.Backfilling != n || (status.BackfillFrom != nil) != want {
		w.t.Errorf("status shows %d rules looking back to %v, want %d", status.Backfilling, status.BackfillFrom, n)
	}
	health, err := w.db.Rules().Health(w.t.Context(), tenant, ids)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, id := range ids {
		if at := health[id].BackfillFrom; (at != nil) != want {
			w.t.Errorf("a rule is shown to look back to %v, want it: %v", at, want)
		}
	}
}

// TestRetentionKeepsOffBackfills has a partition whose look-back, still to be evaluated, reaches to
// before old alerts: retention keeps these alerts, as the backfill would otherwise raise them
// again.
func TestRetentionKeepsOffBackfills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oldRule("a", "b")
	w.exec(resolvedLongAgo)
	w.exec(`update checkpoint set backfill_from_ns = $1, backfill_cursor_ns = $1`, w.ch.Now(t)-41*24*time.Hour.Nanoseconds())
	if got := w.expire(); got.Alerts != 0 {
		t.Errorf("deleted %+v before they are evaluated", got)
	}
	w.exec(`update checkpoint set backfill_from_ns = null, backfill_cursor_ns = null`)
	if got := w.expire(); got.Alerts != 2 {
		t.Errorf("deleted %+v of what is evaluated", got)
	}
}
