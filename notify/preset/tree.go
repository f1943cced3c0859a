package preset

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tocsin/notify/template"
)

// encoding is the format of a body.
type encoding string

const (
	encodingJSON encoding = "json"
	encodingForm encoding = "form"
	// encodingEmail is a mapping of subject, text and html; see [Preset.Mail].
	encodingEmail encoding = "email"
)

// Bounds of a body's tree.
const (
	maxTreeDepth = 20
	maxTreeNodes = 2000
)

// node is a value in a body. An empty value is absent.
type node interface {
	render(r *rendering) (value any, present bool)
}

type (
	// constant is the same for all alerts.
	constant struct{ value any }
	object   struct {
		members []member
		needs   []string
	}
	member struct {
		name  string
		value node
	}
	list []node
	// leaf is a text.
	leaf struct {
		pointer  string
		template *template.Template
		limit    int
		unit     unit
		oneLine  bool
		// domain leaves out a link to a host without a dot in its name.
		domain bool
		// html escapes values for HTML, instead of the preset's own markup.
		html bool
		// plain escapes nothing.
		plain bool
	}
	// link is a URL for people. Unlike a text it is never cut: it is complete or absent.
	link     struct{ leaf *leaf }
	number   struct{ template *template.Template }
	severity struct{}
	nested   struct{ tree node }
	// first is the first present value of several.
	first []node
	// secret is an input that is not stored; see [Preset.Reveal].
	secret struct{ input string }
)

// place is the place of a node in a body.
type place struct {
	path []string
	// inside says that the place may not hold secrets, because it is within a list or a nested
	// tree.
	inside bool
	depth  int
}

func (p place) below(name string, inside bool) place {
	return place{path: append(slices.Clip(slices.Clone(p.path)), name), inside: p.inside || inside, depth: p.depth + 1}
}

func (p place) pointer() string {
	var b strings.Builder
	for _, name := range p.path {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// Keys with a meaning.
const (
	keyNumber   = "$number"
	keySeverity = "$severity"
	keyURL      = "$url"
	keyJSON     = "$json"
	keyHTML     = "$html"
	keyPlain    = "$plain"
	keyFirst    = "$first"
	keyNeeds    = "$needs"
)

// tree reads a body.
func (r *reader) tree(n *yaml.Node, at place) (node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if r.nodes++; r.nodes > maxTreeNodes || at.depth > maxTreeDepth {
		return nil, r.fail(n.Line, "The bodies are too large; at most %d values, nested at most %d deep", maxTreeNodes, maxTreeDepth)
	}
	switch n.Kind { //nolint:exhaustive // a document has no document in it, and aliases are resolved
	case yaml.MappingNode:
		return r.mapping(n, at)
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return constant{[]any{}}, nil
		}
		made := list{}
		for _, element := range n.Content {
			value, err := r.tree(element, at.below("*", true))
			if err != nil {
				return nil, err
			}
			made = append(made, value)
		}
		return made, nil
	case yaml.ScalarNode:
		if n.Tag == "!!str" {
			return r.leaf(n, at)
		}
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, r.syntax(err)
		}
		return constant{value}, nil
	}
	return nil, r.fail(n.Line, "the value cannot be read")
}

func (r *reader) mapping(n *yaml.Node, at place) (node, error) {
	if len(n.Content) == 2 && strings.HasPrefix(n.Content[0].Value, "$") && n.Content[0].Value != keyNeeds {
		return r.typed(n.Content[0].Value, n.Content[1], at)
	}
	made := object{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value == keyNeeds {
			if err := value.Decode(&made.needs); err != nil {
				return nil, r.fail(value.Line, "$needs is a list of names")
			}
			continue
		}
		if strings.HasPrefix(key.Value, "$") {
			return nil, r.fail(key.Line, "%s must be the only member; the operators are $number, $severity, $url, $html, $plain, $json and $first, and $needs, which may have other members beside it", key.Value)
		}
		if strings.Contains(key.Value, "{{") {
			return nil, r.fail(key.Line, "the name of a member cannot contain a variable; put the variable into the value")
		}
		if slices.ContainsFunc(made.members, func(m member) bool { return m.name == key.Value }) {
			return nil, r.fail(key.Line, "the member %q appears twice; remove one", key.Value)
		}
		child, err := r.tree(value, at.below(key.Value, false))
		if err != nil {
			return nil, err
		}
		if r.preset.encoding == encodingForm {
			switch child.(type) {
			case object, list:
				return nil, r.fail(value.Line, "a form contains only texts and numbers; write %s as $json", key.Value)
			}
		}
		made.members = append(made.members, member{key.Value, child})
	}
	for _, name := range made.needs {
		if !slices.ContainsFunc(made.members, func(m member) bool { return m.name == name }) {
			return nil, r.fail(n.Line, "$needs names %q, which is not a member", name)
		}
	}
	return made, nil
}

// typed reads a mapping with one key, which says what the value is.
func (r *reader) typed(key string, n *yaml.Node, at place) (node, error) {
	switch key {
	case keySeverity:
		for _, name := range severityNames()[:3] {
			if r.preset.severity[name] == nil {
				return nil, r.fail(n.Line, "$severity needs severity.%s at the top of the file", name)
			}
		}
		return severity{}, nil
	case keyJSON:
		tree, err := r.tree(n, place{path: at.path, inside: true, depth: at.depth + 1})
		return nested{tree}, err
	case keyFirst:
		made := first{}
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			return nil, r.fail(n.Line, "$first must be a list of values; the first one that is not empty is used")
		}
		for _, element := range n.Content {
			value, err := r.tree(element, place{path: at.path, inside: true, depth: at.depth + 1})
			if err != nil {
				return nil, err
			}
			made = append(made, value)
		}
		return made, nil
	case keyNumber:
		parsed, err := r.parsed(n)
		return number{parsed}, err
	case keyHTML, keyPlain:
		parsed, err := r.parsed(n)
		if err != nil {
			return nil, err
		}
		l := &leaf{pointer: at.pointer(), template: parsed, html: key == keyHTML, plain: key == keyPlain}
		r.leaves[l.pointer] = append(r.leaves[l.pointer], l)
		return l, nil
	case keyURL:
		parsed, err := r.parsed(n)
		if err != nil {
			return nil, err
		}
		l := &leaf{pointer: at.pointer(), template: parsed}
		r.leaves[l.pointer] = append(r.leaves[l.pointer], l)
		return link{l}, nil
	}
	return nil, r.fail(n.Line, "unknown operator %s; the operators are $number, $severity, $url, $html, $plain, $json and $first, and $needs, which may have other members beside it", key)
}

// parsed reads a template that contains no secret.
func (r *reader) parsed(n *yaml.Node) (*template.Template, error) {
	t, err := template.Parse(n.Value, template.InPreset)
	if err != nil {
		return nil, r.template(n, err)
	}
	if err := r.known(n, t); err != nil {
		return nil, err
	}
	for _, name := range t.Names() {
		if input, found := strings.CutPrefix(name, "input."); found && r.preset.input(input).Secret {
			return nil, r.fail(n.Line, "the secret %q must be the whole value of a member, as \"{{input.%s}}\": bodies are stored without secrets", input, input)
		}
	}
	return t, nil
}

// leaf reads a text.
func (r *reader) leaf(n *yaml.Node, at place) (node, error) {
	if name, found := strings.CutPrefix(n.Value, "{{input."); found && strings.HasSuffix(name, "}}") {
		if in := r.preset.input(strings.TrimSuffix(name, "}}")); in != nil && in.Secret {
			if at.inside {
				return nil, r.fail(n.Line, "a secret cannot be in a list or in $json; put it into a member of a mapping")
			}
			pointer := strings.Join(at.path, "\x00")
			if was, found := r.preset.secretAt[pointer]; found && was != in.Name {
				return nil, r.fail(n.Line, "the secrets %q and %q are at the same place of two bodies; use one secret for both", was, in.Name)
			}
			r.preset.secretAt[pointer] = in.Name
			return secret{in.Name}, nil
		}
	}
	parsed, err := r.parsed(n)
	if err != nil {
		return nil, err
	}
	if parsed.Constant() {
		return constant{n.Value}, nil
	}
	l := &leaf{pointer: at.pointer(), template: parsed}
	r.leaves[l.pointer] = append(r.leaves[l.pointer], l)
	return l, nil
}

func (c constant) render(*rendering) (any, bool) { return c.value, true }

func (o object) render(r *rendering) (any, bool) {
	made := make(map[string]any, len(o.members))
	for _, m := range o.members {
		if value, present := m.value.render(r); present {
			made[m.name] = value
		}
	}
	for _, name := range o.needs {
		if _, present := made[name]; !present {
			return nil, false
		}
	}
	return made, len(made) > 0
}

func (l list) render(r *rendering) (any, bool) {
	made := make([]any, 0, len(l))
	for _, element := range l {
		if value, present := element.render(r); present {
			made = append(made, value)
		}
	}
	return made, len(made) > 0
}

func (f first) render(r *rendering) (any, bool) {
	for _, n := range f {
		if value, present := n.render(r); present {
			return value, true
		}
	}
	return nil, false
}

func (n number) render(r *rendering) (any, bool) {
	text, err := n.template.Text(r.values, template.Limit{OneLine: true})
	if r.failed(err) || text == "" {
		return nil, false
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
		return nil, false
	}
	return json.Number(text), true
}

// Keys that the map of severities may have in addition to severities.
const (
	severityAcknowledged = "ACKNOWLEDGED"
	severityResolved     = "RESOLVED"
)

func (severity) render(r *rendering) (any, bool) { return r.inOwnWords(), true }

// inOwnWords returns the severity in the receiver's own words.
func (r *rendering) inOwnWords() any {
	if r.event == Resolved && r.preset.severity[severityResolved] != nil {
		return r.preset.severity[severityResolved]
	}
	if r.event == Acknowledged && r.preset.severity[severityAcknowledged] != nil {
		return r.preset.severity[severityAcknowledged]
	}
	if value := r.preset.severity[r.severity]; value != nil {
		return value
	}
	return r.preset.severity["WARNING"]
}

func (n nested) render(r *rendering) (any, bool) {
	value, present := n.tree.render(r)
	if !present {
		return nil, false
	}
	text, err := marshal(value)
	if r.failed(err) {
		return nil, false
	}
	return string(text), true
}

func (s secret) render(r *rendering) (any, bool) {
	return redacted, r.inputs[s.input] != ""
}
