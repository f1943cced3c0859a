package ruleset_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/ruleset"
)

// replay returns the replay of a rule. Its id is a hundred more.
func replay(n int) ruleset.Replay {
	return ruleset.Replay{ID: id(100 + n), RuleID: id(n), At: at(0), ToNS: base + hour}
}

// TestApplyKeepsReplays states that what a process knows of a replay outlasts a change of its rule,
// while its progress is the stored one, and that another replay of the rule begins without it.
func TestApplyKeepsReplays(t *testing.T) {
	s := ruleset.New()
	s.Apply(ruleset.Changed{Rules: []ruleset.Stored{rule(1)}, Replays: []ruleset.Replay{replay(1)}})
	r := s.Rule(id(1)).Replay
	if r.NS != hour || r.Failed != 0 || r.Problem != "" {
		t.Fatalf("a new replay begins with %+v", r)
	}
	r.Fails(now())
	r.Problem = "timeout"
	for name, edited := range map[string][]ruleset.Stored{"the same rule": nil, "an edited rule": {rule(1)}} {
		moved := replay(1)
		moved.At = at(minute)
		s.Apply(ruleset.Changed{Rules: edited, Replays: []ruleset.Replay{moved}})
		got := s.Rule(id(1)).Replay
		if got.Replay != moved || got.Problem != "timeout" || got.Failed != 1 || got.NS != hour/4 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	other := replay(1)
	other.ID = id(200)
	s.Apply(ruleset.Changed{Replays: []ruleset.Replay{other}})
	if got := s.Rule(id(1)).Replay; got.Replay != other || got.Problem != "" || got.Failed != 0 || got.NS != hour {
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
		{"one that waits is left out", func(r *ruleset.Rule) { r.Replay.RetryAt = now().Add(1) }, []int{1, 3, 1, 3}},
		{"until it is time", func(r *ruleset.Rule) { r.Replay.RetryAt = now() }, []int{1, 2, 3}},
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
			s.Replayed(to, "refused", over)
			got, next := s.Rule(id(1)).Replay, s.NextReplay(uuid.UUID{}, base+hour, now())
			switch {
			case over && (got != nil || next.ID != id(2)):
				t.Errorf("%+v is left, the next one is of %v", got, next.ID)
			case !over && (got == nil || got.Replay != to || got.Problem != "refused" || got.NS != 2*hour || next.ID != id(1)):
				t.Errorf("got %+v, the next one is of %v", got, next.ID)
			}
			if other := s.Rule(id(2)).Replay; other == nil || other.Replay != replay(2) || other.Problem != "" {
				t.Errorf("the other replay is %+v", other)
			}
		})
	}
}

// TestSpan states how much is read after each step from what was read before.
func TestSpan(t *testing.T) {
	widen := func(s *ruleset.Span) { s.Widen() }
	fails := func(s *ruleset.Span) { s.Fails(now()) }
	stays := func(*ruleset.Span) {}
	for _, c := range []struct {
		name     string
		before   int64
		step     func(*ruleset.Span)
		want     int64
		failures int
	}{
		{"a day at first", 0, stays, day, 0},
		{"as much as it says", minute, stays, minute, 0},
		{"doubled from a day", 0, widen, 2 * day, 0},
		{"doubled", 10 * second, widen, 20 * second, 0},
		{"doubled up to 32 days", 16 * day, widen, 32 * day, 0},
		{"not beyond", 17 * day, widen, 32 * day, 0},
		{"a quarter of a day", 0, fails, 6 * hour, 1},
		{"a quarter", 32 * day, fails, 8 * day, 1},
		{"a quarter down to ten seconds", 40 * second, fails, 10 * second, 1},
		{"not below", 39 * second, fails, 10 * second, 1},
		{"nor from there", 10 * second, fails, 10 * second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ruleset.Span{NS: c.before}
			c.step(&s)
			if got := s.EndNS(at(7)) - base - 7; got != c.want || s.Failed != c.failures || s.RetryAt.After(now()) != (c.failures > 0) {
				t.Errorf("%v is read after %d failures, again at %v; want %v", time.Duration(got), s.Failed, s.RetryAt, time.Duration(c.want))
			}
		})
	}
}

// TestBackoff states that the pause doubles to five minutes, also after so many failures that a shift would overflow.
func TestBackoff(t *testing.T) {
	var b ruleset.Backoff
	for i := range 100 {
		b.Fails(now())
		want := 5 * time.Minute
		if doubled := []int64{5, 10, 20, 40, 80, 160}; i < len(doubled) {
			want = time.Duration(doubled[i] * second)
		}
		if got := b.RetryAt.Sub(now()); got != want || b.Failed != i+1 {
			t.Fatalf("failure %d: a pause of %v, counted as %d; want %v", i+1, got, b.Failed, want)
		}
	}
	b.Succeeds()
	if b != (ruleset.Backoff{}) {
		t.Errorf("%+v is left after a success", b)
	}
	if b.Fails(now()); b.RetryAt.Sub(now()) != ruleset.RetryFirst {
		t.Errorf("the first pause after a success is %v", b.RetryAt.Sub(now()))
	}
}
