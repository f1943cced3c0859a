// Package match decides which alerts a silence or a route applies to. A [Match] uses the same parts
// as a rule: its scope and filter are those of [rules.Definition], and labels are compared like
// attributes.
//
// A condition that cannot be decided does not match. An alert of a window rule is about many
// exchanges and names only one of them:
//
//   - A condition on the application, for example, is met if the rule counts by application, or if
//     its scope names applications without wildcards and all of them meet it.
//   - A condition on an attribute is met if the rule counts by that attribute and the group has a
//     value.
//   - A condition on any other property of an exchange (its error message, its duration, another
//     attribute) is never met by such an alert.
package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// Match says which alerts are meant. Its parts are combined by AND; an empty part means no
// restriction.
type Match struct {
	// Rules are the rules that raised the alert.
	Rules []uuid.UUID `json:"rules,omitempty" validate:"max=100,unique"`
	// Labels are conditions on the present labels of the rule.
	Labels     []rules.AttributeMatch `json:"labels,omitempty" validate:"max=20,dive"`
	Severities []rules.Severity       `json:"severities,omitempty" validate:"max=3,unique,dive,oneof=CRITICAL WARNING INFO"`
	// Scope and Filter are conditions on the exchange as the alert shows it. A filter without
	// statuses accepts every status.
	Scope  rules.Scope  `json:"scope,omitzero"`
	Filter rules.Filter `json:"filter,omitzero"`
}

// Empty reports whether m has no condition: it would match every alert.
func (m *Match) Empty() bool {
	f := rules.FieldsOf(&m.Scope, &m.Filter)
	return len(m.Rules)+len(m.Labels)+len(m.Severities)+len(m.Filter.Statuses) == 0 && f == rules.Fields{}
}

// Subject is an alert, together with properties of the rule that raised it.
type Subject struct {
	RuleID   uuid.UUID
	Severity rules.Severity
	Labels   map[string]string
	// Exchange is what the alert is about. It is ignored for a window rule.
	Exchange *rules.Exchange
	// Count is set for the alert of a window rule. Scope and ErrorTypes are then what the rule
	// counts.
	Count      *alerts.Count
	Scope      rules.Scope
	ErrorTypes []string
}

// SubjectOf returns the subject for an alert of a rule. It shares memory with both.
func SubjectOf(d *rules.Definition, a *alerts.Instance) Subject {
	s := Subject{RuleID: a.RuleID, Severity: a.Severity, Labels: d.Labels, Exchange: &a.Exchange, Count: a.Count}
	if a.Count != nil {
		s.Exchange, s.Scope, s.ErrorTypes = nil, d.Scope, d.Filter.ErrorTypes
	}
	return s
}

// Matcher decides whether alerts match. It is safe for concurrent use.
type Matcher struct {
	match    Match
	fields   rules.Fields
	labels   *rules.Matcher
	exchange *rules.Matcher
}

// Compile prepares a match. Its error names the part that is invalid.
func Compile(m Match) (*Matcher, error) {
	all := []rules.Status{rules.Completed, rules.Failed}
	labels, err := rules.Compile(rules.Scope{}, rules.Filter{Statuses: all, Attributes: m.Labels})
	if err != nil {
		return nil, fmt.Errorf("%s", strings.Replace(err.Error(), "filter.attributes", "labels", 1))
	}
	filter := m.Filter
	if len(filter.Statuses) == 0 {
		filter.Statuses = all
	}
	exchange, err := rules.Compile(m.Scope, filter)
	if err != nil {
		return nil, err
	}
	return &Matcher{match: m, fields: rules.FieldsOf(&m.Scope, &m.Filter), labels: labels, exchange: exchange}, nil
}

// Matches reports whether an alert matches. An alert that cannot be decided does not match.
func (m *Matcher) Matches(s *Subject) bool {
	if len(m.match.Rules) > 0 && !slices.Contains(m.match.Rules, s.RuleID) {
		return false
	}
	if len(m.match.Severities) > 0 && !slices.Contains(m.match.Severities, s.Severity) {
		return false
	}
	if !m.labels.Match(&rules.Exchange{Status: rules.Failed, Attributes: s.Labels}) {
		return false
	}
	if s.Count != nil {
		return m.matchesAll(s)
	}
	return s.Exchange != nil && m.exchange.Match(s.Exchange)
}

// Unmet returns the conditions that an alert does not meet or that cannot be decided, by their
// paths in a [Match]; none if it matches.
func (m *Matcher) Unmet(s *Subject) []string {
	var fields []string
	for _, p := range m.match.parts() {
		if c, err := Compile(p.match); err != nil || !c.Matches(s) {
			fields = append(fields, p.field)
		}
	}
	return fields
}

// part is a single condition. All parts are combined by AND.
type part struct {
	field string
	match Match
}

func (m *Match) parts() (list []part) {
	add := func(is bool, field string, p Match) {
		if is {
			list = append(list, part{field, p})
		}
	}
	s, f := &m.Scope, &m.Filter
	add(len(m.Rules) > 0, "rules", Match{Rules: m.Rules})
	add(len(m.Severities) > 0, "severities", Match{Severities: m.Severities})
	for i := range m.Labels {
		add(true, fmt.Sprintf("labels[%d]", i), Match{Labels: m.Labels[i : i+1]})
	}
	add(len(s.Environments) > 0, "scope.environments", Match{Scope: rules.Scope{Environments: s.Environments}})
	add(len(s.NotEnvironments) > 0, "scope.notEnvironments", Match{Scope: rules.Scope{NotEnvironments: s.NotEnvironments}})
	add(len(s.Applications) > 0, "scope.applications", Match{Scope: rules.Scope{Applications: s.Applications}})
	add(len(s.NotApplications) > 0, "scope.notApplications", Match{Scope: rules.Scope{NotApplications: s.NotApplications}})
	add(len(s.Routes) > 0, "scope.routes", Match{Scope: rules.Scope{Routes: s.Routes}})
	add(len(s.NotRoutes) > 0, "scope.notRoutes", Match{Scope: rules.Scope{NotRoutes: s.NotRoutes}})
	filter := func(is bool, field string, f rules.Filter) { add(is, "filter."+field, Match{Filter: f}) }
	filter(len(f.Statuses) > 0, "statuses", rules.Filter{Statuses: f.Statuses})
	filter(len(f.ErrorTypes) > 0, "errorTypes", rules.Filter{ErrorTypes: f.ErrorTypes})
	filter(len(f.NotErrorTypes) > 0, "notErrorTypes", rules.Filter{NotErrorTypes: f.NotErrorTypes})
	filter(f.ErrorMessageContains != "", "errorMessageContains", rules.Filter{ErrorMessageContains: f.ErrorMessageContains})
	filter(len(f.ErrorMessageNotContains) > 0, "errorMessageNotContains", rules.Filter{ErrorMessageNotContains: f.ErrorMessageNotContains})
	filter(f.ErrorMessageMatches != "", "errorMessageMatches", rules.Filter{ErrorMessageMatches: f.ErrorMessageMatches})
	filter(len(f.ErrorMessageNotMatches) > 0, "errorMessageNotMatches", rules.Filter{ErrorMessageNotMatches: f.ErrorMessageNotMatches})
	filter(f.MinDurationMS != nil, "minDurationMs", rules.Filter{MinDurationMS: f.MinDurationMS})
	filter(f.MaxDurationMS != nil, "maxDurationMs", rules.Filter{MaxDurationMS: f.MaxDurationMS})
	for i := range f.Attributes {
		filter(true, fmt.Sprintf("attributes[%d]", i), rules.Filter{Attributes: f.Attributes[i : i+1]})
	}
	return list
}

// attributesOf returns the attributes that all exchanges of a group have, and whether they decide
// every attribute condition of the match. A group without a name may have the attribute, and a name
// that replaces a long value says nothing about the value.
func (m *Matcher) attributesOf(c *alerts.Count) (attributes map[string]string, known bool) {
	if !m.fields.Others {
		return nil, true
	}
	other := m.match.Filter
	other.Attributes = nil
	if c.GroupBy != rules.GroupByAttribute || rules.FieldsOf(&m.match.Scope, &other).Others ||
		c.Group == "" || cursor.Key(c.Group) != c.Group || strings.HasPrefix(c.Group, rules.LongGroupPrefix) {
		return nil, false
	}
	for i := range m.match.Filter.Attributes {
		if m.match.Filter.Attributes[i].Key != c.GroupByAttribute {
			return nil, false
		}
	}
	return map[string]string{c.GroupByAttribute: c.Group}, true
}

// matchesAll reports whether all exchanges that the alert of a window rule can be about match. Each
// condition is on one field, so one field is varied at a time.
func (m *Matcher) matchesAll(s *Subject) bool {
	attributes, known := m.attributesOf(s.Count)
	if !known || len(m.match.Filter.Statuses) > 0 {
		return false
	}
	base := rules.Exchange{Status: rules.Failed, Attributes: attributes}
	type field struct {
		values []string
		of     *string
	}
	var fields []field
	for _, f := range []struct {
		asked   bool
		groupBy rules.GroupBy
		counted []string
		wild    bool
		of      *string
	}{
		{m.fields.Environment, rules.GroupByEnvironment, s.Scope.Environments, true, &base.Environment},
		{m.fields.Application, rules.GroupByApplication, s.Scope.Applications, true, &base.Application},
		{m.fields.Route, rules.GroupByRoute, s.Scope.Routes, true, &base.Route},
		{m.fields.ErrorType, rules.GroupByErrorType, s.ErrorTypes, false, &base.ErrorType},
	} {
		if !f.asked {
			continue
		}
		values := f.counted
		if s.Count.GroupBy == f.groupBy {
			values = []string{s.Count.Group}
		} else if f.wild && slices.ContainsFunc(values, func(name string) bool { return strings.Contains(name, "*") }) {
			return false
		}
		if len(values) == 0 {
			return false
		}
		*f.of = values[0]
		fields = append(fields, field{values, f.of})
	}
	if !m.exchange.Match(&base) {
		return false
	}
	for _, f := range fields {
		for _, value := range f.values[1:] {
			if *f.of = value; !m.exchange.Match(&base) {
				return false
			}
		}
		*f.of = f.values[0]
	}
	return true
}
