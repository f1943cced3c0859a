package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is an error in a template, with its place.
type Error struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int
	// Message says what is wrong and what to write instead.
	Message string
}

// Error returns the place and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// scanner reads a template once and rewrites it for the engine: every value as v0, v1 … and every
// condition, map or list as s0, s1 …. The engine splits names at dots, which breaks attribute keys
// such as "http.status", and accepts unknown names.
type scanner struct {
	text  string
	scope Scope
	known []variable
	out   strings.Builder
	open  []section
	tags  int
	// bindings are the meanings of the engine's names; numbers holds their indexes.
	bindings []binding
	numbers  map[string]int
	// shown are the names of the variables that the template shows.
	shown []string
}

// section is an open section. Unless it is inverted, names within it are looked up in its entity
// first.
type section struct {
	entity

	inverted bool
	engine   string
	at       int
}

const (
	openTag  = "{{"
	closeTag = "}}"
)

func scan(text string, scope Scope) (*scanner, error) {
	s := &scanner{text: text, scope: scope, known: vocabulary(), numbers: map[string]int{}}
	if scope == InPreset {
		s.known = append(s.known, requestVariables()...)
	}
	if len(text) > MaxBytes {
		return nil, s.fail(0, "The template is longer than %d bytes; shorten it", MaxBytes)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, s.fail(0, "The template must be valid UTF-8 text without NUL")
	}
	at := 0
	for {
		begin := strings.Index(text[at:], openTag)
		if begin < 0 {
			break
		}
		begin += at
		s.out.WriteString(text[at:begin])
		end, err := s.tag(begin)
		if err != nil {
			return nil, err
		}
		at = end
	}
	s.out.WriteString(text[at:])
	if len(s.open) > 0 {
		last := s.open[len(s.open)-1]
		return nil, s.fail(last.at, "The section %q is never closed; write {{/%s}} where it ends", last.written, last.written)
	}
	return s, nil
}

// tag reads the tag that begins at begin and returns where it ends.
func (s *scanner) tag(begin int) (end int, err error) {
	if s.tags++; s.tags > MaxTags {
		return 0, s.fail(begin, "The template has more than %d tags; shorten it", MaxTags)
	}
	inner, end, err := s.inner(begin)
	if err != nil {
		return 0, err
	}
	name := strings.TrimSpace(inner[1:])
	switch kind := inner[0]; kind {
	case '!':
		s.out.WriteString("{{!}}")
	case '>':
		return 0, s.fail(begin, "Partials are not supported; write the text of %q here instead", name)
	case '=':
		return 0, s.fail(begin, "Delimiters cannot be changed; write tags as {{name}}")
	case '#', '^':
		err = s.begin(begin, kind, name)
	case '/':
		err = s.end(begin, name)
	case '&':
		err = s.variable(begin, name)
	default:
		err = s.variable(begin, inner)
	}
	return end, err
}

// begin opens a section.
func (s *scanner) begin(at int, kind byte, name string) error {
	if len(s.open) == MaxDepth {
		return s.fail(at, "Sections are nested more than %d deep; flatten them", MaxDepth)
	}
	e, problem := s.find(name)
	if problem != "" {
		return s.fail(at, "%s", problem)
	}
	e.written = name
	opened := section{entity: e, inverted: kind == '^', engine: e.member, at: at}
	if e.member == "" {
		opened.engine = s.bind("s", e)
	}
	s.open = append(s.open, opened)
	s.out.WriteString(openTag + string(kind) + opened.engine + closeTag)
	return nil
}

// end closes the innermost section.
func (s *scanner) end(at int, name string) error {
	if len(s.open) == 0 {
		return s.fail(at, "{{/%s}} closes a section that was not opened; write {{#%s}} before it or remove it", name, name)
	}
	last := s.open[len(s.open)-1]
	if last.written != name {
		return s.fail(at, "Found {{/%s}} where {{/%s}} is expected; close the section that was opened last first", name, last.written)
	}
	s.open = s.open[:len(s.open)-1]
	s.out.WriteString(openTag + "/" + last.engine + closeTag)
	return nil
}

// variable writes a tag that shows a text.
func (s *scanner) variable(at int, name string) error {
	e, problem := s.find(name)
	switch {
	case problem != "":
		return s.fail(at, "%s", problem)
	case e.member != "":
		s.out.WriteString(openTag + "&" + e.member + closeTag)
		return nil
	case e.items != nil:
		return s.fail(at, "%s is a list; write {{#%s}}%s{{/%s}}", e.name, e.name, e.example(), e.name)
	case e.text == nil:
		return s.fail(at, "%s contains several values; name one, such as {{%s%s}}", e.name, e.prefix, e.example())
	}
	if !slices.Contains(s.shown, e.name) {
		s.shown = append(s.shown, e.name)
	}
	s.out.WriteString(openTag + "&" + s.bind("v", e) + closeTag)
	return nil
}

// bind returns the engine's name for an entity.
func (s *scanner) bind(kind string, e entity) string {
	key := kind + e.name + "\x00" + e.key
	number, found := s.numbers[key]
	if !found {
		number = len(s.bindings)
		s.numbers[key] = number
		s.bindings = append(s.bindings, binding{kind + strconv.Itoa(number), kind == "s", e})
	}
	return s.bindings[number].engine
}

// inner returns the text between the braces of a tag, trimmed and not empty. {{{name}}} becomes
// "&name", which means the same.
func (s *scanner) inner(begin int) (inner string, end int, err error) {
	from, closing := begin+len(openTag), closeTag
	triple := strings.HasPrefix(s.text[from:], "{")
	if triple {
		from, closing = from+1, "}"+closeTag
	}
	length := strings.Index(s.text[from:], closing)
	if length < 0 {
		return "", 0, s.fail(begin, "The tag is never closed; end it with %s", closing)
	}
	inner = strings.TrimSpace(s.text[from : from+length])
	end = from + length + len(closing)
	if inner == "" {
		return "", 0, s.fail(begin, "The tag is empty; name a variable, such as {{exchange.route}}")
	}
	if strings.ContainsAny(inner[:1], "{}<") || strings.Contains(inner, openTag) {
		return "", 0, s.fail(begin, "The tag %q cannot be read; write {{name}}", abbreviated(inner))
	}
	if triple {
		if strings.ContainsAny(inner[:1], "!>=#^/&") {
			return "", 0, s.fail(begin, "The tag %q cannot be read; write it with two braces", abbreviated(inner))
		}
		inner = "&" + inner
	}
	return inner, end, nil
}

// find returns what a name means at the scanner's position, or what is wrong with it.
func (s *scanner) find(name string) (e entity, problem string) {
	return s.within(s.open, name)
}

// within looks up a name in open sections, from the innermost to the outermost, and then among the
// variables.
func (s *scanner) within(open []section, name string) (e entity, problem string) {
	if len(open) == 0 {
		return s.global(name)
	}
	last, outer := open[len(open)-1], open[:len(open)-1]
	switch {
	case last.inverted:
	case name == "." && (last.text != nil || last.member != ""):
		return last.entity, ""
	case slices.Contains(last.members, name):
		return entity{name: last.name + "." + name, member: engineMember(name)}, ""
	case name == ".":
		return s.global(name)
	case last.prefix == attributePrefix:
		e, problem = s.within(outer, name)
		if problem != "" || e.text == nil && e.member == "" {
			return s.global(attributePrefix + name)
		}
		if e.member == "" {
			e = shadowed(e, name)
		}
		return e, ""
	case last.prefix != "":
		if e, problem = s.global(last.prefix + name); problem == "" {
			return e, ""
		}
	}
	return s.within(outer, name)
}

// shadowed is a variable that is hidden by an attribute of the same name.
func shadowed(outer entity, key string) entity {
	return entity{name: outer.name, key: key, text: func(v *Values) string {
		if _, found := v.exchange.Attributes[key]; found {
			return v.attribute(key)
		}
		return outer.text(v)
	}}
}

// global returns the meaning of a full name.
func (s *scanner) global(name string) (e entity, problem string) {
	if key, found := strings.CutPrefix(name, attributePrefix); found {
		if key == "" {
			return e, "An attribute's key is missing; write {{" + attributePrefix + "KEY}}"
		}
		return entity{name: name, text: func(v *Values) string { return v.attribute(key) }}, ""
	}
	for _, known := range structures() {
		if known.name == name {
			return known, ""
		}
	}
	if key, found := strings.CutPrefix(name, labelPrefix); found {
		if key == "" {
			return e, "A label's key is missing; write {{" + labelPrefix + "KEY}}"
		}
		return entity{name: name, text: func(v *Values) string { return v.label(key) }}, ""
	}
	if input, found := strings.CutPrefix(name, inputPrefix); found && s.scope == InPreset {
		if input == "" {
			return e, "An input's name is missing; write {{" + inputPrefix + "NAME}}"
		}
		return entity{name: name, text: func(v *Values) string { return v.input(input) }}, ""
	}
	for _, known := range s.known {
		if known.Name != name {
			continue
		}
		if s.scope == InTexts && !known.InTexts {
			return e, fmt.Sprintf("%s is not available in titles and messages; use it in a webhook's body", name)
		}
		return entity{name: name, text: known.get}, ""
	}
	problem = fmt.Sprintf("Unknown variable %q", abbreviated(name))
	if near := nearest(name, s.known, s.scope); near != "" {
		return e, fmt.Sprintf("%s; did you mean %q?", problem, near)
	}
	return e, problem + "; see the list of variables"
}

func (s *scanner) fail(at int, format string, args ...any) error {
	before := strings.ToValidUTF8(s.text[:at], "?")
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

func abbreviated(name string) string { return cut(name, 60) }
