package webhook_test

import (
	"testing"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

// TestABodyTemplateIsParsedOnce renders a long template many times. Parsing it takes far
// more allocations than rendering what is parsed.
func TestABodyTemplateIsParsedOnce(t *testing.T) {
	r, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"id": "{{alert.id}}", "list": [`
	for range 300 {
		text += `"plain text", `
	}
	text += `"the end"]}`
	d := delivery("", func(d *notify.Delivery) { d.Webhook.BodyTemplate = text })
	render := func() {
		if _, err := r.Render(d); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(20, render); n > 100 {
		t.Errorf("%v allocations for a message; the template of 300 strings is parsed for each", n)
	}
}

// TestATemplateThatCannotBeReadFallsBack checks that its error is cached, too.
func TestATemplateThatCannotBeReadFallsBack(t *testing.T) {
	r, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery("", func(d *notify.Delivery) { d.Webhook.BodyTemplate = `{"id": "{{alert.id}"` })
	for range 2 {
		if body, err := r.Render(d); err == nil || len(body.Content) == 0 {
			t.Errorf("rendered %q, %v; want the layout and why", body.Content, err)
		}
	}
}
