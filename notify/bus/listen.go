package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"tocsin/notify"
)

// Listen passes messages to the dispatcher until ctx ends, and then leaves the group.
func (b *Bus) Listen(ctx context.Context) {
	out := outage{Bus: b, doing: "listen"}
	for ctx.Err() == nil {
		err := b.listen(ctx, &out)
		if ctx.Err() != nil {
			return
		}
		out.failed(ctx, err)
		out.wait(ctx)
	}
}

// listen listens on one subscription.
func (b *Bus) listen(ctx context.Context, out *outage) error {
	subscription, err := b.subscribe(ctx)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.Timeout)
		defer cancel()
		subscription.Close(end)
	}()
	if out.lasts {
		out.Logger.InfoContext(ctx, "listening for wake-ups again")
		out.lasts = false
	}
	if _, err := b.wake(ctx, message{}); err != nil && ctx.Err() != nil {
		return err
	}
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			return err
		}
		// Only a success makes the next pause short again.
		out.pause = 0
		if err := b.handle(ctx, batch); err != nil {
			return err
		}
	}
}

func (b *Bus) subscribe(ctx context.Context) (Subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	return b.Driver.Subscribe(ctx)
}

// handle wakes the dispatcher for a batch, and answers the server.
func (b *Bus) handle(ctx context.Context, batch Batch) error {
	m, readable := b.read(ctx, batch.Payloads)
	if !readable {
		return b.ack(ctx, batch)
	}
	switch left, err := b.wake(ctx, m); {
	case err == nil:
		if left && batch.Kept != nil && m.Hops < maxHops {
			m.Hops++
			b.leave(m)
		}
		return b.ack(ctx, batch)
	case ctx.Err() != nil:
		return b.answer(ctx, batch, Kept.GiveBack)
	default:
		// Not acknowledged. The dispatcher looks again soon; if it dies before, the server offers
		// the message to another replica.
		return nil
	}
}

// read merges the messages, and reports whether any could be read.
func (b *Bus) read(ctx context.Context, payloads [][]byte) (sum message, readable bool) {
	for _, payload := range payloads {
		m, err := decode(payload)
		if err != nil {
			b.Observer.WakeUp(Malformed)
			b.Logger.WarnContext(ctx, "malformed wake-up dropped; set another TOCSIN_BUS_NAME if other programs publish there", slog.Int("bytes", len(payload)), slog.Any("error", err))
			continue
		}
		b.Observer.WakeUp(Received)
		if readable {
			m = m.and(sum)
		}
		sum, readable = m, true
	}
	return sum, readable
}

// errUnheard says that nobody took the wake-up before the end.
var errUnheard = errors.New("the dispatcher has ended")

// wake passes a signal to the dispatcher and waits until it has claimed.
func (b *Bus) wake(ctx context.Context, m message) (left bool, err error) {
	type pass struct {
		left bool
		err  error
	}
	done := make(chan pass, 1)
	signal := notify.Signal{
		WakeUp:  notify.WakeUp{Notifications: m.Notifications, Webhooks: m.Webhooks},
		Claimed: func(left bool, err error) { done <- pass{left, err} },
	}
	select {
	case b.signals <- signal:
	case <-ctx.Done():
		return false, errUnheard
	}
	select {
	case p := <-done:
		return p.left, p.err
	case <-ctx.Done():
		return false, errUnheard
	}
}

func (b *Bus) ack(ctx context.Context, batch Batch) error { return b.answer(ctx, batch, Kept.Ack) }

// answer reports the result of a batch to the server, even if ctx has ended.
func (b *Bus) answer(ctx context.Context, batch Batch, how func(Kept, context.Context) error) error {
	if batch.Kept == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.Timeout)
	defer cancel()
	if err := how(batch.Kept, ctx); err != nil {
		return fmt.Errorf("answer for a wake-up: %w", err)
	}
	return nil
}
