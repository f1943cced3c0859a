package notify

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Wanted is what a commit is about to owe a webhook.
type Wanted struct {
	WebhookID     uuid.UUID
	MaxConcurrent int
	Count         int
}

// Reservation is room for notifications that a commit writes under a claim of the
// dispatcher. Its owner ends it by [Reservation.HandOver], whatever became of the
// commit; the dispatcher does not end before. The zero value is no room. It is not
// safe for concurrent use.
//
// What can be called at once is begun by the commit itself, see [Reservation.Begin],
// which spares it a commit of its own on the way to its receiver. The rest waits in
// the process for its turn.
type Reservation struct {
	// Replica and Lease are those of the claims.
	Replica string
	Lease   time.Duration
	// Room is how many notifications of each webhook there is room for.
	Room map[uuid.UUID]int

	// dispatcher is nil where there is no room, and once the reservation has ended.
	dispatcher *Dispatcher
	// short says that more is wanted than there is room for.
	short bool
	// begun holds the attempts that the commit begins, by their notifications.
	begun map[uuid.UUID]*entry
	// rendering is how long it took to make them ready.
	rendering time.Duration
}

// Reserve keeps room for notifications that a commit is about to write under this
// dispatcher's claim, so that they need no claim of their own. There is none
// before the dispatcher runs. In a burst it may wait for a quarter of a second, unless
// ctx ends before, until there is room; the caller must hold no transaction.
func (d *Dispatcher) Reserve(ctx context.Context, wanted []Wanted) Reservation {
	d.desk.await(ctx, wanted)
	room, short, open := d.desk.reserve(wanted)
	if !open {
		return Reservation{}
	}
	return Reservation{Replica: d.Replica, Lease: d.Lease, Room: room, short: short, dispatcher: d, begun: map[uuid.UUID]*entry{}}
}

// Begin makes the first attempt at a notification ready for a commit to begin it: the
// commit writes the body and what else Begin says, as [Store.Begin] would, under the
// claim that it makes, if the webhook is as the delivery has it and takes messages.
// The token is not known yet. Nil is for a notification whose turn is later: for want
// of a slot, because others wait, or because the commit has a quarter of all slots
// already, or has spent slowRender on bodies. It is handed over all the same.
//
// The delivery is kept until the reservation ends. Asked again for a notification,
// because the commit is made again, Begin answers anew.
func (r *Reservation) Begin(ctx context.Context, delivery *Delivery) *Begin {
	d := r.dispatcher
	if d == nil || r.rendering > slowRender {
		return nil
	}
	began := d.Clock()
	e := r.begun[delivery.NotificationID]
	if e == nil {
		if len(r.begun) >= max(1, d.Slots/4) || d.desk.queue(delivery.Webhook.ID) > 0 {
			return nil
		}
		slot := d.gate.enterNow(delivery.Webhook.ID, delivery.Webhook.MaxConcurrent, began)
		if slot == nil {
			return nil
		}
		e = &entry{ticket: slot}
		r.begun[delivery.NotificationID] = e
	}
	delivery.Body = nil // it tells the instant of the commit
	e.delivery, e.begin = delivery, Begin{}
	d.prepare(ctx, e)
	r.rendering += d.Clock().Sub(began)
	return &e.begin
}

// HandOver gives the dispatcher the notifications whose claims are committed, and
// the rest of the room back. Those that the commit began are called at once.
func (r *Reservation) HandOver(ctx context.Context, committed []Delivery) {
	d := r.dispatcher
	if d == nil {
		return
	}
	r.dispatcher = nil
	ctx = context.WithoutCancel(ctx)
	waiting := make([]*Delivery, 0, len(committed))
	for i := range committed {
		claimed := &committed[i]
		e := r.begun[claimed.NotificationID]
		if e == nil {
			waiting = append(waiting, claimed)
			continue
		}
		delete(r.begun, claimed.NotificationID)
		e.delivery.Token, e.settlement.Token = claimed.Token, claimed.Token
		d.keeper.keep(ctx, e.delivery.held())
		d.begun(ctx, e, Begun{})
	}
	for _, e := range r.begun {
		d.free(func() { d.gate.giveBack(e.ticket) })
	}
	d.desk.accept(ctx, r.Room, waiting)
	if r.short {
		signal(d.hungry)
	}
}
