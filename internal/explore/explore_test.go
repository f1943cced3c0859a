//go:build !race

package explore_test

import (
	"flag"
	"testing"
	"time"

	"tocsin/internal/explore"
)

//nolint:gochecknoglobals // a flag of the test binary
var wide = flag.Bool("wide", false, "explore larger bounds, too: a minute or two, and some gigabytes")

// explored visits all states of a model, and logs the shortest trace to a violation.
func explored[S comparable](t *testing.T, model explore.Model[S]) explore.Result {
	t.Helper()
	began := time.Now()
	r := explore.Explore(model, 0)
	t.Logf("%+v: %s, %v", model, &r, time.Since(began).Round(time.Millisecond))
	for i, step := range r.Trace {
		t.Logf("%3d %s", i+1, step)
	}
	return r
}

func TestEvaluation(t *testing.T) {
	list := []*explore.Evaluation{
		{Starts: []int{0}, Until: 4, LookBack: 1, Replicas: 2},
		{Starts: []int{0, 0}, Until: 3, LookBack: 1, Replicas: 2},
		{Starts: []int{0, 1}, Until: 3, LookBack: 1, Replicas: 2},
		{Starts: []int{0}, Until: 4, LookBack: 1, Replicas: 1, Failovers: 1},
	}
	if *wide {
		list = append(list,
			&explore.Evaluation{Starts: []int{0}, Until: 3, LookBack: 1, Replicas: 2, Failovers: 1},
			&explore.Evaluation{Starts: []int{0}, Until: 5, LookBack: 2, Replicas: 1, Failovers: 2},
			&explore.Evaluation{Starts: []int{0, 1}, Until: 3, LookBack: 1, Replicas: 1, Failovers: 1},
			&explore.Evaluation{Starts: []int{0, 0, 1}, Until: 3, LookBack: 1, Replicas: 2},
		)
	}
	for _, m := range list {
		if r := explored(t, m); r.Broken != "" || !r.Whole {
			t.Errorf("%s is broken", r.Broken)
		}
	}
}

func TestDelivery(t *testing.T) {
	list := []*explore.Delivery{{Limit: 2, Attempts: 3}, {Limit: 1, Attempts: 2, Failovers: 1}}
	if *wide {
		list = append(list, &explore.Delivery{Limit: 2, Attempts: 3, Failovers: 1})
	}
	for _, m := range list {
		if r := explored(t, m); r.Broken != "" || !r.Whole {
			t.Errorf("%s is broken", r.Broken)
		}
	}
}

// fork is a model one branch of which leads nowhere.
type fork struct{}

func (fork) Initial() int         { return 0 }
func (fork) Canonical(n *int) int { return *n }
func (fork) Broken(*int) string   { return "" }
func (fork) Kept(n *int) bool     { return *n == 1 }

func (fork) Next(n *int, emit func(explore.Step, *int)) {
	if *n > 0 {
		return
	}
	for to := range 3 {
		emit(explore.Step{Name: "go"}, &to)
	}
}

func TestWhatCannotComeAboutIsFound(t *testing.T) {
	if r := explored(t, fork{}); r.Broken != "kept" || len(r.Trace) != 1 || r.States != 3 {
		t.Errorf("found %s", &r)
	}
}
