package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	api "tocsin/client"
)

// secretFields are the fields of a webhook and of its Slack app that the API accepts and never
// returns.
func secretFields() (ofWebhook, ofSlack []string) {
	return []string{"url", "headers", "signingSecret", "clientCertificate"}, []string{"botToken", "signingSecret"}
}

// revealed returns a copy of a webhook's fields in which the secrets replace their places, {env:
// NAME} or {file: PATH}, and the places of the given secrets.
func (a *applying) revealed(i int, entry any) (fields map[string]any, given []string, err error) {
	was, ok := entry.(map[string]any)
	if !ok {
		return nil, nil, a.misplaced(fmt.Sprintf("webhooks[%d]", i), "Must be the fields of a webhook")
	}
	place := fmt.Sprintf("webhooks[%d].", i)
	reveal := func(in map[string]any, names []string, path string) (map[string]any, error) {
		out := maps.Clone(in)
		for _, name := range names {
			v, there := in[name]
			if !there {
				continue
			}
			given = append(given, path+name)
			if out[name], err = a.secret(place+path+name, v); err != nil {
				return nil, err
			}
			headers, _ := out[name].(map[string]any)
			for header, v := range headers {
				if headers[header], err = a.secret(place+path+name+"."+header, v); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
	ofWebhook, ofSlack := secretFields()
	if fields, err = reveal(was, ofWebhook, ""); err != nil {
		return nil, nil, err
	}
	if slack, ok := was["slack"].(map[string]any); ok {
		if fields["slack"], err = reveal(slack, ofSlack, "slack."); err != nil {
			return nil, nil, err
		}
	}
	if preset, ok := was["preset"].(map[string]any); ok {
		if fields["preset"], err = a.revealedInputs(place, preset, &given); err != nil {
			return nil, nil, err
		}
	}
	return fields, given, nil
}

// inputPlace is the prefix of the places of inputs of a webhook's receiver.
const inputPlace = "preset.inputs."

// revealedInputs returns a copy of a webhook's receiver in which the inputs replace their places.
func (a *applying) revealedInputs(place string, preset map[string]any, given *[]string) (map[string]any, error) {
	preset = maps.Clone(preset)
	was, _ := preset["inputs"].(map[string]any)
	inputs := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		value, err := a.secret(place+inputPlace+name, was[name])
		if err != nil {
			return nil, err
		}
		inputs[name] = value
		*given = append(*given, inputPlace+name)
	}
	preset["inputs"] = inputs
	return preset, nil
}

// secret returns a value itself, or the value of {env: NAME} or {file: PATH}, which must not be empty. Headers are returned
// as a copy.
func (a *applying) secret(place string, v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	name, isEnv := m["env"].(string)
	path, isFile := m["file"].(string)
	switch {
	case len(m) == 1 && isEnv:
		value, set := os.LookupEnv(name)
		switch {
		case !set:
			return nil, a.misplaced(place, "The environment variable "+name+" is not set; set it for this command")
		case value == "":
			return nil, a.misplaced(place, "The environment variable "+name+" is empty; set it to the secret for this command")
		}
		return value, nil
	case len(m) == 1 && isFile:
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, a.misplaced(place, err.Error())
		}
		value := strings.TrimRight(string(content), "\r\n")
		if value == "" {
			return nil, a.misplaced(place, "The file "+path+" is empty; write the secret to it")
		}
		return value, nil
	case strings.HasSuffix(place, ".headers"):
		return maps.Clone(m), nil
	default:
		return nil, a.misplaced(place, "Must be a string, {env: NAME} or {file: PATH}")
	}
}

// compareSecrets notes which secrets are written, and why, and reports whether any is. If one is,
// all given secrets are, because the server requires the headers again for another host.
func (s *step) compareSecrets(want *api.WebhookDefinition, is *api.Webhook, given []string, always bool) bool {
	because := map[string]string{}
	reason := func(field string, differs bool, why string) {
		if slices.Contains(given, field) && differs {
			because[field] = why
		}
	}
	host := ""
	if u, err := url.Parse(want.URL); err == nil {
		host = u.Host
	}
	reason("url", host != is.URLHost, fmt.Sprintf("another host: %s → %s", cmp.Or(is.URLHost, "none"), cmp.Or(host, "none")))
	names := slices.Sorted(maps.Keys(want.Headers))
	reason("headers", !slices.EqualFunc(names, is.HeaderNames, strings.EqualFold), fmt.Sprintf("other names: %v → %v", is.HeaderNames, names))
	reason("signingSecret", (want.SigningSecret != "") != is.HasSigningSecret, "set on only one side")
	reason("clientCertificate", (want.ClientCertificate != "") != valueOr(is.HasClientCertificate, false), "set on only one side")
	if want.Slack != nil {
		reason("slack.botToken", is.Slack == nil || !is.Slack.HasBotToken, "not set yet")
		reason("slack.signingSecret", is.Slack == nil || (want.Slack.SigningSecret != "") != is.Slack.HasSigningSecret, "set on only one side")
	}
	if want.Preset != nil && is.Preset != nil {
		for name, value := range want.Preset.Inputs {
			shown, isShown := is.Preset.Inputs[name]
			isSecret := slices.Contains(is.Preset.SecretInputs, name)
			reason(inputPlace+name, !isSecret && (isShown || value != "") && shown != value, "differs, or is not set yet")
		}
		for _, name := range droppedInputs(want, is) {
			given = append(slices.Clip(given), inputPlace+name)
			reason(inputPlace+name, true, "removed, because the file does not have it")
		}
	}
	for _, field := range given {
		switch {
		case because[field] != "":
		case is.SecretsProblem != nil:
			because[field] = "the stored value cannot be decrypted"
		case always:
			because[field] = "written again"
		}
	}
	for _, field := range given {
		if because[field] != "" {
			s.because(field, because[field])
		}
	}
	return len(because) > 0
}

// droppedInputs returns the inputs of a webhook's receiver that a file does not contain. Secret
// inputs do not count: a file may leave them out.
func droppedInputs(want *api.WebhookDefinition, is *api.Webhook) []string {
	if want.Preset == nil || is.Preset == nil {
		return nil
	}
	var dropped []string
	for _, name := range slices.Sorted(maps.Keys(is.Preset.Inputs)) {
		if _, stays := want.Preset.Inputs[name]; !stays {
			dropped = append(dropped, name)
		}
	}
	return dropped
}
