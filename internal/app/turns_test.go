package app_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/rules"
)

// TestSlowTenantsKeepNobodyWaiting has the queries for two tenants fail after more time
// than a tick has. The others are judged and counted at every tick, and of the two one
// is tried at each.
func TestSlowTenantsKeepNobodyWaiting(t *testing.T) {
	w := newWorld(t)
	slow := []string{"aaa", "bbb"}
	for _, name := range slow {
		_, err := w.db.Rules().Create(t.Context(), name, rules.Definition{
			Name: name, Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1, LookBackSeconds: 3600,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.rule()
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute})
	source, now := w.tapped(), time.Now()
	var tried []string
	source.onPrint = func(tenant string) error {
		if !slices.Contains(slow, tenant) {
			return nil
		}
		tried = append(tried, tenant)
		now = now.Add(time.Minute)
		return errors.New("took too long")
	}
	engine := w.newEvaluator(evaluator.Options{Source: source, Clock: func() time.Time { return now }})
	for i := range 4 {
		w.failOn(i, i+1, 3)
		if _, err := w.tickWith(engine); err != nil {
			t.Fatal(err)
		}
		w.wantColumn("alerts", `select (group_key is not null)::text || ' ' || count(*) from alert where not health group by group_key is not null order by 1`,
			fmt.Sprint("false ", 3*(i+1)), fmt.Sprint("true ", i+1))
	}
	if want := []string{"aaa", "bbb", "aaa", "bbb", "aaa"}; !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
	w.wantColumn("problems", `select tenant_id || ': ' || coalesce(problem, '') from rule_state join rule using (rule_id) where problem is not null order by 1`,
		"aaa: fingerprint seconds: took too long", "bbb: fingerprint seconds: took too long")
}
