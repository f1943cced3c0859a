// Package template turns Mustache templates and exchanges into the texts of
// alerts and the bodies of messages.
//
// Both sides are hostile until proven otherwise: an exchange holds whatever
// bytes a failing program wrote, and a template is written by a person who may
// not know, or may know too well, what the engine can be made to do. Safety is
// by construction, in two steps:
//
//   - A scanner of this package reads a template first. It refuses what could
//     read a file, call itself, or loop (partials, changed delimiters), bounds
//     length, tags and nesting, and knows every variable by name: a misspelt
//     one is an error with the nearest name, at its line and column, when the
//     template is saved and not when an alert is due.
//   - What is left for the engine are texts, variables and conditions over a
//     flat map of clean strings. There is nothing to iterate over, so the time of
//     a rendering is bounded by the template's length, and a budget bounds
//     what it writes.
//
// A JSON body is parsed as JSON, each of its strings is a template of its own,
// and the result is marshalled again: whatever an exchange contains, what
// comes out is valid JSON.
//
// A template that does not work out never keeps an alert back: [Texts] falls
// back to the default texts and reports the problem beside them.
package template

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cbroglie/mustache"
)

// Bounds of a template.
const (
	// MaxBytes bounds the text of a template.
	MaxBytes = 64 << 10
	// MaxDepth bounds how deeply conditions are nested.
	MaxDepth = 8
	// MaxTags bounds the number of tags in a template.
	MaxTags = 1000
)

// maxOutputBytes bounds what one rendering writes before it is cut to its limit.
const maxOutputBytes = 256 << 10

// errBudget stops a rendering that writes more than any message can hold.
var errBudget = errors.New("the output is too long")

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	engine *mustache.Template
	// variables are the values that the engine's text names v0, v1 ….
	variables []lookup
	// parts are those of a template without conditions; then engine is nil.
	parts []part
	// constant tells that the template has no tags.
	constant bool
	names    []string
}

// Parse reads a template whose variables are those of scope. Its error is an
// [*Error], which says where the trouble is and what to write instead.
func Parse(text string, scope Scope) (*Template, error) {
	s, err := scan(text, scope)
	if err != nil {
		return nil, err
	}
	t := &Template{variables: s.lookups, names: s.names, constant: s.tags == 0}
	if !s.branched {
		t.parts = s.parts
		return t, nil
	}
	engine, err := mustache.ParseStringPartials(s.out.String(), &mustache.StaticProvider{})
	if err != nil {
		return nil, &Error{Line: 1, Column: 1, Message: fmt.Sprintf("The template cannot be read: %v", err)}
	}
	t.engine = engine
	return t, nil
}

// Names returns the names of the variables that t uses, each once, in order.
func (t *Template) Names() []string { return t.names }

// Limit bounds what a rendering returns.
type Limit struct {
	// Runes is the greatest number of characters; the text is cut with an
	// ellipsis where it is longer.
	Runes int
	// OneLine makes line breaks and other control characters spaces.
	OneLine bool
	// Value, when not nil, is applied to the value of each variable.
	Value func(string) string
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

// Text renders t as plain text: nothing is escaped. An error means that the
// template cannot be rendered with these values, whatever they are; a text that
// is merely long is cut.
func (t *Template) Text(v *Values, limit Limit) (string, error) {
	text, err := t.render(v, limit.Value)
	if err != nil {
		return "", err
	}
	if limit.OneLine {
		text = oneLine(text)
	}
	return cut(strings.TrimSpace(text), limit.Runes), nil
}

func (t *Template) render(v *Values, value func(string) string) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			text, err = "", fmt.Errorf("render template: %v", r)
		}
	}()
	if t.engine == nil {
		return t.joined(v, value), nil
	}
	context := make(map[string]string, len(t.variables))
	for i, variable := range t.variables {
		s := variable(v)
		if value != nil {
			s = value(s)
		}
		context[engineName(i)] = s
	}
	w := &budget{left: maxOutputBytes}
	if err := t.engine.FRender(w, context); err != nil && !errors.Is(err, errBudget) {
		return "", fmt.Errorf("render template: %w", err)
	}
	return strings.ToValidUTF8(w.text.String(), "\uFFFD"), nil
}

// joined renders a template without conditions, for which the engine would do
// much and decide nothing.
func (t *Template) joined(v *Values, value func(string) string) string {
	if t.constant && len(t.parts) == 1 {
		return t.parts[0].text
	}
	w := budget{left: maxOutputBytes}
	for _, p := range t.parts {
		text := p.text
		if p.variable >= 0 {
			text = t.variables[p.variable](v)
			if value != nil {
				text = value(text)
			}
		}
		if !w.write(text) {
			break
		}
	}
	return strings.ToValidUTF8(w.text.String(), "\uFFFD")
}

// budget is a writer that keeps what it can and then fails for good. The engine
// ignores the errors of some writes, so it must stay failed.
type budget struct {
	text strings.Builder
	left int
}

var _ io.Writer = (*budget)(nil)

// write is Write, and reports whether there was room for the whole text.
func (b *budget) write(text string) bool {
	n := min(len(text), b.left)
	b.left -= n
	b.text.WriteString(text[:n])
	return n == len(text)
}

func (b *budget) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.text.Write(p[:n])
	if n < len(p) {
		b.left = 0
		return n, errBudget
	}
	return n, nil
}
