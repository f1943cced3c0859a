package alerts_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/rules"
)

func TestErrorPattern(t *testing.T) {
	for name, c := range map[string]struct {
		message, want string
		also, but     []string
	}{
		"nothing": {"", "", nil, nil},
		"spaces":  {" \n\t", "", nil, nil},
		"text": {
			"ERP (refused).", `^\s*ERP\s+\(refused\)\.\s*(\n|$)`,
			[]string{"ERP (refused).\nat Erp.java", "  ERP  (refused)."},
			[]string{"ERP (refused), again", "the ERP (refused).", "ERP _refused_."},
		},
		"numbers": {
			"Read timed out after 30000 ms (try 3)", `^\s*Read\s+timed\s+out\s+after\s+\S*\d\S*\s+ms\s+\(try\s+\S*\d\S*\)\s*(\n|$)`,
			[]string{"Read timed out after 5 ms (try 12)"},
			[]string{"Write timed out after 5 ms (try 12)", "Read timed out after x ms (try 12)"},
		},
		"quotation": {
			`no route "a b" in 'it'`, `^\s*no\s+route\s+"[^"]*"\s+in\s+'[^']*'\s*(\n|$)`, []string{`no route "" in 'x.y'`}, []string{`no route a b in 'it'`},
		},
		"odd bytes": {"a\xff is bad", "^\\s*a\uFFFD\\s+is\\s+bad\\s*(\\n|$)", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := alerts.ErrorPattern(&rules.Exchange{ErrorMessage: c.message})
			if got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
			expr := regexp.MustCompile(got)
			for _, message := range append(c.also, c.message) {
				if !expr.MatchString(message) {
					t.Errorf("%s does not find %q", got, message)
				}
			}
			for _, message := range c.but {
				if expr.MatchString(message) {
					t.Errorf("%s finds %q", got, message)
				}
			}
		})
	}
}

// TestErrorPatternCanBeSaved checks that a rule accepts the pattern of any message, and that such a
// rule excludes the message.
func TestErrorPatternCanBeSaved(t *testing.T) {
	validator := rules.NewValidator()
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9 "'“”«»()\[\]^$*\\|.\n-]{0,40}`),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return strings.Repeat(string(b), 40) }))
		e := rules.Exchange{Status: rules.Failed, ErrorMessage: odd.Draw(t, "message")}
		pattern := alerts.ErrorPattern(&e)
		if pattern == "" {
			return
		}
		d := rules.Definition{Name: "r", FireMode: rules.PerExchange, Severity: rules.Info, IntervalSeconds: 1}
		d.Filter.ErrorMessageNotMatches = []string{pattern}
		if err := validator.Definition(&d); err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		m, err := rules.Compile(d.Scope, d.Filter)
		if err != nil {
			t.Fatal(err)
		}
		if clean := e.Clean(); m.Match(&clean) {
			t.Fatalf("%q does not find %q", pattern, clean.ErrorMessage)
		}
	})
}
