package api

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
)

// WebhookStore stores webhooks.
type WebhookStore interface {
	WebhookReader
	WebhookWriter
	WebhookEditor
}

// WebhookReader reads webhooks. The URL, the headers and the signing secret are filled in; the API
// only shows a host, names, and whether there is a secret.
type WebhookReader interface {
	List(ctx context.Context, tenant string, page NamePage) ([]notify.Webhook, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (notify.Webhook, error)
	// Names returns what rules need to know about every webhook.
	Names(ctx context.Context, tenant string) ([]WebhookName, error)
}

// WebhookName is what a rule needs to know about a webhook.
type WebhookName struct {
	ID      uuid.UUID
	Name    string
	Enabled bool
	// Preset is the id of the preset of its receiver; empty if there is none.
	Preset     string
	QuietHours notify.QuietHours
}

// WebhookWriter writes webhooks.
type WebhookWriter interface {
	// Create stores a valid webhook of version 1. The store chooses its id, tenant and instants.
	Create(ctx context.Context, tenant string, w notify.Webhook) (notify.Webhook, error)
	// Delete removes a webhook. If rules use it, it remains: this is a fault of kind Conflict whose
	// message names the rules.
	Delete(ctx context.Context, tenant string, id uuid.UUID) error
}

// Sender sends messages, and returns what it would send.
type Sender interface {
	notify.Sender
	// Head returns the head of the request that an attempt sends, without secrets.
	Head(d *notify.Delivery) notify.RequestHead
}

// ListWebhooks answers GET /webhooks.
func (s *server) ListWebhooks(ctx context.Context, req ListWebhooksRequestObject) (ListWebhooksResponseObject, error) {
	page, err := namePage(listWebhooks, req.Params.Cursor, req.Params.Limit)
	if err != nil {
		return nil, err
	}
	found, err := s.Webhooks.List(ctx, tenantOf(ctx), page)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	answer := ListWebhooks200JSONResponse{Items: make([]Webhook, len(found))}
	for i := range found {
		answer.Items[i] = s.webhookAnswer(&found[i])
	}
	answer.NextCursor, err = nextCursor(len(found), page.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listWebhooks, Name: last.Name, ID: last.ID}
	})
	return answer, err
}

// CreateWebhook answers POST /webhooks.
func (s *server) CreateWebhook(ctx context.Context, req CreateWebhookRequestObject) (CreateWebhookResponseObject, error) {
	w := s.webhook(req.Body)
	if err := fault.InvalidFields("the webhook", withoutRepeats(append(formFaults(&w), s.CheckWebhook(&w)...))); err != nil {
		return nil, err
	}
	stored, err := s.Webhooks.Create(ctx, tenantOf(ctx), w)
	if err != nil {
		return nil, fmt.Errorf("create webhook: %w", err)
	}
	answer := CreateWebhook201JSONResponse{Body: s.webhookAnswer(&stored)}
	answer.Headers = CreateWebhook201ResponseHeaders{ETag: etag(stored.Version), Location: "/api/v1/webhooks/" + stored.ID.String()}
	return answer, nil
}

// GetWebhook answers GET /webhooks/{id}.
func (s *server) GetWebhook(ctx context.Context, req GetWebhookRequestObject) (GetWebhookResponseObject, error) {
	w, err := s.Webhooks.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get webhook: %w", err)
	}
	return GetWebhook200JSONResponse{Body: s.webhookAnswer(&w), Headers: GetWebhook200ResponseHeaders{ETag: etag(w.Version)}}, nil
}

// DeleteWebhook answers DELETE /webhooks/{id}.
func (s *server) DeleteWebhook(ctx context.Context, req DeleteWebhookRequestObject) (DeleteWebhookResponseObject, error) {
	if err := s.Webhooks.Delete(ctx, tenantOf(ctx), req.ID); err != nil {
		return nil, fmt.Errorf("delete webhook: %w", err)
	}
	return DeleteWebhook204Response{}, nil
}

// Bounds of a webhook, as in openapi.yaml. [Options.CheckWebhook] checks more.
const (
	maxWebhookName   = 200
	maxBodyTemplate  = 100_000
	maxSigningSecret = 500
	maxCertificate   = 50_000
	minTimeout       = time.Second
	maxTimeout       = time.Minute
	maxConcurrent    = 256
	maxRatePerSecond = 10_000
)

// webhook fills in what the author did not set.
func (s *server) webhook(b *WebhookDefinition) notify.Webhook {
	w := notify.Webhook{
		Name:          b.Name,
		Kind:          b.Kind,
		URL:           b.URL,
		Headers:       b.Headers,
		BodyTemplate:  b.BodyTemplate,
		SigningSecret: b.SigningSecret, ClientCertificate: b.ClientCertificate,
		Enabled:       b.Enabled == nil || *b.Enabled,
		Operators:     b.Operators,
		Timeout:       notify.DefaultTimeout,
		MaxConcurrent: notify.DefaultMaxConcurrent,
		RatePerSecond: deref(b.RatePerSecond),
		Events:        b.Events,
		EventMaxAge:   notify.DefaultEventMaxAge,
		QuietHours:    b.QuietHours,
	}
	if n := b.EventMaxAgeSeconds; n != nil {
		w.EventMaxAge = time.Duration(min(max(*n, 0), 2*int(notify.MaxEventMaxAge.Seconds()))) * time.Second
	}
	if b.Slack != nil {
		w.Slack = notify.SlackApp{Channel: b.Slack.Channel, BotToken: b.Slack.BotToken, SigningSecret: b.Slack.SigningSecret, Threads: b.Slack.Threads}
	}
	if b.TimeoutSeconds != nil {
		// Values out of range remain out of range after the conversion.
		bounded := min(max(*b.TimeoutSeconds, 0), 2*maxTimeout.Seconds())
		w.Timeout = time.Duration(bounded * float64(time.Second))
	}
	if b.MaxConcurrent != nil {
		w.MaxConcurrent = *b.MaxConcurrent
	}
	if b.RatePerSecond == nil && b.Kind == notify.KindSlack {
		w.RatePerSecond = notify.SlackRatePerSecond
	}
	if b.DigestAbove != nil {
		w.DigestAbove = *b.DigestAbove
	} else if b.Kind == notify.KindSlack {
		w.DigestAbove = notify.SlackDigestAbove
	}
	if b.Preset != nil {
		w.Preset, w.Inputs = b.Preset.ID, b.Preset.Inputs
		s.asReceiver(&w, b)
	}
	return w
}

// formFaults returns the violations of the bounds above.
func formFaults(w *notify.Webhook) []fault.Field {
	var wrong []fault.Field
	add := func(field, code, message string) {
		wrong = append(wrong, fault.Field{Field: field, Code: code, Message: message})
	}
	text := func(field, value string, limit int) {
		switch {
		case !cleanText(value):
			add(field, "text", "Must be valid UTF-8 text without NUL")
		case utf8.RuneCountInString(value) > limit:
			add(field, "out_of_range", fmt.Sprintf("Must be at most %d characters", limit))
		}
	}
	text("name", w.Name, maxWebhookName)
	text("bodyTemplate", w.BodyTemplate, maxBodyTemplate)
	text("signingSecret", w.SigningSecret, maxSigningSecret)
	text("clientCertificate", w.ClientCertificate, maxCertificate)
	if w.Name == "" {
		add("name", "required", "Must not be empty")
	}
	switch w.Kind {
	case notify.KindSlack, notify.KindGeneric:
	default:
		add("kind", "unknown_value", "Must be one of slack, generic")
	}
	if w.Timeout < minTimeout || w.Timeout > maxTimeout {
		add("timeoutSeconds", "out_of_range", fmt.Sprintf("Must be from %g to %g", minTimeout.Seconds(), maxTimeout.Seconds()))
	}
	if w.MaxConcurrent < 1 || w.MaxConcurrent > maxConcurrent {
		add("maxConcurrent", "out_of_range", fmt.Sprintf("Must be from 1 to %d", maxConcurrent))
	}
	if w.RatePerSecond < 0 || w.RatePerSecond > maxRatePerSecond {
		add("ratePerSecond", "out_of_range", fmt.Sprintf("Must be from 0 to %d", maxRatePerSecond))
	}
	if w.DigestAbove < 0 || w.DigestAbove > notify.MaxDigestAbove {
		add("digestAbove", "out_of_range", fmt.Sprintf("Must be from 0 to %d", notify.MaxDigestAbove))
	}
	for i, event := range w.Events {
		if !slices.Contains(notify.Events(), event) {
			add(fmt.Sprintf("events[%d]", i), "unknown_value", "Must be one of ACKNOWLEDGED, RESOLVED, REOPENED")
		}
	}
	if w.EventMaxAge < notify.MinEventMaxAge || w.EventMaxAge > notify.MaxEventMaxAge {
		add("eventMaxAgeSeconds", "out_of_range", fmt.Sprintf("Must be from %g to %g", notify.MinEventMaxAge.Seconds(), notify.MaxEventMaxAge.Seconds()))
	}
	if err := w.QuietHours.Check(); err != nil {
		add("quietHours", "calendar", fmt.Sprintf("Cannot be used: %v", err))
	}
	return wrong
}

// webhookAnswer shows only a host and names of the secrets.
func (s *server) webhookAnswer(w *notify.Webhook) Webhook {
	answer := Webhook{
		ID:               w.ID,
		Version:          w.Version,
		CreatedAt:        w.CreatedAt.UTC(),
		UpdatedAt:        w.UpdatedAt.UTC(),
		Name:             w.Name,
		Kind:             w.Kind,
		HeaderNames:      listed(slices.Sorted(maps.Keys(w.Headers))),
		BodyTemplate:     w.BodyTemplate,
		HasSigningSecret: w.SigningSecret != "",
		Enabled:          w.Enabled,
		Operators:        w.Operators,
		DisabledReason:   optional(w.DisabledReason),
		TimeoutSeconds:   w.Timeout.Seconds(),
		MaxConcurrent:    w.MaxConcurrent,
		RatePerSecond:    w.RatePerSecond,
		Health:           webhookHealthAnswer(w),
		DigestAbove:      w.DigestAbove,
		Events:           listed(w.Events), EventMaxAgeSeconds: int(w.EventMaxAge.Seconds()),
		QuietHours: w.QuietHours,
	}
	if w.Slack.Used() || w.Sealed != nil && w.Slack.Channel != "" {
		answer.Slack = &SlackApp{
			Channel: w.Slack.Channel, HasBotToken: w.Slack.Used(), HasSigningSecret: w.Slack.SigningSecret != "", Threads: w.Slack.Threads,
			InteractionsPath: prefixInteractions + w.ID.String(),
		}
	}
	answer.Preset = s.presetAnswer(w)
	if u, err := url.Parse(w.URL); err == nil {
		answer.URLHost = u.Host
	}
	if w.Sealed != nil {
		answer.SecretsProblem, answer.URLHost, answer.HasSigningSecret = &w.Sealed.Why, w.Sealed.URLHost, w.Sealed.Signed
	}
	answer.FormerSecretUntil = formerUntil(w)
	answer.HasClientCertificate = optional(w.ClientCertificate != "")
	answer.HeldUntil = instantOf(w.HeldUntil)
	return answer
}

// webhookHealthAnswer returns the health of a webhook that was just written, from its row.
func webhookHealthAnswer(w *notify.Webhook) WebhookHealth {
	f := w.Flow
	if f.State == "" {
		f = notify.FlowOf(w, notify.Breaker{}, w.UpdatedAt)
	}
	return WebhookHealth{
		State: f.State, Since: instantOf(f.Since), Until: instantOf(f.Until), ConsecutiveFailures: f.Failures,
		LastError: optional(f.LastError), LastErrorAt: instantOf(f.LastErrorAt), DisabledReason: optional(w.DisabledReason),
	}
}

// instantOf returns nil for the zero time.
func instantOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
