package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// Window rules are compared in two ways. Neither takes a step of the state machine or asks for a
// tally.
//
//   - The count in an alert, from when it fired and when Tocsin resolved it, is measured again
//     for the same window. If the alert counted less than exists now, it is late if the missing
//     rows may have become visible after the window was counted; their ends show how late they
//     were. Any other difference makes the alert different. A value below the threshold is no
//     reason to fire, and a value that reaches it is no reason to resolve.
//
//   - If a group reached the value for longer than an evaluated rule can overlook, however late
//     exchanges were, there must be an alert that was open or held. If the value was out of
//     reach until the end, no alert may be open.
//
// What cannot be checked is never called right: windows whose condition is not known any more,
// windows whose rows the source has deleted or whose alerts retention has deleted, and the time
// before the rule was evaluated without a pause, or before its last edit.

// CellsQuery asks what ended in each cell of the range from FromNS to ToNS. Cell n begins at FromNS
// + n × WidthNS.
type CellsQuery struct {
	counting.Query
	WidthNS int64
	// SureNS is how long an exchange may have lasted to count certainly.
	SureNS int64
}

// Volumes are the number of observed exchanges, and the number that they are compared with.
type Volumes struct{ Observed, Volume int64 }

// Cell is what ended in a cell: what certainly counts, and what may count.
type Cell struct {
	Group          string
	Number         int64
	Sure, Possible Volumes
}

// WindowSource measures windows.
type WindowSource interface {
	// Measure measures one window by group, the groups with the most observed exchanges first.
	Measure(ctx context.Context, w counting.Query) ([]counting.Group, error)
	// Cells counts what ended in each cell of a range, in the order of groups and cells.
	Cells(ctx context.Context, c CellsQuery) ([]Cell, error)
	// Older reports whether an exchange of a tenant exists that began before an instant.
	Older(ctx context.Context, tenantID string, beforeNS int64) (bool, error)
}

// WindowAlert is an alert of a window rule. Instants are in nanoseconds by the source's clock.
type WindowAlert struct {
	ID       uuid.UUID
	Count    alerts.Count
	State    alerts.State
	FiredNS  int64
	Resolved *int64
	// ByPerson says that a person resolved it. Held says that it still holds its group, at least
	// until HeldUntil if a person chose a time.
	ByPerson, Held bool
	HeldUntil      *int64
}

// WindowProgress is how a window rule was evaluated, in nanoseconds by the source's clock.
type WindowProgress struct {
	// SinceNS is since when the rule was evaluated without a pause; UntilNS is the last evaluation.
	// Both are 0 before the first one.
	SinceNS, UntilNS int64
	// EditedNS is when the rule was last edited.
	EditedNS int64
	// LateNS is how late exchanges recently became visible, as far as that was watched.
	LateNS int64
	// WatchedSinceNS and JudgedNS are those of the state of package watch.
	WatchedSinceNS, JudgedNS int64
}

// WindowAlerts reads the alerts of window rules.
type WindowAlerts interface {
	// WindowRule returns how a window rule was evaluated, and at most most of its alerts that are
	// open, held, or were resolved within the time last.
	WindowRule(ctx context.Context, rule uuid.UUID, last time.Duration, most int) (WindowProgress, []WindowAlert, error)
}

// FindingKind is the kind of problem with an alert of a window rule.
type FindingKind string

// The kinds of findings.
const (
	// Missing is a group without an alert although its value was reached.
	Missing FindingKind = "MISSING"
	// Unexpected is an alert that fired, is open or was resolved without a reason.
	Unexpected FindingKind = "UNEXPECTED"
	// Different is an alert that says it counted something else than the table contains.
	Different FindingKind = "DIFFERENT"
	// Late is an alert that did not count exchanges that became visible after it.
	Late FindingKind = "LATE"
	// Unchecked is what cannot be checked.
	Unchecked FindingKind = "UNCHECKED"
)

// Finding is a result of the comparison of a window rule.
type Finding struct {
	Kind FindingKind
	// AlertID is [uuid.Nil] if there is no alert.
	AlertID uuid.UUID
	Group   string
	// AtNS is the end of the window.
	AtNS int64
	// Stored is what the alert says, and Found what exists.
	Stored, Found Volumes
	// LateBy is how late the uncounted exchanges became visible. If an alert is missing, it is how
	// late exchanges would have to have become visible for none to be missing, as far as that was
	// tried; 0 if lateness explains nothing.
	LateBy time.Duration
	// Why is a sentence without a full stop.
	Why string
}

const (
	// checksMost bounds how many windows are measured, alertsMost how many alerts of a rule are
	// read, and cellsMost the number of cells.
	checksMost, alertsMost, cellsMost = 200, 2000, 300_000
	// groupsMost is how many groups of a rule may have alerts, groupsRead how many are read.
	groupsMost, groupsRead = 1000, 10_000
	// leastLateNS is the least lateness that exchanges are assumed to have. lateShareNS bounds what
	// may be called late without a measurement, and so does half of the window.
	leastLateNS, lateShareNS = 10 * secondNS, minuteNS
	// pauseNS is how long a rule may go without an evaluation, in addition to three intervals,
	// before that is a pause.
	pauseNS = 30 * secondNS
	// stepsMost bounds the number of steps that are checked, for all groups together.
	stepsMost = 20_000_000
	// findingsMost is how many findings of each kind a comparison lists.
	findingsMost = 20
	dayNS        = 24 * hourNS
)

// comparison is the comparison of one window rule.
type comparison struct {
	*Reconciler
	rule     *rules.Rule
	progress WindowProgress
	alerts   []WindowAlert
	out      Reconciliation
	// named is how many findings of each kind are listed.
	named map[FindingKind]int
}

// window compares a window rule. at is the position that the watermark had last.
func (r *Reconciler) window(ctx context.Context, rule *rules.Rule, at cursor.Position, last time.Duration) (Reconciliation, error) {
	c := comparison{Reconciler: r, rule: rule, out: Reconciliation{RuleID: rule.ID, RuleName: rule.Name, TenantID: rule.TenantID}, named: map[FindingKind]int{}}
	var err error
	if c.progress, c.alerts, err = r.Groups.WindowRule(ctx, rule.ID, last, alertsMost); err != nil {
		return c.out, err
	}
	until := min(c.progress.UntilNS, at.StartTimeNS)
	to := until - leastMarginNS
	if c.progress.UntilNS == 0 || to <= rule.ArmedSinceNS {
		return c.out, nil
	}
	c.out.ToNS, c.out.FromNS = to, to-last.Nanoseconds()
	if len(c.alerts) == alertsMost {
		c.unchecked("the rule has too many alerts; only the newest are compared")
	}
	most := cmp.Or(r.WindowRuleMost, defaultWindowRuleMost)
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err = c.values(bounded); err == nil {
		err = c.stretches(bounded)
	}
	c.out.FromNS = min(max(c.out.FromNS, rule.ArmedSinceNS), c.out.ToNS)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		c.unchecked(fmt.Sprintf("the comparison was cut after %v; compare fewer hours", most))
		err = nil
	}
	return c.out, err
}

// find counts a finding, and keeps the first few of each kind, so that many of one kind do not hide
// the others.
func (c *comparison) find(f Finding) {
	switch f.Kind {
	case Missing:
		c.out.Missing++
		if len(c.out.MissingSample) < missingSample {
			c.out.MissingSample = append(c.out.MissingSample, fmt.Sprintf("%q at %s", f.Group, time.Unix(0, f.AtNS).UTC().Format(time.RFC3339)))
		}
	case Unexpected:
		c.out.Unexpected++
	case Different:
		c.out.Different++
	case Late:
		c.out.Late++
		c.out.LateBy = max(c.out.LateBy, f.LateBy)
	case Unchecked:
		c.out.Unchecked++
	}
	if c.named[f.Kind]++; c.named[f.Kind] <= findingsMost {
		c.out.Findings = append(c.out.Findings, f)
	}
}

func (c *comparison) unchecked(why string) {
	c.find(Finding{Kind: Unchecked, Why: why})
}
