package dispatch_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// fleet is a store in memory with an endless backlog for each of its webhooks,
// and their receivers.
type fleet struct {
	mu    sync.Mutex
	hooks []*hook
}

// hook is a webhook and its receiver.
type hook struct {
	limits dispatch.Due
	takes  time.Duration
	// waiting is the number of queued messages; rate is the state of the rate limit.
	waiting   int
	tokens    float64
	since     time.Time
	busy      int
	begun     []time.Time
	delivered int
}

func (f *fleet) hook(waiting int, takes time.Duration) *hook {
	h := &hook{waiting: waiting, takes: takes, limits: dispatch.Due{WebhookID: uuid.New(), MaxConcurrent: notify.DefaultMaxConcurrent}}
	f.hooks = append(f.hooks, h)
	return h
}

func (f *fleet) find(id uuid.UUID) *hook {
	for _, h := range f.hooks {
		if h.limits.WebhookID == id {
			return h
		}
	}
	return nil
}

// Claim hands out what is queued. Tokens of a rate return with time.
func (f *fleet) Claim(_ context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var due []dispatch.Due
	for _, h := range f.hooks {
		if h.waiting == 0 {
			continue
		}
		if rate := h.limits.RatePerSecond; rate > 0 {
			h.tokens = min(1, h.tokens+time.Since(h.since).Seconds()*rate)
			h.since = time.Now()
			h.limits.Tokens = h.tokens
		}
		due = append(due, h.limits)
	}
	var claimed []notify.Delivery
	for _, room := range r.Deal(due) {
		h := f.find(room.WebhookID)
		for range min(room.Slots, h.waiting) {
			h.waiting--
			h.tokens--
			d := notify.Delivery{NotificationID: uuid.New(), Attempt: 1}
			d.Webhook.ID, d.Webhook.Timeout, d.Webhook.MaxConcurrent = room.WebhookID, time.Minute, h.limits.MaxConcurrent
			claimed = append(claimed, d)
		}
	}
	return dispatch.Claimed{Deliveries: claimed}, nil
}

func (f *fleet) Renew(_ context.Context, held []dispatch.Held, lease time.Duration) (map[dispatch.Held]time.Duration, error) {
	return renewed(held, lease), nil
}

func (f *fleet) Settle(_ context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	return make([]dispatch.Settled, len(settlements)), nil
}

func (f *fleet) Render(*notify.Delivery) (notify.Body, error) { return notify.Body{}, nil }

func (f *fleet) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	return waiting(ctx, d, func(ctx context.Context) notify.Outcome { return f.send(ctx, d) })
}

func (f *fleet) send(ctx context.Context, d *notify.Delivery) (outcome notify.Outcome) {
	f.mu.Lock()
	h := f.find(d.Webhook.ID)
	h.busy++
	h.begun = append(h.begun, time.Now())
	f.mu.Unlock()
	select {
	case <-time.After(h.takes):
		outcome.Verdict = notify.VerdictDelivered
	case <-ctx.Done():
		outcome.Verdict = notify.VerdictRetry
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h.busy--
	if outcome.Verdict == notify.VerdictDelivered {
		h.delivered++
	}
	return outcome
}

// underWay counts the attempts of all webhooks.
func (f *fleet) underWay() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, h := range f.hooks {
		n += h.busy
	}
	return n
}

// arrived counts what a webhook has received.
func (f *fleet) arrived(h *hook) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.delivered
}

// add adds queued messages.
func (f *fleet) add(h *hook, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.waiting += n
}

// during runs a dispatcher while f runs.
func (f *fleet) during(t *testing.T, do func()) {
	t.Helper()
	d, err := dispatch.New(dispatch.Options{
		Store: f, Renderer: f, Sender: f, Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Replica: "r", Slots: 64,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { d.Run(ctx) })
	do()
	cancel()
	ended.Wait()
}

func TestRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		h := f.hook(10, 0)
		h.limits.RatePerSecond, h.tokens, h.since = 1, 1, time.Now()
		f.during(t, func() { pass(30 * time.Second) })
		if len(h.begun) != 10 {
			t.Fatalf("%d calls, want 10", len(h.begun))
		}
		for i := 1; i < len(h.begun); i++ {
			if gap := h.begun[i].Sub(h.begun[i-1]); gap < 990*time.Millisecond || gap > 1100*time.Millisecond {
				t.Errorf("call %d came %v after the one before", i, gap)
			}
		}
	})
}

func TestProbeGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		h := f.hook(10, time.Hour)
		h.limits.Probe = true
		f.during(t, func() {
			synctest.Wait()
			if n := f.underWay(); n != 1 {
				t.Errorf("%d calls at once, want the probe alone", n)
			}
		})
	})
}

// TestSlowReceiversLeaveSlotsToTheOthers has more hanging webhooks than slots, each with an endless
// backlog, and one that responds in 5 ms.
func TestSlowReceiversLeaveSlotsToTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		hanging int
		// settled is the time until nothing waits for slow receivers at first.
		settled time.Duration
	}{
		"nine, whose shares are more than all slots": {9, 2 * time.Second},
		"a hundred": {100, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{}
				for range c.hanging {
					f.hook(10_000, 30*time.Second)
				}
				healthy := f.hook(1, 5*time.Millisecond)
				f.during(t, func() {
					pass(c.settled)
					if f.arrived(healthy) != 1 {
						t.Errorf("the first message of the healthy webhook waits for longer than %v", c.settled)
					}
					for range 300 {
						f.add(healthy, 1)
						pass(time.Second + 10*time.Millisecond)
						if n := f.underWay(); n > 3*64+64 {
							t.Fatalf("%d attempts under way", n)
						}
					}
					if f.arrived(healthy) < 300 {
						t.Errorf("%d of 300 delivered", f.arrived(healthy))
					}
				})
				// The slow ones are not starved either: each makes progress in its turn.
				for i, h := range f.hooks[:c.hanging] {
					if len(h.begun) < 2 {
						t.Errorf("slow webhook %d was called %d times in five minutes", i, len(h.begun))
					}
				}
			})
		})
	}
}

// TestReceiversThatBeginToHangStopNobody lets webhooks that were quick hang all at once.
func TestReceiversThatBeginToHangStopNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		for range 20 {
			f.hook(8, time.Millisecond)
		}
		healthy := f.hook(1, 5*time.Millisecond)
		f.during(t, func() {
			pass(5 * time.Second)
			f.mu.Lock()
			for _, h := range f.hooks[:20] {
				h.takes = 30 * time.Second
			}
			f.mu.Unlock()
			for _, h := range f.hooks[:20] {
				f.add(h, 1000)
			}
			pass(1100 * time.Millisecond)
			f.add(healthy, 10)
			pass(3 * time.Second)
			if f.arrived(healthy) != 11 {
				t.Errorf("%d of 11 delivered while others hang", f.arrived(healthy))
			}
			if n := f.underWay(); n < 64 {
				t.Errorf("%d attempts hang; want as many as there are slots, or nothing was tried here", n)
			}
			pass(20 * time.Second)
		})
	})
}

// TestSlowWebhooksShareHalf counts the running attempts of slow webhooks once they are known to be
// slow.
func TestSlowWebhooksShareHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{}
		for range 30 {
			f.hook(10_000, 30*time.Second)
		}
		f.during(t, func() {
			pass(5 * time.Minute)
			if n := f.underWay(); n > 32 {
				t.Errorf("slow webhooks have %d attempts under way, want 32 at most", n)
			}
		})
	})
}
