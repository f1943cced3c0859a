//go:build !race

package simulate_test

import (
	"testing"

	"tocsin/internal/simulate"
)

// TestASeedRepeats checks that a seed gives the same history each time, byte for byte.
func TestASeedRepeats(t *testing.T) {
	for seed := *first; seed < *first+20; seed++ {
		one, two := simulated(t, simulate.Options{Seed: seed}), simulated(t, simulate.Options{Seed: seed})
		for i := range min(len(one.History), len(two.History)) {
			if one.History[i] != two.History[i] {
				t.Fatalf("seed %d, line %d: %s\nand then: %s", seed, i, one.History[i], two.History[i])
			}
		}
		// A look at an empty outbox writes no line: if two timers expire at the same instant, one
		// of them may cause an additional look.
		one.Stats.Calls = two.Stats.Calls
		if len(one.History) != len(two.History) || one.Stats != two.Stats {
			t.Fatalf("seed %d: %d lines, then %d; %+v, then %+v", seed, len(one.History), len(two.History), one.Stats, two.Stats)
		}
	}
}
