package preset_test

import (
	"net/http"
	"slices"
	"testing"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/template"
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

// TestPreviewsNameEachHeaderOnce checks that a preview contains each header that is sent, and no
// other.
func TestPreviewsNameEachHeaderOnce(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.All() {
		if p.Mails() {
			continue
		}
		for _, user := range []bool{true, false} {
			inputs := p.Examples()
			if _, has := inputs["user"]; !has && !user {
				continue
			} else if has && !user {
				inputs["user"] = ""
			}
			d := &notify.Delivery{Reason: notify.ReasonFired, Alert: template.Samples()[0]}
			made, err := p.Preview(d, "https://tocsin.example.com/inbox/1", inputs)
			if err != nil {
				t.Fatal(err)
			}
			to, err := p.Target(preset.Fired, preset.AboutOf(d), inputs)
			if err != nil {
				t.Fatal(err)
			}
			shown := map[string]int{}
			for _, h := range made.Headers {
				shown[http.CanonicalHeaderKey(h.Name)]++
			}
			for name, times := range shown {
				if sent := to.Header.Get(name) != "" || name == "Content-Type"; times != 1 || !sent {
					t.Errorf("%s: the preview has %s %d times, sent %t", p.ID, name, times, sent)
				}
			}
			if len(shown) != len(to.Header)+1 {
				t.Errorf("%s: the preview has %v, sent are %v", p.ID, shown, to.Header)
			}
		}
	}
}
