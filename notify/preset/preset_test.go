package preset_test

import (
	"slices"
	"testing"

	"tocsin/notify"
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

func TestTheLongestSchedule(t *testing.T) {
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	jira := notify.Policy{Schedule: set.Schedule(&notify.Webhook{Preset: "jira"}).Pauses}.Span()
	if got := set.Span(); got != jira || got == 0 {
		t.Errorf("the longest schedule takes %v, that of Jira %v", got, jira)
	}
	var none *preset.Set
	if got := none.Span(); got != 0 {
		t.Errorf("without receivers: %v", got)
	}
}

func TestKeyedReceiversAreNamed(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	keyed := set.Keyed()
	if !slices.Contains(keyed, "pagerduty") || !slices.Contains(keyed, "jira") || slices.Contains(keyed, "discord") || len((*preset.Set)(nil).Keyed()) != 0 {
		t.Errorf("keyed are %q", keyed)
	}
}
