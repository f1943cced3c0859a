package rules

import (
	"slices"
	"strings"
)

// Index finds, among many judges, those whose rules look at the place of an exchange, without
// asking each of them. It is not safe for concurrent use.
//
// Judges are filed by status, application and route. Those with wildcards or without a restriction
// are filed under "any". The result for a place is cached, because exchanges come from few places:
// the next exchange from the same place costs one look-up, however many rules there are.
type Index struct {
	judges  []*Judge
	buckets map[bucket][]int32
	places  map[place][]int32
	// held is the total number of judges in places.
	held int
}

// bucket is where judges are filed.
type bucket struct {
	status             Status
	application, route string
	anyApplication     bool
	anyRoute           bool
}

// place is the part of an exchange that the scope of a rule looks at.
type place struct {
	status                          Status
	application, route, environment string
}

const (
	// maxPlaces and maxHeld bound the cache.
	maxPlaces = 1 << 14
	maxHeld   = 1 << 20
	// maxShelves bounds how often one condition is filed by route.
	maxShelves = 64
)

// NewIndex files judges under their indexes in the slice, which the index keeps.
func NewIndex(judges []*Judge) *Index {
	x := &Index{judges: judges, buckets: map[bucket][]int32{}, places: map[place][]int32{}}
	for i, j := range judges {
		x.file(int32(i), j.present)
		for _, f := range j.former {
			x.file(int32(i), f.matcher)
		}
	}
	return x
}

func (x *Index) file(number int32, m *Matcher) {
	applications, anyApplication := exact(m.applications)
	routes, anyRoute := exact(m.routes)
	if len(applications)*len(routes) > maxShelves {
		routes, anyRoute = []string{""}, true
	}
	for _, status := range m.statuses {
		for _, application := range applications {
			for _, route := range routes {
				s := bucket{status, application, route, anyApplication, anyRoute}
				x.buckets[s] = append(x.buckets[s], number)
			}
		}
	}
}

// exact returns the names of patterns without wildcards. If a pattern has wildcards, or if there
// are no patterns, any name may match.
func exact(patterns []pattern) (names []string, wild bool) {
	if len(patterns) == 0 || slices.ContainsFunc(patterns, func(p pattern) bool { return len(p) > 1 }) {
		return []string{""}, true
	}
	for _, p := range patterns {
		names = append(names, p[0])
	}
	return names, false
}

// Candidates returns the indexes of the judges that may want e, in ascending order. All others do
// not. The slice belongs to the index and must not be changed.
func (x *Index) Candidates(e *Exchange) []int32 {
	at := place{e.Status, e.Application, e.Route, e.Environment}
	if known, ok := x.places[at]; ok {
		return known
	}
	var found []int32
	for _, s := range []bucket{
		{e.Status, e.Application, e.Route, false, false},
		{e.Status, e.Application, "", false, true},
		{e.Status, "", e.Route, true, false},
		{e.Status, "", "", true, true},
	} {
		for _, number := range x.buckets[s] {
			if x.judges[number].looksAt(e) {
				found = append(found, number)
			}
		}
	}
	slices.Sort(found)
	found = slices.Clip(slices.Compact(found))
	if len(x.places) >= maxPlaces || x.held+len(found) > maxHeld {
		clear(x.places)
		x.held = 0
	}
	// Copies, so that a name does not keep the answer that it came with in memory.
	x.places[place{
		Status(strings.Clone(string(at.status))), strings.Clone(at.application),
		strings.Clone(at.route), strings.Clone(at.environment),
	}] = found
	x.held += len(found)
	return found
}

// Holds reports whether the index consists of exactly these judges, in this order.
func (x *Index) Holds(judges []*Judge) bool { return slices.Equal(x.judges, judges) }

// looksAt reports whether the place of e is in the scope of any condition of the rule.
func (j *Judge) looksAt(e *Exchange) bool {
	return j.present.looksAt(e) || slices.ContainsFunc(j.former, func(f formerMatcher) bool { return f.matcher.looksAt(e) })
}
