package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/explain"
	"tocsin/rules"
)

type explained struct {
	Exchange struct{ ExecutionID string }
	Rules    []struct {
		RuleName, Verdict, AlertID, AlertState string
		Unmet                                  []string
	}
	Counts []struct {
		Verdict string
		Rules   int
	}
}

// TestExplainExchange checks the order of an explanation and what it says about each rule.
func TestExplainExchange(t *testing.T) {
	b := newBench(t)
	alert := uuid.New()
	ruleState := func(name string, change func(*explain.RuleState)) explain.RuleState {
		s := explain.RuleState{Rule: rules.Rule{ID: uuid.New(), Definition: rules.Definition{Name: name, Enabled: true, FireMode: rules.PerExchange}}}
		change(&s)
		return s
	}
	elsewhere := func(s *explain.RuleState) { s.Rule.Scope.Applications = []string{"billing"} }
	b.past.states = []explain.RuleState{
		ruleState("a", elsewhere), ruleState("b", func(s *explain.RuleState) { s.Alert = &explain.Alert{ID: alert, State: alerts.Resolved} }),
		ruleState("c", elsewhere), ruleState("d", func(s *explain.RuleState) { s.Rule.Enabled = false }),
	}
	b.past.found = []rules.Exchange{{ExecutionID: "x\x00", Application: "orders", Status: rules.Failed}}
	var got explained
	answer := b.do("GET", "/api/v1/exchanges/explain?executionId=x%00&hours=48", "").problem(400, "invalid")
	if len(answer.Errors) != 1 {
		t.Errorf("NUL in an id: %+v", answer)
	}
	b.past.found[0].ExecutionID = "x"
	if err := json.Unmarshal(b.do("GET", "/api/v1/exchanges/explain?executionId=x&hours=48", "").want(200).Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var verdicts []string
	for _, r := range got.Rules {
		verdicts = append(verdicts, strings.TrimSpace(r.RuleName+" "+r.Verdict+" "+strings.Join(r.Unmet, ",")))
	}
	if want := []string{"b ALERTED", "d DISABLED", "a NOT_MATCHED scope.applications", "c NOT_MATCHED scope.applications"}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts %q, want %q", verdicts, want)
	}
	if got.Rules[0].AlertID != alert.String() || got.Rules[0].AlertState != "RESOLVED" || fmt.Sprint(got.Counts) != "[{ALERTED 1} {DISABLED 1} {NOT_MATCHED 2}]" {
		t.Errorf("alert %s, %s; counts %v", got.Rules[0].AlertID, got.Rules[0].AlertState, got.Counts)
	}
	q := b.past.search
	if q.ExecutionID != "x" || q.ToNS-q.FromNS != 48*3600e9 || len(q.Filter.Statuses) != 2 || b.past.key != "x" {
		t.Errorf("searched %+v, asked about %q", q, b.past.key)
	}
}

// TestExplainFindsTheExchange tries each way of finding an exchange, and the cases in which there
// is none.
func TestExplainFindsTheExchange(t *testing.T) {
	b := newBench(t)
	if p := b.do("GET", "/api/v1/exchanges/explain?executionId=gone", "").problem(404, "not_found"); p.Detail == nil || !strings.Contains(*p.Detail, "terminal of the mapping") {
		t.Errorf("%+v, want a detail that says why a row is no exchange", p)
	}
	b.do("GET", "/api/v1/exchanges/explain?executionId=", "").problem(400, "invalid")
	b.do("GET", "/api/v1/exchanges/explain?executionId=x&startTime=1960-01-01T00:00:00Z", "").problem(400, "invalid")
	b.do("GET", "/api/v1/exchanges/explain?executionId=gone&startTime=2026-11-21T07:02:00.123456789Z", "").problem(404, "not_found")
	// The exchange of an alert is found however long ago it began; if its row is gone, it is
	// searched for.
	b.past.alertedNS, b.past.found = new(int64(1_600_000_000_000_000_000)), []rules.Exchange{{ExecutionID: "old", StartTimeNS: 1_600_000_000_000_000_000, Status: rules.Failed}}
	if body := b.do("GET", "/api/v1/exchanges/explain?executionId=old", "").want(200).Body.String(); !strings.Contains(body, "2020-09-13") {
		t.Errorf("%s", body)
	}
}
