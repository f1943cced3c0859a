package template_test

import (
	"strings"
	"testing"

	"tocsin/alerts"
	"tocsin/notify/template"
	"tocsin/rules"
)

func TestResolution(t *testing.T) {
	fired := &alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 60}
	ratio := &alerts.Count{Mode: rules.RatioInWindow, Observed: 3, Volume: 4, Measure: rules.Measure{Percent: 50}}
	for want, a := range map[string]alerts.Instance{
		"":       {State: alerts.Firing, ResolvedBy: "ada", Resolution: &alerts.Resolution{Reason: alerts.ByAge}},
		"by ada": {State: alerts.Resolved, ResolvedBy: "ada", Resolution: &alerts.Resolution{Reason: alerts.ByAge}},
		"a later exchange completed: a-7, started at 2026-11-24 01:02:03 UTC": {State: alerts.Resolved, Resolution: &alerts.Resolution{
			Reason: alerts.ByEvidence, ExecutionID: "a-7", StartTimeNS: new(int64(1795482123_000000001)),
		}},
		"open for longer than its rule allows":                             {State: alerts.Resolved, Resolution: &alerts.Resolution{Reason: alerts.ByAge}},
		"its rule was edited, and no longer counts the group of the alert": {State: alerts.Resolved, Resolution: &alerts.Resolution{Reason: alerts.ByEdit}},
		"the value is 2, and was 7 when it fired; the threshold is 5": {State: alerts.Resolved, Count: &alerts.Count{
			Observed: 2, Threshold: 5, WindowSeconds: 60, Fired: fired,
		}},
		"the value is 25% of 8, and was 75% of 4 when it fired; the threshold is 50%": {State: alerts.Resolved, Count: &alerts.Count{
			Mode: rules.RatioInWindow, Observed: 2, Volume: 8, Measure: rules.Measure{Percent: 50}, Fired: ratio,
		}},
	} {
		if got := template.Resolution(&a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	hostile := alerts.Instance{State: alerts.Resolved, ResolvedBy: strings.Repeat("x", 100_000) + "\x00"}
	if got := template.Resolution(&hostile); len(got) > 2000 || strings.Contains(got, "\x00") {
		t.Errorf("%d bytes of a name", len(got))
	}
}
