package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

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
	// due, by the store's clock: a retry, a lease that lapses, a held webhook; or
	// until the store is to be asked for what it may have passed over. 0 when there
	// is none. Rows written later are not known to it.
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
	// Digests says that what waits may be gathered into digests.
	Digests bool
	// Worker is the replica that has lately taken more of what is owed than may be
	// called at once, in front of what is due; empty when there is none.
	Worker string
}

// Slots is how many notifications of a webhook may be claimed.
type Slots struct {
	WebhookID uuid.UUID
	Slots     int
}

// start claims, and begins attempts at what there are slots for. The rest of what
// was claimed waits at the desk.
func (d *Dispatcher) start(ctx context.Context) (Result, error) {
	var result Result
	dealt, stocked := map[uuid.UUID]int{}, map[uuid.UUID]int{}
	room, slots, left, others := 0, 0, false, false
	freed := d.gate.look()
	// What a claim takes that comes to its end later lapses.
	claiming, cancel := context.WithTimeout(ctx, d.Lease)
	defer cancel()
	claimed, err := d.Store.Claim(claiming, ClaimRequest{
		Replica: d.Replica, Lease: d.Lease,
		Room: func(due []Limits) []Slots {
			now := d.Clock()
			count := len(due)
			due = d.gate.mine(due, d.Replica, now)
			others = len(due) < count
			rooms := d.gate.room(due, now)
			result.Again, left = rooms.again, !rooms.paced
			for i := range due {
				id := due[i].WebhookID
				dealt[id], stocked[id] = 0, d.desk.stock(&due[i])
			}
			for _, r := range rooms.slots {
				// What waits at the desk is older.
				n := max(0, r.Slots-d.desk.queue(r.WebhookID))
				dealt[r.WebhookID] = n
				slots += n
			}
			d.gate.promise(slots)
			var wanted []Slots
			for id, n := range dealt {
				if n += stocked[id]; n > 0 {
					wanted = append(wanted, Slots{id, n})
					room += n
				}
			}
			return wanted
		},
	})
	if err != nil {
		err = fmt.Errorf("claim notifications: %w", err)
	}
	var now, later []*Delivery
	for i := range claimed.Deliveries {
		delivery := &claimed.Deliveries[i]
		if d.keeper.hasArrived(delivery) {
			// Storing that ends the claim; if it never does, the claim lapses.
			d.log(&Settlement{NotificationID: delivery.NotificationID, WebhookID: delivery.Webhook.ID, Attempt: delivery.Attempt}).
				InfoContext(ctx, "not sent again: it has arrived, which is still being stored")
			continue
		}
		if id := delivery.Webhook.ID; dealt[id] > 0 {
			dealt[id]--
			now = append(now, delivery)
		} else {
			stocked[id]--
			later = append(later, delivery)
		}
	}
	for chunk := range slices.Chunk(d.enter(ctx, now), maxBatch) {
		d.beginBeside(ctx, chunk)
	}
	d.gate.promise(-slots)
	if slots > len(now) {
		signal(d.desk.came) // what waits may have the slots that were promised
	}
	d.desk.keep(ctx, later)
	for id, n := range stocked {
		dealt[id] += n
	}
	if err == nil && d.gate.looked(freed, dealt) {
		signal(d.freed)
	}
	result.Claimed, result.Next = len(claimed.Deliveries), claimed.Next
	if (others || room > 0 && result.Claimed == 0) && (result.Next == 0 || result.Next > afterFailure) {
		result.Next = afterFailure
	}
	result.Left = others || left && result.Claimed >= room
	return result, err
}
