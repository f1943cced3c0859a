package clickhouse

import (
	"fmt"
	"strconv"
	"strings"

	"tocsin/rules"
)

// condition is a ClickHouse predicate and the parameters that it names.
type condition struct {
	sql        string
	parameters map[string]string
}

// predicate returns the condition that a terminal row meets exactly if the [rules.Matcher] of scope
// and filter matches the exchange that is read from it.
//
// The Matcher compares bytes, and so do the functions used here. Two things need care:
//
//   - Names with wildcards are split like those of the Matcher: the beginning, the
//     end, and the pieces between them in order. LIKE is not used, because its % does
//     not match bytes that are not UTF-8.
//
//   - Go and ClickHouse both use RE2. They differ in how a dot matches a newline, in
//     the version of Unicode behind \p and (?i), and in bytes that are not UTF-8: Go
//     reads each such byte as U+FFFD, and in ClickHouse no expression matches it. So
//     ClickHouse gets Go's own reading of the expression, written out (see [re2]), and
//     a text in which each such byte is replaced by U+FFFD.
//
// One difference remains: ClickHouse bounds the memory of a compiled expression, and refuses some
// that Go accepts, for example \pL{1000}. This is an error, never a different answer.
//
// A map of ClickHouse can contain a key twice. The last one counts, as when the map is read.
func predicate(m *Mapping, scope rules.Scope, filter rules.Filter) (condition, error) {
	return prefixed(m, "", scope, filter)
}

// prefixed returns a predicate whose parameter names begin with a prefix, so that one statement can
// contain several.
func prefixed(m *Mapping, prefix string, scope rules.Scope, filter rules.Filter) (condition, error) {
	b := builder{prefix: prefix, parameters: map[string]string{}}
	b.and(m.hasStatus(filter.StatusesOrDefault()))
	b.and(b.names(m.Application, "application", scope.Applications))
	b.not(b.names(m.Application, "not_application", scope.NotApplications))
	b.and(b.names(m.Route, "route", scope.Routes))
	b.not(b.names(m.Route, "not_route", scope.NotRoutes))
	b.and(b.names(m.Environment, "environment", scope.Environments))
	b.not(b.names(m.Environment, "not_environment", scope.NotEnvironments))
	if len(filter.ErrorTypes) > 0 {
		b.and(b.in(textOf(m.ErrorType), "error_type", filter.ErrorTypes))
	}
	if len(filter.NotErrorTypes) > 0 {
		b.not(b.in(textOf(m.ErrorType), "not_error_type", filter.NotErrorTypes))
	}
	if filter.MinDurationMS != nil {
		b.and(m.duration() + " >= " + b.nanoseconds("min_duration", *filter.MinDurationMS))
	}
	if filter.MaxDurationMS != nil {
		b.and(m.duration() + " <= " + b.nanoseconds("max_duration", *filter.MaxDurationMS))
	}
	if err := b.message(m, &filter); err != nil {
		return condition{}, err
	}
	for i := range filter.Attributes {
		a := &filter.Attributes[i]
		holds, err := b.attribute(m, "attribute_"+strconv.Itoa(i), a)
		if err != nil {
			return condition{}, fmt.Errorf("filter.attributes[%d].value: %w", i, err)
		}
		if a.Not {
			b.not(holds)
		} else {
			b.and(holds)
		}
	}
	return b.condition(), nil
}

// builder collects conditions and their parameters.
type builder struct {
	prefix     string
	conditions []string
	parameters map[string]string
}

// and adds a condition. It ignores an empty one.
func (b *builder) and(condition string) {
	if condition != "" {
		b.conditions = append(b.conditions, condition)
	}
}

// not adds the negation of a condition. No condition here is ever NULL, because the fields of a
// mapping are not, so either the condition or its negation is true.
func (b *builder) not(condition string) {
	if condition != "" {
		b.and("NOT (" + condition + ")")
	}
}

// condition returns all conditions, combined by AND.
func (b *builder) condition() condition {
	return condition{sql: strings.Join(b.conditions, "\n  AND "), parameters: b.parameters}
}

// text returns a string parameter.
func (b *builder) text(name, value string) string {
	name = b.prefix + name
	b.parameters[name] = hexadecimal(value)
	return "unhex({" + name + ":String})"
}

func (b *builder) nanoseconds(name string, ms int64) string {
	return b.integer(name, ms*1_000_000)
}

func (b *builder) integer(name string, value int64) string {
	name = b.prefix + name
	b.parameters[name] = strconv.FormatInt(value, 10)
	return "{" + name + ":Int64}"
}

func (b *builder) in(value, name string, texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = b.text(name+"_"+strconv.Itoa(i), text)
	}
	return value + " IN (" + strings.Join(list, ", ") + ")"
}

// names returns the condition that a value is one of the names, in which * matches any run of
// characters.
func (b *builder) names(expression, name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	value := operand(expression)
	var plain, either []string
	for _, n := range names {
		if !strings.Contains(n, "*") {
			plain = append(plain, n)
		}
	}
	if len(plain) > 0 {
		either = append(either, b.in(value, name, plain))
	}
	for i, n := range names {
		if pieces := strings.Split(n, "*"); len(pieces) > 1 {
			either = append(either, b.pattern(value, fmt.Sprintf("%s_pattern_%d", name, i), pieces))
		}
	}
	return "(" + strings.Join(either, " OR ") + ")"
}

// pattern returns the condition that a value begins with the first piece, ends with the last one,
// and contains the pieces in between in order and without overlap.
func (b *builder) pattern(value, name string, pieces []string) string {
	first, last := pieces[0], pieces[len(pieces)-1]
	var all []string
	if first != "" {
		all = append(all, fmt.Sprintf("startsWith(%s, %s)", value, b.text(name+"_first", first)))
	}
	// After a piece that is missing, at is so large that no further piece is found: position is 0,
	// which minus 1 wraps around, and least leaves room for what is added.
	at, moved := strconv.Itoa(len(first)+1), false
	for i, piece := range pieces[1 : len(pieces)-1] {
		if piece != "" {
			found := fmt.Sprintf("position(%s, %s, %s)", value, b.text(name+"_"+strconv.Itoa(i), piece), at)
			at, moved = fmt.Sprintf("least(toUInt64(%s - 1), 4611686018427387904) + %d", found, len(piece)+1), true
		}
	}
	if last != "" {
		all = append(all, fmt.Sprintf("endsWith(%s, %s)", value, b.text(name+"_last", last)))
	}
	if moved || first != "" && last != "" {
		all = append(all, fmt.Sprintf("%s + %d <= length(%s) + 1", at, len(last), value))
	}
	if len(all) == 0 {
		return "true"
	}
	return "(" + strings.Join(all, " AND ") + ")"
}

// matches returns the condition that an expression matches some part of a value.
func (b *builder) matches(value, name, expression string) (string, error) {
	written, err := re2(expression)
	if err != nil {
		return "", err
	}
	pattern := b.text(name, written)
	// Splits a text into characters and bytes that belong to no character.
	cut := `[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C`
	replaced := fmt.Sprintf("arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\\xEF\\xBF\\xBD'), extractAll(%s, '%s')))", value, cut)
	return fmt.Sprintf("match(if(isValidUTF8(%[1]s), %[1]s, %[2]s), %[3]s)", value, replaced, pattern), nil
}
