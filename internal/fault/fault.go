// Package fault gives errors a kind that every layer understands, and the fields that they concern.
// A fault is made where the problem is known, and turned into an answer in only one place, the API.
// An error without a kind is internal: its text is logged and never shown.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what a caller can do about an error.
type Kind int

// The kinds. The zero value is [Internal].
const (
	// Internal is a failure of Tocsin or of what it depends on.
	Internal Kind = iota
	// Invalid is input that can never be accepted as it is; see its fields.
	Invalid
	// NotFound means that something does not exist for this tenant.
	NotFound
	// Conflict means that a request contradicts the present state.
	Conflict
	// Stale means that an edited version is not the newest any more.
	Stale
)

// String returns the kind in snake case, as it appears in logs and answers.
func (k Kind) String() string {
	switch k {
	case Internal:
		return "internal"
	case Invalid:
		return "invalid"
	case NotFound:
		return "not_found"
	case Conflict:
		return "conflict"
	case Stale:
		return "stale"
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

// Field is an error in one field of an input.
type Field struct {
	// Field is the path in the terms of the input, such as "filter.statuses[0]".
	Field string `json:"field"`
	// Code names the broken rule in snake case, such as "not_applicable".
	Code string `json:"code"`
	// Message says what is wrong and what to do, for people.
	Message string `json:"message"`
}

// Error is an error of a known kind.
type Error struct {
	Kind    Kind
	Message string
	Fields  []Field
}

// New returns an error of kind with a message for people.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// InvalidFields returns an [Invalid] error about fields, or nil if there are none.
func InvalidFields(what string, fields []Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Message: what + " is not valid", Fields: fields}
}

// Error returns the message and, for an invalid input, the message of each field.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Fields {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(f.Field + ": " + f.Message)
	}
	return b.String()
}

// KindOf returns the kind of the first [Error] in err's chain; otherwise [Internal].
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
