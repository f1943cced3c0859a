package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a JSON body.
const (
	// MaxJSONDepth bounds the nesting of arrays and objects in a body.
	MaxJSONDepth = 32
	// MaxJSONBytes bounds the size of a rendered body.
	MaxJSONBytes = 256 << 10
)

// JSON is a parsed JSON body template: JSON in which every string value is a template. Variables
// occur only inside strings, and the result is valid JSON for all values. It is safe for concurrent
// use.
type JSON struct {
	root  node
	names []string
}

// ParseJSON reads a JSON body template. Its error is an [*Error].
func ParseJSON(text string, scope Scope) (*JSON, error) {
	place := &scanner{text: text}
	if len(text) > MaxBytes {
		return nil, place.fail(0, "The template is longer than %d bytes; shorten it", MaxBytes)
	}
	if !utf8.ValidString(text) {
		return nil, place.fail(0, "The template must be valid UTF-8 text")
	}
	p := &jsonParser{decoder: json.NewDecoder(strings.NewReader(text)), place: place, scope: scope}
	p.decoder.UseNumber()
	root, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, p.fail("There is text after the JSON value; remove it")
	}
	return &JSON{root: root, names: p.names}, nil
}

// Names returns the names of the variables that j shows, each once, in order.
func (j *JSON) Names() []string { return j.names }

// Render returns the body for v. If value is not nil, it is applied to the value of each variable;
// it escapes what the receiver's markup needs. An error means that the body cannot be rendered or
// is longer than [MaxJSONBytes].
func (j *JSON) Render(v *Values, value func(string) string) ([]byte, error) {
	r := rendering{values: v, value: value, budget: budget{bytes: maxOutputBytes, steps: maxSteps}}
	if err := j.root.write(&r); err != nil {
		return nil, err
	}
	return r.out.Bytes(), nil
}

// rendering is the rendering of a body, whose strings share a budget.
type rendering struct {
	out    bytes.Buffer
	values *Values
	value  func(string) string
	budget budget
}

// node is a value of a JSON template.
type node interface {
	write(r *rendering) error
}

type (
	// constant is JSON that is the same for all values.
	constant []byte
	leaf     struct{ template *Template }
	array    []node
	object   []member
	member   struct {
		key   constant
		value node
	}
)

func (c constant) write(r *rendering) error {
	r.out.Write(c)
	return nil
}

func (l leaf) write(r *rendering) error {
	text, err := l.template.render(r.values, Limit{Value: r.value}, &r.budget)
	if err != nil {
		return err
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("render template: %w", err)
	}
	if r.out.Len()+len(quoted) > MaxJSONBytes {
		return fmt.Errorf("render template: the body is longer than %d bytes", MaxJSONBytes)
	}
	r.out.Write(quoted)
	return nil
}

func (a array) write(r *rendering) error {
	r.out.WriteByte('[')
	for i, element := range a {
		if i > 0 {
			r.out.WriteByte(',')
		}
		if err := element.write(r); err != nil {
			return err
		}
	}
	r.out.WriteByte(']')
	return nil
}

func (o object) write(r *rendering) error {
	r.out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			r.out.WriteByte(',')
		}
		r.out.Write(m.key)
		r.out.WriteByte(':')
		if err := m.value.write(r); err != nil {
			return err
		}
	}
	r.out.WriteByte('}')
	return nil
}

type jsonParser struct {
	decoder *json.Decoder
	place   *scanner
	scope   Scope
	names   []string
	tags    int
}

func (p *jsonParser) value(depth int) (node, error) {
	if depth > MaxJSONDepth {
		return nil, p.fail("The JSON is nested more than %d deep; flatten it", MaxJSONDepth)
	}
	begin := p.next()
	token, err := p.decoder.Token()
	if err != nil {
		return nil, p.syntax(err)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case string:
		return p.leaf(t, begin)
	default:
		return p.constant(t)
	}
}

func (p *jsonParser) constant(value any) (constant, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, p.fail("The value cannot be read: %v", err)
	}
	return text, nil
}

func (p *jsonParser) leaf(text string, begin int) (node, error) {
	template, err := Parse(text, p.scope)
	if err != nil {
		if inner, ok := errors.AsType[*Error](err); ok {
			return nil, p.place.fail(begin, "%s", inner.Message)
		}
		return nil, err
	}
	if template.constant {
		return p.constant(text)
	}
	if p.tags += strings.Count(text, openTag); p.tags > MaxTags {
		return nil, p.fail("The template has more than %d tags; shorten it", MaxTags)
	}
	for _, name := range template.names {
		if !slices.Contains(p.names, name) {
			p.names = append(p.names, name)
		}
	}
	return leaf{template}, nil
}

func (p *jsonParser) array(depth int) (node, error) {
	list := array{}
	for p.decoder.More() {
		element, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	return list, p.close()
}

func (p *jsonParser) object(depth int) (node, error) {
	members := object{}
	seen := map[string]bool{}
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return nil, p.syntax(err)
		}
		key, ok := token.(string)
		if !ok {
			return nil, p.fail("A member of an object needs a name in quotes")
		}
		if strings.Contains(key, openTag) {
			return nil, p.fail("The name of a member cannot contain a variable; put the variable into the value")
		}
		if seen[key] {
			return nil, p.fail("The member %q appears twice; remove one", abbreviated(key))
		}
		seen[key] = true
		name, err := p.constant(key)
		if err != nil {
			return nil, err
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
	return members, p.close()
}

func (p *jsonParser) close() error {
	if _, err := p.decoder.Token(); err != nil {
		return p.syntax(err)
	}
	return nil
}

// syntax says how to correct JSON that cannot be parsed.
func (p *jsonParser) syntax(err error) error {
	at := int(p.decoder.InputOffset())
	before, rest := p.place.text[:min(at, len(p.place.text))], p.place.text[min(at, len(p.place.text)):]
	switch {
	// The first brace of a tag looks like the beginning of an object.
	case strings.HasSuffix(before, "{") && strings.HasPrefix(rest, "{"):
		return p.fail("A variable must be inside a string in JSON; write it in quotes, as \"{{exchange.route}}\"")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return p.fail("The JSON ends too early; a quote, bracket or brace is missing")
	default:
		return p.fail("The template is not valid JSON: %v", err)
	}
}

// next returns where the next token begins.
func (p *jsonParser) next() int {
	at := min(int(p.decoder.InputOffset()), len(p.place.text))
	return len(p.place.text) - len(strings.TrimLeft(p.place.text[at:], " \t\r\n:,"))
}

func (p *jsonParser) fail(format string, args ...any) error {
	return p.place.fail(min(int(p.decoder.InputOffset()), len(p.place.text)), format, args...)
}
