package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// entry is a delivery that has a slot, and what is known of its attempt.
type entry struct {
	delivery   *Delivery
	ticket     *ticket
	request    Request
	begin      Begin
	settlement Settlement
}

// enter takes slots for deliveries and keeps their claims.
func (d *Dispatcher) enter(ctx context.Context, deliveries []*Delivery) []*entry {
	entries := make([]*entry, len(deliveries))
	now := d.Clock()
	for i, delivery := range deliveries {
		entries[i] = &entry{delivery: delivery, ticket: d.gate.enter(delivery.Webhook.ID, now)}
		d.keeper.keep(ctx, delivery.held())
	}
	return entries
}

// slowRender is how long one body may take before it is the only one to wait for it.
const slowRender = 10 * time.Millisecond

// begin renders, begins attempts by one statement, and makes the calls, each beside
// the others. Where a body takes long, those behind it do not wait for
// the rest of its webhook's. What cannot be begun together is begun one by one.
func (d *Dispatcher) begin(ctx context.Context, entries []*entry) {
	began := d.Clock()
	for i, e := range entries {
		d.prepare(ctx, e)
		now := d.Clock()
		if now.Sub(began) > slowRender && i+1 < len(entries) {
			same, others := apartFrom(e.delivery.Webhook.ID, entries[i+1:])
			d.alsoBegin(ctx, same)
			d.alsoBegin(ctx, others)
			entries = entries[:i+1]
			break
		}
		began = now
	}
	begins := make([]Begin, len(entries))
	for i, e := range entries {
		begins[i] = e.begin
	}
	begun, err := d.commitBegins(ctx, begins)
	var withheld []*entry
	for i, e := range entries {
		switch {
		case err == nil && begun[i].Withheld:
			withheld = append(withheld, e)
		case err == nil:
			d.begun(ctx, e, begun[i])
		case len(entries) == 1:
			// Nothing was sent: the row is offered again when its lease lapses.
			d.log(&e.settlement).WarnContext(ctx, "attempt not begun", slog.Any("error", err))
			d.gate.owes(e.delivery.Webhook.ID)
			d.leave(e)
		default:
			d.alsoBegin(ctx, []*entry{e})
		}
	}
	d.giveBack(ctx, withheld)
}

// giveBack ends claims on what was withheld, for new ones to judge it.
func (d *Dispatcher) giveBack(ctx context.Context, withheld []*entry) {
	deliveries := make([]*Delivery, len(withheld))
	for i, e := range withheld {
		deliveries[i] = e.delivery
	}
	d.desk.giveBack(ctx, deliveries)
	for _, e := range withheld {
		d.leave(e)
	}
}

// apartFrom parts the entries of a webhook from the others.
func apartFrom(webhook uuid.UUID, entries []*entry) (same, others []*entry) {
	for _, e := range entries {
		if e.delivery.Webhook.ID == webhook {
			same = append(same, e)
		} else {
			others = append(others, e)
		}
	}
	return same, others
}

func (d *Dispatcher) alsoBegin(ctx context.Context, entries []*entry) {
	if len(entries) > 0 {
		d.underWay.Go(func() { d.begin(ctx, entries) })
	}
}

func (d *Dispatcher) commitBegins(ctx context.Context, begins []Begin) ([]Begun, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Lease)
	defer cancel()
	return d.Store.Begin(ctx, begins)
}

// prepare renders the body, unless it is frozen already, and makes the request.
func (d *Dispatcher) prepare(ctx context.Context, e *entry) {
	delivery := e.delivery
	e.settlement = Settlement{
		TenantID: delivery.Webhook.TenantID, NotificationID: delivery.NotificationID, WebhookID: delivery.Webhook.ID,
		WebhookVersion: delivery.Webhook.Version, Token: delivery.Token, Attempt: delivery.Attempt, Replica: d.Replica,
	}
	begin := Begin{
		NotificationID: delivery.NotificationID, Token: delivery.Token, Attempt: delivery.Attempt, Lease: d.Lease,
		WebhookID: delivery.Webhook.ID, WebhookVersion: delivery.Webhook.Version,
	}
	if begin.Fresh, begin.Problem = e.begin.Fresh, e.begin.Problem; delivery.Body == nil {
		body, problem := d.Renderer.Render(delivery)
		if problem != nil {
			begin.Problem = problem.Error()
			d.log(&e.settlement).WarnContext(ctx, "body is a fallback", slog.Any("error", problem))
		}
		begin.Fresh, delivery.Body = &body, &body
	}
	delivery.At = d.Clock()
	e.request = d.Sender.Prepare(delivery)
	begin.Request = e.request.Head()
	e.begin = begin
}

// begun makes the call, if the claim stood.
func (d *Dispatcher) begun(ctx context.Context, e *entry, begun Begun) {
	if begun.Fenced {
		d.Observer.Fenced()
		d.log(&e.settlement).WarnContext(ctx, "attempt not begun", slog.Any("error", ErrFenced))
		d.leave(e)
		return
	}
	if e.delivery.AfterUnknown {
		d.Observer.Unknown()
		d.log(&e.settlement).WarnContext(ctx, "the attempt before has no outcome; the message may be sent a second time")
	}
	c := &call{ticket: e.ticket, most: e.delivery.Webhook.MaxConcurrent, make: func() { d.attempt(ctx, e) }}
	if d.gate.call(c, d.Clock()) {
		d.underWay.Go(func() { d.makeCalls(c) })
	}
}

// makeCalls makes a call and those that wait for it to end, one after the other: a
// goroutine that lives longer need not grow its stack for each.
func (d *Dispatcher) makeCalls(c *call) {
	for c != nil {
		c.make()
		c = d.gate.hungUp(c.ticket, d.Clock())
	}
}

// attempt makes the call and hands its outcome on to be stored. Its slot is free as
// soon as the receiver has answered; until the outcome is stored, it counts as
// under way.
func (d *Dispatcher) attempt(ctx context.Context, e *entry) {
	s, delivery := &e.settlement, e.delivery
	s.Outcome = d.send(ctx, e)
	d.Observer.Attempted(s.Outcome.Verdict)
	s.Message = messageOf(delivery, e.begin.Fresh != nil, s.Outcome)
	s.Decision = d.Policy.Decide(s.Outcome, delivery.Attempt, delivery.CountedAttempts, rand.Float64())
	if !s.Outcome.Unmade {
		s.Breaker = func(was Breaker, probe bool, now time.Time) Breaker {
			return d.Policy.Breaker.Next(was, Evidence{Outcome: s.Outcome, Probe: probe, Now: now, Random: rand.Float64()})
		}
		d.gate.ended(e.ticket, &s.Outcome)
	}
	d.free(func() { d.gate.answered(e.ticket, d.Clock()) })
	d.keeper.settling(delivery, s.Decision.Status == Delivered)
	d.settlements.add(ctx, *s, func(settled Settled, err error) {
		if err == nil {
			d.settled(ctx, s, settled)
			d.stored(e)
			return
		}
		d.underWay.Go(func() {
			defer d.stored(e)
			d.goOnStoring(ctx, s, err)
		})
	})
}

// stored ends an attempt that was made.
func (d *Dispatcher) stored(e *entry) {
	d.keeper.stored(e.delivery)
	d.leave(e)
}

// leave ends an attempt.
func (d *Dispatcher) leave(e *entry) {
	d.keeper.drop(e.delivery.held())
	d.free(func() { d.gate.leave(e.ticket, d.Clock()) })
}

// free makes room, and says so.
func (d *Dispatcher) free(room func()) {
	room()
	signal(d.freed)
}

// signal leaves a signal, unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// log returns the logger of an attempt.
func (d *Dispatcher) log(s *Settlement) *slog.Logger {
	return d.Logger.With(slog.String("notification_id", s.NotificationID.String()),
		slog.String("webhook_id", s.WebhookID.String()), slog.Int("attempt", s.Attempt))
}

// send makes the call. It makes none when half of
// the time has passed after which somebody else may be making it: the process has
// stood still, or Postgres or the receiver has, and the lease under which the attempt
// was begun may be over, or this process taken for dead.
func (d *Dispatcher) send(ctx context.Context, e *entry) Outcome {
	delivery := e.delivery
	if d.Clock().Sub(delivery.At) > min(d.Lease, d.DeadAfter)/2 {
		return Outcome{
			Verdict: VerdictRetry, NothingSent: true, Unmade: true,
			Error: "Not sent: it took so long to begin the attempt that its claim may be over",
		}
	}
	return e.request.Send(ctx)
}

// settled says what an outcome was whose storing succeeded, unless all is well.
func (d *Dispatcher) settled(ctx context.Context, s *Settlement, settled Settled) {
	d.gate.settled(s.WebhookID, !settled.Fenced && s.Decision.Status == Delivered)
	switch {
	case settled.Fenced:
		d.Observer.Fenced()
		d.log(s).WarnContext(ctx, "settlement fenced", slog.String("verdict", s.Outcome.Verdict.String()))
	case s.Outcome.Verdict != VerdictDelivered:
		d.log(s).WarnContext(ctx, "not delivered", slog.String("verdict", s.Outcome.Verdict.String()),
			slog.String("status", string(s.Decision.Status)), slog.String("error", s.Outcome.Error))
	}
}

// storing is for how long a process that runs on tries to store that a message has
// arrived. Meanwhile it sends it no second time, though it claims it.
const storing = time.Hour

// goOnStoring tries for two leases to store an outcome, and for an hour that a message
// has arrived, because what is not stored means a message sent twice.
func (d *Dispatcher) goOnStoring(ctx context.Context, s *Settlement, err error) {
	began := d.Clock()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		<-time.After(pause)
		patience := 2 * d.Lease
		if s.Decision.Status == Delivered && d.running.Load() {
			patience = max(patience, storing)
		}
		if d.Clock().Sub(began) > patience {
			d.gate.owes(s.WebhookID)
			d.log(s).ErrorContext(ctx, "outcome not stored", slog.String("verdict", s.Outcome.Verdict.String()), slog.Any("error", err))
			return
		}
		var settled Settled
		if settled, err = d.settlements.do(ctx, *s); err == nil {
			d.settled(ctx, s, settled)
			return
		}
	}
}
