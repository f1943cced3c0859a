package app_test

import (
	"fmt"
	"strings"
	"testing"

	"tocsin/evaluator"
	"tocsin/rules"
)

// failOn writes failures, some on each of the routes of a range.
func (w *world) failOn(from, to, each int) {
	w.t.Helper()
	at := w.ch.Now(w.t)
	var exchanges []rules.Exchange
	for i := from; i < to; i++ {
		for k := range each {
			exchanges = append(exchanges, rules.Exchange{
				TenantID: tenant, StartTimeNS: at + int64(i), EndTimeNS: &at, ExecutionID: fmt.Sprint(at, i, k),
				Application: "orders", Route: fmt.Sprint("route-", i), Status: rules.Failed,
			})
		}
	}
	w.ch.Insert(w.t, exchanges...)
}

// TestManyGroupsAreRaisedAtOnce has as many groups reach the threshold as a rule may
// have: their newest exchanges are read together.
func TestManyGroupsAreRaisedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failOn(0, 1000, 3)
	source := w.watched()
	if result, err := w.tickWith(w.newEvaluator(evaluator.Options{Source: source})); err != nil || result.Failed != 0 {
		t.Fatalf("Tick = %+v, %v", result, err)
	}
	w.wantColumn("alerts", alertStates, "FIRING 1000")
	w.wantColumn("alerts with an exchange of another group", `select group_key from alert where group_key is distinct from exchange->>'route'`)
	if n := source.counts()["Newest"]; n != 1 {
		t.Errorf("asked %d times for the newest exchanges", n)
	}
}

// TestGroupsBeyondTheBoundDoNotClear has more groups reach the threshold than a rule may
// have: those that are left out have not fallen below it.
func TestGroupsBeyondTheBoundDoNotClear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute, NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failOn(0, 1000, 3)
	w.tick()
	w.wantColumn("of as many as there may be", alertStates, "FIRING 1000")
	w.wantColumn("problems", problems, "")
	w.failOn(1000, 1100, 4)
	w.tick()
	w.wantColumn("of more", alertStates, "FIRING 1000")
	if got := w.column(problems); !strings.Contains(got[0], "more than 1000 groups reach the threshold") {
		t.Errorf("problems %q", got)
	}
	w.empty()
	w.failOn(0, 900, 3)
	w.failOn(1000, 1100, 4)
	w.failOn(1100, 1200, 1)
	w.tick()
	w.wantColumn("those beyond hold too little", alertStates, "FIRING 1000", "RESOLVED 100")
	w.wantColumn("problems", problems, "")
}
