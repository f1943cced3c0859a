package preset_test

import (
	"testing"

	"tocsin/notify/preset"
)

func TestEveryPresetTakesTheWorst(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.All() {
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			for _, problem := range p.Check().Problems {
				t.Error(problem)
			}
		})
	}
}
