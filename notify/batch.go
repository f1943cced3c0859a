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
// those that have come meanwhile. So a lone item is done at once, and batches
// grow with the load, without a timer. A call that fails as a whole is made again
// for each item alone, so that one that cannot be done harms no other.
type batcher[T, R any] struct {
	// call returns one result for each item, in their order.
	call func(ctx context.Context, items []T) ([]R, error)
	// most bounds the items of a call, leaders the calls under way at once, and
	// timeout each call.
	most, leaders int
	timeout       time.Duration

	mu      sync.Mutex
	leading int
	waiting []*submission[T, R]
}

// submission is an item that waits for its result.
type submission[T, R any] struct {
	item   T
	result R
	err    error
	// wake tells whether to lead; else the result is there.
	wake chan bool
}

// do returns the result of an item. It returns when its call has, whatever
// becomes of ctx, whose values alone are used.
func (b *batcher[T, R]) do(ctx context.Context, item T) (R, error) {
	own := &submission[T, R]{item: item, wake: make(chan bool, 1)}
	b.mu.Lock()
	if b.leading < b.leaders {
		b.leading++
		own.wake <- true
	} else {
		b.waiting = append(b.waiting, own)
	}
	b.mu.Unlock()
	if <-own.wake {
		b.lead(context.WithoutCancel(ctx), own)
	}
	return own.result, own.err
}

// lead makes one call, and passes the lead on.
func (b *batcher[T, R]) lead(ctx context.Context, own *submission[T, R]) {
	b.mu.Lock()
	batch := append(make([]*submission[T, R], 0, 1+len(b.waiting)), own)
	n := min(len(b.waiting), b.most-1)
	batch = append(batch, b.waiting[:n]...)
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	b.fill(ctx, batch)
	b.mu.Lock()
	if len(b.waiting) > 0 {
		b.waiting[0].wake <- true
		b.waiting = b.waiting[1:]
	} else {
		b.leading--
	}
	b.mu.Unlock()
	for _, s := range batch[1:] {
		s.wake <- false
	}
}

// fill gets the results of a batch.
func (b *batcher[T, R]) fill(ctx context.Context, batch []*submission[T, R]) {
	items := make([]T, len(batch))
	for i, s := range batch {
		items[i] = s.item
	}
	results, err := b.bounded(ctx, items)
	if err == nil {
		for i, s := range batch {
			s.result = results[i]
		}
		return
	}
	if len(batch) == 1 {
		batch[0].err = err
		return
	}
	for _, s := range batch {
		b.fill(ctx, []*submission[T, R]{s})
	}
}

func (b *batcher[T, R]) bounded(ctx context.Context, items []T) ([]R, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return b.call(ctx, items)
}
