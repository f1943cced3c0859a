package preset_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/template"
	"tocsin/rules"
)

// sent returns what a built-in receiver gets when an alert fires.
func sent(t *testing.T, id string, a alerts.Instance, link string, into any) {
	t.Helper()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	p := set.Get(id)
	body, _, problem := p.Body(preset.MessageOf(&notify.Delivery{Reason: notify.ReasonFired, Alert: a}, link), p.Examples())
	if problem != nil {
		t.Fatal(problem)
	}
	if err := json.Unmarshal(body.Content, into); err != nil {
		t.Fatal(err)
	}
}

// TestGoogleChatShowsTextsAsTheyAre: Google Chat shows the entities of HTML as they are written. What
// makes links and mentions there is broken all the same.
func TestGoogleChatShowsTextsAsTheyAre(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	a.Title, a.Message, a.About = "Map<String, Order> & more", "x > 1, <users/all>, <https://e.example|you>", rules.About{RunbookURL: "https://wiki.example/a?b=1&c=2"}
	var got struct{ Text string }
	sent(t, "google-chat", a, "https://tocsin.example/inbox/1", &got)
	shown := strings.ReplaceAll(got.Text, "\u200B", "")
	for _, want := range []string{"Map<String, Order> & more", "x > 1, <users/all>", "Runbook: https://wiki.example/a?b=1&c=2\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %q", want, shown)
		}
	}
	for _, markup := range []string{"<users/", "<https:"} {
		if strings.Contains(got.Text, markup) {
			t.Errorf("%q in %q", markup, got.Text)
		}
	}
}

// TestDiscordGetsNoLinkToAHostWithoutADomain: Discord refuses a whole message with 400 if an embed
// links to a host such as localhost or tocsin.
func TestDiscordGetsNoLinkToAHostWithoutADomain(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"http://localhost:8080/inbox/1":           "",
		"http://tocsin/inbox/1":                   "",
		"http://[fd00::1]:8080/inbox/1":           "",
		"http://10.0.0.7:8080/inbox/1":            "http://10.0.0.7:8080/inbox/1",
		"https://tocsin.example.com:8443/inbox/1": "https://tocsin.example.com:8443/inbox/1",
	} {
		var got struct{ Embeds []struct{ Title, URL string } }
		sent(t, "discord", template.Samples()[0], link, &got)
		if len(got.Embeds) != 1 || got.Embeds[0].URL != want || got.Embeds[0].Title == "" {
			t.Errorf("%s: %+v", link, got)
		}
	}
}

// TestDiscordGetsURLsWithoutEscapes: within a URL, Discord takes an escape for a part of it.
func TestDiscordGetsURLsWithoutEscapes(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	a.Message, a.About = "order_id_7 at https://e.example/a_b", rules.About{RunbookURL: "https://wiki.example/Order_import~2#on_call"}
	var got struct {
		Embeds []struct{ Description string }
	}
	sent(t, "discord", a, "https://tocsin.example/inbox/1", &got)
	if want := "order\\_id\\_7 at https://e.example/a\\_b\n\nRunbook: https://wiki.example/Order_import~2#on_call"; len(got.Embeds) != 1 || got.Embeds[0].Description != want {
		t.Errorf("%+v, want %s", got, want)
	}
}
