package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/slack"
	"tocsin/notify/template"
)

const contentType = "application/json"

// errNoAlertID refuses a body by which a receiver cannot recognise a repeat.
var errNoAlertID = errors.New("{{alert.id}} must be in the body, so that a receiver can recognise a repeat; for Slack, use it as the block_id of a block")

// RendererOptions configure a [Renderer].
type RendererOptions struct {
	// PublicURL is the address of Tocsin for people, used in links. If it is empty, messages
	// contain no links.
	PublicURL string
	// ExchangeURL is the address of exchanges for people, with names of fields in braces; see
	// [CheckExchangeURL]. If it is empty, messages do not link to exchanges.
	ExchangeURL string
	// Presets are the receivers that webhooks may name.
	Presets *preset.Set
}

// Renderer makes the bodies of notifications. It is safe for concurrent use.
type Renderer struct {
	publicURL, exchangeURL string
	presets                *preset.Set

	mu sync.Mutex
	// bodies are the parsed body templates, by their texts.
	bodies map[string]parsedBody
}

// parsedBody is a parsed template, or why it cannot be parsed.
type parsedBody struct {
	template *template.JSON
	err      error
}

// maxBodies bounds the cache of parsed templates. Beyond it, all are parsed again.
const maxBodies = 1000

// body returns a parsed body template from the cache.
func (r *Renderer) body(text string) (*template.JSON, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.bodies[text]; ok {
		return known.template, known.err
	}
	if r.bodies == nil || len(r.bodies) >= maxBodies {
		r.bodies = make(map[string]parsedBody)
	}
	parsed, err := template.ParseJSON(text, template.InBody)
	r.bodies[text] = parsedBody{parsed, err}
	return parsed, err
}

var _ notify.Renderer = (*Renderer)(nil)

// NewRenderer returns a renderer.
func NewRenderer(o RendererOptions) (*Renderer, error) {
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("TOCSIN_PUBLIC_URL must have the form https://tocsin.example.com")
		}
	}
	if err := CheckExchangeURL(o.ExchangeURL); err != nil {
		return nil, err
	}
	return &Renderer{publicURL: strings.TrimRight(o.PublicURL, "/"), exchangeURL: o.ExchangeURL, presets: o.Presets}, nil
}

// AlertURL returns where people find an alert, or "" without a public URL.
func (r *Renderer) AlertURL(a *alerts.Instance) string {
	if r.publicURL == "" {
		return ""
	}
	return r.publicURL + "/inbox/" + a.ID.String()
}

// Render returns the body of a notification: from the webhook's own template, or in the layout of
// its kind. If the template fails for this alert, the layout is used and problem says why.
func (r *Renderer) Render(d *notify.Delivery) (body notify.Body, problem error) {
	if d.Webhook.Preset != "" {
		return r.renderPreset(d)
	}
	if d.Digest != nil {
		content, problem := r.renderDigest(d)
		return notify.Body{ContentType: contentType, Content: content}, problem
	}
	if d.Webhook.BodyTemplate != "" {
		content, err := r.custom(&d.Webhook, template.ForReason(&d.Alert, d.Reason, r.AlertURL(&d.Alert)))
		if err == nil {
			if d.Webhook.Slack.Used() {
				content = slack.WithState(content, slackAlert(d, r.AlertURL(&d.Alert)))
			}
			return notify.Body{ContentType: contentType, Content: content}, nil
		}
		problem = fmt.Errorf("body template: %w", err)
	}
	content, err := r.layout(d)
	if err != nil {
		problem = errors.Join(problem, err)
	}
	return notify.Body{ContentType: contentType, Content: content}, problem
}

// custom renders the webhook's own template and checks the result against what its receiver
// accepts.
func (r *Renderer) custom(w *notify.Webhook, values *template.Values) ([]byte, error) {
	parsed, err := r.body(w.BodyTemplate)
	if err != nil {
		return nil, err
	}
	content, err := renderCustom(parsed, w.Kind, values)
	if err != nil {
		return nil, err
	}
	if w.Kind == notify.KindSlack {
		if err := slack.Valid(content); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// maxSlackValue bounds the escaped value of a variable in a body for Slack.
const maxSlackValue = 1000

func renderCustom(body *template.JSON, kind notify.WebhookKind, values *template.Values) ([]byte, error) {
	if kind == notify.KindSlack {
		content, err := body.Render(values, func(s string) string { return slack.Escape(s, maxSlackValue) })
		if err != nil {
			return nil, err
		}
		return slack.Fit(content)
	}
	return body.Render(values, nil)
}

// layout returns the body in the layout of the webhook's kind. If there is an error, the returned
// body is still one that the receiver can read.
func (r *Renderer) layout(d *notify.Delivery) ([]byte, error) {
	if d.Webhook.Kind == notify.KindSlack {
		a := slackAlert(d, r.AlertURL(&d.Alert))
		a.ExchangeURL = r.ExchangeURL(&d.Alert)
		content, err := slack.Message(a)
		if err == nil {
			err = slack.Valid(content)
		}
		if err == nil {
			return content, nil
		}
		plain, plainErr := slack.PlainMessage(a)
		return plain, errors.Join(err, plainErr)
	}
	return event(d, r.AlertURL(&d.Alert)), nil
}
