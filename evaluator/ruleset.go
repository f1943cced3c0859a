package evaluator

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/routing"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// rule is a rule of a partition as this process evaluates by it.
type rule struct {
	rules.Rule
	*rules.Judge
	// router is the tenant's routing policy, where the rule uses it; else nil.
	router *routing.Router
	// problem is what is recorded on the rule.
	problem string
	// failing says that the rule is left out, until an attempt at it succeeds. Again is when
	// the next one is made, if the rule compiles.
	failing bool
	again   backoff
	// backfill is the rule's own progress; nil where it has none. span is how much of it is
	// read at once.
	backfill *Backfill
	span     span
	// replay is what a person asked to be evaluated again; nil is nothing.
	replay *replay
	// evaluatedNS is the watermark at which a window rule was evaluated last, notedNS that of
	// which a commit has noted it.
	evaluatedNS, notedNS int64
}

// reachNS returns how far behind the cursor the rule evaluates, 0 when it does not look back.
func (r *rule) reachNS() int64 {
	back := int64(r.LookBackSeconds) * secondNS
	return back + backlog.WaitNS(back)
}

// resting reports whether the rule fails, and it is not yet time to try it again.
func (r *rule) resting(now time.Time) bool { return r.failing && now.Before(r.again.retryAt) }

// tenant is the PER_EXCHANGE rules of a tenant.
type tenant struct {
	rules []*rule
	index *rules.Index
}

// ruleset is the rules of a partition, and what a scan for them has to read.
type ruleset struct {
	revision int64
	byID     map[uuid.UUID]*rule
	tenants  map[string]*tenant
	// exceptions are the rules with progress of their own. Each pass looks at all of them.
	exceptions map[uuid.UUID]*rule
	// windows are the window rules, by their tenants, of which each is evaluated as a whole.
	windows []*rule
	// replays are the rules with a replay, by their ids.
	replays []*rule
	narrow  narrowing
	// windowTenants are the names of the tenants of window rules.
	windowTenants []string
	// reachNS is the longest reach of the rules.
	reachNS int64
}

// narrowing is what a scan for some rules has to read: what it leaves out, the cursor passes.
type narrowing struct {
	tenants []string
	rules.Union
}

func newRuleset() *ruleset {
	return &ruleset{byID: map[uuid.UUID]*rule{}, exceptions: map[uuid.UUID]*rule{}}
}

// except gives a rule progress of its own; nil takes it away.
func (s *ruleset) except(r *rule, b *Backfill) {
	if r.backfill = b; b == nil {
		delete(s.exceptions, r.ID)
	} else {
		s.exceptions[r.ID] = r
	}
}

// apply takes over what changed, and returns the rules that cannot be used, with why.
func (s *ruleset) apply(changed RuleSet) map[uuid.UUID]error {
	unusable := map[uuid.UUID]error{}
	for _, id := range changed.Removed {
		delete(s.byID, id)
	}
	for i := range changed.Rules {
		stored := &changed.Rules[i]
		r := &rule{Rule: stored.Rule, router: stored.Router, problem: stored.Problem}
		err := stored.Err
		if err == nil {
			r.Judge, err = rules.NewJudge(&r.Rule)
		}
		if err != nil {
			unusable[r.ID] = err
			r.failing = true
		}
		s.byID[r.ID] = r
	}
	// What was remembered may never have been written: a rule of which nothing is stored
	// that says that it fails is evaluated, and fails again.
	s.exceptions = map[uuid.UUID]*rule{}
	for _, r := range s.byID {
		r.backfill = nil
		if r.FireMode == rules.PerExchange {
			r.failing = r.Judge == nil
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
		s.except(r, &b)
		r.failing = r.failing || b.Failing
	}
	s.revision = changed.Revision
	s.index()
	return unusable
}

// index derives what follows from the rules.
func (s *ruleset) index() {
	s.tenants, s.windows, s.reachNS = map[string]*tenant{}, nil, 0
	var perExchange []*rule
	for _, r := range slices.SortedFunc(maps.Values(s.byID), func(a, b *rule) int { return slices.Compare(a.ID[:], b.ID[:]) }) {
		switch {
		case r.Judge == nil:
		case r.FireMode != rules.PerExchange:
			s.windows = append(s.windows, r)
		default:
			t := s.tenants[r.TenantID]
			if t == nil {
				t = &tenant{}
				s.tenants[r.TenantID] = t
			}
			t.rules = append(t.rules, r)
			perExchange = append(perExchange, r)
			s.reachNS = max(s.reachNS, r.reachNS())
		}
	}
	slices.SortStableFunc(s.windows, func(a, b *rule) int { return strings.Compare(a.TenantID, b.TenantID) })
	s.narrow, s.windowTenants = narrowed(perExchange), narrowed(s.windows).tenants
}

// of returns the index of a tenant's rules; nil where it has none.
func (s *ruleset) of(name string) *tenant {
	t := s.tenants[name]
	if t != nil && t.index == nil {
		judges := make([]*rules.Judge, len(t.rules))
		for i, r := range t.rules {
			judges[i] = r.Judge
		}
		t.index = rules.NewIndex(judges)
	}
	return t
}

// empty reports whether the partition has nothing to evaluate.
func (s *ruleset) empty() bool { return len(s.tenants) == 0 && len(s.windows) == 0 }

// narrowed returns what a scan for some rules has to read.
func narrowed(list []*rule) narrowing {
	names, judges := map[string]bool{}, make([]*rules.Judge, len(list))
	for i, r := range list {
		names[r.TenantID], judges[i] = true, r.Judge
	}
	return narrowing{slices.Sorted(maps.Keys(names)), rules.UnionOf(judges)}
}

// scan returns a scan that reads what is narrowed.
func (n *narrowing) scan(share Checkpoint) source.Scan {
	return source.Scan{
		Tenants: source.Tenants{Names: n.tenants, Index: share.Index, Of: share.Of}, Statuses: n.Statuses,
		Applications: n.Applications, CompletedLeastNS: n.CompletedLeastNS,
	}
}

// mostBehind is how many rules read together what they are behind.
const mostBehind = 10_000

// behind returns the rules with a backfill that the partition may read now: the one that
// is furthest behind of the tenant that comes after another one by name, so that tenants
// are served round-robin, and those of all that are near it. Rules that fail come by themselves, and only
// when it is time to try again; one that was refused comes alone, and one for which the source
// could not be read with those of its tenant.
func (s *ruleset) behind(now time.Time, after string) []*rule {
	var waiting []*rule
	for _, r := range s.exceptions {
		if r.Judge != nil && !r.resting(now) && !now.Before(r.span.retryAt) {
			waiting = append(waiting, r)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	furthest := func(a, b *rule) int {
		return cmp.Or(a.backfill.At.Compare(b.backfill.At), slices.Compare(a.ID[:], b.ID[:]))
	}
	first := slices.MinFunc(waiting, func(a, b *rule) int {
		if (a.TenantID > after) != (b.TenantID > after) {
			return strings.Compare(b.TenantID, a.TenantID) // those after it come before the others
		}
		return cmp.Or(strings.Compare(a.TenantID, b.TenantID), furthest(a, b))
	})
	if first.backfill.Refused != nil {
		return []*rule{first}
	}
	from := first.backfill.At
	near := slices.DeleteFunc(waiting, func(r *rule) bool {
		return r.failing != first.failing || r.backfill.Refused != nil || (first.span.failed > 0 || r.span.failed > 0) && r.TenantID != first.TenantID ||
			r.backfill.At.Compare(from) < 0 || r.backfill.At.StartTimeNS-from.StartTimeNS > minuteNS
	})
	// The first one leads, so that its tenant has had its turn.
	slices.SortFunc(near, furthest)
	at := slices.Index(near, first)
	near = slices.Insert(slices.Delete(near, at, at+1), 0, first)
	return near[:min(len(near), mostBehind)]
}
