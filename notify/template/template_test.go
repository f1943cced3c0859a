package template_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"tocsin/notify/template"
	"tocsin/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("{{#exchange.route}}", template.MaxDepth+1)
	for name, c := range map[string]struct {
		text         string
		line, column int
		message      string
	}{
		"partial":              {"a\n{{>/etc/passwd}}", 2, 1, "Partials are not supported"},
		"partial of itself":    {"{{> self }}", 1, 1, "Partials are not supported"},
		"partial in a section": {"{{#exchange.route}}\n  {{>x}}{{/exchange.route}}", 2, 3, "Partials are not supported"},
		"partial, three":       {"{{{>x}}}", 1, 1, "two braces"},
		"parent":               {"{{<x}}{{/x}}", 1, 1, "cannot be read"},
		"delimiters":           {"{{=<% %>=}}<%>x%>", 1, 1, "Delimiters cannot be changed"},
		"unknown":              {"é {{exchange.nope}}", 1, 3, `Unknown variable "exchange.nope"`},
		"misspelt":             {"{{exchange.aplication}}", 1, 1, `did you mean "exchange.application"?`},
		"without its group":    {"{{errorMessage}}", 1, 1, `did you mean "exchange.errorMessage"?`},
		"other case":           {"{{exchange.ErrorType}}", 1, 1, `did you mean "exchange.errorType"?`},
		"group as a variable":  {"{{exchange}}", 1, 1, "contains several values; name one, such as {{exchange.application}}"},
		"map as a variable":    {"{{exchange.attributes}}", 1, 1, "name one, such as {{exchange.attributes.KEY}}"},
		"list as a variable":   {"{{exchange.attributeList}}", 1, 1, "is a list; write {{#exchange.attributeList}}{{key}} {{value}}{{/exchange.attributeList}}"},
		"not of the group":     {"{{#exchange}}{{rute}}{{/exchange}}", 1, 14, `did you mean "exchange.route"?`},
		"not of the item":      {"{{#exchange.attributeList}}{{kee}}{{/exchange.attributeList}}", 1, 28, `Unknown variable "kee"`},
		"item outside":         {"{{key}}", 1, 1, `Unknown variable "key"`},
		"dot of a record":      {"{{#exchange.attributeList}}{{.}}{{/exchange.attributeList}}", 1, 28, `Unknown variable "."`},
		"dot when inverted":    {"{{^exchange.route}}{{.}}{{/exchange.route}}", 1, 20, `Unknown variable "."`},
		"group of bodies":      {"{{#alert}}{{title}}{{/alert}}", 1, 11, "Unknown variable"},
		"missing key":          {"{{exchange.attributes.}}", 1, 1, "key is missing"},
		"only in bodies":       {"{{alert.id}}", 1, 1, "is not available in titles and messages"},
		"dot outside":          {"{{.}}", 1, 1, "Unknown variable"},
		"empty tag":            {"{{ }}", 1, 1, "empty"},
		"open tag":             {"x {{exchange.route", 1, 3, "never closed; end it with }}"},
		"open triple":          {"{{{exchange.route}}", 1, 1, "never closed; end it with }}}"},
		"tag in a comment":     {"{{! {{>x}} }}", 1, 1, "cannot be read"},
		"tag in tag":           {"{{exchange.{{route}}}}", 1, 1, "cannot be read"},
		"open section":         {"\n {{#exchange.route}}", 2, 2, "write {{/exchange.route}}"},
		"never opened":         {"{{/exchange.route}}", 1, 1, "was not opened"},
		"crossed":              {"{{#exchange.route}}{{^exchange.status}}{{/exchange.route}}", 1, 40, "where {{/exchange.status}} is expected"},
		"too deep":             {deep, 1, 1 + len(deep) - len("{{#exchange.route}}"), "nested more than 8"},
		"too many tags":        {strings.Repeat("{{!}}", template.MaxTags+1), 1, 1 + 5*template.MaxTags, "more than 1000 tags"},
		"too long":             {strings.Repeat("x", template.MaxBytes+1), 1, 1, "longer than"},
		"no text":              {"\xff", 1, 1, "valid UTF-8"},
		"NUL":                  {"a\x00", 1, 1, "valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.Parse(c.text, template.InTexts)
			broken, ok := errors.AsType[*template.Error](err)
			if !ok {
				t.Fatalf("Parse: %v, want a template error", err)
			}
			if broken.Line != c.line || broken.Column != c.column || !strings.Contains(broken.Message, c.message) {
				t.Errorf("Parse: %v, want line %d, column %d: …%s…", err, c.line, c.column, c.message)
			}
		})
	}
}

func TestText(t *testing.T) {
	sample := template.Samples()[0]
	for name, c := range map[string]struct{ text, want string }{
		"no tags":            {"plain {text}", "plain {text}"},
		"variables":          {"{{exchange.application}}/{{ exchange.route }}: {{&exchange.status}} {{{rule.name}}}", "orders/order-to-erp: FAILED Failed orders"},
		"times":              {"{{exchange.startTime}} {{exchange.endTime}}", "2026-11-21T07:02:00.123456789Z 2026-11-21T07:02:01.357557588Z"},
		"durations":          {"{{exchange.duration}} = {{exchange.durationMs}}", "1.234 s = 1234.100799"},
		"attribute with dot": {"{{exchange.attributes.http.status}} {{exchange.attributes.customer}}", "504 ACME"},
		"attribute missing":  {"<{{exchange.attributes.none}}>", "<>"},
		"condition":          {"{{#exchange.errorType}}E{{/exchange.errorType}}{{^exchange.errorType}}none{{/exchange.errorType}}", "E"},
		"otherwise":          {"{{^exchange.attributes.none}}none{{/exchange.attributes.none}}", "none"},
		"dot":                {"{{#exchange.errorMessage}}({{.}}){{/exchange.errorMessage}}", "(Read timed out after 1000 ms)"},
		"group":              {"{{#exchange}}{{route}} of {{application}}, {{rule.name}}{{/exchange}}", "order-to-erp of orders, Failed orders"},
		"group of nothing":   {"{{#count}}{{observed}}{{/count}}{{^count}}one{{/count}}", "one"},
		"group in a group":   {"{{#exchange}}{{#rule}}{{name}} {{route}}{{/rule}}{{/exchange}}", "Failed orders order-to-erp"},
		"condition in group": {"{{#exchange}}{{#errorType}}{{.}}{{/errorType}}{{/exchange}}", "java.net.SocketTimeoutException"},
		"map":                {"{{#exchange.attributes}}{{customer}} {{http.status}} {{none}}{{rule.name}}{{/exchange.attributes}}", "ACME 504 Failed orders"},
		"map in a group":     {"{{#exchange}}{{#attributes}}{{#customer}}{{.}}!{{/customer}}{{^none}}?{{/none}}{{/attributes}}{{attributes.customer}}{{/exchange}}", "ACME!?ACME"},
		"list":               {"{{#exchange.attributeList}}{{key}}={{value}};{{/exchange.attributeList}}", "customer=ACME;http.status=504;"},
		"list in a group":    {"{{#exchange}}{{#attributeList}}{{route}} {{key}}, {{/attributeList}}{{/exchange}}", "order-to-erp customer, order-to-erp http.status,"},
		"condition in list":  {"{{#exchange.attributeList}}{{#value}}<{{.}}>{{/value}}{{^value}}-{{/value}}{{/exchange.attributeList}}", "<ACME><504>"},
		"list in a list":     {"{{#exchange.attributeList}}{{key}}:{{#exchange.stackLines}}{{key}}.{{/exchange.stackLines}} {{/exchange.attributeList}}", "customer:customer.customer.customer. http.status:http.status.http.status.http.status."},
		"list of texts":      {"{{#exchange.stackLines}}\n> {{.}}\n{{/exchange.stackLines}}", "> java.net.SocketTimeoutException: Read timed out\n> \tat java.base/java.net.Socket.read(Socket.java:1)\n> \tat com.example.orders.ErpClient.post(ErpClient.java:57)"},
		"list not empty":     {"{{^exchange.stackLines}}none{{/exchange.stackLines}}.", "."},
		"own lines":          {"a\n{{#exchange.route}}\nb\n{{/exchange.route}}\nc", "a\nb\nc"},
		"comment":            {"a{{! not {shown}\n}}b", "ab"},
		"severity":           {"{{alert.severity}} {{rule.id}}", "CRITICAL 00000000-0000-0000-0000-000000000100"},
		"stack top":          {"{{exchange.stackTop}}", "at com.example.orders.ErpClient.post(ErpClient.java:57)"},
		"markup untouched":   {`{{exchange.attributes.customer}} <b> & "'`, `ACME <b> & "'`},
		"tag twice":          {"{{rule.name}}{{rule.name}}", "Failed ordersFailed orders"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := template.Parse(c.text, template.InBody)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parsed.Text(template.ForAlert(&sample, ""), template.MessageLimit())
			if err != nil || got != c.want {
				t.Errorf("Text() = %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestTextIsCutAndOneLine(t *testing.T) {
	parsed, err := template.Parse("{{exchange.errorMessage}}", template.InTexts)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		message string
		limit   template.Limit
		want    string
	}{
		"exact":       {"12345", template.Limit{Runes: 5}, "12345"},
		"longer":      {"123456", template.Limit{Runes: 5}, "1234…"},
		"characters":  {"ééééé", template.Limit{Runes: 5}, "ééééé"},
		"wide":        {"😀😀😀", template.Limit{Runes: 2}, "😀…"},
		"no space …":  {"123 56", template.Limit{Runes: 5}, "123…"},
		"line breaks": {"\na\r\n\tb\x00\x1b\u2028c\u202Ed ", template.Limit{Runes: 50, OneLine: true}, "a b\uFFFD cd"},
		"lines kept":  {"a\nb", template.Limit{Runes: 50}, "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			e := rules.Exchange{ErrorMessage: c.message}
			got, err := parsed.Text(template.ForExchange(&rules.Rule{}, &e), c.limit)
			if err != nil || got != c.want {
				t.Errorf("Text() = %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// Nested conditions, each with the largest value, would write gigabytes if nothing limited them.
func TestRenderingIsBounded(t *testing.T) {
	inner := strings.Repeat("{{exchange.errorStack}}", template.MaxTags-2*template.MaxDepth)
	text := strings.Repeat("{{#exchange.errorStack}}", template.MaxDepth) + inner + strings.Repeat("{{/exchange.errorStack}}", template.MaxDepth)
	parsed, err := template.Parse(text, template.InTexts)
	if err != nil {
		t.Fatal(err)
	}
	e := rules.Exchange{ErrorStack: strings.Repeat("x\n", 1<<20)}
	got, err := parsed.Text(template.ForExchange(&rules.Rule{}, &e), template.Limit{Runes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || len(got) > 256<<10 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestVariablesAllWork(t *testing.T) {
	for _, v := range template.Variables() {
		if v.Description == "" {
			t.Errorf("%s has no description", v.Name)
		}
		scope := template.InBody
		if v.InTexts {
			scope = template.InTexts
		}
		text := "{{" + v.Name + "}}"
		if strings.HasPrefix(v.Description, "A section") {
			text = "{{#" + v.Name + "}}x{{/" + v.Name + "}}"
		}
		parsed, err := template.Parse(text, scope)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		for _, sample := range template.Samples() {
			if _, err := parsed.Text(template.ForAlert(&sample, ""), template.MessageLimit()); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"{{exchange.route}}", "{{#exchange.route}}{{.}}{{/exchange.route}}", "{{>x}}", "{{{exchange.route}}}", "{{! {{ }}", "{{=| |=}}",
		"{{&exchange.attributes.a.b}}\n{{^rule.name}}\r\n{{/rule.name}}\n", rules.DefaultTitle, rules.DefaultMessage, "{{{{exchange.route}}}}",
		"{{#exchange.attributeList}}{{key}}{{#exchange}}{{#attributes}}{{a}}{{/attributes}}{{/exchange}}{{/exchange.attributeList}}", "{{#exchange.stackLines}}{{.}}{{/exchange.stackLines}}",
	} {
		f.Add(seed)
	}
	samples := template.Samples()
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := template.Parse(text, template.InTexts)
		if err != nil {
			if _, ok := errors.AsType[*template.Error](err); !ok {
				t.Fatalf("not a template error: %v", err)
			}
			return
		}
		for i := range samples {
			got, err := parsed.Text(template.ForAlert(&samples[i], ""), template.TitleLimit())
			if err != nil {
				t.Fatalf("an accepted template does not render: %v", err)
			}
			if !utf8.ValidString(got) || utf8.RuneCountInString(got) > template.MaxTitleRunes || strings.ContainsAny(got, "\x00\n") {
				t.Fatalf("title %q", got)
			}
		}
	})
}

// The literal text of a template is kept as it is, whatever braces and line breaks it contains.
func TestPlainTextSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.StringOfN(rapid.SampledFrom([]rune("ab {}\n\r\t#/&")), 0, 40, -1).
			Filter(func(s string) bool { return !strings.Contains(s, "{{") && !strings.HasSuffix(s, "{") })
		text := plain.Draw(t, "text")
		parsed, err := template.Parse(text+"{{rule.name}}", template.InTexts)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsed.Text(template.ForExchange(&rules.Rule{Definition: rules.Definition{Name: "N"}}, &rules.Exchange{}), template.MessageLimit())
		if want := strings.TrimSpace(text + "N"); err != nil || got != want {
			t.Fatalf("Text() = %q, %v; want %q", got, err, want)
		}
	})
}
