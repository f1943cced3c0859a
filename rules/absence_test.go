package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/rules"
)

func judgeOf(t interface{ Fatal(args ...any) }, c *rules.Calendar) *rules.Judge {
	judge, err := rules.NewJudge(&rules.Rule{Definition: rules.Definition{FireMode: rules.AbsentInWindow, Calendar: c}})
	if err != nil {
		t.Fatal(err)
	}
	return judge
}

// TestCalendarExpects uses the clock changes of Berlin from 02:00 to 03:00 on 2026-03-29, and from
// 03:00 to 02:00 on 2026-10-25, both Sundays.
func TestCalendarExpects(t *testing.T) {
	work := &rules.Calendar{TimeZone: "Europe/Berlin", Weekdays: []rules.Weekday{"MON", "TUE", "WED", "THU", "FRI"}, From: "08:00", To: "18:00"}
	nights := &rules.Calendar{TimeZone: "Europe/Berlin", Weekdays: []rules.Weekday{"SAT", "SUN"}, From: "22:00", To: "06:00"}
	days := &rules.Calendar{TimeZone: "Europe/Berlin", Weekdays: []rules.Weekday{"SAT", "SUN"}, From: "00:00", To: "24:00"}
	early := &rules.Calendar{TimeZone: "Europe/Berlin", Weekdays: []rules.Weekday{"SUN"}, From: "02:30", To: "04:00"}
	far := &rules.Calendar{TimeZone: "Pacific/Auckland", Weekdays: []rules.Weekday{"MON"}, From: "08:00", To: "09:00"}
	for name, c := range map[string]struct {
		calendar *rules.Calendar
		from, to string
		want     bool
	}{
		"no calendar":                         {nil, "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z", true},
		"winter, from the first second on":    {work, "2026-11-23T07:00:00Z", "2026-11-23T07:10:00Z", true},
		"winter, a nanosecond early":          {work, "2026-11-23T06:59:59.999999999Z", "2026-11-23T07:10:00Z", false},
		"winter, to the last second":          {work, "2026-11-23T16:50:00Z", "2026-11-23T17:00:00Z", true},
		"winter, a nanosecond late":           {work, "2026-11-23T16:50:00Z", "2026-11-23T17:00:00.000000001Z", false},
		"summer, from the first second on":    {work, "2026-07-20T06:00:00Z", "2026-07-20T06:10:00Z", true},
		"summer, at the hour of winter":       {work, "2026-07-20T16:30:00Z", "2026-07-20T16:40:00Z", false},
		"on a Saturday":                       {work, "2026-11-21T10:00:00Z", "2026-11-21T10:10:00Z", false},
		"two days with the night between":     {work, "2026-11-23T16:00:00Z", "2026-11-24T08:00:00Z", false},
		"night, past midnight":                {nights, "2026-11-21T21:30:00Z", "2026-11-22T04:30:00Z", true},
		"night that began on Sunday":          {nights, "2026-11-23T04:00:00Z", "2026-11-23T05:00:00Z", true},
		"night that would begin on Friday":    {nights, "2026-11-21T04:00:00Z", "2026-11-21T05:00:00Z", false},
		"whole days meet at midnight":         {days, "2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z", true},
		"whole days end":                      {days, "2026-11-22T22:00:00Z", "2026-11-22T23:00:00.000000001Z", false},
		"clocks put forward, over the change": {days, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", true},
		"clocks put forward, a day is short":  {days, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00.000000001Z", false},
		"clocks put forward, 03:00 is open":   {early, "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", true},
		"clocks put forward, 01:59 is not":    {early, "2026-03-29T00:59:00Z", "2026-03-29T02:00:00Z", false},
		"clocks put back, first 02:30":        {early, "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", true},
		"clocks put back, second 02:10":       {early, "2026-10-25T01:10:00Z", "2026-10-25T01:20:00Z", false},
		"clocks put back, over the change":    {early, "2026-10-25T00:30:00Z", "2026-10-25T01:40:00Z", false},
		"clocks put back, second 02:30":       {early, "2026-10-25T01:30:00Z", "2026-10-25T03:00:00Z", true},
		"clocks put back, a day is long":      {days, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", true},
		"far east, a Monday on UTC's Sunday":  {far, "2026-07-19T20:00:00Z", "2026-07-19T21:00:00Z", true},
	} {
		from, to := instantOf(t, c.from), instantOf(t, c.to)
		if got := judgeOf(t, c.calendar).Expects(from, to); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func instantOf(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}

// TestCalendarOfEachInstant checks that a period is expected exactly if each instant of it is, by
// local clock time.
func TestCalendarOfEachInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"}).Draw(t, "zone")
		times := rapid.SampledFrom([]string{"00:00", "01:30", "02:00", "02:30", "03:00", "08:00", "23:00"})
		c := &rules.Calendar{
			TimeZone: zone, From: times.Draw(t, "from"), To: rapid.SampledFrom([]string{"00:00", "02:15", "03:00", "18:00", "24:00"}).Draw(t, "to"),
			Weekdays: rapid.SliceOfNDistinct(rapid.SampledFrom(rules.Weekdays()), 1, 7, func(w rules.Weekday) rules.Weekday { return w }).Draw(t, "weekdays"),
		}
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		shown := func(at time.Time) bool {
			clock := at.In(location).Format("15:04")
			open := func(day time.Weekday) bool {
				for _, w := range c.Weekdays {
					if strings.HasPrefix(strings.ToUpper(day.String()), string(w)) {
						return true
					}
				}
				return false
			}
			today := at.In(location).Weekday()
			if c.To > c.From {
				return open(today) && clock >= c.From && clock < c.To
			}
			return open(today) && clock >= c.From || open((today+6)%7) && clock < c.To
		}
		around := rapid.SampledFrom([]string{"2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z", "2026-03-08T06:00:00Z", "2026-11-01T05:00:00Z", "2026-04-04T14:00:00Z", "2026-10-03T15:00:00Z", "2026-07-01T00:00:00Z"}).Draw(t, "around")
		base, _ := time.Parse(time.RFC3339, around)
		from := base.Add(time.Duration(rapid.IntRange(-200, 200).Draw(t, "begins")) * 15 * time.Minute)
		to := from.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "quarters")) * 15 * time.Minute)
		want := true
		for at := from; at.Before(to); at = at.Add(15 * time.Minute) {
			want = want && shown(at)
		}
		if got := judgeOf(t, c).Expects(from.UnixNano(), to.UnixNano()); got != want {
			t.Errorf("%+v, %v to %v: %v", c, from, to, got)
		}
	})
}

func TestWeekdaysByAnyName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rules.Weekday{
		`"MON"`: "MON", `"mon"`: "MON", `"MONDAY"`: "MON", `"Wednesday"`: "WED", `"sUnDaY"`: "SUN", `"SAT"`: "SAT", `"THURSDAY"`: "THU",
		// No weekdays: validation names them as they were written.
		`"MOND"`: "MOND", `"mo"`: "mo", `" MON"`: " MON", `""`: "", `"Monday "`: "Monday ",
	} {
		var got rules.Weekday
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`1`, `{}`, `["MON"]`} {
		var got rules.Weekday
		if json.Unmarshal([]byte(text), &got) == nil {
			t.Errorf("%s is %q", text, got)
		}
	}
}

// TestCalendarThatCannotBeUsed checks that a rule with an invalid stored calendar is not evaluated.
func TestCalendarThatCannotBeUsed(t *testing.T) {
	fine := rules.Calendar{TimeZone: "UTC", Weekdays: []rules.Weekday{"MON"}, From: "08:00", To: "18:00"}
	for name, change := range map[string]func(c *rules.Calendar){
		"no such zone":         func(c *rules.Calendar) { c.TimeZone = "Europe/Atlantis" },
		"the zone of the host": func(c *rules.Calendar) { c.TimeZone = "Local" },
		"no zone":              func(c *rules.Calendar) { c.TimeZone = "" },
		"no such day":          func(c *rules.Calendar) { c.Weekdays = []rules.Weekday{"Mon"} },
		"no time":              func(c *rules.Calendar) { c.From = "8:00" },
		"a time after the day": func(c *rules.Calendar) { c.To = "24:01" },
		"a beginning at 24:00": func(c *rules.Calendar) { c.From = "24:00" },
	} {
		c := fine
		change(&c)
		if _, err := rules.NewJudge(&rules.Rule{Definition: rules.Definition{Calendar: &c}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
