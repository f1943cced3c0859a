package notify

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// maxHanded bounds the notifications that are handed over and not begun, of all
// webhooks; of one, it is maxQueue times what may be under way to it.
const (
	maxHanded = 2048
	maxQueue  = 16
)

// Wanted is what a commit is about to owe a webhook.
type Wanted struct {
	WebhookID     uuid.UUID
	MaxConcurrent int
	Count         int
}

// Reservation is room for notifications that a commit writes under a claim of the
// dispatcher. Its owner ends it by [Reservation.HandOver], whatever became of the
// commit. The zero value is no room.
type Reservation struct {
	// Replica and Lease are those of the claims.
	Replica string
	Lease   time.Duration
	// Room is how many notifications of each webhook there is room for.
	Room map[uuid.UUID]int
	desk *desk
}

// HandOver gives the dispatcher the notifications whose claims are committed, and
// the rest of the room back.
func (r *Reservation) HandOver(ctx context.Context, committed []Delivery) {
	if r.desk != nil {
		r.desk.accept(ctx, r.Room, committed)
	}
}

// desk holds what was handed over until there is a slot for it. Its claims are
// renewed from then on.
//
// Only a receiver that has just answered is given anything this way: for a slow
// or a failing one, and while something older waits, notifications are written
// unclaimed, where limits, breaker and digests are judged when they are taken.
type desk struct {
	replica string
	lease   time.Duration
	gate    *gate
	keeper  *keeper
	logger  *slog.Logger
	release func(ctx context.Context, held []Held) error
	// came holds a signal after something was handed over.
	came chan struct{}

	mu   sync.Mutex
	open bool
	// reserved counts what there is room kept for, and what waits.
	reserved map[uuid.UUID]int
	total    int
	limits   map[uuid.UUID]int
	waiting  []*Delivery
}

// begin accepts from now on.
func (k *desk) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = true
}

// reserve keeps room for what is wanted, as far as there is any.
func (k *desk) reserve(wanted []Wanted) Reservation {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Reservation{Replica: k.replica, Lease: k.lease, Room: map[uuid.UUID]int{}, desk: k}
	if !k.open {
		return Reservation{}
	}
	for _, w := range wanted {
		if !k.gate.welcomes(w.WebhookID) {
			continue
		}
		n := min(w.Count, maxQueue*w.MaxConcurrent-k.reserved[w.WebhookID], maxHanded-k.total)
		if n <= 0 {
			continue
		}
		r.Room[w.WebhookID] = n
		k.limits[w.WebhookID] = w.MaxConcurrent
		k.reserved[w.WebhookID] += n
		k.total += n
	}
	return r
}

func (k *desk) accept(ctx context.Context, room map[uuid.UUID]int, committed []Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	unused := maps.Clone(room)
	came := make([]*Delivery, len(committed))
	for i := range committed {
		came[i] = &committed[i]
		unused[committed[i].Webhook.ID]--
	}
	for webhook, n := range unused {
		k.leave(webhook, n)
	}
	if len(came) == 0 {
		return
	}
	for _, d := range came {
		k.keeper.keep(ctx, d.held())
	}
	k.waiting = append(k.waiting, came...)
	if !k.open {
		k.empty(ctx)
		return
	}
	select {
	case k.came <- struct{}{}:
	default:
	}
}

// leave gives room back.
func (k *desk) leave(webhook uuid.UUID, n int) {
	k.total -= n
	if k.reserved[webhook] -= n; k.reserved[webhook] <= 0 {
		delete(k.reserved, webhook)
		delete(k.limits, webhook)
	}
}

// take returns what there are slots for, oldest first. What waits for a receiver
// that does not answer any more goes back into the outbox.
func (k *desk) take(ctx context.Context, now time.Time) (ready []*Delivery, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.waiting) == 0 {
		return nil, false
	}
	var due []Limits
	for webhook, most := range k.limits {
		due = append(due, Limits{WebhookID: webhook, MaxConcurrent: most})
	}
	slots := make(map[uuid.UUID]int, len(due))
	for _, s := range k.gate.room(due, now).slots {
		slots[s.WebhookID] = s.Slots
	}
	var back []*Delivery
	rest := k.waiting[:0]
	for _, d := range k.waiting {
		switch id := d.Webhook.ID; {
		case !k.gate.welcomes(id):
			back = append(back, d)
			k.leave(id, 1)
		case slots[id] > 0:
			slots[id]--
			ready = append(ready, d)
			k.leave(id, 1)
		default:
			rest = append(rest, d)
		}
	}
	clear(k.waiting[len(rest):])
	k.waiting = rest
	k.giveBack(ctx, back)
	return ready, len(rest) > 0
}

// close refuses everything from now on, and gives back what waits.
func (k *desk) close(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = false
	k.empty(ctx)
}

// empty gives back all that waits.
func (k *desk) empty(ctx context.Context) {
	for _, d := range k.waiting {
		k.leave(d.Webhook.ID, 1)
	}
	k.giveBack(ctx, k.waiting)
	k.waiting = nil
}

// giveBack ends claims on what was not begun. Where that fails, they lapse.
func (k *desk) giveBack(ctx context.Context, deliveries []*Delivery) {
	if len(deliveries) == 0 {
		return
	}
	held := make([]Held, len(deliveries))
	for i, d := range deliveries {
		held[i] = d.held()
		k.keeper.drop(held[i])
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.lease/3)
	defer cancel()
	if err := k.release(ctx, held); err != nil {
		k.logger.WarnContext(ctx, "claims not given back; they lapse", slog.Int("claims", len(held)), slog.Any("error", err))
	}
}

// held returns the claim of a delivery.
func (d *Delivery) held() Held { return Held{d.NotificationID, d.Token} }

// Reserve keeps room for notifications that a commit is about to write under this
// dispatcher's claim, so that they need no claim of their own. There is none
// before the dispatcher runs.
func (d *Dispatcher) Reserve(wanted []Wanted) Reservation { return d.desk.reserve(wanted) }
