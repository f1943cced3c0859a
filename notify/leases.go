package notify

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// message is what a receiver takes as one.
type message struct {
	notification uuid.UUID
	generation   int
}

func (d *Delivery) message() message { return message{d.NotificationID, d.Generation} }

// leases renews those of all claims of a dispatcher, in one statement each
// third of a lease. A claim is kept from when it is taken until its outcome is
// stored. One that is found lost is renewed no more; a renewal that fails is made
// again a third later, while the lease may still stand. Renewals are made while
// anything is held, and at no other time: with the last claim the goroutine ends.
//
// A call is stopped where its claim is found lost, or could not be renewed for as long as
// it lasts. How long that is, is measured by this process's clock from when the claim or the renewal
// was asked for, so that a process that has stood still knows before it goes on. A renewal that
// comes through later lets the calls that are made then go on.
type leases struct {
	renew func(ctx context.Context, held []Held, lease time.Duration) (left map[Held]time.Duration, err error)
	lease time.Duration
	// span is for how long after a renewal nobody else takes a claim.
	span    time.Duration
	clock   func() time.Time
	logger  *slog.Logger
	lostOne func()

	mu sync.Mutex
	// held are the claims that are not known to be lost, claims how many each message has.
	held   map[Held]*keptClaim
	claims map[uuid.UUID]int
	// arrived are the messages whose receiver has taken them, while that is being stored:
	// where it takes longer than a lease, they are claimed again. Each is remembered for
	// as long as it has a claim, or one may be under way: the outcome of the first may be
	// stored just before the second is looked at.
	arrived  map[message]bool
	claiming bool
	// stop ends the goroutine that renews, nil when there is none.
	stop  context.CancelFunc
	ended *sync.WaitGroup
}

// keptClaim is a claim that is renewed.
type keptClaim struct {
	// until is when others may take it, if it is not renewed before.
	until time.Time
	// settling says that its outcome is being stored.
	settling bool
	// stop ends the call that is made under it, nil while there is none.
	stop context.CancelCauseFunc
}

// keep begins to renew a claim that was asked for at an instant.
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

// stands returns why a claim may be over, nil while it stands.
func (k *leases) stands(claim Held) error {
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

// calling returns a context that ends with the claim. The caller calls done when its call has ended.
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

// settling tells that the outcome of a claim is about to be stored, after which
// a renewal finds the claim gone, and whether the message has arrived.
func (k *leases) settling(d *Delivery, arrived bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.held[d.held()]; c != nil {
		c.settling = true
	}
	if arrived {
		k.arrived[d.message()] = true
	}
}

// claim tells that messages are about to be claimed, and claimed that all claims are kept.
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

// hasArrived tells whether a message has arrived whose outcome is being stored.
func (k *leases) hasArrived(d *Delivery) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.arrived[d.message()]
}

// drop ends the renewals of a claim, whose outcome is stored as far as it can be. With the
// last one it waits for the renewal at hand.
func (k *leases) drop(d *Delivery) {
	k.mu.Lock()
	delete(k.held, d.held())
	if k.claims[d.NotificationID]--; k.claims[d.NotificationID] == 0 {
		delete(k.claims, d.NotificationID)
		if !k.claiming {
			delete(k.arrived, d.message())
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
		// A claim that is kept from here on stands until after the next renewal.
		lapse.Reset(k.endLapsed())
	}
}

// endLapsed stops the calls whose claims may be over, and returns for how long the others stand.
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
	left, err := k.renew(bounded, claims, k.lease)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		k.logger.WarnContext(ctx, "leases not renewed", slog.Int("claims", len(claims)), slog.Any("error", err))
		return
	}
	for _, claim := range claims {
		stands, known := left[claim]
		if known {
			k.renewed(claim, asked.Add(min(stands, k.span)))
		} else if k.lose(claim) {
			k.lostOne()
			k.logger.WarnContext(ctx, "lease lost", slog.String("notification_id", claim.NotificationID.String()), slog.Any("error", errLost))
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

// lose stops the call of a claim that is lost, and reports whether there was one to lose: what is being
// settled leaves the outbox.
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
	errLost   = fmt.Errorf("%w: another replica has claimed the notification, or it is settled", ErrFenced)
	errLapsed = fmt.Errorf("%w: it could not be renewed for as long as it lasts", ErrFenced)
)
