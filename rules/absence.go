package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Absence is what an AbsentInWindow rule expects, in addition to its threshold and its window.
type Absence struct {
	// Expected lists the groups from which exchanges are expected, by their full names.
	Expected []string `json:"expected,omitempty"`
	// LearnDays makes each group expected that was seen within this number of days; 0 means that
	// none is learned.
	LearnDays int `json:"learnDays,omitempty"`
	// Calendar is when exchanges are expected; nil means always.
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

// Weekday is a day of the week, by one of the names that [Weekdays] returns.
type Weekday string

// AsWeekday returns the day that a text names: its short name or its full one, in any letter case. Any
// other text is returned as it is, and is no weekday.
func AsWeekday(text string) Weekday {
	for i, day := range Weekdays() {
		if strings.EqualFold(text, string(day)) || strings.EqualFold(text, time.Weekday(i).String()) {
			return day
		}
	}
	return Weekday(text)
}

// UnmarshalJSON reads a day by any of the names that [AsWeekday] knows.
func (w *Weekday) UnmarshalJSON(text []byte) error {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return fmt.Errorf("weekday: %w", err)
	}
	*w = AsWeekday(name)
	return nil
}

// Weekdays returns the names of the days of the week, Sunday first, as in [time.Weekday].
func Weekdays() []Weekday { return []Weekday{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} }

// Calendar is the hours of some weekdays in a time zone. If clocks are put forward, the skipped
// hour is not part of it. If they are put back, the repeated hour counts twice.
type Calendar struct {
	// TimeZone is a name in the IANA database, for example Europe/Berlin.
	TimeZone string    `json:"timeZone" validate:"max=100"`
	Weekdays []Weekday `json:"weekdays" validate:"max=7,unique,dive,oneof=SUN MON TUE WED THU FRI SAT"`
	// From, inclusive, and To, exclusive, are times of day such as 08:00; To may be 24:00. If To is
	// not later than From, the hours end on the next day.
	From string `json:"from"`
	To   string `json:"to"`
}

const daySeconds = 86_400

// timeOfDay returns the seconds since midnight of a time of day such as 08:00.
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

// hours returns when the calendar opens and closes, in seconds after the midnight at the start of
// the day. The end may be on the next day.
func (c *Calendar) hours() (from, to int, err error) {
	from, ok := timeOfDay(c.From)
	if !ok || from == daySeconds {
		return 0, 0, fmt.Errorf("%q is not a time of day such as 08:00", c.From)
	}
	if to, ok = timeOfDay(c.To); !ok {
		return 0, 0, fmt.Errorf("%q is not a time of day such as 08:00", c.To)
	}
	if to <= from {
		to += daySeconds
	}
	return from, to, nil
}

// longest returns the longest time without a break in the hours of the calendar, in seconds of a
// week without a change of clocks. ends is false if the hours never end, or the calendar is invalid.
func (c *Calendar) longest() (seconds int, ends bool) {
	from, to, err := c.hours()
	if err != nil {
		return 0, false
	}
	if to-from < daySeconds {
		return to - from, true
	}
	// Whole days meet.
	days, most := 0, 0
	week := Weekdays()
	for i := range 2 * len(week) {
		if days++; !slices.Contains(c.Weekdays, week[i%len(week)]) {
			days = 0
		}
		most = max(most, days)
	}
	return most * daySeconds, 0 < most && most < len(week)
}

// location returns the time zone. The local zone of this process is not accepted.
func (c *Calendar) location() (*time.Location, error) {
	if c.TimeZone == "" || strings.EqualFold(c.TimeZone, "local") {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Berlin", c.TimeZone)
	}
	zone, err := time.LoadLocation(c.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Berlin", c.TimeZone)
	}
	return zone, nil
}

// hours is a compiled calendar.
type hours struct {
	zone     *time.Location
	weekdays [7]bool
	// from and to are seconds after the midnight at the start of a day.
	from, to int64
}

// compile returns the hours of a calendar; nil for a nil calendar.
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

// hold reports whether all of the time from one instant, inclusive, to another one, exclusive, is
// in the hours. Between two changes of clocks, local time differs from UTC by a constant, so each
// such part is checked separately.
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

// shown reports whether all of a range of local time is in the hours. Local times are in
// nanoseconds since clocks showed the Unix epoch.
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

// closing returns the local time at which the hours that contain a local time end; that time itself
// if no hours contain it.
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

// until returns an instant such that all of the time from atNS to it is in the hours; atNS itself
// if that is not in the hours.
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

// Until returns when the hours of some calendars that contain an instant end: the first instant
// that is in none of them, at most a number of days later. It returns the instant itself if that is
// in none of them.
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
