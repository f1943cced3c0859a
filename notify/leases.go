package notify

import (
	"context"
	"errors"
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
type leases struct {
	renew   func(ctx context.Context, held []Held, lease time.Duration) ([]Held, error)
	lease   time.Duration
	logger  *slog.Logger
	lostOne func()

	mu sync.Mutex
	// held tells of each claim whether its outcome is being stored, claims how many each
	// message has.
	held   map[Held]bool
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

// keep begins to renew a claim; one that is kept already stays so.
func (k *leases) keep(ctx context.Context, claim Held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held, k.claims, k.arrived = map[Held]bool{}, map[uuid.UUID]int{}, map[message]bool{}
	}
	k.held[claim] = false
	k.claims[claim.NotificationID]++
	if k.stop != nil {
		return
	}
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.ended = new(sync.WaitGroup)
	k.ended.Go(func() { k.run(ctx) })
}

// settling tells that the outcome of a claim is about to be stored, after which
// a renewal finds the claim gone, and whether the message has arrived.
func (k *leases) settling(d *Delivery, arrived bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, kept := k.held[d.held()]; kept {
		k.held[d.held()] = true
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
	ticker := time.NewTicker(k.lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		k.renewAll(ctx)
	}
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
	bounded, cancel := context.WithTimeout(ctx, k.lease/3)
	defer cancel()
	lost, err := k.renew(bounded, claims, k.lease)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		k.logger.WarnContext(ctx, "leases not renewed", slog.Int("claims", len(claims)), slog.Any("error", err))
	}
	for _, claim := range lost {
		k.mu.Lock()
		settling, kept := k.held[claim]
		if !settling {
			delete(k.held, claim)
		}
		k.mu.Unlock()
		if kept && !settling {
			k.lostOne()
			k.logger.WarnContext(ctx, "lease lost", slog.String("notification_id", claim.NotificationID.String()), slog.Any("error", errLost))
		}
	}
}

var errLost = errors.New("another replica has claimed the notification, or it is settled")
