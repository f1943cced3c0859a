package webhook_test

import (
	"strings"
	"testing"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/webhook"
	"tocsin/rules"
)

func TestExchangeURL(t *testing.T) {
	exchange := rules.Exchange{
		TenantID: "default", Application: "orders", Route: "a/b c", ExecutionID: `x"&<>|1`, CorrelationID: "4bf9", StartTimeNS: 1, Status: rules.Failed,
	}
	alert := alerts.Instance{Title: "failed", Exchange: exchange}
	without := alert
	without.Exchange.CorrelationID = ""
	health := alert
	health.Health = true
	for name, c := range map[string]struct {
		address string
		alert   alerts.Instance
		want    string
	}{
		"a part of the path":    {"https://traces.example.com/trace/{correlationId}", alert, "https://traces.example.com/trace/4bf9"},
		"escaped":               {"https://x.example/{route}?id={executionId}", alert, "https://x.example/a%2Fb%20c?id=x%22%26%3C%3E%7C1"},
		"nothing to fill it":    {"https://traces.example.com/trace/{correlationId}", without, ""},
		"no exchange":           {"https://traces.example.com/trace/{executionId}", health, ""},
		"no address, no button": {"", alert, ""},
		"one address for all":   {"https://traces.example.com/", alert, "https://traces.example.com/"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := webhook.NewRenderer(webhook.RendererOptions{ExchangeURL: c.address})
			if err != nil {
				t.Fatal(err)
			}
			body, problem := r.Render(&notify.Delivery{Reason: notify.ReasonFired, Alert: c.alert, Webhook: notify.Webhook{Kind: notify.KindSlack}})
			if problem != nil {
				t.Fatal(problem)
			}
			got := strings.Contains(string(body.Content), `"action_id":"open_exchange"`)
			if got != (c.want != "") || c.want != "" && !strings.Contains(string(body.Content), `"url":"`+c.want+`"`) {
				t.Errorf("want the address %q in %s", c.want, body.Content)
			}
		})
	}
	for _, address := range []string{"traces/{executionId}", "ftp://x/{executionId}", "https://{application}.example.com/", "https://x.example/{id}", "https://u:p@x.example/{route}"} {
		if _, err := webhook.NewRenderer(webhook.RendererOptions{ExchangeURL: address}); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}
