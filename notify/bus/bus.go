// Package bus carries wake-ups from those who write notifications to the
// dispatchers that deliver them, between any number of processes.
//
// Truth is in the outbox; the bus only shortens the pause of a dispatcher. A
// wake-up that is lost, late or repeated changes nothing but the delay, because
// every dispatcher also looks by itself.
//
//	Publish ─▶ waiting (at most one, sums up) ─Send─▶ driver ┄┄▶ driver ─Listen─▶ signal ─▶ dispatcher
//	                                                      acknowledged when it has claimed ◀──┘
//
// A [Driver] speaks the protocol of one provider; [Bus] does what is the same
// for all of them:
//
//   - Publishing never waits and never fails. What cannot be sent waits and is
//     summed up into one wake-up, which is sent when the server is back.
//   - Listening subscribes again after every failure, with growing pauses. Each
//     subscription begins with a wake-up, because something may have been missed.
//   - A wake-up is acknowledged when the pass that it caused has claimed. If that
//     pass fails it is not, and a driver that keeps messages offers it again. Who
//     ends before has given it back, who crashes loses it to another by time.
//   - A message that cannot be read is counted, acknowledged and dropped.
//   - Where each message wakes only one of several replicas, the one that has
//     less room than there is left publishes it on, at most [maxHops] times.
//   - An outage is logged when it begins and when it ends, never in between.
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
	// Subscribe begins to listen. Messages that are published after it has returned reach the
	// subscription or, if replicas share a group, one of the group.
	Subscribe(ctx context.Context) (Subscription, error)
}

// Subscription is one replica's share in what is published. It is used by one
// goroutine.
type Subscription interface {
	// Next waits for messages, at least one. After an error the subscription is of
	// no use any more.
	Next(ctx context.Context) (Batch, error)
	// Close ends the subscription. Messages that it received and did not acknowledge stay for
	// others, if the provider keeps messages.
	Close(ctx context.Context)
}

// Batch is one message or several that are acknowledged together.
type Batch struct {
	Payloads [][]byte
	// Kept is nil on a bus that keeps no messages and sends each to every listener.
	Kept Kept
}

// Kept is what a server remembers until it is acknowledged.
type Kept interface {
	// Ack forgets the messages.
	Ack(ctx context.Context) error
	// GiveBack offers them to the others at once.
	GiveBack(ctx context.Context) error
}

// Event is something that happened to a wake-up.
type Event string

// The events.
const (
	Published Event = "published"
	Received  Event = "received"
	// Malformed is a message that cannot be read.
	Malformed Event = "malformed"
	// Failed is an attempt to publish, to listen or to acknowledge.
	Failed Event = "failed"
)

// Events returns every event.
func Events() []Event { return []Event{Published, Received, Malformed, Failed} }

// Observer is notified of events. It must not block.
type Observer interface{ WakeUp(event Event) }

// unobserved is nobody.
type unobserved struct{}

func (unobserved) WakeUp(Event) {}

// Options configures a [Bus]. Driver and Logger are required.
type Options struct {
	Driver   Driver
	Logger   *slog.Logger
	Observer Observer
	// Timeout bounds each exchange with the server but waiting for messages, 5 s by default.
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
	// kick holds a signal while something waits.
	kick chan struct{}
}

// New returns a bus that does nothing before [Bus.Send] and [Bus.Listen] run.
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

// WakeUps is where a dispatcher listens. It is never closed.
func (b *Bus) WakeUps() <-chan notify.Signal { return b.signals }

// Publish leaves a wake-up to be sent. It never blocks, and its error is always nil.
func (b *Bus) Publish(_ context.Context, w notify.WakeUp) error {
	b.leave(message{Notifications: w.Notifications, Webhooks: few(w.Webhooks)})
	return nil
}

// leave adds m to what waits to be sent.
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

// take returns what waits, nil when nothing does.
func (b *Bus) take() *message {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.waiting
	b.waiting = nil
	return m
}

// Send sends what is published until ctx ends, then what still waits, once, if
// the server was not away.
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

// send sends what waits. Messages that cannot be sent go on waiting.
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

// outage is a stretch of failures, which is logged once.
type outage struct {
	*Bus
	doing string
	lasts bool
	pause time.Duration
}

func (o *outage) failed(ctx context.Context, err error) {
	o.Observer.WakeUp(Failed)
	if !o.lasts {
		o.Logger.WarnContext(ctx, "the wake-up bus does not work; due messages and rules are found by polling",
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

// wait pauses after a failure, longer each time.
func (o *outage) wait(ctx context.Context) {
	o.pause = min(max(2*o.pause, o.Pause), o.MaxPause)
	timer := time.NewTimer(o.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
