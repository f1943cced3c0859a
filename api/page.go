package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// NameMark is the place of an entry in a list ordered by (name, id); names are compared as bytes.
type NameMark struct {
	Name string
	ID   uuid.UUID
}

// NamePage is a page of a list ordered by (name, id).
type NamePage struct {
	// After is the last entry of the previous page; nil starts the list.
	After *NameMark
	// Limit is the number of entries to return, 1 to 200.
	Limit int
}

const (
	defaultLimit = 50
	maxLimit     = 200
)

// The lists with pages: the first two are ordered by name, the others by instant.
const (
	listRules         = "rules"
	listWebhooks      = "webhooks"
	listAlerts        = "alerts"
	listNotifications = "notifications"
	listUsers         = "users"
	listTokens        = "tokens"
	listAuditLog      = "audit"
	listSilences      = "silences"
	listRuleHistory   = "history of rule"
	listNotes         = "notes of issue"
	// Groups are ordered by instant and by key, which the field Name contains.
	listGroups = "groups by "
	// Exchanges are ordered by start time and execution id, which the field Name contains.
	listExchanges = "exchanges"
)

// mark is the content of a cursor: the place of an entry in a list. Clients treat it as opaque.
type mark struct {
	// List names the list, so that a cursor of another list is refused.
	List string    `json:"l"`
	Name string    `json:"n,omitempty"`
	At   time.Time `json:"t,omitzero"`
	ID   uuid.UUID `json:"i,omitzero"`
	// Number is the place in a numbered list, or the rank of a group.
	Number int64 `json:"k,omitempty"`
}

func (m mark) encode() (string, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}

// decodeMark decodes the cursor of a list; nil means the beginning of the list.
func decodeMark(list string, text *string) (*mark, error) {
	if text == nil || *text == "" {
		return nil, nil //nolint:nilnil // no cursor is the ordinary beginning of a list
	}
	refused := invalidField("cursor", "malformed", "Must be a cursor of this list; begin without a cursor")
	data, err := base64.RawURLEncoding.Strict().DecodeString(*text)
	if err != nil {
		return nil, refused
	}
	var m mark
	if decodeStrict(data, &m) != nil || m.List != list || !m.ordered() {
		return nil, refused
	}
	return &m, nil
}

// ordered reports whether m has exactly the fields that its list is ordered by.
func (m mark) ordered() bool {
	if m.List == listAuditLog || m.List == listRuleHistory {
		return m.Number > 0 && m.Name == "" && m.At.IsZero() && m.ID == uuid.Nil
	}
	if m.List == listExchanges {
		return strings.HasPrefix(m.Name, idPrefix) && m.At.Year() >= 1970 && m.ID == uuid.Nil && m.Number == 0
	}
	// Groups may be ranked before they are ordered by time.
	ranked := strings.HasPrefix(m.List, listGroups) && m.Number >= 0
	if (m.Number != 0 && !ranked) || m.ID == uuid.Nil || !cleanText(m.Name) {
		return false
	}
	switch m.List {
	case listRules, listWebhooks, listUsers, listTokens:
		return m.Name != "" && m.At.IsZero()
	}
	return m.At.Year() >= 1970 && (m.Name == "" || strings.HasPrefix(m.List, listGroups))
}

// nextCursor returns the cursor after the last entry of a page, or nil if the page is not full and
// so the last one.
func nextCursor(length, limit int, last func() mark) (*string, error) {
	if length < limit {
		return nil, nil //nolint:nilnil // the last page has no cursor
	}
	text, err := last().encode()
	if err != nil {
		return nil, err
	}
	return &text, nil
}

func limitOf(limit *Limit) (int, error) {
	if limit == nil {
		return defaultLimit, nil
	}
	if *limit < 1 || *limit > maxLimit {
		return 0, invalidField("limit", "out_of_range", fmt.Sprintf("Must be from 1 to %d", maxLimit))
	}
	return *limit, nil
}

func namePage(list string, text *Cursor, limit *Limit) (NamePage, error) {
	n, err := limitOf(limit)
	if err != nil {
		return NamePage{}, err
	}
	m, err := decodeMark(list, text)
	if err != nil {
		return NamePage{}, err
	}
	page := NamePage{Limit: n}
	if m != nil {
		page.After = &NameMark{Name: m.Name, ID: m.ID}
	}
	return page, nil
}

// oneOf refuses unknown values of a repeated parameter.
func oneOf[T ~string](parameter string, values *[]T, known ...T) ([]T, error) {
	for _, v := range deref(values) {
		if !slices.Contains(known, v) {
			return nil, invalidField(parameter, "unknown_value", "Must be one of "+commaSeparated(known))
		}
	}
	return deref(values), nil
}

// commaSeparated returns texts for people.
func commaSeparated[T ~string](known []T) string {
	texts := make([]string, len(known))
	for i, v := range known {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

// texts refuses values of a repeated parameter that a store cannot compare.
func texts(parameter string, values []string, limit int) error {
	if len(values) > maxRepeated {
		return invalidField(parameter, "out_of_range", fmt.Sprintf("Must be at most %d values", maxRepeated))
	}
	for _, v := range values {
		if !cleanText(v) || len(v) > limit {
			return invalidField(parameter, "text", fmt.Sprintf("Must be valid text of at most %d bytes", limit))
		}
	}
	return nil
}

// cleanText reports whether Postgres can store text.
func cleanText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// optional returns nil for the zero value, which answers leave out.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
