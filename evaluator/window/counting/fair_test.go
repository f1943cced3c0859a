package counting_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tocsin/evaluator/window/counting"
	"tocsin/internal/windowtest"
	"tocsin/rules"
)

// queue counts rules in passes that have time for one query each. Those that were not counted come first in the next
// pass, as the partition has it.
type queue struct {
	source  *source
	counter *counting.Counter
	rules   []counting.Compiled
}

func (q *queue) pass(t *testing.T) *outcome {
	t.Helper()
	r := windowtest.Request(q.rules)
	r.Over = func() bool { return true }
	q.source.tallies, q.source.counts = nil, nil
	got := count(t.Context(), q.counter, r)
	counted := func(rule counting.Compiled) bool { return slices.Contains(got.names, rule.Name) }
	waiting := slices.DeleteFunc(slices.Clone(q.rules), counted)
	q.rules = append(waiting, slices.DeleteFunc(q.rules, func(rule counting.Compiled) bool { return !counted(rule) })...)
	return got
}

// TestConditionsDoNotWaitForTallies has passes that have time for one tally: the rule whose message must be read is
// counted in the second one.
func TestConditionsDoNotWaitForTallies(t *testing.T) {
	q := &queue{source: &source{}, rules: append(windowtest.Plain(windowtest.Some(20)), windowtest.RuleOf(20, "default"))}
	q.counter = newCounter(q.source)
	if got := q.pass(t); len(got.names) != 20 || len(q.source.tallies) != 1 {
		t.Errorf("at first %d rules were counted by %d tallies", len(got.names), len(q.source.tallies))
	}
	if got := q.pass(t); !slices.Contains(got.names, "020") {
		t.Errorf("then %v", got.names)
	}
}

// TestUndecidedRulesDoNotWaitForTallies has passes that have time for one tally, which does not decide on one tenant.
func TestUndecidedRulesDoNotWaitForTallies(t *testing.T) {
	list := append(windowtest.Plain(windowtest.Some(20)), windowtest.Plain([]counting.Compiled{windowtest.RuleOf(20, "twice")})...)
	q := &queue{source: &source{inexact: []string{"twice"}}, rules: list}
	q.counter = newCounter(q.source)
	counted := false
	for range 3 {
		counted = counted || slices.Contains(q.pass(t).names, "020")
	}
	if !counted {
		t.Error("the rule that the tally does not decide on is never counted")
	}
}

// breaking is a source that breaks in the middle of a query, after a while.
type breaking struct {
	*source
	after  time.Duration
	broken atomic.Bool // several are asked at once
}

func (b *breaking) Tally(ctx context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	if b.after > 0 && q.FromNS[0] != q.ToNS {
		time.Sleep(b.after) //nolint:forbidigo // Virtual time of a synctest bubble.
		return counting.Tallies{}, b.breaks()
	}
	if b.broken.Load() {
		return counting.Tallies{}, errDown
	}
	return b.source.Tally(ctx, q)
}

func (b *breaking) CountWindows(ctx context.Context, w []counting.Query) (counting.Counted, error) {
	if b.after > 0 {
		time.Sleep(b.after) //nolint:forbidigo // Virtual time of a synctest bubble.
		return counting.Counted{}, b.breaks()
	}
	return b.source.CountWindows(ctx, w)
}

// breaks breaks the source.
func (b *breaking) breaks() error {
	b.broken.Store(true)
	return errDown
}

// TestOutageMakesNoRuleSlow has a source that breaks when the time of the pass is up. Later it works, and all rules are
// counted by as few queries as before.
func TestOutageMakesNoRuleSlow(t *testing.T) {
	for name, list := range map[string][]counting.Compiled{"conditions": windowtest.Some(120), "tallies": severalSets()} {
		synctest.Test(t, func(t *testing.T) {
			s := &breaking{source: &source{}, after: time.Second}
			c := newCounter(s)
			r, began := windowtest.Request(list), time.Now()
			r.Over = func() bool { return time.Since(began) >= time.Second }
			if got := count(t.Context(), c, r); !errors.Is(got.SourceErr, errDown) || len(got.Failed) > 0 {
				t.Errorf("%s: %v, %v", name, got.SourceErr, got.Failed)
			}
			s.after = 0
			s.broken.Store(false)
			s.tallies, s.counts = nil, nil
			got := count(t.Context(), c, windowtest.Request(list))
			if len(got.names) != len(list) || len(s.counts)+len(s.tallies) > 4 {
				t.Errorf("%s: afterwards %d rules were counted by %d queries", name, len(got.names), len(s.counts)+len(s.tallies))
			}
		})
	}
}

// sluggish is a source that takes a while for a window.
type sluggish struct {
	*source
	takes time.Duration
}

func (s *sluggish) CountWindows(ctx context.Context, w []counting.Query) (counting.Counted, error) {
	for i := range w {
		if w[i].Scope.Applications[0] == s.slow && len(w) > 1 {
			<-ctx.Done()
			return counting.Counted{}, ctx.Err()
		}
		if w[i].Scope.Applications[0] == s.slow {
			time.Sleep(s.takes) //nolint:forbidigo // Virtual time of a synctest bubble.
		}
	}
	return (&source{groups: []counting.Group{}}).CountWindows(ctx, w)
}

// TestRuleThatIsSlowBesideOthersStaysAlone has a rule that takes nearly all of its time alone, and too long beside others:
// one success does not put it back among them.
func TestRuleThatIsSlowBesideOthersStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sluggish{source: &source{slow: "000"}, takes: 2500 * time.Millisecond}
		c := newCounter(s)
		counted := 0
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			counted += len(count(ctx, c, windowtest.Request(windowtest.Some(20))).names)
			cancel()
		}
		if counted != 3*20 {
			t.Errorf("in four passes %d rules were counted", counted)
		}
	})
}

// TestLearningIsSlowByItself has a rule whose groups cannot be learned: its own window stays beside the others.
func TestLearningIsSlowByItself(t *testing.T) {
	s := &source{poison: "learner"}
	c := newCounter(s)
	r := windowtest.Request(windowtest.Some(2))
	named := windowtest.Compiled(new(*r.Rules[0].Rule))
	named.Scope = rules.Scope{Applications: []string{"learner"}}
	for pass := range 3 {
		counted := 0
		p := c.Pass(&r.Request, func(_ context.Context, windows []*counting.Window) { counted += len(windows) })
		windows := []counting.Window{counting.WindowOf(r.Rules[0], nil, watermark), counting.WindowOf(r.Rules[1], nil, watermark), counting.WindowOf(named, nil, watermark)}
		windows[1].Number, windows[2].Learns = 1, true
		s.counts = nil
		p.Count(t.Context(), []*counting.Window{&windows[0], &windows[1], &windows[2]})
		if counted != 2 || len(p.Failed) > 0 || errors.Is(p.Unlearned[named.ID], errPoison) != (pass > 0) {
			t.Errorf("%d counted, failed %v, unlearned %v", counted, p.Failed, p.Unlearned)
		}
		if diff := cmp.Diff([][]string{{"000", "001"}, {"learner"}}, s.counts); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRulesThatFailedTogetherDoNotWaitForOthers has one query of many rules fail when the time of the pass is up, so that all
// of them count as slow. Passes have time for one query: one that is not slow any more is counted in every pass, and the
// others are nevertheless.
func TestRulesThatFailedTogetherDoNotWaitForOthers(t *testing.T) {
	q := &queue{source: &source{poison: "000"}, rules: windowtest.Some(6)}
	q.counter = newCounter(q.source)
	q.pass(t)
	q.source.poison = ""
	counted := map[string]int{}
	const passes = 14
	for range passes {
		for _, name := range q.pass(t).names {
			counted[name]++
		}
	}
	if len(counted) != 6 || counted["000"] < passes/3 {
		t.Errorf("in %d passes, rules were counted %v times", passes, counted)
	}
}

// TestSlowRulesAndOthersTakeTurns has six rules that stay slow, and three others. Passes have time for one query.
func TestSlowRulesAndOthersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{poison: "000"}
		q := &queue{source: s, rules: windowtest.Some(6)}
		q.counter = newCounter(&alone{s})
		q.pass(t)
		s.poison = ""
		for n := range 3 {
			q.rules = append(q.rules, windowtest.RuleOf(10+n, "default"))
		}
		counted := map[string]int{}
		const passes = 14
		for range passes {
			for _, name := range q.pass(t).names {
				counted[name]++
			}
		}
		if len(counted) != 9 || counted["010"] != passes/2 {
			t.Errorf("in %d passes, rules were counted %v times", passes, counted)
		}
	})
}

// alone is a source that takes two seconds for one window.
type alone struct{ *source }

func (a *alone) CountWindows(ctx context.Context, w []counting.Query) (counting.Counted, error) {
	if len(w) == 1 {
		time.Sleep(2 * time.Second) //nolint:forbidigo // Virtual time of a synctest bubble.
	}
	return a.source.CountWindows(ctx, w)
}

// slowest is a source that takes longer for one window, asked alone, than for all others.
type slowest struct{ *source }

func (s *slowest) CountWindows(ctx context.Context, w []counting.Query) (counting.Counted, error) {
	takes := 600 * time.Millisecond
	if w[0].Scope.Applications[0] == "000" {
		takes = 2700 * time.Millisecond
	}
	select {
	case <-ctx.Done():
		return counting.Counted{}, ctx.Err()
	case <-time.After(takes):
		return (&source{groups: []counting.Group{}}).CountWindows(ctx, w)
	}
}

// TestSlowRuleIsNotCutOffEachTime has passes that leave too little time for a slow rule, except for each that follows one that
// counted nothing: window rules come first in it, as the partition has it, and have 7.5 s instead of 2.5 s.
func TestSlowRuleIsNotCutOffEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, list := newCounter(&slowest{&source{}}), windowtest.Some(20)
		evaluate := func(most time.Duration, list []counting.Compiled) []string {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			r, began := windowtest.Request(list), time.Now()
			r.Over = func() bool { return time.Since(began) >= time.Second/2 }
			got := count(ctx, c, r)
			if len(got.Failed) > 0 {
				t.Fatal(got.Failed)
			}
			return got.names
		}
		evaluate(time.Second, list[:1]) // it is slow
		counted, missed := map[string]int{}, false
		const passes = 20
		for range passes {
			waiting, first := list, missed
			if first {
				names := evaluate(7500*time.Millisecond, list)
				for _, name := range names {
					counted[name]++
				}
				waiting = slices.DeleteFunc(slices.Clone(list), func(rule counting.Compiled) bool { return slices.Contains(names, rule.Name) })
			}
			names := evaluate(2500*time.Millisecond, waiting)
			for _, name := range names {
				counted[name]++
			}
			missed = !first && len(names) == 0
		}
		if counted["000"] < passes/4 || counted["001"] < passes/2 {
			t.Errorf("in %d passes, rules were counted %v times", passes, counted)
		}
	})
}
