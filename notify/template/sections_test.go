package template_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/notify/slack"
	"tocsin/notify/template"
	"tocsin/rules"
)

func of(e *rules.Exchange) *template.Values { return template.ForExchange(&rules.Rule{}, e) }

// An attribute hides a variable of the same name inside the map, as Mustache specifies.
func TestAttributesHideVariables(t *testing.T) {
	parsed, err := template.Parse("{{#exchange}}{{#attributes}}{{route}} {{/attributes}}{{route}}{{/exchange}}", template.InTexts)
	if err != nil {
		t.Fatal(err)
	}
	for want, attributes := range map[string]map[string]string{
		"own outer":   {"route": "own"},
		"outer outer": {"other": "x"},
		" outer":      {"route": ""},
		"outer":       nil,
	} {
		got, err := parsed.Text(of(&rules.Exchange{ExecutionID: "1", Route: "outer", Attributes: attributes}), template.MessageLimit())
		if err != nil || got != strings.TrimSpace(want) {
			t.Errorf("with %v: %q, %v; want %q", attributes, got, err, want)
		}
	}
}

// Lists are truncated; attributes are in the order of their keys.
func TestListsAreBounded(t *testing.T) {
	parsed, err := template.Parse("{{#exchange.attributeList}}{{key}} {{/exchange.attributeList}}{{#exchange.stackLines}}x{{/exchange.stackLines}}", template.InTexts)
	if err != nil {
		t.Fatal(err)
	}
	e := rules.Exchange{Attributes: map[string]string{}, ErrorStack: strings.Repeat("at a\n\n", 5000)}
	for i := range 5000 {
		e.Attributes[strconv.Itoa(10_000+i)] = "v"
	}
	got, err := parsed.Text(of(&e), template.MessageLimit())
	if fields := strings.Fields(got); err != nil || len(fields) != 101 || fields[0] != "10000" || fields[99] != "10099" || fields[100] != strings.Repeat("x", 100) {
		t.Errorf("%q, %v", got, err)
	}
}

// Nested lists multiply. What would take long is rejected when it is saved; if it is rendered all
// the same, that soon stops, even if nothing is written.
func TestListsWithinListsEnd(t *testing.T) {
	for name, inner := range map[string]string{"texts": "x", "nothing": "", "variables": "{{key}}"} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat("{{#exchange.attributeList}}", template.MaxDepth) + inner + strings.Repeat("{{/exchange.attributeList}}", template.MaxDepth)
			fields := template.CheckRule(&rules.Definition{TitleTemplate: text})
			if len(fields) != 1 || !strings.HasPrefix(fields[0].Message, "The template repeats too much") {
				t.Errorf("CheckRule: %v", fields)
			}
			body, err := template.ParseJSON(`["`+text+`", "`+text+`"]`, template.InTexts)
			if err != nil {
				t.Fatal(err)
			}
			samples := template.Samples()
			began := time.Now()
			if content, err := body.Render(template.ForAlert(&samples[4], ""), nil); err == nil {
				t.Errorf("%d bytes", len(content))
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// The strings of a body share the limit of a rendering.
func TestBodiesAreBoundedAsAWhole(t *testing.T) {
	one := `"{{#exchange.stackLines}}{{#exchange.attributeList}}{{/exchange.attributeList}}{{/exchange.stackLines}}"`
	e := rules.Exchange{ErrorStack: strings.Repeat("x\n", 100), Attributes: map[string]string{"a": "b", "c": "d"}}
	for n, fails := range map[int]bool{1: false, 100: true} {
		body, err := template.ParseJSON("["+strings.TrimSuffix(strings.Repeat(one+",", n), ",")+"]", template.InTexts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := body.Render(of(&e), nil); (err != nil) != fails {
			t.Errorf("%d strings: %v", n, err)
		}
	}
}

// Whatever attributes contain, the output of sections is valid JSON, and escaped for Slack.
func TestSectionsEscape(t *testing.T) {
	body, err := template.ParseJSON(`{"list": "{{#exchange.attributeList}}{{{key}}}={{&value}} {{/exchange.attributeList}}",
		"map": "{{#exchange.attributes}}{{k}}{{/exchange.attributes}}", "lines": "{{#exchange.stackLines}}{{.}}|{{/exchange.stackLines}}"}`, template.InTexts)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		e := rules.Exchange{ExecutionID: "1", ErrorStack: text, Attributes: map[string]string{"k": text, text: text}}
		content, err := body.Render(of(&e), func(s string) string { return slack.Escape(s, 1000) })
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(content, &got); err != nil {
			t.Fatalf("%v: %s", err, content)
		}
		for name, value := range got {
			plain := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(value)
			if strings.ContainsAny(plain, "<>&") {
				t.Fatalf("%s: %q", name, value)
			}
		}
	})
}
