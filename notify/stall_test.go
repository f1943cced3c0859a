package notify_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// stalled is an outbox whose statements take long, as while somebody holds its rows.
type stalled struct {
	*outbox

	releases time.Duration
	// claims is until when claims do not come back.
	claims time.Time

	looks int
}

func (s *stalled) Release(ctx context.Context, held []notify.Held) error {
	<-time.After(s.releases)
	return s.outbox.Release(ctx, held)
}

func (s *stalled) Claim(ctx context.Context, r notify.ClaimRequest) (notify.Claimed, error) {
	s.mu.Lock()
	s.looks++
	until := s.claims
	s.mu.Unlock()
	if wait := time.Until(until); wait > 0 {
		r.Room([]notify.Limits{s.limits})
		select {
		case <-time.After(wait):
			return notify.Claimed{}, nil
		case <-ctx.Done():
			return notify.Claimed{}, ctx.Err()
		}
	}
	return s.outbox.Claim(ctx, r)
}

// so tells how many looks there were, and how many claims were given back.
func (s *stalled) so() (looks, released int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, len(s.released)
}

// What goes back into the outbox keeps neither commits waiting nor other webhooks.
func TestNobodyWaitsForWhatGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := uuid.New(), uuid.New()
		s := &stalled{outbox: &outbox{}, releases: 3 * time.Second}
		c := &calls{takes: 20 * time.Millisecond, verdict: notify.VerdictRetry}
		d := dispatcher(t, s.outbox, c, func(o *notify.Options) { o.Store, o.Poll = s, time.Hour })
		running(t, d, func() {
			r := d.Reserve(t.Context(), []notify.Wanted{{WebhookID: bad, MaxConcurrent: 1, Count: 20}})
			r.HandOver(t.Context(), oneByOne(deliveries(20, bad, time.Minute)))
			pass(50 * time.Millisecond) // the first has failed
			began := time.Now()
			r = reserve(t, d, good, 1)
			if n := beginning(t, &r, written(1, good)); n != 1 || time.Since(began) > 0 {
				t.Errorf("%d begun after %v, want one at once", n, time.Since(began))
			}
			r.HandOver(t.Context(), nil)
			pass(10 * time.Second)
			if _, released := s.so(); released < 17 {
				t.Errorf("%d given back, want nearly all", released)
			}
		})
	})
}

// What a commit found no room for is older than what comes next, and is looked for at once.
func TestNothingIsHandedOverBeforeWhatIsOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		s := &stalled{outbox: &outbox{limits: notify.Limits{WebhookID: id, MaxConcurrent: 4}}}
		d := dispatcher(t, s.outbox, &calls{takes: 60 * time.Millisecond}, func(o *notify.Options) { o.Store, o.Poll = s, time.Hour })
		running(t, d, func() {
			before, _ := s.so()
			r := reserve(t, d, id, 150)
			r.HandOver(t.Context(), deliveries(100, id, time.Minute))
			if room := roomFor(t, d, id, 1); room != 0 {
				t.Errorf("room for %d, though some of the commit before was left out", room)
			}
			pass(5 * time.Millisecond)
			if looks, _ := s.so(); looks != before+1 {
				t.Errorf("%d looks for what was left out, want one", looks-before)
			}
			if room := roomFor(t, d, id, 1); room != 1 {
				t.Errorf("room for %d, though nothing is owed", room)
			}
			pass(time.Minute)
		})
	})
}

// A rate holds its backlog back without a look whenever somebody else's slot is free.
func TestARateCausesNoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, other := uuid.New(), uuid.New()
		s := &stalled{outbox: &outbox{limits: notify.Limits{WebhookID: slow, MaxConcurrent: 8, RatePerSecond: 1, Tokens: 0.5}, due: deliveries(9, slow, time.Minute)}}
		d := dispatcher(t, s.outbox, &calls{takes: 5 * time.Millisecond}, func(o *notify.Options) { o.Store, o.Poll = s, time.Hour })
		running(t, d, func() {
			for range 1000 {
				r := reserve(t, d, other, 1)
				r.HandOver(t.Context(), deliveries(1, other, time.Minute))
				pass(10 * time.Millisecond)
			}
			// Half a second is until the next token, as the store tells it.
			if looks, _ := s.so(); looks > 25 {
				t.Errorf("%d looks in 10 s beside a backlog that a rate holds back", looks)
			}
		})
	})
}

// A claim that hangs is given up, and what was handed over meanwhile gets the slots
// that it was promised.
func TestAClaimThatHangs(t *testing.T) {
	for name, c := range map[string]struct {
		hangs, within time.Duration
	}{"for a while": {300 * time.Millisecond, 320 * time.Millisecond}, "for good": {time.Hour, 31 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy, other := uuid.New(), uuid.New()
				s := &stalled{outbox: &outbox{limits: notify.Limits{WebhookID: busy, MaxConcurrent: 500}}}
				wakeUps := make(chan notify.Signal)
				o := &calls{takes: time.Millisecond}
				d := dispatcher(t, s.outbox, o, func(o *notify.Options) { o.Store, o.Poll, o.WakeUps, o.Slots = s, time.Hour, wakeUps, 4 })
				running(t, d, func() {
					// The receiver is known to be quick, so that it may have all slots.
					r := reserve(t, d, busy, 1)
					r.HandOver(t.Context(), deliveries(1, busy, time.Minute))
					pass(time.Second)
					s.mu.Lock()
					s.claims = time.Now().Add(c.hangs)
					s.mu.Unlock()
					wakeUps <- notify.Signal{}
					synctest.Wait()
					began := time.Now()
					r = reserve(t, d, other, 1)
					r.HandOver(t.Context(), deliveries(1, other, time.Minute))
					pass(40 * time.Second)
					o.mu.Lock()
					defer o.mu.Unlock()
					if took := o.at[len(o.at)-1].Sub(began); len(o.at) != 2 || took < c.within/2 || took > c.within {
						t.Errorf("%d calls, the last after %v, want it after at most %v", len(o.at), took, c.within)
					}
				})
			})
		})
	}
}
