package rules

import (
	"maps"
	"math"
	"slices"
)

// maxApplications and maxApplicationBytes bound the names of a union, so that a source
// which is read by HTTP gets them in a URL of less than 8 KiB.
const (
	maxApplications     = 100
	maxApplicationBytes = 2000
)

// Union is what several rules can want together, by present and former conditions: who reads
// for them may leave out everything else.
type Union struct {
	// Statuses are those of which a rule can want an exchange, ascending.
	Statuses []Status
	// Applications are those outside of which no rule wants anything, by their full names,
	// ascending. None leaves out nothing.
	Applications []string
	// CompletedLeastNS is the duration below which no rule wants what completed, 0 where one
	// may want any.
	CompletedLeastNS int64
	// EndedSinceNS is the instant before which nothing ended that a rule wants, in nanoseconds
	// since the Unix epoch.
	EndedSinceNS int64
}

// UnionOf returns the union of some rules.
func UnionOf(judges []*Judge) Union {
	u := Union{CompletedLeastNS: math.MaxInt64, EndedSinceNS: math.MaxInt64}
	applications, bytes, anywhere := map[string]bool{}, 0, false
	for _, j := range judges {
		u.EndedSinceNS = min(u.EndedSinceNS, j.wantsSinceNS())
		u.CompletedLeastNS = min(u.CompletedLeastNS, j.leastDurationNS(Completed))
		for _, status := range []Status{Completed, Failed} {
			if j.canWant(status) && !slices.Contains(u.Statuses, status) {
				u.Statuses = append(u.Statuses, status)
			}
		}
		anywhere = anywhere || len(j.applications) == 0
		for _, a := range j.applications {
			if !applications[a] {
				applications[a] = true
				bytes += len(a)
			}
		}
	}
	slices.Sort(u.Statuses)
	if !anywhere && len(applications) <= maxApplications && bytes <= maxApplicationBytes {
		u.Applications = slices.Sorted(maps.Keys(applications))
	}
	if u.CompletedLeastNS == math.MaxInt64 {
		u.CompletedLeastNS = 0
	}
	return u
}
