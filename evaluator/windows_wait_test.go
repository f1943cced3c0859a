package evaluator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

// punctual evaluates window rules while there is time, and counts how often.
type punctual struct{ evaluated int }

func (w *punctual) Evaluate(_ context.Context, request window.Request) (out window.Outcome) {
	for _, r := range request.Rules {
		if !request.Over() {
			w.evaluated++
			out.Evaluated = append(out.Evaluated, r.ID)
		}
	}
	return out
}

// Where every pass takes longer than it may, what is new is evaluated all the same, and window
// rules are evaluated in every other pass.
func TestWindowRulesDoNotStarve(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.change(rules.Rule{ID: uuid.UUID{15: 9}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.CountInWindow, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
	}}, false)
	windows := &punctual{}
	// Each question takes longer than a pass may read.
	clock := func() time.Time { return time.Unix(0, s.now).Add(time.Duration(s.questions) * 4 * time.Second) }
	s.e = s.start("a", evaluator.Options{Windows: windows, Interval: time.Second, LeaseFor: 9 * time.Second, Clock: clock})
	for i := range 10 {
		s.fail("tenant-0", fmt.Sprint("e", i), 0)
		s.tick()
	}
	if windows.evaluated < 3 {
		t.Errorf("window rules were evaluated %d times in 10 passes", windows.evaluated)
	}
	s.wants(10)
}

// endless notes how long the evaluation may take.
type endless struct{ left time.Duration }

func (w *endless) Evaluate(ctx context.Context, request window.Request) (out window.Outcome) {
	until, _ := ctx.Deadline()
	w.left = time.Until(until)
	out.Evaluated = []uuid.UUID{request.Rules[0].ID}
	return out
}

// What window rules came to is committed within the time of the pass, however long others of them take.
func TestWindowRulesLeaveTimeToCommit(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.change(rules.Rule{ID: uuid.UUID{15: 9}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.CountInWindow, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
	}}, false)
	windows := &endless{}
	s.e = s.start("a", evaluator.Options{Windows: windows, Interval: time.Second, LeaseFor: time.Minute})
	s.tick()
	if windows.left <= 0 || windows.left > 30*time.Second {
		t.Errorf("of the 40 s of a pass, window rules may take %v", windows.left)
	}
}
