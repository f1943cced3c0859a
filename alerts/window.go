package alerts

import (
	"fmt"
	"time"

	"tocsin/rules"
)

// Window is what a COUNT_IN_WINDOW rule says about its alerts.
type Window struct {
	Threshold       int64
	For, ReNotify   time.Duration
	NotifyOnResolve bool
}

// WindowOf returns what a rule says.
func WindowOf(d *rules.Definition) Window {
	return Window{
		Threshold: int64(d.Threshold), NotifyOnResolve: d.NotifyOnResolve,
		For:      time.Duration(d.ForDurationSeconds) * time.Second,
		ReNotify: time.Duration(d.ReNotifyMinutes) * time.Minute,
	}
}

// Open is the open alert of a rule and group.
type Open struct {
	State State
	// Since is when it became PENDING or, once it fires, when it fired.
	Since time.Time
	// NotifiedAt is the last notification; zero before the first.
	NotifiedAt time.Time
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
	// Drop removes a pending alert; nobody has heard of it.
	Drop
	// Clear resolves an alert, and notifies where the rule says so.
	Clear
)

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
	}
	return fmt.Sprintf("step(%d)", int(s))
}

// Next decides by the number of matching exchanges at an instant. Open is nil
// when no alert of the group is open; its instants and now are by one clock.
func (w Window) Next(open *Open, observed int64, now time.Time) Step {
	reached := observed >= w.Threshold
	if open == nil {
		switch {
		case !reached:
			return Stay
		case w.For > 0:
			return Wait
		default:
			return Raise
		}
	}
	switch open.State {
	case Pending:
		switch {
		case !reached:
			return Drop
		case now.Sub(open.Since) >= w.For:
			return Fire
		}
	case Firing:
		switch {
		case !reached:
			return Clear
		case w.ReNotify > 0 && now.Sub(open.NotifiedAt) >= w.ReNotify:
			return Remind
		}
	case Acknowledged:
		if !reached {
			return Clear
		}
	case Resolved:
	}
	return Stay
}
