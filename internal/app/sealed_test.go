package app_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/internal/app"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
)

// TestAWebhookWhoseKeyIsMissing has one webhook that is encrypted with a key that the replica does
// not have.
func TestAWebhookWhoseKeyIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.webhook("found")
	box, err := seal.New(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := postgres.Open(t.Context(), w.pgURL, box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	store := func(name string, app notify.SlackApp) string {
		hook := notify.Webhook{
			Name: name, Kind: notify.KindGeneric, URL: w.receiver.url, Enabled: true, Timeout: notify.DefaultTimeout, MaxConcurrent: 2,
			Headers: map[string]string{"X-Team": "ops"}, SigningSecret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		}
		if app.Used() {
			hook.Kind, hook.URL, hook.Headers, hook.SigningSecret, hook.Slack = notify.KindSlack, "", nil, "", app
		}
		stored, err := other.Webhooks().Create(t.Context(), tenant, hook)
		if err != nil {
			t.Fatal(err)
		}
		return "/webhooks/" + stored.ID.String()
	}
	lost, bot := store("lost", notify.SlackApp{}), store("lost bot", notify.SlackApp{Channel: "C0123456789", BotToken: "xoxb-0123456789-first"})
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleAPI} })
	c := newCaller(t, base)

	var names, problems []string
	for _, item := range c.must(http.StatusOK, http.MethodGet, "/webhooks", nil).body["items"].([]any) {
		hook := item.(map[string]any)
		names = append(names, hook["name"].(string))
		problem, _ := hook["secretsProblem"].(string)
		problems = append(problems, problem)
	}
	const problem = "its key 4bb06f8e is not among the configured keys; add the key that was in use when it was stored"
	if !slices.Equal(names, []string{"found", "lost", "lost bot"}) || !slices.Equal(problems, []string{"", problem, problem}) {
		t.Errorf("listed are %q, with the problems %q", names, problems)
	}
	shown := c.must(http.StatusOK, http.MethodGet, lost, nil)
	if shown.text("urlHost") != strings.TrimPrefix(w.receiver.url, "http://") || shown.body["hasSigningSecret"] != true {
		t.Errorf("shown is %v", shown.body)
	}

	version := func(path string) string { return c.must(http.StatusOK, http.MethodGet, path, nil).header.Get("ETag") }
	refuses := func(method, path string, body any) {
		t.Helper()
		var header []string
		if method == http.MethodPut {
			header = []string{"If-Match", version(path)}
		}
		got := c.must(http.StatusConflict, method, path, body, header...)
		if !strings.Contains(got.text("detail"), problem+", or edit the webhook and enter its URL") {
			t.Errorf("%s %s: %q", method, path, got.text("detail"))
		}
	}
	again := map[string]any{"name": "lost", "url": w.receiver.url + "/again", "headers": map[string]string{}, "signingSecret": ""}
	for _, missing := range []string{"url", "headers", "signingSecret"} {
		part := map[string]any{}
		for name, value := range again {
			if name != missing {
				part[name] = value
			}
		}
		refuses(http.MethodPut, lost, part)
	}
	refuses(http.MethodPut, bot, map[string]any{"name": "lost bot", "slack": map[string]any{"channel": "C0123456789", "botToken": "xoxb-0123456789-second"}})
	refuses(http.MethodPost, lost+"/enable", nil)
	refuses(http.MethodPost, lost+"/rotate-secret", map[string]any{})
	refuses(http.MethodPost, lost+"/retire-secret", nil)
	if got := c.must(http.StatusOK, http.MethodPost, lost+"/test", nil); !strings.Contains(got.text("error"), problem) {
		t.Errorf("tested: %v", got.body)
	}
	c.must(http.StatusOK, http.MethodPost, "/templates/preview", map[string]any{"webhookId": strings.TrimPrefix(lost, "/webhooks/")})

	// Disabled without its secrets, it has all of them once the key is available again.
	for _, path := range []string{lost, bot} {
		if got := c.must(http.StatusOK, http.MethodPost, path+"/disable", nil); got.body["enabled"] != false || got.text("secretsProblem") != problem {
			t.Errorf("disabled: %v", got.body)
		}
	}
	list, err := other.Webhooks().List(t.Context(), tenant, api.NamePage{Limit: 3})
	if err != nil || list[0].Sealed == nil || list[1].Sealed != nil || list[1].URL != w.receiver.url || list[1].Headers["X-Team"] != "ops" ||
		list[1].SigningSecret == "" || list[2].Slack.BotToken != "xoxb-0123456789-first" {
		t.Errorf("by the other key: %+v, %v", list, err)
	}

	got := c.must(http.StatusOK, http.MethodPut, lost, again, "If-Match", version(lost))
	if got.body["secretsProblem"] != nil || got.body["hasSigningSecret"] != false {
		t.Errorf("given again: %v", got.body)
	}
	c.must(http.StatusOK, http.MethodPut, bot, map[string]any{
		"name": "lost bot", "slack": map[string]any{"channel": "C0123456789", "botToken": "xoxb-0123456789-second", "signingSecret": ""},
	}, "If-Match", version(bot))
	if got := c.must(http.StatusOK, http.MethodPost, lost+"/test", nil); got.text("verdict") != "DELIVERED" {
		t.Errorf("tested: %v", got.body)
	}
	c.must(http.StatusOK, http.MethodPost, bot+"/enable", nil)
}
