package alerts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
)

func TestStepsOfAllRoutesAreOneEscalation(t *testing.T) {
	t.Parallel()
	a, b, c := uuid.UUID{1}, uuid.UUID{2}, uuid.UUID{3}
	step := func(minutes int, teams []string, hooks ...uuid.UUID) alerts.EscalationStep {
		return alerts.EscalationStep{AfterMinutes: minutes, WebhookIDs: hooks, Teams: teams}
	}
	var none *alerts.Routing
	for name, try := range map[string]struct {
		of   *alerts.Routing
		want []alerts.EscalationStep
	}{
		"nothing": {&alerts.Routing{Routes: []alerts.RouteTaken{{Name: "a", WebhookIDs: []uuid.UUID{a}}}}, nil},
		"the default": {
			&alerts.Routing{DefaultEscalation: []alerts.EscalationStep{step(5, nil, a)}}, []alerts.EscalationStep{step(5, nil, a)},
		},
		"two routes": {
			&alerts.Routing{Routes: []alerts.RouteTaken{
				{Escalation: []alerts.EscalationStep{step(15, []string{"x"}, a), step(30, nil, b)}},
				{},
				{Escalation: []alerts.EscalationStep{step(5, nil, c), step(15, []string{"y", "x"}, a, b)}},
			}},
			[]alerts.EscalationStep{step(5, nil, c), step(15, []string{"x", "y"}, a, b), step(30, nil, b)},
		},
	} {
		if diff := cmp.Diff(try.want, try.of.Escalation()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := try.of.Escalates(); got != (try.want != nil) {
			t.Errorf("%s escalates: %v", name, got)
		}
	}
	if none.Escalates() {
		t.Error("what is not routed escalates")
	}
}
