package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/preset"
)

// errUnknownPreset is about a preset that is not among this replica's: a file that an
// operator has removed, or not given to each replica. The webhook is disabled, and its
// messages wait until it is enabled.
var errUnknownPreset = errors.New("This replica does not have the webhook's receiver; name its file in TOCSIN_RECEIVERS on every replica, restart them, and enable the webhook") //nolint:staticcheck // a sentence for people

// missingInputsError is about a receiver that asks for more than the webhook has: an operator has changed its file. The
// webhook is disabled, and its messages wait until it is enabled.
type missingInputsError []string

func (m missingInputsError) Error() string {
	return "The receiver now requires " + strings.Join(m, ", ") + ": edit the webhook, and enable it"
}

// renderPreset returns the body that the webhook's preset makes, without secrets; no body if the
// preset is unknown.
func (r *Renderer) renderPreset(d *notify.Delivery) (notify.Body, error) {
	p := r.presets.Get(d.Webhook.Preset)
	if p == nil {
		return notify.Body{}, errUnknownPreset
	}
	link := r.AlertURL(&d.Alert)
	if d.Digest != nil {
		link = r.inboxURL(d.Digest)
	}
	m := preset.MessageOf(d, link)
	m.Event = p.EventOf(d)
	body, _, problem := p.Body(m, d.Webhook.Inputs)
	return body, problem
}

// presetRequest makes the request of a delivery to a preset's receiver.
func (s *Sender) presetRequest(d *notify.Delivery) (*http.Request, error) {
	p := s.presets.Get(d.Webhook.Preset)
	to, err := p.Target(p.EventOf(d), preset.AboutOf(d), d.Webhook.Inputs)
	if err != nil {
		return nil, err
	}
	// The request uses the URL in the form in which it is written.
	address, err := parseURL(to.URL.String())
	if err != nil {
		return nil, err
	}
	content, err := p.Reveal(d.Body.Content, d.Webhook.Inputs)
	if err != nil {
		return nil, err
	}
	r := post(address, http.Header{}, content)
	r.Method = to.Method
	for name, value := range d.Webhook.Headers {
		if !reserved(name) {
			r.Header.Set(name, value)
		}
	}
	for name := range to.Header {
		r.Header.Set(name, to.Header.Get(name))
	}
	return r, nil
}

// presetSecrets returns the parts of a preset's webhook that must not be shown. If the preset is
// unknown, these are all inputs.
func (s *Sender) presetSecrets(w *notify.Webhook) []string {
	p := s.presets.Get(w.Preset)
	if p == nil {
		var all []string
		for _, value := range w.Inputs {
			all = append(all, value)
		}
		return all
	}
	secrets := p.Secrets(w.Inputs)
	if p.Mails() {
		return append(secrets, signInSpellings(p, w.Inputs)...)
	}
	if to, err := p.Target(preset.Fired, preset.About{}, w.Inputs); err == nil {
		// User and password in the form in which they are sent.
		if authorization := to.Header.Get("Authorization"); authorization != "" {
			secrets = append(secrets, authorization)
		}
	}
	return secrets
}

// CheckPreset returns what is wrong with a webhook that names a preset. No message quotes an input.
func CheckPreset(presets *preset.Set, w *notify.Webhook) []fault.Field {
	p := presets.Get(w.Preset)
	if p == nil {
		return []fault.Field{{Field: "preset.id", Code: "unknown_value", Message: "Unknown receiver; GET /receivers lists all"}}
	}
	fields := p.CheckInputs(w.Inputs)
	add := func(field, code, message string) {
		fields = append(fields, fault.Field{Field: field, Code: code, Message: message})
	}
	if w.Kind != notify.KindGeneric {
		add("kind", "not_applicable", "A webhook with a receiver must have the kind generic")
	}
	for _, not := range []struct {
		field string
		given bool
	}{
		{"headers", p.Mails() && len(w.Headers) > 0},
		{"clientCertificate", p.Mails() && w.ClientCertificate != ""},
		{"url", w.URL != ""},
		{"slack", w.Slack != (notify.SlackApp{})},
		{"bodyTemplate", w.BodyTemplate != ""},
		{"signingSecret", w.SigningSecret != ""},
	} {
		if not.given {
			add(not.field, "not_applicable", fmt.Sprintf("Does not apply to the receiver %s; leave it out, or choose no receiver", p.Name))
		}
	}
	if !p.Sends(preset.Digest) && w.DigestAbove > 0 {
		add("digestAbove", "not_applicable", "Must be 0, because "+p.Name+" gets a message for each alert, and no digests")
	}
	for i, reason := range w.Events {
		if event := preset.EventOf(reason); reason.IsEvent() && !p.Sends(event) {
			add(fmt.Sprintf("events[%d]", i), "not_applicable", fmt.Sprintf("%s is not notified of %s; remove it", p.Name, event))
		}
	}
	if len(fields) > 0 {
		return fields
	}
	for _, event := range preset.Events() {
		if !p.Sends(event) || p.Mails() {
			continue
		}
		to, err := p.Target(event, preset.About{Key: uuid.Nil.String(), Reference: "1"}, w.Inputs)
		if err == nil {
			_, err = parseURL(to.URL.String())
		}
		if err != nil {
			return []fault.Field{{Field: "preset.inputs", Code: "url", Message: sentence(err.Error())}}
		}
	}
	return nil
}
