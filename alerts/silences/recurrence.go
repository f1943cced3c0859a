package silences

import (
	"errors"
	"slices"
	"time"

	"tocsin/rules"
)

// MaxWindowMinutes is the longest window of a recurrence: a week.
const MaxWindowMinutes = 7 * 24 * 60

// Recurrence says when a silence recurs. A window begins at a time of day on some weekdays, in a
// time zone. It always lasts for the given duration, even if clocks change meanwhile: eight hours
// from 22:00 end at 06:00, at 05:00 in the night in which clocks go back, and at 07:00 in the night
// in which they go forward. If a time of day is skipped, the window begins later by as much as
// clocks are moved; if it occurs twice, the window begins at the first.
type Recurrence struct {
	TimeZone string          `json:"timeZone" validate:"required,max=100,text"`
	Weekdays []rules.Weekday `json:"weekdays" validate:"max=7,unique,dive,oneof=SUN MON TUE WED THU FRI SAT"`
	// From is the time of day, "15:04".
	From            string `json:"from" validate:"required,max=5,text"`
	DurationMinutes int    `json:"durationMinutes" validate:"min=1,max=10080"`
}

// zone returns the time zone. Local is refused because it depends on the machine.
func (r *Recurrence) zone() (*time.Location, error) {
	if r.TimeZone == "Local" || r.TimeZone == "" {
		return nil, errors.New("must be a time zone such as Europe/Berlin")
	}
	return time.LoadLocation(r.TimeZone)
}

func (r *Recurrence) timeOfDay() (hour, minute int, ok bool) {
	t, err := time.Parse("15:04", r.From)
	return t.Hour(), t.Minute(), err == nil && len(r.From) == len("15:04")
}

// window returns the window that contains an instant or, if none does, the next one. Windows
// without a pause between them are one window, for up to two weeks.
func (r *Recurrence) window(at time.Time, zone *time.Location) (from, until time.Time) {
	hour, minute, _ := r.timeOfDay()
	length := time.Duration(r.DurationMinutes) * time.Minute
	names := rules.Weekdays()
	local := at.In(zone)
	const back, ahead = 8, 15
	for day := -back; day <= ahead; day++ {
		date := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, time.UTC)
		if !slices.Contains(r.Weekdays, names[date.Weekday()]) {
			continue
		}
		begins := clock(date.Add(time.Duration(hour)*time.Hour+time.Duration(minute)*time.Minute), zone)
		ends := begins.Add(length)
		switch {
		case !ends.After(at):
		case until.IsZero():
			from, until = begins, ends
		case !begins.After(until):
			until = ends
		}
	}
	return from, until
}

// clock returns the instant at which the clocks of a zone show the same time as shows does in UTC.
func clock(shows time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(shows.Add(-day)), offset(shows.Add(day))
	if first := shows.Add(-before); offset(first) == before {
		return first
	}
	if second := shows.Add(-after); offset(second) == after {
		return second
	}
	return shows.Add(-before) // skipped: later by as much as clocks are moved
}
