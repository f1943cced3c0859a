//go:build unix

package torture

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// condition is the scope and the filter of a rule, in the checker's own words.
type condition struct {
	environments, applications, routes []string
	// completed wants exchanges that succeeded, too; failed ones are always wanted unless succeeded is all.
	statuses   []string
	errorTypes []string
	contains   string
	matches    string
	minMS      int64
	maxMS      int64
	attributes []attribute
	// What is left out: an exchange that meets any of these does not count.
	notEnvironments, notApplications, notRoutes, notErrorTypes, notContains, notMatches []string
}

// attribute is a condition on one attribute; op is EQUALS, EXISTS, MATCHES, AT_LEAST or LESS_THAN.
type attribute struct {
	Key   string `json:"key"`
	Op    string `json:"op"`
	Value string `json:"value,omitempty"`
	Not   bool   `json:"not,omitempty"`
}

// rule is a rule of a plan.
type rule struct {
	name            string
	condition       condition
	hooks           []string
	title           string
	lookBackSeconds int
	intervalSeconds int
	// routed says that a routing policy decides whom its alerts notify.
	routed bool
	// ending is by what it resolves its alerts, replay in which way a person replays it; empty for none.
	ending ending
	replay string
	// window, when set, makes the rule one over a window.
	window *windowRule
}

func (r *rule) counts() bool { return r.window != nil }

// definition is the rule as the API takes it, hooks being the ids of webhooks by name.
func (r *rule) definition(hooks map[string]string) map[string]any {
	ids := []string{}
	for _, name := range r.hooks {
		ids = append(ids, hooks[name])
	}
	c := &r.condition
	scope, filter := map[string]any{}, map[string]any{}
	for name, list := range map[string][]string{
		"environments": c.environments, "applications": c.applications, "routes": c.routes,
		"notEnvironments": c.notEnvironments, "notApplications": c.notApplications, "notRoutes": c.notRoutes,
	} {
		if len(list) > 0 {
			scope[name] = list
		}
	}
	for name, list := range map[string][]string{
		"statuses": c.statuses, "errorTypes": c.errorTypes, "notErrorTypes": c.notErrorTypes,
		"errorMessageNotContains": c.notContains, "errorMessageNotMatches": c.notMatches,
	} {
		if len(list) > 0 {
			filter[name] = list
		}
	}
	for name, text := range map[string]string{"errorMessageContains": c.contains, "errorMessageMatches": c.matches} {
		if text != "" {
			filter[name] = text
		}
	}
	for name, ms := range map[string]int64{"minDurationMs": c.minMS, "maxDurationMs": c.maxMS} {
		if ms > 0 {
			filter[name] = ms
		}
	}
	if len(c.attributes) > 0 {
		filter["attributes"] = c.attributes
	}
	definition := map[string]any{
		"name": r.name, "enabled": true, "severity": r.severity(), "scope": scope, "filter": filter,
		"titleTemplate": r.title, "webhookIds": ids, "intervalSeconds": r.intervalSeconds,
	}
	if r.routed {
		delete(definition, "webhookIds")
		definition["useRoutingPolicy"] = true
	}
	if r.counts() {
		r.window.define(definition)
	} else {
		definition["fireMode"], definition["lookBackSeconds"] = "PER_EXCHANGE", r.lookBackSeconds
		r.ending.define(definition)
	}
	return definition
}

// holds says whether the condition holds for an exchange that has ended.
func (c *condition) holds(e *exchange) bool {
	wanted := c.statuses
	if len(wanted) == 0 {
		wanted = []string{"FAILED"}
	}
	switch {
	case !slices.Contains(wanted, e.status()),
		!anyLike(c.environments, e.environment), !anyLike(c.applications, e.application), !anyLike(c.routes, e.route),
		len(c.errorTypes) > 0 && !slices.Contains(c.errorTypes, e.errorType),
		!strings.Contains(e.message, c.contains),
		c.matches != "" && !regexp.MustCompile(c.matches).MatchString(e.message),
		c.minMS > 0 && e.durationNS() < c.minMS*1e6,
		c.maxMS > 0 && e.durationNS() > c.maxMS*1e6:
		return false
	}
	return !c.leavesOut(e) && !slices.ContainsFunc(c.attributes, func(a attribute) bool { return a.holds(e) == a.Not })
}

// leavesOut says whether any of the exclusions holds for an exchange.
func (c *condition) leavesOut(e *exchange) bool {
	some := func(list []string, holds func(string) bool) bool { return slices.ContainsFunc(list, holds) }
	return some(c.notEnvironments, func(p string) bool { return like(p, e.environment) }) ||
		some(c.notApplications, func(p string) bool { return like(p, e.application) }) ||
		some(c.notRoutes, func(p string) bool { return like(p, e.route) }) ||
		slices.Contains(c.notErrorTypes, e.errorType) ||
		some(c.notContains, func(part string) bool { return strings.Contains(e.message, part) }) ||
		some(c.notMatches, func(expression string) bool { return regexp.MustCompile(expression).MatchString(e.message) })
}

// holds says whether the condition holds for an exchange, before it is negated. A value that is no
// number is neither above nor below one.
func (a *attribute) holds(e *exchange) bool {
	value, there := e.attributes[a.Key]
	if !there {
		return false
	}
	number, noNumber := strconv.ParseFloat(value, 64)
	bound, _ := strconv.ParseFloat(a.Value, 64)
	switch a.Op {
	case "EQUALS":
		return value == a.Value
	case "MATCHES":
		return regexp.MustCompile(a.Value).MatchString(value)
	case "AT_LEAST":
		return noNumber == nil && number >= bound
	case "LESS_THAN":
		return noNumber == nil && number < bound
	default:
		return true
	}
}

func anyLike(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return like(p, name) })
}

// like matches a name byte by byte; a star stands for any run of bytes.
func like(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return like(pattern[1:], name) || name != "" && like(pattern, name[1:])
	default:
		return name != "" && name[0] == pattern[0] && like(pattern[1:], name[1:])
	}
}

func (c *condition) equal(other *condition) bool { return reflect.DeepEqual(c, other) }
