package counting_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tocsin/evaluator/window/counting"
	"tocsin/internal/fault"
	"tocsin/internal/windowtest"
	"tocsin/rules"
)

// TestQueriesDoNotGrowWithRules has 2,000 rules of 500 tenants.
func TestQueriesDoNotGrowWithRules(t *testing.T) {
	var list []counting.Compiled
	for i := range 2000 {
		rule := windowtest.RuleOf(i, fmt.Sprintf("tenant-%03d", i%500))
		rule.Scope.Applications = []string{fmt.Sprintf("%03d", i/500)}
		rule.WindowSeconds = []int{30, 60, 300}[i%3]
		list = append(list, rule)
	}
	s := &source{}
	got := count(t.Context(), newCounter(s), windowtest.Request(windowtest.Plain(list)))
	if len(got.names) != 2000 || len(s.tallies) != 2 || len(s.counts) != 0 {
		t.Errorf("%d rules counted by %d tallies and %d counts", len(got.names), len(s.tallies), len(s.counts))
	}
	// Of each tenant the rule for the application that fails.
	if len(got.reached) != 500 || len(s.newest) > 12 || slices.Max(s.newest) > 50 {
		t.Errorf("%d rules with a group, the newest exchanges of %v", len(got.reached), s.newest)
	}
	for _, w := range got.reached {
		newest := []rules.Exchange{{ExecutionID: "newest of ", StartTimeNS: watermark - 2}}
		want := []counting.Group{{Observed: 5, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2}}
		if diff := cmp.Diff(want, w.Groups) + cmp.Diff(newest, got.newest[w.ID]); diff != "" {
			t.Fatal(diff)
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
func severalSets() (list []counting.Compiled) {
	for i := range 40 {
		rule := windowtest.RuleOf(i, "tenant")
		rule.WindowSeconds = []int{60, 300}[i%2]
		if i%4 < 2 {
			rule.FireMode, rule.Threshold, rule.Percentile, rule.DurationMS, rule.MinVolume = rules.DurationInWindow, 0, 95, 1, 5
		}
		list = append(list, rule)
	}
	return windowtest.Plain(list)
}

// panicky is a source whose tallies panic.
type panicky struct{ *source }

func (panicky) Tally(context.Context, counting.TallyQuery) (counting.Tallies, error) { panic("poison") }

// TestTalliesAreAskedAtOnce has four tallies, each of which waits for the others.
func TestTalliesAreAskedAtOnce(t *testing.T) {
	s := &together{&source{}, make(chan struct{}, 4), make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := count(ctx, newCounter(s), windowtest.Request(severalSets()))
	if ctx.Err() != nil || len(got.names) != 40 || len(s.tallies) != 4 {
		t.Errorf("%d rules counted by %d tallies, %v", len(got.names), len(s.tallies), ctx.Err())
	}
}

// TestTallyThatPanicsFailsThePass checks that the panic reaches the pass, which takes it for a
// failure, and does not end the process.
func TestTallyThatPanicsFailsThePass(t *testing.T) {
	err := fault.Guard(func() error {
		count(t.Context(), newCounter(panicky{&source{}}), windowtest.Request(severalSets()))
		return nil
	})
	if !fault.Panicked(err) || !strings.Contains(err.Error(), "poison") || !strings.Contains(fault.Stack(err).String(), "panicky.Tally") {
		t.Errorf("it returned %v", err)
	}
}

// TestQueriesDoNotGrowWithKindsOfRules mixes 2,000 rules of three modes with two classes of
// windows: one tally for each set of statuses and class, and one for the durations of each.
func TestQueriesDoNotGrowWithKindsOfRules(t *testing.T) {
	var list []counting.Compiled
	for i := range 2000 {
		rule := windowtest.RuleOf(i, fmt.Sprintf("tenant-%03d", i%500))
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
	got := count(t.Context(), newCounter(s), windowtest.Request(windowtest.Plain(list)))
	if len(got.names) != 2000 || len(s.tallies) != 6 || len(s.counts) != 0 || len(got.Failed) > 0 {
		t.Errorf("%d rules counted by %d tallies and %d counts, %v", len(got.names), len(s.tallies), len(s.counts), got.Failed)
	}
	reached := map[rules.FireMode]int{}
	for _, w := range got.reached {
		reached[w.FireMode]++
	}
	if reached[rules.CountInWindow] < 100 || reached[rules.RatioInWindow] < 100 || reached[rules.DurationInWindow] > 0 {
		t.Errorf("%v reach their threshold; nothing lasted for a millisecond", reached)
	}
}

// TestQueriesDoNotGrowWithAttributes has 2,000 rules, most of which group by one of eight
// attributes: these have a tally of their own, and attributes of only a few rules are counted by
// conditions.
func TestQueriesDoNotGrowWithAttributes(t *testing.T) {
	var list []counting.Compiled
	for i := range 2000 {
		rule := windowtest.RuleOf(i, fmt.Sprintf("tenant-%03d", i%500))
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
	got := count(t.Context(), newCounter(s), windowtest.Request(windowtest.Plain(list)))
	if len(got.names) != 2000 || len(s.tallies) != 4 || len(s.counts) != 1 || len(got.Failed) > 0 {
		t.Errorf("%d rules counted by %d tallies and %d counts, %v", len(got.names), len(s.tallies), len(s.counts), got.Failed)
	}
	if len(got.reached) != 1990 {
		t.Errorf("%d rules with a group", len(got.reached))
	}
	for _, w := range got.reached {
		if len(w.Groups) != 1 || w.Groups[0].Group != w.GroupByAttribute || w.Groups[0].Observed != 5 {
			t.Fatalf("%+v", w.Groups)
		}
	}
}

// TestWideTallyIsNotAskedAgain has one tenant whose rules group by an attribute with almost
// distinct values: only its neighbours in the last division are counted by conditions with them,
// and no later pass makes that tally.
func TestWideTallyIsNotAskedAgain(t *testing.T) {
	var list []counting.Compiled
	for i := range 160 {
		rule := windowtest.RuleOf(i, fmt.Sprintf("tenant-%02d", i/8))
		rule.GroupBy, rule.GroupByAttribute = rules.GroupByAttribute, "order"
		list = append(list, rule)
	}
	s := &source{wide: "tenant-07"}
	c := newCounter(s)
	got := count(t.Context(), c, windowtest.Request(windowtest.Plain(list)))
	if len(got.names) != 160 || len(s.counts) != 1 || !slices.Contains(s.counts[0], "056") || len(s.counts[0]) > 30 {
		t.Errorf("%d rules counted, counts of %v", len(got.names), s.counts)
	}
	s.tallies = nil
	got = count(t.Context(), c, windowtest.Request(list))
	if len(got.names) != 160 || len(s.tallies) != 1 || slices.Contains(s.tallies[0].Tenants.Names, "tenant-07") {
		t.Errorf("%d rules counted by %d tallies", len(got.names), len(s.tallies))
	}
	later := windowtest.Request(list)
	later.Now = later.Now.Add(11 * time.Minute)
	s.tallies = nil
	if count(t.Context(), c, later); len(s.tallies) < 2 {
		t.Error("it is never tried again")
	}
}

// TestManyRulesWithManyGroups has twelve rules group by an attribute with 30,000 values: some of
// them are counted by their conditions, so that the sums of all of them are never in memory, and
// the next passes do not try again.
func TestManyRulesWithManyGroups(t *testing.T) {
	var list []counting.Compiled
	for i := range 12 {
		rule := windowtest.RuleOf(i, "tenant")
		rule.Scope.Applications = []string{"000"}
		rule.GroupBy, rule.GroupByAttribute = rules.GroupByAttribute, "order"
		list = append(list, rule)
	}
	s := &source{values: 30_000, groups: []counting.Group{}}
	c := newCounter(s)
	got := count(t.Context(), c, windowtest.Request(windowtest.Plain(list)))
	counted := 0
	for _, names := range s.counts {
		counted += len(names)
	}
	groups := 0
	for _, w := range got.reached {
		groups += len(w.Groups)
	}
	if len(got.names) != 12 || counted < 3 || counted == 12 || groups != (12-counted)*(counting.MaxGroups+1) {
		t.Errorf("%d rules counted, %d of them by their conditions, %d groups", len(got.names), counted, groups)
	}
	s.counts = nil
	count(t.Context(), c, windowtest.Request(windowtest.Plain(list)))
	again := 0
	for _, names := range s.counts {
		again += len(names)
	}
	if again < counted {
		t.Errorf("%d rules counted by their conditions, %d before", again, counted)
	}
}

// TestTallyThatIsTooLargeIsCutByTenants has tallies that fail for more than ten tenants.
func TestTallyThatIsTooLargeIsCutByTenants(t *testing.T) {
	var list []counting.Compiled
	for i := range 100 {
		list = append(list, windowtest.RuleOf(i, fmt.Sprintf("tenant-%02d", i/2)))
	}
	s := &source{kindsMost: 10, inexact: []string{"tenant-07"}}
	got := count(t.Context(), newCounter(s), windowtest.Request(windowtest.Plain(list)))
	if diff := cmp.Diff(windowtest.UpTo(100, ""), got.names); diff != "" || len(got.Failed) > 0 {
		t.Errorf("%v\n%s", got.Failed, diff)
	}
	if diff := cmp.Diff([][]string{{"014", "015"}}, s.counts); diff != "" {
		t.Errorf("of the tenant whose tally is not exact:\n%s", diff)
	}
}

// TestTallyDecidesOnPartialWindowsBelow has rules that were armed within their windows: the tally
// decides on those below the threshold, and the others are counted exactly.
func TestTallyDecidesOnPartialWindowsBelow(t *testing.T) {
	list := windowtest.Plain(windowtest.Some(10))
	for i := range list {
		list[i].ArmedSinceNS = watermark - 10*second
	}
	s := &source{}
	got := count(t.Context(), newCounter(s), windowtest.Request(list))
	if diff := cmp.Diff(windowtest.UpTo(10, ""), got.names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"000"}}, s.counts); diff != "" {
		t.Errorf("counted by their conditions:\n%s", diff)
	}
}
