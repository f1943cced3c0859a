package evaluator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
)

// A tenant is slow but succeeds, pass after pass: its exchanges alone take longer than an interval, and they come
// before those of another tenant of the partition. What is new of the other one does not wait for them.
// (How the tenant is deferred, TestTenantThatTakesTooMuchIsDeferred says; that other partitions do not wait
// either, TestWorkers.)
func TestSlowTenantDelaysNoOther(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-2", time.Hour)
	s.e = s.start("a", evaluator.Options{PageSize: 10})
	s.tick()
	s.scans = func(q source.Scan) error {
		if slices.Contains(q.Tenants.Names, "tenant-0") {
			s.now += second / 5
		}
		return nil
	}
	const passes, each = 10, 200
	for pass := range passes {
		for i := range each {
			s.fail("tenant-0", fmt.Sprint("slow", pass, "-", i), time.Duration(each-i)*time.Millisecond)
		}
		other := fmt.Sprint("other", pass)
		s.fail("tenant-2", other, 0)
		if result := s.tick(); !s.has(uuid.UUID{15: 2}, other) || result.Deferred != 1 {
			t.Fatalf("pass %d: the other tenant waits, or nothing was deferred: %+v", pass, result)
		}
	}
	for range 200 {
		s.tick()
	}
	s.wants(passes * (each + 1))
}

// The fingerprints of a look-back of seven days time out, whatever part of it is asked about. No rule fails, what
// is new is evaluated by the pass that first sees it, and what is late is found once the source answers.
func TestLookBackThatTimesOutFailsNoRule(t *testing.T) {
	s := newScene(t, 7*24*time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.free("")
	s.e = s.start("b", evaluator.Options{}) // it knows nothing of the look-back
	timeouts := 0
	s.observes = func(q source.ObserveQuery) error {
		if q.ToNS <= 1 {
			return nil // the clock, and what is recent
		}
		timeouts++
		s.now += 15 * second / 4
		return errBroken
	}
	s.fail("tenant-0", "late", 24*time.Hour)
	const passes = 60
	for pass := range passes {
		s.fail("tenant-0", fmt.Sprint("new", pass), 0)
		if result := s.tick(); result.Failed > 0 || len(s.state.alerts) != 2*(pass+1) {
			t.Fatalf("pass %d: %d alerts, %+v", pass, len(s.state.alerts), result)
		}
	}
	for id, r := range s.state.rules {
		if r.problem != "" || s.state.backfills[id].Failing {
			t.Errorf("%v fails: %q", id, r.problem)
		}
	}
	if timeouts < passes/2 {
		t.Errorf("asked %d times about the look-back", timeouts)
	}
	s.calm()
	s.observes = nil
	for range 120 {
		s.tick()
	}
	s.wants(2*passes + 1) // the second rule looks back an hour
}

// A tenant is deferred up to a watermark, and again in the next pass, whose watermark is earlier, because a server
// answers whose clock is seconds behind. What the first pass deferred after that watermark is evaluated all the same.
func TestTenantThatIsDeferredAgainUpToAnEarlierWatermark(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-2", time.Hour)
	s.e = s.start("a", evaluator.Options{PageSize: 10})
	for range 10 {
		s.tick()
	}
	s.scans = func(q source.Scan) error {
		if slices.Contains(q.Tenants.Names, "tenant-0") {
			s.now += second / 5
		}
		return nil
	}
	const each = 1000
	flood := func(name string, ago time.Duration) {
		for i := range each {
			s.fail("tenant-0", fmt.Sprint(name, i), ago+time.Duration(each-i)*3*time.Millisecond)
			s.rows[len(s.rows)-1].visible = []int64{0, 0} // by the clock that is behind, too
		}
	}
	flood("first", 0)
	began := s.now
	if result := s.tick(); result.Deferred != 1 || len(s.state.backfills) != 1 {
		t.Fatalf("the first pass deferred nothing: %+v", result)
	}
	s.now = began - 4*second
	flood("second", time.Second)
	if result := s.tick(); result.Deferred != 1 {
		t.Fatalf("the second pass deferred nothing: %+v", result)
	}
	s.scans = nil
	for range 200 {
		s.tick()
	}
	s.wants(2 * each)
}

// Each pass takes six seconds for what is new, and reaches the present by that. It still looks at all of a look-back
// of seven days, and not at the last hour alone.
func TestSlowPassesLookAtAllOfTheLookBack(t *testing.T) {
	s := newScene(t, 7*24*time.Hour)
	for range 20 {
		s.tick()
	}
	s.scans = func(q source.Scan) error {
		if s.now-q.BeforeNS < 60*second {
			s.now += 6 * second
		}
		return nil
	}
	s.fail("tenant-0", "late", 24*time.Hour)
	const passes = 2 * 7 * 24 // every other one looks at an hour before the last one
	for pass := range passes {
		s.fail("tenant-0", fmt.Sprint("new", pass), 0)
		if s.tick(); s.has(theRule(), "late") {
			return
		}
	}
	t.Errorf("%d passes have not found it", passes)
}

// What is new and a comparison of the look-back leave each pass less time than a rule needs that reads for itself. It
// has its turn before the comparison, and catches up.
func TestRuleThatIsBehindHasItsTurnInSlowPasses(t *testing.T) {
	s := newScene(t, time.Hour)
	for range 10 {
		s.tick()
	}
	const lasts = 10 * second // a pass has two thirds of a lease
	began := int64(0)
	takes := func(ns int64) error {
		if s.now+ns > began+lasts {
			s.now = began + lasts
			return errBroken
		}
		s.now += ns
		return nil
	}
	s.observes = func(q source.ObserveQuery) error {
		if q.ToNS <= 1 {
			began = s.now
			return nil
		}
		return takes(7 * second / 2)
	}
	s.scans = func(q source.Scan) error {
		if own(&q) {
			return takes(3 * second)
		}
		return takes(18 * second / 5)
	}
	const passes = 100
	for pass := range passes {
		if pass == 5 {
			s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
		}
		s.fail("tenant-0", fmt.Sprint("new", pass), 0)
		s.tick()
	}
	if len(s.state.backfills) > 0 {
		t.Errorf("after %d passes, the rule is still at %v", passes, s.state.backfills)
	}
}
