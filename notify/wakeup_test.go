package notify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// looks counts how often the outbox is asked.
type looks struct {
	*outbox
	at []time.Time
}

func (l *looks) Claim(ctx context.Context, r notify.ClaimRequest) (notify.Claimed, error) {
	l.at = append(l.at, time.Now())
	return l.outbox.Claim(ctx, r)
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
				d := dispatcher(t, l.outbox, &calls{}, func(o *notify.Options) { o.Store, o.Poll = l, 30*time.Second })
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
		limit notify.Limits
		err   error
		left  bool
	}{
		{name: "nothing is due", limit: notify.Limits{MaxConcurrent: 4}},
		{name: "all is taken", due: 3, limit: notify.Limits{MaxConcurrent: 4}},
		{name: "there is no room for all", due: 5, limit: notify.Limits{MaxConcurrent: 4}, left: true},
		{name: "a rate holds the rest back", due: 5, limit: notify.Limits{MaxConcurrent: 4, RatePerSecond: 1, Tokens: 1}},
		{name: "the store is away", due: 5, limit: notify.Limits{MaxConcurrent: 4}, err: errors.New("away")},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.limit.WebhookID = id
				o := &outbox{limits: test.limit, claimErr: test.err}
				wakeUps := make(chan notify.Signal)
				d := dispatcher(t, o, &calls{takes: time.Minute}, func(o *notify.Options) { o.Poll, o.WakeUps = time.Hour, wakeUps })
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
				// What a rate holds back here is nobody else's to take.
				if got := wake(); test.limit.RatePerSecond > 0 && got.left {
					t.Errorf("answer %+v while the rate holds all back", got)
				}
				cancel()
				<-ended
			})
		})
	}
}
