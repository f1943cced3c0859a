package alerts

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// Window is what a window rule says about its alerts.
type Window struct {
	// Mode says what is compared; the zero mode means COUNT_IN_WINDOW.
	Mode rules.FireMode
	// Threshold is the number that a count must reach, or that an absence is below.
	Threshold int64
	// Measure is what the other modes compare with. If a ratio has a short window, it must reach
	// its percentage in that window as well.
	rules.Measure

	For, ReNotify   time.Duration
	NotifyOnResolve bool
}

// WindowOf returns the window of a rule.
func WindowOf(d *rules.Definition) Window {
	return Window{
		Mode: d.FireMode, Threshold: int64(d.Threshold), Measure: d.Measure(), NotifyOnResolve: d.NotifyOnResolve,
		For:      time.Duration(d.ForDurationSeconds) * time.Second,
		ReNotify: time.Duration(d.ReNotifyMinutes) * time.Minute,
	}
}

// Open is the alert of a rule and group that is open, or that a person resolved and that holds the
// group.
type Open struct {
	State State
	// Since is when the alert became PENDING, when it fired or, if it is held, when it was
	// resolved.
	Since time.Time
	// NotifiedAt is the time of the last notification; zero before the first.
	NotifiedAt time.Time
	// Reminders is how many reminders were sent.
	Reminders int
	// Held says that a person resolved the alert and the value has not been below the threshold
	// since. Until then, nothing is raised for the group. HeldUntil is the instant until which the
	// person wants this whatever the value does; zero if there is none.
	Held      bool
	HeldUntil time.Time
	// Snoozed says that a person has snoozed the alert: no reminder of it is due.
	Snoozed bool
}

// OpenAlert is the alert of a window rule and group that is open, or that holds the group.
type OpenAlert struct {
	ID     uuid.UUID
	RuleID uuid.UUID
	Group  string
	// NewestEndedNS and NewestStartNS are of the newest exchange that was counted when the
	// alert last notified of something. LeastNS is how long it had to last to be counted.
	NewestEndedNS, NewestStartNS, LeastNS int64
	// Routing is how the alert was routed, less the webhooks that are gone; nil where it
	// fired by the webhooks of its rule, and while it is pending.
	Routing *Routing
	Open
}

// Value is the measurement of a rule for a group.
type Value struct {
	// Observed is the number of exchanges that matched; for durations, the number that lasted at
	// least as long as the rule's bound. Volume is the number of exchanges that they are compared
	// with; it is not set for counts. ShortObserved and ShortVolume are the same numbers for the
	// short window.
	Observed, Volume           int64
	ShortObserved, ShortVolume int64
	// ArmedAt is when the rule was armed: created, enabled, or given another condition. Exchanges
	// that ended before are not counted.
	ArmedAt time.Time
	// Partial says that the window began before ArmedAt.
	Partial bool
	// For an absence. Inconclusive says that there may be exchanges that are not visible, so a low
	// number means nothing. Closed says that none are expected at this time. In both cases, enough
	// exchanges still end an absence.
	Inconclusive, Closed bool
}

// Step is what happens to the alert of a rule and group.
type Step int

// The steps.
const (
	// Stay changes nothing.
	Stay Step = iota
	// Wait opens an alert that does not fire yet.
	Wait
	// Raise opens an alert that fires, and notifies.
	Raise
	// Fire makes a pending alert fire, and notifies.
	Fire
	// Remind notifies again of a firing alert.
	Remind
	// Drop removes a pending alert. Nobody was notified of it.
	Drop
	// Clear resolves an alert, and notifies if the rule says so.
	Clear
	// Release ends the hold of an alert that a person resolved, because the value was below the
	// threshold or the time that the person chose is over.
	Release
)

// Lessens reports whether a step follows from a value below the threshold.
func (s Step) Lessens() bool { return s == Drop || s == Clear || s == Release }

// String returns the step's name.
func (s Step) String() string {
	switch s {
	case Stay:
		return "stay"
	case Wait:
		return "wait"
	case Raise:
		return "raise"
	case Fire:
		return "fire"
	case Remind:
		return "remind"
	case Drop:
		return "drop"
	case Clear:
		return "clear"
	case Release:
		return "release"
	}
	return fmt.Sprintf("step(%d)", int(s))
}

// Least returns how many exchanges must at least be observed for the threshold to be reached.
func (w *Window) Least() int64 {
	volume := int64(w.MinVolume)
	switch w.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return max(1, (rules.Thousandths(w.Percent)*volume+99_999)/100_000)
	case rules.DurationInWindow:
		return volume - rules.Rank(w.Percentile, volume) + 1
	default:
		return w.Threshold
	}
}

// Reached reports whether a value reaches the threshold. With fewer exchanges than the minimum
// volume, no ratio and no percentile does.
func (w *Window) Reached(v Value) bool {
	reached := func(observed, volume int64) bool {
		return observed > 0 && observed*100_000 >= rules.Thousandths(w.Percent)*volume
	}
	switch w.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return v.Volume >= int64(w.MinVolume) && reached(v.Observed, v.Volume) && (w.ShortWindowSeconds == 0 || reached(v.ShortObserved, v.ShortVolume))
	case rules.AbsentInWindow:
		return v.Observed < w.Threshold
	case rules.DurationInWindow:
		// The percentile reaches the bound if it is among the durations that do.
		return v.Volume >= int64(w.MinVolume) && v.Observed > v.Volume-rules.Rank(w.Percentile, v.Volume)
	default:
		return v.Observed >= w.Threshold
	}
}

// Next decides by the value at an instant. open is nil if no alert of the group is open or held.
// Its instants, ArmedAt and now are by the same clock.
//
// If an alert is older than the arming, a partial window does not show whether things got better,
// because the exchanges that the alert was about are not counted. Only a whole window resolves such
// an alert. A hold that is older than the arming ends. A pending alert that is older than the
// arming is dropped, because it waited for another condition.
//
// An absence that is inconclusive, or at a time at which nothing is expected, raises no alert and
// sends no reminder. A pending alert is dropped when that time begins.
func (w *Window) Next(open *Open, v Value, now time.Time) Step {
	reached := w.Reached(v)
	older := open != nil && open.Since.Before(v.ArmedAt)
	switch {
	case reached && v.Closed && open != nil && open.State == Pending:
		return Drop
	case reached && (v.Inconclusive || v.Closed) && (open == nil || !open.Held || !older):
		return Stay
	case open == nil && !reached:
		return Stay
	case open == nil && w.For > 0:
		return Wait
	case open == nil:
		return Raise
	case open.Held && !older && !open.HeldUntil.IsZero():
		if now.Before(open.HeldUntil) {
			return Stay
		}
		return Release
	case open.Held && (!reached || older):
		return Release
	case open.Held:
		return Stay
	}
	switch open.State {
	case Pending:
		switch {
		case !reached || older:
			return Drop
		case now.Sub(open.Since) >= w.For:
			return Fire
		}
	case Firing, Acknowledged:
		switch {
		case !reached && (!older || !v.Partial):
			return Clear
		case reached && open.State == Firing && !open.Snoozed && w.ReNotify > 0 && now.Sub(open.NotifiedAt) >= w.ReNotify:
			return Remind
		}
	case Resolved:
	}
	return Stay
}
