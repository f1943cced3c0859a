package webhook_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

// TestThePageOfWebhooksHasEveryType compares the table of types in docs/webhooks.md with what is sent for each reason.
func TestThePageOfWebhooksHasEveryType(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../notify.go")
	if err != nil {
		t.Fatal(err)
	}
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, reason := range regexp.MustCompile(`(?m)^\tReason\w+\s+Reason = "(\w+)"$`).FindAllSubmatch(source, -1) {
		d := delivery("", func(d *notify.Delivery) {
			d.Reason = notify.Reason(reason[1])
			if d.Reason == notify.ReasonDigest {
				d.Digest = &notify.Digest{Size: 2}
			}
		})
		body, err := renderer.Render(d)
		if err != nil {
			t.Fatalf("%s: %v", reason[1], err)
		}
		var payload struct{ Type string }
		if err := json.Unmarshal(body.Content, &payload); err != nil {
			t.Fatalf("%s: %v", reason[1], err)
		}
		sent = append(sent, payload.Type)
	}
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?m)^\| type \| when \|\n\| --- \| --- \|\n((?:\|.*\n)+)`).FindSubmatch(page)
	if table == nil {
		t.Fatal("docs/webhooks.md has no table of types")
	}
	var described []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ").FindAllSubmatch(table[1], -1) {
		described = append(described, string(row[1]))
	}
	slices.Sort(sent)
	slices.Sort(described)
	if !slices.Equal(sent, described) || len(sent) == 0 {
		t.Errorf("sent are %q, docs/webhooks.md describes %q", sent, described)
	}
}
