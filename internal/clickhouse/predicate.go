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

// predicate returns the condition that a terminal row meets exactly when the
// [rules.Matcher] of scope and filter matches the exchange that is read from it.
//
// The Matcher compares bytes, and so do the functions used here. Two things
// need care:
//
//   - Names with wildcards are taken apart like the Matcher's: beginning, end,
//     and what follows each other between. LIKE would not do, since its % does
//     not pass over bytes that are no UTF-8.
//
//   - Go and ClickHouse both have RE2, and differ in what a dot and a newline
//     are to each other, in the version of Unicode behind \p and (?i), and in
//     what is no UTF-8: Go takes each such byte for U+FFFD, ClickHouse for
//     nothing that any expression matches. So ClickHouse gets Go's own reading
//     of the expression, written out (see [re2]), and a text with each odd
//     byte replaced by U+FFFD.
//
// One difference is left: ClickHouse bounds the memory of a compiled expression
// and refuses some that Go takes, as \pL{1000}. That is an error, never another
// answer.
//
// A map of ClickHouse can hold a key twice; the last one counts, as it does
// when the map is read.
func predicate(m *Mapping, scope rules.Scope, filter rules.Filter) (condition, error) {
	return prefixed(m, "", scope, filter)
}

// prefixed returns a predicate the names of whose parameters begin with a
// prefix, so that one statement can have several.
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

// builder gathers conditions and their parameters.
type builder struct {
	prefix     string
	conditions []string
	parameters map[string]string
}

// and adds a condition; an empty one is none.
func (b *builder) and(condition string) {
	if condition != "" {
		b.conditions = append(b.conditions, condition)
	}
}

// not adds that a condition does not hold. No condition here is ever NULL, as the fields of
// a mapping are not, so it holds or its opposite does.
func (b *builder) not(condition string) {
	if condition != "" {
		b.and("NOT (" + condition + ")")
	}
}

// condition returns all that was added, combined by AND.
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

// names returns the condition that a value is one of the names, in which *
// stands for any run of characters.
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

// pattern returns the condition that a value begins with the first piece, ends
// with the last one, and has those between in order, none overlapping another.
func (b *builder) pattern(value, name string, pieces []string) string {
	first, last := pieces[0], pieces[len(pieces)-1]
	var all []string
	if first != "" {
		all = append(all, fmt.Sprintf("startsWith(%s, %s)", value, b.text(name+"_first", first)))
	}
	// After a piece that is not there, at is so far out that nothing is found
	// there either: position is 0, less 1 wraps around, and least makes room for
	// what is added.
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

// matches returns the condition that a value matches an expression somewhere.
func (b *builder) matches(value, name, expression string) (string, error) {
	written, err := re2(expression)
	if err != nil {
		return "", err
	}
	pattern := b.text(name, written)
	// Cuts a text into characters and bytes that belong to none.
	cut := `[\\x{0}-\\x{D7FF}\\x{E000}-\\x{10FFFF}]|\\C`
	replaced := fmt.Sprintf("arrayStringConcat(arrayMap(tocsin_rune -> if(isValidUTF8(tocsin_rune), tocsin_rune, '\\xEF\\xBF\\xBD'), extractAll(%s, '%s')))", value, cut)
	return fmt.Sprintf("match(if(isValidUTF8(%[1]s), %[1]s, %[2]s), %[3]s)", value, replaced, pattern), nil
}
