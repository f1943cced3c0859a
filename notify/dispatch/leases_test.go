package dispatch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// steps is a sender that makes a request every 700 ms, and checks its claim before each.
type steps struct {
	requests int
	// pause is for how long the process is paused after the first request.
	pause time.Duration
	clock *jumping

	mu   sync.Mutex
	made []time.Time
	// ended is the cause with which the context of the last call ended, or nil if it did not end.
	ended error
}

func (s *steps) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	for range s.requests {
		if err := d.CheckClaim(); err != nil {
			return notify.NotMade(err.Error())
		}
		s.mu.Lock()
		s.made = append(s.made, time.Now())
		s.mu.Unlock()
		if s.pause > 0 {
			s.clock.jump(s.pause)
			s.pause = 0
			continue
		}
		select {
		case <-time.After(700 * time.Millisecond):
		case <-ctx.Done():
			s.mu.Lock()
			s.ended = context.Cause(ctx)
			s.mu.Unlock()
		}
	}
	return notify.Outcome{Verdict: notify.VerdictDelivered}
}

// jumping is a clock that can be moved forward while nothing else proceeds.
type jumping struct {
	mu sync.Mutex
	by time.Duration
}

func (j *jumping) jump(by time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.by += by
}

func (j *jumping) now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Now().Add(j.by)
}

// cutOff is an outbox whose renewals fail for a while.
type cutOff struct {
	*outbox

	from, to time.Time
}

func (c *cutOff) Renew(ctx context.Context, held []dispatch.Held, lease time.Duration) (map[dispatch.Held]time.Duration, error) {
	if now := time.Now(); !now.Before(c.from) && now.Before(c.to) {
		return nil, errAway
	}
	return c.outbox.Renew(ctx, held, lease)
}

// A sender is stopped before its next request once its claim may have expired, and not earlier: 30
// s after the last successful renewal; renewals are made every 10 s.
func TestACallEndsWithItsClaim(t *testing.T) {
	const ever = 10 * time.Minute
	for name, c := range map[string]struct {
		lost bool
		// away is the period in which renewals fail.
		away  [2]time.Duration
		pause time.Duration
		// deadAfter is the dispatcher's setting.
		deadAfter time.Duration
		made      int
		verdict   notify.Verdict
		ended     bool
	}{
		"nothing happens":                          {made: 100, verdict: notify.VerdictDelivered},
		"it has passed to another replica":         {lost: true, made: 15, verdict: notify.VerdictNotMade, ended: true},
		"renewals fail for shorter than the lease": {away: [2]time.Duration{15 * time.Second, 29 * time.Second}, made: 100, verdict: notify.VerdictDelivered},
		"renewals fail from the first on":          {away: [2]time.Duration{0, ever}, made: 43, verdict: notify.VerdictNotMade, ended: true},
		"renewals fail later":                      {away: [2]time.Duration{15 * time.Second, ever}, made: 58, verdict: notify.VerdictNotMade, ended: true},
		"the process is paused":                    {pause: 31 * time.Second, made: 1, verdict: notify.VerdictNotMade},
		"the process is paused for a while":        {pause: 19 * time.Second, made: 100, verdict: notify.VerdictDelivered},
		"the process is taken for dead":            {pause: 9 * time.Second, deadAfter: 12 * time.Second, made: 1, verdict: notify.VerdictNotMade},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id, clock := uuid.New(), &jumping{}
				o := &outbox{due: deliveries(1, id, ever), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}, lost: c.lost}
				s := &steps{requests: 100, pause: c.pause, clock: clock}
				began := time.Now()
				d := dispatcher(t, o, nil, func(options *dispatch.Options) {
					options.Store = &cutOff{o, began.Add(c.away[0]), began.Add(c.away[1])}
					options.Sender, options.Clock, options.DeadAfter = s, clock.now, c.deadAfter
				})
				if _, err := d.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(s.made) != c.made {
					t.Errorf("%d requests, want %d", len(s.made), c.made)
				}
				if len(o.settled) != 1 || o.settled[0].Outcome.Verdict != c.verdict {
					t.Errorf("settled %+v, want %v", o.settled, c.verdict)
				}
				if ended := errors.Is(s.ended, notify.ErrFenced); ended != c.ended {
					t.Errorf("the call was ended by %v", s.ended)
				}
				if s := o.settled[0]; c.verdict == notify.VerdictNotMade && (s.Decision.Status != notify.Retrying || s.Decision.Counts || s.Breaker != nil || s.Outcome.Error == "") {
					t.Errorf("what was not made costs something: %+v", s)
				}
			})
		})
	}
}

// The receiver's response is recorded, whatever has become of the claim meanwhile.
func TestAnAnswerCountsWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(1, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}, lost: true, lostAtEnd: true}
		if _, err := dispatcher(t, o, nil, func(options *dispatch.Options) { options.Sender = deaf{} }).Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(o.settled) != 1 || o.settled[0].Decision.Status != notify.Delivered {
			t.Errorf("settled %+v, want what was answered", o.settled)
		}
	})
}

// deaf is a sender whose only request has left, and is answered after a while.
type deaf struct{}

func (deaf) Send(context.Context, *notify.Delivery) notify.Outcome {
	<-time.After(40 * time.Second)
	return notify.Outcome{Verdict: notify.VerdictDelivered}
}
