package ruleset_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/rules"
)

const (
	second = int64(time.Second)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	// base is where the rules of these tests are, give or take.
	base = 1_795_244_520 * second
)

func now() time.Time { return time.Unix(0, base+hour) }

func id(n int) uuid.UUID { return uuid.UUID{14: byte(n >> 8), 15: byte(n)} }

// numbers returns the numbers of rules.
func numbers(list []*ruleset.Rule) (ns []int) {
	for _, r := range list {
		ns = append(ns, int(r.ID[15]))
	}
	return ns
}

// at returns the position so many nanoseconds after base.
func at(ns int64) cursor.Position { return cursor.Position{StartTimeNS: base + ns} }

// rule returns a rule of tenant a that compiles.
func rule(n int) ruleset.Stored { return ruleOf(n, "a", rules.PerExchange) }

func ruleOf(n int, tenant string, mode rules.FireMode) ruleset.Stored {
	return ruleset.Stored{Rule: rules.Rule{ID: id(n), TenantID: tenant, Definition: rules.Definition{Name: "r", Enabled: true, FireMode: mode, IntervalSeconds: 10}}}
}

func window(n int) ruleset.Stored { return ruleOf(n, "a", rules.CountInWindow) }

// broken makes a rule one that does not compile.
func broken(r ruleset.Stored) ruleset.Stored {
	r.Rule.Filter.ErrorMessageMatches = "("
	return r
}

// unreadable makes a rule one that cannot be read.
func unreadable(r ruleset.Stored) ruleset.Stored {
	r.Err = fault.New(fault.Conflict, "unreadable")
	return r
}

func backfill(n int) ruleset.Backfill { return ruleset.Backfill{RuleID: id(n), At: at(0)} }

func failing(n int) ruleset.Backfill {
	return ruleset.Backfill{RuleID: id(n), At: at(0), Failing: true}
}

// apply returns the numbers of the rules that cannot be used.
func apply(s *ruleset.Set, changed ruleset.Changed) (unusable []int) {
	for rule, err := range s.Apply(changed) {
		if err != nil {
			unusable = append(unusable, int(rule[15]))
		}
	}
	slices.Sort(unusable)
	return unusable
}

// state is what a set says of its rules, by their numbers.
type state struct {
	// Unusable are those that Apply returned; Known and Failing those of the set; Evaluated those
	// that the partition evaluates with its cursor.
	Unusable, Known, Failing, Evaluated, Windows, Exceptions, Replays []int
}

func stateOf(s *ruleset.Set, unusable []int) state {
	got := state{Unusable: unusable, Windows: numbers(s.Windows)}
	for n := range 10 {
		r := s.Rule(id(n))
		if r == nil {
			continue
		}
		got.Known = append(got.Known, n)
		if r.Failing {
			got.Failing = append(got.Failing, n)
		}
		if r.Backfill != nil {
			got.Exceptions = append(got.Exceptions, n)
		}
		if r.Replay != nil {
			got.Replays = append(got.Replays, n)
		}
	}
	if t := s.Of("a"); t != nil {
		got.Evaluated = numbers(t.Rules)
	}
	return got
}

// TestApply states what a set is after the changes of one revision, and then of the next one.
func TestApply(t *testing.T) {
	type (
		changed = ruleset.Changed
		stored  = []ruleset.Stored
		fills   = []ruleset.Backfill
		replays = []ruleset.Replay
		ns      = []int
	)
	lost := backfill(1)
	lost.Err = cursor.ErrMalformed
	for _, c := range []struct {
		name string
		// then is what the process does between the two.
		first changed
		then  func(*ruleset.Set)
		next  changed
		want  state
	}{
		{
			"rules that did not change stay",
			changed{Rules: stored{rule(1), window(2)}},
			nil,
			changed{Rules: stored{rule(3)}},
			state{Known: ns{1, 2, 3}, Evaluated: ns{1, 3}, Windows: ns{2}},
		},
		{
			"a removed rule is gone, whatever is stored of it",
			changed{Rules: stored{rule(1), window(2), rule(3)}, Backfills: fills{backfill(1)}, Replays: replays{replay(1)}},
			nil,
			changed{Removed: []uuid.UUID{id(1), id(2), id(9)}, Backfills: fills{backfill(1)}, Replays: replays{replay(1)}},
			state{Known: ns{3}, Evaluated: ns{3}},
		},
		{
			"a rule that does not compile is left out, the others are not",
			changed{Rules: stored{rule(1), rule(2), window(3)}},
			nil,
			changed{Rules: stored{broken(rule(1)), broken(window(3))}, Replays: replays{replay(1)}},
			state{Unusable: ns{1, 3}, Known: ns{1, 2, 3}, Failing: ns{1, 3}, Evaluated: ns{2}},
		},
		{
			"even where nothing stored says that it fails",
			changed{Rules: stored{rule(1)}},
			nil,
			changed{Rules: stored{broken(rule(1))}, Backfills: fills{backfill(1)}},
			state{Unusable: ns{1}, Known: ns{1}, Failing: ns{1}, Exceptions: ns{1}},
		},
		{
			"a rule that cannot be read is left out",
			changed{Rules: stored{rule(1), rule(2)}},
			nil,
			changed{Rules: stored{unreadable(rule(1))}},
			state{Unusable: ns{1}, Known: ns{1, 2}, Failing: ns{1}, Evaluated: ns{2}},
		},
		{
			"it is returned once, and fails until it changes",
			changed{Rules: stored{broken(rule(1)), broken(rule(2))}},
			nil,
			changed{Rules: stored{rule(2)}},
			state{Known: ns{1, 2}, Failing: ns{1}, Evaluated: ns{2}},
		},
		{
			"a backfill that cannot be read makes its rule fail",
			changed{Rules: stored{rule(1), rule(2)}},
			nil,
			changed{Backfills: fills{lost, backfill(2)}},
			state{Unusable: ns{1}, Known: ns{1, 2}, Failing: ns{1}, Evaluated: ns{2}, Exceptions: ns{1, 2}},
		},
		{
			"until the rule is armed again",
			changed{Rules: stored{rule(1)}, Backfills: fills{lost}},
			nil,
			changed{Rules: stored{rule(1)}, Backfills: fills{backfill(1)}},
			state{Known: ns{1}, Evaluated: ns{1}, Exceptions: ns{1}},
		},
		{
			"a change of another rule does not arm it",
			changed{Rules: stored{rule(1)}, Backfills: fills{lost}},
			nil,
			changed{Rules: stored{rule(2)}},
			state{Known: ns{1, 2}, Failing: ns{1}, Evaluated: ns{2}},
		},
		{
			"backfills of window rules and of unknown rules are ignored",
			changed{Rules: stored{rule(1), window(2)}},
			nil,
			changed{Backfills: fills{failing(2), backfill(9)}},
			state{Known: ns{1, 2}, Evaluated: ns{1}, Windows: ns{2}},
		},
		{
			"a rule fails where it is stored that it does",
			changed{Rules: stored{rule(1), rule(2)}},
			nil,
			changed{Backfills: fills{failing(1), backfill(2)}},
			state{Known: ns{1, 2}, Failing: ns{1}, Evaluated: ns{1, 2}, Exceptions: ns{1, 2}},
		},
		{
			"a rule does not fail where nothing stored says so",
			changed{Rules: stored{rule(1), rule(2)}, Backfills: fills{failing(2)}},
			func(s *ruleset.Set) {
				s.Except(s.Rule(id(1)), new(failing(1)))
				s.Rule(id(1)).Failing = true
			},
			changed{Backfills: fills{backfill(2)}},
			state{Known: ns{1, 2}, Evaluated: ns{1, 2}, Exceptions: ns{2}},
		},
		{
			"of a window rule nothing is stored, so what is remembered stays",
			changed{Rules: stored{window(1), window(2)}},
			func(s *ruleset.Set) { s.Rule(id(1)).Failing = true },
			changed{},
			state{Known: ns{1, 2}, Failing: ns{1}, Windows: ns{1, 2}},
		},
		{
			"only rules that evaluate each exchange have replays",
			changed{Rules: stored{rule(1), window(2), broken(rule(3))}, Replays: replays{replay(1)}},
			nil,
			changed{Replays: replays{replay(1), replay(2), replay(3), replay(9)}},
			state{Known: ns{1, 2, 3}, Failing: ns{3}, Evaluated: ns{1}, Windows: ns{2}, Replays: ns{1}},
		},
		{
			"a replay that is not stored any more is gone",
			changed{Rules: stored{rule(1), rule(2)}, Replays: replays{replay(1), replay(2)}},
			nil,
			changed{Replays: replays{replay(2)}},
			state{Known: ns{1, 2}, Evaluated: ns{1, 2}, Replays: ns{2}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ruleset.New()
			c.first.Revision, c.next.Revision = 1, 2
			s.Apply(c.first)
			if c.then != nil {
				c.then(s)
			}
			got, want := fmt.Sprintf("%+v", stateOf(s, apply(s, c.next))), fmt.Sprintf("%+v", c.want)
			if got != want || s.Revision != 2 {
				t.Errorf("revision %d:\n got %s\nwant %s", s.Revision, got, want)
			}
			listed := numbers(slices.Collect(maps.Values(s.Exceptions)))
			if slices.Sort(listed); !slices.Equal(listed, c.want.Exceptions) {
				t.Errorf("the exceptions are %v, want %v", listed, c.want.Exceptions)
			}
		})
	}
}

// TestApplySaysWhy states that the reason why a rule cannot be used is the one that was found.
func TestApplySaysWhy(t *testing.T) {
	read, lost := unreadable(rule(2)), backfill(3)
	lost.Err = cursor.ErrMalformed
	got := ruleset.New().Apply(ruleset.Changed{Rules: []ruleset.Stored{broken(rule(1)), read, rule(3)}, Backfills: []ruleset.Backfill{lost}})
	_, compiles := rules.NewJudge(new(broken(rule(1)).Rule))
	if len(got) != 3 || fmt.Sprint(got[id(1)]) != fmt.Sprint(compiles) || !errors.Is(got[id(2)], read.Err) || !errors.Is(got[id(3)], cursor.ErrMalformed) {
		t.Error(got)
	}
}

// progress is a rule with a backfill, at a number of nanoseconds after base.
type progress struct {
	n      int
	tenant string
	at     int64
	change func(*ruleset.Rule)
}

// exceptions returns a set of such rules.
func exceptions(list []progress) *ruleset.Set {
	var changed ruleset.Changed
	for _, p := range list {
		b := backfill(p.n)
		b.At = at(p.at)
		changed.Rules, changed.Backfills = append(changed.Rules, ruleOf(p.n, p.tenant, rules.PerExchange)), append(changed.Backfills, b)
	}
	s := ruleset.New()
	s.Apply(changed)
	for _, p := range list {
		if p.change != nil {
			p.change(s.Rule(id(p.n)))
		}
	}
	return s
}

// firstPause is how long something waits that failed once.
const firstPause = 5 * time.Second

// rests has a rule fail just now, retries so long ago that it is tried again now.
func rests(r *ruleset.Rule) { r.Failing = true; r.Again.Fails(now()) }

func retries(r *ruleset.Rule) { r.Failing = true; r.Again.Fails(now().Add(-firstPause)) }

// TestBehind states which rules read together, and which of them leads.
func TestBehind(t *testing.T) {
	fails := func(r *ruleset.Rule) { r.Failing = true }
	refused := func(r *ruleset.Rule) {
		r.Failing, r.Backfill.Refused = true, &cursor.Range{FromNS: base, ToNS: base + 1}
	}
	unread := func(r *ruleset.Rule) { r.Span.Fails(now().Add(-firstPause)) }
	waits := func(r *ruleset.Rule) { r.Span.Fails(now()) }
	lost := func(r *ruleset.Rule) { r.Judge = nil }
	for _, c := range []struct {
		name  string
		rules []progress
		after string
		want  []int
	}{
		{"nothing is behind", nil, "", nil},
		{"the tenant after the name leads", []progress{{1, "a", 0, nil}, {2, "b", hour, nil}, {3, "c", -hour, nil}}, "a", []int{2}},
		{"the name need not be that of a tenant", []progress{{1, "a", 0, nil}, {2, "c", hour, nil}}, "b", []int{2}},
		{"after the last one comes the first one", []progress{{1, "a", hour, nil}, {2, "b", 0, nil}}, "b", []int{1}},
		{"a tenant by itself comes again", []progress{{1, "a", 0, nil}}, "a", []int{1}},
		{"the furthest behind of the tenant leads", []progress{{1, "a", hour, nil}, {2, "a", 0, nil}, {3, "a", 2 * hour, nil}}, "", []int{2}},
		{"those within a minute read with it", []progress{{1, "a", 0, nil}, {2, "b", minute, nil}, {3, "a", minute + 1, nil}}, "", []int{1, 2}},
		{"furthest behind first", []progress{{1, "a", 0, nil}, {2, "a", 3, nil}, {3, "b", 2, nil}, {4, "c", 1, nil}}, "", []int{1, 4, 3, 2}},
		{"those further behind are left to their tenant", []progress{{1, "a", -1, nil}, {2, "b", 0, nil}}, "a", []int{2}},
		{"at the same position the tenant's own leads", []progress{{1, "a", 0, nil}, {2, "b", 0, nil}, {3, "b", 0, nil}}, "a", []int{2, 1, 3}},
		{"a refused rule comes alone", []progress{{1, "a", 0, refused}, {2, "a", 0, fails}, {3, "a", 0, refused}}, "", []int{1}},
		{"and with no other", []progress{{1, "a", 0, fails}, {2, "a", 0, refused}, {3, "a", 0, fails}}, "", []int{1, 3}},
		{"failing rules keep to themselves", []progress{{1, "a", 0, fails}, {2, "a", 0, nil}, {3, "b", 0, retries}}, "", []int{1, 3}},
		{"the others without them", []progress{{1, "a", 0, nil}, {2, "a", 0, fails}, {3, "b", 0, nil}}, "", []int{1, 3}},
		{"a failing rule rests", []progress{{1, "a", 0, rests}, {2, "b", 0, nil}, {3, "b", 0, rests}}, "", []int{2}},
		{"all rest", []progress{{1, "a", 0, rests}}, "", nil},
		{"an error of the source keeps a rule to its tenant", []progress{{1, "a", 0, unread}, {2, "a", 0, nil}, {3, "b", 0, nil}}, "", []int{1, 2}},
		{"and out of other tenants", []progress{{1, "a", 0, nil}, {2, "b", 0, unread}, {3, "b", 0, nil}}, "", []int{1, 3}},
		{"not out of its own", []progress{{1, "a", 0, nil}, {2, "a", 1, unread}}, "", []int{1, 2}},
		{"it waits after an error of the source", []progress{{1, "a", 0, waits}, {2, "a", 0, nil}}, "", []int{2}},
		{"without a condition nothing is read", []progress{{1, "a", 0, lost}, {2, "b", 0, nil}}, "", []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := numbers(exceptions(c.rules).Behind(now(), c.after)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestBehindRoundRobin states that no tenant keeps the others waiting, however far it is behind.
func TestBehindRoundRobin(t *testing.T) {
	s := exceptions([]progress{{1, "b", 0, nil}, {2, "b", hour, nil}, {3, "a", 2 * day, nil}, {4, "c", day, nil}})
	var served []string
	after := ""
	for range 6 {
		after = s.Behind(now(), after)[0].TenantID
		served = append(served, after)
	}
	if want := []string{"a", "b", "c", "a", "b", "c"}; !slices.Equal(served, want) {
		t.Errorf("got %v, want %v", served, want)
	}
}

// TestBehindBound states that at most 10,000 rules read together, and that the one that leads is among them.
func TestBehindBound(t *testing.T) {
	s, first := ruleset.New(), rule(1).Rule
	judge, err := rules.NewJudge(&first)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_001 {
		r := &ruleset.Rule{Rule: first, Judge: judge}
		if r.ID = id(n); n == 10_000 {
			r.TenantID = "b"
		}
		s.Except(r, new(backfill(n)))
	}
	got := s.Behind(now(), "a")
	if len(got) != 10_000 || got[0].TenantID != "b" {
		t.Errorf("%d rules read together, and one of tenant %q leads", len(got), got[0].TenantID)
	}
}

// TestDue states which window rules are due at the watermark base. Their interval is ten seconds.
func TestDue(t *testing.T) {
	const interval, within = 10 * second, second
	for _, c := range []struct {
		name string
		// ago is how long before the watermark the rules 1, 2 and so on were evaluated.
		ago    []int64
		change func(*ruleset.Rule)
		want   []int
	}{
		{"the interval is over", []int64{interval, second}, nil, []int{1}},
		{"give or take", []int64{interval - within, interval - within - 1}, nil, []int{1}},
		{"longest waiting first", []int64{interval, 3 * interval, 2 * interval}, nil, []int{2, 3, 1}},
		{"in the order of the set where all wait as long", []int64{interval, interval, interval}, nil, []int{1, 2, 3}},
		{"one that was never evaluated comes first", []int64{2 * interval, base}, nil, []int{2, 1}},
		{"the watermark went back", []int64{-day, 0, -1}, nil, []int{3, 1}},
		{"a rule that rests is not due", []int64{interval, interval}, rests, []int{2}},
		{"not even where the watermark went back", []int64{-1, interval}, rests, []int{2}},
		{"until it is tried again", []int64{interval, interval}, retries, []int{1, 2}},
		{"each has its own interval", []int64{interval, interval}, func(r *ruleset.Rule) { r.IntervalSeconds = 60 }, []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ruleset.New()
			changed := ruleset.Changed{Rules: []ruleset.Stored{rule(9)}} // never due
			for i := range c.ago {
				changed.Rules = append(changed.Rules, window(i+1))
			}
			s.Apply(changed)
			for i, ago := range c.ago {
				s.Rule(id(i + 1)).EvaluatedNS = base - ago
			}
			if c.change != nil {
				c.change(s.Rule(id(1)))
			}
			if got := numbers(s.Due(base, time.Duration(within), now())); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
