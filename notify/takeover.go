package notify

import (
	"context"
	"slices"
	"sync"
	"time"
)

// takeOverAll begins attempts at what waits at the desk as slots become free, and
// says when it is time to claim more. A look that finds too few slots is not made
// again at once.
func (d *Dispatcher) takeOverAll(ctx context.Context) {
	// A slot also becomes free by a call that takes long.
	again := time.NewTimer(patience)
	defer again.Stop()
	freed := d.freed
	var gathered <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.desk.came:
			d.takeOver(ctx)
		case <-again.C:
			d.takeOver(ctx)
			again.Reset(patience)
		case <-gathered:
			freed, gathered = d.freed, nil
		case <-freed:
			took, left := d.takeOver(ctx)
			if d.desk.hungry() {
				signal(d.hungry)
			}
			if left && !took {
				freed, gathered = nil, time.After(linger/4)
			}
		}
	}
}

// takeOver begins attempts at what waits at the desk, as far as there are slots, and
// reports whether some of it is left.
func (d *Dispatcher) takeOver(ctx context.Context) (took, left bool) {
	d.mu.Lock()
	enough := 1
	if d.beginning > 0 {
		enough = many
	}
	d.mu.Unlock()
	ready, left := d.desk.take(ctx, enough, d.Clock())
	for chunk := range slices.Chunk(d.enter(ctx, ready), maxBatch) {
		d.beginBeside(ctx, chunk)
	}
	return len(ready) > 0, left
}

// beginBeside begins attempts while more are gathered. One that takes long is not
// waited for.
func (d *Dispatcher) beginBeside(ctx context.Context, entries []*entry) {
	ctx = context.WithoutCancel(ctx)
	d.count(1)
	ended := sync.OnceFunc(func() {
		d.count(-1)
		signal(d.freed)
	})
	long := time.AfterFunc(longCall, ended)
	d.underWay.Go(func() {
		defer ended()
		defer long.Stop()
		d.begin(ctx, entries)
	})
}

func (d *Dispatcher) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beginning += n
}
