package notify

import (
	"context"
	"slices"
	"sync"
	"time"
)

// batcher makes one call of what many want done at about the same time.
//
// The first item that finds no call under way waits a moment for others, and what
// comes while a call is under way is for the next. So batches grow with the load.
// A second call is made beside the first when that takes long, or more waits than
// one takes. After a call that fails as a whole, each item has a call of its own,
// so that one that cannot be done, or not soon, harms no other.
type batcher[T, R any] struct {
	// call returns one result for each item, in their order.
	call func(ctx context.Context, items []T) ([]R, error)
	// spawn runs a function in a goroutine that the owner waits for.
	spawn func(f func())
	clock func() time.Time
	// most bounds the items of a call, and timeout each call.
	most    int
	timeout time.Duration
	// linger is how long items are gathered before a call.
	linger time.Duration

	mu      sync.Mutex
	calls   int
	began   time.Time
	waiting []submission[T, R]
}

// submission is an item, and what is done once its result is known.
type submission[T, R any] struct {
	item T
	done func(result R, err error)
}

// A call that takes longer than longCall is not waited for by others.
const longCall = 50 * time.Millisecond

// add has an item done, and calls done with what came of it, in a goroutine of its
// own. Only the values of ctx are used.
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

// do returns the result of an item.
func (b *batcher[T, R]) do(ctx context.Context, item T) (result R, err error) {
	ended := make(chan struct{})
	b.add(ctx, item, func(r R, e error) { result, err = r, e; close(ended) })
	<-ended
	return result, err
}

// work makes calls for as long as anything waits.
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

// few tells whether a call has room for more than what waits.
func (b *batcher[T, R]) few() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0 && len(b.waiting) < b.most
}

// take returns what the next call is for; with nothing, whoever asked has ended.
func (b *batcher[T, R]) take() []submission[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), b.most)
	if n == 0 {
		b.calls--
		return nil
	}
	batch := append(make([]submission[T, R], 0, n), b.waiting[:n]...)
	b.waiting = slices.Delete(b.waiting, 0, n) // what is done holds no memory
	b.began = b.clock()
	return batch
}

// fill makes one call, or one for each where that fails.
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

func (b *batcher[T, R]) bounded(ctx context.Context, items []T) ([]R, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return b.call(ctx, items)
}
