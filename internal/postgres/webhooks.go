package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/internal/seal"
	"tocsin/notify"
)

// Webhooks is the API's store of webhooks.
type Webhooks struct{ db *DB }

// Webhooks returns the API's store of webhooks.
func (db *DB) Webhooks() *Webhooks { return &Webhooks{db} }

// List returns a page of webhooks by (name, id).
func (s *Webhooks) List(ctx context.Context, tenant string, page api.NamePage) ([]notify.Webhook, error) {
	p := pgq.WebhookListParams{TenantID: tenant, Most: int32(page.Limit)}
	if page.After != nil {
		p.AfterName, p.AfterID = &page.After.Name, page.After.ID
	}
	rows, err := s.db.queries.WebhookList(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	list := make([]notify.Webhook, len(rows))
	for i, row := range rows {
		list[i] = s.db.shownWebhook(row)
	}
	if err := s.addFlow(ctx, list); err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	return list, nil
}

// Get returns one webhook.
func (s *Webhooks) Get(ctx context.Context, tenant string, id uuid.UUID) (notify.Webhook, error) {
	row, err := s.db.queries.WebhookGet(ctx, pgq.WebhookGetParams{TenantID: tenant, WebhookID: id})
	if err != nil {
		return notify.Webhook{}, notFound(err, "webhook")
	}
	list := []notify.Webhook{s.db.shownWebhook(row)}
	err = s.addFlow(ctx, list)
	return list[0], err
}

// Names returns what rules need to know about every webhook, by name.
func (s *Webhooks) Names(ctx context.Context, tenant string) ([]api.WebhookName, error) {
	rows, err := s.db.queries.WebhookNames(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list names of webhooks: %w", err)
	}
	names := make([]api.WebhookName, len(rows))
	for i, row := range rows {
		names[i] = api.WebhookName{ID: row.WebhookID, Name: row.Name, Enabled: row.Enabled, Preset: row.Preset, QuietHours: quietHoursOf(row.QuietHours)}
	}
	return names, nil
}

// Create stores a webhook and seals its secrets.
func (s *Webhooks) Create(ctx context.Context, tenant string, w notify.Webhook) (notify.Webhook, error) {
	w.ID = uuid.Must(uuid.NewV7())
	sealed, err := s.db.sealWebhook(w)
	if err != nil {
		return notify.Webhook{}, err
	}
	target, err := url.Parse(w.URL)
	if err != nil {
		return notify.Webhook{}, fault.InvalidFields("the webhook", []fault.Field{{Field: "url", Code: "url", Message: "Must be a URL such as https://example.com/hook"}})
	}
	quiet, err := quietColumn(w.QuietHours)
	if err != nil {
		return notify.Webhook{}, err
	}
	var row pgq.Webhook
	err = s.db.inTx(ctx, func(q *pgq.Queries) (err error) {
		row, err = q.WebhookInsert(ctx, pgq.WebhookInsertParams{
			WebhookID: w.ID, TenantID: tenant, Name: w.Name, Kind: string(w.Kind), Secrets: sealed, UrlHost: target.Host,
			Signed: w.SigningSecret != "", BodyTemplate: w.BodyTemplate, Enabled: w.Enabled, Operators: w.Operators,
			TimeoutMs: int32(w.Timeout.Milliseconds()), MaxConcurrent: int32(w.MaxConcurrent), RatePerSecond: w.RatePerSecond,
			DigestAbove: int32(w.DigestAbove), SlackChannel: w.Slack.Channel, SlackThreads: w.Slack.Threads,
			Preset: w.Preset, QuietHours: quiet,
			Events: eventNames(w.Events), EventAgeSeconds: int32(cmp.Or(w.EventMaxAge, notify.DefaultEventMaxAge).Seconds()),
		})
		return err
	})
	if err != nil {
		return notify.Webhook{}, fmt.Errorf("create webhook: %w", nameTaken(err, w.Name))
	}
	return s.db.webhookOf(row)
}

// eventNames returns events in stored form.
func eventNames(events []notify.Reason) []string {
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = string(event)
	}
	return names
}

// Delete removes a webhook if no rule and no route refers to it. Its messages that wait, were
// refused or are exhausted are discarded, and the alert that it was disabled resolves.
func (s *Webhooks) Delete(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		// Open alerts may be routed to it. A replica that has read their routing reads it again.
		if _, err := beginChange(ctx, q, tenant); err != nil {
			return err
		}
		if _, err := q.WebhookLock(ctx, pgq.WebhookLockParams{TenantID: tenant, WebhookID: id}); err != nil {
			return notFound(err, "webhook")
		}
		bound, err := q.WebhookRules(ctx, id)
		if err != nil {
			return err
		}
		if len(bound) > 0 {
			return fault.New(fault.Conflict, "the webhook is used by %s; remove it there, then delete it", strings.Join(bound, ", "))
		}
		if err := unrouted(ctx, q, tenant, id); err != nil {
			return err
		}
		if err := unteamed(ctx, q, tenant, id); err != nil {
			return err
		}
		if err := endIncidents(ctx, q, "", id); err != nil {
			return err
		}
		if err := q.OutboxAbandon(ctx, pgq.OutboxAbandonParams{WebhookID: id, DiscardedBy: notify.ByTocsin}); err != nil {
			return err
		}
		if err := q.DeadLettersAbandon(ctx, pgq.DeadLettersAbandonParams{WebhookID: id, DiscardedBy: notify.ByTocsin}); err != nil {
			return err
		}
		if err := q.SlackUpdateAbandon(ctx, id); err != nil {
			return err
		}
		return q.WebhookDelete(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("delete webhook: %w", err)
	}
	return nil
}

// webhookSecrets is the sealed part of a webhook.
type webhookSecrets struct {
	URL           string            `json:"url"`
	Headers       map[string]string `json:"headers,omitempty"`
	SigningSecret string            `json:"signingSecret,omitempty"`
	FormerSecret  string            `json:"formerSecret,omitempty"`
	BotToken      string            `json:"botToken,omitempty"`
	SlackSecret   string            `json:"slackSecret,omitempty"`
	Certificate   string            `json:"clientCertificate,omitempty"`
	Inputs        map[string]string `json:"inputs,omitempty"`
}

func (db *DB) sealWebhook(w notify.Webhook) ([]byte, error) {
	plain, err := json.Marshal(webhookSecrets{
		URL: w.URL, Headers: w.Headers, SigningSecret: w.SigningSecret, FormerSecret: w.FormerSecret,
		BotToken: w.Slack.BotToken, SlackSecret: w.Slack.SigningSecret, Certificate: w.ClientCertificate, Inputs: w.Inputs,
	})
	if err != nil {
		return nil, fmt.Errorf("encode webhook secrets: %w", err)
	}
	return db.box.Seal(plain, webhookRow(w.ID)), nil
}

func webhookRow(id uuid.UUID) string { return "webhook/" + id.String() }

// shownWebhook decodes a stored webhook for people. It accepts secrets that cannot be opened, so
// that the webhook can be seen, disabled and repaired.
func (db *DB) shownWebhook(row pgq.Webhook) notify.Webhook {
	w, err := db.webhookOf(row)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), seal.ErrSealed.Error()+": ")
		w.Sealed = &notify.Sealed{Why: why, URLHost: row.UrlHost, Signed: row.Signed}
	}
	return w
}

// webhookOf decodes a stored webhook. Its errors concern secrets that cannot be opened; all other
// fields are set even then.
func (db *DB) webhookOf(row pgq.Webhook) (notify.Webhook, error) {
	w := notify.Webhook{
		ID: row.WebhookID, TenantID: row.TenantID, Name: row.Name, Kind: notify.WebhookKind(row.Kind),
		BodyTemplate: row.BodyTemplate, Enabled: row.Enabled, Operators: row.Operators, DisabledReason: row.DisabledReason,
		Timeout:       time.Duration(row.TimeoutMs) * time.Millisecond,
		MaxConcurrent: int(row.MaxConcurrent), RatePerSecond: row.RatePerSecond, DigestAbove: int(row.DigestAbove),
		Version: row.Version, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		Slack:       notify.SlackApp{Channel: row.SlackChannel, Threads: row.SlackThreads},
		Preset:      row.Preset,
		EventMaxAge: time.Duration(row.EventAgeSeconds) * time.Second,
		QuietHours:  quietHoursOf(row.QuietHours),
	}
	for _, event := range row.Events {
		w.Events = append(w.Events, notify.Reason(event))
	}
	if row.HeldUntil != nil {
		w.HeldUntil = *row.HeldUntil
	}
	plain, err := db.box.Open(row.Secrets, webhookRow(row.WebhookID))
	if err != nil {
		return w, fmt.Errorf("webhook %s: %w", row.WebhookID, err)
	}
	var secrets webhookSecrets
	if err := json.Unmarshal(plain, &secrets); err != nil {
		return w, fmt.Errorf("webhook %s: %w: the value does not hold the secrets of a webhook; restore the row from a backup", row.WebhookID, seal.ErrSealed)
	}
	w.URL, w.Headers, w.SigningSecret = secrets.URL, secrets.Headers, secrets.SigningSecret
	if row.FormerSecretUntil != nil {
		w.FormerSecret, w.FormerSecretUntil = secrets.FormerSecret, *row.FormerSecretUntil
	}
	w.Slack.BotToken, w.Slack.SigningSecret = secrets.BotToken, secrets.SlackSecret
	w.ClientCertificate, w.Inputs = secrets.Certificate, secrets.Inputs
	return w, nil
}
