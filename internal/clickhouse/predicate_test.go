package clickhouse_test

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/rules"
)

// alphabet returns the pieces of random texts: mostly such as have a meaning in SQL, LIKE, RE2,
// wildcards or UTF-8, and few others, so that texts are often equal.
func alphabet() []string {
	return []string{
		"a", "A", "b", "ab", "k", "\u212a", "ſ", "s", "ß", "ẞ", "é", "É", "😀", "𐐀", "𐐨", "0", "٣", "_", "%", "*", "?", ".", "\\", "'", `"`, "`",
		"\x00", "\n", "\r", "\t", " ", "\u2028", "\uFFFD", "\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xf0\x9f",
		"\U0010FFFF", "(", ")", "[", "]", "{", "}", "|", "^", "$", "+", "-", "#", "/", ";", "--", "{x:String}", "\u0345",
	}
}

func text(pieces int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := ""
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(alphabet()), 0, pieces).Draw(t, "pieces") {
			s += piece
		}
		return s
	})
}

// expression returns RE2 expressions, some of which Go rejects.
func expression() *rapid.Generator[string] {
	atoms := []string{
		".", "a", "b", "k", "s", "ß", "é", "😀", `\x{FFFD}`, `\x00`, `\n`, `\.`, `\*`, `\\`, `%`, `_`, `'`, "[^a]", "[a-c]", "[^é]", "[[:alpha:]]", "[[:^word:]]",
		`\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\pL`, `\PL`, `\p{Lu}`, `\p{Greek}`, `\p{C}`, `\p{Any}`, `\p{L}`, `[\pN_]`, `\b`, `\B`, "^", "$", `\A`, `\z`, `\Qa.b\E`,
		"(?i:k)", "(?i:ſ)", "(?i:é)", "(?i:𐐀)", "(?s:.)", "(?-s:.)", "(?m:^)", "(?m:$)", "(?P<n>a)", "(?<n>b)", "(a|b|)", "(?:)", `[^\x00-\x{10FFFF}]`, `[\x{D800}-\x{DFFF}]`,
		`\x{10FFFF}`, `[^\n]`, `\C`, `\Z`, "(?=a)", `\1`, `(?i:\x{345})`, `\x{2028}`, `\r`,
	}
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.SampledFrom([]string{"", "", "", "(?i)", "(?s)", "(?m)", "(?U)", "(?ims)", "^", "(?-s)"}).Draw(t, "flags")
		for range rapid.IntRange(1, 4).Draw(t, "atoms") {
			s += rapid.SampledFrom(atoms).Draw(t, "atom")
			s += rapid.SampledFrom([]string{"", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "|", "$"}).Draw(t, "repeat")
		}
		return s
	})
}

func names() *rapid.Generator[[]string] {
	return rapid.OneOf(
		rapid.Just([]string(nil)),
		rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			// A wildcard between any two pieces, so that there are many.
			name := ""
			for i, piece := range rapid.SliceOfN(text(1), 1, 5).Draw(t, "name") {
				if i > 0 && rapid.Bool().Draw(t, "wild") {
					name += "*"
				}
				name += piece
			}
			return name
		}), 1, 3))
}

func milliseconds() *rapid.Generator[*int64] {
	return rapid.Ptr(rapid.SampledFrom([]int64{0, 1, 2, 1000, 8_999_999_999_999, 9_000_000_000_000}), true)
}

// numbers returns texts that are numbers to the rules, texts that are numbers only elsewhere, and
// others.
func numbers() *rapid.Generator[string] {
	digits := func(most int) *rapid.Generator[string] {
		return rapid.StringMatching(fmt.Sprintf("[0159]{0,%d}", most))
	}
	return rapid.OneOf(
		// Texts that floating point reads as one number, or as another one.
		rapid.SampledFrom([]string{
			"9007199254740992", "9007199254740993", "9007199254740992.5", "0.1", "0.10000000000000000", "0.10000000000000001", "0.100000000000000001",
			"999999999999999999", "999999999999999999.000000000000000001", "999999999999999998", "1e18", "1e-18", "1.1e-18",
		}),
		rapid.SampledFrom([]string{
			"", "0", "-0", "+0", "00", "007", "1", "1.", "1.0", "+1", "-1", ".5", "-.5", "0.5", "0.50", "1e3", "1E+3", "1000", "1000.0", "1e-3", "0.001", "1e0", "1e00", "1e08", "1e008",
			"1e18", "1e19", "-1e18", "1e-18", "1e-19", "0x10", "0X1p4", "0b1", "0o7", "1_000", "1,000", "1.000,5", " 1", "1 ", "\t1", "1\n", "1\r", "1\x00", "\x001", "\xff1", "1\xff",
			"NaN", "nan", "inf", "-inf", "+Inf", "Infinity", "+", "-", ".", "e5", "1e", "1e+", "1e1.5", "1..2", "1.2.3", "--1", "+-1", "1d", "1f", "1L", "１", "٣", "½", "true",
			"0.1", "0.10000000000000001", "0.3", "0.30000000000000004", "9007199254740992", "9007199254740993", "9007199254740993.5", "999999999999999999", "1000000000000000000",
			"0999999999999999999", "999999999999999999.999999999999999999", "-999999999999999999.999999999999999999e18", "0.000000000000000001", "0.0000000000000000001",
			"0.000000000000000001e-18", "-.000000000000000001E-18", "999999999999999999.999999999999999999e18", "999999999999999999.999999999999999998e18",
		}),
		rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"", "", "-", "+"}).Draw(t, "sign") + digits(19).Draw(t, "whole") +
				rapid.SampledFrom([]string{"", ".", "."}).Draw(t, "point") + digits(19).Draw(t, "fraction") +
				rapid.SampledFrom([]string{"", "", "", "e", "E-", "e+"}).Draw(t, "exponent") + digits(2).Draw(t, "power")
		}))
}

// numeric returns a condition on a key that most exchanges have.
func numeric() *rapid.Generator[rules.AttributeMatch] {
	ops := []rules.AttributeOp{rules.AttributeGreaterThan, rules.AttributeAtLeast, rules.AttributeLessThan, rules.AttributeAtMost}
	return rapid.Custom(func(t *rapid.T) rules.AttributeMatch {
		return rules.AttributeMatch{
			Key: "n", Op: rapid.SampledFrom(ops).Draw(t, "op"), Not: rapid.Bool().Draw(t, "not"),
			Value: numbers().Filter(func(s string) bool { return rules.Number(s) != nil }).Draw(t, "number"),
		}
	})
}

func attribute() *rapid.Generator[rules.AttributeMatch] {
	return rapid.Custom(func(t *rapid.T) rules.AttributeMatch {
		a := rules.AttributeMatch{Key: rapid.OneOf(rapid.Just("n"), text(1)).Draw(t, "key"), Not: rapid.Bool().Draw(t, "not")}
		value := rapid.OneOf(text(1), text(2), numbers())
		switch a.Op = rapid.SampledFrom([]rules.AttributeOp{rules.AttributeEquals, rules.AttributeExists, rules.AttributeIn, rules.AttributeMatches}).Draw(t, "op"); a.Op { //nolint:exhaustive // numbers are compared by numeric
		case rules.AttributeIn:
			a.Values = rapid.SliceOfN(value, 0, 4).Draw(t, "values")
		case rules.AttributeMatches:
			a.Value = expression().Draw(t, "matches")
		default:
			a.Value = value.Draw(t, "value")
		}
		return a
	})
}

func filters() *rapid.Generator[rules.Filter] {
	return rapid.Custom(func(t *rapid.T) rules.Filter {
		f := rules.Filter{
			Statuses: rapid.SampledFrom([][]rules.Status{nil, {rules.Failed}, {rules.Completed}, {rules.Completed, rules.Failed}}).Draw(t, "statuses"),
		}
		// Few parts at once, as otherwise hardly anything would match.
		for range rapid.IntRange(1, 2).Draw(t, "parts") {
			switch rapid.IntRange(0, 8).Draw(t, "part") {
			case 0:
				f.ErrorTypes = rapid.SliceOfN(text(2), 1, 3).Draw(t, "error types")
			case 1:
				f.ErrorMessageContains = text(2).Draw(t, "contains")
			case 2:
				f.ErrorMessageMatches = expression().Draw(t, "matches")
			case 3:
				f.MinDurationMS, f.MaxDurationMS = milliseconds().Draw(t, "min"), milliseconds().Draw(t, "max")
			case 4:
				f.Attributes = append(f.Attributes, attribute().Draw(t, "attribute"))
			case 5:
				f.Attributes = append(f.Attributes, numeric().Draw(t, "numeric"))
			case 6:
				f.NotErrorTypes = rapid.SliceOfN(text(2), 1, 3).Draw(t, "not error types")
			case 7:
				f.ErrorMessageNotContains = rapid.SliceOfN(text(2), 1, 3).Draw(t, "contains not")
			case 8:
				f.ErrorMessageNotMatches = rapid.SliceOfN(expression(), 1, 2).Draw(t, "matches not")
			}
		}
		return f
	})
}

func scopes() *rapid.Generator[rules.Scope] {
	return rapid.Custom(func(t *rapid.T) rules.Scope {
		var s rules.Scope
		lists := []*[]string{&s.Applications, &s.NotApplications, &s.Routes, &s.NotRoutes, &s.Environments, &s.NotEnvironments}
		for range rapid.IntRange(0, 2).Draw(t, "restrictions") {
			*rapid.SampledFrom(lists).Draw(t, "list") = names().Draw(t, "names")
		}
		return s
	})
}

func exchanges() *rapid.Generator[rules.Exchange] {
	durations := []int64{0, 1, 999_999, 1_000_000, 1_000_001, 999_999_999, 1_000_000_000, 8_999_999_999_999_000_000, 9_000_000_000_000_000_000, 9_000_000_000_000_000_001, math.MaxInt64}
	return rapid.Custom(func(t *rapid.T) rules.Exchange {
		attributes := map[string]string{}
		for range rapid.IntRange(0, 4).Draw(t, "attributes") {
			attributes[text(1).Draw(t, "key")] = text(2).Draw(t, "value")
		}
		if rapid.IntRange(0, 5).Draw(t, "numbered") > 0 {
			attributes["n"] = numbers().Draw(t, "number")
		}
		return rules.Exchange{
			Environment: text(4).Draw(t, "environment"), Application: text(4).Draw(t, "application"), Route: text(4).Draw(t, "route"),
			Status:     rapid.SampledFrom([]rules.Status{rules.Failed, rules.Failed, rules.Completed, rules.Running}).Draw(t, "status"),
			DurationNS: rapid.SampledFrom(durations).Draw(t, "duration"), ErrorType: text(2).Draw(t, "error type"),
			ErrorMessage: text(8).Draw(t, "error message"), Attributes: attributes,
		}
	})
}

// TestPredicateAgreesWithMatcher compares the two forms of a filter, row by row, on the engine:
// random rows, and over each set of them random scopes and filters.
func TestPredicateAgreesWithMatcher(t *testing.T) {
	t.Parallel()
	db := chtest.New(t)
	ch := open(t, db)
	ctx := t.Context()
	set, matched, asked, refused := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		set++
		tenant := fmt.Sprintf("tenant-%d", set)
		rows := rapid.SliceOfN(exchanges(), 20, 40).Draw(rt, "rows")
		for i := range rows {
			rows[i].TenantID, rows[i].StartTimeNS, rows[i].ExecutionID = tenant, base+int64(i), fmt.Sprint(i)
		}
		db.Insert(t, rows...) //nolint:contextcheck // its context is that of t
		for range 10 {
			scope := scopes().Draw(rt, "scope")
			filter := filters().Draw(rt, "filter")
			matcher, err := rules.Compile(scope, filter)
			if err != nil {
				refused++
				if _, err := matching(ctx, ch, cursor.Range{FromNS: base, ToNS: base + 100}, source.Narrowing{Scope: scope, Filter: filter}); err == nil {
					rt.Fatalf("the matcher refuses %+v, the predicate does not", filter)
				}
				continue
			}
			asked++
			var want, got []string
			for i := range rows {
				if rows[i].Status != rules.Running && matcher.Match(&rows[i]) {
					want = append(want, rows[i].ExecutionID)
				}
			}
			page, err := found(ch.Scan(ctx, source.Scan{
				Tenants: tenants(tenant), After: cursor.Position{StartTimeNS: base - 1}, BeforeNS: base + 100, Limit: 100,
				Narrow: &source.Narrowing{Scope: scope, Filter: filter},
			}))
			if err != nil {
				rt.Fatalf("%+v %+v: %v", scope, filter, err)
			}
			for i := range page {
				got = append(got, page[i].ExecutionID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("%#v %#v: the matcher (-) and the predicate (+) differ:\n%s", scope, filter, diff)
			}
			matched += len(want)
		}
	})
	t.Logf("%d filters, %d matches, %d filters refused", asked, matched, refused)
	if matched < asked {
		t.Errorf("only %d matches of %d filters: the test hardly tells", matched, asked)
	}
}

// TestExpressionsReadAlike covers the differences between Go's RE2 and ClickHouse's that random
// texts would rarely reach.
func TestExpressionsReadAlike(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	for i, c := range []struct {
		expression, message string
		want                bool
	}{
		{"a.b", "a\nb", false},
		{"(?s)a.b", "a\nb", true},
		{"a.b", "a\xffb", true},
		{"a.b", "a\xff\xffb", false},
		{"a..b", "a\xff\xffb", true},
		{"^...$", "\xed\xa0\x80", true},
		{"a[^x]b", "a\xffb", true},
		{`a\x{FFFD}b`, "a\xffb", true},
		{`^\x{FFFD}$`, "\xe2\x82", false},
		{"a$", "a\n", false},
		{"(?m)a$", "a\nb", true},
		{`a\z`, "a", true},
		{"(?i)k", "\u212a", true},
		{"(?i)ſ", "S", true},
		{`\x00`, "a\x00b", true},
		{"^.{1000}$", "", false},
		{"b", "a\x00b", true},
		{`\bé`, "é", false},
		{`\B`, "aéa", false},
		{`x*(\B|y)`, "aéa", false},
		{`a\B`, "aé", false},
		{`\B`, "aéß", true},
		{`\Ba`, "éa", false},
		{`é\B.\b`, "a\néßa", true},
		{"", "", true},
		{"a||b", "", true},
	} {
		e := failed(base+int64(i), fmt.Sprint(i))
		e.ErrorMessage = c.message
		db.Insert(t, e)
		filter := rules.Filter{ErrorMessageMatches: c.expression}
		matcher, err := rules.Compile(rules.Scope{}, filter)
		if err != nil {
			t.Fatal(err)
		}
		total, err := matching(t.Context(), ch, cursor.Range{FromNS: e.StartTimeNS, ToNS: e.StartTimeNS + 1}, source.Narrowing{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		if matcher.Match(&e) != c.want || (total == 1) != c.want {
			t.Errorf("%q on %q: Go says %v, ClickHouse %d, want %v", c.expression, c.message, matcher.Match(&e), total, c.want)
		}
	}
}

// TestExpressionTooLarge checks the one remaining difference: ClickHouse limits the memory of a
// compiled expression, and returns an error that says so.
func TestExpressionTooLarge(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	db.Insert(t, failed(base, "a"))
	for expression, want := range map[string]string{`\w{1000}`: "", `\pL{300}`: "", `\pL{1000}`: "shorten it"} {
		filter := rules.Filter{ErrorMessageMatches: expression}
		if _, err := rules.Compile(rules.Scope{}, filter); err != nil {
			t.Fatal(err)
		}
		_, err := matching(t.Context(), ch, cursor.Range{FromNS: base, ToNS: base + 1}, source.Narrowing{Filter: filter})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}

// TestExpressionsThatCanBeSavedCanBeCounted repeats atoms as often as the validation of a rule
// allows, and checks that ClickHouse compiles them.
func TestExpressionsThatCanBeSavedCanBeCounted(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	db.Insert(t, failed(base, "a"))
	validator := rules.NewValidator()
	accepted := func(expression string) error {
		return validator.Definition(&rules.Definition{
			Name: "r", FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1,
			Filter: rules.Filter{ErrorMessageMatches: expression},
		})
	}
	repeated := func(atom string, times int) string {
		return strings.Repeat(atom+"{1000}", times/1000) + fmt.Sprintf("%s{%d}", atom, times%1000)
	}
	for _, atom := range []string{`\pL`, "[^a]", `\p{Greek}`, "(a{2,}b?)"} {
		for _, form := range []func(int) string{
			func(n int) string { return repeated(atom, n) },
			func(n int) string { return strings.Repeat(atom, n) },
		} {
			most := sort.Search(60_000, func(n int) bool { return accepted(form(n+1)) != nil })
			expression := form(most)
			_, err := matching(t.Context(), ch, cursor.Range{FromNS: base, ToNS: base + 1},
				source.Narrowing{Filter: rules.Filter{ErrorMessageMatches: expression}})
			if most < 4 || err != nil {
				t.Errorf("%s, %d times: %v", atom, most, err)
			}
		}
	}
	if err := accepted(`\pL{1000}`); err == nil || !strings.Contains(err.Error(), "too large for ClickHouse") {
		t.Errorf("the largest is accepted: %v", err)
	}
}

// TestLastOfTwoEqualKeysCounts inserts maps with a repeated key, which are possible only in
// ClickHouse.
func TestLastOfTwoEqualKeysCounts(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	err := db.Conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO exchanges (tenant_id, start_time, execution_id, status, attributes)
		SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d), 'UTC'), 'x', 'FAILED', CAST([('k', 'first'), ('k', 'last')], 'Map(String, String)')`, base))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{"first": 0, "last": 1} {
		filter := rules.Filter{Attributes: []rules.AttributeMatch{{Key: "k", Op: rules.AttributeEquals, Value: value}}}
		matcher, err := rules.Compile(rules.Scope{}, filter)
		if err != nil {
			t.Fatal(err)
		}
		all, err := found(ch.Scan(t.Context(), scan(cursor.Position{}, base+1)))
		if err != nil {
			t.Fatal(err)
		}
		read := slices.ContainsFunc(all, func(e rules.Exchange) bool { return matcher.Match(&e) })
		total, err := matching(t.Context(), ch, cursor.Range{FromNS: base, ToNS: base + 1}, source.Narrowing{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		if read != (want == 1) || total != want {
			t.Errorf("%s: matched %v in Go, %d in ClickHouse, want %d", value, read, total, want)
		}
	}
}
