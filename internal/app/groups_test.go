package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/cursor"
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

// TestManyGroupsAreRaisedAtOnce has as many groups that reach the threshold as a rule may have:
// their newest exchanges are read together.
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

// TestGroupsBeyondTheBoundDoNotClear has more groups that reach the threshold than a rule may have:
// those that are left out do not count as below it.
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
	if got := w.column(problems); !strings.Contains(got[0], "1000 groups have an alert, and further groups reach the threshold") {
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

// TestGroupsOfAnAttribute has attribute values that names of routes hardly ever have. Each value
// has an alert of its own under a text that any store accepts, and no value and an empty one share
// the group without a name. What is counted next belongs to the open alerts.
func TestGroupsOfAnAttribute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.counting(rules.Definition{GroupBy: rules.GroupByAttribute, GroupByAttribute: "it's\na \"key\"", WebhookIDs: webhooks(w.webhook("ops"))})
	values := []string{"7", "", "absent", "two\nlines", "\xff\x00", "hex:37", strings.Repeat("é", 256), strings.Repeat("10 kB", 2000), strings.Repeat("10 kB", 2000) + "."}
	fail := func(round int) {
		at := w.ch.Now(t)
		var exchanges []rules.Exchange
		for i, value := range values {
			for k := range 3 {
				e := rules.Exchange{
					TenantID: tenant, StartTimeNS: at + int64(i), EndTimeNS: &at, ExecutionID: fmt.Sprint(round, i, k), Application: "orders", Status: rules.Failed,
				}
				if value != "absent" {
					e.Attributes = map[string]string{"it's\na \"key\"": value, "another": fmt.Sprint(k)}
				}
				exchanges = append(exchanges, e)
			}
		}
		w.ch.Insert(t, exchanges...)
		w.tick()
	}
	fail(1)
	var want []string
	for _, value := range values {
		if value != "absent" {
			want = append(want, cursor.Key(rules.AttributeGroup(value)))
		}
	}
	slices.Sort(want)
	w.wantColumn("groups", `select group_key from alert order by group_key collate "C"`, want...)
	w.wantColumn("what is counted of the group without a name", `select count->>'observed' from alert where group_key = ''`, "6")
	w.wantColumn("alerts with an exchange of another group", `select group_key from alert where group_key = '7' and exchange->'attributes'->>E'it\'s\na "key"' <> '7'`)
	w.wantColumn("keys", `select distinct count->>'groupByAttribute' from alert`, "it's\na \"key\"")
	fail(2)
	w.wantColumn("after more of the same", `select count(*)::text from alert`, fmt.Sprint(len(want)))
	w.empty()
	w.tick()
	w.wantColumn("of an empty window", alertStates, fmt.Sprint("RESOLVED ", len(want)))
}

// TestEditOfGroupingEndsAlerts changes the field by which a rule groups, and then removes the
// grouping, while alerts fire, are pending and hold their groups: no alert is left that no
// evaluation decides on.
func TestEditOfGroupingEndsAlerts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.counting(rules.Definition{GroupBy: rules.GroupByRoute, NotifyOnResolve: true, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failIn("r", "a", "b", "c")
	w.failIn("s", "d", "e", "f")
	w.failIn("p", "g", "h", "i")
	w.pass()
	states := `select state || ' ' || group_key || ' ' || held || ' ' || coalesce(resolution->>'reason', '') from alert order by fired_at, group_key`
	w.wantColumn("by route", states, "FIRING p false ", "FIRING r false ", "FIRING s false ")
	w.exec(`update alert set state = 'RESOLVED', resolved_at = now(), resolved_by = 'ada', held = true where group_key = 's'`)
	w.exec(`update alert set state = 'PENDING' where group_key = 'p'`)
	definition := rule.Definition
	definition.Name = "renamed"
	rule, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: definition})
	if err != nil {
		t.Fatal(err)
	}
	w.wantColumn("after another edit", states, "PENDING p false ", "FIRING r false ", "RESOLVED s true ")
	definition.GroupBy = rules.GroupByApplication
	if rule, err = w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: definition}); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("by application", states, "RESOLVED r false EDIT", "RESOLVED s false ")
	w.wantColumn("who hears of it", `select n.reason || ' ' || a.group_key from notification n join alert a using (alert_id) where n.reason = 'RESOLVED'`, "RESOLVED r")
	w.pass()
	w.wantColumn("counted by application", states, "RESOLVED r false EDIT", "RESOLVED s false ", "FIRING orders false ")
	definition.FireMode, definition.GroupBy, definition.WindowSeconds, definition.Threshold, definition.NotifyOnResolve = rules.PerExchange, "", 0, 0, false
	if _, err = w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: definition}); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("for each exchange", states, "RESOLVED r false EDIT", "RESOLVED s false ", "RESOLVED orders false EDIT")
}
