package refresh_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tocsin/notify"
	"tocsin/notify/refresh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake has pending updates of one webhook, returns them, and records what is settled.
type fake struct {
	mu       sync.Mutex
	webhook  uuid.UUID
	pending  int
	attempts int
	outcome  notify.Outcome
	// takes is how long an update takes.
	takes  time.Duration
	broken bool
	// none says that no webhook has messages to update.
	none         bool
	looks, trims int
	settled      []refresh.Settlement
	at           []time.Time
}

func (f *fake) Trim(context.Context, int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trims++
	return 0, nil
}

func (f *fake) Claim(_ context.Context, _ time.Duration, allow func(uuid.UUID) bool) (refresh.Claimed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if f.broken {
		return refresh.Claimed{}, errors.New("no database")
	}
	if f.none || f.pending == 0 || !allow(f.webhook) {
		return refresh.Claimed{None: f.none}, nil
	}
	f.pending--
	update := refresh.Update{MessageID: int64(f.pending), Attempts: f.attempts, Delivery: notify.Delivery{Webhook: notify.Webhook{ID: f.webhook}}}
	return refresh.Claimed{Updates: []refresh.Update{update}}, nil
}

func (f *fake) Settle(_ context.Context, s refresh.Settlement) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = append(f.settled, s)
	f.at = append(f.at, time.Now())
	return nil
}

func (f *fake) Render(*notify.Delivery) (notify.Body, error) { return notify.Body{}, nil }

func (f *fake) Update(context.Context, *notify.Webhook, notify.Posted, *notify.Body) notify.Outcome {
	<-time.After(f.takes)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcome
}

func (f *fake) repair() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = false
}

func newRefresher(t *testing.T, f *fake) *refresh.Refresher {
	t.Helper()
	r, err := refresh.New(refresh.Options{Store: f, Renderer: f, Sender: f, Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatFollowsAnAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		outcome  notify.Outcome
		attempts int
		want     refresh.Settlement
	}{
		"delivered":       {notify.Outcome{Verdict: notify.VerdictDelivered}, 0, refresh.Settlement{}},
		"refused":         {notify.Outcome{Verdict: notify.VerdictRefused}, 0, refresh.Settlement{}},
		"gone":            {notify.Outcome{Verdict: notify.VerdictGone}, 0, refresh.Settlement{}},
		"first retry":     {notify.Outcome{Verdict: notify.VerdictRetry}, 0, refresh.Settlement{Retry: 15 * time.Second, Counts: true}},
		"unknown":         {notify.Outcome{Verdict: notify.VerdictUnknown}, 1, refresh.Settlement{Retry: time.Minute, Counts: true}},
		"last retry":      {notify.Outcome{Verdict: notify.VerdictRetry}, 3, refresh.Settlement{Retry: 30 * time.Minute, Counts: true}},
		"given up":        {notify.Outcome{Verdict: notify.VerdictRetry}, 4, refresh.Settlement{}},
		"throttled":       {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: 7 * time.Second}, 9, refresh.Settlement{Retry: 7 * time.Second, Hold: 7 * time.Second}},
		"throttled, bare": {notify.Outcome{Verdict: notify.VerdictThrottled}, 0, refresh.Settlement{Retry: 30 * time.Second, Hold: 30 * time.Second}},
		"throttled, long": {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Hour}, 0, refresh.Settlement{Retry: 10 * time.Minute, Hold: 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{pending: 1, outcome: c.outcome, attempts: c.attempts}
			if made, err := newRefresher(t, f).Tick(t.Context()); made != 1 || err != nil {
				t.Fatalf("made %d, %v", made, err)
			}
			got := f.settled[0]
			got.Update = nil
			if got != c.want {
				t.Errorf("settled %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRunKeepsBelowSlacksRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{pending: 60, broken: true, outcome: notify.Outcome{Verdict: notify.VerdictDelivered}}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		r := newRefresher(t, f)
		ended.Go(func() { r.Run(ctx) })
		<-time.After(10 * time.Second)
		f.repair()
		began := time.Now()
		<-time.After(time.Minute)
		cancel()
		ended.Wait()
		if n := len(f.settled); n < 45 || n > 55 {
			t.Errorf("%d updates in a minute, want a few less than Slack's 50 beside the first few", n)
		}
		if first := f.at[4].Sub(began); first > time.Second {
			t.Errorf("the first five updates took %v", first)
		}
	})
}

// TestABurstIsMadeAsFastAsSlackAnswers has five pending updates of one webhook, as many as its rate allows at once, and a
// receiver that takes a while for each. The next one is claimed when the one before has ended, and not at the next poll.
func TestABurstIsMadeAsFastAsSlackAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{pending: 5, takes: 150 * time.Millisecond, outcome: notify.Outcome{Verdict: notify.VerdictDelivered}}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		r := newRefresher(t, f)
		began := time.Now()
		ended.Go(func() { r.Run(ctx) })
		<-time.After(10 * time.Second)
		cancel()
		ended.Wait()
		if len(f.at) != 5 || f.at[4].Sub(began) > 2*time.Second {
			t.Errorf("the updates were made after %v, want all 5 within a second after the first look", f.at)
		}
		if f.looks > 20 {
			t.Errorf("%d looks in ten seconds, want one after each update and each second", f.looks)
		}
	})
}

// hanging is the fake with a second webhook, whose receiver does not answer, or has a bug.
type hanging struct {
	*fake

	other uuid.UUID
	// panics says that the update of the other webhook panics.
	panics  bool
	claimed bool
}

func (h *hanging) Claim(ctx context.Context, lease time.Duration, allow func(uuid.UUID) bool) (refresh.Claimed, error) {
	claimed, err := h.fake.Claim(ctx, lease, allow)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.claimed && allow(h.other) {
		h.claimed = true
		claimed.Updates = append(claimed.Updates, refresh.Update{MessageID: -1, Delivery: notify.Delivery{Webhook: notify.Webhook{ID: h.other}}})
	}
	return claimed, err
}

func (h *hanging) Update(ctx context.Context, w *notify.Webhook, at notify.Posted, body *notify.Body) notify.Outcome {
	if w.ID == h.other {
		if h.panics {
			panic("poison")
		}
		<-time.After(10 * time.Second)
	}
	return h.fake.Update(ctx, w, at, body)
}

// TestAReceiverThatHangsDelaysNoOther has a receiver that does not answer, or a bug that its update reveals. The updates
// of another webhook are made meanwhile, and that one is settled at its end.
func TestAReceiverThatHangsDelaysNoOther(t *testing.T) {
	for name, panics := range map[string]bool{"hangs": false, "panics": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hanging{fake: &fake{webhook: uuid.New(), pending: 5, outcome: notify.Outcome{Verdict: notify.VerdictDelivered}}, other: uuid.New(), panics: panics}
				r, err := refresh.New(refresh.Options{Store: h, Renderer: h, Sender: h, Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				ended.Go(func() { r.Run(ctx) })
				<-time.After(5 * time.Second)
				h.mu.Lock()
				others := slices.DeleteFunc(slices.Clone(h.settled), func(s refresh.Settlement) bool { return s.Update.MessageID < 0 })
				h.mu.Unlock()
				cancel()
				ended.Wait()
				if len(others) != 5 {
					t.Errorf("%d updates of the other webhook in five seconds, want 5", len(others))
				}
				if len(h.settled) != 6 {
					t.Errorf("%d updates are settled at the end, want 6", len(h.settled))
				}
			})
		})
	}
}

// TestRunAsksSeldomWhileNothingIsPending counts the queries of an idle refresher in ten minutes,
// and measures how soon it finds what is then pending.
func TestRunAsksSeldomWhileNothingIsPending(t *testing.T) {
	for name, c := range map[string]struct {
		none   bool
		looks  int
		within time.Duration
	}{
		"a webhook whose messages can be changed": {false, 150, 4 * time.Second},
		"none": {true, 40, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{none: c.none, outcome: notify.Outcome{Verdict: notify.VerdictDelivered}}
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				r := newRefresher(t, f)
				ended.Go(func() { r.Run(ctx) })
				<-time.After(10 * time.Minute)
				f.mu.Lock()
				if f.looks == 0 || f.looks > c.looks || f.trims > 10 {
					t.Errorf("%d looks and %d trims in ten minutes, want at most %d and 10", f.looks, f.trims, c.looks)
				}
				f.none, f.pending = false, 1
				f.mu.Unlock()
				began := time.Now()
				<-time.After(time.Minute)
				cancel()
				ended.Wait()
				if len(f.settled) != 1 || f.at[0].Sub(began) > c.within {
					t.Errorf("settled %v after %v, want one within %v", f.settled, f.at, c.within)
				}
			})
		})
	}
}

// TestRunTrimsWhileMuchIsPending checks every ten seconds for what exceeds the limit.
func TestRunTrimsWhileMuchIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{pending: 1000, outcome: notify.Outcome{Verdict: notify.VerdictDelivered}}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		r := newRefresher(t, f)
		ended.Go(func() { r.Run(ctx) })
		<-time.After(2 * time.Minute)
		cancel()
		ended.Wait()
		if f.trims < 9 || f.trims > 12 {
			t.Errorf("trimmed %d times in two minutes, want each ten seconds", f.trims)
		}
	})
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := refresh.New(refresh.Options{}); err == nil {
		t.Error("a refresher of nothing was made")
	}
}
