package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// ErrFenced says that a claim has passed to somebody else, or that its
// notification is settled already.
var ErrFenced = errors.New("the claim no longer stands")

// Store keeps the outbox and the record.
type Store interface {
	// Claim takes due notifications for as many slots as the request has room
	// for. With an error it may still return some, which are claimed.
	Claim(ctx context.Context, request ClaimRequest) (Claimed, error)
	// Begin commits an attempt and, when fresh is not nil, freezes the body. It
	// reports whether the attempt before has no outcome. It returns [ErrFenced]
	// when the claim no longer stands.
	Begin(ctx context.Context, begin Begin) (unknown bool, err error)
	// Renew extends a lease from now on. It returns [ErrFenced] when the claim
	// no longer stands.
	Renew(ctx context.Context, notification uuid.UUID, token int64, lease time.Duration) error
	// Settle stores an outcome and what follows from it. The outcome is always
	// kept on its attempt; with [ErrFenced] nothing else was written.
	Settle(ctx context.Context, settlement Settlement) error
}

// ClaimRequest says what a dispatcher has room for.
type ClaimRequest struct {
	Replica string
	Lease   time.Duration
	// Room distributes free slots over the webhooks for which something is due.
	Room func(due []Limits) []Slots
}

// Claimed is what a claim took, and when to look again.
type Claimed struct {
	Deliveries []Delivery
	// Next is the time until the first of the rows that are not due yet becomes
	// due, by the store's clock: a retry, a lease that lapses, a held webhook. 0
	// when there is none. Rows written later are not known to it.
	Next time.Duration
}

// Limits are those of a webhook for which something is due.
type Limits struct {
	WebhookID     uuid.UUID
	MaxConcurrent int
	// RatePerSecond is 0 for no bound; else Tokens is how many messages the rate
	// allows at the instant of the claim, a fraction of one when none yet.
	RatePerSecond float64
	Tokens        float64
	// Probe says that the breaker is half-open: one notification at most.
	Probe bool
}

// Slots is how many notifications of a webhook may be claimed.
type Slots struct {
	WebhookID uuid.UUID
	Slots     int
}

// Begin is an attempt that is about to be made.
type Begin struct {
	NotificationID uuid.UUID
	Token          int64
	Attempt        int
	Replica        string
	Lease          time.Duration
	// Request is what the attempt is about to send.
	Request RequestHead
	// Fresh is the body to freeze, nil when it is frozen already; Problem tells
	// why it is a fallback, empty when it is not.
	Fresh   *Body
	Problem string
}

// Settlement is what came of an attempt, and what follows.
type Settlement struct {
	NotificationID uuid.UUID
	WebhookID      uuid.UUID
	Token          int64
	Attempt        int
	Outcome        Outcome
	Decision       Decision
	// Breaker returns what becomes of the webhook's breaker at an instant. Probe
	// tells that the attempt was its probe. Nil leaves the breaker alone.
	Breaker func(was Breaker, probe bool, now time.Time) Breaker
	// Message is what was posted, nil when nothing was that can be changed.
	Message *Message
}

// Options configures a [Dispatcher]. Store, Renderer, Sender, Logger, Clock and
// Replica are required.
type Options struct {
	Store    Store
	Renderer Renderer
	Sender   Sender
	Logger   *slog.Logger
	// Clock tells how long attempts take; no lease is compared with it.
	Clock func() time.Time
	// Replica names this process in claims and attempts.
	Replica string
	// Policy is [DefaultPolicy] when its schedule is nil.
	Policy Policy
	// Slots is the number of attempts under way at once, 64 by default. One that
	// takes longer than a second needs none from then on, but with them at most
	// four times as many are under way.
	Slots int
	// Lease is how long a claim stands without renewal, 30 s by default.
	Lease time.Duration
	// Poll is the longest pause between looks at the outbox, 1 s by default. A row
	// that is known to become due earlier ends the pause.
	Poll time.Duration
	// Observer is told of attempts; nil is nobody.
	Observer Observer
	// WakeUps cuts a pause short; nil leaves it to polling. Each signal is answered
	// once the pass that it caused has claimed.
	WakeUps <-chan Signal
}

// Observer is told what became of attempts. Its methods must not block, and may
// be called by several goroutines at once.
type Observer interface {
	// Attempted tells the verdict of an attempt, stored or not.
	Attempted(verdict Verdict)
	// Fenced tells that a claim had passed to somebody else.
	Fenced()
	// Unknown tells that an attempt is begun after one whose outcome nobody has
	// stored: its process died or stood still, and the message may have been sent.
	Unknown()
}

// unobserved is nobody.
type unobserved struct{}

func (unobserved) Attempted(Verdict) {}
func (unobserved) Fenced()           {}
func (unobserved) Unknown()          {}

// Dispatcher delivers notifications.
type Dispatcher struct {
	Options
	gate *gate
	// freed holds a signal after a slot became free.
	freed    chan struct{}
	underWay sync.WaitGroup
}

// NewDispatcher returns a dispatcher. Its error names the option that cannot be used.
func NewDispatcher(o Options) (*Dispatcher, error) {
	if o.Store == nil || o.Renderer == nil || o.Sender == nil || o.Logger == nil || o.Clock == nil || o.Replica == "" {
		return nil, errors.New("dispatcher: Store, Renderer, Sender, Logger, Clock and Replica are required")
	}
	if o.Policy.Schedule == nil {
		o.Policy = DefaultPolicy()
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("dispatcher: %w", err)
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	if o.Slots == 0 {
		o.Slots = 64
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Slots < 1 || o.Poll < 0 || o.Lease < 300*time.Millisecond {
		return nil, errors.New("dispatcher: Slots must be at least 1, Poll positive, Lease at least 300ms")
	}
	return &Dispatcher{Options: o, gate: newGate(o.Slots), freed: make(chan struct{}, 1)}, nil
}

// Result is what a pass did.
type Result struct {
	// Claimed is the number of notifications taken.
	Claimed int
	// Again is the time after which there is room for more, by a rate or because
	// an attempt takes long; 0 when nothing is held back.
	Again time.Duration
	// Next is the time until something is known to be worth a look; 0 when nothing is.
	Next time.Duration
	// Left reports that all there was room for was taken, so that more may be due
	// than this dispatcher can take. What a rate limit holds back is not left.
	Left bool
}

// afterFailure is the pause after a pass that failed, or that found others at
// work on all that is due, who may fail.
const afterFailure = time.Second

// pause returns how long to wait before the next look, when nothing else comes first.
func (r Result) pause(poll time.Duration, err error) time.Duration {
	for _, sooner := range []time.Duration{r.Again, r.Next} {
		if sooner > 0 {
			poll = min(poll, max(sooner, time.Millisecond))
		}
	}
	if err != nil {
		poll = min(poll, afterFailure)
	}
	return poll
}

// Tick is one pass: it claims what there is room for, attempts it, and returns
// when every attempt is settled.
func (d *Dispatcher) Tick(ctx context.Context) (Result, error) {
	result, err := d.start(ctx)
	d.underWay.Wait()
	return result, err
}

// Run delivers until ctx ends, then waits for the attempts under way, each of
// which is bounded by its webhook's timeout. A pass that fails is logged, and
// the next one does its work.
func (d *Dispatcher) Run(ctx context.Context) {
	defer d.underWay.Wait()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		var signal Signal
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		case <-d.freed:
		case signal = <-d.WakeUps:
		}
		result, err := d.start(ctx)
		signal.answer(result.Left, err)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.Logger.ErrorContext(ctx, "claim failed", slog.Any("error", err))
		}
		pause.Reset(result.pause(d.Poll, err))
	}
}

// start claims and begins attempts in goroutines of their own.
func (d *Dispatcher) start(ctx context.Context) (Result, error) {
	var result Result
	room, left := 0, false
	claimed, err := d.Store.Claim(ctx, ClaimRequest{
		Replica: d.Replica, Lease: d.Lease,
		Room: func(due []Limits) []Slots {
			rooms := d.gate.room(due, d.Clock())
			result.Again, left = rooms.again, !rooms.paced
			for _, r := range rooms.slots {
				room += r.Slots
			}
			return rooms.slots
		},
	})
	if err != nil {
		err = fmt.Errorf("claim notifications: %w", err)
	}
	for i := range claimed.Deliveries {
		delivery := &claimed.Deliveries[i]
		ticket := d.gate.enter(delivery.Webhook.ID, d.Clock())
		d.underWay.Go(func() {
			defer func() {
				d.gate.leave(ticket, d.Clock())
				select {
				case d.freed <- struct{}{}:
				default:
				}
			}()
			d.deliver(context.WithoutCancel(ctx), delivery)
		})
	}
	result.Claimed, result.Next = len(claimed.Deliveries), claimed.Next
	if room > 0 && result.Claimed == 0 && (result.Next == 0 || result.Next > afterFailure) {
		result.Next = afterFailure
	}
	result.Left = left && result.Claimed >= room
	return result, err
}

// deliver makes one attempt under a lease that is renewed until its outcome is stored.
func (d *Dispatcher) deliver(ctx context.Context, delivery *Delivery) {
	logger := d.Logger.With(
		slog.String("notification_id", delivery.NotificationID.String()),
		slog.String("webhook_id", delivery.Webhook.ID.String()),
		slog.Int("attempt", delivery.Attempt))
	stop := d.keepLease(ctx, logger, delivery)
	defer stop()

	begin := Begin{
		NotificationID: delivery.NotificationID, Token: delivery.Token, Attempt: delivery.Attempt,
		Replica: d.Replica, Lease: d.Lease,
	}
	if delivery.Body == nil {
		body, problem := d.Renderer.Render(delivery)
		if problem != nil {
			begin.Problem = problem.Error()
			logger.WarnContext(ctx, "body is a fallback", slog.Any("error", problem))
		}
		begin.Fresh, delivery.Body = &body, &body
	}
	delivery.At = d.Clock()
	begin.Request = d.Sender.Describe(ctx, delivery)
	unknown, err := d.Store.Begin(ctx, begin)
	if err != nil {
		if errors.Is(err, ErrFenced) {
			d.Observer.Fenced()
		}
		// Nothing was sent: the row is offered again when its lease lapses.
		logger.WarnContext(ctx, "attempt not begun", slog.Any("error", err))
		return
	}
	if unknown {
		d.Observer.Unknown()
		logger.WarnContext(ctx, "the attempt before has no outcome; the message may be sent a second time")
	}
	outcome := d.send(ctx, delivery)
	d.Observer.Attempted(outcome.Verdict)
	settlement := Settlement{
		NotificationID: delivery.NotificationID, WebhookID: delivery.Webhook.ID, Token: delivery.Token,
		Attempt: delivery.Attempt, Outcome: outcome, Message: messageOf(delivery, begin.Fresh != nil, outcome),
		Decision: d.Policy.Decide(outcome, delivery.Attempt, delivery.CountedAttempts, rand.Float64()),
		Breaker: func(was Breaker, probe bool, now time.Time) Breaker {
			return d.Policy.Breaker.Next(was, Evidence{Outcome: outcome, Probe: probe, Now: now, Random: rand.Float64()})
		},
	}
	switch err := d.settle(ctx, settlement); {
	case errors.Is(err, ErrFenced):
		d.Observer.Fenced()
		logger.WarnContext(ctx, "settlement fenced", slog.String("verdict", outcome.Verdict.String()))
	case err != nil:
		logger.ErrorContext(ctx, "outcome not stored", slog.String("verdict", outcome.Verdict.String()), slog.Any("error", err))
	case outcome.Verdict != VerdictDelivered:
		logger.WarnContext(ctx, "not delivered", slog.String("verdict", outcome.Verdict.String()),
			slog.String("status", string(settlement.Decision.Status)), slog.String("error", outcome.Error))
	default:
		logger.DebugContext(ctx, "delivered")
	}
}

// send makes the call, bounded by the webhook's timeout.
func (d *Dispatcher) send(ctx context.Context, delivery *Delivery) Outcome {
	ctx, cancel := context.WithTimeout(ctx, delivery.Webhook.Timeout)
	defer cancel()
	return d.Sender.Send(ctx, delivery)
}

// settle stores the outcome. It goes on trying for two leases, because an
// outcome that is not stored means a message sent twice.
func (d *Dispatcher) settle(ctx context.Context, s Settlement) error {
	ctx, cancel := context.WithTimeout(ctx, 2*d.Lease)
	defer cancel()
	pause := 50 * time.Millisecond
	for {
		err := d.Store.Settle(ctx, s)
		if err == nil || errors.Is(err, ErrFenced) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("settle: %w", err)
		case <-time.After(pause):
			pause = min(2*pause, 2*time.Second)
		}
	}
}

// keepLease renews the lease each third of it until the returned function is
// called, which waits for the renewals to have ended.
func (d *Dispatcher) keepLease(ctx context.Context, logger *slog.Logger, delivery *Delivery) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(d.Lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := d.Store.Renew(ctx, delivery.NotificationID, delivery.Token, d.Lease)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if errors.Is(err, ErrFenced) {
					d.Observer.Fenced()
				}
				logger.WarnContext(ctx, "lease not renewed", slog.String("replica", d.Replica), slog.Any("error", err))
				return
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
	}
}
