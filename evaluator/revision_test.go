package evaluator_test

import (
	"context"
	"testing"
	"time"

	"tocsin/evaluator"
)

// A failover takes the alert of a replica away while another one holds the partition, which
// commits as often as was taken back. The former one must not take that for its own revision.
func TestRevisionOfAnotherHolder(t *testing.T) {
	s := newScene(t, time.Hour)
	other := s.start("b", evaluator.Options{})
	s.tick()
	s.fail("tenant-0", "old", 10*time.Minute)
	for len(s.state.alerts) == 0 {
		s.tick()
	}
	revision := s.state.checkpoints[0].Revision
	s.failover(1)
	s.wants(0)
	s.free("")
	s.committing = func(b evaluator.Batch) error {
		if b.Revision+1 > revision {
			return errLost
		}
		return nil
	}
	s.now += second
	_, _ = other.Tick(context.Background())
	if now := s.state.checkpoints[0].Revision; now != revision {
		t.Fatalf("the other one is at revision %d, want %d", now, revision)
	}
	s.wants(0)
	s.committing = nil
	s.free("")
	for range 75 {
		s.tick()
	}
	s.wants(1)
}

// givenUp counts how often each partition was given up.
type givenUp map[int]int

func (givenUp) Passed(int, evaluator.Result) {}
func (g givenUp) GaveUp(partition int)       { g[partition]++ }
func (givenUp) Committed(evaluator.Timing)   {}

// What is remembered of a partition that another replica holds now is dropped, once.
func TestPartitionThatGoesIsForgotten(t *testing.T) {
	s := newScene(t, time.Hour)
	s.free("")
	gone := givenUp{}
	s.e = s.start("b", evaluator.Options{Observer: gone})
	s.tick()
	s.free("")
	other := s.start("c", evaluator.Options{})
	if _, err := other.Tick(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.tick()
	}
	if len(gone) != 2 || gone[0] != 1 || gone[1] != 1 {
		t.Errorf("given up: %v", gone)
	}
}
