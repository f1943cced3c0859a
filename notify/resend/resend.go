// Package resend sends open alerts again to receivers that have forgotten them.
//
// A receiver such as Alertmanager keeps alerts in memory: after a restart it does not know what was
// open before. It says when its process began. If a process answers that has not answered before,
// each alert that is open, and whose message was delivered before, is sent again:
//
//	ask each receiver ─▶ a process never seen ─▶ stored, with the instant
//	                                                  │
//	        every interval, until no message is left: ▼
//	        the messages of open alerts whose attempts began before that instant are due again
//
// Sending again is what a person does with a delivered message: the same message in the next
// generation, in the outbox, attempted on the schedule, recorded, and in order with the other
// messages of its alert. So an end can neither overtake it nor be undone by it, and it costs
// nothing while no receiver restarts. What is written is derived from what Postgres knows. So
// several replicas may do it at once, and a replica that dies in the middle leaves the rest to the
// next interval. A message may be sent again that the new process has already received; it knows
// alerts by their keys, and nothing changes. An attempt that was under way at the restart may have
// reached the former process: until its outcome is known, the next intervals look again.
//
// What comes back is what the receiver knew: an alert is left out if the last message about it that
// was delivered closed it there, and one whose messages never arrived is not added.
package resend

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
)

// Store stores what receivers have answered, and messages.
type Store interface {
	// Webhooks returns the enabled webhooks of some presets. It may return webhooks even if there is
	// an error.
	Webhooks(ctx context.Context, presets []string) ([]notify.Webhook, error)
	// Answered stores that a process of a webhook's receiver has answered, and reports whether it
	// had never answered before.
	Answered(ctx context.Context, webhook uuid.UUID, instance string) (restarted bool, err error)
	// Resend makes messages due again, if the receiver has restarted since they were sent and the
	// webhook accepts messages, and returns how many.
	Resend(ctx context.Context, webhook uuid.UUID) (resent int, err error)
}

// Receivers are asked which of their processes answers.
type Receivers interface {
	// Instance returns a name for the process that answers. Its error contains no secret.
	Instance(ctx context.Context, w *notify.Webhook) (string, error)
}

// Options configure a [Resender].
type Options struct {
	Store     Store
	Receivers Receivers
	// Presets are the ids of the receivers that forget alerts when they restart.
	Presets []string
	// Due is called with the number of messages that are due for a webhook.
	Due    func(ctx context.Context, webhook uuid.UUID, messages int)
	Logger *slog.Logger
	// Interval is the time between two questions, 1 min by default.
	Interval time.Duration
}

// Resender asks receivers, and sends open alerts again.
type Resender struct {
	Options

	mu sync.Mutex
	// silent are the webhooks whose receivers did not answer the last question.
	silent map[uuid.UUID]bool
}

// New returns a resender. Its error names the missing option.
func New(o Options) (*Resender, error) {
	if o.Store == nil || o.Receivers == nil || o.Due == nil || o.Logger == nil {
		return nil, errors.New("resender: Store, Receivers, Due and Logger are required")
	}
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	return &Resender{Options: o, silent: map[uuid.UUID]bool{}}, nil
}

// Run asks until ctx ends.
func (r *Resender) Run(ctx context.Context) {
	if len(r.Presets) == 0 {
		return
	}
	ticker := time.NewTicker(r.Interval)
	defer ticker.Stop()
	for {
		r.Tick(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// maxAsked bounds how many receivers are asked at once.
const maxAsked = 8

// Tick asks each receiver once.
func (r *Resender) Tick(ctx context.Context) {
	webhooks, err := r.Store.Webhooks(ctx, r.Presets)
	if err != nil && ctx.Err() == nil {
		r.Logger.WarnContext(ctx, "cannot read the webhooks whose receivers may have restarted; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
	}
	slots := make(chan struct{}, maxAsked)
	var asked sync.WaitGroup
	for i := range webhooks {
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			if err := fault.Guard(func() error { r.ask(ctx, &webhooks[i]); return nil }); err != nil {
				r.Logger.ErrorContext(ctx, "question to a receiver, or what follows from its answer, panicked; the others are asked", slog.String("webhook_id", webhooks[i].ID.String()), slog.Any("error", err), fault.Stack(err))
			}
		})
	}
	asked.Wait()
}

// ask asks a receiver, and sends open alerts again if it has restarted.
func (r *Resender) ask(ctx context.Context, w *notify.Webhook) {
	logger := r.Logger.With(slog.String("tenant_id", w.TenantID), slog.String("webhook_id", w.ID.String()), slog.String("webhook", w.Name))
	instance, err := r.Receivers.Instance(ctx, w)
	if ctx.Err() != nil {
		return
	}
	if r.turned(w.ID, err != nil) && err != nil {
		logger.WarnContext(ctx, "cannot ask whether the receiver has restarted; until it answers, open alerts are not sent to it again: check that it runs, and the URL of the webhook", slog.Any("error", err))
	}
	if err == nil {
		restarted, err := r.Store.Answered(ctx, w.ID, instance)
		if err != nil {
			logger.WarnContext(ctx, "restart of the receiver not stored; it is asked again: run tocsin doctor if this repeats", slog.Any("error", err))
			return
		}
		if restarted {
			logger.InfoContext(ctx, "another process of the receiver answers; open alerts are sent to it again", slog.String("since", instance))
		}
	}
	resent, err := r.Store.Resend(ctx, w.ID)
	if resent > 0 {
		logger.InfoContext(ctx, "open alerts sent again", slog.Int("messages", resent))
		r.Due(ctx, w.ID, resent)
	}
	if err != nil && ctx.Err() == nil {
		logger.WarnContext(ctx, "not all open alerts sent again; the rest follows: run tocsin doctor if this repeats", slog.Any("error", err), fault.Stack(err))
	}
}

// turned notes whether a receiver answers, and reports whether that is a change.
func (r *Resender) turned(id uuid.UUID, silent bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.silent[id]
	r.silent[id] = silent
	return was != silent
}
