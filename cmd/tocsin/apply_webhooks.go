package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// webhooks plans the changes of webhooks, which are identified by name, and returns the deletions
// for the end.
//
// The server never returns secrets. A secret in a file is written with a new webhook, if a visible
// property of it differs (the host of the URL, the names of headers, whether there is one), or if
// --secrets is given.
func (a *applying) webhooks(ctx context.Context) (gone []step, err error) {
	stored, err := webhooksOf(ctx, a.server)
	if err != nil {
		return nil, err
	}
	known := map[string]*api.Webhook{}
	for i := range stored {
		known[stored[i].Name] = &stored[i]
	}
	given := map[string]bool{}
	for i, entry := range a.document.Sections[rulefile.Webhooks] {
		fields, secrets, err := a.revealed(i, entry)
		if err != nil {
			return nil, err
		}
		var want api.WebhookDefinition
		if err := a.strictly(rulefile.Webhooks, i, fields, &want); err != nil {
			return nil, err
		}
		switch place := fmt.Sprintf("webhooks[%d].name", i); {
		case want.Name == "" || want.Kind == "":
			return nil, a.misplaced(place, "A webhook needs a name and a kind")
		case given[want.Name]:
			return nil, a.misplaced(place, "Another webhook has the same name; choose another one")
		}
		given[want.Name] = true
		s, err := a.webhook(i, fields, secrets, &want, known[want.Name])
		if err != nil {
			return nil, err
		}
		a.plan.steps = append(a.plan.steps, s)
	}
	for i := range stored {
		w := &stored[i]
		switch {
		case given[w.Name]:
		case a.prunes(w.Name):
			gone = append(gone, step{kind: "webhook", name: w.Name, action: deleted, why: a.pruned(), run: func(ctx context.Context) error {
				return answered(a.server.DeleteWebhookWithResponse(ctx, w.ID))
			}})
		default:
			a.plan.leftAlone++
		}
	}
	return gone, nil
}

// webhook plans the change of one webhook. is is nil if there is none.
func (a *applying) webhook(i int, fields map[string]any, secrets []string, want *api.WebhookDefinition, is *api.Webhook) (step, error) {
	s := step{kind: "webhook", name: want.Name, action: unchanged}
	prefix := fmt.Sprintf("webhooks[%d].", i)
	if is == nil {
		s.action = created
		a.fresh[want.Name] = true
		s.run = func(ctx context.Context) error {
			body, err := json.Marshal(fields)
			if err != nil {
				return fmt.Errorf("encode: %w", err)
			}
			return a.wrong(answered(a.server.CreateWebhookWithBodyWithResponse(ctx, "application/json", bytes.NewReader(body))), prefix)
		}
		return s, nil
	}
	if want.Kind != is.Kind {
		return s, a.misplaced(prefix+"kind", fmt.Sprintf("A webhook with this name has the kind %s, which cannot change; choose another name", is.Kind))
	}
	if wants, has := presetOf(want.Preset), presetOf(is.Preset); wants != has {
		return s, a.misplaced(prefix+"preset.id", fmt.Sprintf("A webhook with this name is for the receiver %q, which cannot change; choose another name", has))
	}
	s.compare(want, is)
	rewrite := s.compareSecrets(want, is, secrets, a.Secrets)
	if s.action == unchanged {
		return s, nil
	}
	edit := maps.Clone(fields)
	delete(edit, "kind")
	if want.Enabled == nil {
		edit["enabled"] = is.Enabled
	}
	if want.Preset != nil {
		keep := func(field string, value any) {
			if _, given := edit[field]; !given {
				edit[field] = value
			}
		}
		keep("ratePerSecond", is.RatePerSecond)
		keep("digestAbove", is.DigestAbove)
		keep("events", is.Events)
	}
	delete(edit, "preset")
	if rewrite && want.Preset != nil {
		inputs := maps.Clone(want.Preset.Inputs)
		if inputs == nil {
			inputs = map[string]string{}
		}
		for _, name := range droppedInputs(want, is) {
			inputs[name] = "" // an input that is left out would keep its value
		}
		edit["preset"] = map[string]any{"inputs": inputs}
		if _, given := edit["headers"]; !given && is.SecretsProblem != nil {
			edit["headers"] = map[string]any{}
		}
	}
	if !rewrite {
		ofWebhook, ofSlack := secretFields()
		for _, name := range ofWebhook {
			delete(edit, name)
		}
		if slack, ok := edit["slack"].(map[string]any); ok {
			slack = maps.Clone(slack)
			for _, name := range ofSlack {
				delete(slack, name)
			}
			edit["slack"] = slack
		}
	}
	s.run = func(ctx context.Context) error {
		body, err := json.Marshal(edit)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		return a.wrong(answered(a.server.UpdateWebhookWithBodyWithResponse(ctx, is.ID, &api.UpdateWebhookParams{IfMatch: tag(is.Version)}, "application/json", bytes.NewReader(body))), prefix)
	}
	return s, nil
}

// The defaults of webhooks, as the API has them.
const (
	defaultTimeoutSeconds   = 10.0
	defaultMaxConcurrent    = 8
	defaultSlackRate        = 1.0
	defaultSlackDigestAbove = 20
	defaultEventMaxAge      = 86400
)

// defaultsOf returns the defaults of a webhook of a kind.
func defaultsOf(kind api.WebhookKind) (rate float64, digestAbove int) {
	if kind == api.WebhookKindSlack {
		return defaultSlackRate, defaultSlackDigestAbove
	}
	return 0, 0
}

// compare notes the differences of visible properties.
func (s *step) compare(want *api.WebhookDefinition, is *api.Webhook) {
	rate, digestAbove := defaultsOf(want.Kind)
	events := want.Events
	if want.Preset != nil {
		// If the file does not set them, the values of the receiver or of the webhook remain.
		rate, digestAbove = is.RatePerSecond, is.DigestAbove
		if events == nil {
			events = is.Events
		}
	}
	s.differ("bodyTemplate", is.BodyTemplate, want.BodyTemplate)
	s.differ("operators", is.Operators, want.Operators)
	s.differ("timeoutSeconds", is.TimeoutSeconds, valueOr(want.TimeoutSeconds, defaultTimeoutSeconds))
	s.differ("maxConcurrent", is.MaxConcurrent, valueOr(want.MaxConcurrent, defaultMaxConcurrent))
	s.differ("ratePerSecond", is.RatePerSecond, valueOr(want.RatePerSecond, rate))
	s.differ("digestAbove", is.DigestAbove, valueOr(want.DigestAbove, digestAbove))
	s.differ("events", eventsOf(is.Events), eventsOf(events))
	s.differ("eventMaxAgeSeconds", is.EventMaxAgeSeconds, valueOr(want.EventMaxAgeSeconds, defaultEventMaxAge))
	if len(is.QuietHours)+len(want.QuietHours) > 0 {
		s.differJSON("quietHours", comparableHours(is.QuietHours), comparableHours(want.QuietHours))
	}
	s.differ("enabled", is.Enabled, valueOr(want.Enabled, is.Enabled))
	if want.Slack != nil && is.Slack != nil {
		s.differ("slack.channel", is.Slack.Channel, want.Slack.Channel)
		s.differ("slack.threads", is.Slack.Threads, want.Slack.Threads)
	}
}

// valueOr returns the value of a pointer, or a default.
func valueOr[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

// exportedWebhooks returns every webhook in the form of a file, without secrets and defaults.
func exportedWebhooks(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	stored, err := webhooksOf(ctx, server)
	list := []any{}
	for i := range stored {
		w := &stored[i]
		rate, digestAbove := defaultsOf(w.Kind)
		entry := map[string]any{"name": w.Name, "kind": string(w.Kind)}
		put := func(field string, value any, is bool) {
			if is {
				entry[field] = value
			}
		}
		put("enabled", false, !w.Enabled)
		put("operators", true, w.Operators)
		put("bodyTemplate", w.BodyTemplate, w.BodyTemplate != "")
		put("timeoutSeconds", number(w.TimeoutSeconds), w.TimeoutSeconds != defaultTimeoutSeconds)
		put("maxConcurrent", number(w.MaxConcurrent), w.MaxConcurrent != defaultMaxConcurrent)
		put("ratePerSecond", number(w.RatePerSecond), w.RatePerSecond != rate)
		put("digestAbove", number(w.DigestAbove), w.DigestAbove != digestAbove)
		put("events", anyOf(w.Events), len(w.Events) > 0)
		put("eventMaxAgeSeconds", number(w.EventMaxAgeSeconds), w.EventMaxAgeSeconds != defaultEventMaxAge)
		if len(w.QuietHours) > 0 {
			text, err := json.Marshal(w.QuietHours)
			if err != nil {
				return nil, fmt.Errorf("encode quiet hours: %w", err)
			}
			var hours any
			if err := decode(text, &hours); err != nil {
				return nil, err
			}
			entry["quietHours"] = hours
		}
		if w.Preset != nil {
			entry["preset"] = map[string]any{"id": w.Preset.ID, "inputs": textsOf(w.Preset.Inputs)}
			put("ratePerSecond", number(w.RatePerSecond), true)
			put("digestAbove", number(w.DigestAbove), true)
			put("events", anyOf(w.Events), true)
		}
		if w.Slack != nil {
			entry["slack"] = map[string]any{"channel": w.Slack.Channel}
			if w.Slack.Threads {
				entry["slack"] = map[string]any{"channel": w.Slack.Channel, "threads": true}
			}
		}
		list = append(list, entry)
	}
	return list, err
}

// presetOf returns the id of a webhook's receiver; empty if there is none.
func presetOf(preset any) string {
	switch p := preset.(type) {
	case *api.PresetDefinition:
		if p != nil {
			return p.ID
		}
	case *api.WebhookPreset:
		if p != nil {
			return p.ID
		}
	}
	return ""
}

// textsOf returns a mapping of texts in the form of a file.
func textsOf(texts map[string]string) map[string]any {
	made := map[string]any{}
	for name, text := range texts {
		made[name] = text
	}
	return made
}

// number returns a number in the form of a file.
func number(v any) json.Number { return json.Number(fmt.Sprint(v)) }

// eventsOf lists events for people, in a fixed order.
func eventsOf(events []api.WebhookEvent) string {
	return strings.Join(slices.Sorted(func(yield func(string) bool) {
		for _, e := range events {
			if !yield(string(e)) {
				return
			}
		}
	}), ", ")
}

// anyOf returns a list in the form of a file.
func anyOf[T ~string](list []T) []any {
	values := make([]any, len(list))
	for i, v := range list {
		values[i] = string(v)
	}
	return values
}

// comparableHours returns quiet hours with short names of weekdays.
func comparableHours(hours api.QuietHours) api.QuietHours {
	same := slices.Clone(hours)
	for i := range same {
		same[i].Weekdays = shortDays(same[i].Weekdays)
	}
	return same
}
