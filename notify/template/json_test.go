package template_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/notify/template"
)

func TestParseJSONRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		line    int
		message string
	}{
		"nothing":            {"", 1, "ends too early"},
		"cut off":            {`{"a": "b"`, 1, "ends too early"},
		"not JSON":           {"{\n'a': 1}", 2, "not valid JSON"},
		"variable unquoted":  {"{\n\"a\": {{exchange.durationMs}}}", 2, "write it in quotes"},
		"trailing":           {"{} {}", 1, "There is text after"},
		"variable in name":   {`{"{{exchange.route}}": 1}`, 1, "name of a member"},
		"member twice":       {`{"a": 1, "a": 2}`, 1, `"a" appears twice`},
		"unknown variable":   {"{\n\"a\":\n\"{{exchange.rout}}\"}", 3, `did you mean "exchange.route"?`},
		"partial":            {`["{{>/etc/passwd}}"]`, 1, "Partials"},
		"too deep":           {strings.Repeat("[", 40) + strings.Repeat("]", 40), 1, "nested more than"},
		"too long":           {`"` + strings.Repeat("x", template.MaxBytes) + `"`, 1, "longer than"},
		"no text":            {"\"\xff\"", 1, "valid UTF-8"},
		"too many tags":      {"[" + strings.Repeat(`"{{exchange.route}}",`, 1001) + "1]", 1, "more than 1000 tags"},
		"NUL":                {`["\u0000"]`, 1, "NUL"},
		"section over parts": {`["{{#exchange.route}}", "{{/exchange.route}}"]`, 1, "never closed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.ParseJSON(c.text, template.InBody)
			broken, ok := errors.AsType[*template.Error](err)
			if !ok || broken.Line != c.line || !strings.Contains(broken.Message, c.message) {
				t.Errorf("ParseJSON: %v, want line %d: …%s…", err, c.line, c.message)
			}
		})
	}
}

func TestJSONRender(t *testing.T) {
	sample := template.Samples()[0]
	for name, c := range map[string]struct{ text, want string }{
		"order is kept":   {`{"z": 1, "a": [true, null, "x"], "m": {}}`, `{"z":1,"a":[true,null,"x"],"m":{}}`},
		"numbers":         {`[1.50, 1e999, 12345678901234567890, -0]`, `[1.50,1e999,12345678901234567890,-0]`},
		"variables":       {`{"text": "{{exchange.route}} \"{{alert.id}}\""}`, `{"text":"order-to-erp \"00000000-0000-0000-0000-000000000001\""}`},
		"a lone string":   {`"{{rule.name}}"`, `"Failed orders"`},
		"empty array":     {`[]`, `[]`},
		"name with quote": {`{"a\"b": "c"}`, `{"a\"b":"c"}`},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := template.ParseJSON(c.text, template.InBody)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parsed.Render(template.ForAlert(&sample, ""), nil)
			if err != nil || string(got) != c.want {
				t.Errorf("Render() = %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestJSONIsValidWhateverAnExchangeHolds(t *testing.T) {
	parsed, err := template.ParseJSON(`{"text": "<{{exchange.errorMessage}}> {{exchange.attributes.a.b}}", "list": ["{{exchange.errorStack}}", "{{alert.title}}"], "n": 1}`, template.InBody)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := alerts.Instance{Title: anyText().Draw(t, "title"), Exchange: anyExchange().Draw(t, "exchange")}
		body, err := parsed.Render(template.ForAlert(&a, ""), nil)
		if err != nil && strings.Contains(err.Error(), "longer than") && len(a.Exchange.ErrorMessage)+len(a.Exchange.ErrorStack) > template.MaxJSONBytes/8 {
			return // a character takes up to six bytes in JSON
		}
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Text string
			List []string
			N    int
		}
		if !utf8.Valid(body) {
			t.Fatalf("body %q", body)
		}
		if err := json.Unmarshal(body, &back); err != nil || back.N != 1 || len(back.List) != 2 || !strings.HasPrefix(back.Text, "<") || strings.ContainsRune(back.Text+back.List[0]+back.List[1], 0) {
			t.Fatalf("body %q: %v, %+v", body, err, back)
		}
	})
}

func TestJSONTooLong(t *testing.T) {
	parsed, err := template.ParseJSON("["+strings.Repeat(`"{{exchange.errorStack}}",`, 100)+"1]", template.InBody)
	if err != nil {
		t.Fatal(err)
	}
	samples := template.Samples()
	longest := slices.MaxFunc(samples, func(a, b alerts.Instance) int {
		return cmp.Compare(len(a.Exchange.ErrorStack), len(b.Exchange.ErrorStack))
	})
	if _, err := parsed.Render(template.ForAlert(&longest, ""), nil); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("Render: %v, want an error about the length", err)
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a": "{{exchange.route}}"}`, `["{{#rule.name}}{{.}}{{/rule.name}}", 1e9]`, `{"a": {{rule.name}}}`, `"\ud800"`, `{"a":1,"a":2}`, `[`, `"\u0000"`} {
		f.Add(seed)
	}
	samples := template.Samples()
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := template.ParseJSON(text, template.InBody)
		if err != nil {
			if _, ok := errors.AsType[*template.Error](err); !ok {
				t.Fatalf("not a template error: %v", err)
			}
			return
		}
		for i := range samples {
			body, err := parsed.Render(template.ForAlert(&samples[i], ""), nil)
			if err == nil && !json.Valid(body) {
				t.Fatalf("not JSON: %q", body)
			}
		}
	})
}
