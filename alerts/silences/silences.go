// Package silences holds silences and maintenance windows, which are silences that recur.
//
// A silence suppresses messages, never alerts. The transaction that writes a message decides, by
// Postgres's clock, whether a silence in force matches its alert. If so, it writes the message as
// SUPPRESSED with the silence's id. A written message does not change: a silence that begins later
// does not suppress waiting messages, and the end of a silence does not bring back suppressed ones.
// A silence that cannot be read or evaluated suppresses nothing. No silence applies to an alert
// about Tocsin itself.
package silences

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/match"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Definition is everything about a silence that a person writes. The JSON names are those of
// the API; validation reports fields by them.
type Definition struct {
	Name   string      `json:"name" validate:"required,max=200,text"`
	Reason string      `json:"reason" validate:"max=2000,text"`
	Match  match.Match `json:"match"`
	// StartsAt is inclusive, EndsAt exclusive. Only a recurring silence may have no end.
	StartsAt   time.Time   `json:"startsAt"`
	EndsAt     *time.Time  `json:"endsAt,omitempty"`
	Recurrence *Recurrence `json:"recurrence,omitempty"`
	// Digest asks for a digest of what was suppressed, for each webhook, when the silence or a window
	// of its recurrence ends.
	Digest bool `json:"digest,omitempty"`
}

// MaxLength is the longest duration of a silence that does not recur.
const MaxLength = 366 * 24 * time.Hour

// Check returns an invalid-input fault with one entry for each field that cannot be accepted,
// or nil.
func (d *Definition) Check(v *rules.Validator) error {
	fields, err := v.Faults(d)
	if err != nil {
		return fmt.Errorf("validate silence: %w", err)
	}
	add := func(field, code, message string) {
		fields = append(fields, fault.Field{Field: field, Code: code, Message: message})
	}
	if d.Match.Empty() {
		add("match", "required", "Must have at least one condition; to silence everything, name all three severities")
	}
	fields = append(fields, d.CheckStart()...)
	switch {
	case d.EndsAt == nil && d.Recurrence == nil:
		add("endsAt", "required", "Must not be empty; only a silence that recurs may have no end")
	case d.EndsAt != nil && !d.EndsAt.After(d.StartsAt):
		add("endsAt", "out_of_range", "Must be after the start")
	default:
		fields = append(fields, d.CheckLength()...)
	}
	if d.Recurrence != nil {
		if len(d.Recurrence.Weekdays) == 0 {
			add("recurrence.weekdays", "required", "Choose at least one weekday")
		}
		if _, err := d.Recurrence.zone(); err != nil {
			add("recurrence.timeZone", "unknown_value", "Must be a time zone such as Europe/Berlin")
		}
		if _, _, ok := d.Recurrence.timeOfDay(); !ok {
			add("recurrence.from", "time", "Must be a time of day such as 22:00")
		}
	}
	return fault.InvalidFields("the silence", fields)
}

// yearsEnd is the last year of which an answer can show every instant.
const yearsEnd = 9999

// CheckStart returns what is wrong if a silence starts so late that its windows could not be shown.
func (d *Definition) CheckStart() []fault.Field {
	if d.StartsAt.UTC().Year() < yearsEnd {
		return nil
	}
	return []fault.Field{{Field: "startsAt", Code: "out_of_range", Message: fmt.Sprintf("Must be before the year %d", yearsEnd)}}
}

// CheckLength returns what is wrong if a silence that does not recur is too long.
func (d *Definition) CheckLength() []fault.Field {
	if d.Recurrence != nil || d.EndsAt == nil || d.EndsAt.Sub(d.StartsAt) <= MaxLength {
		return nil
	}
	return []fault.Field{{Field: "endsAt", Code: "out_of_range", Message: "Must be at most 366 days after the start"}}
}

// Silence is a stored definition.
type Silence struct {
	Definition

	ID       uuid.UUID
	TenantID string
	// Version counts the edits, from 1.
	Version              int64
	CreatedAt, UpdatedAt time.Time
	CreatedBy, UpdatedBy string
	// EndedAt is when a person ended the silence early; nil if nobody has.
	EndedAt *time.Time
	EndedBy string
	// Problem says why the stored silence cannot be used and suppresses nothing. It is empty for
	// other silences.
	Problem string
}

// State says whether a silence is in force, upcoming or past.
type State string

// The states. A recurring silence is Upcoming between two of its windows.
const (
	Active   State = "ACTIVE"
	Upcoming State = "UPCOMING"
	Past     State = "PAST"
)

// Status is the state of a silence at an instant.
type Status struct {
	State State
	// From and Until are those of the window in force or of the next one; zero for a past silence.
	From, Until time.Time
}

// Compiled is a silence that is ready to decide. It is safe for concurrent use.
type Compiled struct {
	*Silence

	matcher *match.Matcher
	zone    *time.Location
}

// Compile prepares a silence. Its error says what is invalid.
func Compile(s *Silence) (*Compiled, error) {
	if s.Problem != "" {
		return nil, fmt.Errorf("silence %s: %s", s.ID, s.Problem)
	}
	c := &Compiled{Silence: s, zone: time.UTC}
	var err error
	if c.matcher, err = match.Compile(s.Match); err != nil {
		return nil, fmt.Errorf("silence %s: match: %w", s.ID, err)
	}
	if s.Match.Empty() || s.EndsAt == nil && s.Recurrence == nil {
		return nil, fmt.Errorf("silence %s: it has no condition or no end, and would suppress everything or never end; edit it and add what is missing", s.ID)
	}
	if r := s.Recurrence; r != nil {
		if c.zone, err = r.zone(); err != nil {
			return nil, fmt.Errorf("silence %s: recurrence: %w", s.ID, err)
		}
		if _, _, ok := r.timeOfDay(); !ok || len(r.Weekdays) == 0 || slices.ContainsFunc(r.Weekdays, unknown) || r.DurationMinutes < 1 || r.DurationMinutes > MaxWindowMinutes {
			return nil, fmt.Errorf("silence %s: its recurrence has no valid time, weekdays or duration; edit it and set them", s.ID)
		}
	}
	return c, nil
}

func unknown(day rules.Weekday) bool { return !slices.Contains(rules.Weekdays(), day) }

// Over returns the instant from which the silence is over; nil if there is none.
func (s *Silence) Over() *time.Time {
	if s.EndedAt != nil && (s.EndsAt == nil || s.EndedAt.Before(*s.EndsAt)) {
		return s.EndedAt
	}
	return s.EndsAt
}

// At returns the state of the silence at an instant.
func (c *Compiled) At(at time.Time) Status {
	end := c.Over()
	if end != nil && !at.Before(*end) {
		return Status{State: Past}
	}
	within := c.StartsAt
	if at.After(within) {
		within = at
	}
	from, until := c.StartsAt, time.Time{}
	if c.Recurrence != nil {
		from, until = c.Recurrence.window(within, c.zone)
		if from.Before(c.StartsAt) {
			from = c.StartsAt
		}
	}
	if end != nil && !from.Before(*end) {
		return Status{State: Past} // no window remains
	}
	if end != nil && (c.Recurrence == nil || until.After(*end)) {
		until = *end
	}
	if at.Before(from) {
		return Status{Upcoming, from, until}
	}
	return Status{Active, from, until}
}

// Windows returns the window in force at an instant, if there is one, and those after it, up to a
// number of windows. A definition that cannot be used has none.
func (d *Definition) Windows(at time.Time, most int) (windows []Status) {
	c, err := Compile(&Silence{Definition: *d})
	if err != nil {
		return nil
	}
	for len(windows) < most {
		next := c.At(at)
		if next.State == Past {
			break
		}
		windows = append(windows, next)
		at = next.Until
	}
	return windows
}

// Recurs reports whether an instant is in a window of the recurrence, regardless of the silence's
// start and end.
func (c *Compiled) Recurs(at time.Time) bool {
	if c.Recurrence == nil {
		return false
	}
	from, _ := c.Recurrence.window(at, c.zone)
	return !from.After(at)
}

// Matches reports whether the silence applies to an alert.
func (c *Compiled) Matches(s *match.Subject) bool { return c.matcher.Matches(s) }

// InForce returns the silences that are in force at an instant, in the order in which they were
// made.
func InForce(list []*Compiled, at time.Time) []*Compiled {
	active := slices.DeleteFunc(slices.Clone(list), func(c *Compiled) bool { return c.At(at).State != Active })
	slices.SortFunc(active, func(a, b *Compiled) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return active
}

// Suppressing returns the silence in force that suppresses messages about an alert: the first one
// that applies to it, or nil.
func Suppressing(inForce []*Compiled, s *match.Subject) *Compiled {
	for _, c := range inForce {
		if c.Matches(s) {
			return c
		}
	}
	return nil
}
