package api

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// WebhookEditor edits webhooks. It returns webhooks as they are stored.
type WebhookEditor interface {
	// Update replaces a valid webhook, secrets included. A version other than the
	// stored one is a fault of kind Stale, a name that is taken one of kind Conflict.
	Update(ctx context.Context, tenant string, w notify.Webhook) (notify.Webhook, error)
	// SetEnabled enables or disables a webhook. Enabling also clears why it was disabled, and a
	// pause that its receiver asked for. A webhook that is already in the requested state stays as
	// it is.
	SetEnabled(ctx context.Context, tenant string, id uuid.UUID, enabled bool) (notify.Webhook, error)
	// Rotate replaces the secret; the present one becomes the former one.
	Rotate(ctx context.Context, tenant string, id uuid.UUID, r Rotation) (notify.Webhook, error)
	// Retire removes the former secret.
	Retire(ctx context.Context, tenant string, id uuid.UUID) (notify.Webhook, error)
}

// Rotation is a new signing secret, and how long the former one also signs.
type Rotation struct {
	Secret  string
	Overlap time.Duration
}

// UpdateWebhook answers PUT /webhooks/{id}.
func (s *server) UpdateWebhook(ctx context.Context, req UpdateWebhookRequestObject) (UpdateWebhookResponseObject, error) {
	version, err := editedVersion(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	present, err := s.Webhooks.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("edit webhook: %w", err)
	}
	w := s.edited(&present, req.Body)
	w.Version = version
	if givesSecrets(&present, req.Body) {
		w.Sealed = nil
	} else if err := w.Sealed.Fault(); err != nil {
		return nil, fmt.Errorf("edit webhook: %w", err)
	}
	faults := append(formFaults(&w), s.CheckWebhook(&w)...)
	if len(present.Headers) > 0 && req.Body.Headers == nil && s.leadsTo(&w) != s.leadsTo(&present) {
		faults = append(faults, fault.Field{
			Field: "headers", Code: "required",
			Message: "Their values were entered for another URL, and are not sent to this one; enter the headers again, or remove them",
		})
	}
	if req.Body.Preset != nil && present.Preset == "" {
		faults = append(faults, fault.Field{Field: "preset", Code: "not_applicable", Message: "The webhook is not for a receiver; remove it, or create another webhook"})
	}
	faults = append(faults, s.carriedSecrets(&present, &w, req.Body)...)
	if err := fault.InvalidFields("the webhook", withoutRepeats(faults)); err != nil {
		return nil, err
	}
	if present.Version != version {
		return nil, fault.New(fault.Stale, "the webhook was changed to version %d since version %d was read; read it again and repeat the edit", present.Version, version)
	}
	stored, err := s.Webhooks.Update(ctx, tenantOf(ctx), w)
	if err != nil {
		return nil, fmt.Errorf("edit webhook: %w", err)
	}
	return UpdateWebhook200JSONResponse{Body: s.webhookAnswer(&stored), Headers: UpdateWebhook200ResponseHeaders{ETag: etag(stored.Version)}}, nil
}

// edited returns a webhook after an edit. Secrets that the edit leaves out keep their values, and
// so do fields that it cannot contain.
func (s *server) edited(present *notify.Webhook, b *WebhookEdit) notify.Webhook {
	w := *present
	fresh := s.webhook(&WebhookDefinition{
		Preset: presetOf(present),
		Name:   b.Name, Kind: present.Kind, BodyTemplate: b.BodyTemplate, Enabled: b.Enabled, Operators: b.Operators,
		TimeoutSeconds: b.TimeoutSeconds, MaxConcurrent: b.MaxConcurrent, RatePerSecond: b.RatePerSecond,
		DigestAbove: b.DigestAbove, Events: b.Events, EventMaxAgeSeconds: b.EventMaxAgeSeconds, QuietHours: b.QuietHours,
	})
	w.Name, w.BodyTemplate, w.Enabled, w.Operators = fresh.Name, fresh.BodyTemplate, fresh.Enabled, fresh.Operators
	w.Timeout, w.MaxConcurrent, w.RatePerSecond = fresh.Timeout, fresh.MaxConcurrent, fresh.RatePerSecond
	w.DigestAbove, w.Events, w.EventMaxAge = fresh.DigestAbove, fresh.Events, fresh.EventMaxAge
	w.QuietHours = fresh.QuietHours
	if b.URL != nil {
		w.URL, w.Slack = *b.URL, notify.SlackApp{}
	}
	if b.Slack != nil {
		w.Slack = slackEdited(present.Slack, b.Slack)
		w.URL = deref(b.URL)
	}
	if b.Preset != nil {
		w.Inputs = maps.Clone(present.Inputs)
		if w.Inputs == nil {
			w.Inputs = map[string]string{}
		}
		maps.Copy(w.Inputs, b.Preset.Inputs)
		maps.DeleteFunc(w.Inputs, func(_, value string) bool { return value == "" })
	}
	if b.Headers != nil {
		w.Headers = b.Headers
	}
	if b.SigningSecret != nil {
		// A secret that a person enters replaces all others at once.
		w.SigningSecret, w.FormerSecret, w.FormerSecretUntil = *b.SigningSecret, "", time.Time{}
	}
	if b.ClientCertificate != nil {
		w.ClientCertificate = *b.ClientCertificate
	}
	return w
}

// presetOf returns a webhook's receiver in the form of a definition.
func presetOf(w *notify.Webhook) *PresetDefinition {
	if w.Preset == "" {
		return nil
	}
	return &PresetDefinition{ID: w.Preset}
}

// givesSecrets reports whether an edit contains all secrets.
func givesSecrets(present *notify.Webhook, b *WebhookEdit) bool {
	if present.Preset != "" {
		return b.Preset != nil && b.Headers != nil
	}
	if b.Slack != nil {
		return b.Slack.BotToken != nil && b.Slack.SigningSecret != nil
	}
	return b.URL != nil && b.Headers != nil && b.SigningSecret != nil
}

// originOf returns the origin of a URL: its scheme, and its host with the port.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// slackEdited returns a Slack app after an edit.
func slackEdited(app notify.SlackApp, b *SlackAppEdit) notify.SlackApp {
	app.Channel = b.Channel
	if b.BotToken != nil {
		app.BotToken = *b.BotToken
	}
	if b.SigningSecret != nil {
		app.SigningSecret = *b.SigningSecret
	}
	if b.Threads != nil {
		app.Threads = *b.Threads
	}
	return app
}

// EnableWebhook answers POST /webhooks/{id}/enable.
func (s *server) EnableWebhook(ctx context.Context, req EnableWebhookRequestObject) (EnableWebhookResponseObject, error) {
	w, err := s.Webhooks.SetEnabled(ctx, tenantOf(ctx), req.ID, true)
	if err != nil {
		return nil, fmt.Errorf("enable webhook: %w", err)
	}
	return EnableWebhook200JSONResponse{Body: s.webhookAnswer(&w), Headers: EnableWebhook200ResponseHeaders{ETag: etag(w.Version)}}, nil
}

// DisableWebhook answers POST /webhooks/{id}/disable.
func (s *server) DisableWebhook(ctx context.Context, req DisableWebhookRequestObject) (DisableWebhookResponseObject, error) {
	w, err := s.Webhooks.SetEnabled(ctx, tenantOf(ctx), req.ID, false)
	if err != nil {
		return nil, fmt.Errorf("disable webhook: %w", err)
	}
	return DisableWebhook200JSONResponse{Body: s.webhookAnswer(&w), Headers: DisableWebhook200ResponseHeaders{ETag: etag(w.Version)}}, nil
}

// Bounds of the overlap of two secrets.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 7 * 24 * time.Hour
)

// RotateWebhookSecret answers POST /webhooks/{id}/rotate-secret.
func (s *server) RotateWebhookSecret(ctx context.Context, req RotateWebhookSecretRequestObject) (RotateWebhookSecretResponseObject, error) {
	r := Rotation{Secret: newSecret(), Overlap: defaultOverlap}
	if n := req.Body.OverlapSeconds; n != nil {
		if *n < 0 || *n > int(maxOverlap.Seconds()) {
			return nil, invalidField("overlapSeconds", "out_of_range", fmt.Sprintf("Must be from 0 to %d", int(maxOverlap.Seconds())))
		}
		r.Overlap = time.Duration(*n) * time.Second
	}
	present, err := s.Webhooks.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("rotate secret: %w", err)
	}
	if present.Slack.Used() {
		return nil, fault.New(fault.Conflict, "Slack does not check signatures, so a webhook that posts as a Slack app has no secret to rotate; edit its bot token instead")
	}
	if present.Preset != "" {
		return nil, fault.New(fault.Conflict, "the webhook's receiver does not check signatures; edit its inputs instead")
	}
	w, err := s.Webhooks.Rotate(ctx, tenantOf(ctx), req.ID, r)
	if err != nil {
		return nil, fmt.Errorf("rotate secret: %w", err)
	}
	return RotateWebhookSecret200JSONResponse{
		Body:    RotatedSecret{SigningSecret: r.Secret, FormerSecretUntil: formerUntil(&w)},
		Headers: RotateWebhookSecret200ResponseHeaders{ETag: etag(w.Version)},
	}, nil
}

// RetireWebhookSecret answers POST /webhooks/{id}/retire-secret.
func (s *server) RetireWebhookSecret(ctx context.Context, req RetireWebhookSecretRequestObject) (RetireWebhookSecretResponseObject, error) {
	w, err := s.Webhooks.Retire(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("retire secret: %w", err)
	}
	return RetireWebhookSecret200JSONResponse{Body: s.webhookAnswer(&w), Headers: RetireWebhookSecret200ResponseHeaders{ETag: etag(w.Version)}}, nil
}

// newSecret returns a signing secret in the format of Standard Webhooks.
func newSecret() string {
	var key [32]byte
	_, _ = rand.Read(key[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// formerUntil returns until when a former secret signs; nil if there is none.
func formerUntil(w *notify.Webhook) *time.Time {
	if w.FormerSecret == "" {
		return nil
	}
	until := w.FormerSecretUntil.UTC()
	return &until
}

// TestWebhook answers POST /webhooks/{id}/test.
func (s *server) TestWebhook(ctx context.Context, req TestWebhookRequestObject) (TestWebhookResponseObject, error) {
	w, err := s.Webhooks.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("test webhook: %w", err)
	}
	result, err := s.sendTest(ctx, &w, s.sample(rules.PerExchange))
	return TestWebhook200JSONResponse(result), err
}

// testTimeout bounds a test message, whatever the timeout of its webhook is. Within it, an attempt
// takes the time that its receiver needs.
const testTimeout = 30 * time.Second

// sendTest sends a message about a, marked as a test, and stores nothing.
func (s *server) sendTest(ctx context.Context, w *notify.Webhook, a alerts.Instance) (TestResult, error) {
	if err := w.Sealed.Fault(); err != nil {
		return TestResult{WebhookID: w.ID, WebhookName: w.Name, Verdict: TestResultVerdict(notify.VerdictRetry.String()), Error: problemOf(err).Detail}, nil
	}
	d, problem, err := s.testDelivery(w, a)
	if err != nil {
		return TestResult{}, err
	}
	d.Webhook.Timeout = min(w.Timeout, testTimeout)
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	o := s.Sender.Send(ctx, &d)
	if o.Verdict == notify.VerdictDelivered && problem == nil {
		problem = s.endTest(ctx, &d, o)
	}
	result := TestResult{
		WebhookID: w.ID, WebhookName: w.Name, Verdict: TestResultVerdict(o.Verdict.String()), StatusCode: optional(o.StatusCode),
		DurationMs: float64(o.Duration) / float64(time.Millisecond), Error: optional(o.Error), Response: optional(o.Response),
	}
	if problem != nil {
		text := problem.Error()
		result.Problem = &text
	}
	return result, nil
}

// testDelivery renders the message about a that a test sends. problem says why its body is a
// fallback.
func (s *server) testDelivery(w *notify.Webhook, a alerts.Instance) (d notify.Delivery, problem, err error) {
	d = notify.Delivery{Reason: notify.ReasonFired, Attempt: 1, Alert: a, Webhook: *w, Test: true, At: s.Now()}
	if d.NotificationID, err = uuid.NewV7(); err == nil {
		d.Alert.ID, err = uuid.NewV7()
	}
	if err != nil {
		return d, nil, fmt.Errorf("make id of test: %w", err)
	}
	d.Alert.Title = "[Test] " + a.Title
	body, problem := s.Renderer.Render(&d)
	d.Body = &body
	return d, problem, nil
}
