package dispatch_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outbox is a store in memory that hands each message out once.
type outbox struct {
	mu       sync.Mutex
	due      []notify.Delivery
	limits   dispatch.Due
	most     int
	next     time.Duration
	claimErr error
	// claimTakes is how long a claim takes.
	claimTakes time.Duration
	// dealtFor is how long a claim takes after the slots are dealt.
	dealtFor time.Duration
	settles  []error
	claimed  []notify.Delivery
	settled  []dispatch.Settlement
	// stores counts how often outcomes were stored.
	stores   int
	renewals int
	// checkErr is the error of checking, after a claim, whether the webhook accepts messages.
	checkErr error
	hints    []uuid.UUID
	// lost says that every claim has passed to another dispatcher, unwanted that the webhook
	// accepts no messages any more.
	lost, unwanted bool
	// lostAtEnd says that settlements come too late.
	lostAtEnd bool
}

func (o *outbox) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	select {
	case <-time.After(o.claimTakes):
	case <-ctx.Done():
		return dispatch.Claimed{}, ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hints = append(o.hints, r.Webhooks...)
	if o.claimErr != nil {
		return dispatch.Claimed{}, o.claimErr
	}
	if len(o.due) == 0 {
		return dispatch.Claimed{Next: o.next}, nil
	}
	n := 0
	for _, s := range r.Deal([]dispatch.Due{o.limits}) {
		n += min(s.Slots, len(o.due))
	}
	if took := o.dealtFor; took > 0 {
		o.mu.Unlock()
		<-time.After(took)
		o.mu.Lock()
	}
	o.most = max(o.most, n)
	claimed := o.due[:n:n]
	o.due = o.due[n:]
	for i := range claimed {
		if d := &claimed[i]; d.Body == nil {
			body, _, err := r.Render(d)
			if err != nil {
				return dispatch.Claimed{}, err
			}
			d.Body, d.Fresh = &body, true
		}
	}
	o.claimed = append(o.claimed, claimed...)
	done := dispatch.Claimed{Deliveries: claimed, Unchecked: o.checkErr, Next: o.next}
	if o.unwanted {
		done.Unwanted = []uuid.UUID{o.limits.WebhookID}
	}
	return done, nil
}

func (o *outbox) Renew(_ context.Context, held []dispatch.Held, lease time.Duration) (left map[dispatch.Held]time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.renewals++
	if o.lost {
		return map[dispatch.Held]time.Duration{}, nil
	}
	return renewed(held, lease), nil
}

// renewed is the result of a renewal in which no claim is lost.
func renewed(held []dispatch.Held, lease time.Duration) map[dispatch.Held]time.Duration {
	left := map[dispatch.Held]time.Duration{}
	for _, claim := range held {
		left[claim] = lease
	}
	return left
}

func (o *outbox) Settle(_ context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.settles) > 0 {
		err := o.settles[0]
		o.settles = o.settles[1:]
		if err != nil {
			return nil, err
		}
	}
	o.settled = append(o.settled, settlements...)
	o.stores++
	settled := make([]dispatch.Settled, len(settlements))
	for i := range settled {
		settled[i].Fenced = o.lostAtEnd
	}
	return settled, nil
}

func (o *outbox) Render(*notify.Delivery) (notify.Body, error) {
	return notify.Body{ContentType: "text/plain", Content: []byte("x")}, nil
}

// calls is a sender that takes some time and counts the attempts under way.
type calls struct {
	takes time.Duration
	// verdict defaults to VerdictDelivered; reached are the recipients that have the message.
	verdict   notify.Verdict
	reached   []string
	mu        sync.Mutex
	now, most int
	at        []time.Time
}

// waiting limits a call by its webhook's timeout.
func waiting(ctx context.Context, d *notify.Delivery, send func(ctx context.Context) notify.Outcome) notify.Outcome {
	ctx, cancel := context.WithTimeout(ctx, d.Webhook.Timeout)
	defer cancel()
	return send(ctx)
}

func (c *calls) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	return waiting(ctx, d, c.send)
}

func (c *calls) send(ctx context.Context) notify.Outcome {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.at = append(c.at, time.Now())
	takes, verdict := c.takes, cmp.Or(c.verdict, notify.VerdictDelivered)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.now--; c.mu.Unlock() }()
	select {
	case <-time.After(takes):
		return notify.Outcome{Verdict: verdict, Reached: c.reached}
	case <-ctx.Done():
		return notify.Outcome{Verdict: notify.VerdictRetry, Error: "timeout"}
	}
}

func deliveries(n int, webhook uuid.UUID, timeout time.Duration) []notify.Delivery {
	list := make([]notify.Delivery, n)
	for i := range list {
		list[i] = notify.Delivery{NotificationID: uuid.New(), Token: int64(i + 1), Attempt: 1}
		list[i].Webhook.ID, list[i].Webhook.Timeout, list[i].Webhook.MaxConcurrent = webhook, timeout, 4
	}
	return list
}

func dispatcher(t *testing.T, o *outbox, c *calls, also func(*dispatch.Options)) *dispatch.Dispatcher {
	t.Helper()
	options := dispatch.Options{
		Store: o, Renderer: o, Sender: c, Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Replica: "r",
	}
	if also != nil {
		also(&options)
	}
	d, err := dispatch.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run runs d for the given time of the bubble.
func run(d *dispatch.Dispatcher, while time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), while)
	defer cancel()
	d.Run(ctx)
}

func TestNeverMoreThanTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(50, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 4}}
		c := &calls{takes: time.Second}
		run(dispatcher(t, o, c, nil), 20*time.Second)
		if c.most != 4 || o.most > 4 {
			t.Errorf("%d calls under way at once, %d claimed at once; want 4", c.most, o.most)
		}
		// A slot that becomes free is used at once, not at the next look.
		if len(o.settled) != 50 {
			t.Errorf("%d settled, want 50", len(o.settled))
		}
	})
}

func TestWakeUpCutsThePauseShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{limits: dispatch.Due{WebhookID: id, MaxConcurrent: 8}}
		c := &calls{}
		wakeUps := make(chan notify.Signal, 1)
		d := dispatcher(t, o, c, func(o *dispatch.Options) { o.Poll, o.WakeUps = time.Hour, wakeUps })
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { d.Run(ctx) })
		synctest.Wait()
		began := time.Now()
		o.mu.Lock()
		o.due = deliveries(1, id, time.Minute)
		o.mu.Unlock()
		wakeUps <- notify.Signal{WakeUp: notify.WakeUp{Notifications: 1}}
		synctest.Wait()
		if len(c.at) != 1 || !c.at[0].Equal(began) {
			t.Errorf("calls at %v, want one at %v", c.at, began)
		}
		cancel()
		ended.Wait()
	})
}

func TestLeaseIsRenewedWhileTheCallLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(1, id, 10*time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}}
		d := dispatcher(t, o, &calls{takes: 65 * time.Second}, nil)
		if _, err := d.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o.renewals != 6 {
			t.Errorf("%d renewals of a lease of 30s in 65s, want 6", o.renewals)
		}
	})
}

func TestLostLeaseEndsTheRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(1, id, 10*time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}, lost: true}
		d := dispatcher(t, o, &calls{takes: 65 * time.Second}, nil)
		if _, err := d.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o.renewals != 1 || len(o.settled) != 1 {
			t.Errorf("%d renewals, %d settlements; want one of each", o.renewals, len(o.settled))
		}
	})
}

func TestACallThatTimesOutIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(1, id, 10*time.Second), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}}
		if _, err := dispatcher(t, o, &calls{takes: time.Hour}, nil).Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := o.settled[0].Decision; got.Status != notify.Retrying || got.Wait < 48*time.Second {
			t.Errorf("decision %+v, want a retry by the schedule", got)
		}
	})
}

// Outcomes that are known at about the same time are stored in one call, failures as well as
// deliveries.
func TestOutcomesAreStoredTogether(t *testing.T) {
	for _, verdict := range []notify.Verdict{notify.VerdictDelivered, notify.VerdictRetry, notify.VerdictThrottled} {
		synctest.Test(t, func(t *testing.T) {
			id := uuid.New()
			o := &outbox{due: deliveries(40, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 40}}
			if _, err := dispatcher(t, o, &calls{takes: time.Second, verdict: verdict}, nil).Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(o.settled) != 40 || o.stores > 2 {
				t.Errorf("%v: %d outcomes were stored by %d calls, want 40 by 2 at most", verdict, len(o.settled), o.stores)
			}
		})
	}
}

// A message that the webhook no longer accepts right before its call is not sent; that is recorded,
// and uses up no attempt.
func TestNothingIsSentThatIsNotWanted(t *testing.T) {
	for name, spoil := range map[string]func(o *outbox){
		"the webhook was edited":           func(o *outbox) { o.unwanted = true },
		"nobody can be asked":              func(o *outbox) { o.checkErr = errors.New("away") },
		"the lease may be over":            func(o *outbox) { o.claimTakes = 16 * time.Second },
		"the last attempt of the schedule": func(o *outbox) { o.unwanted = true; o.due[0].Attempt, o.due[0].CountedAttempts = 6, 5 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id := uuid.New()
				o := &outbox{due: deliveries(3, id, time.Second), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 3}}
				spoil(o)
				c := &calls{}
				if _, err := dispatcher(t, o, c, nil).Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(c.at) != 0 || len(o.settled) != 3 {
					t.Fatalf("%d calls, %d settlements; want none and 3", len(c.at), len(o.settled))
				}
				for _, s := range o.settled {
					if s.Outcome.Verdict != notify.VerdictNotMade || s.Decision.Status != notify.Retrying || s.Decision.Counts || s.Breaker != nil || s.Outcome.Error == "" {
						t.Errorf("settled %+v", s)
					}
				}
			})
		})
	}
}

// TestARendererThatPanicsHarmsNoOther has one message that cannot be rendered.
func TestARendererThatPanicsHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(1, id, time.Second), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 3}}
		d := dispatcher(t, o, &calls{}, func(o *dispatch.Options) { o.Renderer = panics{} })
		if _, err := d.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "index out of range") {
			t.Errorf("Tick = %v, want the store to get the reason", err)
		}
	})
}

type panics struct{}

func (panics) Render(*notify.Delivery) (notify.Body, error) { panic("index out of range") }

func TestSettlementIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		down := errors.New("the database is away")
		o := &outbox{due: deliveries(1, id, time.Second), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}, settles: []error{down, down, down, nil}}
		if _, err := dispatcher(t, o, &calls{}, nil).Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(o.settled) != 1 || o.settled[0].Decision.Status != notify.Delivered {
			t.Errorf("settled %+v", o.settled)
		}
	})
}

func TestStopWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(3, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 2}}
		c := &calls{takes: 20 * time.Second}
		run(dispatcher(t, o, c, nil), time.Second)
		if len(o.settled) != 2 || len(o.due) != 1 {
			t.Errorf("%d settled, %d never claimed; want 2 and 1", len(o.settled), len(o.due))
		}
	})
}

// TestStopLetsAClaimEnd stops a dispatcher while it claims: a claim that is cut short may have been committed,
// and would leave an attempt without an outcome. One that takes too long does not hold up the stop.
func TestStopLetsAClaimEnd(t *testing.T) {
	for _, c := range []struct {
		takes, stops time.Duration
		settled      int
	}{
		{time.Second, time.Second, 1},
		{time.Minute, 5500 * time.Millisecond, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			id := uuid.New()
			o := &outbox{due: deliveries(1, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 2}, claimTakes: c.takes}
			began := time.Now()
			run(dispatcher(t, o, &calls{}, nil), 500*time.Millisecond)
			if took := time.Since(began); len(o.settled) != c.settled || took > c.stops+10*time.Millisecond {
				t.Errorf("a claim of %v: %d outcomes stored, stopped after %v; want %d and %v", c.takes, len(o.settled), took, c.settled, c.stops)
			}
		})
	}
}

// running runs a dispatcher while f runs.
func running(t *testing.T, d *dispatch.Dispatcher, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { d.Run(ctx) })
	synctest.Wait()
	f()
	cancel()
	ended.Wait()
}

// pass lets time pass in a bubble.
func pass(while time.Duration) {
	<-time.After(while)
	synctest.Wait()
}
