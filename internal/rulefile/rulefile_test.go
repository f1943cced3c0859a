package rulefile_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tocsin/internal/rulefile"
)

// read returns the rules of a file.
func read(t interface{ Fatalf(string, ...any) }, content string) *rulefile.Document {
	var d rulefile.Document
	if err := d.Add("f.yaml", []byte(content)); err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	return &d
}

func TestTextsSurvive(t *testing.T) {
	odd := []string{
		"yes", "No", "on", "y", "~", "null", "true", "1", "1.5", "0x10", "1_000", "12:30", "12:30:45", "2026-01-01", "2026-01-01T10:00:00Z", "", " ", "- a", "a: b", "a # b", "#",
		"{{exchange.route}}", "{{#x}}a{{/x}}", "*", "&a", "!x", "|", ">", "%x", "@x", "`x`", "'", `"`, "\\", "a\nb", "a\nb\n", "\na", " a\n b", "a \nb", "a\n\n\n", "\n", "a\tb", "\ta\nb",
		"a\r\nb", "\u0085", "\u2028", "\ufeff", "\x01", "\x7f", "grün", "🚨 {{x}}", "<<", "=", ".inf", "---", "...", "? x", "[a", "a]", "a,b", strings.Repeat("long words ", 100),
	}
	texts := rapid.OneOf(rapid.SampledFrom(odd), rapid.String(), rapid.StringMatching(`([ \t\n#:\-'"]|[a-c]|\{\{x\}\}){0,20}`))
	rapid.Check(t, func(t *rapid.T) {
		list := func(label string) []any {
			items := []any{}
			for _, s := range rapid.SliceOfN(texts, 1, 3).Draw(t, label) {
				items = append(items, s)
			}
			return items
		}
		want := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			want = append(want, map[string]any{
				"name": texts.Draw(t, "name"), "enabled": rapid.Bool().Draw(t, "enabled"), "messageTemplate": texts.Draw(t, "message"),
				"scope":     map[string]any{"routes": list("routes"), texts.Draw(t, "key"): texts.Draw(t, "value")},
				"targets":   []any{map[string]any{"kind": "user", "name": texts.Draw(t, "target")}},
				"threshold": json.Number("1000000"), "webhooks": list("webhooks"),
			})
		}
		var out bytes.Buffer
		if err := rulefile.Write(&out, map[string][]any{rulefile.Rules: want}, "https://tocsin.example/x.json"); err != nil {
			t.Fatal(err)
		}
		got := read(t, out.String()).Sections[rulefile.Rules]
		if len(want) == 0 && len(got) == 0 {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-written +read)\n%s\n%s", diff, out.String())
		}
	})
}

func TestAFileReads(t *testing.T) {
	d := read(t, `
rules:
  - name: yes
    messageTemplate: |
      a
        b
    enabled: false
    threshold: 0x10
    scope: &s { routes: [2026-01-01, 12:30] }
  - scope: *s
`)
	want := []any{
		map[string]any{"name": "yes", "messageTemplate": "a\n  b\n", "enabled": false, "threshold": json.Number("16"), "scope": map[string]any{"routes": []any{"2026-01-01", "12:30"}}},
		map[string]any{"scope": map[string]any{"routes": []any{"2026-01-01", "12:30"}}},
	}
	if diff := cmp.Diff(want, d.Sections[rulefile.Rules]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAFileIsRefused(t *testing.T) {
	bomb := "rules:\n  - a0: &a0 [x]\n"
	for i := range 20 {
		prior, next := string(rune('a'+i)), string(rune('a'+i+1))
		if i == 0 {
			prior = "a0"
		}
		bomb += "    " + next + ": &" + next + " [*" + prior + ", *" + prior + "]\n"
	}
	for content, want := range map[string]string{
		"":                            "f.yaml: is empty",
		"rules:":                      "f.yaml:1:1: must have a list",
		"- a":                         "f.yaml:1:1: must contain `rules:` and a list of rules, or another section; the sections are webhooks, users, teams, routes, rules, silences, views",
		"rules: []\nprune: true":      `f.yaml:2:1: unknown key "prune"`,
		"rules: []\n---\nrules: []":   "f.yaml: contains several documents",
		"rules: []\nrules: []":        "f.yaml:2:1: rules is given twice",
		"webhooks: a":                 "f.yaml:1:1: must have a list under `webhooks:`",
		"rules:\n  - a: 1\n    a: 2":  "f.yaml:3:5: a is given twice",
		"rules:\n  - name:":           "f.yaml:2:10: has no value",
		"rules:\n  - <<: {a: 1}":      "f.yaml:2:5: << is not supported",
		"rules:\n  - a: !!binary aGk": "f.yaml:2:8: !!binary is not supported",
		"rules:\n  - a: .nan":         "f.yaml:2:8: .nan is not a number that JSON allows",
		"rules:\n\t- a":               "f.yaml: line 2",
		bomb:                          "contains more than",
		"rules:\n  - &a {b: [*a]}":    "f.yaml:2:13: the values are nested more than 100 deep; an anchor must not contain itself",
		"rules:\n  - a: !include [b]": "f.yaml:2:8: !include is not supported",
		"rules:\n  - !ours {name: b}": "f.yaml:2:5: !ours is not supported",
	} {
		var d rulefile.Document
		if err := d.Add("f.yaml", []byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}

func TestAPlaceIsNamed(t *testing.T) {
	d := read(t, "rules:\n  - name: one\n    filter:\n      statuses: [FAILED, GONE]\n    filtre: {}\n")
	if err := d.Add("g.yaml", []byte("rules:\n- severity: INFO\n")); err != nil {
		t.Fatal(err)
	}
	if err := d.Add("h.yaml", []byte("webhooks:\n- name: ops\n  url: x\nusers:\n- email: a@b.c\n  name: A\n")); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"webhooks[0].url":             `h.yaml:3:3: webhook "ops": url`,
		"users[0].role":               `h.yaml:5:3: user "a@b.c": role`,
		"rules[0].filter.statuses[1]": `f.yaml:4:26: rule "one": filter.statuses[1]`,
		"rules[0].filtre":             `f.yaml:5:5: rule "one": filtre`,
		"rules[0].fireMode":           `f.yaml:2:5: rule "one": fireMode`,
		"rules[0].filter.errorTypes":  `f.yaml:3:5: rule "one": filter.errorTypes`,
		"rules[1].severity":           "g.yaml:2:3: severity",
		"rules[7].name":               "rules[7].name",
		"prune":                       "prune",
	} {
		if got := d.Locate(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

func TestAFileLooksLikeThis(t *testing.T) {
	var out bytes.Buffer
	err := rulefile.Write(&out, map[string][]any{rulefile.Rules: {map[string]any{
		"severity": "CRITICAL", "name": "Orders: failed", "webhooks": []any{"#ops", "a"}, "messageTemplate": "one\ntwo\n",
		"scope": map[string]any{"routes": []any{"order-*"}}, "targets": []any{map[string]any{"name": "no", "kind": "team"}}, "zeal": json.Number("1"),
	}}, rulefile.Webhooks: {map[string]any{"name": "ops", "kind": "slack", "slack": map[string]any{"channel": "C1"}, "ratePerSecond": json.Number("1")}}}, "https://tocsin.example/api/rules.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	want := `# yaml-language-server: $schema=https://tocsin.example/api/rules.schema.json
webhooks:
  - name: ops
    kind: slack
    slack:
      channel: C1
    ratePerSecond: 1
rules:
  - name: "Orders: failed"
    severity: CRITICAL
    scope:
      routes: [order-*]
    messageTemplate: |
      one
      two
    webhooks: ["#ops", a]
    targets:
      - name: "no"
        kind: team
    zeal: 1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
