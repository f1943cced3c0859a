package notify_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"tocsin/notify"
	"tocsin/rules"
)

func hours(zone, from, to string, days ...rules.Weekday) rules.Calendar {
	if len(days) == 0 {
		days = rules.Weekdays()
	}
	return rules.Calendar{TimeZone: zone, Weekdays: days, From: from, To: to}
}

// TestQuietHoursEndByTheClocksOfTheirZone ends quiet hours in nights of clock changes, at midnight,
// and when several follow one another.
func TestQuietHoursEndByTheClocksOfTheirZone(t *testing.T) {
	t.Parallel()
	night := hours("Europe/Berlin", "22:00", "07:00")
	week := notify.QuietHours{
		hours("Europe/Berlin", "18:00", "08:00", "MON", "TUE", "WED", "THU"), hours("Europe/Berlin", "18:00", "24:00", "FRI"),
		hours("Europe/Berlin", "00:00", "24:00", "SAT", "SUN"), hours("Europe/Berlin", "00:00", "08:00", "MON"),
	}
	for name, c := range map[string]struct {
		hours     notify.QuietHours
		at, until string
	}{
		"an ordinary night":                       {notify.QuietHours{night}, "2026-11-24T22:00:00Z", "2026-11-25T06:00:00Z"},
		"the beginning is within":                 {notify.QuietHours{night}, "2026-11-24T21:00:00Z", "2026-11-25T06:00:00Z"},
		"before":                                  {notify.QuietHours{night}, "2026-11-24T20:59:59Z", "2026-11-24T20:59:59Z"},
		"the end is not within":                   {notify.QuietHours{night}, "2026-11-25T06:00:00Z", "2026-11-25T06:00:00Z"},
		"clocks go back":                          {notify.QuietHours{night}, "2026-10-24T20:30:00Z", "2026-10-25T06:00:00Z"},
		"clocks go forward":                       {notify.QuietHours{night}, "2026-03-28T21:30:00Z", "2026-03-29T05:00:00Z"},
		"the end is skipped":                      {notify.QuietHours{hours("Europe/Berlin", "22:00", "02:30")}, "2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z"},
		"the end comes twice":                     {notify.QuietHours{hours("Europe/Berlin", "22:00", "02:30")}, "2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z"},
		"and the second time":                     {notify.QuietHours{hours("Europe/Berlin", "22:00", "02:30")}, "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"},
		"the weekend, from Friday":                {week, "2026-11-27T20:00:00Z", "2026-11-30T07:00:00Z"},
		"a night within the week":                 {week, "2026-11-24T20:00:00Z", "2026-11-25T07:00:00Z"},
		"a day within the week":                   {week, "2026-11-24T12:00:00Z", "2026-11-24T12:00:00Z"},
		"half an hour, Lord Howe":                 {notify.QuietHours{hours("Australia/Lord_Howe", "01:00", "04:00")}, "2026-10-03T15:00:00Z", "2026-10-03T17:00:00Z"},
		"two zones that overlap":                  {notify.QuietHours{night, hours("America/New_York", "00:00", "06:00")}, "2026-11-25T05:59:00Z", "2026-11-25T11:00:00Z"},
		"none":                                    {nil, "2026-11-25T05:59:00Z", "2026-11-25T05:59:00Z"},
		"a zone that is not there":                {notify.QuietHours{hours("Nowhere", "00:00", "24:00")}, "2026-11-25T05:59:00Z", "2026-11-25T05:59:00Z"},
		"the quiet hours would never end: 8 days": {notify.QuietHours{hours("UTC", "00:00", "24:00")}, "2026-11-01T00:00:00Z", "2026-11-09T00:00:00Z"},
		"nanoseconds before the moment":           {notify.QuietHours{night}, "2026-11-24T20:59:59.999999999Z", "2026-11-24T20:59:59.999999999Z"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.hours.Until(at).UTC().Format(time.RFC3339Nano); got != c.until {
			t.Errorf("%s: until %s, want %s", name, got, c.until)
		}
	}
}

func TestQuietHoursThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hours notify.QuietHours
		good  bool
	}{
		"none":                  {nil, true},
		"nights":                {notify.QuietHours{hours("UTC", "22:00", "07:00")}, true},
		"all but a minute":      {notify.QuietHours{hours("UTC", "00:00", "23:59")}, true},
		"always":                {notify.QuietHours{hours("UTC", "00:00", "24:00")}, false},
		"always, by two":        {notify.QuietHours{hours("UTC", "00:00", "13:00"), hours("UTC", "12:00", "00:00")}, false},
		"no weekday":            {notify.QuietHours{{TimeZone: "UTC", From: "00:00", To: "01:00"}}, false},
		"an unknown weekday":    {notify.QuietHours{hours("UTC", "00:00", "01:00", "WORKDAY")}, false},
		"a weekday twice":       {notify.QuietHours{hours("UTC", "00:00", "01:00", "MON", "MON")}, false},
		"no time of day":        {notify.QuietHours{hours("UTC", "22", "07:00")}, false},
		"the zone of a machine": {notify.QuietHours{hours("Local", "22:00", "07:00")}, false},
		"too many":              {slices.Repeat(notify.QuietHours{hours("UTC", "22:00", "07:00")}, notify.MaxQuietHours+1), false},
	} {
		if err := c.hours.Check(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAfterQuietHoursOneMessageSaysThatAnAlertFires(t *testing.T) {
	t.Parallel()
	const fired, reminder, escalated, resolved, reopened = notify.ReasonFired, notify.ReasonReminder, notify.ReasonEscalated, notify.ReasonResolved, notify.ReasonReopened
	for name, c := range map[string]struct {
		handled, notified bool
		held              []notify.Reason
		want              []bool
	}{
		"it fires":                          {false, false, []notify.Reason{fired}, []bool{true}},
		"and was reminded of":               {false, false, []notify.Reason{fired, reminder, escalated}, []bool{true, false, false}},
		"somebody looks after it":           {true, false, []notify.Reason{fired, reminder}, []bool{false, false}},
		"it has ended":                      {true, false, []notify.Reason{fired, resolved}, []bool{false, false}},
		"it has ended, and was notified of": {true, true, []notify.Reason{reminder, resolved}, []bool{false, true}},
		"it ended just now":                 {false, false, []notify.Reason{fired, reminder, resolved}, []bool{true, false, true}},
		"it was acknowledged and snoozed":   {true, true, []notify.Reason{reminder, notify.ReasonSnoozeEnded, escalated}, []bool{false, true, false}},
		"it was opened again":               {false, false, []notify.Reason{fired, resolved, reopened}, []bool{true, true, true}},
		"the same, and was notified of":     {false, true, []notify.Reason{resolved, reopened, reminder}, []bool{true, true, true}},
	} {
		held := make([]notify.QuietMessage, len(c.held))
		for i, reason := range c.held {
			held[i] = notify.QuietMessage{Reason: reason, Handled: c.handled && (reason != notify.ReasonSnoozeEnded || !c.notified)}
		}
		if got := notify.AfterQuiet(c.notified, held); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
