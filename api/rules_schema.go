package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// PathRulesSchema is where the JSON Schema of documents of rules is served.
const PathRulesSchema = "/api/rules.schema.json"

// RulesSchema returns the JSON Schema (draft 2020-12) of a document of rules, for
// editors. It is made from the description of the API, and knows what that says
// of each field; what depends on several fields only the server knows.
func RulesSchema() ([]byte, error) {
	raw, err := GetSpecJSON()
	if err != nil {
		return nil, fmt.Errorf("read API description: %w", err)
	}
	var spec struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("parse API description: %w", err)
	}
	definitions := map[string]any{}
	root := asSchema(spec.Components.Schemas["RuleDocument"], func(name string) { collect(name, spec.Components.Schemas, definitions) }).(map[string]any)
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Tocsin's rules",
		"$defs":   definitions,
	}
	maps.Copy(schema, root)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema of rules: %w", err)
	}
	return append(text, '\n'), nil
}

// collect adds a schema of the description, and those that it refers to.
func collect(name string, described map[string]map[string]any, into map[string]any) {
	if _, known := into[name]; known {
		return
	}
	into[name] = nil
	into[name] = asSchema(described[name], func(other string) { collect(other, described, into) })
}

// asSchema is a node of the description without what only generators read. Of
// each reference it tells the name.
func asSchema(node any, refer func(name string)) any {
	switch node := node.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range node {
			switch text, isText := value.(string); {
			case strings.HasPrefix(key, "x-"):
			case key == "$ref" && isText:
				refer(lastSegment(text))
				out[key] = "#/$defs/" + lastSegment(text)
			default:
				out[key] = asSchema(value, refer)
			}
		}
		return out
	case []any:
		out := make([]any, len(node))
		for i, value := range node {
			out[i] = asSchema(value, refer)
		}
		return out
	default:
		return node
	}
}
