package template

import (
	"strings"
	"testing"

	"github.com/cbroglie/mustache"
	"pgregory.net/rapid"
)

// TestJoinedIsWhatTheEngineWrites compares templates without conditions with
// what the engine makes of them.
func TestJoinedIsWhatTheEngineWrites(t *testing.T) {
	values := make([]*Values, len(Samples()))
	for i, sample := range Samples() {
		values[i] = ForAlert(&sample, "https://tocsin.example.org/alerts/1")
	}
	pieces := []string{
		"", " ", "\n", "\r\n", "\t", "a", "{", "}", "}}", "&", "<b>", "\u2028", "ü", `"`, "{ {x} }",
		"{{exchange.route}}", "{{{exchange.errorMessage}}}", "{{& exchange.errorStack }}", "{{ rule.name }}", "{{exchange.attributes.http.status}}", "{{alert.id}}",
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(rt, "pieces"), "")
		joined, err := Parse(text, InBody)
		if err != nil {
			return // a brace before a tag
		}
		if joined.engine != nil {
			rt.Fatalf("%q needs the engine", text)
		}
		read, err := scan(text, InBody)
		if err != nil {
			rt.Fatal(err)
		}
		engine, err := mustache.ParseStringPartials(read.out.String(), &mustache.StaticProvider{})
		if err != nil {
			rt.Fatal(err)
		}
		by := *joined
		by.engine = engine
		escape := rapid.SampledFrom([]func(string) string{nil, func(s string) string { return "<" + s + ">" }}).Draw(rt, "value")
		for _, v := range values {
			want, err := by.render(v, escape)
			if err != nil {
				rt.Fatal(err)
			}
			if got, err := joined.render(v, escape); err != nil || got != want {
				rt.Fatalf("%q: joined %q, %v; the engine writes %q", text, got, err, want)
			}
		}
	})
}

// TestJoinedIsBounded cuts what is longer than any message can hold.
func TestJoinedIsBounded(t *testing.T) {
	parsed, err := Parse(strings.Repeat("{{exchange.errorStack}}", 100), InBody)
	if err != nil {
		t.Fatal(err)
	}
	samples := Samples()
	values := ForAlert(&samples[len(samples)-1], "")
	values.exchange.ErrorStack = strings.Repeat("ü", 20_000)
	if text, err := parsed.render(values, nil); err != nil || len(text) > maxOutputBytes+2 || len(text) < maxOutputBytes-2 {
		t.Errorf("%d bytes, %v, want %d", len(text), err, maxOutputBytes)
	}
}
