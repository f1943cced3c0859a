package clickhouse

import (
	"fmt"
	"strconv"

	"tocsin/rules"
)

// message adds the conditions on the error message.
func (b *builder) message(m *Mapping, f *rules.Filter) error {
	message := textOf(m.ErrorMessage)
	contains := func(name, part string) string {
		return fmt.Sprintf("position(%s, %s) > 0", message, b.text(name, part))
	}
	if f.ErrorMessageContains != "" {
		b.and(contains("contains", f.ErrorMessageContains))
	}
	for i, part := range f.ErrorMessageNotContains {
		b.not(contains("not_contains_"+strconv.Itoa(i), part))
	}
	if f.ErrorMessageMatches != "" {
		matches, err := b.matches(message, "matches", f.ErrorMessageMatches)
		if err != nil {
			return fmt.Errorf("filter.errorMessageMatches: %w", err)
		}
		b.and(matches)
	}
	for i, expression := range f.ErrorMessageNotMatches {
		matches, err := b.matches(message, "not_matches_"+strconv.Itoa(i), expression)
		if err != nil {
			return fmt.Errorf("filter.errorMessageNotMatches[%d]: %w", i, err)
		}
		b.not(matches)
	}
	return nil
}

// attributeOf returns the value of the attribute with a key: the last one if there are several, and
// the empty text if there is none.
func attributeOf(m *Mapping, key string) string {
	return fmt.Sprintf("mapValues(%[1]s)[arrayLastIndex(tocsin_key -> tocsin_key = %[2]s, mapKeys(%[1]s))]", m.attributes(), key)
}

// attribute returns the condition that an attribute exists and meets a comparison, before a
// negation is applied.
func (b *builder) attribute(m *Mapping, name string, a *rules.AttributeMatch) (string, error) {
	key := b.text(name+"_key", a.Key)
	value := attributeOf(m, key)
	var holds string
	switch a.Op {
	case rules.AttributeExists:
		holds = "true"
	case rules.AttributeEquals:
		holds = value + " = " + b.text(name, a.Value)
	case rules.AttributeIn:
		if len(a.Values) == 0 {
			return "false", nil
		}
		holds = b.in(value, name, a.Values)
	case rules.AttributeMatches:
		matches, err := b.matches(value, name, a.Value)
		if err != nil {
			return "", err
		}
		holds = matches
	case rules.AttributeGreaterThan, rules.AttributeAtLeast, rules.AttributeLessThan, rules.AttributeAtMost:
		if rules.Number(a.Value) == nil {
			return "", fmt.Errorf("%q is not a number", a.Value)
		}
		holds = b.compares(value, name, a)
	default:
		return "", fmt.Errorf("unknown comparison %q", a.Op)
	}
	return fmt.Sprintf("mapContains(%s, %s) AND %s", m.attributes(), key, holds), nil
}

// compares returns the condition that a value is a number and meets a comparison. Numbers of
// [rules.NumberExpression] are below 10^36 and multiples of 10^-36. This type holds each of them
// exactly, which no floating-point type does.
func (b *builder) compares(value, name string, a *rules.AttributeMatch) string {
	operator := map[rules.AttributeOp]string{
		rules.AttributeGreaterThan: ">", rules.AttributeAtLeast: ">=", rules.AttributeLessThan: "<", rules.AttributeAtMost: "<=",
	}[a.Op]
	number := func(text string) string { return fmt.Sprintf("toDecimal256OrZero(%s, 36)", text) }
	return fmt.Sprintf("(match(%[1]s, %[2]s) AND %[3]s %[4]s %[5]s)", value, b.text(name+"_number", rules.NumberExpression),
		number(value), operator, number(b.text(name, a.Value)))
}
