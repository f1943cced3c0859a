package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"tocsin/api"
	"tocsin/internal/fault"
)

func rulesSchema(t *testing.T) func(document string) error {
	t.Helper()
	text, err := api.RulesSchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, hint := range []string{`"x-`, "#/components/"} {
		if bytes.Contains(text, []byte(hint)) {
			t.Errorf("the schema shows %s", hint)
		}
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("rules.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("rules.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(document string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
}

func TestTheSchemaIsServed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	served := b.do("GET", api.PathRulesSchema, "").want(200)
	if text, err := api.RulesSchema(); err != nil || served.Body.String() != string(text) || served.Header().Get("Content-Type") != "application/schema+json" {
		t.Errorf("%v, served as %s: %s", err, served.Header().Get("Content-Type"), served.Body)
	}
}

func TestTheSchemaRefusesWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	judge := rulesSchema(t)
	const good = `"name":"n","fireMode":"PER_EXCHANGE","severity":"INFO"`
	for _, document := range []string{
		`{"webhooks":[],"users":[]}`, `{"webhooks":[{"name":"a","kind":"slack","url":{"env":"URL"}}]}`, `{"webhooks":[{"name":"a","kind":"generic","url":"https://x","headers":{"A":"b","C":{"file":"c"}}}]}`,
		`{"webhooks":[{"name":"a","kind":"slack","slack":{"channel":"C1"}}],"users":[{"email":"a@b.c","name":"A","role":"editor","disabled":true}]}`,
		`{"rules":[]}`, `{"rules":[{` + good + `,"webhooks":["a"]}]}`,
		`{"rules":[{` + good + `,"groupBy":"ROUTE","filter":{"attributes":[{"key":"k","op":"EXISTS"}],"minDurationMs":5},"scope":{"routes":["*"]}}]}`,
		`{"rules":[{` + good + `,"calendar":{"timeZone":"UTC","weekdays":["MON","tue","WEDNESDAY","Thursday"],"from":"08:00","to":"18:00"}}]}`,
		`{"silences":[{"name":"n","match":{},"recurrence":{"timeZone":"UTC","weekdays":["mon","SUNDAY"],"from":"08:00","durationMinutes":5}}]}`,
		`{"webhooks":[{"name":"a","kind":"slack","quietHours":[{"timeZone":"UTC","weekdays":["MON","sunday"],"from":"08:00","to":"18:00"}]}]}`,
	} {
		if err := judge(document); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
	for _, document := range []string{
		`{"webhooks":[{"name":"a"}]}`, `{"webhooks":[{"name":"a","kind":"slack","url":{"env":"URL","file":"x"}}]}`, `{"users":[{"email":"a@b.c"}]}`,
		`{"users":[{"email":"a@b.c","name":"A","role":"king"}]}`, `{"users":[{"email":"a@b.c","name":"A","role":"admin","password":"x"}]}`,
		`{}`, `[]`, `{"rules":[],"prune":true}`, `{"rules":[{}]}`, `{"rules":[{` + good + `,"webhook":"a"}]}`, `{"rules":[{` + good + `,"scope":{"route":[]}}]}`,
		`{"rules":[{` + good + `,"filter":{"statuses":["RUNNING"]}}]}`, `{"rules":[{` + good + `,"filter":{"attributes":[{"key":"k","op":"LIKE"}]}}]}`,
		`{"rules":[{` + good + `,"calendar":{"timeZone":"UTC","weekdays":["MOND"],"from":"08:00","to":"18:00"}}]}`, `{"silences":[{"name":"n","match":{},"recurrence":{"timeZone":"UTC","weekdays":["TODAY"],"from":"08:00","durationMinutes":5}}]}`,
		`{"rules":[{` + good + `,"enabled":"yes"}]}`, `{"rules":[{` + good + `,"intervalSeconds":0}]}`, `{"rules":[{` + good + `,"groupBy":"COLOUR"}]}`, `{"rules":[{` + good + `,"targets":[{"kind":"dog","name":"Rex"}]}]}`,
	} {
		if judge(document) == nil {
			t.Errorf("%s is accepted", document)
		}
	}
}

// TestTheSchemaKnowsTheSharedCases checks the schema against the shared table of rules.
func TestTheSchemaKnowsTheSharedCases(t *testing.T) {
	t.Parallel()
	judge := rulesSchema(t)
	data, err := os.ReadFile("../testdata/rule_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Rule   json.RawMessage
		Errors []fault.Field
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	valid, unknown := 0, 0
	for _, c := range cases {
		err := judge(`{"rules":[` + string(c.Rule) + `]}`)
		if len(c.Errors) == 0 {
			valid++
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		if slices.ContainsFunc(c.Errors, func(f fault.Field) bool { return f.Code == "unknown_field" }) {
			unknown++
			if err == nil {
				t.Errorf("%s: accepted", c.Name)
			}
		}
	}
	if valid == 0 || unknown == 0 {
		t.Errorf("%d valid cases, %d with unknown fields", valid, unknown)
	}
}

// TestTheSchemaAcceptsEveryExport validates whatever the server exports against the schema.
func TestTheSchemaAcceptsEveryExport(t *testing.T) {
	t.Parallel()
	judge := rulesSchema(t)
	b := newBench(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := anyDefinition(rt, "n")
		made, err := b.rules.Create(t.Context(), "acme", d)
		if err != nil {
			rt.Fatal(err)
		}
		exported := b.do("GET", "/api/v1/rules/export", "").want(200).Body.String()
		if err := judge(exported); err != nil {
			rt.Errorf("%v\n%s", err, exported)
		}
		if err := b.rules.Delete(t.Context(), "acme", made.ID); err != nil {
			rt.Fatal(err)
		}
	})
}
