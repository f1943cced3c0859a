package rules

import (
	"crypto/sha256"
	"encoding/hex"
)

// GroupBy names the field by which exchanges are counted.
type GroupBy string

// The fields by which exchanges are counted.
const (
	GroupByNothing     GroupBy = ""
	GroupByRoute       GroupBy = "ROUTE"
	GroupByApplication GroupBy = "APPLICATION"
	GroupByEnvironment GroupBy = "ENVIRONMENT"
	GroupByErrorType   GroupBy = "ERROR_TYPE"
	// GroupByAttribute groups by one attribute, whose key is in the [Grouping].
	GroupByAttribute GroupBy = "ATTRIBUTE"
)

// GroupBys returns every field by which exchanges are counted.
func GroupBys() []GroupBy {
	return []GroupBy{GroupByRoute, GroupByApplication, GroupByEnvironment, GroupByErrorType, GroupByAttribute}
}

// Grouping says how exchanges are counted: all together, or separately for each value of a field.
// Attribute is the key of the attribute; empty for other fields.
type Grouping struct {
	By        GroupBy
	Attribute string
}

// Grouping returns how the rule counts.
func (d *Definition) Grouping() Grouping { return Grouping{d.GroupBy, d.GroupByAttribute} }

// Of returns the group in which an exchange is counted. Exchanges without the attribute and those
// with an empty value are in one group, the group without a name, like exchanges without a route.
func (g Grouping) Of(e *Exchange) string {
	switch g.By {
	case GroupByRoute:
		return e.Route
	case GroupByApplication:
		return e.Application
	case GroupByEnvironment:
		return e.Environment
	case GroupByErrorType:
		return e.ErrorType
	case GroupByAttribute:
		return AttributeGroup(e.Attributes[g.Attribute])
	case GroupByNothing:
	}
	return ""
}

// MaxGroupBytes is the length up to which the value of an attribute is the name of its group, in
// bytes.
const MaxGroupBytes = 256

// LongGroupPrefix begins the name of the group of a longer value. The SHA-256 of the value follows,
// in lower-case hexadecimal. Attributes may contain anything, even whole documents, and up to a
// thousand groups of each window are in memory.
const LongGroupPrefix = "sha-256 of a long value: "

// AttributeGroup returns the group for a value of an attribute.
func AttributeGroup(value string) string {
	if len(value) <= MaxGroupBytes {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return LongGroupPrefix + hex.EncodeToString(sum[:])
}

// ExpectedGroups returns the groups that a rule on absence lists as expected.
func (d *Definition) ExpectedGroups() []string {
	if d.GroupBy != GroupByAttribute {
		return d.Expected
	}
	groups := make([]string, len(d.Expected))
	for i, value := range d.Expected {
		groups[i] = AttributeGroup(value)
	}
	return groups
}

// Example returns an exchange with the known fields of a group.
func (g Grouping) Example(group string) Exchange {
	switch g.By {
	case GroupByRoute:
		return Exchange{Route: group}
	case GroupByApplication:
		return Exchange{Application: group}
	case GroupByEnvironment:
		return Exchange{Environment: group}
	case GroupByErrorType:
		return Exchange{ErrorType: group}
	case GroupByAttribute:
		return Exchange{Attributes: map[string]string{g.Attribute: group}}
	case GroupByNothing:
	}
	return Exchange{}
}
