package counting_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/windowtest"
	"tocsin/rules"
)

const (
	second    = windowtest.Second
	watermark = windowtest.Watermark
)

// failure is an error of the source.
type failure string

func (f failure) Error() string { return string(f) }

const (
	errDown   = failure("connection refused")
	errPoison = failure("poison")
)

// source counts five exchanges for each rule, which is identified by its application. If its groups
// are set, they are returned instead.
type source struct {
	mu sync.Mutex // guards tallies, of which several are asked at once
	// poison makes a query fail, slow makes it wait until its context ends. endless does the latter
	// to each tally, down to everything.
	poison, slow  string
	endless, down bool
	// hidden is a rule whose newest exchanges cannot be read.
	hidden string
	// wide is a tenant with too many kinds.
	wide string
	// values is the number of values of each attribute; 0 means one.
	values int
	// kindsMost is the largest number of kinds in a tally; 0 means the default.
	kindsMost int
	inexact   []string
	groups    []counting.Group
	// lags is a group whose newest exchange the first lagsFor answers do not show.
	lags    string
	lagsFor int
	// tallies and counts record what each query was about, newest the number of groups.
	tallies []counting.TallyQuery
	counts  [][]string
	newest  []int
}

func (s *source) Tally(ctx context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	if s.down {
		return counting.Tallies{}, errDown
	}
	if q.FromNS[0] == q.ToNS {
		return counting.Tallies{}, ctx.Err() // as when the availability of the source is tested
	}
	s.mu.Lock()
	s.tallies = append(s.tallies, q)
	s.mu.Unlock()
	if s.endless {
		<-ctx.Done()
		return counting.Tallies{}, ctx.Err()
	}
	if slices.Contains(q.Tenants.Names, s.wide) {
		return counting.Tallies{}, errors.New("too many bytes")
	}
	if s.kindsMost > 0 && len(q.Tenants.Names) > s.kindsMost {
		return counting.Tallies{}, errors.New("too many rows")
	}
	var tallies []counting.Tally
	keys := q.Attributes
	if len(keys) == 0 {
		keys = []string{""}
	}
	for _, tenant := range append(q.Tenants.Names, "other") {
		for _, key := range keys {
			for value := range max(1, s.values) {
				group := key
				if value > 0 {
					group = fmt.Sprint(key, value)
				}
				tallies = append(tallies, counting.Tally{
					TenantID: tenant, Status: rules.Failed, Application: "000", Attribute: key, Group: group, FromNS: q.FromNS[len(q.FromNS)-1],
					Observed: 5, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2,
				})
			}
		}
	}
	return counting.Tallies{Tallies: tallies, Inexact: s.inexact}, nil
}

func (s *source) CountWindows(ctx context.Context, windows []counting.Query) (counting.Counted, error) {
	if s.down {
		return counting.Counted{}, errDown
	}
	var names []string
	for _, w := range windows {
		names = append(names, w.Scope.Applications[0])
	}
	s.counts = append(s.counts, names)
	if slices.Contains(names, s.slow) {
		<-ctx.Done()
		return counting.Counted{}, ctx.Err()
	}
	if slices.Contains(names, s.poison) {
		return counting.Counted{}, errPoison
	}
	groups := s.groups
	if groups == nil {
		groups = []counting.Group{{Observed: 5, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2}}
	}
	return counting.Counted{Groups: slices.Repeat([][]counting.Group{groups}, len(windows))}, nil
}

func (s *source) Newest(_ context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	newest := make([][]rules.Exchange, len(windows))
	asked := 0
	for i, w := range windows {
		if w.Scope.Applications[0] == s.hidden {
			return nil, errPoison
		}
		for _, g := range w.Groups {
			e := rules.Exchange{ExecutionID: "newest of " + g.Group, StartTimeNS: g.NewestStartNS}
			if g.Group == s.lags && len(s.newest) < s.lagsFor {
				e = rules.Exchange{}
			}
			newest[i] = append(newest[i], e)
			asked++
		}
	}
	s.newest = append(s.newest, asked)
	return newest, nil
}

func newCounter(s counting.Source) *counting.Counter {
	return counting.New(counting.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
}

// outcome is what a pass counted.
type outcome struct {
	*counting.Pass
	// names are those of the rules that were counted, and of whose groups the newest exchanges were
	// read; reached are the windows with groups, and newest holds the exchanges.
	names   []string
	reached []*counting.Window
	newest  map[uuid.UUID][]rules.Exchange
}

// count counts the windows of the rules of a request, and reads what is newest in their groups.
func count(ctx context.Context, c *counting.Counter, r window.Request) *outcome {
	o := &outcome{newest: map[uuid.UUID][]rules.Exchange{}}
	o.Pass = c.Pass(&r.Request, func(ctx context.Context, windows []*counting.Window) {
		var reached []*counting.Window
		for _, w := range windows {
			if len(w.Groups) > 0 {
				reached = append(reached, w)
			} else {
				o.names = append(o.names, w.Name)
			}
		}
		o.Newest(ctx, reached, func(w *counting.Window, newest []rules.Exchange) {
			o.names, o.reached, o.newest[w.ID] = append(o.names, w.Name), append(o.reached, w), newest
		})
	})
	windows := make([]*counting.Window, len(r.Rules))
	for i, rule := range r.Rules {
		windows[i] = new(counting.WindowOf(rule, nil, r.WatermarkNS))
		windows[i].Number = i
	}
	o.Count(ctx, windows)
	slices.Sort(o.names)
	return o
}

func TestOneRuleThatFailsFailsAlone(t *testing.T) {
	s := &source{poison: "042"}
	c := newCounter(s)
	for pass := range 3 {
		got := count(t.Context(), c, windowtest.Request(windowtest.Some(120)))
		if diff := cmp.Diff(windowtest.UpTo(120, "042"), got.names); diff != "" || got.SourceErr != nil {
			t.Errorf("%v\n%s", got.SourceErr, diff)
		}
		switch why := got.Failed[windowtest.RuleOf(42, "").ID]; {
		case pass == 0 && len(got.Failed) > 0:
			t.Errorf("failed at once: %v", got.Failed)
		case pass > 0 && (len(got.Failed) != 1 || !errors.Is(why, errPoison)):
			t.Errorf("failed %v", got.Failed)
		}
	}
}

// TestRuleWhoseNewestExchangeCannotBeReadFails has a rule that can be counted in each pass.
func TestRuleWhoseNewestExchangeCannotBeReadFails(t *testing.T) {
	s := &source{hidden: "042"}
	c := newCounter(s)
	for pass := range 4 {
		got := count(t.Context(), c, windowtest.Request(windowtest.Some(120)))
		if diff := cmp.Diff(windowtest.UpTo(120, "042"), got.names); diff != "" || got.SourceErr != nil {
			t.Errorf("%v\n%s", got.SourceErr, diff)
		}
		why := got.Failed[windowtest.RuleOf(42, "").ID]
		if pass > 0 && (len(got.Failed) != 1 || !errors.Is(why, errPoison)) || pass == 0 && len(got.Failed) > 0 {
			t.Errorf("pass %d: failed %v", pass, got.Failed)
		}
	}
	s.hidden = ""
	for range 2 {
		if got := count(t.Context(), c, windowtest.Request(windowtest.Some(120))); len(got.names) != 120 || len(got.Failed) > 0 {
			t.Errorf("once it can be read: %d rules, failed %v", len(got.names), got.Failed)
		}
	}
}

// TestSourceThatIsDownFailsNoRule makes the source unavailable before and during a pass.
func TestSourceThatIsDownFailsNoRule(t *testing.T) {
	s := &source{down: true}
	for name, list := range map[string][]counting.Compiled{"conditions": windowtest.Some(120), "tallies": windowtest.Plain(windowtest.Some(120))} {
		got := count(t.Context(), newCounter(s), windowtest.Request(list))
		if !errors.Is(got.SourceErr, errDown) || len(got.names) > 0 || len(got.Failed) > 0 {
			t.Errorf("%s: %v, %v, %v", name, got.SourceErr, got.names, got.Failed)
		}
	}
	s.down = false
	r := windowtest.Request(windowtest.Some(120))
	r.Over = func() bool {
		s.down = s.down || len(s.counts) == 1
		return false
	}
	got := count(t.Context(), newCounter(s), r)
	if !errors.Is(got.SourceErr, errDown) || len(got.names) != 50 || len(got.Failed) > 0 {
		t.Errorf("in mid-pass: %v, %d rules, %v", got.SourceErr, len(got.names), got.Failed)
	}
}

// TestNewestIsAskedForAgainWhereAServerLags has servers that do not show the newest exchange of one of two groups.
func TestNewestIsAskedForAgainWhereAServerLags(t *testing.T) {
	for _, c := range []struct {
		lagsFor int
		asked   []int
		shown   bool
	}{{0, []int{2}, true}, {1, []int{2, 1}, true}, {2, []int{2, 1, 1}, true}, {3, []int{2, 1, 1}, false}} {
		s := &source{lags: "lagging", lagsFor: c.lagsFor, groups: []counting.Group{{Group: "other", Observed: 5}, {Group: "lagging", Observed: 5, NewestStartNS: 7}}}
		got := count(t.Context(), newCounter(s), windowtest.Request(windowtest.Some(1)))
		newest := got.newest[windowtest.RuleOf(0, "").ID]
		if len(newest) != 2 || newest[0].ExecutionID != "newest of other" || (newest[1].ExecutionID == "newest of lagging") != c.shown || !slices.Equal(s.newest, c.asked) {
			t.Errorf("lags for %d: %+v, asked for %v", c.lagsFor, newest, s.newest)
		}
	}
}

// TestNothingIsAskedOnceTheTimeIsUp ends after the first query.
func TestNothingIsAskedOnceTheTimeIsUp(t *testing.T) {
	s := &source{}
	r := windowtest.Request(windowtest.Some(120))
	r.Over = func() bool { return len(s.counts) == 1 && len(s.newest) == 1 }
	got := count(t.Context(), newCounter(s), r)
	if diff := cmp.Diff(windowtest.UpTo(50, ""), got.names); diff != "" || got.SourceErr != nil || len(got.Failed) > 0 {
		t.Errorf("%v, %v\n%s", got.SourceErr, got.Failed, diff)
	}
}

// TestSlowRuleKeepsNobodyWaiting has one rule that takes all the available time, pass after pass.
func TestSlowRuleKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{slow: "000"}
		var logged strings.Builder
		c := counting.New(counting.Options{Source: s, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		pass := func() *outcome {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			s.counts = nil
			return count(ctx, c, windowtest.Request(windowtest.Some(120)))
		}
		if got := pass(); len(got.names) != 0 || len(got.Failed) != 0 || len(s.counts) != 1 {
			t.Errorf("at first: %v, %v, %v", got.names, got.Failed, s.counts)
		}
		if !strings.Contains(logged.String(), "one by one") || !strings.Contains(logged.String(), "rules=50") {
			t.Errorf("logged %q", logged.String())
		}
		// The 50 that were queried together are queried one by one, after the others.
		got := pass()
		if diff := cmp.Diff(windowtest.UpTo(120, "000"), got.names); diff != "" || len(s.counts) != 52 || len(s.counts[0]) != 50 || len(s.counts[1]) != 20 {
			t.Errorf("then: %d queries\n%s", len(s.counts), diff)
		}
		if err := got.Failed[windowtest.RuleOf(0, "").ID]; err == nil || !strings.Contains(err.Error(), "narrow its scope") {
			t.Errorf("failed %v", got.Failed)
		}
		// It is now known to be the slow one.
		got = pass()
		if diff := cmp.Diff(windowtest.UpTo(120, "000"), got.names); diff != "" || len(s.counts) != 4 || !slices.Equal(s.counts[3], []string{"000"}) {
			t.Errorf("at last: %d queries\n%s", len(s.counts), diff)
		}
		if n := strings.Count(logged.String(), "one by one"); n != 1 {
			t.Errorf("it was said %d times that rules are counted one by one", n)
		}
		s.slow = ""
		if pass(); len(s.counts) != 4 {
			t.Errorf("when it is quick again: %d queries", len(s.counts))
		}
		if pass(); len(s.counts) != 3 {
			t.Errorf("and then: %d queries", len(s.counts))
		}
	})
}

// TestSlowTallyKeepsNobodyWaiting has a tally that takes all the available time: the conditions are
// queried instead, until it is tried again.
func TestSlowTallyKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{endless: true}
		c := newCounter(s)
		r := windowtest.Request(windowtest.Plain(windowtest.Some(120)))
		pass := func() []string {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return count(ctx, c, r).names
		}
		if got := pass(); len(got) != 0 {
			t.Errorf("at first: %v", got)
		}
		for range 2 {
			if diff := cmp.Diff(windowtest.UpTo(120, ""), pass()); diff != "" || len(s.tallies) != 1 {
				t.Errorf("after %d tallies: %s", len(s.tallies), diff)
			}
		}
		r.Now = r.Now.Add(time.Hour)
		if pass(); len(s.tallies) != 2 {
			t.Errorf("%d tallies", len(s.tallies))
		}
	})
}
