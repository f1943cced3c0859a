package rules_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/rules"
)

func TestMatch(t *testing.T) {
	exchange := rules.Exchange{
		Environment: "production", Application: "orders", Route: "order-to-erp", Status: rules.Failed,
		DurationNS: 1_500_000, ErrorType: "ConnectException", ErrorMessage: "ERP refused: 100% \"gone\"\nüber",
		Attributes: map[string]string{"customer": "42", "empty": ""},
	}
	for name, c := range map[string]struct {
		scope  rules.Scope
		filter rules.Filter
		want   bool
	}{
		"nothing said":                 {want: true},
		"status named":                 {filter: rules.Filter{Statuses: []rules.Status{rules.Failed}}, want: true},
		"other status":                 {filter: rules.Filter{Statuses: []rules.Status{rules.Completed}}},
		"environment":                  {scope: rules.Scope{Environments: []string{"staging", "production"}}, want: true},
		"other environment":            {scope: rules.Scope{Environments: []string{"staging"}}},
		"case counts":                  {scope: rules.Scope{Applications: []string{"Orders"}}},
		"wildcard alone":               {scope: rules.Scope{Applications: []string{"*"}}, want: true},
		"wildcard at the end":          {scope: rules.Scope{Routes: []string{"order-*"}}, want: true},
		"wildcard at the beginning":    {scope: rules.Scope{Routes: []string{"*-erp"}}, want: true},
		"wildcards between":            {scope: rules.Scope{Routes: []string{"o*-to-*p"}}, want: true},
		"wildcard for nothing":         {scope: rules.Scope{Routes: []string{"order-to-erp*"}}, want: true},
		"pieces must not overlap":      {scope: rules.Scope{Routes: []string{"order-to-e*to-erp"}}},
		"pieces in order":              {scope: rules.Scope{Routes: []string{"*erp*order*"}}},
		"other signs are no wildcards": {scope: rules.Scope{Routes: []string{"order?to?erp", "order.*"}}},
		"scope and filter":             {scope: rules.Scope{Applications: []string{"billing"}}, filter: rules.Filter{ErrorTypes: []string{"ConnectException"}}},
		"error type":                   {filter: rules.Filter{ErrorTypes: []string{"X", "ConnectException"}}, want: true},
		"part of an error type":        {filter: rules.Filter{ErrorTypes: []string{"Connect"}}},
		"message contains":             {filter: rules.Filter{ErrorMessageContains: "100% \"gone\""}, want: true},
		"message contains not":         {filter: rules.Filter{ErrorMessageContains: "erp"}},
		"message matches":              {filter: rules.Filter{ErrorMessageMatches: `^ERP .* \d+%`}, want: true},
		"message matches not":          {filter: rules.Filter{ErrorMessageMatches: `refused$`}},
		"minimum, equal":               {filter: rules.Filter{MinDurationMS: new(int64(1))}, want: true},
		"minimum, above":               {filter: rules.Filter{MinDurationMS: new(int64(2))}},
		"maximum":                      {filter: rules.Filter{MaxDurationMS: new(int64(2))}, want: true},
		"maximum, below":               {filter: rules.Filter{MaxDurationMS: new(int64(1))}},
		"attribute equals":             {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeEquals, Value: "42"}}}, want: true},
		"attribute equals not":         {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeEquals, Value: "4"}}}},
		"attribute exists, empty":      {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "empty", Op: rules.AttributeExists}}}, want: true},
		"attribute exists not":         {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "absent", Op: rules.AttributeExists}}}},
		"absent is not empty":          {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "absent", Op: rules.AttributeEquals}}}},
		"attribute matches":            {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeMatches, Value: `^\d\d$`}}}, want: true},
		"excluded application":         {scope: rules.Scope{NotApplications: []string{"ord*"}}},
		"excluded and wanted":          {scope: rules.Scope{Routes: []string{"order-*"}, NotRoutes: []string{"order-to-erp"}}},
		"other one excluded":           {scope: rules.Scope{NotEnvironments: []string{"staging"}, NotRoutes: []string{"x"}}, want: true},
		"excluded error type":          {filter: rules.Filter{NotErrorTypes: []string{"X", "ConnectException"}}},
		"excluded part of error type":  {filter: rules.Filter{NotErrorTypes: []string{"Connect*"}}, want: true},
		"message must not contain":     {filter: rules.Filter{ErrorMessageNotContains: []string{"x", "refused"}}},
		"message does not contain":     {filter: rules.Filter{ErrorMessageNotContains: []string{"x", "y"}}, want: true},
		"message must not match":       {filter: rules.Filter{ErrorMessageNotMatches: []string{"x", `\d%`}}},
		"message does not match":       {filter: rules.Filter{ErrorMessageNotMatches: []string{"x", `\d$`}}, want: true},
		"attribute not equal":          {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Not: true, Op: rules.AttributeEquals, Value: "4"}}}, want: true},
		"absent is not equal":          {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "absent", Not: true, Op: rules.AttributeEquals, Value: "4"}}}, want: true},
		"attribute is absent":          {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "absent", Not: true, Op: rules.AttributeExists}}}, want: true},
		"attribute in":                 {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeIn, Values: []string{"1", "42"}}}}, want: true},
		"attribute not in":             {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Not: true, Op: rules.AttributeIn, Values: []string{"1", "42"}}}}},
		"number above":                 {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeGreaterThan, Value: "41.9"}}}, want: true},
		"number equal is not above":    {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeGreaterThan, Value: "42.0"}}}},
		"number, not text":             {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeLessThan, Value: "1e2"}}}, want: true},
		"empty is no number":           {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "empty", Op: rules.AttributeAtMost, Value: "5"}}}},
		"not above includes absent":    {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "absent", Not: true, Op: rules.AttributeAtLeast, Value: "5"}}}, want: true},
		"one attribute of two":         {filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeExists}, {Key: "x", Op: rules.AttributeExists}}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := rules.Compile(c.scope, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Match(&exchange); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestCompileNamesThePart(t *testing.T) {
	for want, filter := range map[string]rules.Filter{
		"filter.errorMessageMatches":       {ErrorMessageMatches: "("},
		"filter.errorMessageNotMatches[1]": {ErrorMessageNotMatches: []string{"a", "("}},
		"filter.attributes[0].value":       {Attributes: []rules.AttributeMatch{{Key: "a", Op: rules.AttributeAtMost, Value: "many"}}},
		"filter.attributes[1].value":       {Attributes: []rules.AttributeMatch{{Key: "a", Op: rules.AttributeExists}, {Key: "b", Op: rules.AttributeMatches, Value: "["}}},
	} {
		if _, err := rules.Compile(rules.Scope{}, filter); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("err = %v, want it to begin with %s", err, want)
		}
	}
}

func TestUnmetNamesEachPart(t *testing.T) {
	m, err := rules.Compile(
		rules.Scope{Applications: []string{"billing"}, NotRoutes: []string{"order-*"}, NotEnvironments: []string{"test"}},
		rules.Filter{
			Statuses: []rules.Status{rules.Completed}, ErrorTypes: []string{"X"}, ErrorMessageNotContains: []string{"a", "refused"}, ErrorMessageNotMatches: []string{"b"},
			MaxDurationMS: new(int64(1)), Attributes: []rules.AttributeMatch{{Key: "k", Not: true, Op: rules.AttributeExists}, {Key: "n", Op: rules.AttributeAtLeast, Value: "1"}},
		})
	if err != nil {
		t.Fatal(err)
	}
	got := m.Unmet(&rules.Exchange{
		Application: "orders", Route: "order-to-erp", Environment: "production", Status: rules.Failed, DurationNS: 2e6, ErrorMessage: "refused",
		Attributes: map[string]string{"n": "0"},
	})
	want := []string{
		"filter.statuses", "scope.applications", "scope.notRoutes", "filter.errorTypes", "filter.maxDurationMs",
		"filter.errorMessageNotContains[1]", "filter.attributes[1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("unmet: %q, want %q", got, want)
	}
}

func TestEnded(t *testing.T) {
	if got := (&rules.Exchange{StartTimeNS: 5, EndTimeNS: new(int64(10))}).EndedNS(); got != 10 {
		t.Errorf("with an end: %d", got)
	}
	if got := (&rules.Exchange{StartTimeNS: 5}).EndedNS(); got != 5 {
		t.Errorf("without: %d", got)
	}
}

func TestCleanTextIsCleanAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "text"))
		if rapid.Bool().Draw(t, "clean already") {
			text = strings.ReplaceAll(strings.ToValidUTF8(text, "é"), "\x00", "")
		}
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		got := rules.CleanText(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("CleanText(%q, %d) = %q", text, limit, got)
		}
		if utf8.ValidString(text) && !strings.ContainsRune(text, 0) && len(text) <= limit && got != text {
			t.Fatalf("CleanText(%q, %d) changed it to %q", text, limit, got)
		}
	})
}

func TestCleanKeepsEverythingStorable(t *testing.T) {
	e := rules.Exchange{
		ExecutionID: "\x00", ErrorMessage: strings.Repeat("\xff", 1<<20), ErrorStack: strings.Repeat("ü", 1<<20),
		Attributes: map[string]string{},
	}
	for i := range 300 {
		e.Attributes[strings.Repeat("k", i)] = "\x00"
	}
	c := e.Clean()
	if c.ExecutionID != "hex:00" || len(c.ErrorMessage) > 16<<10 || len(c.ErrorStack) > 32<<10 || len(c.Attributes) != 100 {
		t.Errorf("id %q, message %d bytes, stack %d bytes, %d attributes", c.ExecutionID, len(c.ErrorMessage), len(c.ErrorStack), len(c.Attributes))
	}
	if e.Attributes["k"] != "\x00" || e.ExecutionID != "\x00" {
		t.Error("Clean changed the exchange of the source")
	}
}

// TestTheLongestLookBack checks that validation uses the same maximum as the retention of what a
// look-back may reach.
func TestTheLongestLookBack(t *testing.T) {
	d := rules.Definition{
		Name: "a", FireMode: rules.PerExchange, Severity: rules.Info, WebhookIDs: []uuid.UUID{}, Targets: []rules.Target{},
		IntervalSeconds: 1, LookBackSeconds: rules.MaxLookBackSeconds,
	}
	if err := rules.NewValidator().Definition(&d); err != nil {
		t.Errorf("the longest look-back is refused: %v", err)
	}
	d.LookBackSeconds++
	if err := rules.NewValidator().Definition(&d); err == nil {
		t.Error("a longer one is taken")
	}
}
