package rules

import (
	"fmt"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"
)

// Messages of conditions that exclude each other.
const (
	excludesAll          = "Excludes everything that is included, so nothing could match; change one of the two"
	messageAskedFor      = "The filter requires messages that this excludes, so nothing could match; change one of the two"
	attributeContradicts = "No value meets this and the other conditions on the attribute, so nothing could match; change one of them"
	durationAboveMaximum = "The filter excludes exchanges that last this long, so nothing could reach the threshold; lower the threshold, or raise the maximum duration"
	expectedFiltered     = "The filter excludes this group, so it would always be missing; change the filter, or remove the group"
	durationAlways       = "The filter only matches exchanges that last this long, so the threshold would always be reached; raise the threshold, or lower the minimum duration"
	alwaysAll            = "Every exchange of the scope matches, so the ratio would always be 100%; choose one status, or add a condition"
	evidenceFiltered     = "The filter excludes exchanges with this attribute, so nothing would ever be evidence; change the filter, or name another attribute"
	learnedFiltered      = "The filter excludes exchanges with this attribute, so no group would be learned; change the filter, or name another attribute"
)

// crossScope refuses names with too many wildcards, and exclusions that leave nothing. A name with wildcards is left out as a whole
// exactly where an exclusion stands for its text: what "*" stands for there takes in the "*" of the
// name, so that it takes in whatever that stands for.
func crossScope(sl validator.StructLevel) {
	s := sl.Current().Interface().(Scope)
	boundWildcards(sl, s.Environments, "environments", "Environments")
	boundWildcards(sl, s.NotEnvironments, "notEnvironments", "NotEnvironments")
	boundWildcards(sl, s.Applications, "applications", "Applications")
	boundWildcards(sl, s.NotApplications, "notApplications", "NotApplications")
	boundWildcards(sl, s.Routes, "routes", "Routes")
	boundWildcards(sl, s.NotRoutes, "notRoutes", "NotRoutes")
	for _, list := range []struct {
		some, others []string
		name, field  string
	}{
		{s.Environments, s.NotEnvironments, "notEnvironments", "NotEnvironments"},
		{s.Applications, s.NotApplications, "notApplications", "NotApplications"},
		{s.Routes, s.NotRoutes, "notRoutes", "NotRoutes"},
	} {
		some, others := list.some, patterns(list.others)
		if len(some) == 0 {
			some = []string{"*"}
		}
		left := func(name string) bool { return !matchesAny(others, name) }
		if len(others) > 0 && !slices.ContainsFunc(some, left) {
			sl.ReportError(list.others, list.name, list.field, "contradiction", excludesAll)
		}
	}
}

// boundWildcards refuses names with too many wildcards.
func boundWildcards(sl validator.StructLevel, names []string, list, field string) {
	for i, name := range names {
		if strings.Count(name, "*") > MaxWildcards {
			sl.ReportError(name, fmt.Sprintf("%s[%d]", list, i), field, "out_of_range", fmt.Sprintf("Must have at most %d wildcards", MaxWildcards))
		}
	}
}

// crossFilter refuses conditions that exclude each other.
func crossFilter(sl validator.StructLevel) {
	f := sl.Current().Interface().(Filter)
	report := func(wrong bool, value any, name, field, code, message string) {
		if wrong {
			sl.ReportError(value, name, field, code, message)
		}
	}
	report(f.MinDurationMS != nil && f.MaxDurationMS != nil && *f.MinDurationMS > *f.MaxDurationMS, f.MaxDurationMS, "maxDurationMs", "MaxDurationMS", "range",
		"Must not be below the minimum duration, because no exchange could match")
	left := func(name string) bool { return !slices.Contains(f.NotErrorTypes, name) }
	report(len(f.ErrorTypes) > 0 && !slices.ContainsFunc(f.ErrorTypes, left), f.NotErrorTypes, "notErrorTypes", "NotErrorTypes", "contradiction", excludesAll)
	for i, part := range f.ErrorMessageNotContains {
		report(part != "" && strings.Contains(f.ErrorMessageContains, part), part, fmt.Sprintf("errorMessageNotContains[%d]", i), "ErrorMessageNotContains", "contradiction", messageAskedFor)
	}
	for i, text := range f.ErrorMessageNotMatches {
		field, why := fmt.Sprintf("errorMessageNotMatches[%d]", i), excludesAll
		if f.ErrorMessageContains+f.ErrorMessageMatches != "" {
			why = messageAskedFor
		}
		report(text != "" && (text == f.ErrorMessageMatches || matchesAround(text, f.ErrorMessageContains)), text, field, "ErrorMessageNotMatches", "contradiction", why)
	}
	if i := contradiction(f.Attributes); i >= 0 {
		part := map[AttributeOp]string{AttributeExists: "op", AttributeIn: "values"}[f.Attributes[i].Op]
		if part == "" {
			part = "value"
		}
		report(true, f.Attributes[i], fmt.Sprintf("attributes[%d].%s", i, part), "Attributes", "contradiction", attributeContradicts)
	}
}

// matchesAround reports whether an expression matches every text that contains a part: it matches
// the part, and does not depend on what is around its match. Every text contains the empty one.
func matchesAround(expression, part string) bool {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || asserts(parsed) {
		return false
	}
	compiled, err := regexp.Compile(expression)
	return err == nil && compiled.MatchString(part)
}

// asserts reports whether an expression contains an assertion, such as ^ or \b.
func asserts(r *syntax.Regexp) bool {
	switch r.Op { //nolint:exhaustive // the others match characters, or combine expressions
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(r.Sub, asserts)
}

// mostSteps bounds the work of one check, which nothing interrupts: a rule can have a thousand values and fifty expressions
// that each take milliseconds. Comparisons beyond it are left out, as if the value met the condition.
const mostSteps = 100_000_000

// comparison is a condition on an attribute that is ready to be compared with values.
type comparison struct {
	*AttributeMatch

	holds func(value string) bool
	// steps is how many steps it may take for a byte of a value; 0 where it only compares texts.
	steps int
}

// comparisons are conditions, and how many steps may still be taken to compare them with values.
type comparisons struct {
	list []comparison
	left *int
}

// comparisonOf prepares a condition; ok is false if it is not valid, of which another message says so.
func comparisonOf(a *AttributeMatch) (c comparison, ok bool) {
	holds, err := attribute(a)
	if err != nil || a.Op == AttributeIn && len(a.Values) == 0 {
		return c, false
	}
	c = comparison{AttributeMatch: a, holds: holds}
	if a.Op == AttributeMatches {
		parsed, err := syntax.Parse(a.Value, syntax.Perl)
		if err != nil {
			return c, false
		}
		c.steps = instructions(parsed)
	}
	return c, true
}

// contradiction returns the place of the first condition that no attribute meets together with
// those before it, -1 where there is none. It is -1 as well where that takes more than comparing
// values: whether an expression has a match that another one lacks, nobody asks.
func contradiction(list []AttributeMatch) int {
	byKey, left := map[string]comparisons{}, mostSteps
	for i := range list {
		c, ok := comparisonOf(&list[i])
		if !ok {
			continue
		}
		all := comparisons{append(byKey[c.Key].list, c), &left}
		if byKey[c.Key] = all; all.excluded() {
			return i
		}
	}
	return -1
}

// excluded reports whether nothing meets all of some conditions on one attribute.
func (c comparisons) excluded() bool {
	asks := func(a comparison) bool { return !a.Not }
	if !slices.ContainsFunc(c.list, asks) {
		return false // where it is missing, all of them hold
	}
	for _, a := range c.list {
		if a.Not && (a.Op == AttributeExists || slices.ContainsFunc(c.list, func(b comparison) bool {
			return !b.Not && a.Op == AttributeMatches && b.Op == AttributeMatches && a.Value == b.Value
		})) {
			return true
		}
	}
	for _, a := range c.list {
		if !a.Not && (a.Op == AttributeEquals || a.Op == AttributeIn) {
			return !slices.ContainsFunc(values(a.AttributeMatch), c.metBy)
		}
	}
	return c.excludesNumbers()
}

// values returns what an attribute may be by EQUALS or IN.
func values(a *AttributeMatch) []string {
	if a.Op == AttributeEquals {
		return []string{a.Value}
	}
	return a.Values
}

// metBy reports whether a value meets conditions on its attribute, as far as the steps that are left tell.
func (c comparisons) metBy(value string) bool {
	for _, a := range c.list {
		if steps := a.steps * (len(value) + 1); steps <= *c.left {
			*c.left -= steps
			if a.holds(value) == a.Not {
				return false
			}
		}
	}
	return true
}

// excludesNumbers reports whether no number meets the comparisons of an attribute that has to be a
// number. A number can be written in more than one way, so that no text excludes it.
func (c comparisons) excludesNumbers() bool {
	if !slices.ContainsFunc(c.list, func(a comparison) bool { return !a.Not && a.Op.Numeric() }) {
		return false
	}
	var least, most *big.Rat
	var above, below bool // the bounds themselves are out
	for _, a := range c.list {
		if !a.Op.Numeric() {
			continue
		}
		n, op := Number(a.Value), a.Op
		if a.Not {
			op = map[AttributeOp]AttributeOp{
				AttributeGreaterThan: AttributeAtMost, AttributeAtLeast: AttributeLessThan, AttributeLessThan: AttributeAtLeast, AttributeAtMost: AttributeGreaterThan,
			}[op]
		}
		open := op == AttributeGreaterThan || op == AttributeLessThan
		if op == AttributeGreaterThan || op == AttributeAtLeast {
			if least == nil || n.Cmp(least) > 0 || n.Cmp(least) == 0 && open {
				least, above = n, open
			}
		} else if most == nil || n.Cmp(most) < 0 || n.Cmp(most) == 0 && open {
			most, below = n, open
		}
	}
	if least == nil || most == nil {
		return false
	}
	order := least.Cmp(most)
	return order > 0 || order == 0 && (above || below)
}

// leavesOut returns a function that reports whether conditions on an attribute exclude one of its values.
func (f *Filter) leavesOut(key string) func(value string) bool {
	left := mostSteps
	c := comparisons{left: &left}
	for i := range f.Attributes {
		if a, ok := comparisonOf(&f.Attributes[i]); ok && a.Key == key {
			c.list = append(c.list, a)
		}
	}
	return func(value string) bool { return !c.metBy(value) }
}

// leavesOutAll reports whether f excludes every exchange that has an attribute.
func (f *Filter) leavesOutAll(key string) bool {
	return slices.ContainsFunc(f.Attributes, func(a AttributeMatch) bool {
		return a.Key == key && a.Not && a.Op == AttributeExists
	})
}

// all reports whether f matches every exchange.
func (f *Filter) all() bool {
	rest := *f
	if rest.MinDurationMS != nil && *rest.MinDurationMS == 0 {
		rest.MinDurationMS = nil // every exchange lasts that long
	}
	used := FieldsOf(&Scope{}, &rest)
	return len(f.Statuses) == 2 && !used.ErrorType && !used.Others
}
