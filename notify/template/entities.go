package template

import (
	"maps"
	"slices"
	"strings"

	"tocsin/rules"
)

// entity is what a name refers to: a text, a group of variables, a map, a list, or a member of the
// items of a list.
type entity struct {
	name string
	// text reads a variable.
	text lookup
	// key is the key of the attribute that may hide the variable, in a section over the attributes.
	key string
	// prefix is the prefix of the full names of the members of a group or a map; present reports
	// whether there are any.
	prefix  string
	present func(*Values) bool
	// items are the items of a list, by the engine's names of their members.
	items   func(*Values) []map[string]string
	members []string
	// member is the engine's name of a member of the items of an open list.
	member string
	// written is the name in the template.
	written string
}

// example returns a tag or a name of a part of an entity.
func (e *entity) example() string {
	switch {
	case e.items != nil:
		return openTag + strings.Join(e.members, closeTag+" "+openTag) + closeTag
	case e.prefix == attributePrefix:
		return "KEY"
	default:
		for _, v := range vocabulary() {
			if name, found := strings.CutPrefix(v.Name, e.prefix); found {
				return name
			}
		}
		return "NAME"
	}
}

// engineMember returns the engine's name of a member of an item.
func engineMember(member string) string {
	if member == "." {
		return "item"
	}
	return member
}

// binding is a value with a name in the engine.
type binding struct {
	engine string
	// section says that the value opens a section. Otherwise it is shown.
	section bool
	entity
}

// value returns the value for the engine.
func (b *binding) value(v *Values, limit Limit) any {
	convert := limit.Value
	if limit.URL != nil && b.key == "" && (b.name == "alert.url" || b.name == "rule.runbookUrl") {
		convert = limit.URL
	}
	switch {
	case b.items != nil:
		items := b.items(v)
		if convert != nil {
			for _, item := range items {
				for member, text := range item {
					item[member] = convert(text)
				}
			}
		}
		return items
	case b.text == nil:
		return b.present(v)
	case b.section:
		return strings.TrimSpace(b.text(v)) != ""
	case convert != nil:
		return convert(b.text(v))
	default:
		return b.text(v)
	}
}

// maxItems bounds the items of a list.
const maxItems = 100

// Names of what sections iterate over.
const (
	attributeList = "exchange.attributeList"
	stackLines    = "exchange.stackLines"
)

// structures returns what sections can use in addition to variables.
func structures() []entity {
	always := func(*Values) bool { return true }
	return []entity{
		{name: "exchange", prefix: "exchange.", present: func(v *Values) bool { return HasExample(v.count, v.exchange) }},
		{name: "count", prefix: "count.", present: func(v *Values) bool { return v.count != nil }},
		{name: "rule", prefix: "rule.", present: always},
		{name: "alert", prefix: "alert.", present: always},
		{name: strings.TrimSuffix(attributePrefix, "."), prefix: attributePrefix, present: func(v *Values) bool { return len(v.exchange.Attributes) > 0 }},
		{name: attributeList, members: []string{"key", "value"}, items: (*Values).attributeItems},
		{name: stackLines, members: []string{"."}, items: (*Values).stackItems},
	}
}

// attributeItems returns the attributes in the order of their keys.
func (v *Values) attributeItems() []map[string]string {
	keys := slices.Sorted(maps.Keys(v.exchange.Attributes))
	items := make([]map[string]string, 0, min(len(keys), maxItems))
	for _, key := range keys[:min(len(keys), maxItems)] {
		items = append(items, map[string]string{"key": rules.CleanText(key, maxNameBytes), "value": v.attribute(key)})
	}
	return items
}

// stackItems returns the lines of the stack trace, except blank ones.
func (v *Values) stackItems() []map[string]string {
	var items []map[string]string
	for line := range strings.Lines(v.exchange.ErrorStack) {
		if line = strings.TrimRight(line, " \t\r\n"); line == "" {
			continue
		}
		if len(items) == maxItems {
			break
		}
		items = append(items, map[string]string{engineMember("."): rules.CleanText(line, maxNameBytes)})
	}
	return items
}
