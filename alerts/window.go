package alerts

import (
	"fmt"
	"time"

	"tocsin/rules"
)

// Window is what a window rule says about its alerts.
type Window struct {
	// Mode says what is compared; the zero mode is COUNT_IN_WINDOW.
	Mode rules.FireMode
	// Threshold is the number that a count has to reach, or that an absence is below.
	Threshold int64
	// Measure is what the other modes compare. If there is a short window, a ratio has to reach its
	// percentage in that one as well.
	rules.Measure

	For, ReNotify   time.Duration
	NotifyOnResolve bool
}

// WindowOf returns what a rule says.
func WindowOf(d *rules.Definition) Window {
	return Window{
		Mode: d.FireMode, Threshold: int64(d.Threshold), Measure: d.Measure(), NotifyOnResolve: d.NotifyOnResolve,
		For:      time.Duration(d.ForDurationSeconds) * time.Second,
		ReNotify: time.Duration(d.ReNotifyMinutes) * time.Minute,
	}
}

// Open is the alert of a rule and group that is open, or that a person resolved and
// that holds the group back.
type Open struct {
	State State
	// Since is when it became PENDING, when it fired or, once it is held, when it was
	// resolved.
	Since time.Time
	// NotifiedAt is the last notification; zero before the first.
	NotifiedAt time.Time
	// Reminders is how many reminders were sent.
	Reminders int
	// Held says that a person resolved the alert, and that the value has not been seen
	// below the threshold since: nothing is raised for the group until then. HeldUntil is the
	// instant until which the person wants that whatever the value does; zero where none.
	Held      bool
	HeldUntil time.Time
}

// Value is what a rule measured for a group.
type Value struct {
	// Observed is the number of exchanges that matched; for durations, the number that lasted at
	// least as long as the rule says. Volume is the number of exchanges that they are compared
	// with, and is not set for counts. Short are the same numbers of the short window.
	Observed, Volume           int64
	ShortObserved, ShortVolume int64
	// ArmedAt is when the rule was armed: created, enabled, or given another condition. Exchanges
	// that ended before are not counted.
	ArmedAt time.Time
	// Partial says that the window began before that.
	Partial bool
	// Of an absence. Inconclusive says that exchanges may be there which are not seen: that
	// few are seen means nothing. Closed says that none are expected at this time. That
	// enough are seen ends an absence either way.
	Inconclusive, Closed bool
}

// Step is what becomes of the alert of a rule and group.
type Step int

// The steps.
const (
	// Stay leaves everything as it is.
	Stay Step = iota
	// Wait opens an alert that does not fire yet.
	Wait
	// Raise opens an alert that fires, and notifies.
	Raise
	// Fire makes a pending alert fire, and notifies.
	Fire
	// Remind notifies again of an alert that fires.
	Remind
	// Drop removes a pending alert, of which nobody was notified.
	Drop
	// Clear resolves an alert, and notifies where the rule says so.
	Clear
	// Release ends the hold of an alert that a person resolved: the value was below the
	// threshold, or the time is over that the person chose.
	Release
)

// Lessens reports whether a step follows from the value being below the threshold.
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

// Least returns how many exchanges have to be observed, at least, for the threshold to be
// reached.
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

// Reached reports whether a value reaches the threshold. Of fewer exchanges than the
// minimum volume neither share nor percentile does.
func (w *Window) Reached(v Value) bool {
	share := func(observed, volume int64) bool {
		return observed > 0 && observed*100_000 >= rules.Thousandths(w.Percent)*volume
	}
	switch w.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return v.Volume >= int64(w.MinVolume) && share(v.Observed, v.Volume) && (w.ShortWindowSeconds == 0 || share(v.ShortObserved, v.ShortVolume))
	case rules.AbsentInWindow:
		return v.Observed < w.Threshold
	case rules.DurationInWindow:
		// The percentile is one of those that last as long.
		return v.Volume >= int64(w.MinVolume) && v.Observed > v.Volume-rules.Rank(w.Percentile, v.Volume)
	default:
		return v.Observed >= w.Threshold
	}
}

// Next decides by the value at an instant. Open is nil if no alert of the group is open or held.
// Its instants, ArmedAt and now are by one clock.
//
// If an alert is older than the arming, a partial window does not show whether things got better,
// because the exchanges that the alert was about are not counted. Only a whole window resolves such
// an alert. A hold that is older than the arming ends.
//
// An absence that is inconclusive, or that falls into a time at which nothing is expected, raises
// no alert and sends no reminder. A pending alert is dropped when that time begins.
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
		case !reached:
			return Drop
		case now.Sub(open.Since) >= w.For:
			return Fire
		}
	case Firing, Acknowledged:
		switch {
		case !reached && (!older || !v.Partial):
			return Clear
		case reached && open.State == Firing && w.ReNotify > 0 && now.Sub(open.NotifiedAt) >= w.ReNotify:
			return Remind
		}
	case Resolved:
	}
	return Stay
}
