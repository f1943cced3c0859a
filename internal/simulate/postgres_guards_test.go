//go:build guards && !race

package simulate_test

import (
	"testing"

	"tocsin/internal/simulate"
	"tocsin/internal/simulate/model"
)

// seedsForGuard is within how many seeds the absence of a guard is noticed.
const seedsForGuard = 1000

// seedsThatNoticed are seeds that noticed the absence of a guard when it was last looked for from the first seed on. They
// are tried first, which saves time: where the steps of seeds have changed, another one notices.
func seedsThatNoticed() map[string]uint64 {
	return map[string]uint64{
		"claim-exclusive":        13,
		"commit-atomic":          34,
		"commit-revision":        226,
		"escalation-discarded":   18,
		"escalation-locked":      6,
		"escalation-moves":       90,
		"escalation-resumes":     12,
		"escalation-snoozed":     6,
		"escalation-skips":       6,
		"former-conditions":      8,
		"policy-changes-rules":   24,
		"retention-reach":        8,
		"retry-leaves-claims":    16,
		"settle-token":           16,
		"silences-end":           18,
		"silences-of-the-tenant": 30,
		"snooze-ends":            12,
		"snooze-locked":          150,
		"snooze-void":            9,
	}
}

// TestGuardsOfPostgres takes one guard after the other away from the model of Postgres.
func TestGuardsOfPostgres(t *testing.T) {
	for _, r := range simulate.Removals() {
		if r.Guard == "" || r.ByLaw {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			seeds := make([]uint64, 0, seedsForGuard+1)
			if seed, known := seedsThatNoticed()[r.Name]; known {
				seeds = append(seeds, seed)
			}
			for seed := range uint64(seedsForGuard) {
				seeds = append(seeds, *first+seed)
			}
			for _, seed := range seeds {
				if r.Routed && !simulate.Routed(seed) || r.Quiet && !simulate.QuietHours(seed) || r.Digests && !simulate.SilenceDigests(seed) || r.Resolves && !simulate.Resolves(seed) || r.Events && !simulate.Events(seed) {
					continue
				}
				o := simulate.Options{Seed: seed, Quiet: true, Without: []model.Guard{r.Guard}}
				if found := simulated(t, o); found.Violation != nil {
					t.Logf("seed %d: %v", o.Seed, found.Violation)
					return
				}
			}
			t.Errorf("nothing is noticed within %d seeds", seedsForGuard)
		})
	}
}
