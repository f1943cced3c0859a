package evaluator_test

import (
	"testing"
	"time"

	"tocsin/evaluator/source"
)

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

