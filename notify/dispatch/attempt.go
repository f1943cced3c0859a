package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
)

// attempt is a delivery whose attempt has begun in the store.
type attempt struct {
	delivery   *notify.Delivery
	call       *call
	settlement Settlement
	// claimedAt is when the claim was about to be made, by this process's clock.
	claimedAt time.Time
	// refused is why the call must not be made; empty if it may be made.
	refused string
}

// errRender is the error of a message that cannot be rendered.
var errRender = errors.New("the message cannot be rendered")

// render makes a body. If the renderer panics, only this message fails.
func (d *Dispatcher) render(delivery *notify.Delivery) (body notify.Body, problem string, err error) {
	var why error
	if err := fault.Guard(func() error { body, why = d.Renderer.Render(delivery); return nil }); err != nil {
		d.Logger.Error("message not rendered; it fails, and the others are sent", slog.String("notification_id", delivery.NotificationID.String()), slog.Any("error", err), fault.Stack(err))
		return notify.Body{}, "", fmt.Errorf("%w: %w", errRender, err)
	}
	if why != nil {
		problem = why.Error()
		d.Logger.Warn("the template cannot be rendered, so a default body is sent; the error says what to correct, or to report", slog.String("notification_id", delivery.NotificationID.String()), slog.Any("error", why), fault.Stack(why))
	}
	return body, problem, nil
}

// begin takes a slot for a claimed message, starts renewing its lease, and begins its attempt, which gives both back.
// Nothing in between can panic.
func (d *Dispatcher) begin(ctx context.Context, a *attempt, now time.Time) {
	delivery := a.delivery
	a.settlement = Settlement{
		TenantID: delivery.Webhook.TenantID, NotificationID: delivery.NotificationID, WebhookID: delivery.Webhook.ID,
		WebhookVersion: delivery.Webhook.Version, Token: delivery.Token, Attempt: delivery.Attempt, Replica: d.Replica,
	}
	delivery.Claim = func() error { return d.leases.check(claimOf(delivery)) }
	a.call = d.slots.begin(delivery.Webhook.ID, now)
	d.leases.keep(ctx, claimOf(delivery), a.claimedAt)
	d.underWay.Go(func() { d.attempt(context.WithoutCancel(ctx), a) })
}

// refused returns, by webhook, why the calls of a claim must not be made.
func (d *Dispatcher) refused(ctx context.Context, claimed *Claimed) map[uuid.UUID]string {
	refused := map[uuid.UUID]string{}
	for i := range claimed.Deliveries {
		if id := claimed.Deliveries[i].Webhook.ID; d.slots.stopped(id) {
			refused[id] = "Not sent: the receiver has asked for a pause or is gone, by its answer to another message"
		}
	}
	for _, webhook := range claimed.Unwanted {
		refused[webhook] = "Not sent: the webhook was edited, disabled or held, or is not responding"
	}
	if claimed.Unchecked != nil {
		d.Logger.WarnContext(ctx, "webhooks could not be checked, so their messages are not sent yet; it is retried: run tocsin doctor if this repeats", slog.Int("calls", len(claimed.Deliveries)), slog.Any("error", claimed.Unchecked))
		for i := range claimed.Deliveries {
			refused[claimed.Deliveries[i].Webhook.ID] = "Not sent: the database could not be asked whether the webhook still accepts messages"
		}
	}
	return refused
}

// attempt makes a call and passes on its outcome to be stored. If the call panics, the message may have arrived, as after
// a timeout, and is sent again by the schedule.
func (d *Dispatcher) attempt(ctx context.Context, a *attempt) {
	s := &a.settlement
	arrived := d.leases.hasArrived(a.delivery)
	if err := fault.Guard(func() error { s.Outcome = d.call(ctx, a, arrived); return nil }); err != nil {
		d.log(s).ErrorContext(ctx, "call panicked; its message may have arrived, and is sent again by the retry schedule", slog.Any("error", err), fault.Stack(err))
		s.Outcome = notify.Outcome{Verdict: notify.VerdictRetry, Error: err.Error()}
	}
	if err := fault.Guard(func() error { d.decide(a, arrived); return nil }); err != nil {
		d.log(s).ErrorContext(ctx, "consequences of an outcome panicked; the outcome is stored without them", slog.Any("error", err), fault.Stack(err))
	}
	delivered := s.Outcome.Verdict == notify.VerdictDelivered
	d.Observer.Attempted(s.Outcome.Verdict)
	if d.slots.answered(a.call, s.Outcome.Verdict) {
		d.signal()
	}
	d.leases.settling(a.delivery, delivered)
	d.settlements.add(ctx, *s, func(settled Settled, err error) {
		if err == nil {
			d.settled(ctx, s, settled)
			d.end(a)
			return
		}
		d.underWay.Go(func() {
			defer d.end(a)
			d.goOnStoring(ctx, s, err)
		})
	})
}

// call makes a call. arrived says that an earlier attempt has delivered the message.
func (d *Dispatcher) call(ctx context.Context, a *attempt, arrived bool) notify.Outcome {
	if arrived {
		// Storing that took longer than the lease. To send it again would be a repeat.
		return notify.NotMade("Not sent: an earlier attempt has delivered the message")
	}
	if a.delivery.AfterUnknown {
		d.Observer.Unknown()
		d.log(&a.settlement).WarnContext(ctx, "the previous attempt has no outcome; the message may be sent a second time")
	}
	if a.refused != "" {
		return notify.NotMade(a.refused)
	}
	if d.Clock().Sub(a.claimedAt) > min(d.Lease, d.DeadAfter)/2 {
		// The process was paused, or Postgres was: others may have the claim.
		return notify.NotMade("Not sent: beginning the attempt took so long that the lease of the message may have expired")
	}
	calling, done := d.leases.calling(ctx, claimOf(a.delivery))
	defer done()
	return d.Sender.Send(calling, a.delivery)
}

// decide decides what follows from an outcome. Where a step panics, what the steps before it decided holds.
func (d *Dispatcher) decide(a *attempt, arrived bool) {
	s, delivery := &a.settlement, a.delivery
	s.Decision = d.Policy.Decide(s.Outcome, delivery, 0.5) // without jitter, and whatever the receiver's own schedule is
	if arrived {
		s.Decision = notify.Decision{Status: notify.Delivered}
		return
	}
	if outcome, hold := s.Outcome, s.Decision.Hold; outcome.Verdict != notify.VerdictNotMade {
		s.Breaker = func(was notify.Breaker, probe bool, now time.Time) notify.Breaker {
			return d.Policy.Breaker.Next(was, notify.Evidence{Outcome: outcome, Hold: hold, Probe: probe, Now: now, Random: d.Random()})
		}
	}
	s.Message, s.Reference = notify.MessageOf(delivery, s.Outcome), notify.ReferenceOf(delivery, s.Outcome)
	s.Decision = d.Policy.With(d.Schedule(&delivery.Webhook)).Decide(s.Outcome, delivery, d.Random())
}

// end ends an attempt.
func (d *Dispatcher) end(a *attempt) {
	d.leases.drop(a.delivery)
	if d.slots.stored(a.call) {
		d.signal()
	}
}

// log returns the logger of an attempt.
func (d *Dispatcher) log(s *Settlement) *slog.Logger {
	return d.Logger.With(slog.String("notification_id", s.NotificationID.String()),
		slog.String("webhook_id", s.WebhookID.String()), slog.Int("attempt", s.Attempt))
}

// settled logs a stored outcome, unless all is well.
func (d *Dispatcher) settled(ctx context.Context, s *Settlement, settled Settled) {
	if settled.Unapplied != nil {
		d.Observer.Unapplied()
		d.log(s).WarnContext(ctx, "outcomes stored, but not applied to the circuit breakers of their webhooks; later ones are: run tocsin doctor if this repeats", slog.Any("error", settled.Unapplied), fault.Stack(settled.Unapplied))
	}
	switch {
	case settled.Fenced:
		d.Observer.Fenced()
		d.log(s).WarnContext(ctx, "outcome not settled, because the lease of the message was lost; increase TOCSIN_LEASE if this repeats", slog.String("verdict", s.Outcome.Verdict.String()))
	case s.Outcome.Verdict != notify.VerdictDelivered:
		d.log(s).WarnContext(ctx, "not delivered", slog.String("verdict", s.Outcome.Verdict.String()),
			slog.String("status", string(s.Decision.Status)), slog.String("error", s.Outcome.Error))
	}
}

// storing is how long a running process tries to store that a message has arrived. During that time
// it does not send the message again, even if it claims it again.
const storing = time.Hour

// The pauses between tries to store an outcome: the first one, which grows, and the longest one. From then on it is worth
// a warning.
const (
	firstStoringPause   = 50 * time.Millisecond
	longestStoringPause = 2 * time.Second
)

// goOnStoring keeps trying to store an outcome: for two leases, or for an hour if the message has
// arrived, at whichever of its recipients. An outcome that is not stored means that the message is
// sent again.
func (d *Dispatcher) goOnStoring(ctx context.Context, s *Settlement, err error) {
	began, warned := d.Clock(), false
	log := d.log(s).With(slog.String("verdict", s.Outcome.Verdict.String()))
	for pause := firstStoringPause; ; pause = min(2*pause, longestStoringPause) {
		<-time.After(pause)
		bound := 2 * d.Lease
		if (s.Outcome.Verdict == notify.VerdictDelivered || len(s.Outcome.Reached) > 0) && d.running.Load() {
			bound = max(bound, storing)
		}
		if d.Clock().Sub(began) > bound {
			log.ErrorContext(ctx, "outcome not stored, so the message may be sent again; run tocsin doctor for the remedy", slog.Any("error", err), fault.Stack(err))
			return
		}
		var settled Settled
		if settled, err = d.settlements.alone(ctx, *s); err == nil {
			d.settled(ctx, s, settled)
			return
		}
		if pause == longestStoringPause && !warned {
			warned = true
			log.WarnContext(ctx, "outcome not stored yet; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
	}
}
