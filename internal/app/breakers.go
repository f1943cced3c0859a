package app

import (
	"context"
	"log/slog"
	"time"

	"tocsin/notify"
)

const (
	// breakerOpenFor is how long a receiver must not answer before operators are notified, and
	// breakersEvery how often a replica checks.
	breakerOpenFor = 10 * time.Minute
	breakersEvery  = 15 * time.Second
)

// watchBreakers does several regular tasks:
//
//   - It notifies operators of webhooks that have not responded for long.
//   - It ends messages whose receivers have asked for pauses for too long.
//   - It frees messages that wait for one that is gone, or for the end of quiet hours.
//   - It writes the digests of silences that have ended.
//   - It ends the snoozes of alerts.
//   - It escalates alerts that nobody has acknowledged.
func (a *App) watchBreakers(ctx context.Context) {
	ticker := time.NewTicker(breakersEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		notifications, err := a.outbox.NotifyOpenBreakers(ctx, breakerOpenFor)
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "operators not notified of open circuit breakers; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.wake(ctx, notifications)
		ended, err := a.outbox.ExpireHeld(ctx, max(notify.Policy{Schedule: a.options.RetrySchedule}.Span(), a.receivers.Span()))
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "expired messages of held webhooks not settled; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.wake(ctx, ended)
		released, err := a.outbox.EndQuiet(ctx, nil)
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "messages held by quiet hours not checked; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.notified(ctx, released)
		digests, err := a.outbox.DigestSilences(ctx, nil, a.receivers.TakesDigests)
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "digests of silences not written; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.notified(ctx, digests)
		freed, err := a.outbox.FreeFollowing(ctx)
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "messages that wait for earlier ones not checked; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.wake(ctx, len(freed), freed...)
		reminded, suppressed, err := a.outbox.Remind(ctx, nil)
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "snoozes not ended; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.notified(ctx, reminded)
		a.metrics.Suppressed(suppressed)
		escalated, err := a.outbox.Escalate(ctx, nil)
		if err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "alerts not escalated; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		a.dispatchers.notified(ctx, escalated.Due)
		a.metrics.Suppressed(escalated.Suppressed)
		for _, step := range escalated.Empty {
			a.metrics.emptySteps.Inc()
			a.options.Logger.WarnContext(ctx, "step of an escalation notifies nobody, because its webhooks and teams no longer exist, or the teams have no webhooks; handle the alert in the inbox", slog.String("alert_id", step.AlertID.String()),
				slog.String("tenant_id", step.Tenant), slog.Int("after_minutes", step.AfterMinutes))
		}
	}
}
