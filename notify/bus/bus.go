// Package bus carries wake-ups from processes that write notifications to the dispatchers that
// deliver them, between any number of processes.
//
// The outbox is authoritative; the bus only shortens the pause of a dispatcher. A wake-up that is
// lost, late or repeated changes nothing except the delay, because every dispatcher also looks from
// time to time.
//
//	Publish ─▶ waiting (at most one, sums up) ─Send─▶ driver ┄┄▶ driver ─Listen─▶ signal ─▶ dispatcher
//	                                                      acknowledged when it has claimed ◀──┘
//
// A [Driver] speaks the protocol of one provider. [Bus] does what all of them have in common:
//
//   - Publishing never waits and never fails. Messages that cannot be sent are merged into one
//     wake-up, which is sent when the server is back.
//   - Listening subscribes again after every failure, with growing pauses. Each subscription begins
//     with a wake-up, because messages may have been missed.
//   - A wake-up is acknowledged when the pass that it caused has claimed. If that pass fails, it is
//     not acknowledged, and a driver that keeps messages offers it again. A process that ends gives
//     its messages back before; those of a process that crashes go to another process after a time.
//   - A message that cannot be read is counted, acknowledged and dropped.
//   - If each message wakes only one of several replicas, a replica that has too little room for
//     what is due publishes the message again, at most [maxHops] times.
//   - An outage is logged when it begins and when it ends, and not in between.
package bus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tocsin/notify"
)

// Driver speaks one provider's protocol. It is safe for concurrent use.
type Driver interface {
	// Publish returns when the server has the payload.
	Publish(ctx context.Context, payload []byte) error
	// Subscribe begins to listen. A message that is published after Subscribe has returned reaches
	// the subscription, or one of its group if replicas share a group.
	Subscribe(ctx context.Context) (Subscription, error)
}

// Subscription is one replica's share of the published messages. It is used by one goroutine.
type Subscription interface {
	// Next waits for messages and returns at least one. After an error the subscription cannot be
	// used any more.
	Next(ctx context.Context) (Batch, error)
	// Close ends the subscription. If the provider keeps messages, those that were received and not
	// acknowledged remain for others.
	Close(ctx context.Context)
}

// Batch is one or more messages that are acknowledged together.
type Batch struct {
	Payloads [][]byte
	// Kept is nil on a bus that keeps no messages and sends each message to every listener.
	Kept Kept
}

// Kept are messages that a server keeps until they are acknowledged.
type Kept interface {
	// Ack acknowledges the messages; the server forgets them.
	Ack(ctx context.Context) error
	// GiveBack offers the messages to others at once.
	GiveBack(ctx context.Context) error
}

// Event is an event of a wake-up.
type Event string

// The events.
const (
	Published Event = "published"
	Received  Event = "received"
	// Malformed is a message that cannot be read.
	Malformed Event = "malformed"
	// Failed is a failed attempt to publish, to listen or to acknowledge.
	Failed Event = "failed"
)

// Events returns every event.
func Events() []Event { return []Event{Published, Received, Malformed, Failed} }

// Observer is notified of events. It must not block.
type Observer interface{ WakeUp(event Event) }

// unobserved is an observer that does nothing.
type unobserved struct{}

func (unobserved) WakeUp(Event) {}

// Options configures a [Bus]. Driver and Logger are required.
type Options struct {
	Driver   Driver
	Logger   *slog.Logger
	Observer Observer
	// Timeout bounds each exchange with the server, except waiting for messages, 5 s by default.
	Timeout time.Duration
	// Pause is the first pause after a failure, 100 ms by default; it doubles up to MaxPause, 5 s by default.
	Pause, MaxPause time.Duration
}

// Bus is one process's access to wake-ups. It is safe for concurrent use.
type Bus struct {
	Options
	signals chan notify.Signal
	mu      sync.Mutex
	waiting *message
	// kick holds a signal while a message waits.
	kick chan struct{}
}

// New returns a bus. It does nothing until [Bus.Send] and [Bus.Listen] run.
func New(o Options) *Bus {
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{{&o.Timeout, 5 * time.Second}, {&o.Pause, 100 * time.Millisecond}, {&o.MaxPause, 5 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.is
		}
	}
	return &Bus{Options: o, signals: make(chan notify.Signal), kick: make(chan struct{}, 1)}
}

// WakeUps returns the channel that a dispatcher listens on. It is never closed.
func (b *Bus) WakeUps() <-chan notify.Signal { return b.signals }

// Publish adds a wake-up to be sent. It never blocks, and its error is always nil.
func (b *Bus) Publish(_ context.Context, w notify.WakeUp) error {
	b.leave(message{Notifications: w.Notifications, Webhooks: few(w.Webhooks)})
	return nil
}

// leave adds m to the message that waits to be sent.
func (b *Bus) leave(m message) {
	b.mu.Lock()
	if b.waiting != nil {
		m = m.and(*b.waiting)
	}
	b.waiting = &m
	b.mu.Unlock()
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// take returns the message that waits; nil if there is none.
func (b *Bus) take() *message {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.waiting
	b.waiting = nil
	return m
}

// Send sends published messages until ctx ends. If the server was not away, it then sends what
// still waits, once.
func (b *Bus) Send(ctx context.Context) {
	out := outage{Bus: b, doing: "publish"}
	for {
		select {
		case <-ctx.Done():
			if !out.lasts {
				_ = b.send(ctx, &out)
			}
			return
		case <-b.kick:
		}
		if err := b.send(ctx, &out); err != nil {
			out.wait(ctx)
		}
	}
}

// send sends what waits. A message that cannot be sent continues to wait.
func (b *Bus) send(ctx context.Context, out *outage) error {
	m := b.take()
	if m == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.Timeout)
	defer cancel()
	if err := b.Driver.Publish(bounded, m.encode()); err != nil {
		b.leave(*m)
		out.failed(ctx, err)
		return err
	}
	b.Observer.WakeUp(Published)
	out.over(ctx)
	return nil
}

// outage is a series of failures, which is logged once.
type outage struct {
	*Bus
	doing string
	lasts bool
	pause time.Duration
}

func (o *outage) failed(ctx context.Context, err error) {
	o.Observer.WakeUp(Failed)
	if !o.lasts {
		o.Logger.WarnContext(ctx, "the wake-up bus does not work; due messages are found by polling: run tocsin doctor for the remedy",
			slog.String("doing", o.doing), slog.Any("error", err))
	}
	o.lasts = true
}

func (o *outage) over(ctx context.Context) {
	if o.lasts {
		o.Logger.InfoContext(ctx, "the wake-up bus works again", slog.String("doing", o.doing))
	}
	o.lasts, o.pause = false, 0
}

// wait pauses after a failure, each time longer.
func (o *outage) wait(ctx context.Context) {
	o.pause = min(max(2*o.pause, o.Pause), o.MaxPause)
	timer := time.NewTimer(o.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
