package rules_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/internal/fault"
	"tocsin/rules"
)

// contradictions returns the fields of which a definition's scope or filter is said to exclude others.
func contradictions(t *rapid.T, s rules.Scope, f rules.Filter) (fields []string) {
	d := rules.Definition{Name: "r", FireMode: rules.PerExchange, Severity: rules.Info, IntervalSeconds: 1, Scope: s, Filter: f}
	found, err := rules.NewValidator().Faults(&d)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range found {
		if broken.Code != "contradiction" {
			t.Fatalf("%+v", broken)
		}
		fields = append(fields, broken.Field)
	}
	return fields
}

// TestContradictoryAttributesAreFound draws conditions on one attribute: they are refused exactly
// where none of the values that could tell them apart meets all of them.
func TestContradictoryAttributesAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{"a", "b", "1", "1.0", "2", "2.5", "-3", "4e0", "", "+2"}
		text := rapid.SampledFrom(texts)
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rules.AttributeMatch {
			a := rules.AttributeMatch{
				Key: "k", Not: rapid.Bool().Draw(t, "not"),
				Op: rapid.SampledFrom([]rules.AttributeOp{"EQUALS", "IN", "EXISTS", "GREATER_THAN", "AT_LEAST", "LESS_THAN", "AT_MOST"}).Draw(t, "op"),
			}
			switch {
			case a.Op.Numeric():
				a.Value = rapid.SampledFrom([]string{"1", "2", "2.50", "-3", "4"}).Draw(t, "number")
			case a.Op == rules.AttributeEquals:
				a.Value = text.Draw(t, "value")
			case a.Op == rules.AttributeIn:
				a.Values = rapid.SliceOfN(text, 1, 3).Draw(t, "values")
			}
			return a
		}), 1, 5).Draw(t, "conditions")

		m, err := rules.Compile(rules.Scope{}, rules.Filter{Attributes: list})
		if err != nil {
			t.Fatal(err)
		}
		matches := func(attributes map[string]string) bool {
			return m.Match(&rules.Exchange{Status: rules.Failed, Attributes: attributes})
		}
		possible := matches(nil)
		for _, value := range slices.Concat(texts, between(texts), []string{"neither of them"}) {
			possible = possible || matches(map[string]string{"k": value})
		}
		if found := contradictions(t, rules.Scope{}, rules.Filter{Attributes: list}); (len(found) == 0) != possible {
			t.Fatalf("something meets %+v: %v; refused: %v", list, possible, found)
		}
	})
}

// between returns numbers around and between some, and further ways to write them.
func between(texts []string) (list []string) {
	for _, text := range texts {
		if n := rules.Number(text); n != nil {
			for _, by := range []*big.Rat{big.NewRat(-1, 4), new(big.Rat), big.NewRat(1, 4)} {
				list = append(list, new(big.Rat).Add(n, by).FloatString(4))
			}
		}
	}
	return list
}

// TestExclusionsOfEverythingAreFound draws names and exclusions with wildcards: they are refused
// exactly where no name is left.
func TestExclusionsOfEverythingAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab*]{1,4}`)
		s := rules.Scope{Routes: rapid.SliceOfN(name, 0, 3).Draw(t, "routes"), NotRoutes: rapid.SliceOfN(name, 0, 3).Draw(t, "not")}
		m, err := rules.Compile(s, rules.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		possible := false
		for _, text := range append(slices.Clone(s.Routes), "*") {
			for _, wild := range []string{"", "a", "b", "ab", "ba", "c"} {
				possible = possible || m.Match(&rules.Exchange{Status: rules.Failed, Route: strings.ReplaceAll(text, "*", wild)})
			}
		}
		if found := contradictions(t, s, rules.Filter{}); (len(found) == 0) != possible {
			t.Fatalf("a name is left by %+v: %v; refused: %v", s, possible, found)
		}
	})
}

// TestContradictions has what else excludes everything, and what only looks as if it did.
func TestContradictions(t *testing.T) {
	with := func(list ...rules.AttributeMatch) rules.Filter { return rules.Filter{Attributes: list} }
	for name, c := range map[string]struct {
		filter rules.Filter
		field  string
	}{
		"an error type that is left out":            {rules.Filter{ErrorTypes: []string{"A"}, NotErrorTypes: []string{"B", "A"}}, "filter.notErrorTypes"},
		"one of two":                                {rules.Filter{ErrorTypes: []string{"A", "C"}, NotErrorTypes: []string{"B", "A"}}, ""},
		"a message with a part that it has not":     {rules.Filter{ErrorMessageContains: "connection refused", ErrorMessageNotContains: []string{"x", "refused"}}, "filter.errorMessageNotContains[1]"},
		"a part with what it has not":               {rules.Filter{ErrorMessageContains: "refused", ErrorMessageNotContains: []string{"connection refused"}}, ""},
		"an expression, and not":                    {rules.Filter{ErrorMessageMatches: "^a", ErrorMessageNotMatches: []string{"^a"}}, "filter.errorMessageNotMatches[0]"},
		"a part that an expression excludes":        {rules.Filter{ErrorMessageContains: "read timed out", ErrorMessageNotMatches: []string{"x", "(?i)TIMED? out"}}, "filter.errorMessageNotMatches[1]"},
		"a part that an expression may exclude":     {rules.Filter{ErrorMessageContains: "read timed out", ErrorMessageNotMatches: []string{"^read", `out$`, `\btimed\b`, "out of"}}, ""},
		"an expression that matches anything":       {rules.Filter{ErrorMessageNotMatches: []string{".*"}}, "filter.errorMessageNotMatches[0]"},
		"an expression for no message":              {rules.Filter{ErrorMessageNotMatches: []string{"^$"}}, ""},
		"an expression of an attribute, and not":    {with(rules.AttributeMatch{Key: "k", Op: "MATCHES", Value: "^a"}, rules.AttributeMatch{Key: "k", Not: true, Op: "MATCHES", Value: "^a"}), "filter.attributes[1].value"},
		"a value that an expression does not match": {with(rules.AttributeMatch{Key: "k", Op: "EQUALS", Value: "b"}, rules.AttributeMatch{Key: "k", Op: "MATCHES", Value: "^a"}), "filter.attributes[1].value"},
		"different attributes":                      {with(rules.AttributeMatch{Key: "k", Op: "EQUALS", Value: "b"}, rules.AttributeMatch{Key: "l", Op: "EQUALS", Value: "c"}), ""},
		"neither":                                   {with(rules.AttributeMatch{Key: "k", Not: true, Op: "EQUALS", Value: "b"}, rules.AttributeMatch{Key: "k", Not: true, Op: "EXISTS"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := rules.Definition{Name: "r", FireMode: rules.PerExchange, Severity: rules.Info, IntervalSeconds: 1, Filter: c.filter}
			found, err := rules.NewValidator().Faults(&d)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Collect(fieldsOf(found)); c.field == "" && len(got) > 0 || c.field != "" && !slices.Equal(got, []string{c.field}) {
				t.Errorf("%v, want %q", found, c.field)
			}
		})
	}
}

// TestWildcardsAreBounded has names that ClickHouse would refuse to compare: it nests a function for each wildcard.
func TestWildcardsAreBounded(t *testing.T) {
	most, more := strings.Repeat("*a", rules.MaxWildcards), strings.Repeat("*a", rules.MaxWildcards+1)
	d := rules.Definition{Name: "r", FireMode: rules.PerExchange, Severity: rules.Info, IntervalSeconds: 1, Scope: rules.Scope{
		Routes: []string{most, more}, NotEnvironments: []string{more},
	}}
	found, err := rules.NewValidator().Faults(&d)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Collect(fieldsOf(found)), []string{"scope.notEnvironments[0]", "scope.routes[1]"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %q", found, want)
	}
}

// TestLargeExpressionsAreNotComparedWithEveryValue has as many expected groups as a rule can have, and expressions that take
// long to compile and to match. Who may only look at rules can have such a rule checked, by a preview.
func TestLargeExpressionsAreNotComparedWithEveryValue(t *testing.T) {
	d := rules.Definition{
		Name: "r", FireMode: rules.AbsentInWindow, Severity: rules.Info, IntervalSeconds: 10, WindowSeconds: 60, Threshold: 1,
		GroupBy: rules.GroupByAttribute, GroupByAttribute: "k", Filter: rules.Filter{Statuses: []rules.Status{rules.Failed}},
	}
	for i := range 10 {
		var expression strings.Builder
		for j := range 90 {
			fmt.Fprintf(&expression, "%c{0,1000}", 'a'+(i+j)%26)
		}
		d.Filter.Attributes = append(d.Filter.Attributes, rules.AttributeMatch{Key: "k", Not: true, Op: rules.AttributeMatches, Value: expression.String() + "!"})
	}
	for i := range 1000 {
		d.Expected = append(d.Expected, fmt.Sprint(strings.Repeat("a", 490), i))
	}
	checked := make(chan error, 1)
	go func() { checked <- rules.NewValidator().Definition(&d) }()
	select {
	case err := <-checked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the rule is not checked within a minute")
	}
}

func fieldsOf(list []fault.Field) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, f := range list {
			if !yield(f.Field) {
				return
			}
		}
	}
}
