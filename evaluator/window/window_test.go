package window_test

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

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/routing"
	"tocsin/evaluator"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/notify"
	"tocsin/rules"
)

const (
	second    = int64(1e9)
	watermark = 1_795_244_520 * second
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
	poison, slow string
	// panics is the rule whose texts panic.
	panics        string
	endless, down bool
	// wide is a tenant with too many kinds.
	wide string
	// values is the number of values of each attribute; 0 means one.
	values int
	// kindsMost is the largest number of kinds in a tally; 0 means the default.
	kindsMost int
	// lasted is the least duration of exchanges.
	lasted  int64
	inexact []string
	groups  []counting.Group
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
					LeastNS: s.lasted, Observed: 5, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2,
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

func (s *source) Arrivals(context.Context, watch.ArrivalsQuery) (watch.Arrivals, error) {
	return watch.Arrivals{}, errors.New("no rule is about absence")
}

func (s *source) Newest(_ context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	newest := make([][]rules.Exchange, len(windows))
	asked := 0
	for i, w := range windows {
		for _, g := range w.Groups {
			newest[i] = append(newest[i], rules.Exchange{ExecutionID: "newest of " + g.Group, StartTimeNS: g.NewestStartNS})
			asked++
		}
	}
	s.newest = append(s.newest, asked)
	return newest, nil
}

func (s *source) Texts(*rules.Rule, *rules.Exchange) (a, b string, _ error) { return "", "", nil }

func (s *source) CountTexts(r *rules.Rule, c *alerts.Count, e *rules.Exchange) (a, b string, _ error) {
	if s.panics != "" && r.Scope.Applications[0] == s.panics {
		panic("a text that nobody expected")
	}
	return fmt.Sprintf("%d in %q", c.Observed, c.Group), e.ExecutionID, nil
}

// ruleOf returns the n-th rule of a tenant; it filters by message.
func ruleOf(n int, tenant string) evaluator.WindowRule {
	name := fmt.Sprintf("%03d", n)
	return compiled(&rules.Rule{
		ID: uuid.UUID{14: byte(n >> 8), 15: byte(n)}, TenantID: tenant, Version: 1,
		Definition: rules.Definition{
			Name: name, FireMode: rules.CountInWindow, Threshold: 5, WindowSeconds: 60, IntervalSeconds: 1, WebhookIDs: []uuid.UUID{{1}},
			Scope: rules.Scope{Applications: []string{name}}, Filter: rules.Filter{ErrorMessageContains: "x"},
		},
	})
}

func compiled(rule *rules.Rule) evaluator.WindowRule {
	judge, err := rules.NewJudge(rule)
	if err != nil {
		panic(err)
	}
	return evaluator.WindowRule{Rule: rule, Judge: judge}
}

// some returns n rules of one tenant.
func some(n int) []evaluator.WindowRule {
	list := make([]evaluator.WindowRule, n)
	for i := range list {
		list[i] = ruleOf(i, "default")
	}
	return list
}

// plain makes rules filter by names only.
func plain(list []evaluator.WindowRule) []evaluator.WindowRule {
	for i := range list {
		list[i].Filter = rules.Filter{}
		list[i] = compiled(list[i].Rule)
	}
	return list
}

func newEvaluator(s *source) *window.Evaluator { return evaluatorOf(s, s) }

func evaluatorOf(s window.Source, texts evaluator.Texts) *window.Evaluator {
	return window.New(window.Options{Source: s, Texts: texts, Logger: slog.New(slog.DiscardHandler)})
}

func request(list []evaluator.WindowRule) evaluator.WindowRequest {
	return evaluator.WindowRequest{
		Tenants: evaluator.Tenants{Names: []string{"default"}}, Rules: list, WatermarkNS: watermark, Now: time.Unix(0, watermark),
		Over: func() bool { return false },
	}
}

// evaluate returns the names of the rules that were evaluated, and what became of them.
func evaluate(t *testing.T, e *window.Evaluator, r evaluator.WindowRequest) ([]string, evaluator.WindowOutcome) {
	t.Helper()
	outcome := e.Evaluate(t.Context(), r)
	return names(outcome.Evaluated), outcome
}

func names(ids []uuid.UUID) []string {
	list := []string{}
	for _, id := range ids {
		list = append(list, fmt.Sprintf("%03d", int(id[14])<<8+int(id[15])))
	}
	slices.Sort(list)
	return list
}

// upTo returns the names of n rules without the one left out.
func upTo(n int, without string) []string {
	list := []string{}
	for i := range n {
		if name := fmt.Sprintf("%03d", i); name != without {
			list = append(list, name)
		}
	}
	return list
}

// TestQueriesDoNotGrowWithRules has 2,000 rules of 500 tenants.
func TestQueriesDoNotGrowWithRules(t *testing.T) {
	var list []evaluator.WindowRule
	for i := range 2000 {
		rule := ruleOf(i, fmt.Sprintf("tenant-%03d", i%500))
		rule.Scope.Applications = []string{fmt.Sprintf("%03d", i/500)}
		rule.WindowSeconds = []int{30, 60, 300}[i%3]
		list = append(list, rule)
	}
	s := &source{}
	got, outcome := evaluate(t, newEvaluator(s), request(plain(list)))
	if len(got) != 2000 || len(s.tallies) != 2 || len(s.counts) != 0 {
		t.Errorf("%d rules evaluated by %d tallies and %d counts", len(got), len(s.tallies), len(s.counts))
	}
	// Of each tenant the rule for the application that fails.
	if len(outcome.Changes) != 500 || len(s.newest) > 12 || slices.Max(s.newest) > 50 {
		t.Errorf("%d alerts, the newest exchanges of %v", len(outcome.Changes), s.newest)
	}
	for _, c := range outcome.Changes {
		if c.Step != alerts.Raise || c.Instance.Title != `5 in ""` || c.Instance.Message != "newest of " || len(c.Notifications) != 1 {
			t.Fatalf("%+v", c)
		}
	}
}

// together is a source whose tallies are answered when several wait, and never before.
type together struct {
	*source
	waiting chan struct{}
	all     chan struct{}
}

func (s *together) Tally(ctx context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	s.waiting <- struct{}{}
	if len(s.waiting) == cap(s.waiting) {
		close(s.all)
	}
	select {
	case <-s.all:
	case <-ctx.Done():
	}
	return s.source.Tally(ctx, q)
}

// severalSets returns rules that take four tallies.
func severalSets() (list []evaluator.WindowRule) {
	for i := range 40 {
		rule := ruleOf(i, "tenant")
		rule.WindowSeconds = []int{60, 300}[i%2]
		if i%4 < 2 {
			rule.FireMode, rule.Threshold, rule.Percentile, rule.DurationMS, rule.MinVolume = rules.DurationInWindow, 0, 95, 1, 5
		}
		list = append(list, rule)
	}
	return plain(list)
}

// TestTalliesAreAskedAtOnce has four tallies, each of which waits for the others.
func TestTalliesAreAskedAtOnce(t *testing.T) {
	s := &together{&source{}, make(chan struct{}, 4), make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	outcome := evaluatorOf(s, s).Evaluate(ctx, request(severalSets()))
	if ctx.Err() != nil || len(outcome.Evaluated) != 40 || len(s.tallies) != 4 {
		t.Errorf("%d rules evaluated by %d tallies, %v", len(outcome.Evaluated), len(s.tallies), ctx.Err())
	}
}

// panicky is a source whose tallies panic.
type panicky struct{ *source }

func (panicky) Tally(context.Context, counting.TallyQuery) (counting.Tallies, error) { panic("poison") }

// TestTallyThatPanicsFailsThePass checks that the panic reaches the pass, which takes it for a
// failure, and does not end the process.
func TestTallyThatPanicsFailsThePass(t *testing.T) {
	defer func() {
		if why := fmt.Sprint(recover()); !strings.HasPrefix(why, "poison\n") || !strings.Contains(why, "panicky.Tally") {
			t.Errorf("panicked with %s", why)
		}
	}()
	evaluatorOf(panicky{&source{}}, &source{}).Evaluate(t.Context(), request(severalSets()))
}

// TestQueriesDoNotGrowWithKindsOfRules mixes 2,000 rules of three modes with two classes of
// windows: one tally for each set of statuses and class, and one for the durations of each.
func TestQueriesDoNotGrowWithKindsOfRules(t *testing.T) {
	var list []evaluator.WindowRule
	for i := range 2000 {
		rule := ruleOf(i, fmt.Sprintf("tenant-%03d", i%500))
		rule.Scope.Applications = []string{fmt.Sprintf("%03d", i/500)}
		rule.WindowSeconds = []int{60, 300}[i%2]
		switch i % 3 {
		case 1:
			rule.FireMode, rule.Threshold, rule.Percent, rule.MinVolume, rule.ShortWindowSeconds = rules.RatioInWindow, 0, 100, 5, 10+i%40
		case 2:
			rule.FireMode, rule.Threshold, rule.Percentile, rule.DurationMS, rule.MinVolume = rules.DurationInWindow, 0, 95, int64(1+i%100), 5
		}
		list = append(list, rule)
	}
	s := &source{}
	got, outcome := evaluate(t, newEvaluator(s), request(plain(list)))
	if len(got) != 2000 || len(s.tallies) != 6 || len(s.counts) != 0 || len(outcome.Failed) > 0 {
		t.Errorf("%d rules evaluated by %d tallies and %d counts, %v", len(got), len(s.tallies), len(s.counts), outcome.Failed)
	}
	raised := map[rules.FireMode]int{}
	for i := range outcome.Changes {
		raised[outcome.Changes[i].Instance.FireMode()]++
	}
	if raised[rules.CountInWindow] < 100 || raised[rules.RatioInWindow] < 100 || raised[rules.DurationInWindow] > 0 {
		t.Errorf("%v raised; nothing lasted for a millisecond", raised)
	}
}

// TestQueriesDoNotGrowWithAttributes has 2,000 rules, most of which group by one of eight
// attributes: these have a tally of their own, and attributes of only a few rules are counted by
// conditions.
func TestQueriesDoNotGrowWithAttributes(t *testing.T) {
	var list []evaluator.WindowRule
	for i := range 2000 {
		rule := ruleOf(i, fmt.Sprintf("tenant-%03d", i%500))
		rule.Scope.Applications = []string{"000"}
		rule.WindowSeconds = []int{60, 300}[i%2]
		switch {
		case i >= 1990:
			rule.GroupBy, rule.GroupByAttribute = rules.GroupByAttribute, fmt.Sprint("order-", i)
		case i%10 > 1:
			rule.GroupBy, rule.GroupByAttribute = rules.GroupByAttribute, fmt.Sprint("key-", i/2%8)
		}
		list = append(list, rule)
	}
	s := &source{groups: []counting.Group{}}
	got, outcome := evaluate(t, newEvaluator(s), request(plain(list)))
	if len(got) != 2000 || len(s.tallies) != 4 || len(s.counts) != 1 || len(outcome.Failed) > 0 {
		t.Errorf("%d rules evaluated by %d tallies and %d counts, %v", len(got), len(s.tallies), len(s.counts), outcome.Failed)
	}
	if len(outcome.Changes) != 1990 {
		t.Errorf("%d alerts", len(outcome.Changes))
	}
	for i := range outcome.Changes {
		if c := outcome.Changes[i].Instance.Count; c.Group != c.GroupByAttribute || c.Observed != 5 {
			t.Fatalf("%+v", c)
		}
	}
}

// TestWideTallyIsNotAskedAgain has one tenant whose rules group by an attribute with almost
// distinct values: only its neighbours in the last division are counted by conditions with them,
// and no later pass makes that tally.
func TestWideTallyIsNotAskedAgain(t *testing.T) {
	var list []evaluator.WindowRule
	for i := range 160 {
		rule := ruleOf(i, fmt.Sprintf("tenant-%02d", i/8))
		rule.GroupBy, rule.GroupByAttribute = rules.GroupByAttribute, "order"
		list = append(list, rule)
	}
	s := &source{wide: "tenant-07"}
	e := newEvaluator(s)
	got, _ := evaluate(t, e, request(plain(list)))
	if len(got) != 160 || len(s.counts) != 1 || !slices.Contains(s.counts[0], "056") || len(s.counts[0]) > 30 {
		t.Errorf("%d rules evaluated, counts of %v", len(got), s.counts)
	}
	s.tallies = nil
	got, _ = evaluate(t, e, request(list))
	if len(got) != 160 || len(s.tallies) != 1 || slices.Contains(s.tallies[0].Tenants.Names, "tenant-07") {
		t.Errorf("%d rules evaluated by %d tallies", len(got), len(s.tallies))
	}
	later := request(list)
	later.Now = later.Now.Add(11 * time.Minute)
	s.tallies = nil
	if evaluate(t, e, later); len(s.tallies) < 2 {
		t.Error("it is never tried again")
	}
}

// TestManyRulesWithManyGroups has twelve rules group by an attribute with 30,000 values: some of
// them are counted by their conditions, so that the sums of all of them are never in memory, and
// the next passes do not try again.
func TestManyRulesWithManyGroups(t *testing.T) {
	var list []evaluator.WindowRule
	for i := range 12 {
		rule := ruleOf(i, "tenant")
		rule.Scope.Applications = []string{"000"}
		rule.GroupBy, rule.GroupByAttribute = rules.GroupByAttribute, "order"
		list = append(list, rule)
	}
	s := &source{values: 30_000, groups: []counting.Group{}}
	e := newEvaluator(s)
	got, outcome := evaluate(t, e, request(plain(list)))
	counted := 0
	for _, names := range s.counts {
		counted += len(names)
	}
	if len(got) != 12 || counted < 3 || counted == 12 || len(outcome.Changes) != (12-counted)*1000 {
		t.Errorf("%d rules evaluated, %d of them by their conditions, %d alerts", len(got), counted, len(outcome.Changes))
	}
	s.counts = nil
	evaluate(t, e, request(plain(list)))
	again := 0
	for _, names := range s.counts {
		again += len(names)
	}
	if again < counted {
		t.Errorf("%d rules counted by their conditions, %d before", again, counted)
	}
}

// TestPercentileIsReadWhenAnAlertChanges checks that the tally only shows that a bound is reached;
// the percentile itself is read by the query for the condition.
func TestPercentileIsReadWhenAnAlertChanges(t *testing.T) {
	list := some(8)
	for i := range list {
		list[i].Scope.Applications = []string{"000"}
		list[i].FireMode, list[i].Threshold, list[i].Percentile, list[i].MinVolume = rules.DurationInWindow, 0, 95, 5
		list[i].DurationMS = int64(1 + i)
	}
	s := &source{lasted: 3e6, groups: []counting.Group{{Observed: 5, Volume: 5, DurationNS: 7e6, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2}}}
	_, outcome := evaluate(t, newEvaluator(s), request(plain(list)))
	if len(s.tallies) != 1 || len(s.counts) != 1 || len(s.counts[0]) != 3 || len(outcome.Changes) != 3 || len(outcome.Evaluated) != 8 {
		t.Fatalf("%d tallies, counts of %v, %d alerts", len(s.tallies), s.counts, len(outcome.Changes))
	}
	for i := range outcome.Changes {
		if c := outcome.Changes[i].Instance.Count; c.DurationNS != 7e6 || c.Volume != 5 {
			t.Errorf("%+v", c)
		}
	}
}

// TestTallyThatIsTooLargeIsCutByTenants has tallies that fail for more than ten tenants.
func TestTallyThatIsTooLargeIsCutByTenants(t *testing.T) {
	var list []evaluator.WindowRule
	for i := range 100 {
		list = append(list, ruleOf(i, fmt.Sprintf("tenant-%02d", i/2)))
	}
	s := &source{kindsMost: 10, inexact: []string{"tenant-07"}}
	got, outcome := evaluate(t, newEvaluator(s), request(plain(list)))
	if diff := cmp.Diff(upTo(100, ""), got); diff != "" || len(outcome.Failed) > 0 {
		t.Errorf("%v\n%s", outcome.Failed, diff)
	}
	if diff := cmp.Diff([][]string{{"014", "015"}}, s.counts); diff != "" {
		t.Errorf("of the tenant whose tally is not exact:\n%s", diff)
	}
}

func TestOneRuleThatFailsFailsAlone(t *testing.T) {
	s := &source{poison: "042"}
	e := newEvaluator(s)
	for range 2 {
		got, outcome := evaluate(t, e, request(some(120)))
		if diff := cmp.Diff(upTo(120, "042"), got); diff != "" || outcome.SourceErr != nil {
			t.Errorf("%v\n%s", outcome.SourceErr, diff)
		}
		if len(outcome.Failed) != 1 || !errors.Is(outcome.Failed[ruleOf(42, "").ID], errPoison) {
			t.Errorf("failed %v", outcome.Failed)
		}
	}
}

// TestOneRuleThatPanicsFailsAlone lets the texts of a rule panic: all others raise their alerts.
func TestOneRuleThatPanicsFailsAlone(t *testing.T) {
	s := &source{panics: "042"}
	e := newEvaluator(s)
	for range 2 {
		got, outcome := evaluate(t, e, request(some(120)))
		if diff := cmp.Diff(upTo(120, "042"), got); diff != "" || outcome.SourceErr != nil || len(outcome.Changes) != 119 {
			t.Errorf("%v, %d changes\n%s", outcome.SourceErr, len(outcome.Changes), diff)
		}
		if why := outcome.Failed[ruleOf(42, "").ID]; len(outcome.Failed) != 1 || !strings.Contains(fmt.Sprint(why), "panicked") {
			t.Errorf("failed %v", outcome.Failed)
		}
	}
}

// TestSourceThatIsDownFailsNoRule makes the source unavailable before and during a pass.
func TestSourceThatIsDownFailsNoRule(t *testing.T) {
	s := &source{down: true}
	for name, list := range map[string][]evaluator.WindowRule{"conditions": some(120), "tallies": plain(some(120))} {
		got, outcome := evaluate(t, newEvaluator(s), request(list))
		if !errors.Is(outcome.SourceErr, errDown) || len(got) > 0 || len(outcome.Failed) > 0 {
			t.Errorf("%s: %v, %v, %v", name, outcome.SourceErr, got, outcome.Failed)
		}
	}
	s.down = false
	r := request(some(120))
	r.Over = func() bool {
		s.down = s.down || len(s.counts) == 1
		return false
	}
	got, outcome := evaluate(t, newEvaluator(s), r)
	if !errors.Is(outcome.SourceErr, errDown) || len(got) != 50 || len(outcome.Failed) > 0 {
		t.Errorf("in mid-pass: %v, %d rules, %v", outcome.SourceErr, len(got), outcome.Failed)
	}
}

// TestNothingIsAskedOnceTheTimeIsUp ends after the first query.
func TestNothingIsAskedOnceTheTimeIsUp(t *testing.T) {
	s := &source{}
	r := request(some(120))
	r.Over = func() bool { return len(s.counts) == 1 && len(s.newest) == 1 }
	got, outcome := evaluate(t, newEvaluator(s), r)
	if diff := cmp.Diff(upTo(50, ""), got); diff != "" || outcome.SourceErr != nil || len(outcome.Failed) > 0 {
		t.Errorf("%+v\n%s", outcome, diff)
	}
}

// TestWhatWasCountedIsConcluded has a count that takes all the available time.
func TestWhatWasCountedIsConcluded(t *testing.T) {
	for name, list := range map[string][]evaluator.WindowRule{"by conditions": some(3), "by a tally": plain(some(10))} {
		t.Run(name, func(t *testing.T) {
			s := &source{}
			r := request(list)
			r.Over = func() bool { return len(s.counts)+len(s.tallies) > 0 }
			got, outcome := evaluate(t, newEvaluator(s), r)
			if len(got) != len(list) || len(outcome.Changes) == 0 || outcome.Changes[0].Instance.Exchange.ExecutionID == "" {
				t.Errorf("%d rules of %d were evaluated, %d changes", len(got), len(list), len(outcome.Changes))
			}
		})
	}
}

// TestSlowRuleKeepsNobodyWaiting has one rule that takes all the available time, pass after pass.
func TestSlowRuleKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{slow: "000"}
		e := newEvaluator(s)
		pass := func() ([]string, evaluator.WindowOutcome) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			s.counts = nil
			outcome := e.Evaluate(ctx, request(some(120)))
			return names(outcome.Evaluated), outcome
		}
		if got, outcome := pass(); len(got) != 0 || len(outcome.Failed) != 0 || len(s.counts) != 1 {
			t.Errorf("at first: %v, %v, %v", got, outcome.Failed, s.counts)
		}
		// The 50 that were queried together are queried one by one, after the others.
		got, outcome := pass()
		if diff := cmp.Diff(upTo(120, "000"), got); diff != "" || len(s.counts) != 52 || len(s.counts[0]) != 50 || len(s.counts[1]) != 20 {
			t.Errorf("then: %d queries\n%s", len(s.counts), diff)
		}
		if err := outcome.Failed[ruleOf(0, "").ID]; err == nil || !strings.Contains(err.Error(), "narrow its scope") {
			t.Errorf("failed %v", outcome.Failed)
		}
		// It is now known to be the slow one.
		got, _ = pass()
		if diff := cmp.Diff(upTo(120, "000"), got); diff != "" || len(s.counts) != 4 || !slices.Equal(s.counts[3], []string{"000"}) {
			t.Errorf("at last: %d queries\n%s", len(s.counts), diff)
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
		e := newEvaluator(s)
		r := request(plain(some(120)))
		pass := func() []string {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return names(e.Evaluate(ctx, r).Evaluated)
		}
		if got := pass(); len(got) != 0 {
			t.Errorf("at first: %v", got)
		}
		for range 2 {
			if diff := cmp.Diff(upTo(120, ""), pass()); diff != "" || len(s.tallies) != 1 {
				t.Errorf("after %d tallies: %s", len(s.tallies), diff)
			}
		}
		r.Now = r.Now.Add(time.Hour)
		if pass(); len(s.tallies) != 2 {
			t.Errorf("%d tallies", len(s.tallies))
		}
	})
}

// steps evaluates one rule and returns its steps as text.
func steps(t *testing.T, s *source, rule evaluator.WindowRule, open ...evaluator.OpenAlert) []string {
	t.Helper()
	r := request([]evaluator.WindowRule{rule})
	for i := range open {
		open[i].RuleID = rule.ID
	}
	r.Open = open
	_, outcome := evaluate(t, newEvaluator(s), r)
	if len(outcome.Evaluated) != 1 {
		t.Fatalf("%+v", outcome)
	}
	var list []string
	for _, c := range outcome.Changes {
		text := fmt.Sprintf("%v %s %d", c.Step, c.Instance.Count.Group, c.Instance.Count.Observed)
		for _, n := range c.Notifications {
			text += " " + string(n.Reason)
			if n.AlertID != c.Instance.ID || n.ID == uuid.Nil {
				t.Errorf("%+v is not of %v", n, c.Instance.ID)
			}
		}
		list = append(list, text)
	}
	return list
}

// openAlert returns an alert that has been open for an hour; a resolved one is held.
func openAlert(group string, state alerts.State) evaluator.OpenAlert {
	return evaluator.OpenAlert{ID: uuid.New(), Group: group, Open: alerts.Open{
		State: state, Since: time.Unix(0, watermark).Add(-time.Hour), Held: state == alerts.Resolved,
	}}
}

func TestStepsOfGroups(t *testing.T) {
	rule := ruleOf(0, "default")
	rule.GroupBy, rule.NotifyOnResolve = rules.GroupByRoute, true
	s := &source{groups: []counting.Group{{Group: "new", Observed: 7}, {Group: "open", Observed: 6}, {Group: "held", Observed: 5}, {Group: "\x00", Observed: 5}, {Group: "below", Observed: 4}}}
	got := steps(t, s, rule, openAlert("open", alerts.Firing), openAlert("held", alerts.Resolved),
		openAlert("below", alerts.Acknowledged), openAlert("gone", alerts.Firing), openAlert("released", alerts.Resolved))
	want := []string{"clear below 4", "clear gone 0", "release released 0", "raise new 7 FIRED", "raise hex:00 5 FIRED"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRoutedAlertsKeepTheirRoute switches a rule to the routing policy: new alerts are routed by
// group, and alerts that already fired keep their destination.
func TestRoutedAlertsKeepTheirRoute(t *testing.T) {
	rule := ruleOf(0, "default")
	rule.GroupBy, rule.NotifyOnResolve, rule.ReNotifyMinutes, rule.UseRoutingPolicy, rule.WebhookIDs = rules.GroupByRoute, true, 1, true, nil
	to := func(ids ...byte) (list []uuid.UUID) {
		for _, id := range ids {
			list = append(list, uuid.UUID{id})
		}
		return list
	}
	var err error
	rule.Router, err = routing.Compile(3, routing.Policy{
		Routes:            []routing.Route{{Name: "new", Match: match.Match{Scope: rules.Scope{Routes: []string{"new", "fires"}}}, WebhookIDs: to(1, 2)}},
		DefaultWebhookIDs: to(3),
		DefaultEscalation: []alerts.EscalationStep{{AfterMinutes: 10, WebhookIDs: to(6)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &source{groups: []counting.Group{{Group: "new", Observed: 7}, {Group: "other", Observed: 7}, {Group: "fires", Observed: 6}, {Group: "routed", Observed: 5}, {Group: "unrouted", Observed: 5}}}
	waits, routed, unrouted, gone := openAlert("fires", alerts.Pending), openAlert("routed", alerts.Firing), openAlert("unrouted", alerts.Firing), openAlert("gone", alerts.Firing)
	routed.Routing = &alerts.Routing{Version: 1, DefaultWebhookIDs: to(4)}
	gone.Routing = &alerts.Routing{Version: 1, Routes: []alerts.RouteTaken{{Name: "former", WebhookIDs: to(5)}}}
	r := request([]evaluator.WindowRule{rule})
	r.Open = []evaluator.OpenAlert{waits, routed, unrouted, gone}
	for i := range r.Open {
		r.Open[i].RuleID = rule.ID
	}
	_, outcome := evaluate(t, newEvaluator(s), r)
	var got []string
	for _, c := range outcome.Changes {
		text := fmt.Sprintf("%v %s to", c.Step, c.Instance.Count.Group)
		for _, n := range c.Notifications {
			text += fmt.Sprintf(" %d", n.WebhookID[0])
		}
		if a := c.Instance.Routing; a != nil {
			text += fmt.Sprintf(", %s by version %d", a.Answer(), a.Version)
			if a.Escalates() {
				text += ", escalates"
			}
		}
		got = append(got, text)
	}
	want := []string{
		"fire fires to 1 2, ROUTED by version 3", "remind routed to 4", "remind unrouted to 3, DEFAULT by version 3", "clear gone to",
		"raise new to 1 2, ROUTED by version 3", "raise other to 3, DEFAULT by version 3, escalates",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestServerThatLagsResolvesNothing queries a server that does not show yet what an alert is about.
func TestServerThatLagsResolvesNothing(t *testing.T) {
	rule := ruleOf(0, "t")
	alert := openAlert("", alerts.Firing)
	alert.NewestEndedNS, alert.NewestStartNS = watermark-10*second, watermark-11*second
	slower := compiled(new(*rule.Rule))
	slower.FireMode, slower.Threshold, slower.Percentile, slower.DurationMS, slower.MinVolume = rules.DurationInWindow, 0, 50, 900, 1
	slow := alert
	slow.LeastNS = 900e6
	annotated, raised, armed := compiled(new(*rule.Rule)), compiled(new(*rule.Rule)), compiled(new(*rule.Rule))
	annotated.Version, annotated.Note = 2, "see the runbook"
	raised.Version, raised.Threshold = 2, 50
	armed.Version, armed.ArmedSinceNS = 2, watermark-9*second
	held := func(o *evaluator.OpenAlert) { o.State, o.Held = alerts.Resolved, true }
	sees := func(ended, start int64) []counting.Group {
		return []counting.Group{{Observed: 1, NewestEndedNS: watermark - ended, NewestStartNS: watermark - start}}
	}
	with := func(change func(*evaluator.OpenAlert)) evaluator.OpenAlert {
		changed := alert
		change(&changed)
		return changed
	}
	for name, c := range map[string]struct {
		groups []counting.Group
		open   evaluator.OpenAlert
		want   []string
		// edited is the rule after an edit.
		edited *evaluator.WindowRule
	}{
		"sees nothing":              {[]counting.Group{}, alert, nil, nil},
		"sees an older one":         {sees(11*second, 12*second), alert, nil, nil},
		"sees one that began first": {sees(10*second, 12*second), alert, nil, nil},
		"sees it":                   {sees(10*second, 11*second), alert, []string{"clear  1"}, nil},
		"sees a newer one":          {sees(9*second, 30*second), alert, []string{"clear  1"}, nil},
		"it has left the window":    {[]counting.Group{}, with(func(o *evaluator.OpenAlert) { o.NewestEndedNS = watermark - 60*second - 1 }), []string{"clear  0"}, nil},
		"it began too early":        {[]counting.Group{}, with(func(o *evaluator.OpenAlert) { o.NewestStartNS = counting.StartFromNS(60, watermark) - 1 }), []string{"clear  0"}, nil},
		"pending":                   {[]counting.Group{}, with(func(o *evaluator.OpenAlert) { o.State = alerts.Pending }), nil, nil},
		"held":                      {[]counting.Group{}, with(held), nil, nil},
		"the note was edited":       {[]counting.Group{}, alert, nil, &annotated},
		"the threshold was edited":  {[]counting.Group{}, alert, nil, &raised},
		"the scope was edited":      {[]counting.Group{}, with(held), []string{"release  0"}, &armed},
		"a duration":                {[]counting.Group{}, slow, nil, &slower},
		"a duration that was 800":   {[]counting.Group{}, with(func(o *evaluator.OpenAlert) { o.LeastNS = 800e6 }), []string{"clear  0"}, &slower},
		"a duration that was 1000":  {[]counting.Group{}, with(func(o *evaluator.OpenAlert) { o.LeastNS = 1000e6 }), nil, &slower},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edited == nil {
				c.edited = &rule
			}
			if diff := cmp.Diff(c.want, steps(t, &source{groups: c.groups}, *c.edited, c.open)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEditKeepsWhatFires edits the condition half a window ago.
func TestEditKeepsWhatFires(t *testing.T) {
	for name, c := range map[string]struct {
		armed time.Duration
		want  []string
	}{
		"half a window ago":  {30 * time.Second, nil},
		"a window ago, less": {time.Minute - time.Nanosecond, nil},
		"a window ago":       {time.Minute, []string{"clear  0"}},
	} {
		for filter, plainly := range map[string]bool{"conditions": false, "tallies": true} {
			rule := ruleOf(0, "default")
			rule.ArmedSinceNS = watermark - c.armed.Nanoseconds()
			s := &source{groups: []counting.Group{}}
			list := []evaluator.WindowRule{rule}
			if plainly {
				// Seven others of which the tally counts none: none of them queries for failures.
				for i := 1; i < 8; i++ {
					list = append(list, ruleOf(i, "default"))
				}
				list[0].Scope.Applications = []string{"elsewhere"}
				plain(list)
			}
			r := request(list)
			r.Open = []evaluator.OpenAlert{openAlert("", alerts.Firing)}
			r.Open[0].RuleID = rule.ID
			_, outcome := evaluate(t, newEvaluator(s), r)
			var got []string
			for _, c := range outcome.Changes {
				got = append(got, fmt.Sprintf("%v %s %d", c.Step, c.Instance.Count.Group, c.Instance.Count.Observed))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(outcome.Evaluated) != len(list) {
				t.Errorf("edited %s, by %s: %d evaluated\n%s", name, filter, len(outcome.Evaluated), diff)
			}
		}
	}
}

// TestTallyDecidesOnPartialWindowsBelow has rules that were armed within their windows: the tally
// decides on those below the threshold, and the others are counted exactly.
func TestTallyDecidesOnPartialWindowsBelow(t *testing.T) {
	list := plain(some(10))
	for i := range list {
		list[i].ArmedSinceNS = watermark - 10*second
	}
	s := &source{}
	got, _ := evaluate(t, newEvaluator(s), request(list))
	if diff := cmp.Diff(upTo(10, ""), got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"000"}}, s.counts); diff != "" {
		t.Errorf("counted by their conditions:\n%s", diff)
	}
}

// TestIDsAreDerived evaluates the same twice.
func TestIDsAreDerived(t *testing.T) {
	r := request(some(1))
	_, first := evaluate(t, newEvaluator(&source{}), r)
	_, again := evaluate(t, newEvaluator(&source{}), r)
	if diff := cmp.Diff(first.Changes, again.Changes); diff != "" {
		t.Error(diff)
	}
	alert := first.Changes[0].Instance.ID
	if n := first.Changes[0].Notifications[0]; n.ID != notify.ID(alert, uuid.UUID{1}, notify.ReasonFired, 0) {
		t.Errorf("%+v", n)
	}
	reminding := ruleOf(0, "default")
	reminding.ReNotifyMinutes = 1
	r = request([]evaluator.WindowRule{reminding})
	r.Open = []evaluator.OpenAlert{openAlert("", alerts.Firing)}
	r.Open[0].RuleID, r.Open[0].Reminders = reminding.ID, 3
	_, reminded := evaluate(t, newEvaluator(&source{}), r)
	if n := reminded.Changes[0].Notifications[0]; n.ID != notify.ID(r.Open[0].ID, uuid.UUID{1}, notify.ReasonReminder, 3) {
		t.Errorf("%+v", n)
	}
}

// TestMoreGroupsThanAlerts has more groups that reach the threshold than may have alerts. An alert
// that ends makes room for another one, and one that stays open does not.
func TestMoreGroupsThanAlerts(t *testing.T) {
	rule := ruleOf(0, "default")
	rule.GroupBy, rule.ArmedSinceNS = rules.GroupByRoute, watermark-30*second
	s := &source{}
	for i := range 1001 {
		s.groups = append(s.groups, counting.Group{Group: fmt.Sprint(i), Observed: int64(2000 - i)})
	}
	ends, stays := openAlert("ends", alerts.Pending), openAlert("stays", alerts.Firing)
	for name, c := range map[string]struct {
		open    []evaluator.OpenAlert
		below   bool
		changes int
		first   alerts.Step
		problem bool
	}{
		"one ends":                   {[]evaluator.OpenAlert{ends}, false, 1001, alerts.Drop, true},
		"one stays":                  {[]evaluator.OpenAlert{stays}, false, 999, alerts.Raise, true},
		"one of the others":          {[]evaluator.OpenAlert{ends}, true, 1001, alerts.Drop, false},
		"one stays and one is below": {[]evaluator.OpenAlert{stays}, true, 999, alerts.Raise, true},
	} {
		t.Run(name, func(t *testing.T) {
			s.groups[1000].Observed = 1000
			if c.below {
				s.groups[1000].Observed = 4
			}
			r := request([]evaluator.WindowRule{rule})
			r.Open = c.open
			r.Open[0].RuleID = rule.ID
			_, outcome := evaluate(t, newEvaluator(s), r)
			if len(outcome.Changes) != c.changes || outcome.Changes[0].Step != c.first || strings.Contains(outcome.Problems[rule.ID], "1000 groups have an alert") != c.problem {
				t.Errorf("%d changes, the first a %v, %v", len(outcome.Changes), outcome.Changes[0].Step, outcome.Problems)
			}
		})
	}
}

// TestServerThatLagsResolvesNothingAmongManyGroups has a thousand other groups.
func TestServerThatLagsResolvesNothingAmongManyGroups(t *testing.T) {
	rule := ruleOf(0, "default")
	rule.GroupBy = rules.GroupByRoute
	s := &source{groups: []counting.Group{{Group: "lags", Observed: 2, NewestEndedNS: watermark - 20*second, NewestStartNS: watermark - 21*second}}}
	for i := range 1001 {
		s.groups = append(s.groups, counting.Group{Group: fmt.Sprint(i), Observed: 4})
	}
	alert := openAlert("lags", alerts.Firing)
	alert.NewestEndedNS, alert.NewestStartNS = watermark-10*second, watermark-11*second
	if diff := cmp.Diff([]string(nil), steps(t, s, rule, alert)); diff != "" {
		t.Error(diff)
	}
}
