package alerts_test

import (
	"testing"

	"tocsin/alerts"
	"tocsin/internal/fault"
)

func TestWhoHasNotSeenTheLastAssignmentDoesNotUndoIt(t *testing.T) {
	for name, try := range map[string]struct {
		state         alerts.State
		from, was, to string
		passes        bool
		says          string
	}{
		"taken":                    {state: alerts.Firing, to: "ada", passes: true},
		"taken when acknowledged":  {state: alerts.Acknowledged, to: "ada", passes: true},
		"passed on":                {state: alerts.Firing, from: "ada", was: "ada", to: "bo", passes: true},
		"given back":               {state: alerts.Firing, from: "ada", was: "ada", passes: true},
		"asked for twice":          {state: alerts.Firing, from: "ada", to: "ada"},
		"given back twice":         {state: alerts.Firing, was: "ada"},
		"taken by another one":     {state: alerts.Firing, from: "ada", to: "bo", says: "the alert is assigned to ada; try again if this should change"},
		"given back meanwhile":     {state: alerts.Firing, was: "ada", to: "bo", says: "the alert is no longer assigned to ada; it is now unassigned: try again if this should change"},
		"passed on meanwhile":      {state: alerts.Firing, from: "cy", was: "ada", says: "the alert is assigned to cy; try again if this should change"},
		"pending":                  {state: alerts.Pending, to: "ada", says: "the alert is not firing yet; assign it when it is"},
		"resolved":                 {state: alerts.Resolved, to: "ada", says: "the alert is resolved; a resolved alert cannot be assigned"},
		"resolved, asked for once": {state: alerts.Resolved, from: "ada", was: "x", to: "ada"},
	} {
		passes, err := try.state.Reassign(try.from, try.was, try.to)
		says := ""
		if err != nil {
			says = err.Error()
		}
		if passes != try.passes || says != try.says || err != nil && fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v, %v", name, passes, err)
		}
	}
}
