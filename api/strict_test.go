package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
)

func TestDecodeStrict(t *testing.T) {
	for body, want := range map[string]string{
		"":                            "the body is empty",
		" \n":                         "the body is empty",
		`{"name":"a"} {}`:             "continues after the end",
		`{"name":"a"}x`:               "continues after the end",
		`{"name":"a"`:                 "ends early",
		`{"name" "a"}`:                "not valid JSON",
		`{"name":"a",}`:               "not valid JSON",
		"{\"name\":\"\xff\"}":         "not valid UTF-8",
		`[]`:                          "Must be an object",
		`"x"`:                         "Must be an object",
		`null`:                        "Must not be null",
		`{"Name":"a"}`:                "Name: Unknown field; write it name",
		`{"name":"a","name":"b"}`:     "name: The field is given twice",
		`{"name":1}`:                  "name: Must be a string",
		`{"name":{"a":[{"b":null}]}}`: "name: Must be a string",
		`{"intervalSeconds":1e3}`:     "intervalSeconds: Must be a whole number",
		`{"intervalSeconds":9223372036854775808}`:     "intervalSeconds: Must be a whole number",
		`{"filter":{"attributes":[{},{"Key":"k"}]}}`:  "filter.attributes[1].Key: Unknown field; write it key",
		`{"targets":[null]}`:                          "targets[0]: Must not be null",
		`{"unknown":` + strings.Repeat("[", 1<<19):    "has more than 32 levels",
		`{"unknown":` + strings.Repeat(`{"a":`, 5000): "has more than 32 levels",
	} {
		var d RuleDefinition
		err := decodeStrict([]byte(body), &d)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", body, err, want)
		}
	}
}

func TestDecodeStrictBoundsItsAnswer(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"a":1`)
	for i := range 1000 {
		body.WriteString(`,"a` + strings.Repeat("x", i%7) + `":1`)
	}
	body.WriteString("}")
	var d RuleDefinition
	err := decodeStrict([]byte(body.String()), &d)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || len(f.Fields) == 0 || len(f.Fields) > maxFaults {
		t.Errorf("error %v with %d entries", ok, len(f.Fields))
	}
}

// FuzzDecodeStrict checks that encoding/json also accepts whatever is accepted here, and reads the
// same values from it.
func FuzzDecodeStrict(f *testing.F) {
	f.Add([]byte(`{"name":"a","fireMode":"PER_EXCHANGE","severity":"INFO","webhookIds":["6f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a11"]}`))
	f.Add([]byte(`{"scope":{"routes":["a*"]},"filter":{"minDurationMs":1,"attributes":[{"key":"k","op":"EXISTS"}]},"enabled":false}`))
	f.Add([]byte(`{"name":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var strict RuleDefinition
		if err := decodeStrict(body, &strict); err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: an error of kind %v: %v", body, fault.KindOf(err), err)
			}
			return
		}
		var lenient RuleDefinition
		if err := json.Unmarshal(body, &lenient); err != nil {
			t.Fatalf("%q is accepted, but: %v", body, err)
		}
	})
}

func FuzzDecodeMark(f *testing.F) {
	f.Add("eyJsIjoiYWxlcnRzIn0")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := decodeMark(listAlerts, &text)
		if err != nil || m == nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeMark(listAlerts, &again)
		if err != nil || back.ID != m.ID || !back.At.Equal(m.At) {
			t.Fatalf("%+v becomes %+v, %v", m, back, err)
		}
	})
}

// Groups by issue are ranked by severity: the cursor of a page carries the rank.
func TestMarkOfRankedGroups(t *testing.T) {
	want := mark{List: listGroups + "issue", Name: "key", At: time.Unix(1_795_244_520, 0).UTC(), ID: uuid.UUID{1}, Number: 2}
	text, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeMark(want.List, &text); err != nil || got == nil || *got != want {
		t.Errorf("decoded %+v, %v; want %+v", got, err, want)
	}
	want.List, want.Name = listRules, "name"
	if text, err = want.encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeMark(listRules, &text); err == nil {
		t.Error("a rank in the cursor of a list without ranks is taken")
	}
}
