package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/rules"
)

// TestARuleKeepsTheAttributeThatItCountsBy stores, reads and edits it, and checks that the database
// has a key exactly if there is one to count by.
func TestARuleKeepsTheAttributeThatItCountsBy(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	get := func(id uuid.UUID) rules.Grouping {
		rule, err := w.db.Rules().Get(t.Context(), tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		return rule.Grouping()
	}
	want := rules.Grouping{By: rules.GroupByAttribute, Attribute: "it's a \n key"}
	d := rules.Definition{
		Name: "by attribute", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Warning, IntervalSeconds: 1, Threshold: 3, WindowSeconds: 60,
		GroupBy: want.By, GroupByAttribute: want.Attribute,
	}
	rule, err := w.db.Rules().Create(t.Context(), tenant, d)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(rule.ID); rule.Grouping() != want || got != want {
		t.Errorf("created %+v, read %+v", rule.Grouping(), got)
	}
	d.GroupBy, d.GroupByAttribute = rules.GroupByRoute, ""
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: d}); err != nil {
		t.Fatal(err)
	}
	if got := get(rule.ID); got != (rules.Grouping{By: rules.GroupByRoute}) {
		t.Errorf("after the edit %+v", got)
	}
	if _, err := w.conn.Exec(t.Context(), `update rule set group_attribute = 'k' where rule_id = $1`, rule.ID); err == nil {
		t.Error("a rule that counts by route has the key of an attribute")
	}
}
