// Package cursor defines how far the exchanges of a source have been evaluated.
//
// A [Position] is the composite (start time, execution id) of an exchange. The cursor of a
// partition is a position with one meaning: every exchange at or before it has been evaluated, or is
// named as left to evaluate. Positions are totally ordered, first by start time in nanoseconds, then
// by the bytes of the execution id, exactly as ClickHouse orders a DateTime64(9) and a String. So
// two exchanges that start in the same nanosecond are still distinct, and "strictly after the
// cursor" neither repeats nor skips one of them.
//
// Outside of ClickHouse, start times are always integers of nanoseconds since the Unix epoch.
// Postgres's timestamptz and most formatting of clocks round to microseconds, and a rounded cursor
// would re-select or lose exchanges.
//
// A stored cursor that cannot be decoded is an error and never means "from the beginning". Starting
// over would alert on history, starting from now would lose failures, and a program must not choose
// between them.
package cursor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrMalformed is wrapped by every error of [Decode].
var ErrMalformed = errors.New("malformed cursor")

// Bounds of a start time, those of ClickHouse's DateTime64(9), in nanoseconds
// since the Unix epoch: 1900-01-01 to 2262-04-11, the end of an int64.
const (
	MinStartTimeNS int64 = -2_208_988_800_000_000_000
	MaxStartTimeNS int64 = 1<<63 - 1
)

// Position is the place of an exchange in evaluation order.
type Position struct {
	// StartTimeNS is the start time in nanoseconds since the Unix epoch.
	StartTimeNS int64
	// ExecutionID breaks ties between equal start times, byte by byte. The
	// empty id is before every exchange of its nanosecond.
	ExecutionID string
}

// Range is a range of start times in nanoseconds since the Unix epoch, FromNS inclusive,
// ToNS exclusive.
type Range struct{ FromNS, ToNS int64 }

// Overlaps reports whether two ranges have a start time in common.
func (r Range) Overlaps(o Range) bool { return r.FromNS < o.ToNS && o.FromNS < r.ToNS }

// At returns the position before every exchange that starts at t or later.
func At(t time.Time) Position { return Position{StartTimeNS: t.UnixNano()} }

// Compare returns -1, 0 or +1 when p is before, at or after q.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.StartTimeNS, q.StartTimeNS); c != 0 {
		return c
	}
	return strings.Compare(p.ExecutionID, q.ExecutionID)
}

// After reports whether p lies strictly after q.
func (p Position) After(q Position) bool { return p.Compare(q) > 0 }

// StartTime returns the start time in UTC.
func (p Position) StartTime() time.Time { return time.Unix(0, p.StartTimeNS).UTC() }

// layout is RFC 3339 with exactly nine fractional digits, always in UTC.
const layout = "2006-01-02T15:04:05.000000000Z07:00"

// String encodes p as "<RFC 3339 start time with nanoseconds>|<execution id>",
// the id as [EncodeID] writes it. [Decode] returns the same position for it.
func (p Position) String() string {
	return p.StartTime().Format(layout) + "|" + EncodeID(p.ExecutionID)
}

// Decode parses the result of [Position.String]. The text is split at its first bar, so that an
// execution id may contain bars. The time may have any zone and up to nine fractional digits. The
// error wraps [ErrMalformed].
func Decode(text string) (Position, error) {
	stamp, id, found := strings.Cut(text, "|")
	if !found {
		return Position{}, fmt.Errorf("%w %q: no bar between start time and execution id", ErrMalformed, text)
	}
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return Position{}, fmt.Errorf("%w %q: %w", ErrMalformed, text, err)
	}
	if t.Before(time.Unix(0, MinStartTimeNS)) || t.After(time.Unix(0, MaxStartTimeNS)) {
		return Position{}, fmt.Errorf("%w %q: start time outside 1900-01-01 to 2262-04-11", ErrMalformed, text)
	}
	if digits := fraction(stamp); len(digits) > 9 {
		return Position{}, fmt.Errorf("%w %q: start time finer than a nanosecond", ErrMalformed, text)
	}
	raw, err := decodeID(id)
	if err != nil {
		return Position{}, fmt.Errorf("%w %q: %w", ErrMalformed, text, err)
	}
	return Position{StartTimeNS: t.UnixNano(), ExecutionID: raw}, nil
}

// fraction returns the fractional digits of an RFC 3339 time. time.Parse drops digits after the
// ninth silently.
func fraction(stamp string) string {
	dot := strings.IndexAny(stamp, ".,")
	if dot < 0 {
		return ""
	}
	rest := stamp[dot+1:]
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		return rest
	}
	return rest[:end]
}
