//go:build !race

package evaluator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
)

// Scenarios of very many passes, one after the other. The race detector sees the same goroutines in all others, and would
// take a minute over these.

// A rule that looks back further than before reaches as far while anything else is left
// to evaluate.
func TestLongerLookBackDuringABacklog(t *testing.T) {
	s := newScene(t, time.Hour)
	for range 70 {
		s.tick()
	}
	s.deaf = true
	for range 70 {
		s.tick()
	}
	longer := s.state.rules[theRule()].rule
	longer.LookBackSeconds = 24 * 3600
	s.change(longer, false)
	s.tick()
	s.fail("tenant-0", "far", 24*time.Hour)
	for range 30 * 60 {
		s.tick()
	}
	s.deaf = false
	for range 70 {
		s.tick()
	}
	s.wants(1)
}

// TestSpansWiden states when a rule that is behind reads more at once: if little was found in a short time, by the
// server that the pass has observed.
func TestSpansWiden(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name string
		// each is how many exchanges are in each day, of which a page takes ten.
		each   int
		took   time.Duration
		server int
		most   time.Duration
	}{
		{"less than half a page is found", 4, 0, 0, 2 * day},
		{"half a page is found", 5, 0, 0, day},
		{"it takes less than a quarter of the interval", 4, time.Second/4 - 1, 0, 2 * day},
		{"it takes a quarter of the interval", 4, time.Second / 4, 0, day},
		{"another server answers", 4, 0, 1, day},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{model: newModel(), t: t}
			s.rule(theRule(), "tenant-0", time.Minute)
			s.e = s.start("a", evaluator.Options{PageSize: 1})
			s.tick()
			s.deaf = true // what is late the rule finds, not the partition
			s.rule(uuid.UUID{15: 2}, "tenant-0", 6*day)
			for i := range 6 * c.each {
				s.fail("tenant-0", fmt.Sprint(i), time.Duration(i+1)*day/time.Duration(c.each)-time.Hour)
			}
			most := time.Duration(0)
			s.scans = func(q source.Scan) error {
				if own(&q) {
					s.now += c.took.Nanoseconds()
					most = max(most, time.Duration(q.BeforeNS-q.After.StartTimeNS))
				}
				return nil
			}
			s.pick = func() int {
				if own(s.scanning) {
					return c.server
				}
				return 0
			}
			for range 12 {
				s.tick()
			}
			if most != c.most {
				t.Errorf("%v is read at once, want %v", most, c.most)
			}
		})
	}
}
