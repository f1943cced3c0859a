//go:build !race

package simulate_test

import (
	"path/filepath"
	"testing"

	"tocsin/internal/simulate"
	"tocsin/internal/simulate/model"
)

// seedsForGuard is within how many seeds the absence of a guard is noticed.
const seedsForGuard = 1000

// TestGuardsOfPostgres takes one guard after the other away from the model of Postgres.
func TestGuardsOfPostgres(t *testing.T) {
	for _, r := range simulate.Removals() {
		if r.Guard == "" || r.ByLaw {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			for seed := range uint64(seedsForGuard) {
				if r.Routed && !simulate.Routed(*first+seed) || r.Quiet && !simulate.QuietHours(*first+seed) {
					continue
				}
				o := simulate.Options{Seed: *first + seed, Quiet: true, Without: []model.Guard{r.Guard}}
				if found := simulated(t, o); found.Violation != nil {
					t.Logf("seed %d: %v", o.Seed, found.Violation)
					return
				}
			}
			t.Errorf("nothing is noticed within %d seeds", seedsForGuard)
		})
	}
}

// withoutGuard returns simulations without a guard of Postgres.
func withoutGuard(g model.Guard, seeds uint64) (list []simulate.Options) {
	for seed := range seeds {
		list = append(list, simulate.Options{Seed: 1 + seed, Without: []model.Guard{g}})
	}
	return list
}

// TestGuardsAreInTheSource finds what `make guards` takes away from the product.
func TestGuardsAreInTheSource(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range simulate.Removals() {
		if names[r.Name] {
			t.Errorf("two guards are called %s", r.Name)
		}
		names[r.Name] = true
		if r.File == "" {
			continue
		}
		if _, err := r.Overlay(root, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
	if len(names) < 20 {
		t.Errorf("%d guards", len(names))
	}
}
