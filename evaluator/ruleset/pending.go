package ruleset

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/rules"
)

// Health is how a rule was evaluated; the zero value is without any problem.
type Health struct {
	// Problem is what is wrong; of a rule that does not fail, that a text is a fallback, or
	// that it has too many groups.
	Problem string
	// Failed says that the rule cannot be evaluated.
	Failed bool
}

// ProblemOf returns what is kept of the text of a problem.
func ProblemOf(text string) string { return rules.CleanText(text, 2000) }

// Pending is what the next commit writes about rules, beside what it is made for. The zero value is nothing. A
// process takes it over by [Set.Written] once it is written, and forgets it if the commit failed, unless the
// database refused it. Of its methods, only Fails changes the rule at once.
type Pending struct {
	// Backfills replace the rules' own progress, Health is recorded on rules.
	Backfills map[uuid.UUID]Backfill
	Health    map[uuid.UUID]Health
	// Evaluated are window rules of which it is noted that they were evaluated.
	Evaluated []uuid.UUID
	// Watched says that the partition's watch is another one than is stored.
	Watched bool
}

// Empty reports whether there is nothing to write.
func (p *Pending) Empty() bool {
	return len(p.Backfills)+len(p.Health)+len(p.Evaluated) == 0 && !p.Watched
}

// Sorted returns the backfills by the ids of their rules.
func (p *Pending) Sorted() []Backfill {
	return slices.SortedFunc(maps.Values(p.Backfills), func(a, b Backfill) int { return slices.Compare(a.RuleID[:], b.RuleID[:]) })
}

// Backfill has a rule's own progress written.
func (p *Pending) Backfill(b Backfill) { put(&p.Backfills, b.RuleID, b) }

// Settles records that a rule was evaluated, and what is wrong with it all the same; "" is
// nothing.
func (p *Pending) Settles(r *Rule, problem string) {
	problem = ProblemOf(problem)
	if r.Failing || problem != r.Problem {
		put(&p.Health, r.ID, Health{Problem: problem})
	}
}

// Fails leaves a rule out at once, and has the next commit record why.
func (p *Pending) Fails(r *Rule, why error, now time.Time) {
	r.Failing = true
	r.Again.Fails(now)
	delete(p.Health, r.ID)
	if problem := ProblemOf(why.Error()); r.Problem != problem {
		put(&p.Health, r.ID, Health{problem, true})
	}
}

// With returns it together with how far a commit takes rules that are behind: to a position, and the
// partition to partitionAt. It stays as it is: a commit that is refused is followed by others.
func (p *Pending) With(behind []*Rule, to cursor.Position, partitionAt *cursor.Position) Pending {
	x := Pending{maps.Clone(p.Backfills), maps.Clone(p.Health), p.Evaluated, p.Watched}
	for _, r := range behind {
		if r.Backfill.Failing && r.Failing {
			put(&x.Health, r.ID, Health{})
		}
		x.Backfill(r.Backfill.Advanced(to, partitionAt))
	}
	return x
}

// Written takes over what a commit wrote.
func (s *Set) Written(p *Pending) {
	for id, b := range p.Backfills {
		if r := s.byID[id]; b.Done() {
			s.Except(r, nil)
		} else {
			s.Except(r, &b)
		}
	}
	for _, id := range p.Evaluated {
		if r := s.byID[id]; r != nil {
			r.notedNS = r.EvaluatedNS
		}
	}
	for id, h := range p.Health {
		r := s.byID[id]
		if r.Problem = h.Problem; !h.Failed {
			r.Failing = false
			r.Again.Succeeds()
		}
	}
}

// put sets a value of a map, which may be nil.
func put[V any](m *map[uuid.UUID]V, id uuid.UUID, v V) {
	if *m == nil {
		*m = map[uuid.UUID]V{}
	}
	(*m)[id] = v
}
