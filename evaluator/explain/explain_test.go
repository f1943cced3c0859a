package explain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/explain"
	"tocsin/rules"
)

const (
	second = int64(time.Second)
	hour   = 3600 * second
	// ended is when the exchange ended, a second after it began.
	ended = 1_795_244_520 * second
)

func exchange() *rules.Exchange {
	return &rules.Exchange{
		ExecutionID: "x", Application: "orders", Route: "a", Status: rules.Failed, ErrorType: "Timeout", StartTimeNS: ended - second, EndTimeNS: new(ended),
	}
}

// ruleState is the state of a rule that has evaluated everything up to a minute later, and has no
// alert.
func ruleState(change func(*explain.RuleState)) *explain.RuleState {
	s := &explain.RuleState{
		Rule: rules.Rule{
			ID: uuid.UUID{1}, ArmedSinceNS: ended - hour,
			Definition: rules.Definition{Name: "r", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600},
		},
		JudgedNS: new(ended + 60*second), CursorNS: new(ended + 60*second),
	}
	change(s)
	return s
}

// absence makes the rule expect exchanges from one route.
func absence(s *explain.RuleState, route string) {
	s.Rule.FireMode, s.Rule.WindowSeconds, s.Rule.GroupBy, s.Rule.Expected = rules.AbsentInWindow, 60, rules.GroupByRoute, []string{route}
}

func TestExplain(t *testing.T) {
	elsewhere := rules.Scope{Applications: []string{"billing"}}
	for name, c := range map[string]struct {
		change func(*explain.RuleState)
		want   explain.Verdict
		unmet  []string
		says   string
	}{
		"alerted, whatever the rule says now": {func(s *explain.RuleState) {
			s.Alert = &explain.Alert{ID: uuid.UUID{9}, State: alerts.Acknowledged}
			s.Rule.Scope, s.Rule.Enabled, s.Failing = elsewhere, false, true
		}, explain.Alerted, nil, "acknowledged"},
		"alerted and silenced": {func(s *explain.RuleState) {
			s.Alert = &explain.Alert{ID: uuid.UUID{9}, State: alerts.Firing, Messages: 2, Suppressed: 2}
		}, explain.Alerted, nil, "silences suppressed all its messages"},
		"alerted and silenced for a while": {func(s *explain.RuleState) {
			s.Alert = &explain.Alert{ID: uuid.UUID{9}, State: alerts.Firing, Messages: 3, Suppressed: 2}
		}, explain.Alerted, nil, "Silences suppressed 2 of its 3 messages"},
		"another application": {func(s *explain.RuleState) { s.Rule.Scope = elsewhere }, explain.NotMatched, []string{"scope.applications"}, ""},
		"excluded": {func(s *explain.RuleState) {
			s.Rule.Scope.NotRoutes, s.Rule.Filter.NotErrorTypes = []string{"a"}, []string{"Timeout"}
		}, explain.NotMatched, []string{"scope.notRoutes", "filter.notErrorTypes"}, ""},
		"in the volume of a ratio": {func(s *explain.RuleState) {
			s.Rule.FireMode, s.Rule.WindowSeconds, s.Rule.Filter.ErrorTypes = rules.RatioInWindow, 60, []string{"Refused"}
		}, explain.NotMatched, []string{"filter.errorTypes"}, "counts only in the volume"},
		"not in the volume of a ratio": {func(s *explain.RuleState) {
			s.Rule.FireMode, s.Rule.WindowSeconds, s.Rule.Scope = rules.RatioInWindow, 60, elsewhere
		}, explain.NotMatched, []string{"scope.applications"}, "does not meet the condition."},
		"disabled": {func(s *explain.RuleState) { s.Rule.Enabled = false }, explain.Disabled, nil, "it would match"},
		"disabled, and would not match": {
			func(s *explain.RuleState) { s.Rule.Enabled, s.Rule.Scope = false, elsewhere },
			explain.Disabled,
			[]string{"scope.applications"},
			"it would not match",
		},
		"armed later":                    {func(s *explain.RuleState) { s.Rule.ArmedSinceNS = ended + 1 }, explain.NotArmed, nil, "With the current condition, it would match"},
		"armed at its end":               {func(s *explain.RuleState) { s.Rule.ArmedSinceNS = ended }, explain.Waiting, nil, ""},
		"edited later, matched then":     {edited(rules.Scope{}, elsewhere), explain.Waiting, nil, ""},
		"edited later, not matched then": {edited(elsewhere, rules.Scope{}), explain.NotMatched, []string{"scope.applications"}, "the condition of that time"},
		"failing":                        {func(s *explain.RuleState) { s.Failing, s.Problem = true, "refused." }, explain.Failing, nil, "evaluated again: refused."},
		"unreadable":                     {func(s *explain.RuleState) { s.Err = errors.New("no JSON") }, explain.Failing, nil, "no JSON"},
		"does not compile":               {func(s *explain.RuleState) { s.Rule.Filter.ErrorMessageMatches = "(" }, explain.Failing, nil, "errorMessageMatches"},
		"never evaluated":                {func(s *explain.RuleState) { s.JudgedNS, s.CursorNS = nil, nil }, explain.Waiting, nil, "has not been evaluated yet"},
		"ahead of the cursor":            {func(s *explain.RuleState) { s.JudgedNS, s.CursorNS = new(ended-second), new(ended-second) }, explain.Waiting, nil, "has not been evaluated yet"},
		"in a backfill":                  {func(s *explain.RuleState) { s.JudgedNS, s.CursorNS = new(ended-hour), new(ended+hour) }, explain.Waiting, nil, "has not been evaluated yet"},
		"visible a moment ago":           {func(*explain.RuleState) {}, explain.Waiting, nil, "behind the cursor"},
		"visible too late": {
			func(s *explain.RuleState) { s.JudgedNS, s.CursorNS = new(ended+2*hour), new(ended+2*hour) }, explain.BeyondLookBack, nil,
			"more than 1 h",
		},
		"without a look-back":   {func(s *explain.RuleState) { s.Rule.LookBackSeconds = 0 }, explain.BeyondLookBack, nil, ""},
		"older than what stays": {func(s *explain.RuleState) { s.Rule.RetentionFloorNS = ended }, explain.Expired, nil, ""},
		"counted":               {func(s *explain.RuleState) { s.Rule.FireMode, s.Rule.WindowSeconds = rules.CountInWindow, 60 }, explain.Counted, nil, "window of 1 min that"},
		"expected":              {func(s *explain.RuleState) { absence(s, "a") }, explain.Counted, nil, "window of 1 min that"},
		"not expected":          {func(s *explain.RuleState) { absence(s, "somewhere-else") }, explain.Counted, nil, "not one from which the rule expects"},
		"not counted":           {func(s *explain.RuleState) { s.Rule.FireMode, s.Rule.Scope = rules.CountInWindow, elsewhere }, explain.NotMatched, []string{"scope.applications"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := explain.Explain(exchange(), ruleState(c.change))
			if got.Verdict != c.want || !slices.Equal(got.Unmet, c.unmet) || !strings.Contains(got.Detail, c.says) {
				t.Errorf("got %s, unmet %q, %q; want %s, %q, %q", got.Verdict, got.Unmet, got.Detail, c.want, c.unmet, c.says)
			}
			if got.RuleName != "r" || got.RuleID != (uuid.UUID{1}) || got.Detail == "" {
				t.Errorf("%+v does not name its rule, or says nothing", got)
			}
		})
	}
}

// edited changes a rule a second after the exchange ended.
func edited(before, after rules.Scope) func(*explain.RuleState) {
	return func(s *explain.RuleState) {
		s.Rule.Scope, s.Rule.ArmedSinceNS = after, ended+second
		s.Rule.Former = []rules.Era{
			{Scope: rules.Scope{Routes: []string{"before all that"}}, FromNS: ended - 2*hour, ToNS: ended - hour},
			{Scope: before, FromNS: ended - hour, ToNS: ended + second},
		}
	}
}

// TestLongExchangesOfWindows checks that an exchange that never counts is not said to count.
func TestLongExchangesOfWindows(t *testing.T) {
	s := ruleState(func(s *explain.RuleState) { s.Rule.FireMode, s.Rule.WindowSeconds = rules.CountInWindow, 60 })
	for ran, want := range map[int64]explain.Verdict{hour: explain.Counted, hour + 60*second - 1: explain.Counted, hour + 60*second: explain.BeyondLookBack} {
		e := exchange()
		e.StartTimeNS = ended - ran
		if got := explain.Explain(e, s); got.Verdict != want {
			t.Errorf("after %v: %s, want %s", time.Duration(ran), got.Verdict, want)
		}
	}
}
