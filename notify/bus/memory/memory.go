// Package memory is the wake-up bus of a single process.
//
// It holds at most one wake-up, because one look at the outbox finds all that
// is due: publishing to a bus that already holds one changes nothing.
package memory

import (
	"context"

	"tocsin/notify"
)

// Bus carries wake-ups from an evaluator to a dispatcher of the same process.
// It is safe for concurrent use.
type Bus struct{ wakeUps chan notify.Signal }

// New returns an empty bus.
func New() *Bus { return &Bus{wakeUps: make(chan notify.Signal, 1)} }

// Publish never blocks and never fails.
func (b *Bus) Publish(_ context.Context, w notify.WakeUp) error {
	select {
	case b.wakeUps <- notify.Signal{WakeUp: w}:
	default:
	}
	return nil
}

// WakeUps is where a dispatcher listens. It is never closed.
func (b *Bus) WakeUps() <-chan notify.Signal { return b.wakeUps }
