package notify

import (
	"context"
	"sync"
	"time"
)

// batcher makes one call of what several goroutines want done at the same time.
//
// Whoever finds nobody at work leads: it takes its own item and all that wait,
// makes the call, tells each its result, and passes the lead on to the first of
// those that have come meanwhile. So batches grow with the load, and a lone item
// is done at once, or after a moment where nobody waits for it. After a call that
// fails as a whole, each makes a call of its own, so that an item that cannot be
// done, or not soon, harms no other.
type batcher[T, R any] struct {
	// call returns one result for each item, in their order.
	call func(ctx context.Context, items []T) ([]R, error)
	// most bounds the items of a call, leaders the calls under way at once, and
	// timeout each call.
	most, leaders int
	timeout       time.Duration
	// linger is how long a call waits for more items; where they are announced, until
	// all have come, if that is sooner.
	linger time.Duration
	// here is told when all that was announced has come; nil where nothing is.
	here chan struct{}

	mu      sync.Mutex
	leading int
	// coming is how many items are known to come.
	coming  int
	waiting []*submission[T, R]
}

// submission is an item that waits for its result.
type submission[T, R any] struct {
	item   T
	result R
	err    error
	wake   chan turn
}

// turn is what the owner of a submission does next.
type turn int

const (
	// done has a result.
	done turn = iota
	// lead makes a call for itself and for others.
	lead
	// alone makes a call for itself.
	alone
)

// expect announces items, for which a call waits a moment.
func (b *batcher[T, R]) expect(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.coming += n
}

// gather waits for what is known to come, or for as long as calls linger.
func (b *batcher[T, R]) gather() {
	b.mu.Lock()
	coming := b.coming
	b.mu.Unlock()
	if coming == 0 && b.here != nil {
		return
	}
	timer := time.NewTimer(b.linger)
	defer timer.Stop()
	select {
	case <-b.here:
	case <-timer.C:
	}
}

// do returns the result of an item. It returns when its call has, whatever
// becomes of ctx, whose values alone are used.
func (b *batcher[T, R]) do(ctx context.Context, item T) (R, error) {
	own := &submission[T, R]{item: item, wake: make(chan turn, 1)}
	b.mu.Lock()
	if b.coming > 0 {
		if b.coming--; b.coming == 0 {
			select {
			case b.here <- struct{}{}:
			default:
			}
		}
	}
	if b.leading < b.leaders {
		b.leading++
		own.wake <- lead
	} else {
		b.waiting = append(b.waiting, own)
	}
	b.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	next := <-own.wake
	if next == lead {
		b.gather()
		next = b.lead(ctx, own)
	}
	if next == alone {
		b.fill(ctx, []*submission[T, R]{own})
	}
	return own.result, own.err
}

// lead makes one call, passes the lead on, and returns what all of the batch do next.
func (b *batcher[T, R]) lead(ctx context.Context, own *submission[T, R]) turn {
	b.mu.Lock()
	n := min(len(b.waiting), b.most-1)
	batch := append(append(make([]*submission[T, R], 0, 1+n), own), b.waiting[:n]...)
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	next := done
	if !b.fill(ctx, batch) && n > 0 {
		next = alone
	}
	b.mu.Lock()
	if len(b.waiting) > 0 {
		b.waiting[0].wake <- lead
		b.waiting = b.waiting[1:]
	} else {
		b.leading--
	}
	b.mu.Unlock()
	for _, s := range batch[1:] {
		s.wake <- next
	}
	return next
}

// fill makes one call, and tells whether it came to an end.
func (b *batcher[T, R]) fill(ctx context.Context, batch []*submission[T, R]) bool {
	items := make([]T, len(batch))
	for i, s := range batch {
		items[i] = s.item
	}
	results, err := b.bounded(ctx, items)
	for i, s := range batch {
		if s.err = err; err == nil {
			s.result = results[i]
		}
	}
	return err == nil
}

func (b *batcher[T, R]) bounded(ctx context.Context, items []T) ([]R, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return b.call(ctx, items)
}
