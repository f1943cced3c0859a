package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong with a template, and where.
type Error struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int
	// Message tells a person what is wrong and what to write instead.
	Message string
}

// Error returns the place and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// scanner reads a template once and writes it anew for the engine, every
// variable as v0, v1 …. The engine splits names at dots, which attribute keys
// such as "http.status" would not survive, and knows no unknown names.
type scanner struct {
	text  string
	scope Scope
	known []variable
	out   strings.Builder
	open  []section
	tags  int
	// parts is the template as text and variables in turn, as long as it is not
	// branched by a section or, since it may take its line with it, a comment.
	parts    []part
	branched bool
	names    []string
	lookups  []lookup
}

type section struct {
	name string
	at   int
}

const (
	openTag  = "{{"
	closeTag = "}}"
)

func scan(text string, scope Scope) (*scanner, error) {
	s := &scanner{text: text, scope: scope, known: vocabulary()}
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
		s.literal(text[at:begin])
		end, err := s.tag(begin)
		if err != nil {
			return nil, err
		}
		at = end
	}
	s.literal(text[at:])
	if len(s.open) > 0 {
		last := s.open[len(s.open)-1]
		return nil, s.fail(last.at, "The section %q is never closed; write {{/%s}} where it ends", last.name, last.name)
	}
	return s, nil
}

// part is a text or, where variable is not negative, the variable of that number.
type part struct {
	text     string
	variable int
}

func (s *scanner) literal(text string) {
	s.out.WriteString(text)
	if text != "" {
		s.parts = append(s.parts, part{text: text, variable: -1})
	}
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
	kind := inner[0]
	name := strings.TrimSpace(inner[1:])
	s.branched = s.branched || strings.IndexByte("!#^/", kind) >= 0
	switch kind {
	case '!':
		s.out.WriteString("{{!}}")
		return end, nil
	case '>':
		return 0, s.fail(begin, "Partials are not supported; write the text of %q here instead", name)
	case '=':
		return 0, s.fail(begin, "Delimiters cannot be changed; write tags as {{name}}")
	case '#', '^':
		if len(s.open) == MaxDepth {
			return 0, s.fail(begin, "Sections are nested more than %d deep; flatten them", MaxDepth)
		}
		number, err := s.resolve(name, begin)
		if err != nil {
			return 0, err
		}
		s.open = append(s.open, section{name, begin})
		s.out.WriteString(openTag + string(kind) + engineName(number) + closeTag)
		return end, nil
	case '/':
		if len(s.open) == 0 {
			return 0, s.fail(begin, "{{/%s}} closes a section that was not opened; write {{#%s}} before it or remove it", name, name)
		}
		last := s.open[len(s.open)-1]
		if last.name != name {
			return 0, s.fail(begin, "{{/%s}} stands where {{/%s}} is expected; close sections in the order opposite to their opening", name, last.name)
		}
		s.open = s.open[:len(s.open)-1]
		number, err := s.resolve(name, begin)
		if err != nil {
			return 0, err
		}
		s.out.WriteString(openTag + "/" + engineName(number) + closeTag)
		return end, nil
	case '&':
	default:
		name = inner
	}
	if name == "." && len(s.open) > 0 {
		name = s.open[len(s.open)-1].name
	}
	number, err := s.resolve(name, begin)
	if err != nil {
		return 0, err
	}
	s.out.WriteString(openTag + "&" + engineName(number) + closeTag)
	s.parts = append(s.parts, part{variable: number})
	return end, nil
}

// inner returns what stands between the braces of a tag, trimmed and not
// empty. {{{name}}} becomes "&name", which means the same.
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

// resolve returns the number of a variable.
func (s *scanner) resolve(name string, at int) (int, error) {
	if i := slices.Index(s.names, name); i >= 0 {
		return i, nil
	}
	get, err := s.find(name)
	if err != "" {
		return 0, s.fail(at, "%s", err)
	}
	s.names = append(s.names, name)
	s.lookups = append(s.lookups, get)
	return len(s.names) - 1, nil
}

// find returns how the variable is read, or what is wrong with its name.
func (s *scanner) find(name string) (get lookup, problem string) {
	if key, found := strings.CutPrefix(name, attributePrefix); found {
		if key == "" {
			return nil, "An attribute's key is missing; write {{" + attributePrefix + "KEY}}"
		}
		return func(v *Values) string { return v.attribute(key) }, ""
	}
	for _, known := range s.known {
		if known.Name != name {
			continue
		}
		if s.scope == InTexts && !known.InTexts {
			return nil, fmt.Sprintf("%s is not known when title and message are written; use it in a webhook's body", name)
		}
		return known.get, ""
	}
	problem = fmt.Sprintf("There is no variable %q", abbreviated(name))
	if near := nearest(name, s.known, s.scope); near != "" {
		return nil, fmt.Sprintf("%s; did you mean %q?", problem, near)
	}
	return nil, problem + "; see the list of variables"
}

func (s *scanner) fail(at int, format string, args ...any) error {
	before := strings.ToValidUTF8(s.text[:at], "?")
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

func engineName(i int) string { return "v" + strconv.Itoa(i) }

func abbreviated(name string) string { return cut(name, 60) }
