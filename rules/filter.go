package rules

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Scope says where a rule looks. Each list is a disjunction of names, in which
// "*" stands for any run of characters; an empty list is no restriction.
type Scope struct {
	Environments []string `json:"environments,omitempty" validate:"max=100,dive,required,max=200,text"`
	Applications []string `json:"applications,omitempty" validate:"max=100,dive,required,max=200,text"`
	Routes       []string `json:"routes,omitempty" validate:"max=100,dive,required,max=200,text"`
}

// Filter says what a rule looks for. Its parts are combined by AND; an absent
// part is no restriction, but for Statuses.
type Filter struct {
	// Statuses are terminal; none means FAILED.
	Statuses   []Status `json:"statuses,omitempty" validate:"max=2,unique,dive,oneof=COMPLETED FAILED"`
	ErrorTypes []string `json:"errorTypes,omitempty" validate:"max=100,dive,required,max=500,text"`
	// ErrorMessageContains is compared byte by byte, case included.
	ErrorMessageContains string `json:"errorMessageContains,omitempty" validate:"max=1000,text"`
	// ErrorMessageMatches is an RE2 expression, found anywhere in the message.
	ErrorMessageMatches string `json:"errorMessageMatches,omitempty" validate:"max=1000,text,regexp"`
	// MinDurationMS and MaxDurationMS are inclusive, in milliseconds.
	MinDurationMS *int64           `json:"minDurationMs,omitempty" validate:"omitempty,min=0,max=9000000000000"`
	MaxDurationMS *int64           `json:"maxDurationMs,omitempty" validate:"omitempty,min=0,max=9000000000000"`
	Attributes    []AttributeMatch `json:"attributes,omitempty" validate:"max=50,dive"`
}

// AttributeOp says how an attribute is compared.
type AttributeOp string

// The comparisons of an attribute.
const (
	AttributeEquals  AttributeOp = "EQUALS"
	AttributeExists  AttributeOp = "EXISTS"
	AttributeMatches AttributeOp = "MATCHES"
)

// AttributeMatch restricts one attribute of an exchange.
type AttributeMatch struct {
	Key string      `json:"key" validate:"required,max=200,text"`
	Op  AttributeOp `json:"op" validate:"oneof=EQUALS EXISTS MATCHES"`
	// Value is what the attribute equals, or the RE2 expression that it matches;
	// it is empty for EXISTS.
	Value string `json:"value,omitempty" validate:"max=1000,text"`
}

// StatusesOrDefault returns the statuses that f wants: FAILED where it names none.
func (f *Filter) StatusesOrDefault() []Status {
	if len(f.Statuses) == 0 {
		return []Status{Failed}
	}
	return f.Statuses
}

// Matcher decides whether an exchange matches a scope and a filter. It is safe
// for concurrent use.
type Matcher struct {
	statuses                           []Status
	environments, applications, routes []pattern
	errorTypes                         []string
	contains                           string
	message                            *regexp.Regexp
	minNS, maxNS                       *int64
	attributes                         []attributeMatcher
}

type attributeMatcher struct {
	AttributeMatch
	expr *regexp.Regexp
}

// Compile prepares a condition. Its error names the part that cannot be used;
// a definition that passed [Validate] compiles.
func Compile(scope Scope, filter Filter) (*Matcher, error) {
	m := &Matcher{
		statuses:     filter.StatusesOrDefault(),
		environments: patterns(scope.Environments),
		applications: patterns(scope.Applications),
		routes:       patterns(scope.Routes),
		errorTypes:   filter.ErrorTypes,
		contains:     filter.ErrorMessageContains,
		minNS:        nanoseconds(filter.MinDurationMS),
		maxNS:        nanoseconds(filter.MaxDurationMS),
	}
	if filter.ErrorMessageMatches != "" {
		expr, err := regexp.Compile(filter.ErrorMessageMatches)
		if err != nil {
			return nil, fmt.Errorf("filter.errorMessageMatches: %w", err)
		}
		m.message = expr
	}
	for i, a := range filter.Attributes {
		am := attributeMatcher{AttributeMatch: a}
		if a.Op == AttributeMatches {
			expr, err := regexp.Compile(a.Value)
			if err != nil {
				return nil, fmt.Errorf("filter.attributes[%d].value: %w", i, err)
			}
			am.expr = expr
		}
		m.attributes = append(m.attributes, am)
	}
	return m, nil
}

// Judge decides for a rule on any exchange, by the condition that stood when the
// exchange ended. It is safe for concurrent use.
type Judge struct {
	armedSinceNS int64
	present      *Matcher
	former       []formerMatcher
	// applications is what Applications returns.
	applications []string
}

type formerMatcher struct {
	fromNS, toNS int64
	matcher      *Matcher
}

// NewJudge compiles the conditions of a rule. Its error names the part that
// cannot be used.
func NewJudge(r *Rule) (*Judge, error) {
	present, err := Compile(r.Scope, r.Filter)
	if err != nil {
		return nil, err
	}
	j := &Judge{armedSinceNS: r.ArmedSinceNS, present: present}
	for _, era := range r.Former {
		m, err := Compile(era.Scope, era.Filter)
		if err != nil {
			return nil, fmt.Errorf("former condition: %w", err)
		}
		j.former = append(j.former, formerMatcher{era.FromNS, era.ToNS, m})
	}
	j.applications = j.named()
	return j, nil
}

// named returns the names of the applications of all conditions, each of which
// has to name them.
func (j *Judge) named() []string {
	names, wild := exact(j.present.applications)
	for _, f := range j.former {
		more, wilder := exact(f.matcher.applications)
		names, wild = append(names, more...), wild || wilder
	}
	if wild {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Applications returns the applications outside of which the rule wants nothing,
// by their full names, ascending. None means that it may want an exchange of any
// application. The slice is the judge's own, and must not be changed.
func (j *Judge) Applications() []string { return j.applications }

// Wants reports whether the rule raises an alert for e.
func (j *Judge) Wants(e *Exchange) bool {
	ended := e.EndedNS()
	if ended >= j.armedSinceNS {
		return j.present.Match(e)
	}
	return slices.ContainsFunc(j.former, func(f formerMatcher) bool {
		return ended >= f.fromNS && ended < f.toNS && f.matcher.Match(e)
	})
}

// WantsSinceNS returns the instant before which nothing ended that the rule wants, in
// nanoseconds since the Unix epoch.
func (j *Judge) WantsSinceNS() int64 {
	since := j.armedSinceNS
	for _, f := range j.former {
		since = min(since, f.fromNS)
	}
	return since
}

// Matches reports whether the present condition matches e, whenever it ended.
func (j *Judge) Matches(e *Exchange) bool { return j.present.Match(e) }

// CanWant reports whether the rule can want an exchange of a status.
func (j *Judge) CanWant(status Status) bool {
	return slices.Contains(j.present.statuses, status) ||
		slices.ContainsFunc(j.former, func(f formerMatcher) bool { return slices.Contains(f.matcher.statuses, status) })
}

// LeastDurationNS returns the duration, in nanoseconds, below which the rule wants
// no exchange of a status; 0 where it may want any.
func (j *Judge) LeastDurationNS(status Status) int64 {
	least := int64(math.MaxInt64)
	demand := func(m *Matcher) {
		switch {
		case !slices.Contains(m.statuses, status):
		case m.minNS == nil:
			least = 0
		default:
			least = min(least, *m.minNS)
		}
	}
	demand(j.present)
	for _, f := range j.former {
		demand(f.matcher)
	}
	return least
}

// Match reports whether e matches.
func (m *Matcher) Match(e *Exchange) bool {
	return m.looksAt(e) &&
		(len(m.errorTypes) == 0 || slices.Contains(m.errorTypes, e.ErrorType)) &&
		(m.minNS == nil || e.DurationNS >= *m.minNS) &&
		(m.maxNS == nil || e.DurationNS <= *m.maxNS) &&
		strings.Contains(e.ErrorMessage, m.contains) &&
		(m.message == nil || m.message.MatchString(e.ErrorMessage)) &&
		m.matchesAttributes(e.Attributes)
}

// looksAt reports whether e is of a wanted status and happened within the scope.
func (m *Matcher) looksAt(e *Exchange) bool {
	return slices.Contains(m.statuses, e.Status) &&
		matchesAny(m.applications, e.Application) &&
		matchesAny(m.routes, e.Route) &&
		matchesAny(m.environments, e.Environment)
}

func (m *Matcher) matchesAttributes(attributes map[string]string) bool {
	for i := range m.attributes {
		a := &m.attributes[i]
		value, exists := attributes[a.Key]
		if !exists {
			return false
		}
		switch a.Op {
		case AttributeExists:
		case AttributeEquals:
			if value != a.Value {
				return false
			}
		case AttributeMatches:
			if !a.expr.MatchString(value) {
				return false
			}
		}
	}
	return true
}

// pattern is a name cut at its wildcards: the first piece begins the name, the
// last one ends it, and those between follow each other in it.
type pattern []string

func patterns(names []string) []pattern {
	cut := make([]pattern, len(names))
	for i, name := range names {
		cut[i] = strings.Split(name, "*")
	}
	return cut
}

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
