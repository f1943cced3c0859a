package silences_test

import (
	"errors"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts/match"
	"tocsin/alerts/silences"
	"tocsin/internal/fault"
	"tocsin/rules"
)

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func everything() match.Match { return match.Match{Severities: []rules.Severity{rules.Critical}} }

func compiled(t interface{ Fatal(args ...any) }, s *silences.Silence) *silences.Compiled {
	if s.Match.Empty() {
		s.Match = everything()
	}
	c, err := silences.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWindowsFollowTheClocksOfTheirZone has windows that begin in nights of clock changes.
func TestWindowsFollowTheClocksOfTheirZone(t *testing.T) {
	t.Parallel()
	night := func(zone, from string, minutes int, days ...rules.Weekday) silences.Recurrence {
		return silences.Recurrence{TimeZone: zone, Weekdays: days, From: from, DurationMinutes: minutes}
	}
	for name, c := range map[string]struct {
		r               silences.Recurrence
		at, from, until string
	}{
		"an ordinary night":               {night("Europe/Berlin", "22:00", 480, "SAT"), "2026-10-17T23:00:00Z", "2026-10-17T20:00:00Z", "2026-10-18T04:00:00Z"},
		"clocks go back":                  {night("Europe/Berlin", "22:00", 480, "SAT"), "2026-10-24T23:00:00Z", "2026-10-24T20:00:00Z", "2026-10-25T04:00:00Z"},
		"clocks go forward":               {night("Europe/Berlin", "22:00", 480, "SAT"), "2026-03-28T23:00:00Z", "2026-03-28T21:00:00Z", "2026-03-29T05:00:00Z"},
		"the time of day comes twice":     {night("Europe/Berlin", "02:30", 10, "SUN"), "2026-10-25T00:31:00Z", "2026-10-25T00:30:00Z", "2026-10-25T00:40:00Z"},
		"the second time is no window":    {night("Europe/Berlin", "02:30", 10, "SUN"), "2026-10-25T01:31:00Z", "2026-11-01T01:30:00Z", "2026-11-01T01:40:00Z"},
		"the time of day is skipped":      {night("Europe/Berlin", "02:30", 10, "SUN"), "2026-03-29T01:31:00Z", "2026-03-29T01:30:00Z", "2026-03-29T01:40:00Z"},
		"the week after":                  {night("Europe/Berlin", "02:30", 10, "SUN"), "2026-03-29T01:40:00Z", "2026-04-05T00:30:00Z", "2026-04-05T00:40:00Z"},
		"half an hour, Lord Howe":         {night("Australia/Lord_Howe", "02:15", 60, "SUN"), "2026-10-03T15:50:00Z", "2026-10-03T15:45:00Z", "2026-10-03T16:45:00Z"},
		"the day of the zone, not of UTC": {night("Pacific/Auckland", "08:00", 60, "MON"), "2026-11-22T19:30:00Z", "2026-11-22T19:00:00Z", "2026-11-22T20:00:00Z"},
		"a week without a pause":          {night("UTC", "00:00", 1440, rules.Weekdays()...), "2026-11-23T12:00:00Z", "2026-11-23T00:00:00Z", "2026-12-09T00:00:00Z"},
		"the end is not within":           {night("UTC", "10:00", 60, "MON"), "2026-11-23T11:00:00Z", "2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"},
		"the beginning is":                {night("UTC", "10:00", 60, "MON"), "2026-11-23T10:00:00Z", "2026-11-23T10:00:00Z", "2026-11-23T11:00:00Z"},
		"a window that began days ago":    {night("UTC", "10:00", 7*24*60, "MON"), "2026-11-29T10:00:00Z", "", ""},
		"midnight that Beirut skips":      {night("Asia/Beirut", "00:00", 30, "SUN"), "2026-03-28T22:10:00Z", "2026-03-28T22:00:00Z", "2026-03-28T22:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := silences.Silence{Definition: silences.Definition{StartsAt: time.Unix(0, 0), Recurrence: &c.r}}
			got := compiled(t, &s).At(instant(t, c.at))
			if c.from == "" {
				if got.State != silences.Active {
					t.Errorf("it is %s", got.State)
				}
				return
			}
			if !got.From.Equal(instant(t, c.from)) || !got.Until.Equal(instant(t, c.until)) {
				t.Errorf("from %s until %s, want %s to %s", got.From.UTC(), got.Until.UTC(), c.from, c.until)
			}
			if within := !instant(t, c.at).Before(got.From); (got.State == silences.Active) != within {
				t.Errorf("it is %s", got.State)
			}
		})
	}
}

// TestWindowsAgreeWithAClock walks through the minutes of random periods in several time zones and
// compares the windows with local clock time and elapsed time.
func TestWindowsAgreeWithAClock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago", "UTC"}).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		days := rapid.SliceOfNDistinct(rapid.SampledFrom(rules.Weekdays()), 1, 7, rapid.ID).Draw(t, "days")
		from := rapid.SampledFrom([]string{"00:00", "02:30", "03:00", "12:00", "23:59"}).Draw(t, "from")
		length := rapid.IntRange(1, 3*24*60).Draw(t, "minutes")
		r := silences.Recurrence{TimeZone: name, Weekdays: days, From: from, DurationMinutes: length}
		c := compiled(t, &silences.Silence{Definition: silences.Definition{Recurrence: &r}})
		wanted := map[string]bool{}
		for _, d := range days {
			wanted[string(d)] = true
		}
		begin := time.Unix(rapid.Int64Range(1_767_225_600, 1_830_297_600).Draw(t, "begin")/60*60, 0)
		var inForce time.Time // the end of the windows that have begun so far in the walk
		warm := 4 * 24 * 60
		for minute := range warm + 600 {
			at := begin.Add(time.Duration(minute) * time.Minute)
			local := at.In(zone)
			_, offset := local.Zone()
			_, before := at.Add(-24 * time.Hour).In(zone).Zone()
			_, lately := at.Add(-2 * time.Hour).In(zone).Zone()
			if offset != before || lately != offset {
				return // nights of clock changes are covered by the other test
			}
			if local.Format("15:04") == from && wanted[string(rules.Weekdays()[local.Weekday()])] {
				if end := at.Add(time.Duration(length) * time.Minute); end.After(inForce) {
					inForce = end
				}
			}
			if minute < warm {
				continue
			}
			if got := c.At(at).State == silences.Active; got != at.Before(inForce) {
				t.Fatalf("at %s it is in force: %v, want until %s", local, got, inForce.In(zone))
			}
		}
	})
}

func TestSilenceIsInForceBetweenItsEnds(t *testing.T) {
	t.Parallel()
	at := instant(t, "2026-11-23T12:00:00Z")
	hour := func(n int) *time.Time { return new(at.Add(time.Duration(n) * time.Hour)) }
	daily := &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: "11:00", DurationMinutes: 180}
	for name, c := range map[string]struct {
		s     silences.Silence
		state silences.State
		until *time.Time
	}{
		"in force":                   {silences.Silence{Definition: silences.Definition{StartsAt: *hour(-1), EndsAt: hour(1)}}, silences.Active, hour(1)},
		"from now on":                {silences.Silence{Definition: silences.Definition{StartsAt: at, EndsAt: hour(1)}}, silences.Active, hour(1)},
		"until now":                  {silences.Silence{Definition: silences.Definition{StartsAt: *hour(-1), EndsAt: &at}}, silences.Past, nil},
		"later":                      {silences.Silence{Definition: silences.Definition{StartsAt: *hour(1), EndsAt: hour(2)}}, silences.Upcoming, hour(2)},
		"ended":                      {silences.Silence{Definition: silences.Definition{StartsAt: *hour(-2), EndsAt: hour(1)}, EndedAt: hour(-1)}, silences.Past, nil},
		"recurring":                  {silences.Silence{Definition: silences.Definition{StartsAt: *hour(-48), Recurrence: daily}}, silences.Active, hour(2)},
		"recurring, ends before":     {silences.Silence{Definition: silences.Definition{StartsAt: *hour(-48), EndsAt: hour(1), Recurrence: daily}}, silences.Active, hour(1)},
		"recurring, begins within":   {silences.Silence{Definition: silences.Definition{StartsAt: *hour(1), Recurrence: daily}}, silences.Upcoming, hour(2)},
		"recurring, no window left":  {silences.Silence{Definition: silences.Definition{StartsAt: *hour(2), EndsAt: hour(3), Recurrence: daily}}, silences.Past, nil},
		"recurring, ended for ever":  {silences.Silence{Definition: silences.Definition{StartsAt: *hour(-48), Recurrence: daily}, EndedAt: hour(-1)}, silences.Past, nil},
		"ended before it would have": {silences.Silence{Definition: silences.Definition{StartsAt: *hour(1), EndsAt: hour(2)}, EndedAt: hour(0)}, silences.Past, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compiled(t, &c.s).At(at)
			if got.State != c.state || c.until != nil && !got.Until.Equal(*c.until) {
				t.Errorf("%+v, want %s until %v", got, c.state, c.until)
			}
		})
	}
}

// TestWindowsAreBetweenStartAndEnd lists the windows of a recurrence over a change of clocks.
func TestWindowsAreBetweenStartAndEnd(t *testing.T) {
	t.Parallel()
	ends := instant(t, "2027-03-29T00:00:00Z")
	d := silences.Definition{
		Match: everything(), StartsAt: instant(t, "2027-03-27T22:00:00Z"), EndsAt: &ends,
		Recurrence: &silences.Recurrence{TimeZone: "Europe/Berlin", Weekdays: rules.Weekdays(), From: "22:00", DurationMinutes: 480},
	}
	windows := d.Windows(instant(t, "2026-11-26T12:00:00Z"), 5)
	want := [][2]string{{"2027-03-27T22:00:00Z", "2027-03-28T05:00:00Z"}, {"2027-03-28T20:00:00Z", "2027-03-29T00:00:00Z"}}
	if len(windows) != len(want) {
		t.Fatalf("%+v, want %v", windows, want)
	}
	for i, w := range windows {
		if !w.From.Equal(instant(t, want[i][0])) || !w.Until.Equal(instant(t, want[i][1])) {
			t.Errorf("window %d is %s to %s, want %v", i, w.From.UTC(), w.Until.UTC(), want[i])
		}
	}
	if d.EndsAt = nil; len(d.Windows(ends, 3)) != 3 {
		t.Errorf("without an end: %+v", d.Windows(ends, 3))
	}
	if before := instant(t, "2027-03-27T21:30:00Z"); len((&silences.Definition{Match: everything(), StartsAt: d.StartsAt, EndsAt: &before, Recurrence: d.Recurrence}).Windows(before.Add(-time.Hour), 3)) != 0 {
		t.Error("windows of what ends before it starts")
	}
}

// TestTheFirstThatWasMadeIsNamed checks that of several silences always the same one is named.
func TestTheFirstThatWasMadeIsNamed(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_795_244_520, 0)
	ends := at.Add(time.Hour)
	var list []*silences.Compiled
	for i, made := range []int{3, 1, 2} {
		list = append(list, compiled(t, &silences.Silence{
			ID: uuid.UUID{byte(i)}, CreatedAt: at.Add(time.Duration(made) * time.Minute), Definition: silences.Definition{StartsAt: at, EndsAt: &ends},
		}))
	}
	s := match.Subject{Severity: rules.Critical, Exchange: &rules.Exchange{Status: rules.Failed}}
	if got := silences.Suppressing(silences.InForce(list, at), &s); got == nil || got.ID != (uuid.UUID{1}) {
		t.Errorf("%+v", got)
	}
	if got := silences.Suppressing(silences.InForce(list, ends), &s); got != nil {
		t.Errorf("%+v after the end", got)
	}
	s.Severity = rules.Info
	if got := silences.Suppressing(silences.InForce(list, at), &s); got != nil {
		t.Errorf("%+v is about another severity", got)
	}
}

func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	v := rules.NewValidator()
	at := instant(t, "2026-11-23T12:00:00Z")
	ends := at.Add(time.Hour)
	good := func() silences.Definition {
		return silences.Definition{Name: "n", Match: everything(), StartsAt: at, EndsAt: &ends}
	}
	recurring := func(r silences.Recurrence) silences.Definition {
		d := good()
		d.Recurrence = &r
		return d
	}
	if d := good(); d.Check(v) != nil {
		t.Error(d.Check(v))
	}
	if d := recurring(silences.Recurrence{TimeZone: "Europe/Berlin", Weekdays: []rules.Weekday{"MON"}, From: "22:00", DurationMinutes: 60}); d.Check(v) != nil {
		t.Error(d.Check(v))
	}
	for field, spoil := range map[string]func() silences.Definition{
		"name":   func() silences.Definition { d := good(); d.Name = ""; return d },
		"match":  func() silences.Definition { d := good(); d.Match = match.Match{}; return d },
		"endsAt": func() silences.Definition { d := good(); d.EndsAt = nil; return d },
		"match.filter.errorMessageMatches": func() silences.Definition {
			d := good()
			d.Match.Filter.ErrorMessageMatches = "("
			return d
		},
		"match.labels[0].value": func() silences.Definition {
			d := good()
			d.Match.Labels = []rules.AttributeMatch{{Key: "tier", Op: rules.AttributeAtLeast, Value: "x"}}
			return d
		},
		"recurrence.timeZone": func() silences.Definition {
			return recurring(silences.Recurrence{TimeZone: "Local", Weekdays: []rules.Weekday{"MON"}, From: "22:00", DurationMinutes: 60})
		},
		"recurrence.from": func() silences.Definition {
			return recurring(silences.Recurrence{TimeZone: "UTC", Weekdays: []rules.Weekday{"MON"}, From: "24:00", DurationMinutes: 60})
		},
		"recurrence.weekdays": func() silences.Definition {
			return recurring(silences.Recurrence{TimeZone: "UTC", From: "22:00", DurationMinutes: 60})
		},
		"recurrence.weekdays[0]": func() silences.Definition {
			return recurring(silences.Recurrence{TimeZone: "UTC", Weekdays: []rules.Weekday{"WORKDAY"}, From: "22:00", DurationMinutes: 60})
		},
		"recurrence.durationMinutes": func() silences.Definition {
			return recurring(silences.Recurrence{TimeZone: "UTC", Weekdays: []rules.Weekday{"MON"}, From: "22:00"})
		},
	} {
		d := spoil()
		err := d.Check(v)
		if fault.KindOf(err) != fault.Invalid || !names(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, s := range []silences.Silence{
		{Definition: silences.Definition{StartsAt: at, EndsAt: &ends}},
		{Definition: silences.Definition{StartsAt: at, Match: everything()}},
		{Definition: good(), Problem: "it cannot be read"},
		{Definition: recurring(silences.Recurrence{TimeZone: "Nowhere/Never", Weekdays: []rules.Weekday{"MON"}, From: "22:00", DurationMinutes: 1})},
		{Definition: recurring(silences.Recurrence{TimeZone: "UTC", Weekdays: []rules.Weekday{"MON"}, From: "x", DurationMinutes: 1})},
		{Definition: recurring(silences.Recurrence{TimeZone: "UTC", Weekdays: []rules.Weekday{"MON", "WORKDAY"}, From: "22:00", DurationMinutes: 1})},
	} {
		if _, err := silences.Compile(&s); err == nil {
			t.Errorf("%+v compiles", s.Definition)
		}
	}
}

func names(err error, field string) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	return ok && slices.ContainsFunc(refused.Fields, func(f fault.Field) bool { return f.Field == field })
}
