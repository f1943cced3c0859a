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

// own reports whether a scan is on behalf of rules that are behind.
func own(q *source.Scan) bool { return q != nil && q.EndedSinceNS > 0 }

// Two rules read together what the source cannot read. Both wait, and nobody asks for one of them again at once.
func TestRulesThatReadTogetherWaitTogether(t *testing.T) {
	s := newScene(t, time.Minute)
	s.rule(uuid.UUID{15: 2}, "tenant-0", 3*time.Hour)
	s.rule(uuid.UUID{15: 3}, "tenant-0", 3*time.Hour)
	asked := 0
	s.scans = func(q source.Scan) error {
		if !own(&q) {
			return nil
		}
		asked++
		return errBroken
	}
	for range 5 {
		s.tick()
	}
	if asked != 1 {
		t.Errorf("asked %d times within the first pause", asked)
	}
}

// The database refuses the alerts of a tenant that takes more than its share. Nothing of it is deferred: its only
// rule is left out.
func TestTenantWithoutRulesIsNotDeferred(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-2", time.Hour)
	s.e = s.start("a", evaluator.Options{PageSize: 10})
	s.tick()
	s.refused = theRule()
	s.scans = func(q source.Scan) error {
		if slices.Contains(q.Tenants.Names, "tenant-0") {
			s.now += second / 5
		}
		return nil
	}
	for i := range 200 {
		s.fail("tenant-0", fmt.Sprint(i), time.Duration(200-i)*time.Millisecond)
	}
	s.fail("tenant-2", "other", 0)
	if result := s.tick(); result.Deferred != 0 || result.Failed != 1 || !s.has(uuid.UUID{15: 2}, "other") {
		t.Errorf("%+v", result)
	}
}

// The server that showed a change in an older second cannot read it, and another one, which lags, answers in between.
// That changes nothing about the pauses: they grow until the server itself has answered.
func TestAnswerOfAnotherServerEndsNoPause(t *testing.T) {
	s := newScene(t, time.Hour)
	s.fail("tenant-0", "late", 10*time.Minute)
	s.rows[0].visible[1] = s.now + 3600*second
	server, asked := 0, []int64(nil)
	s.scans = func(q source.Scan) error {
		if q.BeforeNS > s.now-120*second {
			return nil // what is recent
		}
		if asked = append(asked, s.now); server == 0 {
			return errBroken
		}
		return nil
	}
	s.pick = func() int {
		if s.scanning != nil {
			return server
		}
		return 0
	}
	// fails makes passes until the server was asked n times more, and returns the last pause.
	fails := func(n int) time.Duration {
		for end := len(asked) + n; len(asked) < end; {
			s.tick()
		}
		return time.Duration(asked[len(asked)-1] - asked[len(asked)-2])
	}
	if pause := fails(3); pause != 10*time.Second {
		t.Fatalf("the second pause is %v", pause)
	}
	server = 1
	for n := len(asked); len(asked) == n; {
		s.tick()
	}
	server = 0
	if fails(1); len(s.state.alerts) > 0 {
		t.Fatal("the other server does not lag")
	}
	if pause := fails(1); pause != 40*time.Second {
		t.Errorf("after an answer of another server the pause is %v", pause)
	}
	s.scans = nil
	for range 120 {
		s.tick()
	}
	s.wants(1)
}
