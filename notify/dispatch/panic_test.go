package dispatch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// buggy is a store, a clock and an observer. What is armed panics once.
type buggy struct {
	*outbox

	// clock panics at its next call, unknown when an attempt begins after one without an outcome. claimed arms the clock
	// when a claim has ended.
	clock, unknown, claimed atomic.Bool
}

func (b *buggy) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	claimed, err := b.outbox.Claim(ctx, r)
	b.clock.CompareAndSwap(false, b.claimed.CompareAndSwap(true, false))
	return claimed, err
}

func (b *buggy) now() time.Time {
	if b.clock.CompareAndSwap(true, false) {
		panic("poison")
	}
	return time.Now()
}

func (b *buggy) Unknown() {
	if b.unknown.CompareAndSwap(true, false) {
		panic("poison")
	}
}

func (*buggy) Attempted(notify.Verdict) {}
func (*buggy) Fenced()                  {}
func (*buggy) Unapplied()               {}

// TestAPassThatPanicsLeavesNothingBehind has bugs around a claim. Who sent the wake-up gets an answer, the dispatcher goes on,
// and every attempt that has begun ends: no lease is renewed and no slot is taken after that.
func TestAPassThatPanicsLeavesNothingBehind(t *testing.T) {
	for name, c := range map[string]struct {
		arm func(b *buggy)
		// failed says that the answer is an error; settled are the messages of the first claim that are settled.
		failed  bool
		settled int
	}{
		"before the pass":                {func(b *buggy) { b.clock.Store(true) }, true, 3},
		"in the pass, after the claim":   {func(b *buggy) { b.claimed.Store(true) }, true, 0},
		"when the second attempt begins": {func(b *buggy) { b.unknown.Store(true) }, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id := uuid.New()
				b := &buggy{outbox: &outbox{limits: dispatch.Due{WebhookID: id, MaxConcurrent: 4}}}
				wakeUps := make(chan notify.Signal)
				d := dispatcher(t, b.outbox, &calls{takes: time.Second}, func(o *dispatch.Options) {
					o.Store, o.Observer, o.Clock, o.WakeUps, o.Slots = b, b, b.now, wakeUps, 3
				})
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				ended.Go(func() {
					for ctx.Err() == nil { // as the app keeps its loops
						if err := fault.Guard(func() error { d.Run(ctx); return nil }); err != nil {
							<-time.After(time.Second)
						}
					}
				})
				synctest.Wait()
				wake := func() error {
					b.mu.Lock()
					b.due = deliveries(3, id, time.Minute)
					b.due[1].AfterUnknown = true
					b.mu.Unlock()
					answers := make(chan error, 2)
					wakeUps <- notify.Signal{WakeUp: notify.WakeUp{Webhooks: []uuid.UUID{id}}, Claimed: func(_ bool, err error) { answers <- err }}
					pass(10 * time.Second)
					if len(answers) != 1 {
						t.Fatalf("%d answers, want one", len(answers))
					}
					return <-answers
				}
				c.arm(b)
				if err := wake(); (err != nil) != c.failed {
					t.Errorf("the answer is %v, want an error: %v", err, c.failed)
				}
				first := len(b.settled)
				if first != c.settled {
					t.Errorf("%d of the first messages are settled, want %d", first, c.settled)
				}
				if err := wake(); err != nil || len(b.settled) != first+3 {
					t.Errorf("later %d messages are settled (%v), want all 3", len(b.settled)-first, err)
				}
				renewals := b.renewals
				if pass(time.Minute); b.renewals != renewals {
					t.Errorf("%d renewals after the last attempt, want none", b.renewals-renewals)
				}
				cancel()
				ended.Wait()
			})
		})
	}
}

// answers is a sender that returns an outcome, or panics.
type answers struct{ outcome *notify.Outcome }

func (a answers) Send(context.Context, *notify.Delivery) notify.Outcome { return *a.outcome }

// TestAPanicChangesNoKnownOutcome has a bug in the schedule of the receiver. Everything else that follows from the outcome
// is stored, and a call that panicked itself is a failure like a timeout.
func TestAPanicChangesNoKnownOutcome(t *testing.T) {
	place, reference := notify.Posted{Channel: "c", TS: "1"}, "key"
	for name, c := range map[string]struct {
		outcome  *notify.Outcome
		verdict  notify.Verdict
		decision notify.Decision
		failures int
		posted   bool
	}{
		"delivered": {
			&notify.Outcome{Verdict: notify.VerdictDelivered, Posted: &place, Reference: &reference},
			notify.VerdictDelivered,
			notify.Decision{Status: notify.Delivered, Counts: true},
			0, true,
		},
		"refused":  {&notify.Outcome{Verdict: notify.VerdictRefused}, notify.VerdictRefused, notify.Decision{Status: notify.Failed, Counts: true}, 0, false},
		"panicked": {nil, notify.VerdictRetry, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id := uuid.New()
				o := &outbox{due: deliveries(1, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 4}}
				o.due[0].Reason = notify.ReasonFired
				d := dispatcher(t, o, nil, func(o *dispatch.Options) {
					o.Sender, o.Schedule = answers{c.outcome}, func(*notify.Webhook) notify.Schedule { panic("poison") }
				})
				if _, err := d.Tick(t.Context()); err != nil || len(o.settled) != 1 {
					t.Fatalf("%d settled, %v", len(o.settled), err)
				}
				s := o.settled[0]
				if s.Outcome.Verdict != c.verdict || s.Outcome.NothingSent || s.Decision != c.decision {
					t.Errorf("outcome %+v and decision %+v, want %v and %+v", s.Outcome, s.Decision, c.verdict, c.decision)
				}
				if (s.Message != nil) != c.posted || (s.Reference != nil) != c.posted {
					t.Errorf("message %v and reference %v, want them: %v", s.Message, s.Reference, c.posted)
				}
				if s.Breaker == nil {
					t.Fatal("the breaker sees nothing of the outcome")
				}
				if got := s.Breaker(notify.Breaker{Failures: 4}, true, time.Now()); got.Failures != c.failures {
					t.Errorf("%d failures after 4, want %d", got.Failures, c.failures)
				}
			})
		})
	}
}
