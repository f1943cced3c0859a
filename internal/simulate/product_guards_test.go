//go:build guards && !race

package simulate_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"tocsin/internal/simulate"
)

// TestGuardsOfTheProduct takes one guard after the other away from a copy of the product's
// source, and holds that the simulation notices within a bounded number of seeds, or the tests of its package
// do.
func TestGuardsOfTheProduct(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range simulate.Removals() {
		if r.File == "" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			overlay, err := r.Overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if r.Tests != "" {
				tests := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", overlay, r.Tests)
				said, err := tests.CombinedOutput()
				found := regexp.MustCompile(`--- FAIL: Test\S+`).Find(said)
				if err == nil || found == nil {
					t.Errorf("the tests of %s do not notice: %v, %s", r.Tests, err, said[:min(len(said), 2000)])
					return
				}
				t.Logf("%s", found)
				return
			}
			binary := filepath.Join(filepath.Dir(overlay), "simulation")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			bounded, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			simulation := exec.CommandContext(bounded, binary, "-test.run", "^TestSeeds$", "-seeds", strconv.Itoa(seedsForGuard), "-shrink=false")
			simulation.Env = append(os.Environ(), "GOTRACEBACK=single")
			said, err := simulation.CombinedOutput()
			found := regexp.MustCompile(`seed \d+ breaks .*`).Find(said)
			if err == nil || found == nil {
				t.Errorf("nothing is noticed within %d seeds: %v, %s", seedsForGuard, err, said[:min(len(said), 2000)])
				return
			}
			t.Logf("%s", bytes.TrimSpace(found))
		})
	}
}

// TestGuardsOfTheLaw takes away the guards of Postgres that the law of stores notices.
func TestGuardsOfTheLaw(t *testing.T) {
	for _, r := range simulate.Removals() {
		if !r.ByLaw {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			law := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestLaw$", "./model", "-without", r.Name)
			said, err := law.CombinedOutput()
			found := regexp.MustCompile(`--- FAIL: TestLaw/\S+`).Find(said)
			if err == nil || found == nil {
				t.Errorf("the law does not notice: %v, %s", err, said[:min(len(said), 2000)])
				return
			}
			t.Logf("%s", found)
		})
	}
}
