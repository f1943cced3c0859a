package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Absence is what an AbsentInWindow rule expects, beside its threshold and its window.
type Absence struct {
	// Expected lists the groups of which exchanges are expected, by their full names.
	Expected []string `json:"expected,omitempty"`
	// LearnDays expects each group that was seen within so many days; 0 learns none.
	LearnDays int `json:"learnDays,omitempty"`
	// Calendar is when exchanges are expected; nil is always.
	Calendar *Calendar `json:"calendar,omitempty"`
}

// Absence returns what d expects.
func (d *Definition) Absence() Absence {
	return Absence{Expected: d.Expected, LearnDays: d.LearnDays, Calendar: d.Calendar}
}

// SetAbsence is the reverse of [Definition.Absence].
func (d *Definition) SetAbsence(a Absence) {
	d.Expected, d.LearnDays, d.Calendar = a.Expected, a.LearnDays, a.Calendar
}

// Weekday is a day of the week.
type Weekday string

// Weekdays returns the names of the days of the week, Sunday first, as in [time.Weekday].
func Weekdays() []Weekday { return []Weekday{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} }

// Calendar is the hours of some weekdays, by the clocks of a time zone. When clocks are put
// forward, the skipped hour is not part of it. When they are put back, the repeated hour counts
// twice.
type Calendar struct {
	// TimeZone is a name of the IANA database, as Europe/Berlin.
	TimeZone string    `json:"timeZone" validate:"max=100"`
	Weekdays []Weekday `json:"weekdays" validate:"max=7,unique,dive,oneof=SUN MON TUE WED THU FRI SAT"`
	// From, inclusive, and To, exclusive, are times of day as 08:00; To may be 24:00. Hours
	// that end no later than they begin end on the next day.
	From string `json:"from"`
	To   string `json:"to"`
}

const daySeconds = 86_400

// timeOfDay returns the seconds since midnight of a time of day as 08:00.
func timeOfDay(text string) (seconds int, ok bool) {
	var hours, minutes int
	if len(text) != len("08:00") || text[2] != ':' {
		return 0, false
	}
	for i, of := range []*int{&hours, &hours, nil, &minutes, &minutes} {
		if of == nil {
			continue
		}
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		*of = *of*10 + int(text[i]-'0')
	}
	seconds = hours*3600 + minutes*60
	return seconds, minutes < 60 && seconds <= daySeconds
}

// hours returns when the calendar opens and closes, in seconds after the midnight that
// begins the day. They may end on the next day.
func (c *Calendar) hours() (from, to int, err error) {
	from, ok := timeOfDay(c.From)
	if !ok || from == daySeconds {
		return 0, 0, fmt.Errorf("%q is not a time of day", c.From)
	}
	if to, ok = timeOfDay(c.To); !ok {
		return 0, 0, fmt.Errorf("%q is not a time of day", c.To)
	}
	if to <= from {
		to += daySeconds
	}
	return from, to, nil
}

// location returns the time zone. The zone that this process happens to be in is none.
func (c *Calendar) location() (*time.Location, error) {
	if c.TimeZone == "" || strings.EqualFold(c.TimeZone, "local") {
		return nil, fmt.Errorf("%q is not a time zone", c.TimeZone)
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone", c.TimeZone)
	}
	return zone, nil
}

// hours is a calendar that was compiled.
type hours struct {
	zone     *time.Location
	weekdays [7]bool
	// from and to are seconds after the midnight that begins a day.
	from, to int64
}

// compile returns the hours of a calendar, nil of none.
func (c *Calendar) compile() (*hours, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	zone, err := c.location()
	if err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	from, to, err := c.hours()
	if err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	h := &hours{zone: zone, from: int64(from), to: int64(to)}
	for _, name := range c.Weekdays {
		day := slices.Index(Weekdays(), name)
		if day < 0 {
			return nil, fmt.Errorf("calendar: %q is not a weekday", name)
		}
		h.weekdays[day] = true
	}
	return h, nil
}

// hold reports whether all of the time from one instant, inclusive, to another one,
// exclusive, lies in the hours. Between two changes of the clocks these show a time that
// is a constant apart from UTC, so each such part is held against the hours by itself.
func (h *hours) hold(fromNS, toNS int64) bool {
	if h == nil {
		return true
	}
	for from := fromNS; from < toNS; {
		at := time.Unix(0, from).In(h.zone)
		_, offset := at.Zone()
		to := toNS
		if _, end := at.ZoneBounds(); !end.IsZero() && end.UnixNano() < toNS {
			to = end.UnixNano()
		}
		shift := int64(offset) * int64(time.Second)
		if !h.shown(from+shift, to+shift) {
			return false
		}
		from = to
	}
	return true
}

// shown reports whether clocks that show one time and then another one, in nanoseconds
// since they showed the Unix epoch, were in the hours all the time between.
func (h *hours) shown(fromNS, toNS int64) bool {
	for at := fromNS; at < toNS; {
		next := h.closing(at)
		if next == at {
			return false
		}
		at = next
	}
	return true
}

// closing returns the time that clocks show when the hours end in which they show a time; that
// time itself where it is in none.
func (h *hours) closing(at int64) int64 {
	const day = daySeconds * int64(time.Second)
	next := at
	for _, back := range []int64{0, 1} {
		midnight := (floorDiv(at, day) - back) * day
		opens, closes := midnight+h.from*int64(time.Second), midnight+h.to*int64(time.Second)
		if h.weekdays[weekdayOf(midnight/day)] && at >= opens && at < closes {
			next = max(next, closes)
		}
	}
	return next
}

// until returns an instant up to which all of the time from another one lies in the hours; that
// one itself where it lies in none.
func (h *hours) until(atNS int64) int64 {
	at := time.Unix(0, atNS).In(h.zone)
	_, offset := at.Zone()
	shift := int64(offset) * int64(time.Second)
	closes := h.closing(atNS+shift) - shift
	if _, end := at.ZoneBounds(); !end.IsZero() {
		closes = min(closes, end.UnixNano())
	}
	return closes
}

// Until returns when hours of some calendars end in which an instant lies: the first instant that
// lies in none of them, so many days later at the most. It is the instant itself where that lies in none.
func Until(at time.Time, days int, calendars []Calendar) (time.Time, error) {
	all := make([]*hours, len(calendars))
	for i := range calendars {
		var err error
		if all[i], err = calendars[i].compile(); err != nil {
			return at, err
		}
	}
	from, most := at.UnixNano(), at.Add(time.Duration(days)*24*time.Hour).UnixNano()
	for end := from; ; {
		next := end
		for _, h := range all {
			next = max(next, h.until(end))
		}
		switch {
		case next == from:
			return at, nil
		case next == end || next >= most:
			return time.Unix(0, min(next, most)).UTC(), nil
		}
		end = next
	}
}

// weekdayOf returns the weekday of a day since the Unix epoch, which was a Thursday.
func weekdayOf(day int64) int { return int(((day+4)%7 + 7) % 7) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
