package rulefile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// order is the order of the fields in a file; fields that it does not name come last.
func order() []string {
	return []string{
		"name", "email", "role", "disabled", "members", "groups", "enabled", "severity", "fireMode",
		"scope", "environments", "notEnvironments", "applications", "notApplications", "routes", "notRoutes",
		"filter", "statuses", "errorTypes", "notErrorTypes", "errorMessageContains", "errorMessageNotContains",
		"errorMessageMatches", "errorMessageNotMatches", "minDurationMs", "maxDurationMs", "attributes",
		"threshold", "percent", "percentile", "durationMs", "minVolume", "windowSeconds", "shortWindowSeconds",
		"groupBy", "groupByAttribute", "expected", "learnDays", "calendar", "timeZone", "weekdays", "from", "to", "forDurationSeconds", "reNotifyMinutes", "resolution", "afterSeconds", "evidence", "attribute", "notifyOnResolve",
		"titleTemplate", "messageTemplate", "labels", "owner", "runbookUrl", "note", "reason", "match", "webhooks", "webhookIds", "useRoutingPolicy", "escalation", "afterMinutes", "teams", "continue", "default", "targets", "intervalSeconds", "lookBackSeconds",
		"kind", "slack", "channel", "bodyTemplate", "operators", "timeoutSeconds", "maxConcurrent", "ratePerSecond", "digestAbove", "events", "eventMaxAgeSeconds", "quietHours",
		"rules", "severities", "startsAt", "endsAt", "search", "recurrence", "timeZone", "weekdays", "from", "durationMinutes",
		"key", "not", "op", "value", "values",
	}
}

// Write writes the sections of a document as a file that [Document.Add] reads to the same values.
// The values are JSON values of the server, decoded with json.Number. The same values make the same
// file. A schema, if any, is named on the first line for editors.
func Write(w io.Writer, document map[string][]any, schema string) error {
	ranks := map[string]int{}
	for i, name := range order() {
		ranks[name] = i + 1
	}
	top := &yaml.Node{Kind: yaml.MappingNode}
	for _, section := range sections() {
		entries, there := document[section]
		if !there {
			continue
		}
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range entries {
			node, err := nodeOf(e, ranks)
			if err != nil {
				return err
			}
			list.Content = append(list.Content, node)
		}
		if len(entries) == 0 {
			list.Style = yaml.FlowStyle
		}
		top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: section}, list)
	}
	var out bytes.Buffer
	if schema != "" {
		fmt.Fprintf(&out, "# yaml-language-server: $schema=%s\n", schema)
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(top); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func nodeOf(value any, ranks map[string]int) (*yaml.Node, error) {
	switch value := value.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		last := len(ranks) + 1
		keys := slices.SortedFunc(maps.Keys(value), func(a, b string) int {
			return cmp.Or(cmp.Compare(cmp.Or(ranks[a], last), cmp.Or(ranks[b], last)), strings.Compare(a, b))
		})
		for _, key := range keys {
			child, err := nodeOf(value[key], ranks)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, textNode(key), child)
		}
		return n, nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		flat := true
		for _, item := range value {
			child, err := nodeOf(item, ranks)
			if err != nil {
				return nil, err
			}
			flat = flat && child.Kind == yaml.ScalarNode && child.Style != yaml.LiteralStyle
			n.Content = append(n.Content, child)
		}
		if flat {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	case string:
		return textNode(value), nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(value)}, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(value.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value.String()}, nil
	default:
		return nil, fmt.Errorf("write: a value of type %T has no place in a file", value)
	}
}

// textNode is a text that every reader of YAML 1.1 and 1.2 reads as a text. A text that could be
// read as something else is quoted. Several lines are written as lines if that preserves every
// byte.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if n.Style == yaml.LiteralStyle && !keepsLines(text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if n.Style == 0 && !plain(text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// keepsLines reports whether a block of lines is read as the same text.
func keepsLines(text string) bool {
	if strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") || strings.HasPrefix(text, "\t") {
		return false
	}
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		if body != strings.TrimRight(body, " \t") || !printable(body) {
			return false
		}
	}
	return true
}

// plain reports whether a text without quotes is safe everywhere.
func plain(text string) bool {
	var back any
	if text == "" || !printable(text) || yaml.Unmarshal([]byte(text), &back) != nil || back != any(text) {
		return false
	}
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "=":
		return false
	}
	// Some readers take dates and sexagesimal numbers for numbers.
	return strings.Trim(text, "0123456789:.-+_TtZz ") != ""
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd
	})
}
