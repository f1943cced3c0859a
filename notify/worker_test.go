package notify_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// backlog runs a dispatcher named m that has found a receiver to be as quick as its calls,
// is idle for longer than it counts as at work, and finds a backlog. Then it runs f.
func backlog(t *testing.T, c *calls, limits notify.Limits, f func(h *heard, hook uuid.UUID)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hook := uuid.New()
		limits.WebhookID, limits.MaxConcurrent = hook, 4
		h := &heard{box: &outbox{limits: limits, due: deliveries(1, hook, time.Minute)}, calls: c, wakeUps: make(chan notify.Signal)}
		h.box.limits.Worker = ""
		h.looks = &looks{outbox: h.box}
		h.d = dispatcher(t, h.box, c, func(o *notify.Options) {
			o.Store, o.Poll, o.WakeUps, o.Replica = h.looks, time.Hour, h.wakeUps, "m"
		})
		running(t, h.d, func() {
			pass(10 * time.Second)
			h.box.mu.Lock()
			h.box.limits = limits
			h.box.due = deliveries(1000, hook, time.Minute)
			h.box.mu.Unlock()
			f(h, hook)
			h.box.mu.Lock()
			h.box.due = nil
			h.box.mu.Unlock()
			pass(time.Minute)
		})
	})
}

// hear has a wake-up tell of webhooks.
func (h *heard) hear(webhooks ...uuid.UUID) (left bool) {
	answered := make(chan bool, 1)
	h.wakeUps <- notify.Signal{WakeUp: notify.WakeUp{Webhooks: webhooks}, Claimed: func(left bool, _ error) { answered <- left }}
	left = <-answered
	synctest.Wait()
	return left
}

func TestABacklogIsLeftToItsWorker(t *testing.T) {
	const quick, second = 5 * time.Millisecond, time.Second
	for name, c := range map[string]struct {
		limits notify.Limits
		takes  time.Duration
		left   bool
	}{
		"another works":                      {limits: notify.Limits{Worker: "a"}, takes: quick, left: true},
		"another works, later by its name":   {limits: notify.Limits{Worker: "z"}, takes: quick, left: true},
		"nobody works":                       {takes: quick},
		"this one works":                     {limits: notify.Limits{Worker: "m"}, takes: quick},
		"the receiver is not known as quick": {limits: notify.Limits{Worker: "a"}, takes: second / 10},
		"the receiver is slow":               {limits: notify.Limits{Worker: "a"}, takes: 2 * second},
		"there is a rate":                    {limits: notify.Limits{Worker: "a", RatePerSecond: 1000, Tokens: 1000}, takes: quick},
		"there are digests":                  {limits: notify.Limits{Worker: "a", Digests: true}, takes: quick},
		"it is a probe":                      {limits: notify.Limits{Worker: "a", Probe: true}, takes: quick},
	} {
		t.Run(name, func(t *testing.T) {
			backlog(t, &calls{takes: c.takes}, c.limits, func(h *heard, hook uuid.UUID) {
				told := h.hear(hook)
				if _, settled := h.settledAfter(3 * second); (settled == 1) != c.left {
					t.Errorf("%d are settled, want the first alone: %v", settled, c.left)
				}
				if c.left && !told {
					t.Error("the wake-up was not passed on")
				}
			})
		})
	}
}

// settledAfter tells how many looks there were in a while, and how many messages are settled.
func (h *heard) settledAfter(while time.Duration) (looks, settled int) {
	before, _ := h.so()
	pass(while)
	looks, settled = h.so()
	return looks - before, settled
}

// TestWhatIsLeftIsLookedAtEachSecond has wake-ups tell of a backlog that is left to
// another, and then that one be heard of no longer.
func TestWhatIsLeftIsLookedAtEachSecond(t *testing.T) {
	backlog(t, &calls{takes: 5 * time.Millisecond}, notify.Limits{Worker: "a"}, func(h *heard, hook uuid.UUID) {
		h.hear(hook)
		before, _ := h.so()
		for range 100 {
			if !h.hear(hook) {
				t.Error("a wake-up was not passed on")
			}
		}
		if looks, _ := h.so(); looks != before {
			t.Errorf("%d looks by wake-ups for what is left to another", looks-before)
		}
		if room := roomFor(t, h.d, hook, 1); room > 0 {
			t.Error("messages are handed over before those that another works on")
		}
		if looks, settled := h.settledAfter(10500 * time.Millisecond); looks != 10 || settled != 1 {
			t.Errorf("%d looks in 10 s, %d settled; want one each second, and nothing settled", looks, settled)
		}
		h.box.mu.Lock()
		h.box.limits.Worker = ""
		h.box.mu.Unlock()
		if _, settled := h.settledAfter(1500 * time.Millisecond); settled < 2 {
			t.Error("nothing is claimed a second after nobody works any more")
		}
	})
}

// TestWhatIsLeftForLongIsShared has another be at work for longer than half a minute.
func TestWhatIsLeftForLongIsShared(t *testing.T) {
	backlog(t, &calls{takes: 5 * time.Millisecond}, notify.Limits{Worker: "a"}, func(h *heard, hook uuid.UUID) {
		h.hear(hook)
		if _, settled := h.settledAfter(29 * time.Second); settled != 1 {
			t.Errorf("%d are settled after 29 s, want the first alone", settled)
		}
		if _, settled := h.settledAfter(5 * time.Second); settled != 1001 {
			t.Errorf("%d are settled, want all 1,001: after half a minute the work is shared to its end", settled)
		}
		// What comes then is left to others again.
		h.box.mu.Lock()
		h.box.due = deliveries(100, hook, time.Minute)
		h.box.mu.Unlock()
		pass(3 * time.Second)
		h.hear()
		if _, settled := h.settledAfter(10 * time.Second); settled != 1001 {
			t.Errorf("%d are settled, want no more than 1,001", settled)
		}
	})
}

// TestOneOfThoseAtWorkGoesOn has two be at work on a backlog. The first by name goes on.
func TestOneOfThoseAtWorkGoesOn(t *testing.T) {
	for other, goesOn := range map[string]bool{"a": false, "z": true} {
		t.Run(other, func(t *testing.T) {
			backlog(t, &calls{takes: 5 * time.Millisecond}, notify.Limits{}, func(h *heard, hook uuid.UUID) {
				h.hear(hook)
				pass(50 * time.Millisecond)
				h.box.mu.Lock()
				before := len(h.box.due)
				h.box.limits.Worker = other
				h.box.mu.Unlock()
				pass(500 * time.Millisecond)
				h.box.mu.Lock()
				defer h.box.mu.Unlock()
				if took := before - len(h.box.due); (took > 0) != goesOn {
					t.Errorf("it took %d more of %d, want it to go on: %v", took, before, goesOn)
				}
			})
		})
	}
}
