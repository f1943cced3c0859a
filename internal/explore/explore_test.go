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

// explored goes through all states of a model, and prints the shortest way to what is broken.
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

// TestGuards takes away one guard after the other, and holds that a promise breaks.
func TestGuards(t *testing.T) {
	for _, m := range explore.EvaluationGuards() {
		if r := explored(t, m); r.Broken == "" {
			t.Errorf("without %s nothing breaks", m.Without)
		}
	}
	for _, m := range explore.DeliveryGuards() {
		if r := explored(t, m); r.Broken == "" {
			t.Errorf("without %s nothing breaks", m.Without)
		}
	}
}
