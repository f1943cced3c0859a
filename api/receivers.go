package api

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/rules"
)

// ListReceivers answers GET /receivers.
func (s *server) ListReceivers(context.Context, ListReceiversRequestObject) (ListReceiversResponseObject, error) {
	answer := ListReceivers200JSONResponse{Items: []Receiver{}}
	for _, p := range s.Receivers.All() {
		answer.Items = append(answer.Items, receiverAnswer(p))
	}
	return answer, nil
}

func receiverAnswer(p *preset.Preset) Receiver {
	answer := Receiver{
		ID: p.ID, Name: p.Name, About: p.About, Docs: optional(p.Docs), Own: p.Own, Keyed: p.Keyed, Events: listed(p.Takes()),
		Inputs: []ReceiverInput{}, RatePerSecond: p.RatePerSecond, DigestAbove: p.DigestAbove,
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		shown := ReceiverInput{
			Name: in.Name, Label: in.Label, Help: optional(in.Help), Link: optional(in.Link), Type: ReceiverInputType(in.Type), Secret: in.Secret,
			Required: !in.Optional && in.Default == "", Pattern: optional(in.Pattern), Default: optional(in.Default),
		}
		for _, c := range in.Choices {
			if shown.Choices == nil {
				shown.Choices = &[]ReceiverChoice{}
			}
			*shown.Choices = append(*shown.Choices, ReceiverChoice{Value: c.Value, Label: c.Label})
		}
		answer.Inputs = append(answer.Inputs, shown)
	}
	return answer
}

// PreviewReceiver answers POST /receivers/{receiver}/preview.
func (s *server) PreviewReceiver(_ context.Context, req PreviewReceiverRequestObject) (PreviewReceiverResponseObject, error) {
	p := s.Receivers.Get(req.Receiver)
	if p == nil {
		return nil, fault.New(fault.NotFound, "no such receiver: %q; GET /receivers lists all", req.Receiver)
	}
	inputs := p.Examples()
	for name, value := range req.Body.Inputs {
		if value != "" {
			inputs[name] = value
		}
	}
	if err := fault.InvalidFields("the request", p.CheckInputs(inputs)); err != nil {
		return nil, err
	}
	a := s.sample(rules.PerExchange)
	answer := PreviewReceiver200JSONResponse{Requests: []ReceiverRequest{}}
	for _, event := range preset.Events() {
		if !p.Sends(event) {
			continue
		}
		d := preset.SampleDelivery(event, &a)
		made, err := p.Preview(&d, s.alertLink(&a), inputs)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s", err)
		}
		shown := ReceiverRequest{
			Event: ReceiverRequestEvent(event), Method: made.Method, URL: made.URL.String(), ContentType: made.ContentType, Body: string(made.Content), Cut: []string{},
		}
		for _, field := range made.Headers {
			shown.Headers = append(shown.Headers, PreviewedHeader{Name: field.Name, Value: optional(field.Value), Masked: field.Masked})
		}
		for _, cut := range made.Cuts {
			shown.Cut = append(shown.Cut, cut.String())
		}
		answer.Requests = append(answer.Requests, shown)
	}
	return answer, nil
}

// alertLink returns where people see an alert; "" without a public URL.
func (s *server) alertLink(a *alerts.Instance) string {
	if s.PublicURL == "" {
		return ""
	}
	return strings.TrimRight(s.PublicURL, "/") + "/inbox/" + a.ID.String()
}

// asReceiver fills in what the author of a webhook for a receiver did not set.
func (s *server) asReceiver(w *notify.Webhook, b *WebhookDefinition) {
	p := s.Receivers.Get(w.Preset)
	if p == nil {
		return
	}
	if b.RatePerSecond == nil {
		w.RatePerSecond = p.RatePerSecond
	}
	if b.DigestAbove == nil {
		w.DigestAbove = p.DigestAbove
	}
	if b.Events == nil && p.Keyed {
		w.Events = p.Takes()
	}
}

// presetAnswer returns what may be shown of a webhook's receiver, without secrets.
func (s *server) presetAnswer(w *notify.Webhook) *WebhookPreset {
	if w.Preset == "" {
		return nil
	}
	answer := &WebhookPreset{ID: w.Preset, Name: w.Preset, Inputs: map[string]string{}, SecretInputs: []string{}}
	p := s.Receivers.Get(w.Preset)
	if p == nil {
		return answer
	}
	answer.Name = p.Name
	for i := range p.Inputs {
		switch in := &p.Inputs[i]; {
		case w.Inputs[in.Name] == "":
		case in.Secret:
			answer.SecretInputs = append(answer.SecretInputs, in.Name)
		default:
			answer.Inputs[in.Name] = w.Inputs[in.Name]
		}
	}
	return answer
}

// leadsTo returns the destination of a webhook's requests: scheme, host and port.
func (s *server) leadsTo(w *notify.Webhook) string {
	p := s.Receivers.Get(w.Preset)
	if p == nil {
		return originOf(w.URL)
	}
	to, err := p.Target(preset.Fired, preset.About{}, w.Inputs)
	if err != nil {
		return ""
	}
	return originOf((&url.URL{Scheme: to.URL.Scheme, Host: to.URL.Host}).String())
}

// carriedSecrets finds secret inputs that an edit would send to another host than the one that they
// were entered for.
func (s *server) carriedSecrets(present, w *notify.Webhook, b *WebhookEdit) []fault.Field {
	p := s.Receivers.Get(w.Preset)
	if p == nil || s.leadsTo(present) == s.leadsTo(w) {
		return nil
	}
	var fields []fault.Field
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if _, given := b.Preset.inputs()[in.Name]; in.Secret && !given && present.Inputs[in.Name] != "" {
			fields = append(fields, fault.Field{
				Field: "preset.inputs." + in.Name, Code: "required", Message: "It was entered for another host, and is not sent to this one; enter it again",
			})
		}
	}
	return fields
}

// inputs returns the inputs of an edit; none for nil.
func (b *PresetEdit) inputs() map[string]string {
	if b == nil {
		return nil
	}
	return b.Inputs
}

// endTest ends what a test has opened at a receiver that identifies alerts by a key, so that nobody
// has to. It returns why that failed.
func (s *server) endTest(ctx context.Context, opened *notify.Delivery, answered notify.Outcome) error {
	p := s.Receivers.Get(opened.Webhook.Preset)
	if p == nil || !p.Keyed {
		return nil
	}
	d := *opened
	if answered.Reference != nil {
		d.Reference = *answered.Reference
	}
	event := notify.Event{At: s.Now().Add(time.Millisecond)}
	d.Reason, d.Event, d.Alert = notify.ReasonResolved, &event, event.Tell(notify.ReasonResolved, d.Alert)
	body, problem := s.Renderer.Render(&d)
	if problem != nil {
		return problem
	}
	d.Body = &body
	if o := s.Sender.Send(ctx, &d); o.Verdict != notify.VerdictDelivered {
		return fmt.Errorf("the test alert is still open at %[1]s; close it there, because %[1]s did not accept its resolution: %[2]s", p.Name, o.Error)
	}
	return nil
}
