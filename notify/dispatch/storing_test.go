package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// away is an outbox in a database that does not answer for a while. During that time the leases of
// all that is not settled expire; afterwards settlements are stored last.
type away struct {
	*outbox

	until   time.Time
	claimed []notify.Delivery
}

var errAway = errors.New("connection refused")

// settlesAfter is how much later than claims outcomes are stored.
const settlesAfter = 5 * time.Second

func (a *away) gone(also time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.until.Add(also))
}

// leave makes the database unavailable for the given time.
func (a *away) leave(long time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = time.Now().Add(long)
}

func (a *away) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	if a.gone(0) {
		return dispatch.Claimed{}, errAway
	}
	claimed, err := a.outbox.Claim(ctx, r)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claimed = append(a.claimed, claimed.Deliveries...)
	return claimed, err
}

func (a *away) Renew(ctx context.Context, held []dispatch.Held, lease time.Duration) (map[dispatch.Held]time.Duration, error) {
	if a.gone(0) {
		return nil, errAway
	}
	return a.outbox.Renew(ctx, held, lease)
}

func (a *away) Settle(ctx context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	if a.gone(settlesAfter) {
		return nil, errAway
	}
	settled, err := a.outbox.Settle(ctx, settlements)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = slices.DeleteFunc(a.due, func(d notify.Delivery) bool { return a.isSettled(d.NotificationID) })
	return settled, err
}

func (a *away) isSettled(id uuid.UUID) bool {
	return slices.ContainsFunc(a.settled, func(s dispatch.Settlement) bool { return s.NotificationID == id })
}

// goes makes the database unavailable for the given time, and then offers what was claimed before
// and is not settled again, with new tokens.
func (a *away) goes(long time.Duration) {
	a.leave(long)
	time.AfterFunc(long, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, d := range a.claimed {
			if a.isSettled(d.NotificationID) {
				continue
			}
			d.Token, d.Attempt, d.AfterUnknown, d.Body = d.Token+100, 2, true, nil
			a.due = append(a.due, d)
		}
	})
}

// A process that keeps running sends nothing twice, however long its database is down.
func TestNothingArrivesTwiceByAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		a := &away{outbox: &outbox{due: deliveries(3, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 8}}}
		c := &calls{takes: time.Second}
		d := dispatcher(t, a.outbox, c, func(o *dispatch.Options) { o.Store = a })
		time.AfterFunc(500*time.Millisecond, func() { a.goes(10 * time.Minute) })
		run(d, 12*time.Minute)
		settled := map[uuid.UUID]bool{}
		for _, s := range a.settled {
			settled[s.NotificationID] = settled[s.NotificationID] || s.Decision.Status == notify.Delivered
		}
		if len(c.at) != 3 || len(settled) != 3 {
			t.Errorf("%d calls for 3 messages, outcomes stored of %d", len(c.at), len(settled))
		}
	})
}

// A message that a user sends again is sent, though the first outcome is still being stored.
func TestAnotherGenerationIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{due: deliveries(1, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 8}}
		for range 20 {
			o.settles = append(o.settles, errAway)
		}
		again := o.due[0]
		again.Token, again.Generation, again.Attempt = 7, 1, 2
		c := &calls{}
		d := dispatcher(t, o, c, nil)
		time.AfterFunc(100*time.Millisecond, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.due = append(o.due, again)
		})
		run(d, 3*time.Second)
		if len(c.at) != 2 {
			t.Errorf("%d calls, want one for each time", len(c.at))
		}
	})
}

// A failed outcome is forgotten after two leases, and so is all that is not stored when the process
// ends.
func TestStoringEnds(t *testing.T) {
	for name, c := range map[string]struct {
		verdict   notify.Verdict
		reached   []string
		runs, end time.Duration
		// logged are the levels of what is logged about the outcome, and when it is logged.
		logged []string
	}{
		"no success":   {notify.VerdictRetry, nil, 10 * time.Minute, 10 * time.Minute, []string{"WARN 5s", "ERROR 1m1s"}},
		"a success":    {notify.VerdictDelivered, nil, 2 * time.Hour, 2 * time.Hour, []string{"WARN 5s", "ERROR 1h0m1s"}},
		"some have it": {notify.VerdictRetry, []string{"a@example.com"}, 2 * time.Hour, 2 * time.Hour, []string{"WARN 5s", "ERROR 1h0m1s"}},
		"a stop early": {notify.VerdictDelivered, nil, 10 * time.Second, 3 * time.Minute, []string{"WARN 5s", "ERROR 1m1s"}},
		"a stop late":  {notify.VerdictDelivered, nil, 10 * time.Minute, 11 * time.Minute, []string{"WARN 5s", "ERROR 10m1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id := uuid.New()
				a := &away{outbox: &outbox{due: deliveries(1, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 8}}}
				var logged logs
				d := dispatcher(t, a.outbox, &calls{verdict: c.verdict, reached: c.reached}, func(o *dispatch.Options) { o.Store, o.Logger = a, slog.New(&logged) })
				time.AfterFunc(time.Microsecond, func() { a.leave(1000 * time.Hour) })
				began := time.Now()
				run(d, c.runs)
				if !slices.Equal(logged.about("outcome not stored", began), c.logged) {
					t.Errorf("logged %q, want %q", logged.about("outcome not stored", began), c.logged)
				}
				if took := time.Since(began); took > c.end {
					t.Errorf("took %v to end, want at most %v", took, c.end)
				}
			})
		})
	}
}

// logs keeps what is logged.
type logs struct {
	slog.Handler

	mu   sync.Mutex
	kept []slog.Record
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }
func (l *logs) WithAttrs([]slog.Attr) slog.Handler       { return l }

func (l *logs) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, r)
	return nil
}

// about returns the levels of the messages that begin with some text, and when they were logged, in whole seconds.
func (l *logs) about(text string, began time.Time) (levels []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.kept {
		if strings.HasPrefix(r.Message, text) {
			levels = append(levels, fmt.Sprintf("%v %v", r.Level, r.Time.Sub(began).Truncate(time.Second)))
		}
	}
	return levels
}

// stuck is an outbox in which the row of one message is locked.
type stuck struct {
	*outbox

	locked uuid.UUID
	// spoilt counts the calls for several outcomes that failed.
	spoilt int
}

func (s *stuck) Settle(ctx context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	<-time.After(20 * time.Millisecond)
	if slices.ContainsFunc(settlements, func(t dispatch.Settlement) bool { return t.NotificationID == s.locked }) {
		if len(settlements) > 1 {
			s.mu.Lock()
			s.spoilt++
			s.mu.Unlock()
		}
		return nil, errors.New("lock timeout")
	}
	return s.outbox.Settle(ctx, settlements)
}

// An outcome that cannot be stored for long makes one batch fail, and none of those that follow.
func TestAStuckOutcomeSpoilsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		all := deliveries(2000, id, time.Minute)
		s := &stuck{outbox: &outbox{due: all, limits: dispatch.Due{WebhookID: id, MaxConcurrent: 4}}, locked: all[0].NotificationID}
		run(dispatcher(t, s.outbox, &calls{takes: 10 * time.Millisecond}, func(o *dispatch.Options) { o.Store = s }), time.Minute)
		if len(s.settled) != 1999 || s.spoilt != 1 {
			t.Errorf("%d outcomes stored, %d batches failed; want 1999 and 1", len(s.settled), s.spoilt)
		}
	})
}

// lockedRows is an outbox in which somebody keeps the rows of some messages locked: what settles them fails after a
// second, as [dispatch.Store] says.
type lockedRows struct {
	*outbox

	locked map[uuid.UUID]bool
}

func (l *lockedRows) Settle(ctx context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	if slices.ContainsFunc(settlements, func(t dispatch.Settlement) bool { return l.locked[t.NotificationID] }) {
		<-time.After(time.Second)
		return nil, errors.New("lock timeout")
	}
	return l.outbox.Settle(ctx, settlements)
}

// TestLockedOutcomesDelayNoOthers has outcomes that cannot be stored, one by one and before the others. Each delays the next
// batch by a second at most, and all those that wait to be stored again delay none.
func TestLockedOutcomesDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		all := deliveries(40, id, time.Minute)
		l := &lockedRows{outbox: &outbox{due: all, limits: dispatch.Due{WebhookID: id, MaxConcurrent: 1}}, locked: map[uuid.UUID]bool{}}
		for i := range 10 {
			l.locked[all[i].NotificationID] = true
		}
		run(dispatcher(t, l.outbox, &calls{takes: 100 * time.Millisecond}, func(o *dispatch.Options) { o.Store, o.Lease = l, time.Minute }), 20*time.Second)
		if len(l.settled) != 30 {
			t.Errorf("%d outcomes stored within 20 s, want the 30 that nobody locks", len(l.settled))
		}
	})
}

// TestFewOutcomesAreStoredOneByOne has a store that fails for batches. Two single outcomes at most are stored at a time.
func TestFewOutcomesAreStoredOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		s := &spoilt{outbox: &outbox{due: deliveries(30, id, time.Minute), limits: dispatch.Due{WebhookID: id, MaxConcurrent: 30}}}
		run(dispatcher(t, s.outbox, &calls{takes: 100 * time.Millisecond}, func(o *dispatch.Options) { o.Store = s }), time.Minute)
		if len(s.settled) != 30 || s.most != 2 {
			t.Errorf("%d outcomes stored, %d at a time; want 30, two at a time", len(s.settled), s.most)
		}
	})
}

// spoilt is an outbox that stores single outcomes only.
type spoilt struct {
	*outbox

	now, most int
}

func (s *spoilt) Settle(ctx context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	if len(settlements) > 1 {
		return nil, errors.New("lock timeout")
	}
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	<-time.After(10 * time.Millisecond)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return s.outbox.Settle(ctx, settlements)
}
