package app_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"tocsin/notify/dispatch"
)

// awayStore is an outbox whose database does not answer for a while.
type awayStore struct {
	dispatch.Store
	away atomic.Bool
}

var errAway = errors.New("connection refused")

func (s *awayStore) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	if s.away.Load() {
		return dispatch.Claimed{}, errAway
	}
	return s.Store.Claim(ctx, r)
}

func (s *awayStore) Renew(ctx context.Context, held []dispatch.Held, lease time.Duration) (map[dispatch.Held]time.Duration, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Renew(ctx, held, lease)
}

func (s *awayStore) Settle(ctx context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Settle(ctx, settlements)
}

// TestAnOutageOfPostgresRepeatsNothing stops Postgres for longer than a lease while calls succeed:
// when it is back, they are recorded, and not repeated.
func TestAnOutageOfPostgresRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	called, answer := make(chan struct{}, 9), make(chan struct{})
	w.receiver.respond(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-answer
	})
	w.raiseFor(w.webhook("ops"), "a", "b", "c")
	const lease = 2 * time.Second
	store := &awayStore{Store: w.db.Outbox()}
	d := w.newDispatcher(dispatch.Options{Store: store, Lease: lease, Poll: 100 * time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	for range 3 {
		await(t, "a call is under way", called)
	}
	store.away.Store(true)
	close(answer)
	<-time.After(3 * lease / 2)
	store.away.Store(false)
	w.until("all is recorded", func() bool { return len(w.column(`select 'open' from outbox`)) == 0 })
	stop()
	await(t, "it has ended", ended)
	if got := w.receiver.received(); len(got) != 3 {
		t.Errorf("received %v, want each once", got)
	}
	w.wantColumn("statuses", statuses, "DELIVERED 3")
}
