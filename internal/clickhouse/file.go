package clickhouse

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseMapping parses a mapping that an administrator wrote: a YAML document that names a preset
// and the differences from it.
//
//	preset: otel_traces
//	table: otel.otel_traces
//	tenant: acme
//	terminal: SpanKind IN ('Server', 'Consumer')
//
// An empty text removes the value of the preset. Without a preset, the document must contain
// everything. Unknown keys are refused; errors name file and line.
func ParseMapping(name string, document []byte) (Mapping, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return Mapping{}, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(root.Content) == 0 {
		return Mapping{}, fmt.Errorf("%s: is empty; it must have at least `preset: exchanges`", name)
	}
	at := func(n *yaml.Node, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", name, n.Line, fmt.Sprintf(format, args...))
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode {
		return Mapping{}, at(top, "must contain keys and values, such as `table: exchanges`")
	}
	var m Mapping
	texts := map[string]*string{"preset": new(string), "table": &m.Table, "tenant": &m.Tenant}
	names := []string{"preset", "table", "tenant"}
	for _, e := range m.expressions() {
		texts[e.name] = e.text
		names = append(names, e.name)
	}
	given := map[string]*yaml.Node{}
	var errs []error
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		switch {
		case !slices.Contains(names, key.Value):
			errs = append(errs, at(key, "unknown key %q; the keys are %s", key.Value, strings.Join(names, ", ")))
		case given[key.Value] != nil:
			errs = append(errs, at(key, "%s is given twice", key.Value))
		case value.Kind != yaml.ScalarNode:
			errs = append(errs, at(value, "%s: must be a string", key.Value))
		default:
			given[key.Value] = value
		}
	}
	if preset := given["preset"]; preset != nil {
		base, err := Preset(preset.Value).Mapping()
		if err != nil {
			errs = append(errs, at(preset, "%v", err))
		}
		m = base
	}
	// Setting one source of the tenant replaces the other one of the preset.
	if given["tenant"] != nil && given["tenant_id"] == nil {
		m.TenantID = ""
	}
	if given["tenant_id"] != nil && given["tenant"] == nil {
		m.Tenant = ""
	}
	for key, value := range given {
		*texts[key] = value.Value
		if value.Tag == "!!null" {
			*texts[key] = ""
		}
	}
	if len(errs) > 0 {
		return Mapping{}, errors.Join(errs...)
	}
	if err := m.Validate(); err != nil {
		return Mapping{}, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}
