// Package template turns Mustache templates and exchanges into the texts of alerts and the bodies
// of messages.
//
// Both inputs are untrusted. An exchange contains whatever bytes a failing program wrote. A
// template is written by a person who may not know what the engine can do, or may know it too well.
// Two steps make rendering safe by construction:
//
//   - A scanner of this package checks a template first. It refuses tags that could read a file or
//     make the template call itself (partials, changed delimiters), and bounds length, tags and
//     nesting. It knows every variable by name: a misspelt one is an error with the nearest name,
//     at its line and column, when the template is saved and not when an alert is due.
//   - The Mustache engine renders all templates. It only gets texts, variables, and sections over
//     conditions, maps and lists of clean strings. Lists are bounded. A budget bounds both the size
//     of a rendering and its number of steps; the engine takes a step before and after each tag. So
//     nested sections end, by a measure that does not depend on how busy the machine is.
//
// A JSON body is parsed as JSON, each of its strings is a template of its own, and the result is
// marshalled again: whatever an exchange contains, the output is valid JSON.
//
// A template that fails never holds up an alert: [Texts] falls back to the default texts and
// reports the problem with them.
package template

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cbroglie/mustache"

	"tocsin/internal/fault"
)

// Bounds of a template.
const (
	// MaxBytes bounds the text of a template.
	MaxBytes = 64 << 10
	// MaxDepth bounds the nesting of conditions.
	MaxDepth = 8
	// MaxTags bounds the number of tags in a template.
	MaxTags = 1000
)

// Bounds of a rendering.
const (
	// maxOutputBytes bounds the output before it is cut to its limit.
	maxOutputBytes = 256 << 10
	// maxSteps bounds the time, to about ten milliseconds.
	maxSteps = 20_000
)

var (
	// errOutput stops a rendering that is longer than any message.
	errOutput = errors.New("the output is too long; write less in the template")
	// errSteps stops one that takes too long.
	errSteps = errors.New("the template repeats too much; do not nest lists, and write less in them")
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	engine   *mustache.Template
	bindings []binding
	// constant says that the template has no tags.
	constant bool
	names    []string
}

// Parse parses a template with the variables of scope. Its error is an [*Error], which says where
// the error is and what to write instead.
func Parse(text string, scope Scope) (*Template, error) {
	s, err := scan(text, scope)
	if err != nil {
		return nil, err
	}
	engine, err := mustache.ParseStringPartials(s.out.String(), &mustache.StaticProvider{})
	if err != nil {
		return nil, &Error{Line: 1, Column: 1, Message: fmt.Sprintf("The template cannot be read: %v", err)}
	}
	return &Template{engine: engine, bindings: s.bindings, names: s.shown, constant: s.tags == 0}, nil
}

// Names returns the names of the variables that t shows, each once, in order.
func (t *Template) Names() []string { return t.names }

// Inputs returns the names of the inputs that t shows or depends on, each once.
func (t *Template) Inputs() []string {
	var names []string
	for i := range t.bindings {
		if name, found := strings.CutPrefix(t.bindings[i].name, inputPrefix); found && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Constant reports whether t has no tags.
func (t *Template) Constant() bool { return t.constant }

// Limit bounds a rendering.
type Limit struct {
	// Runes is the largest number of characters. A longer text is cut, with an ellipsis. 0 means no
	// limit.
	Runes int
	// OneLine replaces line breaks and other control characters by spaces.
	OneLine bool
	// Value, if not nil, is applied to the value of each variable. URL, if not nil, is applied
	// instead to those that are URLs.
	Value, URL func(string) string
}

// The limits of an alert's texts.
const (
	MaxTitleRunes   = 250
	MaxMessageRunes = 4000
)

// TitleLimit returns the limit of an alert's title: one line.
func TitleLimit() Limit { return Limit{Runes: MaxTitleRunes, OneLine: true} }

// MessageLimit returns the limit of an alert's message.
func MessageLimit() Limit { return Limit{Runes: MaxMessageRunes} }

// Text renders t as plain text, without escapes. An error means that the template cannot be
// rendered with these values. A text that is only too long is cut.
func (t *Template) Text(v *Values, limit Limit) (string, error) {
	text, err := t.render(v, limit, &budget{bytes: maxOutputBytes, steps: maxSteps})
	if err != nil {
		return "", err
	}
	if limit.OneLine {
		text = oneLine(text)
	}
	if text = strings.TrimSpace(text); limit.Runes == 0 {
		return text, nil
	}
	return cut(text, limit.Runes), nil
}

// render renders t within the rest of a budget.
func (t *Template) render(v *Values, limit Limit, w *budget) (text string, err error) {
	err = fault.Guard(func() error {
		context := make(map[string]any, len(t.bindings))
		for i := range t.bindings {
			context[t.bindings[i].engine] = t.bindings[i].value(v, limit)
		}
		w.text.Reset()
		return t.engine.FRender(w, context)
	})
	if w.err != nil && !fault.Panicked(err) {
		err = w.err // the engine ignores errors of variables
	}
	switch {
	case err == nil || errors.Is(err, errOutput):
	case errors.Is(err, errSteps):
		return "", err
	default:
		return "", fmt.Errorf("render template: %w", err)
	}
	return strings.ToValidUTF8(w.text.String(), "\uFFFD"), nil
}

// budget is a writer that accepts what fits and then always fails, even for empty writes, because
// the engine ignores the errors of some writes.
type budget struct {
	text         strings.Builder
	bytes, steps int
	err          error
}

var _ io.Writer = (*budget)(nil)

func (b *budget) Write(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.steps--; b.steps < 0 {
		b.err = errSteps
		return 0, b.err
	}
	n := min(len(p), b.bytes)
	b.bytes -= n
	b.text.Write(p[:n])
	if n < len(p) {
		b.err = errOutput
	}
	return n, b.err
}
