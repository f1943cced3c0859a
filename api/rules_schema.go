package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"

	"tocsin/rules"
)

// PathRulesSchema is the path of the JSON Schema of documents of rules.
const PathRulesSchema = "/api/rules.schema.json"

// RulesSchema returns the JSON Schema (draft 2020-12) of files with rules, webhooks, users, teams,
// routes, silences and views, for editors. It is made from the description of the API, and contains
// the constraints of each field. Constraints between several fields are only checked by the server.
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
	refer := func(name string) { collect(name, spec.Components.Schemas, definitions) }
	root := asSchema(spec.Components.Schemas["RuleDocument"], refer).(map[string]any)
	addSections(root, definitions, refer)
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Tocsin's rules, webhooks, users, teams, routes, silences and views",
		"$defs":   definitions,
	}
	maps.Copy(schema, root)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema of rules: %w", err)
	}
	return append(text, '\n'), nil
}

// addSections adds the other sections of a file, which are optional like the rules. Secrets may be
// given as references.
func addSections(root, definitions map[string]any, refer func(name string)) {
	const webhook, slack, elsewhere = "WebhookDefinition", "SlackAppDefinition", "SingleSignOn"
	refer(webhook)
	refer("Role")
	list := func(items any) map[string]any { return map[string]any{"type": "array", "items": items} }
	sections := root["properties"].(map[string]any)
	sections["webhooks"] = list(map[string]any{"$ref": "#/$defs/" + webhook})
	text := map[string]any{"type": "string"}
	sections["users"] = list(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"email", "name", "role"},
		"properties": map[string]any{"email": text, "name": text, "role": map[string]any{"$ref": "#/$defs/Role"}, "disabled": map[string]any{"type": "boolean"}},
	})
	refer("SilenceDefinition")
	sections["silences"] = list(map[string]any{"$ref": "#/$defs/SilenceDefinition"})
	refer("ViewDefinition")
	// Views in files are shared.
	delete(definitions["ViewDefinition"].(map[string]any)["properties"].(map[string]any), "shared")
	sections["views"] = list(map[string]any{"$ref": "#/$defs/ViewDefinition"})
	refer("Team")
	sections["teams"] = list(map[string]any{"$ref": "#/$defs/Team"})
	refer("EscalationStep")
	// Files refer to webhooks by name.
	for _, name := range []string{"Team", "EscalationStep"} {
		fields := definitions[name].(map[string]any)["properties"].(map[string]any)
		fields["webhooks"] = list(map[string]any{"type": "string", "minLength": 1, "maxLength": 200})
		delete(fields, "webhookIds")
	}
	sections["routes"] = list(map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"name": map[string]any{"type": "string", "minLength": 1, "maxLength": 200}, "match": map[string]any{"$ref": "#/$defs/AlertMatch"},
			"webhooks": list(map[string]any{"type": "string", "minLength": 1, "maxLength": 200}), "continue": map[string]any{"type": "boolean"},
			"escalation": list(map[string]any{"$ref": "#/$defs/EscalationStep"}),
			"default":    map[string]any{"type": "boolean", "description": "The last entry may be the default: it can have only webhooks and an escalation."},
		},
	})
	for _, name := range []string{"Calendar", "SilenceRecurrence"} {
		acceptWeekdays(definitions[name].(map[string]any)["properties"].(map[string]any)["weekdays"].(map[string]any))
	}
	// Files refer to rules by name.
	match := definitions["AlertMatch"].(map[string]any)["properties"].(map[string]any)
	match["rules"] = list(map[string]any{"type": "string", "minLength": 1, "maxLength": 200})
	delete(root, "required")
	root["minProperties"] = 1
	one := func(name, description string) map[string]any {
		return map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{name},
			"properties": map[string]any{name: map[string]any{"type": "string", "description": description}},
		}
	}
	definitions[elsewhere] = map[string]any{"oneOf": []any{one("env", "The environment variable that has it."), one("file", "The file that has it; its last line end does not count.")}}
	or := func(schema any) map[string]any {
		return map[string]any{"anyOf": []any{schema, map[string]any{"$ref": "#/$defs/" + elsewhere}}}
	}
	for _, name := range []string{webhook, slack} {
		fields := definitions[name].(map[string]any)["properties"].(map[string]any)
		for field, schema := range fields {
			schema := schema.(map[string]any)
			switch {
			case schema["writeOnly"] != true:
			case field == "headers":
				schema["additionalProperties"] = or(schema["additionalProperties"])
			default:
				fields[field] = or(schema)
			}
		}
	}
	// A bot token that is left out keeps its value.
	definitions[slack].(map[string]any)["required"] = []string{"channel"}
}

// acceptWeekdays makes a list of weekdays accept every name of a day that the server accepts.
func acceptWeekdays(list map[string]any) {
	list["description"] = "Short names; full ones, and any letter case, mean the same."
	var names []string
	for i, day := range rules.Weekdays() {
		var name strings.Builder
		for j, letter := range time.Weekday(i).String() {
			if j == len(day) {
				name.WriteString("(")
			}
			fmt.Fprintf(&name, "[%c%c]", unicode.ToUpper(letter), unicode.ToLower(letter))
		}
		names = append(names, name.String()+")?")
	}
	list["items"] = map[string]any{"anyOf": []any{list["items"], map[string]any{"type": "string", "pattern": "^(" + strings.Join(names, "|") + ")$"}}}
}

// collect adds a schema of the description, and the schemas that it refers to.
func collect(name string, described map[string]map[string]any, into map[string]any) {
	if _, known := into[name]; known {
		return
	}
	into[name] = nil
	into[name] = asSchema(described[name], func(other string) { collect(other, described, into) })
}

// asSchema copies a node of the description without the keys that only generators read. It calls
// refer with the name of each reference.
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
