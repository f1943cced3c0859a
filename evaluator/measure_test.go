package evaluator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/rules"
)

// results keeps the result of the last pass over each partition.
type results map[int]evaluator.Result

func (r results) Passed(partition int, result evaluator.Result) { r[partition] = result }

func (r results) GaveUp(partition int) { delete(r, partition) }

func (r results) Committed(evaluator.Timing) {}

// A pass that observes and then fails tells how far behind it is as one that succeeds does:
// with figures of zero nobody would see that it fails each time.
func TestFailedPassReportsHowFarBehindItIs(t *testing.T) {
	s := newScene(t, time.Hour)
	s.free("")
	told := results{}
	s.e = s.start("b", evaluator.Options{Observer: told})
	for range 15 {
		s.tick()
	}
	if r := told[0]; r.Lag != 0 || r.Backlog != 0 || !r.Observed || r.Resting {
		t.Fatalf("a pass that is done returned %+v", r)
	}
	// Scans fail, and what is new cannot be evaluated.
	s.mute = true
	const passes = 20
	for i := range passes {
		s.fail("tenant-0", fmt.Sprint(i), 0)
		s.now += second
		if _, err := s.e.Tick(context.Background()); err == nil {
			t.Fatal("the pass did not fail")
		}
		if r := told[0]; !r.Observed || r.Lag != time.Duration(i+1)*time.Second {
			t.Fatalf("after %d s without a commit a pass returned %+v", i+1, r)
		}
	}
	if told[0].Backlog == 0 {
		t.Error("the look-back has not been looked at for long, and there is no backlog")
	}
	s.mute = false
	for range 15 {
		s.tick()
	}
	if r := told[0]; r.Lag != 0 || r.Backlog != 0 {
		t.Errorf("after the repair a pass returned %+v", r)
	}
	s.wants(passes)
	if r := told[1]; !r.Resting || r.Observed {
		t.Errorf("of a partition without rules a pass returned %+v", r)
	}
	s.change(rules.Rule{ID: theRule(), TenantID: "tenant-0", Version: 2, Definition: rules.Definition{FireMode: rules.PerExchange}}, false)
	s.tick()
	if r := told[0]; !r.Resting || r.Observed {
		t.Errorf("after its only rule was disabled a pass returned %+v", r)
	}
}
