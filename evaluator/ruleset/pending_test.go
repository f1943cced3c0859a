package ruleset_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/uuid"

	"tocsin/evaluator/ruleset"
)

// TestPendingHealth states what is recorded on a rule, by what is recorded already, and what the set takes over.
func TestPendingHealth(t *testing.T) {
	failed := func(p *ruleset.Pending, r *ruleset.Rule) { p.Fails(r, errors.New("refused"), now()) }
	settled := func(problem string) func(*ruleset.Pending, *ruleset.Rule) {
		return func(p *ruleset.Pending, r *ruleset.Rule) { p.Settles(r, problem) }
	}
	for _, c := range []struct {
		name    string
		problem string // recorded
		failing bool
		happens []func(*ruleset.Pending, *ruleset.Rule)
		want    *ruleset.Health
	}{
		{"nothing is wrong, as before", "", false, []func(*ruleset.Pending, *ruleset.Rule){settled("")}, nil},
		{"a text is a fallback", "", false, []func(*ruleset.Pending, *ruleset.Rule){settled("text")}, &ruleset.Health{Problem: "text"}},
		{"and still is", "text", false, []func(*ruleset.Pending, *ruleset.Rule){settled("text")}, nil},
		{"and is no longer", "text", false, []func(*ruleset.Pending, *ruleset.Rule){settled("")}, &ruleset.Health{}},
		{"it fails", "text", false, []func(*ruleset.Pending, *ruleset.Rule){failed}, &ruleset.Health{Problem: "refused", Failed: true}},
		{"it fails, and that is known", "refused", true, []func(*ruleset.Pending, *ruleset.Rule){failed}, nil},
		{"it fails after it was evaluated", "refused", true, []func(*ruleset.Pending, *ruleset.Rule){settled(""), failed}, nil},
		{"it is evaluated again", "refused", true, []func(*ruleset.Pending, *ruleset.Rule){settled("")}, &ruleset.Health{}},
		{"it is evaluated again, with the same problem", "refused", true, []func(*ruleset.Pending, *ruleset.Rule){settled("refused")}, &ruleset.Health{Problem: "refused"}},
	} {
		s := ruleset.New()
		s.Apply(ruleset.Changed{Rules: []ruleset.Stored{window(1)}})
		r := s.Rule(id(1))
		if r.Problem = c.problem; c.failing {
			rests(r)
		}
		var p ruleset.Pending
		for _, happens := range c.happens {
			happens(&p, r)
		}
		want := map[uuid.UUID]ruleset.Health{}
		if c.want != nil {
			want[r.ID] = *c.want
		}
		if !maps.Equal(p.Health, want) || p.Empty() != (c.want == nil) {
			t.Errorf("%s: recorded is %+v", c.name, p.Health)
		}
		failing := r.Failing
		s.Written(&p)
		if c.want == nil {
			if r.Problem != c.problem || r.Failing != failing {
				t.Errorf("%s: nothing was written, and it fails %v by %q", c.name, r.Failing, r.Problem)
			}
		} else if r.Problem != c.want.Problem || r.Failing != c.want.Failed || r.Resting(now()) != c.want.Failed {
			t.Errorf("%s: after the commit it fails %v by %q, rests %v", c.name, r.Failing, r.Problem, r.Resting(now()))
		}
	}
}

// TestPendingBackfills states what a commit writes of rules that are behind, and what the set takes over: a commit that
// is refused changes neither what is pending nor the rules.
func TestPendingBackfills(t *testing.T) {
	s := ruleset.New()
	s.Apply(ruleset.Changed{
		Rules: []ruleset.Stored{rule(1), rule(2), rule(3)},
		Backfills: []ruleset.Backfill{
			{RuleID: id(1), At: at(0), Until: new(at(minute))}, {RuleID: id(2), At: at(0), Until: new(at(hour))}, {RuleID: id(3), At: at(0), Failing: true},
		},
	})
	var p ruleset.Pending
	cursor := at(day)
	x := p.With([]*ruleset.Rule{s.Rule(id(3)), s.Rule(id(2)), s.Rule(id(1))}, at(minute), &cursor)
	if !p.Empty() || s.Rule(id(1)).Backfill.At != at(0) || !s.Rule(id(3)).Failing {
		t.Error("what is not written yet is taken over")
	}
	list := x.Sorted()
	if len(list) != 3 || list[0].RuleID != id(1) || list[2].RuleID != id(3) || list[2].Failing || *list[2].Until != cursor || list[1].At != at(minute) {
		t.Errorf("written is %+v", list)
	}
	if h, there := x.Health[id(3)]; len(x.Health) != 1 || !there || h != (ruleset.Health{}) {
		t.Errorf("recorded is %+v", x.Health)
	}
	s.Written(&x)
	if s.Rule(id(1)).Backfill != nil || s.Rule(id(2)).Backfill.At != at(minute) || s.Rule(id(3)).Failing || len(s.Exceptions) != 2 {
		t.Errorf("after the commit the exceptions are %+v", s.Exceptions)
	}
}
