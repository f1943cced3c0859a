package app_test

import (
	"fmt"
	"testing"

	"tocsin/evaluator"
	"tocsin/rules"
)

// endedAgo writes an exchange of a route that ended the given number of seconds ago.
func (w *world) endedAgo(route string, seconds int64) {
	w.t.Helper()
	at := w.ch.Now(w.t) - seconds*1e9
	w.ch.Insert(w.t, rules.Exchange{
		TenantID: tenant, StartTimeNS: at, EndTimeNS: &at, ExecutionID: fmt.Sprint(route, at), Route: route, Status: rules.Completed,
	})
}

// watchedUntil sets the partitions' watch as if they had watched the source for an hour, until the
// given number of seconds ago.
func (w *world) watchedUntil(seconds int64) (untilNS int64) {
	w.t.Helper()
	now := w.ch.Now(w.t)
	untilNS = now - seconds*1e9
	w.exec(fmt.Sprintf(`update checkpoint set watched_since_ns = %[1]d, watched_until_ns = %[2]d, absence_judged_ns = %[2]d, late_ns = 0, watched_shown = 0`, now-3600e9, untilNS))
	return untilNS
}

// concludeAfter lets a process continue from a watch the given number of seconds ago, until it has
// evaluated what is absent: from its second watch on.
func (w *world) concludeAfter(seconds int64) {
	w.t.Helper()
	w.conclude(w.watchedUntil(seconds))
}

// conclude lets a process continue until it has evaluated what is absent after an instant.
func (w *world) conclude(untilNS int64) {
	w.t.Helper()
	e := w.newEvaluator(evaluator.Options{})
	w.until("absence is evaluated", func() bool {
		if _, err := w.tickWith(e); err != nil {
			w.t.Fatal(err)
		}
		return len(w.column(fmt.Sprintf(`select partition::text from checkpoint where absence_judged_ns > %d`, untilNS))) > 0
	})
}

// TestAbsenceFiresAndClears has a route that is silent, returns, and is silent in an outage. Each
// process that continues knows only what is in the checkpoint.
func TestAbsenceFiresAndClears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{
		FireMode: rules.AbsentInWindow, Threshold: 1, GroupBy: rules.GroupByRoute, Expected: []string{"busy", "silent"}, NotifyOnResolve: true,
		Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}}, WebhookIDs: webhooks(w.webhook("ops")),
	})
	const absences = `select state || ' ' || group_key || ' ' || (count->>'observed') || ' ' || route || ' ' || title from alert where not health order by fired_at, group_key`
	w.endedAgo("busy", 30)
	w.pass()
	w.concludeAfter(20)
	w.wantColumn("armed within the window", absences)
	w.exec(`update rule_state set armed_since_ns = armed_since_ns - 3600000000000`)
	w.concludeAfter(3000)
	w.wantColumn("after a pause", absences)
	w.watchedUntil(20)
	w.pass()
	w.wantColumn("a process that watched once", absences)
	w.concludeAfter(20)
	w.wantColumn("a whole window was watched", absences, "FIRING silent 0 silent silent: no exchange within 1 min")
	w.pass()
	w.wantColumn("and again", absences, "FIRING silent 0 silent silent: no exchange within 1 min")
	w.endedAgo("silent", 25)
	w.pass()
	w.wantColumn("it is there again", absences, "RESOLVED silent 1 silent silent: no exchange within 1 min")
	w.wantColumn("open", written, "FIRED 0", "RESOLVED 0")
	w.deliverAll()
	w.wantColumn("delivered", statuses, "DELIVERED 2")
}

// TestAbsenceAfterAMove moves a tenant to another partition while a route is silent. The partition that receives it
// continues the watch, so that the absence raises its alert at once.
func TestAbsenceAfterAMove(t *testing.T) {
	t.Parallel()
	isolate := func(w *world) error { _, err := w.db.Partitions().Isolate(t.Context(), tenant); return err }
	for name, c := range map[string]struct{ before, move func(w *world) error }{
		"isolate": {move: isolate},
		"join":    {before: isolate, move: func(w *world) error { _, err := w.db.Partitions().Join(t.Context(), tenant); return err }},
		"count":   {move: func(w *world) error { return w.db.Partitions().Count(t.Context(), 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.counting(rules.Definition{
				FireMode: rules.AbsentInWindow, Threshold: 1, GroupBy: rules.GroupByRoute, Expected: []string{"silent"},
				Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}}, WebhookIDs: webhooks(w.webhook("ops")),
			})
			w.exec(`update rule_state set armed_since_ns = armed_since_ns - 3600000000000`)
			if c.before != nil {
				if err := c.before(w); err != nil {
					t.Fatal(err)
				}
			}
			w.pass()
			untilNS := w.watchedUntil(20)
			if err := c.move(w); err != nil {
				t.Fatal(err)
			}
			w.conclude(untilNS)
			w.wantColumn("the absence is evaluated", `select state || ' ' || group_key from alert where not health`, "FIRING silent")
		})
	}
}
