package rules

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tocsin/cursor"
)

// Status is the state of an exchange.
type Status string

// The statuses. Completed and Failed are terminal: an exchange never leaves them.
const (
	Running   Status = "RUNNING"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
)

// Exchange is one execution of a route, job or request, as its source stores it. Its texts may
// contain any bytes. The JSON form is the one in which alerts store a cleaned exchange.
type Exchange struct {
	TenantID    string `json:"tenantId"`
	StartTimeNS int64  `json:"startTimeNs"`
	ExecutionID string `json:"executionId"`
	Environment string `json:"environment"`
	Application string `json:"application"`
	Route       string `json:"route"`
	Status      Status `json:"status"`
	// EndTimeNS is nil if the source does not say when the exchange ended.
	EndTimeNS     *int64            `json:"endTimeNs,omitempty"`
	DurationNS    int64             `json:"durationNs"`
	ErrorType     string            `json:"errorType,omitempty"`
	ErrorMessage  string            `json:"errorMessage,omitempty"`
	ErrorStack    string            `json:"errorStack,omitempty"`
	CorrelationID string            `json:"correlationId,omitempty"`
	Attributes    map[string]string `json:"attributes,omitempty"`
}

// Position returns the place of e in evaluation order.
func (e *Exchange) Position() cursor.Position {
	return cursor.Position{StartTimeNS: e.StartTimeNS, ExecutionID: e.ExecutionID}
}

// Key returns the text under which e has at most one alert for each rule.
func (e *Exchange) Key() string { return cursor.Key(e.ExecutionID) }

// EndedNS returns when e ended, in nanoseconds since the Unix epoch. If the source has no end, it
// returns the start.
func (e *Exchange) EndedNS() int64 {
	if e.EndTimeNS != nil {
		return *e.EndTimeNS
	}
	return e.StartTimeNS
}

// Bounds of the stored texts of an exchange, in bytes.
const (
	maxNameBytes    = 1 << 10
	maxMessageBytes = 16 << 10
	maxStackBytes   = 32 << 10
	maxAttributes   = 100
)

// Clean returns a copy of e that any store and any message can contain: texts are valid UTF-8
// without NUL and within bounds. The execution id becomes its [Exchange.Key]. Only what is stored
// and shown is cleaned; matching and the cursor use the bytes of the source.
func (e *Exchange) Clean() Exchange {
	c := *e
	c.ExecutionID = e.Key()
	for _, name := range []*string{&c.TenantID, &c.Environment, &c.Application, &c.Route, &c.ErrorType, &c.CorrelationID} {
		*name = CleanText(*name, maxNameBytes)
	}
	c.ErrorMessage = CleanText(c.ErrorMessage, maxMessageBytes)
	c.ErrorStack = CleanText(c.ErrorStack, maxStackBytes)
	c.Attributes = make(map[string]string, min(len(e.Attributes), maxAttributes))
	for _, key := range slices.Sorted(maps.Keys(e.Attributes)) {
		if len(c.Attributes) == maxAttributes {
			break
		}
		c.Attributes[CleanText(key, maxNameBytes)] = CleanText(e.Attributes[key], maxNameBytes)
	}
	return c
}

// CleanText returns text as valid UTF-8 without NUL. Each invalid byte is replaced by U+FFFD. A
// longer text is cut to at most limit bytes, with an ellipsis. limit is at least 3.
func CleanText(text string, limit int) string {
	if len(text) <= limit && utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	long := len(text) > limit
	if long {
		text = text[:limit]
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
	if !long && len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := 0
	for i, r := range text {
		if i+len(string(r)) > limit-len(ellipsis) {
			break
		}
		end = i + len(string(r))
	}
	return text[:end] + ellipsis
}
