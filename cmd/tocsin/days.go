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
