package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// looks counts the looks at the outbox.
type looks struct {
	*outbox
	at []time.Time
	// takes is how long a look takes.
	takes time.Duration
}

func (l *looks) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	l.mu.Lock()
	l.at = append(l.at, time.Now())
	takes := l.takes
	l.mu.Unlock()
	claimed, err := l.outbox.Claim(ctx, r)
	<-time.After(takes)
	return claimed, err
}

func TestThePauseEndsWithTheFirstRowThatBecomesDue(t *testing.T) {
	for _, test := range []struct {
		name       string
		next       time.Duration
		err        error
		gap, while time.Duration
	}{
		{name: "nothing is known", gap: 30 * time.Second, while: 95 * time.Second},
		{name: "a row becomes due", next: 7 * time.Second, gap: 7 * time.Second, while: 25 * time.Second},
		{name: "a row becomes due after the poll", next: time.Hour, gap: 30 * time.Second, while: 95 * time.Second},
		{name: "a row becomes due at once", next: time.Microsecond, gap: time.Millisecond, while: 4 * time.Millisecond},
		{name: "the store is away", err: errors.New("away"), gap: time.Second, while: 4 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &looks{outbox: &outbox{next: test.next, claimErr: test.err}}
				d := dispatcher(t, l.outbox, &calls{}, func(o *dispatch.Options) { o.Store, o.Poll = l, 30*time.Second })
				run(d, test.while)
				if len(l.at) < 4 {
					t.Fatalf("%d looks in %v", len(l.at), test.while)
				}
				for i := 1; i < len(l.at); i++ {
					if gap := l.at[i].Sub(l.at[i-1]); gap != test.gap {
						t.Errorf("look %d came %v after the one before, want %v", i, gap, test.gap)
					}
				}
			})
		})
	}
}

func TestASignalIsAnsweredWhenItsPassHasClaimed(t *testing.T) {
	id := uuid.New()
	for _, test := range []struct {
		name  string
		due   int
		limit dispatch.Due
		err   error
		left  bool
	}{
		{name: "nothing is due", limit: dispatch.Due{MaxConcurrent: 4}},
		{name: "all is taken", due: 3, limit: dispatch.Due{MaxConcurrent: 4}},
		{name: "there is no room for all", due: 5, limit: dispatch.Due{MaxConcurrent: 4}, left: true},
		{name: "a rate holds the rest back", due: 5, limit: dispatch.Due{MaxConcurrent: 4, RatePerSecond: 1, Tokens: 1}},
		{name: "the store is away", due: 5, limit: dispatch.Due{MaxConcurrent: 4}, err: errors.New("away")},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.limit.WebhookID = id
				o := &outbox{limits: test.limit, claimErr: test.err}
				wakeUps := make(chan notify.Signal)
				d := dispatcher(t, o, &calls{takes: time.Minute}, func(o *dispatch.Options) { o.Poll, o.WakeUps = time.Hour, wakeUps })
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { d.Run(ctx); close(ended) }()
				synctest.Wait()
				o.mu.Lock()
				o.due = deliveries(test.due, id, time.Minute)
				o.mu.Unlock()
				type answer struct {
					left bool
					err  error
				}
				answers := make(chan answer, 3)
				wake := func() answer {
					wakeUps <- notify.Signal{Claimed: func(left bool, err error) { answers <- answer{left, err} }}
					synctest.Wait()
					if len(answers) != 1 {
						t.Fatalf("%d answers, want one", len(answers))
					}
					return <-answers
				}
				if got := wake(); got.left != test.left || !errors.Is(got.err, test.err) {
					t.Errorf("answer %+v, want left %v and error %v", got, test.left, test.err)
				}
				// What a rate holds back here must not be claimed by others either.
				if got := wake(); test.limit.RatePerSecond > 0 && got.left {
					t.Errorf("answer %+v while the rate holds all back", got)
				}
				cancel()
				<-ended
			})
		})
	}
}

// heard is a dispatcher that runs on a model of the outbox, with a record of its looks.
type heard struct {
	box     *outbox
	looks   *looks
	calls   *calls
	d       *dispatch.Dispatcher
	wakeUps chan notify.Signal
}

// hears runs a dispatcher that polls once an hour, in a bubble, while f runs.
func hears(t *testing.T, c *calls, f func(h *heard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &heard{box: &outbox{}, calls: c, wakeUps: make(chan notify.Signal)}
		h.looks = &looks{outbox: h.box}
		h.d = dispatcher(t, h.box, c, func(o *dispatch.Options) { o.Store, o.Poll, o.WakeUps = h.looks, time.Hour, h.wakeUps })
		running(t, h.d, func() {
			synctest.Wait()
			f(h)
			synctest.Wait()
		})
	})
}

// add puts messages of a webhook into the outbox, and sends a wake-up for them.
func (h *heard) add(list []notify.Delivery, webhooks ...uuid.UUID) (left bool) {
	h.box.mu.Lock()
	h.box.due = append(h.box.due, list...)
	h.box.limits = dispatch.Due{WebhookID: list[0].Webhook.ID, MaxConcurrent: 4}
	h.box.mu.Unlock()
	answered := make(chan bool, 1)
	h.wakeUps <- notify.Signal{
		WakeUp:  notify.WakeUp{Notifications: len(list), Webhooks: webhooks},
		Claimed: func(left bool, _ error) { answered <- left },
	}
	left = <-answered
	synctest.Wait()
	return left
}

// so returns how many looks there were, and how many messages are settled.
func (h *heard) so() (looks, settled int) {
	h.box.mu.Lock()
	defer h.box.mu.Unlock()
	return len(h.looks.at), len(h.box.settled)
}

func TestNothingIsLookedForWithoutRoom(t *testing.T) {
	hook := uuid.New()
	hears(t, &calls{takes: 10 * time.Second}, func(h *heard) {
		h.add(deliveries(4, hook, time.Minute), hook)
		before, _ := h.so()
		for range 20 {
			if left := h.add(deliveries(1, hook, time.Minute), hook); !left {
				t.Error("a wake-up for a webhook without room was not passed on")
			}
		}
		if looks, _ := h.so(); looks != before {
			t.Errorf("%d looks for a webhook without room", looks-before)
		}
		// Everything that arrived meanwhile is claimed as soon as there are free slots.
		pass(61 * time.Second)
		if _, settled := h.so(); settled != 24 {
			t.Errorf("%d of 24 messages are settled", settled)
		}
	})
}

func TestAWakeUpIsHeard(t *testing.T) {
	full, other := uuid.New(), uuid.New()
	for name, webhooks := range map[string][]uuid.UUID{
		"for webhooks that are not known":          nil,
		"for a webhook of which nothing was heard": {other},
		"for several of which one has room":        {full, other},
	} {
		t.Run(name, func(t *testing.T) {
			hears(t, &calls{takes: time.Minute}, func(h *heard) {
				h.add(deliveries(4, full, time.Hour), full)
				before, _ := h.so()
				h.add(deliveries(1, other, time.Hour), webhooks...)
				if looks, _ := h.so(); looks != before+1 {
					t.Errorf("%d looks, want one", looks-before)
				}
				pass(time.Hour)
			})
		})
	}
}

// TestCallsThatEndCauseNoLooks has messages that are claimed one after the other, and nothing more
// that is due.
func TestCallsThatEndCauseNoLooks(t *testing.T) {
	hook := uuid.New()
	hears(t, &calls{takes: 5 * time.Millisecond}, func(h *heard) {
		for range 50 {
			h.add(deliveries(1, hook, time.Minute), hook)
			pass(20 * time.Millisecond)
		}
		if looks, settled := h.so(); looks != 51 || settled != 50 {
			t.Errorf("%d looks for %d messages, want the one at the start and one for each of 50", looks, settled)
		}
	})
}

// TestTheOwnProcessWakesItsDispatcher has two commits of the same process at once, and checks that
// their webhooks are passed to the store.
func TestTheOwnProcessWakesItsDispatcher(t *testing.T) {
	hook := uuid.New()
	hears(t, &calls{}, func(h *heard) {
		h.box.mu.Lock()
		h.box.due, h.box.limits = deliveries(2, hook, time.Minute), dispatch.Due{WebhookID: hook, MaxConcurrent: 4}
		h.box.mu.Unlock()
		h.d.Wake([]uuid.UUID{hook})
		h.d.Wake([]uuid.UUID{hook})
		pass(10 * time.Millisecond)
		if looks, settled := h.so(); looks > 3 || settled == 0 {
			t.Errorf("%d looks, %d settled; want the message delivered by one or two looks more", looks, settled)
		}
		h.box.mu.Lock()
		defer h.box.mu.Unlock()
		if len(h.box.hints) == 0 || h.box.hints[0] != hook {
			t.Errorf("hints %v, want %v", h.box.hints, hook)
		}
	})
}

// TestASlotThatIsFreedDuringALookIsUsed has all slots become free after a look has found none and
// before it has ended.
func TestASlotThatIsFreedDuringALookIsUsed(t *testing.T) {
	hook := uuid.New()
	hears(t, &calls{takes: 500 * time.Millisecond}, func(h *heard) {
		h.add(deliveries(4, hook, time.Minute))
		pass(450 * time.Millisecond)
		h.box.mu.Lock()
		h.looks.takes = 100 * time.Millisecond
		h.box.mu.Unlock()
		h.add(deliveries(1, hook, time.Minute))
		pass(time.Second)
		if _, settled := h.so(); settled != 5 {
			t.Errorf("%d of 5 messages are settled", settled)
		}
	})
}

// TestLooksEndWithWhatIsDue claims a burst. When nothing more is due, there are no further looks.
func TestLooksEndWithWhatIsDue(t *testing.T) {
	hook := uuid.New()
	hears(t, &calls{takes: 5 * time.Millisecond}, func(h *heard) {
		h.add(deliveries(100, hook, time.Minute))
		pass(5 * time.Second)
		before, settled := h.so()
		if settled != 100 {
			t.Fatalf("%d of 100 messages are settled", settled)
		}
		pass(10 * time.Minute)
		if looks, _ := h.so(); looks != before {
			t.Errorf("%d looks when nothing was due any more", looks-before)
		}
	})
}

// TestWhatBecomesDueByAnAttemptIsLookedFor has an attempt that makes something due without a
// wake-up.
func TestWhatBecomesDueByAnAttemptIsLookedFor(t *testing.T) {
	hook := uuid.New()
	for name, before := range map[string]func(h *heard){
		"it is to be made again": func(h *heard) { h.calls.verdict = notify.VerdictRetry },
		"it was refused":         func(h *heard) { h.calls.verdict = notify.VerdictRefused },
		"it was not wanted":      func(h *heard) { h.box.unwanted = true },
	} {
		t.Run(name, func(t *testing.T) {
			hears(t, &calls{takes: time.Second / 2}, func(h *heard) {
				before(h)
				h.add(deliveries(1, hook, time.Minute), hook)
				looked, _ := h.so()
				pass(time.Second)
				if looks, _ := h.so(); looks <= looked {
					t.Errorf("%d looks, want one after the attempt", looks)
				}
			})
		})
	}
}

// TestNothingBeginsBeforeABadOutcomeIsStored has receivers that answer 429 while more is due: the
// store knows of it before anything else is claimed for the webhook.
func TestNothingBeginsBeforeABadOutcomeIsStored(t *testing.T) {
	hook := uuid.New()
	hears(t, &calls{takes: time.Second / 10, verdict: notify.VerdictThrottled}, func(h *heard) {
		h.box.settles = []error{errAway, errAway, errAway, errAway, errAway, errAway}
		h.add(deliveries(20, hook, time.Minute), hook)
		pass(150 * time.Millisecond)
		h.add(deliveries(1, hook, time.Minute), hook)
		h.calls.mu.Lock()
		made := len(h.calls.at)
		h.calls.mu.Unlock()
		if _, settled := h.so(); settled > 0 || made != 4 {
			t.Errorf("%d calls and %d outcomes stored, want the first 4 calls and no more before an outcome is stored", made, settled)
		}
		h.box.mu.Lock()
		h.box.due = nil
		h.box.mu.Unlock()
		pass(time.Minute)
	})
}

// TestNothingBeginsAfterAPauseDuringAClaim has a receiver ask for a pause, or be gone, while a claim for its webhook is
// under way: what is claimed is not sent, although the store cannot know that yet. After a failure of another kind it is.
func TestNothingBeginsAfterAPauseDuringAClaim(t *testing.T) {
	for verdict, want := range map[notify.Verdict]int{notify.VerdictThrottled: 1, notify.VerdictGone: 1, notify.VerdictRetry: 2} {
		t.Run(verdict.String(), func(t *testing.T) {
			hook := uuid.New()
			hears(t, &calls{takes: 100 * time.Millisecond, verdict: verdict}, func(h *heard) {
				h.box.settles = []error{errAway, errAway}
				h.add(deliveries(1, hook, time.Minute), hook)
				pass(50 * time.Millisecond)
				h.box.mu.Lock()
				h.box.dealtFor = 100 * time.Millisecond
				h.box.mu.Unlock()
				h.add(deliveries(1, hook, time.Minute), hook)
				pass(time.Minute)
				h.calls.mu.Lock()
				made := len(h.calls.at)
				h.calls.mu.Unlock()
				if made != want {
					t.Errorf("%d calls, want %d", made, want)
				}
				h.box.mu.Lock()
				defer h.box.mu.Unlock()
				notMade := 0
				for i := range h.box.settled {
					if h.box.settled[i].Outcome.Verdict == notify.VerdictNotMade {
						notMade++
					}
				}
				if len(h.box.settled) != 2 || notMade != 2-want {
					t.Errorf("%d outcomes stored, %d of attempts that were not made; want 2 and %d", len(h.box.settled), notMade, 2-want)
				}
			})
		})
	}
}

// TestAnAnsweredProbeIsFollowedByALook probes a webhook with an open breaker. The other queued
// messages become due when the probe succeeds, although a look has found nothing due meanwhile.
func TestAnAnsweredProbeIsFollowedByALook(t *testing.T) {
	hook, other := uuid.New(), uuid.New()
	hears(t, &calls{takes: 100 * time.Millisecond}, func(h *heard) {
		h.box.mu.Lock()
		h.box.due = deliveries(1, hook, time.Minute)
		h.box.limits = dispatch.Due{WebhookID: hook, MaxConcurrent: 4, Probe: true}
		h.box.mu.Unlock()
		wake := func() {
			h.wakeUps <- notify.Signal{WakeUp: notify.WakeUp{Webhooks: []uuid.UUID{other}}}
			synctest.Wait()
		}
		wake()
		wake()
		h.box.mu.Lock()
		h.box.due = deliveries(3, hook, time.Minute)
		h.box.limits.Probe = false
		h.box.mu.Unlock()
		pass(time.Second)
		if _, settled := h.so(); settled != 4 {
			t.Errorf("%d messages are settled, want the probe and the 3 behind it", settled)
		}
	})
}
