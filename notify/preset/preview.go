package preset

import (
	"net/url"
	"slices"
	"strings"

	"tocsin/notify"
)

// Preview is a request in the form in which it may be shown.
type Preview struct {
	Method string
	// URL has "redacted" in the place of secrets.
	URL     *url.URL
	Headers []notify.HeaderField
	notify.Body

	// Cuts are the texts that were shortened.
	Cuts []Cut
}

// sampleReference is an example of a receiver's id.
const sampleReference = "1234567890"

// redactedInURL needs no percent-encoding.
const redactedInURL = "redacted"

// Preview returns the request for a delivery, without secrets. link is where people see the alert.
func (p *Preset) Preview(d *notify.Delivery, link string, inputs map[string]string) (Preview, error) {
	if p.Captures() && d.Reason.IsEvent() {
		known := *d
		known.Reference = sampleReference
		d = &known
	}
	body, cuts, problem := p.Body(MessageOf(d, link), inputs)
	if problem != nil {
		return Preview{}, problem
	}
	to, err := p.Target(EventOf(d.Reason), AboutOf(d), p.shown(inputs))
	if err != nil {
		return Preview{}, err
	}
	made := Preview{Method: to.Method, URL: to.URL, Body: body, Cuts: cuts, Headers: []notify.HeaderField{{Name: "Content-Type", Value: body.ContentType}}}
	for _, h := range p.requests[EventOf(d.Reason)].headers {
		if value := to.Header.Get(h.name); value != "" {
			field := notify.HeaderField{Name: h.name, Value: value}
			for _, name := range h.template.Inputs() {
				if in := p.input(name); in != nil && in.Secret {
					field.Value, field.Masked = "", true
				}
			}
			made.Headers = append(made.Headers, field)
		}
	}
	const authorization = "Authorization"
	if named := func(h notify.HeaderField) bool { return strings.EqualFold(h.Name, authorization) }; to.Header.Get(authorization) != "" && !slices.ContainsFunc(made.Headers, named) {
		made.Headers = append(made.Headers, notify.HeaderField{Name: authorization, Masked: true})
	}
	return made, nil
}

// shown returns inputs with replacements for the secret ones: for a URL its host.
func (p *Preset) shown(inputs map[string]string) map[string]string {
	list := map[string]string{}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		list[in.Name] = inputs[in.Name]
		switch u, err := url.Parse(inputs[in.Name]); {
		case !in.Secret || inputs[in.Name] == "":
		case in.Type == InputURL && err == nil:
			list[in.Name] = u.Scheme + "://" + u.Host + "/" + redactedInURL
		default:
			list[in.Name] = redactedInURL
		}
	}
	return list
}
