package rules

import (
	"fmt"
	"math"
	"slices"
)

// Judge decides for a rule on any exchange, by the condition that stood when the
// exchange ended. It is safe for concurrent use.
type Judge struct {
	armedSinceNS int64
	present      *Matcher
	former       []formerMatcher
	// applications are those outside of which the rule wants nothing, by their full names,
	// ascending. None means that it may want an exchange of any application.
	applications []string
	// calendar holds the hours of the rule; nil is always.
	calendar *hours
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
	if j.calendar, err = r.Calendar.compile(); err != nil {
		return nil, err
	}
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

// wantsSinceNS returns the instant before which nothing ended that the rule wants, in
// nanoseconds since the Unix epoch.
func (j *Judge) wantsSinceNS() int64 {
	since := j.armedSinceNS
	for _, f := range j.former {
		since = min(since, f.fromNS)
	}
	return since
}

// Place returns a judge of every exchange that happened where the present condition
// looks, whatever else it says, and whether the exchange completed or failed.
func (j *Judge) Place() *Judge {
	m := &Matcher{statuses: []Status{Completed, Failed}, applications: j.present.applications, routes: j.present.routes}
	// The first condition is that on the status.
	m.place = append([]condition{{"filter.statuses", func(e *Exchange) bool { return slices.Contains(m.statuses, e.Status) }}}, j.present.place[1:]...)
	return &Judge{armedSinceNS: j.armedSinceNS, present: m}
}

// Expects reports whether exchanges are expected all the time from one instant,
// inclusive, to another one, exclusive, in nanoseconds since the Unix epoch.
func (j *Judge) Expects(fromNS, toNS int64) bool { return j.calendar.hold(fromNS, toNS) }

// Matches reports whether the present condition matches e, whenever it ended.
func (j *Judge) Matches(e *Exchange) bool { return j.present.Match(e) }

// canWant reports whether the rule can want an exchange of a status.
func (j *Judge) canWant(status Status) bool {
	return slices.Contains(j.present.statuses, status) ||
		slices.ContainsFunc(j.former, func(f formerMatcher) bool { return slices.Contains(f.matcher.statuses, status) })
}

// leastDurationNS returns the duration, in nanoseconds, below which the rule wants
// no exchange of a status; 0 where it may want any.
func (j *Judge) leastDurationNS(status Status) int64 {
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
