package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
)

// message identifies what a receiver takes as one message.
type message struct {
	notification uuid.UUID
	generation   int
}

func messageOf(d *notify.Delivery) message { return message{d.NotificationID, d.Generation} }

// leases renews all claims of a dispatcher, in one statement each third of a lease. A claim is
// renewed from when it is taken until its outcome is stored. A claim that is found lost is not
// renewed any more. A failed renewal is repeated a third of a lease later, while the lease may
// still be valid. With the last claim the goroutine ends.
//
// A call is stopped if its claim is found lost, or if it was not renewed before it may have
// expired. The time is measured by this process's clock from when the claim or the renewal was
// requested, so that a process that was paused notices this before it goes on. If a renewal
// succeeds later, calls that begin after it may go on.
type leases struct {
	renew func(ctx context.Context, held []Held, lease time.Duration) (left map[Held]time.Duration, err error)
	lease time.Duration
	// span is the time after a renewal during which no other replica takes a claim.
	span    time.Duration
	clock   func() time.Time
	logger  *slog.Logger
	lostOne func()

	mu sync.Mutex
	// held are the claims that are not known to be lost; claims is how many claims each message
	// has.
	held   map[Held]*keptClaim
	claims map[uuid.UUID]int
	// arrived are the messages that their receivers have accepted and whose outcomes are being
	// stored. If storing takes longer than a lease, they are claimed again. A message is kept while
	// it has a claim and while a claim may be under way: the outcome of the first claim may be
	// stored just before the second claim is checked.
	arrived  map[message]bool
	claiming bool
	// stop ends the goroutine that renews; nil if there is none.
	stop  context.CancelFunc
	ended *sync.WaitGroup
}

// keptClaim is a claim that is renewed.
type keptClaim struct {
	// until is when other replicas may take the claim, if it is not renewed.
	until time.Time
	// settling says that the outcome of the claim is being stored.
	settling bool
	// stop ends the call under the claim; nil while there is none.
	stop context.CancelCauseFunc
}

// keep begins to renew a claim that was requested at an instant.
func (k *leases) keep(ctx context.Context, claim Held, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held, k.claims, k.arrived = map[Held]*keptClaim{}, map[uuid.UUID]int{}, map[message]bool{}
	}
	k.held[claim] = &keptClaim{until: asked.Add(k.span)}
	k.claims[claim.NotificationID]++
	if k.stop != nil {
		return
	}
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.ended = new(sync.WaitGroup)
	k.ended.Go(func() { k.run(ctx) })
}

// check returns why a claim may have expired; nil while it is valid.
func (k *leases) check(claim Held) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch c := k.held[claim]; {
	case c == nil:
		return errLost
	case !k.clock().Before(c.until):
		return errLapsed
	}
	return nil
}

// calling returns a context that ends with the claim. The caller calls done when its call has
// ended.
func (k *leases) calling(parent context.Context, claim Held) (ctx context.Context, done func()) {
	ctx, stop := context.WithCancelCause(parent)
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.held[claim]
	if c == nil {
		stop(errLost)
		return ctx, func() {}
	}
	c.stop = stop
	return ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		c.stop = nil
		stop(nil)
	}
}

// settling notes that the outcome of a claim is about to be stored, after which a renewal finds no
// claim, and whether the message has arrived.
func (k *leases) settling(d *notify.Delivery, arrived bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.held[claimOf(d)]; c != nil {
		c.settling = true
	}
	if arrived {
		k.arrived[messageOf(d)] = true
	}
}

// claim notes that messages are about to be claimed; claimed notes that all claims are being
// renewed.
func (k *leases) claim() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.claiming = true
}

func (k *leases) claimed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.claiming = false
	maps.DeleteFunc(k.arrived, func(m message, _ bool) bool { return k.claims[m.notification] == 0 })
}

// hasArrived reports whether a message has arrived whose outcome is being stored.
func (k *leases) hasArrived(d *notify.Delivery) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.arrived[messageOf(d)]
}

// drop ends the renewals of a claim when its outcome was stored, or could not be stored. With the
// last claim it waits for the renewal under way.
func (k *leases) drop(d *notify.Delivery) {
	k.mu.Lock()
	delete(k.held, claimOf(d))
	if k.claims[d.NotificationID]--; k.claims[d.NotificationID] == 0 {
		delete(k.claims, d.NotificationID)
		if !k.claiming {
			delete(k.arrived, messageOf(d))
		}
	}
	var ended *sync.WaitGroup
	if len(k.held) == 0 && k.stop != nil {
		k.stop()
		k.stop, ended = nil, k.ended
	}
	k.mu.Unlock()
	if ended != nil {
		ended.Wait()
	}
}

func (k *leases) run(ctx context.Context) {
	ticker := time.NewTicker(k.span / 3)
	defer ticker.Stop()
	lapse := time.NewTimer(k.span / 3)
	defer lapse.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.renewAll(ctx)
		case <-lapse.C:
		}
		// A claim that is added from here on is valid until after the next renewal.
		lapse.Reset(k.endLapsed())
	}
}

// endLapsed stops the calls whose claims may have expired, and returns how long the others are
// valid.
func (k *leases) endLapsed() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	next, now := k.span, k.clock()
	for _, c := range k.held {
		if left := c.until.Sub(now); left > 0 {
			next = min(next, left)
		} else if c.stop != nil {
			c.stop(errLapsed)
		}
	}
	return next
}

func (k *leases) renewAll(ctx context.Context) {
	k.mu.Lock()
	claims := make([]Held, 0, len(k.held))
	for claim := range k.held {
		claims = append(claims, claim)
	}
	k.mu.Unlock()
	if len(claims) == 0 {
		return
	}
	asked := k.clock()
	bounded, cancel := context.WithTimeout(ctx, k.span/3)
	defer cancel()
	var left map[Held]time.Duration
	err := fault.Guard(func() (err error) { left, err = k.renew(bounded, claims, k.lease); return err })
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		k.logger.WarnContext(ctx, "leases not renewed; it is retried: run tocsin doctor if this repeats", slog.Int("claims", len(claims)), slog.Any("error", err), fault.Stack(err))
		return
	}
	for _, claim := range claims {
		remaining, known := left[claim]
		if known {
			k.renewed(claim, asked.Add(min(remaining, k.span)))
		} else if k.lose(claim) {
			k.lostOne()
			k.logger.WarnContext(ctx, "lease lost; increase TOCSIN_LEASE if this repeats", slog.String("notification_id", claim.NotificationID.String()), slog.Any("error", errLost))
		}
	}
}

func (k *leases) renewed(claim Held, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.held[claim]; c != nil {
		c.until = until
	}
}

// lose stops the call of a lost claim, and reports whether there was one to lose: a message that is
// being settled leaves the outbox.
func (k *leases) lose(claim Held) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.held[claim]
	if c == nil || c.settling {
		return false
	}
	delete(k.held, claim)
	if c.stop != nil {
		c.stop(errLost)
	}
	return true
}

var (
	errLost   = fmt.Errorf("%w: another replica has claimed the notification, or it is settled", notify.ErrFenced)
	errLapsed = fmt.Errorf("%w: it could not be renewed for as long as it lasts", notify.ErrFenced)
)
