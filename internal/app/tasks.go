package app

import (
	"context"
	"log/slog"
	"time"

	"tocsin/internal/fault"
	"tocsin/notify"
)

const (
	// tasksEvery is how often a replica does its tasks.
	tasksEvery = 15 * time.Second
	// breakerOpenFor is how long a receiver must not respond before operators are notified.
	breakerOpenFor = 10 * time.Minute
)

// task is a regular task on alerts and messages that becomes due with time, and not because of a commit or a person.
// Each replica with dispatchers does it; in one transaction it takes what is due, so that each is done once.
type task struct {
	name string
	// do does what is due. If it returns an error, the rest may have been done all the same.
	do func(ctx context.Context) error
}

func (a *App) tasks() []task {
	return []task{
		{"notify operators of open circuit breakers", a.notifyOpenBreakers},
		{"end messages of held webhooks", a.expireHeld},
		{"end quiet hours", a.endQuiet},
		{"write digests of silences", a.digestSilences},
		{"free messages that wait for others", a.freeFollowing},
		{"end snoozes", a.remind},
		{"escalate alerts", a.escalate},
	}
}

// runTasks runs the tasks one after the other, so that they use one connection to Postgres, until ctx ends. A
// task that fails or panics keeps none of the others from being done.
func (a *App) runTasks(ctx context.Context) {
	ticker := time.NewTicker(tasksEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, t := range a.tasks() {
			if err := fault.Guard(func() error { return t.do(ctx) }); err != nil && ctx.Err() == nil {
				a.options.Logger.WarnContext(ctx, "regular task failed; it is retried: run tocsin doctor if this repeats", slog.String("task", t.name), slog.Any("error", err), fault.Stack(err))
			}
		}
	}
}

// notifyOpenBreakers notifies operators of webhooks that have not responded for long.
func (a *App) notifyOpenBreakers(ctx context.Context) error {
	notifications, err := a.outbox.NotifyOpenBreakers(ctx, breakerOpenFor)
	a.dispatchers.notified(ctx, notifications)
	return err
}

// expireHeld ends messages whose receivers have asked for pauses for too long.
func (a *App) expireHeld(ctx context.Context) error {
	_, notified, err := a.outbox.ExpireHeld(ctx, max(notify.Policy{Schedule: a.options.RetrySchedule}.Span(), a.receivers.Span()))
	a.dispatchers.wake(ctx, len(notified), notified...)
	return err
}

// endQuiet releases the messages whose quiet hours have ended.
func (a *App) endQuiet(ctx context.Context) error {
	released, err := a.outbox.EndQuiet(ctx, nil)
	a.dispatchers.notified(ctx, released)
	return err
}

// digestSilences writes the digests of silences that have ended.
func (a *App) digestSilences(ctx context.Context) error {
	digests, err := a.outbox.DigestSilences(ctx, nil, a.receivers.TakesDigests)
	a.dispatchers.notified(ctx, digests)
	return err
}

// freeFollowing releases messages that wait for one that is gone.
func (a *App) freeFollowing(ctx context.Context) error {
	freed, err := a.outbox.FreeFollowing(ctx)
	a.dispatchers.wake(ctx, len(freed), freed...)
	return err
}

// remind ends the snoozes of alerts.
func (a *App) remind(ctx context.Context) error {
	reminded, suppressed, err := a.outbox.Remind(ctx, nil)
	a.dispatchers.notified(ctx, reminded)
	a.metrics.Suppressed(suppressed)
	return err
}

// escalate escalates alerts that nobody has acknowledged.
func (a *App) escalate(ctx context.Context) error {
	escalated, err := a.outbox.Escalate(ctx, nil)
	a.dispatchers.notified(ctx, escalated.Due)
	a.metrics.Suppressed(escalated.Suppressed)
	for _, step := range escalated.Empty {
		a.metrics.emptySteps.Inc()
		a.options.Logger.WarnContext(ctx, "step of an escalation notifies nobody, because its webhooks and teams no longer exist, or the teams have no webhooks; handle the alert in the inbox", slog.String("alert_id", step.AlertID.String()),
			slog.String("tenant_id", step.Tenant), slog.Int("after_minutes", step.AfterMinutes))
	}
	return err
}
