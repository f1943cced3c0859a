// Package ruleset holds the rules of a partition as a process evaluates by them, and how far those
// have come that have progress of their own.
//
// A rule is evaluated with the partition, from its cursor on, unless it is an exception: it has a
// [Backfill]. A person may ask in addition for a [Replay]. Postgres is authoritative: what a set
// remembers of a rule, it takes over from what a commit wrote, and reads again after one that failed.
package ruleset

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/routing"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/retry"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

const (
	secondNS = int64(time.Second)
	minuteNS = 60 * secondNS
	hourNS   = 60 * minuteNS
)

// Rule is a rule of a partition as a process evaluates by it.
type Rule struct {
	rules.Rule
	*rules.Judge

	// Router is the tenant's routing policy, where the rule uses it; else nil.
	Router *routing.Router
	// Problem is what is recorded on the rule.
	Problem string
	// Failing says that the rule is left out, until an attempt at it succeeds. Again is when
	// the next one is made, if the rule compiles.
	Failing bool
	Again   retry.Backoff
	// Backfill is the rule's own progress, which [Set.Except] gives it; nil where it has none. Span is
	// how much of it is read at once.
	Backfill *Backfill
	Span     retry.Span
	// Replay is what a person asked to be evaluated again; nil is nothing.
	Replay *Replaying
	// EvaluatedNS is the watermark at which a window rule was evaluated last.
	EvaluatedNS int64
	// notedNS is the watermark of the last evaluation that a commit has noted.
	notedNS int64
}

// ReachNS returns how far behind the cursor the rule evaluates, 0 when it does not look back.
func (r *Rule) ReachNS() int64 {
	back := int64(r.LookBackSeconds) * secondNS
	return back + backlog.WaitNS(back)
}

// Reaches reports whether a rule evaluates an exchange that begins at an instant, where the
// look-back is counted from baseNS.
func (r *Rule) Reaches(startNS, baseNS int64) bool {
	return startNS >= baseNS || startNS >= baseNS-r.ReachNS()
}

// Resting reports whether the rule fails, and it is not yet time to try it again.
func (r *Rule) Resting(now time.Time) bool { return r.Failing && r.Again.Waits(now) }

// Tenant is the PER_EXCHANGE rules of a tenant.
type Tenant struct {
	Rules []*Rule
	index *rules.Index
}

// Candidates yields the rules that an exchange may match. It panics over none: it compares a status and
// names, by conditions that compiled.
func (t *Tenant) Candidates(e *rules.Exchange) iter.Seq[*Rule] {
	if t.index == nil {
		judges := make([]*rules.Judge, len(t.Rules))
		for i, r := range t.Rules {
			judges[i] = r.Judge
		}
		t.index = rules.NewIndex(judges)
	}
	return func(yield func(*Rule) bool) {
		for _, number := range t.index.Candidates(e) {
			if !yield(t.Rules[number]) {
				return
			}
		}
	}
}

// Set is the rules of a partition. It is not safe for concurrent use.
type Set struct {
	// Revision is the rules revision that the set belongs to.
	Revision int64
	// Exceptions are the rules with progress of their own. Each pass looks at all of them.
	Exceptions map[uuid.UUID]*Rule
	// Windows are the window rules, by their tenants, of which each is evaluated as a whole;
	// WindowTenants are the names of these tenants.
	Windows       []*Rule
	WindowTenants []string
	// Extent is what the other rules have to read, ReachNS the longest reach of them.
	Extent  Extent
	ReachNS int64

	byID    map[uuid.UUID]*Rule
	tenants map[string]*Tenant
	// replays are the rules with a replay, by their ids.
	replays []*Rule
}

// Extent bounds what a scan for some rules together has to read: what it leaves out, the cursor passes.
// It is wider than the condition of any of them, by which [source.Narrowing] leaves out more.
type Extent struct {
	Tenants []string
	rules.Union
}

// New returns a set without rules.
func New() *Set {
	return &Set{byID: map[uuid.UUID]*Rule{}, Exceptions: map[uuid.UUID]*Rule{}}
}

// Rule returns a rule of the set; nil where it is none.
func (s *Set) Rule(id uuid.UUID) *Rule { return s.byID[id] }

// Except gives a rule progress of its own; nil takes it away.
func (s *Set) Except(r *Rule, b *Backfill) {
	if r.Backfill = b; b == nil {
		delete(s.Exceptions, r.ID)
	} else {
		s.Exceptions[r.ID] = r
	}
}

// Apply takes over what changed, and returns the rules that cannot be used, with why.
func (s *Set) Apply(changed Changed) map[uuid.UUID]error {
	unusable := map[uuid.UUID]error{}
	for _, id := range changed.Removed {
		delete(s.byID, id)
	}
	for i := range changed.Rules {
		stored := &changed.Rules[i]
		r := &Rule{Rule: stored.Rule, Router: stored.Router, Problem: stored.Problem}
		err := stored.Err
		if err == nil {
			r.Judge, err = rules.NewJudge(&r.Rule)
		}
		if err != nil {
			unusable[r.ID] = err
			r.Failing = true
		}
		s.byID[r.ID] = r
	}
	// What was remembered may never have been written: a rule of which nothing is stored
	// that says that it fails is evaluated, and fails again.
	s.Exceptions = map[uuid.UUID]*Rule{}
	for _, r := range s.byID {
		r.Backfill = nil
		if r.FireMode == rules.PerExchange {
			r.Failing = r.Judge == nil
		}
	}
	s.takeReplays(changed.Replays)
	for i := range changed.Backfills {
		b := changed.Backfills[i]
		r := s.byID[b.RuleID]
		if r == nil || r.FireMode != rules.PerExchange {
			continue // no other rule reads for itself
		}
		if b.Err != nil {
			b.Failing, r.Judge, unusable[r.ID] = true, nil, b.Err
		}
		s.Except(r, &b)
		r.Failing = r.Failing || b.Failing
	}
	s.Revision = changed.Revision
	s.index()
	return unusable
}

// index derives what follows from the rules.
func (s *Set) index() {
	s.tenants, s.Windows, s.ReachNS = map[string]*Tenant{}, nil, 0
	var perExchange []*Rule
	for _, r := range slices.SortedFunc(maps.Values(s.byID), func(a, b *Rule) int { return slices.Compare(a.ID[:], b.ID[:]) }) {
		switch {
		case r.Judge == nil:
		case r.FireMode != rules.PerExchange:
			s.Windows = append(s.Windows, r)
		default:
			t := s.tenants[r.TenantID]
			if t == nil {
				t = &Tenant{}
				s.tenants[r.TenantID] = t
			}
			t.Rules = append(t.Rules, r)
			perExchange = append(perExchange, r)
			s.ReachNS = max(s.ReachNS, r.ReachNS())
		}
	}
	slices.SortStableFunc(s.Windows, func(a, b *Rule) int { return strings.Compare(a.TenantID, b.TenantID) })
	s.Extent, s.WindowTenants = ExtentOf(perExchange), ExtentOf(s.Windows).Tenants
}

// Of returns the rules of a tenant; nil where it has none.
func (s *Set) Of(name string) *Tenant { return s.tenants[name] }

// Empty reports whether the partition has nothing to evaluate.
func (s *Set) Empty() bool { return len(s.tenants) == 0 && len(s.Windows) == 0 }

// ExtentOf returns what a scan for some rules has to read.
func ExtentOf(list []*Rule) Extent {
	names, judges := map[string]bool{}, make([]*rules.Judge, len(list))
	for i, r := range list {
		names[r.TenantID], judges[i] = true, r.Judge
	}
	return Extent{slices.Sorted(maps.Keys(names)), rules.UnionOf(judges)}
}

// Scan returns a scan that reads it, of tenants with a share as in [source.Tenants].
func (x *Extent) Scan(index, of uint32) source.Scan {
	return source.Scan{
		Tenants: source.Tenants{Names: x.Tenants, Index: index, Of: of}, Statuses: x.Statuses,
		Applications: x.Applications, CompletedLeastNS: x.CompletedLeastNS,
	}
}

// mostBehind is how many rules read together what they are behind.
const mostBehind = 10_000

// Behind returns the rules with a backfill that the partition may read now: the one that
// is furthest behind of the tenant that comes after another one by name, so that tenants
// are served round-robin, and those of all that are near it. Rules that fail come by themselves, and only
// when it is time to try again; one that was refused comes alone, and one for which the source
// could not be read with those of its tenant.
func (s *Set) Behind(now time.Time, after string) []*Rule {
	var waiting []*Rule
	for _, r := range s.Exceptions {
		if r.Judge != nil && !r.Resting(now) && !r.Span.Waits(now) {
			waiting = append(waiting, r)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	furthest := func(a, b *Rule) int {
		return cmp.Or(a.Backfill.At.Compare(b.Backfill.At), slices.Compare(a.ID[:], b.ID[:]))
	}
	first := slices.MinFunc(waiting, func(a, b *Rule) int {
		if (a.TenantID > after) != (b.TenantID > after) {
			return strings.Compare(b.TenantID, a.TenantID) // those after it come before the others
		}
		return cmp.Or(strings.Compare(a.TenantID, b.TenantID), furthest(a, b))
	})
	if first.Backfill.Refused != nil {
		return []*Rule{first}
	}
	from := first.Backfill.At
	near := slices.DeleteFunc(waiting, func(r *Rule) bool {
		return r.Failing != first.Failing || r.Backfill.Refused != nil || (first.Span.Failed() || r.Span.Failed()) && r.TenantID != first.TenantID ||
			r.Backfill.At.Compare(from) < 0 || r.Backfill.At.StartTimeNS-from.StartTimeNS > minuteNS
	})
	// The first one leads, so that its tenant has had its turn.
	slices.SortFunc(near, furthest)
	at := slices.Index(near, first)
	near = slices.Insert(slices.Delete(near, at, at+1), 0, first)
	return near[:min(len(near), mostBehind)]
}

// Due returns the window rules whose interval is over at a watermark, give or take what passes differ
// by; those that wait for longest first.
func (s *Set) Due(watermarkNS int64, within time.Duration, now time.Time) (due []*Rule) {
	for _, r := range s.Windows {
		if watermarkNS-r.EvaluatedNS >= int64(r.IntervalSeconds)*secondNS-within.Nanoseconds() || watermarkNS < r.EvaluatedNS {
			if !r.Resting(now) {
				due = append(due, r)
			}
		}
	}
	slices.SortStableFunc(due, func(a, b *Rule) int { return cmp.Compare(a.EvaluatedNS, b.EvaluatedNS) })
	return due
}

// noteNS is how often it is noted that a rule was evaluated. A rule whose notes are further apart
// than thirty seconds and three of its intervals counts as interrupted. To note each evaluation
// took a pass over 40,000 rules longer than all the rest of it, and to note all rules in the same
// pass made that one twice as long as the others: each pass notes some of them.
const noteNS = 20 * secondNS

// Notes reports whether it is to be noted that a rule was evaluated at a watermark.
func (r *Rule) Notes(watermarkNS int64) bool {
	phase := int64(binary.BigEndian.Uint64(r.ID[8:]) % uint64(noteNS))
	return (watermarkNS+phase)/noteNS != (r.notedNS+phase)/noteNS
}
