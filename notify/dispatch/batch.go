package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tocsin/internal/fault"
)

// batcher combines calls that are requested at about the same time into one.
//
// The first item waits a moment for others, if no call is under way. Items that come during a call
// are for the next one. So batches grow with the load. After a call that fails as a whole, each item
// gets a call of its own, so that an item that fails does not affect the others. Few of these calls
// are made at a time, beside those for batches, because each may take long and needs a connection.
type batcher[T, R any] struct {
	// call returns one result for each item, in their order.
	call func(ctx context.Context, items []T) ([]R, error)
	// spawn runs a function in a goroutine that the owner of the batcher waits for.
	spawn func(f func())
	// most bounds the items of a call; timeout bounds each call, and the wait for one of singles.
	most    int
	timeout time.Duration
	// linger is how long items are collected before a call.
	linger time.Duration
	// singles has room for the calls for one item after a failure.
	singles chan struct{}

	mu      sync.Mutex
	working bool
	waiting []submission[T, R]
}

// submission is an item, and the function to call with its result.
type submission[T, R any] struct {
	item T
	done func(result R, err error)
}

// add submits an item. done is called with its result in a goroutine of its own. Only the values of
// ctx are used.
func (b *batcher[T, R]) add(ctx context.Context, item T, done func(result R, err error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, submission[T, R]{item, done})
	if !b.working {
		b.working = true
		ctx := context.WithoutCancel(ctx)
		b.spawn(func() { b.work(ctx) })
	}
}

// alone makes a call for one item, beside the others: an item that waits long holds up none of them.
func (b *batcher[T, R]) alone(ctx context.Context, item T) (result R, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	select {
	case b.singles <- struct{}{}:
		defer func() { <-b.singles }()
	case <-ctx.Done():
		return result, fmt.Errorf("wait for other calls: %w", ctx.Err())
	}
	results, err := b.guarded(ctx, []T{item})
	if err != nil {
		return result, err
	}
	return results[0], nil
}

// work makes calls while items wait.
func (b *batcher[T, R]) work(ctx context.Context) {
	for {
		if b.few() {
			<-time.After(b.linger)
		}
		batch := b.take()
		if len(batch) == 0 {
			return
		}
		b.fill(ctx, batch)
	}
}

// few reports whether a call has room for more than the waiting items.
func (b *batcher[T, R]) few() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0 && len(b.waiting) < b.most
}

// take returns the items of the next call. If there are none, the calling worker ends.
func (b *batcher[T, R]) take() []submission[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), b.most)
	if n == 0 {
		b.working = false
		return nil
	}
	batch := append(make([]submission[T, R], 0, n), b.waiting[:n]...)
	b.waiting = slices.Delete(b.waiting, 0, n) // releases the memory of the items
	return batch
}

// fill makes one call. If it fails, a call for each item follows, unless it was for one.
func (b *batcher[T, R]) fill(ctx context.Context, batch []submission[T, R]) {
	items := make([]T, len(batch))
	for i := range batch {
		items[i] = batch[i].item
	}
	bounded, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	results, err := b.guarded(bounded, items)
	for i := range batch {
		s := batch[i]
		switch {
		case err == nil:
			s.done(results[i], nil)
		case len(batch) == 1:
			var none R
			s.done(none, err)
		default:
			b.spawn(func() { s.done(b.alone(ctx, s.item)) })
		}
	}
}

// guarded makes a call. A call that panics has failed.
func (b *batcher[T, R]) guarded(ctx context.Context, items []T) (results []R, err error) {
	err = fault.Guard(func() (err error) { results, err = b.call(ctx, items); return err })
	return results, err
}
