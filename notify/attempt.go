package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// launch makes one attempt in a goroutine of its own. Its slot is free as soon as
// the receiver has answered; until the outcome is stored, it counts as under way.
func (d *Dispatcher) launch(ctx context.Context, delivery *Delivery) {
	ctx = context.WithoutCancel(ctx)
	ticket := d.gate.enter(delivery.Webhook.ID, d.Clock())
	claim := delivery.held()
	d.keeper.keep(ctx, claim)
	d.beginnings.expect(1)
	d.underWay.Go(func() {
		defer d.free(func() { d.gate.leave(ticket, d.Clock()) })
		defer d.keeper.drop(claim)
		if settlement := d.attempt(ctx, delivery, ticket); settlement != nil {
			d.gate.ended(ticket, &settlement.Outcome)
			d.free(func() { d.gate.answered(ticket, d.Clock()) })
			d.keeper.settling(claim)
			d.settle(ctx, *settlement)
		}
	})
}

// free makes room, and says so.
func (d *Dispatcher) free(room func()) {
	room()
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// log returns the logger of an attempt.
func (d *Dispatcher) log(s *Settlement) *slog.Logger {
	return d.Logger.With(slog.String("notification_id", s.NotificationID.String()),
		slog.String("webhook_id", s.WebhookID.String()), slog.Int("attempt", s.Attempt))
}

// attempt begins an attempt and makes the call. It returns nil where nothing was
// sent, because the attempt could not be begun.
func (d *Dispatcher) attempt(ctx context.Context, delivery *Delivery, ticket *ticket) *Settlement {
	settlement := Settlement{
		TenantID: delivery.Webhook.TenantID, NotificationID: delivery.NotificationID, WebhookID: delivery.Webhook.ID,
		Token: delivery.Token, Attempt: delivery.Attempt,
	}
	begin := Begin{
		NotificationID: delivery.NotificationID, Token: delivery.Token, Attempt: delivery.Attempt,
		Replica: d.Replica, Lease: d.Lease,
	}
	if delivery.Body == nil {
		body, problem := d.Renderer.Render(delivery)
		if problem != nil {
			begin.Problem = problem.Error()
			d.log(&settlement).WarnContext(ctx, "body is a fallback", slog.Any("error", problem))
		}
		begin.Fresh, delivery.Body = &body, &body
	}
	delivery.At = d.Clock()
	begin.Request = d.Sender.Describe(ctx, delivery)
	switch begun, err := d.beginnings.do(ctx, begin); {
	case err != nil:
		// Nothing was sent: the row is offered again when its lease lapses.
		d.log(&settlement).WarnContext(ctx, "attempt not begun", slog.Any("error", err))
		return nil
	case begun.Fenced:
		d.Observer.Fenced()
		d.log(&settlement).WarnContext(ctx, "attempt not begun", slog.Any("error", ErrFenced))
		return nil
	case begun.Unknown:
		d.Observer.Unknown()
		d.log(&settlement).WarnContext(ctx, "the attempt before has no outcome; the message may be sent a second time")
	}
	outcome := d.send(ctx, delivery, ticket)
	d.Observer.Attempted(outcome.Verdict)
	settlement.Outcome = outcome
	settlement.Message = messageOf(delivery, begin.Fresh != nil, outcome)
	settlement.Decision = d.Policy.Decide(outcome, delivery.Attempt, delivery.CountedAttempts, rand.Float64())
	settlement.Breaker = func(was Breaker, probe bool, now time.Time) Breaker {
		return d.Policy.Breaker.Next(was, Evidence{Outcome: outcome, Probe: probe, Now: now, Random: rand.Float64()})
	}
	return &settlement
}

// send makes the call, bounded by the webhook's timeout. It makes none when too
// little may be left of the lease under which the attempt was begun: the process
// has stood still, or Postgres or the receiver has, and somebody else may be making
// the call already.
func (d *Dispatcher) send(ctx context.Context, delivery *Delivery, ticket *ticket) Outcome {
	d.gate.call(ticket, delivery.Webhook.MaxConcurrent)
	defer d.gate.hungUp(ticket)
	if d.Clock().Sub(delivery.At) > d.Lease/2 {
		return Outcome{
			Verdict: VerdictRetry, NothingSent: true,
			Error: "Not sent: it took so long to begin the attempt that its lease may be over",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, delivery.Webhook.Timeout)
	defer cancel()
	return d.Sender.Send(ctx, delivery)
}

// settle stores an outcome, and says what it was unless all is well.
func (d *Dispatcher) settle(ctx context.Context, s Settlement) {
	switch err := d.store(ctx, s); {
	case errors.Is(err, ErrFenced):
		d.Observer.Fenced()
		d.log(&s).WarnContext(ctx, "settlement fenced", slog.String("verdict", s.Outcome.Verdict.String()))
	case err != nil:
		d.log(&s).ErrorContext(ctx, "outcome not stored", slog.String("verdict", s.Outcome.Verdict.String()), slog.Any("error", err))
	case s.Outcome.Verdict != VerdictDelivered:
		d.log(&s).WarnContext(ctx, "not delivered", slog.String("verdict", s.Outcome.Verdict.String()),
			slog.String("status", string(s.Decision.Status)), slog.String("error", s.Outcome.Error))
	}
}

// store goes on trying for two leases, because an outcome that is not stored
// means a message sent twice.
func (d *Dispatcher) store(ctx context.Context, s Settlement) error {
	ctx, cancel := context.WithTimeout(ctx, 2*d.Lease)
	defer cancel()
	pause := 50 * time.Millisecond
	for {
		settled, err := d.settlements.do(ctx, s)
		switch {
		case err == nil && settled.Fenced:
			return ErrFenced
		case err == nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("settle: %w", err)
		case <-time.After(pause):
			pause = min(2*pause, 2*time.Second)
		}
	}
}
