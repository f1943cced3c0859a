package match_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/cursor"
	"tocsin/rules"
)

func compile(t interface{ Fatal(args ...any) }, m match.Match) *match.Matcher {
	c, err := match.Compile(m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWindowAlertsMatchWhereAllTheyCountDoes(t *testing.T) {
	t.Parallel()
	orders := match.Match{Scope: rules.Scope{Applications: []string{"orders", "order-*"}}}
	customer := match.Match{Filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeEquals, Value: "7"}}}}
	anotherCustomer := match.Match{Filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Not: true, Op: rules.AttributeEquals, Value: "8"}}}}
	for name, c := range map[string]struct {
		m     match.Match
		by    rules.GroupBy
		group string
		scope rules.Scope
		types []string
		want  bool
	}{
		"grouped by the field":             {m: orders, by: rules.GroupByApplication, group: "orders", want: true},
		"grouped, another value":           {m: orders, by: rules.GroupByApplication, group: "billing"},
		"grouped by another field":         {m: orders, by: rules.GroupByRoute, group: "orders"},
		"the rule names it":                {m: orders, scope: rules.Scope{Applications: []string{"orders"}}, want: true},
		"the rule names several":           {m: orders, scope: rules.Scope{Applications: []string{"orders", "order-api"}}, want: true},
		"the rule names another one too":   {m: orders, scope: rules.Scope{Applications: []string{"orders", "billing"}}},
		"the rule has a wildcard":          {m: orders, scope: rules.Scope{Applications: []string{"order-*"}}},
		"the rule names nothing":           {m: orders},
		"left out, the rule names nothing": {m: match.Match{Scope: rules.Scope{NotApplications: []string{"billing"}}}},
		"left out, the rule names it":      {m: match.Match{Scope: rules.Scope{NotApplications: []string{"billing"}}}, scope: rules.Scope{Applications: []string{"billing"}}},
		"left out, the rule names others":  {m: match.Match{Scope: rules.Scope{NotApplications: []string{"billing"}}}, scope: rules.Scope{Applications: []string{"orders"}}, want: true},
		"an error type":                    {m: match.Match{Filter: rules.Filter{ErrorTypes: []string{"Timeout"}}}, by: rules.GroupByErrorType, group: "Timeout", want: true},
		"the rule names the error type":    {m: match.Match{Filter: rules.Filter{ErrorTypes: []string{"Timeout"}}}, types: []string{"Timeout"}, want: true},
		"an error message":                 {m: match.Match{Filter: rules.Filter{ErrorMessageContains: ""}, Severities: []rules.Severity{rules.Warning}}, want: true},
		"a text":                           {m: match.Match{Filter: rules.Filter{ErrorMessageContains: "x"}}},
		"no such text":                     {m: match.Match{Filter: rules.Filter{ErrorMessageNotContains: []string{"x"}}}},
		"an attribute that is not there":   {m: match.Match{Filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "k", Not: true, Op: rules.AttributeExists}}}}},
		"an attribute that is counted by":  {m: customer, by: rules.GroupByAttribute, group: "7", want: true},
		"another value of it":              {m: customer, by: rules.GroupByAttribute, group: "8"},
		"another attribute":                {m: match.Match{Filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "k", Op: rules.AttributeExists}}}}, by: rules.GroupByAttribute, group: "7"},
		"not another value":                {m: anotherCustomer, by: rules.GroupByAttribute, group: "7", want: true},
		"without the attribute":            {m: anotherCustomer, by: rules.GroupByAttribute},
		"of bytes that are no text":        {m: anotherCustomer, by: rules.GroupByAttribute, group: cursor.Key("\xff")},
		"of a long value":                  {m: anotherCustomer, by: rules.GroupByAttribute, group: rules.AttributeGroup(strings.Repeat("8", 1000))},
		"of a value, and a text":           {m: match.Match{Filter: rules.Filter{ErrorMessageContains: "x", Attributes: customer.Filter.Attributes}}, by: rules.GroupByAttribute, group: "7"},
		"a status":                         {m: match.Match{Filter: rules.Filter{Statuses: []rules.Status{rules.Failed, rules.Completed}}}},
		"two fields": {
			m:  match.Match{Scope: rules.Scope{Applications: []string{"orders"}, Routes: []string{"a", "b"}}},
			by: rules.GroupByApplication, group: "orders", scope: rules.Scope{Routes: []string{"b", "a"}}, want: true,
		},
		"two fields, one unknown": {
			m:  match.Match{Scope: rules.Scope{Applications: []string{"orders"}, Environments: []string{"test"}}},
			by: rules.GroupByApplication, group: "orders",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := match.Subject{
				Severity: rules.Warning, Count: &alerts.Count{GroupBy: c.by, GroupByAttribute: "customer", Group: c.group}, Scope: c.scope, ErrorTypes: c.types,
				Exchange: &rules.Exchange{Application: "orders", Status: rules.Failed},
			}
			if got := compile(t, c.m).Matches(&s); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestAWindowAlertMatchesNoMoreThanItsExchanges checks that what matches the alert of a window rule
// also matches every exchange that the rule can have counted.
func TestAWindowAlertMatchesNoMoreThanItsExchanges(t *testing.T) {
	t.Parallel()
	name := rapid.SampledFrom([]string{"a", "b", "ab", "c"})
	pattern := rapid.SampledFrom([]string{"a", "b", "a*", "*b", "*", "c"})
	list := func(of *rapid.Generator[string]) *rapid.Generator[[]string] { return rapid.SliceOfN(of, 0, 2) }
	rapid.Check(t, func(t *rapid.T) {
		m := match.Match{
			Severities: []rules.Severity{rules.Warning},
			Scope: rules.Scope{
				Environments: list(pattern).Draw(t, "environments"), NotApplications: list(pattern).Draw(t, "not applications"),
				Applications: list(pattern).Draw(t, "applications"), NotRoutes: list(pattern).Draw(t, "not routes"), Routes: list(pattern).Draw(t, "routes"),
			},
			Filter: rules.Filter{ErrorTypes: list(name).Draw(t, "error types"), NotErrorTypes: list(name).Draw(t, "not error types")},
		}
		if rapid.Bool().Draw(t, "on attributes") {
			m.Filter.Attributes = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rules.AttributeMatch {
				return rules.AttributeMatch{
					Key: rapid.SampledFrom([]string{"k", "k", "l"}).Draw(t, "key"), Not: rapid.Bool().Draw(t, "not"),
					Op: rapid.SampledFrom([]rules.AttributeOp{rules.AttributeEquals, rules.AttributeExists, rules.AttributeMatches}).Draw(t, "op"), Value: name.Draw(t, "value"),
				}
			}), 1, 2).Draw(t, "attribute conditions")
		}
		counted := rules.Scope{
			Environments: list(pattern).Draw(t, "counted environments"), Applications: list(pattern).Draw(t, "counted applications"),
			Routes: list(pattern).Draw(t, "counted routes"), NotRoutes: list(pattern).Draw(t, "not counted routes"),
		}
		types := list(name).Draw(t, "counted types")
		e := rules.Exchange{
			Status: rules.Failed, Environment: name.Draw(t, "environment"), Application: name.Draw(t, "application"),
			Route: name.Draw(t, "route"), ErrorType: name.Draw(t, "error type"),
			Attributes: rapid.MapOfN(rapid.SampledFrom([]string{"k", "l"}), rapid.SampledFrom([]string{"a", "b", "", "\xff"}), 0, 2).Draw(t, "attributes"),
		}
		counts, err := rules.Compile(counted, rules.Filter{ErrorTypes: types})
		if err != nil {
			t.Fatal(err)
		}
		if !counts.Match(&e) {
			return
		}
		by := rapid.SampledFrom([]rules.GroupBy{"", rules.GroupByEnvironment, rules.GroupByApplication, rules.GroupByRoute, rules.GroupByErrorType, rules.GroupByAttribute, rules.GroupByAttribute}).Draw(t, "by")
		count := alerts.Count{GroupBy: by}
		if by == rules.GroupByAttribute {
			count.GroupByAttribute = "k"
		}
		count.Group = cursor.Key(count.Grouping().Of(&e))
		c := compile(t, m)
		window := match.Subject{Severity: rules.Warning, Count: &count, Scope: counted, ErrorTypes: types}
		alone := match.Subject{Severity: rules.Warning, Exchange: &e}
		if c.Matches(&window) && !c.Matches(&alone) {
			t.Fatalf("it matches the alert, and not %+v", e)
		}
		for _, s := range []*match.Subject{&window, &alone} {
			if unmet := c.Unmet(s); c.Matches(s) != (len(unmet) == 0) {
				t.Fatalf("it matches: %v, unmet: %v", c.Matches(s), unmet)
			}
		}
	})
}

// TestAnExchangeMatchesAsInARule checks that scope and filter mean the same as in a rule.
func TestAnExchangeMatchesAsInARule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", "b", "ab"})
		e := rules.Exchange{
			Status: rapid.SampledFrom([]rules.Status{rules.Failed, rules.Completed}).Draw(t, "status"), Application: text.Draw(t, "application"),
			ErrorMessage: text.Draw(t, "message"), Attributes: map[string]string{"k": text.Draw(t, "attribute")},
		}
		filter := rules.Filter{
			Statuses:             []rules.Status{rules.Completed, rules.Failed},
			ErrorMessageContains: text.Draw(t, "contains"),
			Attributes:           []rules.AttributeMatch{{Key: rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), Not: rapid.Bool().Draw(t, "not"), Op: rules.AttributeEquals, Value: text.Draw(t, "value")}},
		}
		scope := rules.Scope{Applications: []string{text.Draw(t, "name") + "*"}}
		rule, err := rules.Compile(scope, filter)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "every status") {
			filter.Statuses = nil
		}
		id := uuid.UUID{1}
		m := match.Match{Rules: []uuid.UUID{id}, Scope: scope, Filter: filter}
		if got, want := compile(t, m).Matches(&match.Subject{RuleID: id, Exchange: &e}), rule.Match(&e); got != want {
			t.Fatalf("%v, and the rule says %v", got, want)
		}
		if compile(t, m).Matches(&match.Subject{RuleID: uuid.UUID{2}, Exchange: &e}) {
			t.Fatal("it matches the alert of another rule")
		}
	})
}

// TestEachConditionIsNamedThatIsNotMet sets every condition there is, none of which is met.
func TestEachConditionIsNamedThatIsNotMet(t *testing.T) {
	t.Parallel()
	names := []string{"other"}
	m := match.Match{
		Rules: []uuid.UUID{{2}}, Labels: []rules.AttributeMatch{{Key: "team", Op: rules.AttributeEquals, Value: "b"}}, Severities: []rules.Severity{rules.Info},
		Scope: rules.Scope{
			Environments: names, NotEnvironments: []string{"test"}, Applications: names, NotApplications: []string{"orders"}, Routes: names, NotRoutes: []string{"in"},
		},
		Filter: rules.Filter{
			Statuses: []rules.Status{rules.Completed}, ErrorTypes: names, NotErrorTypes: []string{"E"}, ErrorMessageContains: "x", ErrorMessageNotContains: []string{"refused"},
			ErrorMessageMatches: "x", ErrorMessageNotMatches: []string{"ref"}, MinDurationMS: new(int64(1)), MaxDurationMS: new(int64(-1)),
			Attributes: []rules.AttributeMatch{{Key: "k", Op: rules.AttributeExists}},
		},
	}
	s := match.Subject{RuleID: uuid.UUID{1}, Severity: rules.Critical, Labels: map[string]string{"team": "a"}, Exchange: &rules.Exchange{
		Environment: "test", Application: "orders", Route: "in", Status: rules.Failed, ErrorType: "E", ErrorMessage: "refused",
	}}
	want := []string{
		"rules", "severities", "labels[0]", "scope.environments", "scope.notEnvironments", "scope.applications", "scope.notApplications", "scope.routes", "scope.notRoutes",
		"filter.statuses", "filter.errorTypes", "filter.notErrorTypes", "filter.errorMessageContains", "filter.errorMessageNotContains", "filter.errorMessageMatches",
		"filter.errorMessageNotMatches", "filter.minDurationMs", "filter.maxDurationMs", "filter.attributes[0]",
	}
	c := compile(t, m)
	if got := c.Unmet(&s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// A new condition has to be notified as well.
	if parts := reflect.TypeFor[match.Match]().NumField() - 2 + reflect.TypeFor[rules.Scope]().NumField() + reflect.TypeFor[rules.Filter]().NumField(); parts != len(want) {
		t.Errorf("there are %d conditions, and %d are listed", parts, len(want))
	}
	if got := compile(t, match.Match{Severities: []rules.Severity{rules.Critical}}).Unmet(&s); got != nil {
		t.Errorf("%q, although it matches", got)
	}
}

func TestWhatCannotBeUsedDoesNotCompile(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]match.Match{
		"an expression": {Filter: rules.Filter{ErrorMessageMatches: "("}},
		"a label":       {Labels: []rules.AttributeMatch{{Key: "team", Op: "LIKE"}}},
		"a number":      {Filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "k", Op: rules.AttributeAtLeast, Value: "many"}}}},
	} {
		if _, err := match.Compile(m); err == nil {
			t.Errorf("%s compiles", name)
		}
	}
	if !(&match.Match{}).Empty() || (&match.Match{Scope: rules.Scope{NotRoutes: []string{"a"}}}).Empty() {
		t.Error("Empty is wrong")
	}
}
