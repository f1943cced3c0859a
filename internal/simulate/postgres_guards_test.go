//go:build guards && !race

package simulate_test

import (
	"testing"

	"tocsin/internal/simulate"
	"tocsin/internal/simulate/model"
)

// seedsForGuard is within how many seeds the absence of a guard is noticed. Seeds without what a guard of Postgres is for do
// not count.
const seedsForGuard = 1000

// seedsThatNoticed are seeds that noticed the absence of a guard when it was last looked for from the first seed on. They
// are tried first, which saves time: where the steps of seeds have changed, another one notices.
func seedsThatNoticed() map[string]uint64 {
	return map[string]uint64{
		"claim-exclusive":        7,
		"commit-atomic":          214,
		"commit-revision":        76,
		"escalation-discarded":   33,
		"escalation-counts":      270,
		"escalation-locked":      141,
		"escalation-moves":       1236,
		"escalation-resumes":     30,
		"escalation-snoozed":     66,
		"escalation-skips":       6,
		"former-conditions":      8,
		"policy-changes-rules":   27,
		"retention-reach":        8,
		"retry-leaves-claims":    16,
		"settle-token":           44,
		"silences-end":           136,
		"silences-of-the-tenant": 2,
		"snooze-ends":            12,
		"snooze-locked":          78,
		"snooze-void":            24,
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
			for seed := *first; len(seeds) < seedsForGuard; seed++ {
				if r.Routed && !simulate.Routed(seed) || r.Quiet && !simulate.QuietHours(seed) || r.Digests && !simulate.SilenceDigests(seed) || r.Resolves && !simulate.Resolves(seed) || r.Events && !simulate.Events(seed) {
					continue
				}
				seeds = append(seeds, seed)
			}
			for _, seed := range seeds {
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
