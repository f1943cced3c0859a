package template_test

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/notify/template"
	"tocsin/rules"
)

func newTexts(t *testing.T) *template.Texts {
	t.Helper()
	texts, err := template.NewTexts()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestTexts(t *testing.T) {
	failed := rules.Exchange{Application: "orders", Route: "to-erp", Status: rules.Failed, ErrorType: "Timeout", ErrorMessage: "no answer", DurationNS: 1_500_000_000}
	slow := rules.Exchange{Application: "orders", Route: "to-erp", Status: rules.Completed, DurationNS: 12_340_000_000}
	noType, noMessage := failed, failed
	noType.ErrorType, noMessage.ErrorMessage = "", ""
	for name, c := range map[string]struct {
		titleTemplate, messageTemplate string
		exchange                       rules.Exchange
		title, message, problem        string
	}{
		"defaults":           {"", "", failed, "orders · to-erp: FAILED", "Timeout: no answer", ""},
		"slow but completed": {"", "", slow, "orders · to-erp: COMPLETED", "COMPLETED after 12.34 s", ""},
		"no error type":      {"", "", noType, "orders · to-erp: FAILED", "no answer", ""},
		"no error message":   {"", "", noMessage, "orders · to-erp: FAILED", "Timeout, without a message, after 1.5 s", ""},
		"own":                {"{{rule.name}}!", "{{exchange.route}}\n{{exchange.errorMessage}}", failed, "R!", "to-erp\nno answer", ""},
		"broken title":       {"{{>x}}", "m", failed, "orders · to-erp: FAILED", "m", "titleTemplate: line 1, column 1: Partials"},
		"broken message":     {"t", "{{exchange.nope}}", failed, "t", "Timeout: no answer", "messageTemplate: line 1, column 1: Unknown variable"},
		"comes to nothing":   {"{{exchange.attributes.none}}", " \n", failed, "orders · to-erp: FAILED", "Timeout: no answer", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rule := rules.Rule{ID: uuid.UUID{1}, Version: 1, Definition: rules.Definition{Name: "R", TitleTemplate: c.titleTemplate, MessageTemplate: c.messageTemplate}}
			texts := newTexts(t)
			for range 2 { // the second time from the cache
				title, message, problem := texts.Texts(&rule, &c.exchange)
				if title != c.title || message != c.message {
					t.Errorf("Texts() = %q, %q; want %q, %q", title, message, c.title, c.message)
				}
				if (problem == nil) != (c.problem == "") || problem != nil && !strings.HasPrefix(problem.Error(), c.problem) {
					t.Errorf("problem %v, want %q", problem, c.problem)
				}
			}
		})
	}
}

func TestCountTexts(t *testing.T) {
	grouped := func(observed int64, group string) alerts.Count {
		return alerts.Count{Observed: observed, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: group}
	}
	all := alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 5400}
	failed := rules.Exchange{ExecutionID: "1", Application: "orders", Route: "to-erp", Status: rules.Failed, ErrorType: "Timeout", ErrorMessage: "no answer", DurationNS: 1_500_000_000}
	slow := rules.Exchange{ExecutionID: "1", Application: "orders", Route: "to-erp", Status: rules.Completed, DurationNS: 12_340_000_000}
	noMessage := failed
	noMessage.ErrorMessage = ""
	const newest = "The threshold of 5 within 10 min was reached. Newest exchange: orders · to-erp: "
	const longer = "The threshold of 5 within 1 h 30 min was reached. Newest exchange: orders · to-erp: "
	for name, c := range map[string]struct {
		titleTemplate, messageTemplate string
		count                          alerts.Count
		newest                         rules.Exchange
		title, message, problem        string
	}{
		"defaults":         {"", "", all, failed, "7 exchanges within 1 h 30 min", longer + "no answer", ""},
		"grouped":          {"", "", grouped(7, "to-erp"), failed, "to-erp: 7 exchanges within 10 min", newest + "no answer", ""},
		"group of no name": {"", "", grouped(7, ""), failed, "7 exchanges within 10 min, without a name to group them by", newest + "no answer", ""},
		"one":              {"", "", alerts.Count{Observed: 1, Threshold: 1, WindowSeconds: 45}, failed, "1 exchange within 45 s", "The threshold of 1 within 45 s was reached. Newest exchange: orders · to-erp: no answer", ""},
		"one of a group":   {"", "", grouped(1, "to-erp"), failed, "to-erp: 1 exchange within 10 min", "Fewer than 5 match within 10 min.", ""},
		"slow":             {"", "", all, slow, "7 exchanges within 1 h 30 min", longer + "COMPLETED after 12.34 s", ""},
		"no error message": {"", "", all, noMessage, "7 exchanges within 1 h 30 min", longer + "Timeout after 1.5 s", ""},
		"newest unknown":   {"", "", grouped(7, "to-erp"), rules.Exchange{}, "to-erp: 7 exchanges within 10 min", "The threshold of 5 within 10 min was reached.", ""},
		"below":            {"", "", grouped(3, "to-erp"), failed, "to-erp: 3 exchanges within 10 min", "Fewer than 5 match within 10 min.", ""},
		"own": {
			"{{count.observed}}/{{count.threshold}} in {{count.windowSeconds}} s", "{{count.group}}, {{exchange.startTime}}{{exchange.duration}}",
			grouped(7, "to-erp"),
			rules.Exchange{},
			"7/5 in 600 s", "to-erp,", "",
		},
		"broken": {"{{>x}}", "{{count.nope}}", all, failed, "7 exchanges within 1 h 30 min", longer + "no answer", "titleTemplate: line 1, column 1: Partials"},
	} {
		t.Run(name, func(t *testing.T) {
			rule := rules.Rule{ID: uuid.UUID{1}, Version: 1, Definition: rules.Definition{
				Name: "R", FireMode: rules.CountInWindow, TitleTemplate: c.titleTemplate, MessageTemplate: c.messageTemplate,
			}}
			texts := newTexts(t)
			for range 2 { // the second time from the cache
				title, message, problem := texts.CountTexts(&rule, &c.count, &c.newest)
				if title != c.title || message != c.message {
					t.Errorf("CountTexts() = %q, %q; want %q, %q", title, message, c.title, c.message)
				}
				if (problem == nil) != (c.problem == "") || problem != nil && !strings.HasPrefix(problem.Error(), c.problem) {
					t.Errorf("problem %v, want %q", problem, c.problem)
				}
			}
		})
	}
}

func TestCountIsEmptyForOneExchange(t *testing.T) {
	rule := rules.Rule{Definition: rules.Definition{
		TitleTemplate: "<{{count.observed}}{{count.threshold}}{{count.window}}{{count.windowSeconds}}{{count.group}}>{{^count.observed}}one{{/count.observed}}",
	}}
	if title, _, problem := newTexts(t).Texts(&rule, &rules.Exchange{}); title != "<>one" || problem != nil {
		t.Errorf("title %q, problem %v", title, problem)
	}
}

func TestTextsFollowTheVersion(t *testing.T) {
	texts := newTexts(t)
	e := rules.Exchange{Route: "r"}
	rule := rules.Rule{ID: uuid.UUID{1}, Version: 1, Definition: rules.Definition{TitleTemplate: "old"}}
	if title, _, _ := texts.Texts(&rule, &e); title != "old" {
		t.Fatal(title)
	}
	rule.Version, rule.TitleTemplate = 2, "new"
	if title, _, _ := texts.Texts(&rule, &e); title != "new" {
		t.Errorf("title %q after the edit, want %q", title, "new")
	}
	unsaved := rules.Rule{Definition: rules.Definition{TitleTemplate: "first"}}
	if title, _, _ := texts.Texts(&unsaved, &e); title != "first" {
		t.Fatal(title)
	}
	unsaved.TitleTemplate = "second"
	if title, _, _ := texts.Texts(&unsaved, &e); title != "second" {
		t.Errorf("title %q of an unsaved rule, want %q", title, "second")
	}
}

func TestTextsTogether(t *testing.T) {
	texts := newTexts(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				rule := rules.Rule{ID: uuid.UUID{byte(j)}, Version: int64(i), Definition: rules.Definition{TitleTemplate: "{{exchange.route}}"}}
				if title, _, problem := texts.Texts(&rule, &rules.Exchange{Route: "r"}); title != "r" || problem != nil {
					t.Errorf("title %q, problem %v", title, problem)
				}
			}
		})
	}
	wg.Wait()
}

// anyText draws texts as programs write them: nothing, words, markup, odd bytes, and a lot of each.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Just(""),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 60), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"\"", "\\", "\n", "</script>", "<!channel>", "{{>x}}", "\x00", "\xff", "\u2028", "```", "😀", `\u0000`}),
		rapid.Custom(func(t *rapid.T) string {
			piece := rapid.SampledFrom([]string{"<&>", "😀", "\x00", "\xff", "a b ", "\"\\\n"}).Draw(t, "piece")
			return strings.Repeat(piece, rapid.SampledFrom([]int{10, 1000, 60_000}).Draw(t, "times"))
		}),
	)
}

func anyExchange() *rapid.Generator[rules.Exchange] {
	return rapid.Custom(func(t *rapid.T) rules.Exchange {
		return rules.Exchange{
			StartTimeNS: rapid.Int64().Draw(t, "start"), DurationNS: rapid.Int64().Draw(t, "duration"),
			ExecutionID: anyText().Draw(t, "id"), Environment: anyText().Draw(t, "environment"), Application: anyText().Draw(t, "application"),
			Route: anyText().Draw(t, "route"), Status: rules.Status(anyText().Draw(t, "status")), ErrorType: anyText().Draw(t, "type"),
			ErrorMessage: anyText().Draw(t, "message"), ErrorStack: anyText().Draw(t, "stack"), CorrelationID: anyText().Draw(t, "correlation"),
			Attributes: map[string]string{"a.b": anyText().Draw(t, "attribute")},
		}
	})
}

func TestTextsHold(t *testing.T) {
	texts := newTexts(t)
	rapid.Check(t, func(t *rapid.T) {
		e := anyExchange().Draw(t, "exchange")
		rule := rules.Rule{Definition: rules.Definition{
			Name:            anyText().Draw(t, "name"),
			TitleTemplate:   rapid.SampledFrom([]string{"", "{{exchange.errorMessage}} {{rule.name}}", "{{exchange.attributes.a.b}}", "{{"}).Draw(t, "title template"),
			MessageTemplate: rapid.SampledFrom([]string{"", "{{exchange.errorStack}}{{exchange.stackTop}}", "{{exchange.startTime}} {{exchange.duration}}"}).Draw(t, "message template"),
		}}
		title, message, _ := texts.Texts(&rule, &e)
		if rapid.Bool().Draw(t, "counts") {
			title, message, _ = texts.CountTexts(&rule, &alerts.Count{
				Observed: rapid.Int64().Draw(t, "observed"), Threshold: rapid.Int().Draw(t, "threshold"), WindowSeconds: rapid.IntRange(0, 86_400).Draw(t, "window"),
				GroupBy: rapid.SampledFrom([]rules.GroupBy{"", rules.GroupByRoute}).Draw(t, "group by"), Group: anyText().Draw(t, "group"),
			}, &e)
		}
		for name, text := range map[string]string{"title": title, "message": message} {
			if text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Fatalf("%s %q", name, text)
			}
		}
		if utf8.RuneCountInString(title) > template.MaxTitleRunes || strings.ContainsAny(title, "\n\r\t\u2028") {
			t.Fatalf("title %q", title)
		}
		if utf8.RuneCountInString(message) > template.MaxMessageRunes {
			t.Fatalf("message of %d characters", utf8.RuneCountInString(message))
		}
	})
}

func TestCheckRule(t *testing.T) {
	good := rules.Definition{TitleTemplate: rules.DefaultTitle, MessageTemplate: "{{exchange.stackTop}}"}
	if fields := template.CheckRule(&good); fields != nil {
		t.Errorf("CheckRule: %v", fields)
	}
	if fields := template.CheckRule(&rules.Definition{}); fields != nil {
		t.Errorf("CheckRule of the defaults: %v", fields)
	}
	counting := rules.Definition{FireMode: rules.CountInWindow, TitleTemplate: rules.DefaultCountGroupTitle, MessageTemplate: rules.DefaultCountMessage}
	if fields := template.CheckRule(&counting); fields != nil {
		t.Errorf("CheckRule of a window rule: %v", fields)
	}
	fields := template.CheckRule(&rules.Definition{TitleTemplate: "{{exchange.rout}}", MessageTemplate: "\n{{>x}}"})
	if len(fields) != 2 || fields[0].Field != "titleTemplate" || fields[1].Field != "messageTemplate" {
		t.Fatalf("CheckRule: %v", fields)
	}
	if want := `Unknown variable "exchange.rout"; did you mean "exchange.route"? (line 1, column 1)`; fields[0].Message != want {
		t.Errorf("message %q, want %q", fields[0].Message, want)
	}
	if !strings.Contains(fields[1].Message, "(line 2, column 1)") {
		t.Errorf("message %q", fields[1].Message)
	}
}

func BenchmarkTexts(b *testing.B) {
	texts, err := template.NewTexts()
	if err != nil {
		b.Fatal(err)
	}
	e := template.Samples()[0].Exchange
	rule := rules.Rule{ID: uuid.UUID{1}, Version: 1}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = texts.Texts(&rule, &e)
	}
}
