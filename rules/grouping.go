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
	// GroupByAttribute is by one attribute, of which a [Grouping] holds the key.
	GroupByAttribute GroupBy = "ATTRIBUTE"
)

// GroupBys returns every field by which exchanges are counted.
func GroupBys() []GroupBy {
	return []GroupBy{GroupByRoute, GroupByApplication, GroupByEnvironment, GroupByErrorType, GroupByAttribute}
}

// Grouping says how exchanges are counted: all together, or each value of a field for
// itself. Attribute is the key of the attribute, empty where the field is another one.
type Grouping struct {
	By        GroupBy
	Attribute string
}

// Grouping returns how the rule counts.
func (d *Definition) Grouping() Grouping { return Grouping{d.GroupBy, d.GroupByAttribute} }

// Of returns the group that an exchange is counted in. An exchange without the attribute
// and one of which the attribute is empty are in one group, the one without a name, like
// exchanges without a route.
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

// MaxGroupBytes is how long the value of an attribute may be, in bytes, and still name its
// group itself.
const MaxGroupBytes = 256

// LongGroupPrefix begins the name of the group of a longer value; the SHA-256 of the
// value follows, in lower case hexadecimal. Attributes hold anything, whole documents even,
// and of each window up to a thousand groups are in memory.
const LongGroupPrefix = "sha-256 of a long value: "

// AttributeGroup returns the group of a value of an attribute.
func AttributeGroup(value string) string {
	if len(value) <= MaxGroupBytes {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return LongGroupPrefix + hex.EncodeToString(sum[:])
}

// ExpectedGroups returns the groups of which a rule on absence lists that it expects
// exchanges.
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

// Example returns what is known of the exchanges of a group.
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
