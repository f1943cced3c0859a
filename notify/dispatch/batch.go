package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"tocsin/internal/fault"
)

// batcher combines calls that are requested at about the same time into one.
//
// The first item waits a moment for others, if no call is under way. Items that come during a call
// are for the next one. So batches grow with the load. If a call takes long, or more items wait
// than one call takes, a second call is made at the same time. After a call that fails as a whole,
// each item gets a call of its own, so that an item that fails or is slow does not affect the
// others.
type batcher[T, R any] struct {
	// call returns one result for each item, in their order.
	call func(ctx context.Context, items []T) ([]R, error)
	// spawn runs a function in a goroutine that the owner of the batcher waits for.
	spawn func(f func())
	clock func() time.Time
	// most bounds the items of a call; timeout bounds each call.
	most    int
	timeout time.Duration
	// linger is how long items are collected before a call.
	linger time.Duration

	mu      sync.Mutex
	calls   int
	began   time.Time
	waiting []submission[T, R]
}

// submission is an item, and the function to call with its result.
type submission[T, R any] struct {
	item T
	done func(result R, err error)
}

// Other items do not wait for a call that takes longer than longCall.
const longCall = 50 * time.Millisecond

// add submits an item. done is called with its result in a goroutine of its own. Only the values of
// ctx are used.
func (b *batcher[T, R]) add(ctx context.Context, item T, done func(result R, err error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, submission[T, R]{item, done})
	if b.calls == 0 || b.calls == 1 && (len(b.waiting) >= b.most || b.clock().Sub(b.began) > longCall) {
		b.calls++
		b.began = b.clock()
		ctx := context.WithoutCancel(ctx)
		b.spawn(func() { b.work(ctx) })
	}
}

// alone makes a call for one item, beside the others: an item that waits long holds up none of them.
func (b *batcher[T, R]) alone(ctx context.Context, item T) (result R, err error) {
	results, err := b.bounded(ctx, []T{item})
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
		b.calls--
		return nil
	}
	batch := append(make([]submission[T, R], 0, n), b.waiting[:n]...)
	b.waiting = slices.Delete(b.waiting, 0, n) // releases the memory of the items
	b.began = b.clock()
	return batch
}

// fill makes one call. If it fails, fill makes one call for each item.
func (b *batcher[T, R]) fill(ctx context.Context, batch []submission[T, R]) {
	items := make([]T, len(batch))
	for i := range batch {
		items[i] = batch[i].item
	}
	results, err := b.bounded(ctx, items)
	for i := range batch {
		s := batch[i]
		switch {
		case err == nil:
			s.done(results[i], nil)
		case len(batch) == 1:
			var none R
			s.done(none, err)
		default:
			b.spawn(func() { b.fill(ctx, []submission[T, R]{s}) })
		}
	}
}

// bounded makes a call. A call that panics has failed.
func (b *batcher[T, R]) bounded(ctx context.Context, items []T) (results []R, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	err = fault.Guard(func() (err error) { results, err = b.call(ctx, items); return err })
	return results, err
}
