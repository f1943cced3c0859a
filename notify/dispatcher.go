package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
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
	// Begin commits attempts and the bodies that are fresh. There is a result for
	// each, in their order; with an error nothing was written.
	Begin(ctx context.Context, begins []Begin) ([]Begun, error)
	// Renew extends leases from now on, and returns those claims that stand no
	// longer. One that something else is being done to just now may be left out.
	Renew(ctx context.Context, held []Held, lease time.Duration) (lost []Held, err error)
	// Release gives claims back on what was not begun, due at once.
	Release(ctx context.Context, held []Held) error
	// Settle stores outcomes and what follows from them. There is a result for
	// each, in their order; with an error nothing was written.
	Settle(ctx context.Context, settlements []Settlement) ([]Settled, error)
}

// Begin is an attempt that is about to be made.
type Begin struct {
	NotificationID uuid.UUID
	Token          int64
	Attempt        int
	Lease          time.Duration
	// WebhookID and WebhookVersion name the webhook as it was when the claim was made.
	WebhookID      uuid.UUID
	WebhookVersion int64
	// Request is what the attempt is about to send.
	Request RequestHead
	// Fresh is the body to freeze, nil when it is frozen already; Problem tells
	// why it is a fallback, empty when it is not.
	Fresh   *Body
	Problem string
}

// Begun tells of an attempt that was to be begun.
type Begun struct {
	// Fenced says that the claim no longer stands, and nothing was written.
	Fenced bool
	// Withheld says that the claim stands, and nothing was written, because nothing
	// may be sent as the claim has it: the webhook was edited since, or is off, held
	// or not answering.
	Withheld bool
}

// Settled tells of an outcome that was to be stored.
type Settled struct {
	// Fenced says that the claim no longer stands: the outcome is kept on its
	// attempt, and nothing else was written.
	Fenced bool
}

// Settlement is what came of an attempt, and what follows.
type Settlement struct {
	TenantID       string
	NotificationID uuid.UUID
	WebhookID      uuid.UUID
	// WebhookVersion is that for which the attempt was made: what it tells of the
	// receiver is not held against what an edit has made of the webhook since.
	WebhookVersion int64
	Token          int64
	Attempt        int
	// Replica made the attempt.
	Replica  string
	Outcome  Outcome
	Decision Decision
	// Breaker returns what becomes of the webhook's breaker at an instant. Probe
	// tells that the attempt was its probe. Nil leaves the breaker alone.
	Breaker func(was Breaker, probe bool, now time.Time) Breaker
	// Message is what was posted, nil when nothing was that can be changed.
	Message *Message
}

// LeastLease is the shortest lease that a dispatcher can renew in time.
const LeastLease = 300 * time.Millisecond

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
	// Slots is the number of attempts under way at once, 256 by default. One that
	// takes longer than a second needs none from then on, but with them at most
	// four times as many are under way.
	Slots int
	// Lease is how long a claim stands without renewal, 30 s by default, and
	// [LeastLease] at least.
	Lease time.Duration
	// DeadAfter is how long this process may stand still before others release its
	// claims, though they have not lapsed; by default that is not before they lapse.
	DeadAfter time.Duration
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
	gate        *gate
	keeper      *keeper
	desk        *desk
	settlements batcher[Settlement, Settled]
	// freed holds a signal after a slot became free, and hungry after there is room for
	// what may be due.
	freed, hungry chan struct{}
	underWay      sync.WaitGroup
	// running says that Run goes on.
	running atomic.Bool

	mu sync.Mutex
	// beginning counts the statements under way that begin attempts.
	beginning int
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
		o.Slots = 256
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.DeadAfter == 0 {
		o.DeadAfter = o.Lease
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Slots < 1 || o.Poll < 0 || o.DeadAfter < 0 || o.Lease < LeastLease {
		return nil, fmt.Errorf("dispatcher: Slots must be at least 1, Poll and DeadAfter positive, Lease at least %v", LeastLease)
	}
	d := &Dispatcher{
		Options: o, gate: newGate(o.Slots), freed: make(chan struct{}, 1), hungry: make(chan struct{}, 1),
		keeper: &keeper{renew: o.Store.Renew, lease: o.Lease, logger: o.Logger, lostOne: o.Observer.Fenced},
	}
	d.settlements = batcher[Settlement, Settled]{
		call: o.Store.Settle, spawn: d.underWay.Go, clock: o.Clock, most: maxBatch, timeout: o.Lease, linger: linger,
	}
	d.desk = &desk{
		lease: o.Lease, gate: d.gate, keeper: d.keeper, logger: o.Logger, release: o.Store.Release,
		came: make(chan struct{}, 1), freed: d.freed, spawn: d.underWay.Go, lines: map[uuid.UUID]*line{},
	}
	return d, nil
}

const (
	// maxBatch bounds what one statement begins or settles.
	maxBatch = 256
	// linger is how long free slots and outcomes are gathered. Of an outcome that is
	// not yet handed to Postgres, a kill repeats the message.
	linger = 2 * time.Millisecond
	// Beside a statement that begins attempts, another one is made only for many.
	many = 32
)

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
	d.running.Store(true)
	defer d.running.Store(false)
	d.desk.begin()
	defer d.desk.close(ctx)
	var launching sync.WaitGroup
	defer launching.Wait()
	launching.Go(func() { d.takeOverAll(ctx) })
	pause := time.NewTimer(0)
	defer pause.Stop()
	// gathering says that slots have become free, and the pause is over soon.
	gathering := false
	for {
		var signal Signal
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		case <-d.hungry:
			if !gathering {
				gathering = true
				pause.Reset(linger)
			}
			continue
		case signal = <-d.WakeUps:
			if d.gate.full(signal.WakeUp.Webhooks) {
				signal.answer(true, nil)
				continue
			}
		}
		gathering = false
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
