package ruleset_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/ruleset"
	"tocsin/rules"
)

// replay returns the replay of a rule. Its id is a hundred more.
func replay(n int) ruleset.Replay {
	return ruleset.Replay{ID: id(100 + n), RuleID: id(n), At: at(0), ToNS: base + hour}
}

// length is how much start time of a replay is read at once.
func length(r *ruleset.Replaying) int64 { return r.EndNS(at(0)) - base }

// TestApplyKeepsReplays states that what a process knows of a replay outlasts a change of its rule,
// while its progress is the stored one, and that another replay of the rule begins without it.
func TestApplyKeepsReplays(t *testing.T) {
	s := ruleset.New()
	s.Apply(ruleset.Changed{Rules: []ruleset.Stored{rule(1)}, Replays: []ruleset.Replay{replay(1)}})
	r := s.Rule(id(1)).Replay
	if length(r) != hour || r.Failed() || r.Problem != "" {
		t.Fatalf("a new replay begins with %+v", r)
	}
	r.Fails(now())
	r.Problem = "timeout"
	for name, edited := range map[string][]ruleset.Stored{"the same rule": nil, "an edited rule": {rule(1)}} {
		moved := replay(1)
		moved.At = at(minute)
		s.Apply(ruleset.Changed{Rules: edited, Replays: []ruleset.Replay{moved}})
		got := s.Rule(id(1)).Replay
		if got.Replay != moved || got.Problem != "timeout" || !got.Failed() || length(got) != hour/4 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	other := replay(1)
	other.ID = id(200)
	s.Apply(ruleset.Changed{Replays: []ruleset.Replay{other}})
	if got := s.Rule(id(1)).Replay; got.Replay != other || got.Problem != "" || got.Failed() || length(got) != hour {
		t.Errorf("another replay: %+v", got)
	}
}

// replaying returns a set of rules with replays that begin at base.
func replaying(list ...int) *ruleset.Set {
	var changed ruleset.Changed
	for _, n := range list {
		changed.Rules, changed.Replays = append(changed.Rules, rule(n)), append(changed.Replays, replay(n))
	}
	s := ruleset.New()
	s.Apply(changed)
	return s
}

func TestNextReplay(t *testing.T) {
	const watermark = hour
	for _, c := range []struct {
		name string
		// change is made to the second of the rules 1, 2 and 3.
		change func(*ruleset.Rule)
		want   []int
	}{
		{"round-robin by id", func(*ruleset.Rule) {}, []int{1, 2, 3, 1, 2, 3}},
		{"one that waits is left out", func(r *ruleset.Rule) { r.Replay.Fails(now()) }, []int{1, 3, 1, 3}},
		{"until it is time", func(r *ruleset.Rule) { r.Replay.Fails(now().Add(-firstPause)) }, []int{1, 2, 3}},
		{"one at the watermark is left out", func(r *ruleset.Rule) { r.Replay.At = at(watermark) }, []int{1, 3, 1, 3}},
		{"one before it is not", func(r *ruleset.Rule) { r.Replay.At = at(watermark - 1) }, []int{1, 2, 3}},
		{"a rule that fails is left out", func(r *ruleset.Rule) { r.Failing = true }, []int{1, 3, 1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := replaying(3, 1, 2)
			c.change(s.Rule(id(2)))
			var got []*ruleset.Rule
			var after uuid.UUID
			for range c.want {
				r := s.NextReplay(after, base+watermark, now())
				if r == nil {
					t.Fatal("nothing to replay after", after)
				}
				got, after = append(got, r), r.ID
			}
			if got := numbers(got); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if r := replaying(1, 2).NextReplay(uuid.UUID{}, base, now()); r != nil {
		t.Errorf("%v is replayed beyond the watermark", r.ID)
	}
}

func TestReplayed(t *testing.T) {
	for name, over := range map[string]bool{"a replay goes on where the commit took it": false, "a replay that is over is gone": true} {
		t.Run(name, func(t *testing.T) {
			s := replaying(1, 2)
			s.Rule(id(1)).Replay.Widen()
			to := replay(1)
			to.At = at(minute)
			s.Replayed(&ruleset.ReplayStep{Replay: to, Problem: "refused", Failed: over})
			got, next := s.Rule(id(1)).Replay, s.NextReplay(uuid.UUID{}, base+hour, now())
			switch {
			case over && (got != nil || next.ID != id(2)):
				t.Errorf("%+v is left, the next one is of %v", got, next.ID)
			case !over && (got == nil || got.Replay != to || got.Problem != "refused" || length(got) != 2*hour || next.ID != id(1)):
				t.Errorf("got %+v, the next one is of %v", got, next.ID)
			}
			if other := s.Rule(id(2)).Replay; other == nil || other.Replay != replay(2) || other.Problem != "" {
				t.Errorf("the other replay is %+v", other)
			}
		})
	}
}

// TestAdvanced states how a commit changes a backfill: it comes further and never back, what was refused is
// accepted, and the partition evaluates a rule that failed from its cursor on.
func TestAdvanced(t *testing.T) {
	until, partitionAt := at(2*minute), at(3*minute)
	refused := &cursor.Range{FromNS: base, ToNS: base + 1}
	for name, c := range map[string]struct{ before, want ruleset.Backfill }{
		"further":         {ruleset.Backfill{At: at(0), Until: &until}, ruleset.Backfill{At: at(minute), Until: &until}},
		"not back":        {ruleset.Backfill{At: at(hour), Until: &until}, ruleset.Backfill{At: at(hour), Until: &until}},
		"it failed":       {ruleset.Backfill{At: at(0), Failing: true}, ruleset.Backfill{At: at(minute), Until: &partitionAt}},
		"it failed again": {ruleset.Backfill{At: at(0), Until: &until, Failing: true, Refused: refused}, ruleset.Backfill{At: at(minute), Until: &partitionAt}},
	} {
		if got := c.before.Advanced(at(minute), &partitionAt); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestNextRange states what rules that are behind read next, and how far they come by it.
func TestNextRange(t *testing.T) {
	partitionAt := at(10 * day)
	behind := func(fromNS, untilNS int64) *ruleset.Rule {
		until := at(untilNS)
		return &ruleset.Rule{Backfill: &ruleset.Backfill{At: at(fromNS), Until: &until}}
	}
	failing := behind(9*day+hour, 0)
	failing.Failing = true
	refused := behind(9*day, 0)
	refused.Failing, refused.Backfill.Refused = true, &cursor.Range{FromNS: base + minute, ToNS: base + hour}
	for _, c := range []struct {
		name   string
		list   []*ruleset.Rule
		after  int64
		before int64
		end    int64
	}{
		{"up to the last of their ends", []*ruleset.Rule{behind(0, minute), behind(0, hour), behind(0, second)}, 0, hour + 1, hour},
		{"a day at once", []*ruleset.Rule{behind(0, 2*day)}, 0, day, day},
		{"one that ends there", []*ruleset.Rule{behind(0, day)}, 0, day, day},
		{"one that fails reads up to the cursor of the partition", []*ruleset.Rule{failing}, 9*day + hour, 10*day + 1, 10 * day},
		{"what was refused, without coming further", []*ruleset.Rule{refused}, minute - 1, hour, 9 * day},
	} {
		after, beforeNS, end := ruleset.NextRange(c.list, partitionAt)
		if after != at(c.after) || beforeNS-base != c.before || end != at(c.end) {
			t.Errorf("%s: after %v, before %v, to %v", c.name, time.Duration(after.StartTimeNS-base), time.Duration(beforeNS-base), time.Duration(end.StartTimeNS-base))
		}
	}
}

// TestDefer states what is left to the backfills of a tenant's rules.
func TestDefer(t *testing.T) {
	s := ruleset.New()
	s.Apply(ruleset.Changed{
		Rules: []ruleset.Stored{rule(1), rule(2), rule(3), rule(4), ruleOf(5, "b", rules.PerExchange)},
		Backfills: []ruleset.Backfill{
			{RuleID: id(2), At: at(minute), Until: new(at(hour))}, {RuleID: id(3), At: at(3 * hour), Until: new(at(4 * hour))}, {RuleID: id(4), At: at(0), Failing: true},
		},
	})
	to := at(day)
	got := s.Defer("a", at(2*hour), to)
	want := map[uuid.UUID]cursor.Position{id(1): at(2 * hour), id(2): at(minute), id(3): at(2 * hour)}
	for _, b := range got {
		if b.At != want[b.RuleID] || *b.Until != to || *s.Rule(b.RuleID).Backfill != b || s.Exceptions[b.RuleID] == nil {
			t.Errorf("%v begins at %v", b.RuleID, time.Duration(b.At.StartTimeNS-base))
		}
	}
	if len(got) != len(want) || s.Rule(id(4)).Backfill.Until != nil || s.Rule(id(5)).Backfill != nil || s.Defer("none", at(0), to) != nil {
		t.Errorf("deferred %+v", got)
	}
}
