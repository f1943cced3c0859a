// Package rulefile reads and writes rules, webhooks, users, teams, routes, silences and views as YAML files.
//
// A file holds one document, {webhooks: […], users: […], teams: […], routes: […], rules: […],
// silences: […], views: […]}. Its entries are the definitions of the API, field by field. Only the
// server knows which values are valid. This package turns YAML into the JSON that the API takes,
// and JSON into YAML. It knows the position of each value in the files, so that the server's
// findings are reported by file and line.
//
// Nothing is guessed: texts stay texts (yes, 2026-01-01). A duplicate key is refused, and so is
// everything that JSON does not have. Anchors are followed, up to a bound.
package rulefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes and maxDepth bound the size to which anchors may expand a file.
const (
	maxNodes = 1_000_000
	maxDepth = 100
)

// The sections of a document.
const (
	Webhooks = "webhooks"
	Users    = "users"
	Teams    = "teams"
	Routes   = "routes"
	Rules    = "rules"
	Silences = "silences"
	Views    = "views"
)

// sections are in the order in which they are written.
func sections() []string { return []string{Webhooks, Users, Teams, Routes, Rules, Silences, Views} }

// Document is the content of one file, or of several in a row.
type Document struct {
	// Sections holds the entries of each existing section, as JSON values that can be encoded.
	Sections map[string][]any

	entries map[string][]entry
}

// entry is an entry and its position.
type entry struct {
	file string
	node *yaml.Node
}

// Add reads a file and appends its entries. name is used in errors, which give file, line and
// column.
func (d *Document) Add(name string, content []byte) error {
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	var root yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: is empty; a file without rules contains `rules: []`", name)
	} else if err != nil {
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: contains several documents; put all rules under one `rules:`", name)
	}
	r := reader{file: name, left: maxNodes}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode || len(top.Content) == 0 {
		return r.at(top, "must contain `rules:` and a list of rules, or another section; the sections are %s", strings.Join(sections(), ", "))
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, list := top.Content[i], target(top.Content[i+1])
		switch {
		case !slices.Contains(sections(), key.Value):
			return r.at(key, "unknown key %q; the keys are %s", key.Value, strings.Join(sections(), ", "))
		case given[key.Value]:
			return r.at(key, "%s is given twice", key.Value)
		case list.Kind != yaml.SequenceNode:
			return r.at(key, "must have a list under `%s:`; an empty list is []", key.Value)
		}
		given[key.Value] = true
		if err := d.add(key.Value, &r, list.Content); err != nil {
			return err
		}
	}
	return nil
}

// add appends the entries of a section.
func (d *Document) add(section string, r *reader, nodes []*yaml.Node) error {
	if d.Sections == nil {
		d.Sections, d.entries = map[string][]any{}, map[string][]entry{}
	}
	if d.Sections[section] == nil {
		d.Sections[section] = []any{}
	}
	for _, node := range nodes {
		value, err := r.value(node)
		if err != nil {
			return err
		}
		d.Sections[section] = append(d.Sections[section], value)
		d.entries[section] = append(d.entries[section], entry{file: r.file, node: target(node)})
	}
	return nil
}

// reader converts the nodes of a file to JSON values.
type reader struct {
	file        string
	left, depth int
}

func (r *reader) at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", r.file, n.Line, n.Column, fmt.Sprintf(format, args...))
}

// target follows an alias to its node.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (r *reader) value(n *yaml.Node) (any, error) {
	if r.left--; r.left < 0 {
		return nil, r.at(n, "the file contains more than %d values", maxNodes)
	}
	if r.depth++; r.depth > maxDepth {
		return nil, r.at(n, "the values are nested more than %d deep; an anchor must not contain itself", maxDepth)
	}
	defer func() { r.depth-- }()
	n = target(n)
	if tag := n.ShortTag(); n.Kind == yaml.MappingNode && tag != "!!map" || n.Kind == yaml.SequenceNode && tag != "!!seq" {
		return nil, r.at(n, "%s is not supported", tag)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			value, err := r.value(item)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case yaml.ScalarNode:
		return r.scalar(n)
	case yaml.DocumentNode, yaml.AliasNode:
	}
	return nil, r.at(n, "cannot be read")
}

func (r *reader) mapping(n *yaml.Node) (any, error) {
	fields := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := target(n.Content[i])
		if key.Tag == "!!merge" {
			return nil, r.at(key, "<< is not supported; write all fields")
		}
		if key.Kind != yaml.ScalarNode {
			return nil, r.at(key, "must be the name of a field")
		}
		if _, twice := fields[key.Value]; twice {
			return nil, r.at(key, "%s is given twice", key.Value)
		}
		value, err := r.value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		fields[key.Value] = value
	}
	return fields, nil
}

func (r *reader) scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, r.at(n, "must be true or false")
		}
		return b, nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			return nil, r.at(n, "%s is not a 64-bit integer", n.Value)
		}
		return json.Number(strconv.FormatInt(i, 10)), nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil {
			return nil, r.at(n, "%s is not a number", n.Value)
		}
		number, err := json.Marshal(f)
		if err != nil {
			return nil, r.at(n, "%s is not a number that JSON allows", n.Value)
		}
		return json.Number(number), nil
	case "!!null":
		return nil, r.at(n, "has no value; leave the field out, or write \"\" for an empty string")
	default:
		return nil, r.at(n, "%s is not supported", n.Tag)
	}
}

// path matches a place in a document in the server's form: rules[3], followed by the path inside of
// it.
var path = regexp.MustCompile(`^([a-z]+)\[(\d+)\]\.?(.*)$`)

// Locate translates a place in the server's form to file and line, the entry's name, and the field
// inside of it. A place outside of the entries is returned unchanged.
func (d *Document) Locate(field string) string {
	parts := path.FindStringSubmatch(field)
	if parts == nil {
		return field
	}
	section, within := parts[1], parts[3]
	i, err := strconv.Atoi(parts[2])
	if err != nil || i >= len(d.entries[section]) {
		return field
	}
	at := d.entries[section][i]
	n := deepest(at.node, within)
	where := fmt.Sprintf("%s:%d:%d: ", at.file, n.Line, n.Column)
	if name := Name(d.Sections[section][i]); name != "" {
		where += fmt.Sprintf("%s %q: ", strings.TrimSuffix(section, "s"), name)
	}
	return where + within
}

// Name returns the name that identifies an entry; for a user the e-mail address. It returns "" if
// there is none.
func Name(entry any) string {
	fields, _ := entry.(map[string]any)
	if email, ok := fields["email"].(string); ok {
		return email
	}
	name, _ := fields["name"].(string)
	return name
}

// deepest follows a path as long as there are nodes, so that a missing value is reported where it
// should be. A key is reported at its own position, not at that of its value.
func deepest(n *yaml.Node, path string) *yaml.Node {
	found := n
	for path != "" {
		n = target(n)
		var step string
		if strings.HasPrefix(path, "[") {
			step, path, _ = strings.Cut(path[1:], "]")
			i, err := strconv.Atoi(step)
			if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
				return found
			}
			n = n.Content[i]
			found = n
		} else {
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			step, path = path[:end], path[end:]
			matched := false
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content) && !matched; i += 2 {
				if matched = n.Content[i].Value == step; matched {
					found, n = n.Content[i], n.Content[i+1]
				}
			}
			if !matched {
				return found
			}
		}
		path = strings.TrimPrefix(path, ".")
	}
	return found
}
