// Package memory is the wake-up bus of a single process.
//
// It holds at most one message, because one look at the outbox finds everything that is due:
// publishing to a bus that holds a message changes nothing. The bus ends with its process, and so
// do all its listeners.
package memory

import (
	"context"

	"tocsin/notify/bus"
)

// Driver carries messages within a process. It is safe for concurrent use.
type Driver struct{ messages chan []byte }

// New returns an empty bus.
func New() *Driver { return &Driver{messages: make(chan []byte, 1)} }

// Publish never blocks and never fails.
func (d *Driver) Publish(_ context.Context, payload []byte) error {
	select {
	case d.messages <- payload:
	default:
	}
	return nil
}

// Subscribe never fails. A message reaches only one of several subscriptions.
func (d *Driver) Subscribe(context.Context) (bus.Subscription, error) {
	return subscription{d.messages}, nil
}

type subscription struct{ messages <-chan []byte }

// Next waits for a message.
func (s subscription) Next(ctx context.Context) (bus.Batch, error) {
	select {
	case payload := <-s.messages:
		return bus.Batch{Payloads: [][]byte{payload}}, nil
	case <-ctx.Done():
		return bus.Batch{}, ctx.Err()
	}
}

// Close does nothing.
func (subscription) Close(context.Context) {}
