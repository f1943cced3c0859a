package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// LeastLease is the shortest lease that a dispatcher can renew in time.
const LeastLease = 300 * time.Millisecond

// DefaultSlots is how many calls a dispatcher makes at once.
const DefaultSlots = 256

// Options configures a [Dispatcher]. Store, Renderer, Sender, Logger, Clock and
// Replica are required.
type Options struct {
	Store    Store
	Renderer Renderer
	Sender   Sender
	Logger   *slog.Logger
	// Clock tells how long attempts take; no lease is compared with it.
	Clock func() time.Time
	// Random returns numbers uniform in [0, 1), by which retries are spread and the order of equal
	// webhooks is drawn; by default it is math/rand's. Many goroutines may call it.
	Random func() float64
	// Replica names this process in leases and attempts.
	Replica string
	// Policy is [DefaultPolicy] when its schedule is nil.
	Policy Policy
	// Schedule returns what the receiver of a webhook has of its own; nil is nothing.
	Schedule func(*Webhook) Schedule
	// Slots is the number of calls under way at once, [DefaultSlots] by default. One that
	// takes longer than a second needs none from then on, but with them at most
	// four times as many are under way.
	Slots int
	// Lease is how long a claim stands without renewal, 30 s by default, and
	// [LeastLease] at least.
	Lease time.Duration
	// DeadAfter is how long this process may be silent before others release its
	// claims, though they have not lapsed; by default that is not before they lapse.
	DeadAfter time.Duration
	// Poll is the longest pause between looks at the outbox, 1 s by default. A row
	// that is known to become due earlier ends the pause.
	Poll time.Duration
	// Observer is notified of attempts; nil is nobody.
	Observer Observer
	// WakeUps cuts a pause short; nil leaves it to polling. Each signal is answered
	// once the pass that it caused has claimed.
	WakeUps <-chan Signal
}

// Observer is notified of what became of attempts. Its methods must not block, and may
// be called by several goroutines at once.
type Observer interface {
	// Attempted tells the verdict of an attempt, stored or not.
	Attempted(verdict Verdict)
	// Fenced tells that a claim had passed to somebody else.
	Fenced()
	// Unknown tells that an attempt is begun after one whose outcome nobody has
	// stored: its process died or stood still, and the message may have been sent.
	Unknown()
	// Unjudged tells that outcomes were stored and not judged for their webhooks: no breaker
	// counts them, and no pause begins.
	Unjudged()
}

// unobserved is nobody.
type unobserved struct{}

func (unobserved) Attempted(Verdict) {}
func (unobserved) Fenced()           {}
func (unobserved) Unknown()          {}
func (unobserved) Unjudged()         {}

// Dispatcher delivers notifications.
type Dispatcher struct {
	Options
	slots       *slots
	leases      *leases
	settlements batcher[Settlement, Settled]
	// signals holds one after something became due, or there is room for it.
	signals  chan struct{}
	underWay sync.WaitGroup
	// running says that Run goes on.
	running atomic.Bool

	mu sync.Mutex
	// hints are webhooks for which something became due since the last claim.
	hints map[uuid.UUID]bool
	// woken says that something became due since Run last took a signal.
	woken bool
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
	if o.Schedule == nil {
		o.Schedule = func(*Webhook) Schedule { return Schedule{} }
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Slots == 0 {
		o.Slots = DefaultSlots
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.DeadAfter == 0 {
		o.DeadAfter = 2 * o.Lease
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Slots < 1 || o.Poll < 0 || o.DeadAfter < 0 || o.Lease < LeastLease {
		return nil, fmt.Errorf("dispatcher: Slots must be at least 1, Poll and DeadAfter positive, Lease at least %v", LeastLease)
	}
	d := &Dispatcher{
		Options: o, slots: newSlots(o.Slots, o.Random), signals: make(chan struct{}, 1), hints: map[uuid.UUID]bool{},
		leases: &leases{renew: o.Store.Renew, lease: o.Lease, span: min(o.Lease, alive*o.DeadAfter/silent), clock: o.Clock, logger: o.Logger, lostOne: o.Observer.Fenced},
	}
	d.settlements = batcher[Settlement, Settled]{
		call: o.Store.Settle, spawn: d.underWay.Go, clock: o.Clock, most: maxBatch, timeout: o.Lease, linger: linger,
	}
	return d, nil
}

const (
	// maxBatch bounds what one statement settles.
	maxBatch = 256
	// linger is how long free slots and outcomes are gathered. Of an outcome that is
	// not yet handed to Postgres, a kill repeats the message.
	linger = 2 * time.Millisecond
	// A process that renews has also shown in the last third of DeadAfter that it is alive, and is
	// not taken for dead for the rest of it.
	alive, silent = 2, 3
	// afterFailure is the pause after a pass that failed.
	afterFailure = time.Second
)

// Result is what a pass did.
type Result struct {
	// Claimed is the number of messages taken.
	Claimed int
	// Again is the time after which there is room for more, by a rate or because
	// calls take long; 0 when nothing is held back.
	Again time.Duration
	// Next is the time until something is known to be worth a look; 0 when nothing is.
	Next time.Duration
	// Left reports that more may be due than there was room for. What a rate limit
	// holds back is not left.
	Left bool
}

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

// Wake tells the dispatcher that something has become due for webhooks. It never blocks.
func (d *Dispatcher) Wake(webhooks []uuid.UUID) {
	d.hint(webhooks)
	d.mu.Lock()
	d.woken = true
	d.mu.Unlock()
	d.signal()
}

// takeWoken reports whether something became due since it was called last.
func (d *Dispatcher) takeWoken() (woken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	woken, d.woken = d.woken, false
	return woken
}

func (d *Dispatcher) hint(webhooks []uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range webhooks {
		d.hints[id] = true
	}
}

// takeHints returns the webhooks for which something became due since the last time.
func (d *Dispatcher) takeHints() []uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	hints := slices.Collect(maps.Keys(d.hints))
	clear(d.hints)
	return hints
}

// Tick is one pass: it claims what there is room for, attempts it, and returns
// when every attempt is settled.
func (d *Dispatcher) Tick(ctx context.Context) (Result, error) {
	result, err := d.pass(ctx)
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
		case <-d.signals:
			if !d.takeWoken() {
				if !gathering {
					gathering = true
					pause.Reset(linger)
				}
				continue
			}
		case signal = <-d.WakeUps:
			d.hint(signal.WakeUp.Webhooks)
			if d.slots.full(signal.WakeUp.Webhooks, d.Clock()) {
				signal.answer(true, nil)
				continue
			}
		}
		gathering = false
		// What is signalled by now, this pass looks at.
		select {
		case <-d.signals:
		default:
		}
		d.takeWoken()
		result, err := d.pass(ctx)
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

// pass claims what there is room for and begins the calls.
func (d *Dispatcher) pass(ctx context.Context) (Result, error) {
	var result Result
	var dealt room
	hints, began := d.takeHints(), d.Clock()
	// What a claim takes that comes to its end later lapses.
	claiming, cancel := context.WithTimeout(ctx, d.Lease)
	defer cancel()
	d.leases.claim()
	claimed, err := d.Store.Claim(claiming, ClaimRequest{
		Replica: d.Replica, Lease: d.Lease, Webhooks: hints, Render: d.render,
		MaxAge:     func(w *Webhook) time.Duration { return d.Schedule(w).MaxAge },
		KeepsState: func(w *Webhook) bool { return d.Schedule(w).KeepsState },
		Deal: func(due []Due) []Slots {
			dealt = d.slots.deal(due, d.Clock())
			return dealt.slots
		},
	})
	if err != nil {
		d.hint(hints)
		err = fmt.Errorf("claim notifications: %w", err)
	}
	got := map[uuid.UUID]int{}
	attempts := make([]*attempt, len(claimed.Deliveries))
	for i := range claimed.Deliveries {
		delivery := &claimed.Deliveries[i]
		got[delivery.Webhook.ID]++
		attempts[i] = d.begin(ctx, delivery, began)
	}
	d.leases.claimed()
	result.Left = d.slots.claimed(dealt, got)
	refused, calling := d.refused(ctx, &claimed), context.WithoutCancel(ctx)
	for _, a := range attempts {
		d.underWay.Go(func() { d.attempt(calling, a, refused[a.delivery.Webhook.ID]) })
	}
	result.Claimed, result.Next, result.Again = len(claimed.Deliveries), claimed.Next, dealt.again
	return result, err
}

// signal leaves a signal, unless one is there.
func (d *Dispatcher) signal() {
	select {
	case d.signals <- struct{}{}:
	default:
	}
}
