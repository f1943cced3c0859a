package rules

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
)

// AttributeOp says how an attribute is compared.
type AttributeOp string

// The comparisons of an attribute. The last four compare numbers, see [Number].
const (
	AttributeEquals      AttributeOp = "EQUALS"
	AttributeIn          AttributeOp = "IN"
	AttributeExists      AttributeOp = "EXISTS"
	AttributeMatches     AttributeOp = "MATCHES"
	AttributeGreaterThan AttributeOp = "GREATER_THAN"
	AttributeAtLeast     AttributeOp = "AT_LEAST"
	AttributeLessThan    AttributeOp = "LESS_THAN"
	AttributeAtMost      AttributeOp = "AT_MOST"
)

// Numeric reports whether op compares numbers.
func (op AttributeOp) Numeric() bool {
	switch op {
	case AttributeGreaterThan, AttributeAtLeast, AttributeLessThan, AttributeAtMost:
		return true
	case AttributeEquals, AttributeIn, AttributeExists, AttributeMatches:
	}
	return false
}

// AttributeMatch restricts one attribute of an exchange.
type AttributeMatch struct {
	Key string `json:"key" validate:"required,max=200,text"`
	// Not negates the condition. So the condition also holds for exchanges without the attribute,
	// if it would not hold for them otherwise.
	Not bool        `json:"not,omitempty"`
	Op  AttributeOp `json:"op" validate:"oneof=EQUALS IN EXISTS MATCHES GREATER_THAN AT_LEAST LESS_THAN AT_MOST"`
	// Value is the text that the attribute equals, the RE2 expression that it matches, or the
	// number that it is compared with. It is empty for EXISTS and IN.
	Value string `json:"value,omitempty" validate:"max=1000,text"`
	// Values are the texts that the attribute may have. They are used only by IN.
	Values []string `json:"values,omitempty" validate:"max=100,dive,max=1000,text"`
}

// NumberExpression is an RE2 expression for texts that are numbers: decimal numbers with at most 18
// digits on each side of the point and an exponent from -18 to 18. Nothing else is a number: no
// hexadecimal, no digit groups, no spaces, no NaN. Within these bounds every comparison is exact,
// here and in ClickHouse.
const NumberExpression = `\A[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})([eE][+-]?(0?[0-9]|1[0-8]))?\z`

var decimal = regexp.MustCompile(NumberExpression)

// Number returns the value of a number, or nil if text is not a number.
func Number(text string) *big.Rat {
	if !decimal.MatchString(text) {
		return nil
	}
	n, _ := new(big.Rat).SetString(text)
	return n
}

// attribute returns a function that reports whether the value of an attribute meets a condition,
// before a negation is applied.
func attribute(a *AttributeMatch) (func(value string) bool, error) {
	switch a.Op {
	case AttributeExists:
		return func(string) bool { return true }, nil
	case AttributeEquals:
		return func(value string) bool { return value == a.Value }, nil
	case AttributeIn:
		return func(value string) bool { return slices.Contains(a.Values, value) }, nil
	case AttributeMatches:
		expr, err := regexp.Compile(a.Value)
		if err != nil {
			return nil, err
		}
		return expr.MatchString, nil
	case AttributeGreaterThan, AttributeAtLeast, AttributeLessThan, AttributeAtMost:
		return numeric(a)
	}
	return nil, fmt.Errorf("unknown comparison %q", a.Op)
}

func numeric(a *AttributeMatch) (func(value string) bool, error) {
	limit := Number(a.Value)
	if limit == nil {
		return nil, fmt.Errorf("%q is not a number", a.Value)
	}
	return func(value string) bool {
		n := Number(value)
		if n == nil {
			return false
		}
		switch c := n.Cmp(limit); a.Op { //nolint:exhaustive // the others compare texts
		case AttributeGreaterThan:
			return c > 0
		case AttributeAtLeast:
			return c >= 0
		case AttributeLessThan:
			return c < 0
		default:
			return c <= 0
		}
	}, nil
}
