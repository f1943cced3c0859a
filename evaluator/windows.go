package evaluator

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// Windows evaluates rules over a window: package evaluator/window implements it. It
// reads the source and writes nothing.
type Windows interface {
	// Evaluate returns what becomes of the alerts of some rules at a watermark. It ends
	// early when request.Over says so or ctx ends: rules that it had no time for are
	// left out of the outcome.
	Evaluate(ctx context.Context, request WindowRequest) WindowOutcome
}

// WindowRequest asks for the evaluation of the window rules of one partition.
type WindowRequest struct {
	Partition int
	Tenants   Tenants
	// Rules are due, in the order in which they should be evaluated.
	Rules []WindowRule
	// Open holds the open alerts of these rules, and those that a person resolved while
	// their value was above the threshold.
	Open []OpenAlert
	// WatermarkNS is where the windows end, exclusive: each counts what ended in
	// [WatermarkNS - window, WatermarkNS).
	WatermarkNS int64
	// Now is the present by the clock of the instants in Open.
	Now time.Time
	// Over reports that there is no more time.
	Over func() bool
}

// WindowRule is a window rule with its compiled conditions.
type WindowRule struct {
	*rules.Rule
	*rules.Judge
}

// WindowOutcome is what became of window rules.
type WindowOutcome struct {
	Changes []Change
	// Evaluated are the rules that were evaluated, with or without a change.
	Evaluated []uuid.UUID
	// Failed are rules that could not be evaluated although others could; Problems are
	// those of rules that could, as a text that is a fallback.
	Failed   map[uuid.UUID]error
	Problems map[uuid.UUID]string
	// SourceErr is set when the source could not be read at all.
	SourceErr error
}

// OpenAlert is the alert of a window rule and group that is open or held.
type OpenAlert struct {
	ID     uuid.UUID
	RuleID uuid.UUID
	Group  string
	alerts.Open
}

// Change is a step of one alert of a window rule. It is made if the alert still
// stands where the step leads from; else nothing of it is written.
type Change struct {
	Step alerts.Step
	// Instance is whole for a new alert; for an open one it holds the id, the
	// rule, and what changes: texts, count and newest exchange.
	Instance alerts.Instance
	// Notifications belong to the step.
	Notifications []notify.Notification
}
