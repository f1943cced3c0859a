package notify_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// running runs a dispatcher inside a bubble while f does its work.
func running(t *testing.T, d *notify.Dispatcher, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { d.Run(ctx) })
	synctest.Wait()
	f()
	cancel()
	ended.Wait()
}

// roomFor returns how many notifications there is room for, of which 4 may be called at once.
func roomFor(t *testing.T, d *notify.Dispatcher, webhook uuid.UUID, count int) int {
	t.Helper()
	r := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: webhook, MaxConcurrent: 4, Count: count}})
	defer r.HandOver(t.Context(), nil)
	return r.Room[webhook]
}

// oneByOne has their webhook take one message at a time.
func oneByOne(list []notify.Delivery) []notify.Delivery {
	for i := range list {
		list[i].Webhook.MaxConcurrent = 1
	}
	return list
}

func TestHandedOverIsSentWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{}
		c := &calls{takes: 10 * time.Millisecond}
		d := dispatcher(t, o, c, func(o *notify.Options) { o.Poll = time.Hour })
		running(t, d, func() {
			began := time.Now()
			r := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: id, MaxConcurrent: 4, Count: 200}})
			if r.Room[id] != 128 || r.Replica != "r" || r.Lease != 30*time.Second {
				t.Fatalf("reserved %+v, want 32 for each that may be under way", r)
			}
			if more := roomFor(t, d, id, 1); more != 0 {
				t.Errorf("room for %d more", more)
			}
			r.HandOver(t.Context(), deliveries(10, id, time.Minute))
			synctest.Wait()
			pass(5 * time.Millisecond) // what there was no room for is looked for
			if left := roomFor(t, d, id, 122); left != 122 {
				t.Errorf("room for %d, want all but for the 6 that wait for their calls", left)
			}
			time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
			synctest.Wait()
			if len(o.settled) != 10 || c.most != 4 {
				t.Errorf("%d settled, %d under way at once; want 10 and 4", len(o.settled), c.most)
			}
			if took := c.at[9].Sub(began); took > 30*time.Millisecond {
				t.Errorf("the last began after %v", took)
			}
		})
	})
}

func TestCallsThatWaitAreMadeWhenFewerMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(40, id, time.Minute), limits: notify.Limits{WebhookID: id, MaxConcurrent: 4}}
		oneByOne(o.due[20:])
		c := &calls{takes: 10 * time.Millisecond}
		running(t, dispatcher(t, o, c, nil), func() {
			time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
			synctest.Wait()
			if len(o.settled) != 40 || c.most != 4 {
				t.Errorf("%d settled, %d under way at once; want 40 and 4", len(o.settled), c.most)
			}
			if took := c.at[39].Sub(c.at[20]); took < 19*10*time.Millisecond {
				t.Errorf("the last 20 were called within %v, want one at a time", took)
			}
		})
	})
}

func TestNothingIsTakenOverFor(t *testing.T) {
	t.Run("a dispatcher that does not run", func(t *testing.T) {
		id := uuid.New()
		d := dispatcher(t, &outbox{}, &calls{}, nil)
		if n := roomFor(t, d, id, 1); n != 0 {
			t.Errorf("room for %d", n)
		}
	})
	t.Run("a receiver that does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			id := uuid.New()
			o := &outbox{}
			d := dispatcher(t, o, &calls{takes: time.Minute}, nil)
			running(t, d, func() {
				r := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: id, MaxConcurrent: 1, Count: 3}})
				r.HandOver(t.Context(), oneByOne(deliveries(3, id, 100*time.Millisecond)))
				time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
				synctest.Wait()
				if n := roomFor(t, d, id, 1); n != 0 {
					t.Errorf("room for %d", n)
				}
				o.mu.Lock()
				defer o.mu.Unlock()
				if len(o.settled) != 1 || len(o.released) != 2 {
					t.Errorf("%d settled, %d given back; want 1 and 2", len(o.settled), len(o.released))
				}
			})
		})
	})
	t.Run("a webhook for which older ones wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			id := uuid.New()
			o := &outbox{due: deliveries(50, id, time.Minute), limits: notify.Limits{WebhookID: id, MaxConcurrent: 4}}
			d := dispatcher(t, o, &calls{takes: 100 * time.Millisecond}, nil)
			running(t, d, func() {
				if n := roomFor(t, d, id, 1); n != 0 {
					t.Errorf("room for %d", n)
				}
				time.Sleep(10 * time.Second) //nolint:forbidigo // the time of the bubble
				synctest.Wait()
				if n := roomFor(t, d, id, 1); n != 1 {
					t.Errorf("room for %d after the others", n)
				}
			})
		})
	})
}

func TestHandedOverIsRenewedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{}
		d := dispatcher(t, o, &calls{takes: 900 * time.Millisecond}, func(o *notify.Options) { o.Lease = 600 * time.Millisecond })
		running(t, d, func() {
			r := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: id, MaxConcurrent: 1, Count: 2}})
			r.HandOver(t.Context(), oneByOne(deliveries(2, id, time.Minute)))
			time.Sleep(850 * time.Millisecond) //nolint:forbidigo // the time of the bubble
			synctest.Wait()
			if o.renewals != 4 {
				t.Errorf("%d renewals of a lease of 600 ms in 850 ms, want 4", o.renewals)
			}
		})
	})
}

func TestWhatWaitsIsGivenBackAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{}
		d := dispatcher(t, o, &calls{takes: 20 * time.Second}, nil)
		running(t, d, func() {
			r := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: id, MaxConcurrent: 1, Count: 3}})
			late := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: id, MaxConcurrent: 1, Count: 1}})
			r.HandOver(t.Context(), oneByOne(deliveries(3, id, time.Minute)))
			synctest.Wait()
			// A commit is under way when the dispatcher is told to end.
			go func() {
				pass(time.Second)
				if n := roomFor(t, d, id, 1); n != 0 {
					t.Errorf("room for %d in a dispatcher that ends", n)
				}
				late.HandOver(t.Context(), oneByOne(deliveries(1, id, time.Minute)))
			}()
		})
		if len(o.settled) != 1 || len(o.released) != 3 {
			t.Errorf("%d settled, %d given back; want 1 and 3, the late one among them", len(o.settled), len(o.released))
		}
	})
}

// TestABriskReceiversMessagesWait claims many messages at once for a receiver that
// answers at once, calls it no more often than it wants, and gives back what waits
// when it hangs.
func TestABriskReceiversMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(400, id, time.Minute), limits: notify.Limits{WebhookID: id, MaxConcurrent: 4}}
		c := &calls{takes: 10 * time.Millisecond}
		running(t, dispatcher(t, o, c, nil), func() {
			pass(500 * time.Millisecond)
			c.mu.Lock()
			c.takes = time.Minute
			if len(c.at) < 150 || c.most != 4 {
				t.Errorf("%d calls, %d at once; want 4 each 10 ms", len(c.at), c.most)
			}
			c.mu.Unlock()
			pass(3 * time.Second)
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.most < 16 || o.most > 28 {
				t.Errorf("%d claimed at once, want what 4 calls and those that wait for them need", o.most)
			}
			if under := 400 - len(o.due) - len(o.settled) - len(o.released); len(o.released) == 0 || under > 12 {
				t.Errorf("%d given back, %d of a receiver that hangs are still held", len(o.released), under)
			}
		})
	})
}

func TestAWebhookWithARateKeepsNothingWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		for name, limits := range map[string]notify.Limits{
			"a rate":  {WebhookID: id, MaxConcurrent: 4, RatePerSecond: 1000, Tokens: 1000},
			"digests": {WebhookID: id, MaxConcurrent: 4, Digests: true},
		} {
			o := &outbox{due: deliveries(100, id, time.Minute), limits: limits}
			run(dispatcher(t, o, &calls{takes: 10 * time.Millisecond}, nil), time.Second)
			if o.most > 12 {
				t.Errorf("%s: %d claimed at once, want no more than there are slots", name, o.most)
			}
		}
	})
}
