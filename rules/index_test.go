package rules_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tocsin/rules"
)

// TestIndexAgreesWithEveryJudge compares the index with a plain loop: every judge that matches an
// exchange is a candidate.
func TestIndexAgreesWithEveryJudge(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "ab", "abc", "", "a|b", "aa", "\xff"})
	pattern := rapid.SampledFrom([]string{"a", "b", "ab", "abc", "a*", "*b", "*", "a*c", "a|b", "", "**", "a*a", "*a*a*", "\xff*"})
	patterns := rapid.SliceOfN(pattern, 0, 3)
	without := rapid.OneOf(rapid.Just([]string(nil)), rapid.Just([]string(nil)), rapid.SliceOfN(pattern, 1, 2))
	statuses := rapid.SampledFrom([][]rules.Status{nil, {rules.Completed}, {rules.Failed, rules.Completed}})
	least := rapid.SampledFrom([]*int64{nil, new(int64), new(int64(1)), new(int64(2))})
	rapid.Check(t, func(t *rapid.T) {
		scope := func(label string) rules.Scope {
			return rules.Scope{
				Environments: patterns.Draw(t, label+" environments"),
				Applications: patterns.Draw(t, label+" applications"),
				Routes:       patterns.Draw(t, label+" routes"),

				NotEnvironments: without.Draw(t, label+" not environments"),
				NotApplications: without.Draw(t, label+" not applications"),
				NotRoutes:       without.Draw(t, label+" not routes"),
			}
		}
		var judges []*rules.Judge
		var conditions []*rules.Matcher
		for range rapid.IntRange(0, 12).Draw(t, "judges") {
			r := rules.Rule{ArmedSinceNS: rapid.Int64Range(0, 4).Draw(t, "armed")}
			r.Scope, r.Filter = scope("present"), rules.Filter{Statuses: statuses.Draw(t, "statuses"), MinDurationMS: least.Draw(t, "least")}
			if rapid.Bool().Draw(t, "edited") {
				r.Former = []rules.Era{{
					Scope: scope("former"), Filter: rules.Filter{Statuses: statuses.Draw(t, "former statuses"), MinDurationMS: least.Draw(t, "former least")}, ToNS: r.ArmedSinceNS,
				}}
			}
			j, err := rules.NewJudge(&r)
			if err != nil {
				t.Fatal(err)
			}
			present, err := rules.Compile(r.Scope, r.Filter)
			if err != nil {
				t.Fatal(err)
			}
			judges, conditions = append(judges, j), append(conditions, present)
		}
		index, union := rules.NewIndex(judges), rules.UnionOf(judges)
		for range rapid.IntRange(1, 10).Draw(t, "exchanges") {
			e := rules.Exchange{
				StartTimeNS: rapid.Int64Range(0, 5).Draw(t, "start"), Environment: name.Draw(t, "environment"),
				Application: name.Draw(t, "application"), Route: name.Draw(t, "route"),
				Status:     rapid.SampledFrom([]rules.Status{rules.Failed, rules.Completed, rules.Running}).Draw(t, "status"),
				DurationNS: rapid.Int64Range(0, 4).Draw(t, "duration") * 500_000,
			}
			candidates := index.Candidates(&e)
			if !slices.IsSorted(candidates) || len(slices.Compact(slices.Clone(candidates))) != len(candidates) {
				t.Fatalf("candidates %v are not ascending", candidates)
			}
			for i, j := range judges {
				if present := conditions[i]; (len(present.Unmet(&e)) == 0) != present.Match(&e) {
					t.Fatalf("condition %d matches %+v: %v, and %q are not met", i, e, present.Match(&e), present.Unmet(&e))
				}
				if j.Wants(&e) && !slices.Contains(candidates, int32(i)) {
					t.Fatalf("judge %d wants %+v and is no candidate", i, e)
				}
				if j.Wants(&e) && !reads(&union, &e) {
					t.Fatalf("judge %d wants %+v, which the union %+v leaves out", i, e, union)
				}
				if alone := rules.UnionOf(judges[i : i+1]); j.Wants(&e) && !reads(&alone, &e) {
					t.Fatalf("judge %d wants %+v, which its union %+v leaves out", i, e, alone)
				}
			}
		}
	})
}

// reads reports whether who reads a union reads an exchange.
func reads(u *rules.Union, e *rules.Exchange) bool {
	return slices.Contains(u.Statuses, e.Status) && (len(u.Applications) == 0 || slices.Contains(u.Applications, e.Application)) &&
		(e.Status != rules.Completed || e.DurationNS >= u.CompletedLeastNS) && e.EndedNS() >= u.EndedSinceNS
}

func TestApplicationsAreThoseOfAllConditions(t *testing.T) {
	of := func(lists ...[]string) []string {
		t.Helper()
		r := rules.Rule{}
		r.Scope.Applications = lists[0]
		for _, list := range lists[1:] {
			r.Former = append(r.Former, rules.Era{Scope: rules.Scope{Applications: list}})
		}
		j, err := rules.NewJudge(&r)
		if err != nil {
			t.Fatal(err)
		}
		return rules.UnionOf([]*rules.Judge{j}).Applications
	}
	for _, c := range []struct {
		lists [][]string
		want  []string
	}{
		{lists: [][]string{{"b", "a", "b"}}, want: []string{"a", "b"}},
		{lists: [][]string{{"b"}, {"c"}, {"a", "b"}}, want: []string{"a", "b", "c"}},
		{lists: [][]string{nil}},
		{lists: [][]string{{"a", "b*"}}},
		{lists: [][]string{{"a"}, {"*"}}},
		{lists: [][]string{{"a"}, nil}},
		{lists: [][]string{nil, {"a"}}},
	} {
		if got := of(c.lists...); !slices.Equal(got, c.want) {
			t.Errorf("of %q: %q, want %q", c.lists, got, c.want)
		}
	}
}

// TestIndexLeavesOutWhoExcludes checks that an exclusion makes evaluation unnecessary.
func TestIndexLeavesOutWhoExcludes(t *testing.T) {
	var judges []*rules.Judge
	for _, scope := range []rules.Scope{
		{}, {NotApplications: []string{"a*"}}, {NotRoutes: []string{"r"}}, {NotEnvironments: []string{"e"}}, {Applications: []string{"ab"}, NotRoutes: []string{"other"}},
	} {
		j, err := rules.NewJudge(&rules.Rule{Definition: rules.Definition{Scope: scope}})
		if err != nil {
			t.Fatal(err)
		}
		judges = append(judges, j)
	}
	e := rules.Exchange{Application: "ab", Route: "r", Environment: "e", Status: rules.Failed}
	if got := rules.NewIndex(judges).Candidates(&e); !slices.Equal(got, []int32{0, 4}) {
		t.Errorf("candidates %v, want 0 and 4", got)
	}
}

// TestIndexLeavesOutWhoLooksElsewhere checks that there are few candidates.
func TestIndexLeavesOutWhoLooksElsewhere(t *testing.T) {
	var judges []*rules.Judge
	for i := range 1000 {
		r := rules.Rule{}
		r.Scope.Applications = []string{fmt.Sprintf("app-%d*", i)}
		j, err := rules.NewJudge(&r)
		if err != nil {
			t.Fatal(err)
		}
		judges = append(judges, j)
	}
	index := rules.NewIndex(judges)
	for range 2 {
		got := index.Candidates(&rules.Exchange{Application: "app-123", Status: rules.Failed})
		if want := []int32{1, 12, 123}; !slices.Equal(got, want) {
			t.Errorf("candidates %v, want %v", got, want)
		}
	}
	// More places than are remembered change nothing.
	index = rules.NewIndex(judges[:124])
	for i := range 40_000 {
		e := rules.Exchange{Application: fmt.Sprintf("app-123-%d", i), Status: rules.Failed}
		if got := index.Candidates(&e); len(got) != 3 {
			t.Fatalf("candidates %v", got)
		}
	}
}

func BenchmarkCandidates(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			judges := make([]*rules.Judge, n)
			for i := range judges {
				r := rules.Rule{}
				r.Scope.Applications = []string{fmt.Sprintf("app-%d", i%500)}
				r.Scope.Routes = []string{fmt.Sprintf("route-%d", i%7)}
				var err error
				if judges[i], err = rules.NewJudge(&r); err != nil {
					b.Fatal(err)
				}
			}
			index := rules.NewIndex(judges)
			e := rules.Exchange{Application: "app-42", Route: "route-0", Status: rules.Failed}
			for b.Loop() {
				for _, i := range index.Candidates(&e) {
					judges[i].Wants(&e)
				}
			}
		})
	}
}
