package evaluator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Servers whose clocks differ by minutes are asked strictly in turn, and the later ones lag as well. Each pass observes one of them,
// and no exchange is missed.
func TestServersWhoseClocksDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		behind []time.Duration
		lag    int64
	}{
		"one is 150 s behind":          {[]time.Duration{0, 150 * time.Second}, 0},
		"one is 150 s behind and lags": {[]time.Duration{0, 150 * time.Second}, 20},
		"one is 61 s behind":           {[]time.Duration{0, 61 * time.Second}, 0},
		"one is an hour behind":        {[]time.Duration{0, time.Hour}, 0},
		"three":                        {[]time.Duration{0, 150 * time.Second, 400 * time.Second}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, time.Hour)
			s.behind = c.behind
			s.pick = func() int { return s.questions % len(c.behind) }
			const many = 200
			for i := range many {
				s.fail("tenant-0", fmt.Sprint("x", i), time.Duration(i%4)*time.Second)
				visible := &s.rows[i].visible
				*visible = append(*visible, s.now)
				for n := range *visible {
					(*visible)[n] = s.now + int64(n)*c.lag*second
				}
				s.tick()
			}
			for range 600 {
				s.tick()
			}
			s.wants(many)
		})
	}
}

// Each server is behind the one before. The pass fails with the remedy, and the next one goes on by the last of them.
func TestServersEachBehindTheOneBefore(t *testing.T) {
	s := newScene(t, time.Hour)
	s.behind = []time.Duration{0, 2 * time.Minute, 4 * time.Minute, 6 * time.Minute}
	next := 0
	s.pick = func() int { next = min(next+1, 3); return next }
	if _, err := s.e.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "the last by 2m0s: synchronize them") {
		t.Fatal(err)
	}
	s.fail("tenant-0", "x", 10*time.Second)
	s.rows[0].visible = []int64{0, 0, 0, 0}
	for range 6 * 60 {
		s.tick()
	}
	s.wants(1)
}
