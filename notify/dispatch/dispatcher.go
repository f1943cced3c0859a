// Package dispatch delivers what is in the outbox. A [Dispatcher] claims messages in its [Store],
// calls their receivers and stores the outcomes. The package comment of notify explains the steps,
// and what each failure does; its decisions ([notify.Policy]) are made there.
//
// dispatcher.go makes the passes, and attempt.go an attempt, from its beginning to its stored outcome.
// Three parts serve them, each with one concern and a lock of its own: slots.go distributes the calls
// over the webhooks, leases.go renews the claims of the calls under way and stops those that have lost
// theirs, and batch.go stores outcomes together. store.go is what they ask of the store.
package dispatch

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

	"tocsin/internal/fault"
	"tocsin/notify"
)

// LeastLease is the shortest lease that a dispatcher can renew in time.
const LeastLease = 300 * time.Millisecond

// DefaultSlots is how many calls a dispatcher makes at once.
const DefaultSlots = 256

// Options configures a [Dispatcher]. Store, Renderer, Sender, Logger, Clock and
// Replica are required.
type Options struct {
	Store    Store
	Renderer notify.Renderer
	Sender   notify.Sender
	Logger   *slog.Logger
	// Clock measures how long attempts take. No lease is compared with it.
	Clock func() time.Time
	// Random returns numbers uniform in [0, 1). They spread retries and shuffle webhooks that are
	// equal. The default is math/rand. It may be called from many goroutines.
	Random func() float64
	// Replica names this process in leases and attempts.
	Replica string
	// Policy is [notify.DefaultPolicy] if its schedule is nil.
	Policy notify.Policy
	// Schedule returns the schedule of a webhook's receiver. Nil means that no receiver has one.
	Schedule func(*notify.Webhook) notify.Schedule
	// Slots is the number of calls under way at once, [DefaultSlots] by default. A call that takes
	// longer than a second needs no slot from then on. Together with these calls, at most four
	// times as many are under way.
	Slots int
	// Lease is how long a claim lasts without renewal, 30 s by default, and at least [LeastLease].
	Lease time.Duration
	// DeadAfter is how long this process may be silent before other replicas release its claims,
	// although these have not expired. By default they are not released earlier.
	DeadAfter time.Duration
	// Poll is the longest pause between looks at the outbox, 1 s by default. The pause ends earlier
	// if a row is known to become due.
	Poll time.Duration
	// Observer is notified of attempts. It may be nil.
	Observer Observer
	// WakeUps ends a pause early. If it is nil, the dispatcher only polls. Each signal is answered
	// when the pass that it caused has claimed.
	WakeUps <-chan notify.Signal
}

// Observer is notified of the results of attempts. Its methods must not block, and may be called
// from several goroutines at once.
type Observer interface {
	// Attempted reports the verdict of an attempt, stored or not.
	Attempted(verdict notify.Verdict)
	// Fenced reports that another claimant had the claim.
	Fenced()
	// Unknown reports that an attempt begins after one whose outcome was never stored: its process
	// died or was paused, and the message may have been sent.
	Unknown()
	// Unapplied reports that outcomes were stored but not applied to their webhooks: no breaker
	// counts them, and no pause begins.
	Unapplied()
}

// unobserved is an observer that does nothing.
type unobserved struct{}

func (unobserved) Attempted(notify.Verdict) {}
func (unobserved) Fenced()                  {}
func (unobserved) Unknown()                 {}
func (unobserved) Unapplied()               {}

// Dispatcher delivers notifications.
type Dispatcher struct {
	Options
	slots       *slots
	leases      *leases
	settlements batcher[Settlement, Settled]
	// signals holds a signal if something became due, or there is room for it.
	signals  chan struct{}
	underWay sync.WaitGroup
	// running says that Run has not ended.
	running atomic.Bool

	mu sync.Mutex
	// hints are the webhooks for which something became due since the last claim.
	hints map[uuid.UUID]bool
	// woken says that something became due since Run last took a signal.
	woken bool
}

// New returns a dispatcher. Its error names the option that is invalid.
func New(o Options) (*Dispatcher, error) {
	if o.Store == nil || o.Renderer == nil || o.Sender == nil || o.Logger == nil || o.Clock == nil || o.Replica == "" {
		return nil, errors.New("dispatcher: Store, Renderer, Sender, Logger, Clock and Replica are required")
	}
	if o.Policy.Schedule == nil {
		o.Policy = notify.DefaultPolicy()
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("dispatcher: %w", err)
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	if o.Schedule == nil {
		o.Schedule = func(*notify.Webhook) notify.Schedule { return notify.Schedule{} }
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
		call: o.Store.Settle, spawn: d.underWay.Go, most: maxBatch, timeout: o.Lease, linger: linger, singles: make(chan struct{}, maxSingles),
	}
	return d, nil
}

const (
	// maxBatch bounds how many outcomes one statement settles.
	maxBatch = 256
	// maxSingles bounds the outcomes that are stored one by one at a time. Each occupies a connection,
	// of which there are four by default.
	maxSingles = 2
	// linger is how long free slots and outcomes are collected. If the process is killed in that
	// time, the messages of the collected outcomes are sent again.
	linger = 2 * time.Millisecond
	// lastClaim is how long a claim under way may still take when the dispatcher shuts down.
	lastClaim = 5 * time.Second
	// A renewal also shows that the process is alive. A process that renewed within the last third
	// of DeadAfter is not taken for dead for the rest of it.
	alive, silent = 2, 3
	// afterFailure is the pause after a failed pass.
	afterFailure = time.Second
)

// Result is what a pass did.
type Result struct {
	// Claimed is the number of messages taken.
	Claimed int
	// Again is the time until there is room for more, because of a rate or because calls take long;
	// 0 if nothing is held back.
	Again time.Duration
	// Next is the time until a look is known to be worthwhile; 0 if none is.
	Next time.Duration
	// Left reports that more may be due than there was room for. Messages that a rate holds back do
	// not count.
	Left bool
}

// pause returns how long to wait before the next look, if nothing else happens first.
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

// Wake tells the dispatcher that messages have become due for webhooks. It never blocks.
func (d *Dispatcher) Wake(webhooks []uuid.UUID) {
	d.hint(webhooks)
	d.mu.Lock()
	d.woken = true
	d.mu.Unlock()
	d.signal()
}

// takeWoken reports whether something became due since its last call.
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

// takeHints returns the webhooks for which something became due since its last call.
func (d *Dispatcher) takeHints() []uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	hints := slices.Collect(maps.Keys(d.hints))
	clear(d.hints)
	return hints
}

// Tick is one pass: it claims what there is room for, attempts it, and returns when every attempt
// is settled.
func (d *Dispatcher) Tick(ctx context.Context) (Result, error) {
	result, err := d.pass(ctx)
	d.underWay.Wait()
	return result, err
}

// Run delivers until ctx ends. Then it waits for a claim under way, at most five seconds, and for the
// attempts under way, each of which is bounded by its webhook's timeout. A failed pass is logged, and
// the next one does its work.
func (d *Dispatcher) Run(ctx context.Context) {
	defer d.underWay.Wait()
	d.running.Store(true)
	defer d.running.Store(false)
	pause := time.NewTimer(0)
	defer pause.Stop()
	// Who waits for an answer gets one, even if this panics.
	var signal notify.Signal
	defer func() { signal.Answer(true, errEnded) }()
	// gathering says that slots have become free and the pause will end soon.
	gathering := false
	for {
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
				signal.Answer(true, nil)
				continue
			}
		}
		gathering = false
		// This pass covers what was signalled until now.
		select {
		case <-d.signals:
		default:
		}
		d.takeWoken()
		result, err := d.pass(ctx)
		signal.Answer(result.Left, err)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.Logger.ErrorContext(ctx, "claim failed; it is retried: run tocsin doctor if this repeats", slog.Any("error", err), fault.Stack(err))
		}
		pause.Reset(result.pause(d.Poll, err))
	}
}

// errEnded is the answer to a signal without a pass.
var errEnded = errors.New("the dispatcher has ended")

// pass claims what there is room for and begins the calls. A pass that panics has failed. What it claimed and did not
// begin is claimed again when its lease ends.
func (d *Dispatcher) pass(ctx context.Context) (result Result, err error) {
	hints := d.takeHints()
	if err = fault.Guard(func() (err error) { result, err = d.claim(ctx, hints); return err }); err != nil {
		d.hint(hints)
		err = fmt.Errorf("claim notifications: %w", err)
	}
	return result, err
}

// claim is the pass.
func (d *Dispatcher) claim(ctx context.Context, hints []uuid.UUID) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	var dealt room
	asked := d.Clock()
	// A claim that ends later than that takes leases that have expired. One that is cut short while
	// it commits leaves attempts of unknown outcome, so one that has begun may end.
	claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Lease)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastClaim, cancel) })()
	d.leases.claim()
	defer d.leases.claimed()
	claimed, err := d.Store.Claim(claiming, ClaimRequest{
		Replica: d.Replica, Lease: d.Lease, Webhooks: hints, Render: d.render,
		Schedule: d.Schedule,
		Deal: func(due []Due) []Slots {
			dealt = d.slots.deal(due, d.Clock())
			return dealt.slots
		},
	})
	got := map[uuid.UUID]int{}
	for i := range claimed.Deliveries {
		got[claimed.Deliveries[i].Webhook.ID]++
	}
	left := d.slots.claimed(dealt, got)
	refused, now := d.refused(ctx, &claimed), d.Clock()
	for i := range claimed.Deliveries {
		d.begin(ctx, &attempt{delivery: &claimed.Deliveries[i], claimedAt: asked, refused: refused[claimed.Deliveries[i].Webhook.ID]}, now)
	}
	return Result{Claimed: len(claimed.Deliveries), Again: dealt.again, Next: claimed.Next, Left: left}, err
}

// signal leaves a signal, unless there is one.
func (d *Dispatcher) signal() {
	select {
	case d.signals <- struct{}{}:
	default:
	}
}
