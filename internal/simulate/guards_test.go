//go:build !race

package simulate_test

import (
	"path/filepath"
	"testing"

	"tocsin/internal/simulate"
	"tocsin/internal/simulate/model"
)

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
