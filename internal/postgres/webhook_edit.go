package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Update replaces a webhook if it still has the version that was edited.
func (s *Webhooks) Update(ctx context.Context, tenant string, edited notify.Webhook) (notify.Webhook, error) {
	return s.edit(ctx, tenant, edited.ID, func(present notify.Webhook, _ time.Time) (notify.Webhook, bool, error) {
		if present.Version != edited.Version {
			return present, false, fault.New(fault.Stale,
				"the webhook was changed to version %d since version %d was read; read it again and repeat the edit", present.Version, edited.Version)
		}
		// A receiver may have asked for a pause since the version was read.
		edited.HeldUntil = present.HeldUntil
		return edited, true, edited.Sealed.Fault()
	})
}

// SetEnabled enables or disables a webhook. Enabling also ends a hold. Disabling needs no secrets.
func (s *Webhooks) SetEnabled(ctx context.Context, tenant string, id uuid.UUID, enabled bool) (notify.Webhook, error) {
	return s.edit(ctx, tenant, id, func(w notify.Webhook, now time.Time) (notify.Webhook, bool, error) {
		changes := w.Enabled != enabled || enabled && w.HeldUntil.After(now)
		w.Enabled = enabled
		if enabled {
			w.HeldUntil = time.Time{}
			return w, changes, w.Sealed.Fault()
		}
		return w, changes, nil
	})
}

// Rotate replaces the secret. The former secret also signs for an overlap.
func (s *Webhooks) Rotate(ctx context.Context, tenant string, id uuid.UUID, r api.Rotation) (notify.Webhook, error) {
	return s.edit(ctx, tenant, id, func(w notify.Webhook, now time.Time) (notify.Webhook, bool, error) {
		w.FormerSecret, w.FormerSecretUntil = "", time.Time{}
		if w.SigningSecret != "" && r.Overlap > 0 {
			w.FormerSecret, w.FormerSecretUntil = w.SigningSecret, now.Add(r.Overlap)
		}
		w.SigningSecret = r.Secret
		return w, true, w.Sealed.Fault()
	})
}

// Retire removes the former secret.
func (s *Webhooks) Retire(ctx context.Context, tenant string, id uuid.UUID) (notify.Webhook, error) {
	return s.edit(ctx, tenant, id, func(w notify.Webhook, _ time.Time) (notify.Webhook, bool, error) {
		changes := w.FormerSecret != ""
		w.FormerSecret, w.FormerSecretUntil = "", time.Time{}
		return w, changes, w.Sealed.Fault()
	})
}

// edit stores the result of change, if change reports that it changed the webhook. What attempts
// have shown of the webhook is forgotten in any case. Secrets are decrypted and sealed again, so that
// no edit loses the secrets of another edit. Secrets that cannot be decrypted stay as they are, unless
// an edit replaces all of them. It locks the webhook before the alerts about it, which a person may act on at the same time.
func (s *Webhooks) edit(
	ctx context.Context, tenant string, id uuid.UUID, change func(w notify.Webhook, now time.Time) (notify.Webhook, bool, error),
) (notify.Webhook, error) {
	list := make([]notify.Webhook, 1)
	edited := &list[0]
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		row, err := q.WebhookToEdit(ctx, pgq.WebhookToEditParams{TenantID: tenant, WebhookID: id})
		if err != nil {
			return notFound(err, "webhook")
		}
		present := s.db.shownWebhook(row)
		now, err := q.WebhookClock(ctx)
		if err != nil {
			return err
		}
		w, changed, err := change(present, now)
		*edited = present
		if err != nil {
			return err
		}
		// A person has taken care of the webhook, even if nothing changed.
		if err := revive(ctx, q, &w); err != nil || !changed {
			return err
		}
		p, err := s.db.editOf(w)
		if err != nil {
			return err
		}
		if w.Sealed != nil {
			p.Secrets, p.UrlHost, p.Signed, p.FormerSecretUntil = row.Secrets, row.UrlHost, row.Signed, row.FormerSecretUntil
		}
		if !maps.Equal(present.Inputs, w.Inputs) {
			if err := q.WebhookReferencesForget(ctx, w.ID); err != nil {
				return fmt.Errorf("forget references: %w", err)
			}
			p.Readdressed = true
		}
		if !maps.Equal(present.Inputs, w.Inputs) || !maps.Equal(present.Headers, w.Headers) {
			if err := q.WebhookInstancesForget(ctx, w.ID); err != nil {
				return fmt.Errorf("forget processes: %w", err)
			}
		}
		p.Release = w.Enabled && (!present.Enabled || w.HeldUntil.IsZero())
		if row, err = q.WebhookUpdate(ctx, p); err != nil {
			return nameTaken(err, w.Name)
		}
		*edited = s.db.shownWebhook(row)
		return nil
	})
	if err == nil {
		err = s.addFlow(ctx, list)
	}
	if err != nil {
		return notify.Webhook{}, fmt.Errorf("edit webhook: %w", err)
	}
	return *edited, nil
}

// editOf returns a webhook in the form that an edit stores.
func (db *DB) editOf(w notify.Webhook) (pgq.WebhookUpdateParams, error) {
	sealed, err := db.sealWebhook(w)
	if err != nil {
		return pgq.WebhookUpdateParams{}, err
	}
	target, err := url.Parse(w.URL)
	if err != nil {
		return pgq.WebhookUpdateParams{}, fault.InvalidFields("the webhook", []fault.Field{{Field: "url", Code: "url", Message: "Must be a URL such as https://example.com/hook"}})
	}
	quiet, err := quietColumn(w.QuietHours)
	if err != nil {
		return pgq.WebhookUpdateParams{}, err
	}
	p := pgq.WebhookUpdateParams{
		QuietHours: quiet,
		WebhookID:  w.ID, Name: w.Name, Secrets: sealed, UrlHost: target.Host, Signed: w.SigningSecret != "",
		BodyTemplate: w.BodyTemplate, Enabled: w.Enabled, Operators: w.Operators, TimeoutMs: int32(w.Timeout.Milliseconds()),
		MaxConcurrent: int32(w.MaxConcurrent), RatePerSecond: w.RatePerSecond, DigestAbove: int32(w.DigestAbove), SlackChannel: w.Slack.Channel,
		SlackThreads: w.Slack.Threads,
		Events:       eventNames(w.Events), EventAgeSeconds: int32(cmp.Or(w.EventMaxAge, notify.DefaultEventMaxAge).Seconds()),
	}
	if w.FormerSecret != "" {
		p.FormerSecretUntil = &w.FormerSecretUntil
	}
	return p, nil
}
