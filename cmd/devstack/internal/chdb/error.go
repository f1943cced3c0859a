package chdb

import (
	"fmt"
	"strconv"
	"strings"
)

// CodeUnknown is ClickHouse's code for an exception that carries none.
const CodeUnknown = 1002

// Error is an exception of the engine.
type Error struct {
	// Code is ClickHouse's own, as in system.errors.
	Code int
	// Text is the whole text, beginning with "Code: N. DB::Exception: ".
	Text string
}

// Error returns the engine's text.
func (e *Error) Error() string { return e.Text }

// newError reads the code from the text; a text without one gets CodeUnknown and the usual prefix.
func newError(text string) *Error {
	text = strings.TrimRight(text, "\n")
	digits, found := strings.CutPrefix(text, "Code: ")
	if end := strings.IndexByte(digits, '.'); found && end > 0 {
		if code, err := strconv.Atoi(digits[:end]); err == nil {
			return &Error{Code: code, Text: text}
		}
	}
	return &Error{Code: CodeUnknown, Text: fmt.Sprintf("Code: %d. DB::Exception: %s (UNKNOWN_EXCEPTION)", CodeUnknown, text)}
}

// codeBadArguments is what the engine answers when asked to stream a statement that has no stream.
const codeBadArguments = 36

// refusesStream reports that the engine did not run the statement because it only runs it as a whole.
func (e *Error) refusesStream() bool {
	return e.Code == codeBadArguments && strings.Contains(e.Text, "DB::Exception: Streaming query is not supported for query")
}
