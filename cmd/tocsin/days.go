package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// days is a duration, written in days ("90d") or as time.ParseDuration accepts it.
type days time.Duration

// UnmarshalText parses a duration.
func (d *days) UnmarshalText(text []byte) error {
	const most = 36500
	if number, found := strings.CutSuffix(string(text), "d"); found {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n > most {
			return fmt.Errorf("%q is not a number of days; write it like 90d", text)
		}
		*d = days(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	duration, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write it like 90d or 36h", text)
	}
	*d = days(duration)
	return nil
}

// instant is a point in time in RFC 3339.
type instant time.Time

// UnmarshalText parses an instant.
func (i *instant) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time; write it like 2026-12-01T18:00:00Z or 2026-12-01T19:00:00+01:00", text)
	}
	*i = instant(at)
	return nil
}
