//go:build unix

package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"tocsin/cmd/devstack/internal/slackalike"
)

// demoWebhook is a webhook to make: its name, and its path on the Slack look-alike, the channel
// that it posts to as a bot, or the addressee of its e-mails.
type demoWebhook struct {
	name, path, channel, mailTo string
}

func demoWebhooks() []demoWebhook {
	return []demoWebhook{
		{name: "Slack #integration-ops", path: "/services/T0DEMO/B0OPS/integrationops"},
		{name: "Slack #orders (bot, with buttons)", channel: "#orders"},
		{name: "Slack #billing", path: "/services/T0DEMO/B0BILLING/billingteam"},
		{name: "E-mail to finance", mailTo: "Finance <finance@example.com>, Kim Berg <kim.berg@example.com>"},
	}
}

// demoRule is a rule to make, in the form of the API. webhook is the name of the webhook that it
// notifies; also is the name of another one.
type demoRule struct {
	Name       string         `json:"name"`
	FireMode   string         `json:"fireMode"`
	Severity   string         `json:"severity"`
	Scope      map[string]any `json:"scope"`
	Filter     map[string]any `json:"filter"`
	WebhookIDs []string       `json:"webhookIds"`

	// The following fields belong to window rules.
	WindowSeconds      int     `json:"windowSeconds,omitempty"`
	ShortWindowSeconds int     `json:"shortWindowSeconds,omitempty"`
	Percent            float64 `json:"percent,omitempty"`
	Percentile         int     `json:"percentile,omitempty"`
	DurationMS         int     `json:"durationMs,omitempty"`
	MinVolume          int     `json:"minVolume,omitempty"`
	GroupBy            string  `json:"groupBy,omitempty"`
	NotifyOnResolve    bool    `json:"notifyOnResolve,omitempty"`
	// Threshold and Expected belong to rules on absence.
	Threshold int      `json:"threshold,omitempty"`
	Expected  []string `json:"expected,omitempty"`

	webhook, also string
}

// demoRules divide the demo's failures among teams: each failure in production matches exactly one
// of the rules about single exchanges. Three more rules are about routes in trouble.
func demoRules() []demoRule {
	failedIn := func(name, severity, webhook string, applications ...string) demoRule {
		return demoRule{
			Name: name, FireMode: "PER_EXCHANGE", Severity: severity, webhook: webhook,
			Scope:  map[string]any{"environments": []string{"production"}, "applications": applications},
			Filter: map[string]any{"statuses": []string{"FAILED"}},
		}
	}
	slow := failedIn("Slow payment", "INFO", "Slack #billing", "payments")
	slow.Filter = map[string]any{"statuses": []string{"COMPLETED"}, "minDurationMs": 2000}
	money := failedIn("Money stuck", "CRITICAL", "Slack #billing", "billing", "payments", "procurement")
	money.also = "E-mail to finance"
	return []demoRule{
		failedIn("Order failed", "CRITICAL", "Slack #orders (bot, with buttons)", "orders", "returns"),
		money,
		failedIn("Integration failed", "WARNING", "Slack #integration-ops",
			"analytics", "crm", "documents", "identity", "inventory", "pricing", "shipping"),
		slow,
		{
			Name: "Error ratio of a route", FireMode: "RATIO_IN_WINDOW", Severity: "CRITICAL", webhook: "Slack #integration-ops",
			Scope: map[string]any{"environments": []string{"production"}}, Filter: map[string]any{"statuses": []string{"FAILED"}},
			Percent: 25, MinVolume: 20, WindowSeconds: 120, ShortWindowSeconds: 30, GroupBy: "ROUTE", NotifyOnResolve: true,
		},
		{
			Name: "Slow route", FireMode: "DURATION_IN_WINDOW", Severity: "WARNING", webhook: "Slack #integration-ops",
			Scope: map[string]any{"environments": []string{"production"}}, Filter: map[string]any{"statuses": []string{"COMPLETED"}},
			Percentile: 95, DurationMS: 4000, MinVolume: 10, WindowSeconds: 120, GroupBy: "ROUTE", NotifyOnResolve: true,
		},
		{
			Name: "Silent route", FireMode: "ABSENT_IN_WINDOW", Severity: "CRITICAL", webhook: "Slack #integration-ops",
			Scope: map[string]any{"environments": []string{"production"}}, Filter: map[string]any{"statuses": []string{"COMPLETED", "FAILED"}},
			Threshold: 1, WindowSeconds: 60, GroupBy: "ROUTE", NotifyOnResolve: true,
			Expected: []string{"event-stream", "order-intake", "stock-level-push", "tracking-import"},
		},
	}
}

// seed makes the demo's webhooks and rules, once for each data directory. If a crash interrupted
// it, it completes them by name.
func (u *up) seed(ctx context.Context) error {
	if u.data.settings.Seeded {
		return nil
	}
	api, err := u.signedIn(ctx)
	if err != nil {
		return err
	}
	webhooks, err := api.names(ctx, "/webhooks")
	if err != nil {
		return fmt.Errorf("seed webhooks: %w", err)
	}
	for _, wanted := range demoWebhooks() {
		if webhooks[wanted.name] != "" {
			continue
		}
		webhooks[wanted.name], err = api.create(ctx, "/webhooks", u.definition(wanted))
		if err != nil {
			return fmt.Errorf("seed webhook %s: %w", wanted.name, err)
		}
	}
	for _, wanted := range demoWebhooks() {
		if wanted.channel != "" {
			u.data.settings.BotWebhook = webhooks[wanted.name]
		}
	}
	rules, err := api.names(ctx, "/rules")
	if err != nil {
		return fmt.Errorf("seed rules: %w", err)
	}
	for _, wanted := range demoRules() {
		if rules[wanted.Name] != "" {
			continue
		}
		wanted.WebhookIDs = []string{webhooks[wanted.webhook]}
		if wanted.also != "" {
			wanted.WebhookIDs = append(wanted.WebhookIDs, webhooks[wanted.also])
		}
		if _, err := api.create(ctx, "/rules", wanted); err != nil {
			return fmt.Errorf("seed rule %s: %w", wanted.Name, err)
		}
	}
	u.data.settings.Seeded = true
	u.console.Sayf("seeded %d rules and %d webhooks", len(demoRules()), len(demoWebhooks()))
	return u.data.writeSettings()
}

// definition is a webhook in the form of the API.
func (u *up) definition(w demoWebhook) map[string]any {
	if w.mailTo != "" {
		return map[string]any{
			"name": w.name, "kind": "generic", "events": []string{"ACKNOWLEDGED", "RESOLVED", "REOPENED"},
			"preset": map[string]any{"id": "email", "inputs": map[string]string{
				"host": "127.0.0.1", "port": strconv.Itoa(u.data.settings.MailPort), "security": "none",
				"from": "Tocsin <alerts@tocsin.example>", "to": w.mailTo,
			}},
		}
	}
	if w.channel == "" {
		return map[string]any{"name": w.name, "kind": "slack", "url": u.slack.url() + w.path}
	}
	bot := slackalike.DefaultBot()
	return map[string]any{"name": w.name, "kind": "slack", "slack": map[string]any{
		"channel": w.channel, "botToken": bot.Token, "signingSecret": bot.SigningSecret,
	}}
}

// apiClient is a client of Tocsin's REST API.
type apiClient struct {
	base string
	http *http.Client
}

// names returns the ids of the objects at path, by name.
func (c apiClient) names(ctx context.Context, path string) (map[string]string, error) {
	var page struct {
		Items []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"items"`
	}
	if err := c.call(ctx, http.MethodGet, path+"?limit=200", nil, &page); err != nil {
		return nil, err
	}
	ids := make(map[string]string, len(page.Items))
	for _, item := range page.Items {
		ids[item.Name] = item.ID
	}
	return ids, nil
}

// create makes an object at path and returns its id.
func (c apiClient) create(ctx context.Context, path string, thing any) (string, error) {
	var created struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, http.MethodPost, path, thing, &created)
	return created.ID, err
}

func (c apiClient) call(ctx context.Context, method, path string, in, out any) (err error) {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if !slices.Contains([]int{http.StatusOK, http.StatusCreated}, response.StatusCode) {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	return json.Unmarshal(answer, out)
}
