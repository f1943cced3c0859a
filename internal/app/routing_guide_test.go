package app_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"tocsin/internal/access"
)

// TestTheExamplesOfRoutingHold applies each file of the guide to routing, and tests its routes.
func TestTheExamplesOfRoutingHold(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("guide", access.Admin).token
	f.does(0, []string{"5 created"}, "apply", "-f", f.write("before.yaml", `
webhooks:
  - { name: integration, kind: generic, url: "https://integration.example/hook" }
  - { name: pager, kind: generic, url: "https://pager.example/hook" }
  - { name: erp-team, kind: generic, url: "https://erp.example/hook" }
  - { name: billing-team, kind: generic, url: "https://billing.example/hook" }
teams:
  - { name: platform, webhooks: [billing-team] }
`))
	type test struct{ args, expect, says string }
	for _, guide := range []struct {
		page     string
		language string
		// tests are those of each file, in order.
		tests [][]test
		// prints is the file with which the guide shows what a command prints.
		prints int
	}{{"routing.md", "yaml", [][]test{
		{
			{"--severity warning --label team=erp", "erp-team", ""},
			{"--severity warning --label team=billing", "billing-team", ""},
			{"--severity warning", "integration", ""},
			{"--rule Order_failed --application orders", "erp-team", ""},
		},
		{
			{"--severity critical --application sap-gateway --environment production", "pager,erp-team", ""},
			{"--severity critical --application web --environment production", "pager", ""},
			{"--severity warning --application orders --environment production", "erp-team", ""},
			{"--severity warning --application web", "integration", ""},
		},
		{
			{"--severity warning --application tax --message It_will_be_retried", "none", "Retries of the tax office"},
			{"--severity warning --application tax --message Refused", "none", "NOT_MATCHED"},
		},
		{
			{"--severity critical --environment production", "integration", "after 30 min without acknowledgement: "},
			{"--severity warning --environment production", "none", ""},
		},
		{
			{"--severity warning --application sap-gateway", "erp-team", "after 30 min without acknowledgement: pager"},
		},
	}, 1}} {
		examples := fences(t, "../../docs/"+guide.page, guide.language)
		if len(examples) != len(guide.tests) {
			t.Fatalf("%s has %d files, and %d are tested", guide.page, len(examples), len(guide.tests))
		}
		for i, example := range examples {
			if strings.HasPrefix(example, "  - ") { // a route for the list above it
				example = "routes:\n" + example
			}
			// A webhook of the same name is there, and its kind cannot change.
			example = strings.ReplaceAll(example, "kind: slack\n    url: { env: SLACK_ERP_URL }", "kind: generic\n    url: https://erp.example/hook")
			f.does(0, nil, "apply", "-f", f.write("example.yaml", example))
			if i == guide.prints {
				command, shown := printed(t, "../../docs/"+guide.page)
				out, code := f.command(append([]string{command[1], command[2], "--url", f.base, "--token", f.token}, command[3:]...)...)
				if out = trailing.ReplaceAllString(out, ""); code != 0 || out != shown {
					t.Errorf("%s: exit %d, prints\n%s\nand %s shows\n%s", command, code, out, guide.page, shown)
				}
			}
			for _, try := range guide.tests[i] {
				args := []string{"test", "--url", f.base, "--token", f.token, "--expect", try.expect}
				for word := range strings.FieldsSeq(try.args) {
					args = append(args, strings.ReplaceAll(word, "_", " "))
				}
				if out, code := f.command(append([]string{"route"}, args...)...); code != 0 || !strings.Contains(out, try.says) {
					t.Errorf("%s, file %d, %s: exit %d, want %q\n%s", guide.page, i+1, try.args, code, try.says, out)
				}
			}
		}
	}
}

// trailing is the space at the end of lines, which pages do not have.
var trailing = regexp.MustCompile(`(?m) +$`)

// printed returns a command of a page, and what it prints according to the page.
func printed(t *testing.T, path string) (command []string, shown string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, after, there := strings.Cut(string(page), "The command about staging prints:\n\n```\n"); there {
		shown, _, _ = strings.Cut(after, "```")
	}
	for _, block := range fences(t, path, "sh") {
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "tocsin route test") && strings.Contains(line, "staging") {
				command = words(strings.TrimSpace(line))
			}
		}
	}
	if command == nil || shown == "" {
		t.Fatalf("%s shows neither a command about staging nor what it prints", path)
	}
	return command, shown
}
