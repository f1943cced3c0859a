package notify_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// burst is a dispatcher in the middle of one.
type burst struct {
	*testing.T

	d  *notify.Dispatcher
	id uuid.UUID
}

// takingAll has a dispatcher that runs be handed as much as it takes of a webhook,
// whose receiver has answered once, and then f do its work.
func takingAll(t *testing.T, c *calls, f func(b burst)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, &outbox{}, c, func(o *notify.Options) { o.Poll = time.Hour })
		running(t, d, func() {
			id := uuid.New()
			for _, n := range []int{1, 128} {
				r := reserve(t, d, id, n)
				if r.Room[id] != n {
					t.Errorf("room for %d, want %d", r.Room[id], n)
				}
				r.HandOver(t.Context(), deliveries(n, id, time.Minute))
				synctest.Wait()
				if n == 1 {
					pass(time.Second)
				}
			}
			f(burst{t, d, id})
			pass(time.Minute)
		})
	})
}

// reserving returns how many of 100 there is room for, and how long that took.
func (b *burst) reserving(ctx context.Context) (room int, took time.Duration) {
	began := time.Now()
	r := b.d.Reserve(ctx, []notify.Wanted{{WebhookID: b.id, MaxConcurrent: 4, Count: 100}})
	defer r.HandOver(ctx, nil)
	return r.Room[b.id], time.Since(began)
}

func TestACommitWaitsForRoomThatSoonIsThere(t *testing.T) {
	takingAll(t, &calls{takes: time.Millisecond}, func(b burst) {
		if room, took := b.reserving(b.Context()); room != 100 || took <= 0 || took > 100*time.Millisecond {
			b.Errorf("room for %d after %v, want 100 as soon as there is", room, took)
		}
	})
}

func TestACommitWaitsForNoRoomAtAReceiverThatIsSlow(t *testing.T) {
	takingAll(t, &calls{takes: 100 * time.Millisecond}, func(b burst) {
		if room, took := b.reserving(b.Context()); room >= 100 || took != 0 {
			b.Errorf("room for %d after %v, want what there is at once", room, took)
		}
	})
}

// What is more than there ever is room for is not waited for.
func TestACommitWaitsForNoRoomThatNeverIs(t *testing.T) {
	takingAll(t, &calls{takes: time.Millisecond}, func(b burst) {
		began := time.Now()
		r := b.d.Reserve(b.Context(), []notify.Wanted{{WebhookID: b.id, MaxConcurrent: 4, Count: 129}})
		if took := time.Since(began); r.Room[b.id] >= 100 || took != 0 {
			b.Errorf("room for %d after %v, want what there is at once", r.Room[b.id], took)
		}
		r.HandOver(b.Context(), nil)
	})
}

// A receiver that answers no more holds no commit for longer than a quarter of a second.
func TestACommitWaitsForAWhile(t *testing.T) {
	c := &calls{takes: time.Millisecond}
	takingAll(t, c, func(b burst) {
		c.mu.Lock()
		c.takes = 30 * time.Second
		c.mu.Unlock()
		if room, took := b.reserving(b.Context()); room >= 100 || took != 250*time.Millisecond {
			b.Errorf("room for %d after %v, want what there is after 250ms", room, took)
		}
	})
}

// Nor does it wait beyond its context, or for a dispatcher that ends.
func TestACommitWaitsNoLongerThanItsDispatcher(t *testing.T) {
	c := &calls{takes: time.Millisecond}
	takingAll(t, c, func(b burst) {
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Millisecond)
		defer cancel()
		if room, took := b.reserving(ctx); room >= 100 || took != 2*time.Millisecond {
			b.Errorf("room for %d after %v, want what there is after 2ms", room, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, &outbox{}, c, func(o *notify.Options) { o.Poll = time.Hour })
		id, took := uuid.New(), make(chan time.Duration, 1)
		running(t, d, func() {
			for _, n := range []int{1, 128} {
				r := reserve(t, d, id, n)
				r.HandOver(t.Context(), deliveries(n, id, time.Minute))
				pass(time.Duration(129-n) * time.Millisecond)
			}
			go func() {
				b := burst{t, d, id}
				_, waited := b.reserving(t.Context())
				took <- waited
			}()
			synctest.Wait()
		})
		if waited := <-took; waited > 20*time.Millisecond {
			t.Errorf("waited for %v for a dispatcher that ends", waited)
		}
	})
}
