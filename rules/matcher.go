package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Matcher decides whether an exchange matches a scope and a filter. It is safe
// for concurrent use.
type Matcher struct {
	statuses             []Status
	applications, routes []pattern
	minNS                *int64
	// place are the conditions on the fields that [Index] uses; further are the others.
	place, further []condition
}

// condition is a part of a scope or filter.
type condition struct {
	// field is the path of the field in a [Definition], as in validation errors.
	field string
	met   func(e *Exchange) bool
}

// Compile prepares a condition. Its error names the part that is invalid. A definition that passed
// [Validate] compiles.
func Compile(scope Scope, filter Filter) (*Matcher, error) {
	m := &Matcher{
		statuses:     filter.StatusesOrDefault(),
		applications: patterns(scope.Applications),
		routes:       patterns(scope.Routes),
		minNS:        nanoseconds(filter.MinDurationMS),
	}
	m.place = append(m.place, condition{"filter.statuses", func(e *Exchange) bool { return slices.Contains(m.statuses, e.Status) }})
	m.names("applications", m.applications, patterns(scope.NotApplications), func(e *Exchange) string { return e.Application })
	m.names("routes", m.routes, patterns(scope.NotRoutes), func(e *Exchange) string { return e.Route })
	m.names("environments", patterns(scope.Environments), patterns(scope.NotEnvironments), func(e *Exchange) string { return e.Environment })
	if types := filter.ErrorTypes; len(types) > 0 {
		m.and("filter.errorTypes", func(e *Exchange) bool { return slices.Contains(types, e.ErrorType) })
	}
	if types := filter.NotErrorTypes; len(types) > 0 {
		m.and("filter.notErrorTypes", func(e *Exchange) bool { return !slices.Contains(types, e.ErrorType) })
	}
	if least := m.minNS; least != nil {
		m.and("filter.minDurationMs", func(e *Exchange) bool { return e.DurationNS >= *least })
	}
	if most := nanoseconds(filter.MaxDurationMS); most != nil {
		m.and("filter.maxDurationMs", func(e *Exchange) bool { return e.DurationNS <= *most })
	}
	if err := m.message(&filter); err != nil {
		return nil, err
	}
	for i := range filter.Attributes {
		a := &filter.Attributes[i]
		holds, err := attribute(a)
		if err != nil {
			return nil, fmt.Errorf("filter.attributes[%d].value: %w", i, err)
		}
		m.and(fmt.Sprintf("filter.attributes[%d]", i), func(e *Exchange) bool {
			value, exists := e.Attributes[a.Key]
			return (exists && holds(value)) != a.Not
		})
	}
	return m, nil
}

// and adds a condition that does not depend on the place of an exchange.
func (m *Matcher) and(field string, met func(e *Exchange) bool) {
	m.further = append(m.further, condition{field, met})
}

// names adds the condition that a name matches one of some patterns, and none of others.
func (m *Matcher) names(list string, some, others []pattern, of func(e *Exchange) string) {
	if len(some) > 0 {
		m.place = append(m.place, condition{"scope." + list, func(e *Exchange) bool { return matchesAny(some, of(e)) }})
	}
	if len(others) > 0 {
		field := "scope.not" + strings.ToUpper(list[:1]) + list[1:]
		m.place = append(m.place, condition{field, func(e *Exchange) bool { return !matchesAny(others, of(e)) }})
	}
}

// message adds the conditions on the error message.
func (m *Matcher) message(f *Filter) error {
	if part := f.ErrorMessageContains; part != "" {
		m.and("filter.errorMessageContains", func(e *Exchange) bool { return strings.Contains(e.ErrorMessage, part) })
	}
	for i, part := range f.ErrorMessageNotContains {
		m.and(fmt.Sprintf("filter.errorMessageNotContains[%d]", i), func(e *Exchange) bool { return !strings.Contains(e.ErrorMessage, part) })
	}
	if f.ErrorMessageMatches != "" {
		expr, err := regexp.Compile(f.ErrorMessageMatches)
		if err != nil {
			return fmt.Errorf("filter.errorMessageMatches: %w", err)
		}
		m.and("filter.errorMessageMatches", func(e *Exchange) bool { return expr.MatchString(e.ErrorMessage) })
	}
	for i, text := range f.ErrorMessageNotMatches {
		field := fmt.Sprintf("filter.errorMessageNotMatches[%d]", i)
		expr, err := regexp.Compile(text)
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		m.and(field, func(e *Exchange) bool { return !expr.MatchString(e.ErrorMessage) })
	}
	return nil
}

// Match reports whether e matches.
func (m *Matcher) Match(e *Exchange) bool { return m.looksAt(e) && meets(m.further, e) }

// looksAt reports whether e has a wanted status and its place is in the scope.
func (m *Matcher) looksAt(e *Exchange) bool { return meets(m.place, e) }

func meets(list []condition, e *Exchange) bool {
	for i := range list {
		if !list[i].met(e) {
			return false
		}
	}
	return true
}

// Unmet returns the parts of the condition that e does not meet, by their paths in a [Definition];
// none if e matches.
func (m *Matcher) Unmet(e *Exchange) []string {
	var fields []string
	for _, list := range [][]condition{m.place, m.further} {
		for _, c := range list {
			if !c.met(e) {
				fields = append(fields, c.field)
			}
		}
	}
	return fields
}

// pattern is a name split at its wildcards. The name begins with the first piece, ends with the
// last one, and contains the pieces in between in order.
type pattern []string

func patterns(names []string) []pattern {
	cut := make([]pattern, len(names))
	for i, name := range names {
		cut[i] = strings.Split(name, "*")
	}
	return cut
}

// NameMatches reports whether a name matches one of some texts with wildcards. Without texts, every
// name matches.
func NameMatches(names []string, name string) bool { return matchesAny(patterns(names), name) }

func matchesAny(names []pattern, name string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(p pattern) bool { return p.match(name) })
}

func (p pattern) match(name string) bool {
	first, last := p[0], p[len(p)-1]
	if len(p) == 1 {
		return name == first
	}
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, piece := range p[1 : len(p)-1] {
		at := strings.Index(name, piece)
		if at < 0 {
			return false
		}
		name = name[at+len(piece):]
	}
	return true
}

func nanoseconds(ms *int64) *int64 {
	if ms == nil {
		return nil
	}
	ns := *ms * 1_000_000
	return &ns
}
