package app_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"tocsin/notify"
)

// TestRateHoldsOverReplicas sends for three seconds from two replicas at five a second.
func TestRateHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.exec(`update webhook set rate_per_second = 5`)
	w.owed(hook, names(60)...)
	var mu sync.Mutex
	var at []time.Time
	w.receiver.respond(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var ended sync.WaitGroup
	for _, replica := range []string{"one", "two"} {
		d := w.newDispatcher(notify.Options{Replica: replica})
		ended.Go(func() { d.Run(ctx) })
	}
	ended.Wait()
	slices.SortFunc(at, time.Time.Compare)
	// Five a second, one of which may come at once.
	for i := range at {
		within := 0
		for _, other := range at[i:] {
			if other.Sub(at[i]) < time.Second {
				within++
			}
		}
		if within > 6 {
			t.Errorf("%d calls within a second", within)
		}
	}
	if len(at) < 12 || len(at) > 16 {
		t.Errorf("%d calls in three seconds at five a second", len(at))
	}
	if by := w.column(`select replica || ' ' || count(*) from attempt_history group by replica`); len(by) != 2 {
		t.Logf("one replica sent everything: %q", by)
	}
	w.wantColumn("attempts", `select count(*)::text from attempt_history where verdict = 'DELIVERED'`, strconv.Itoa(len(at)))
}

// TestBurstIsGrantedOnce lets two replicas claim at the same instant what a rate
// allows once.
func TestBurstIsGrantedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.owed(hook, names(60)...)
	w.exec(`update webhook set rate_per_second = 40`)
	other := w.newDispatcher(notify.Options{Replica: "other"})
	for range 10 {
		w.exec(`update webhook_state set next_send_at = now() - interval '1 h'`)
		before := len(w.receiver.received())
		began := time.Now()
		claimed := w.both(w.dispatcher, other)
		allowed := 4 + int(time.Since(began).Seconds()*40)
		if n := claimed[0] + claimed[1]; n < 1 || n > allowed || len(w.receiver.received())-before != n {
			t.Fatalf("%v claimed, want %d at most", claimed, allowed)
		}
	}
	w.wantColumn("a rate rewrites no more than its state", `select version::text from webhook`, "1")
}

// TestNoRateNoWrite makes sure that a webhook that answers costs no write of its state.
func TestNoRateNoWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	before := w.column(`select xmin::text || ctid::text from webhook_state`)
	w.owed(hook, names(20)...)
	for range 4 {
		w.deliver()
	}
	w.wantColumn("statuses", statuses, "DELIVERED 20")
	w.wantColumn("the state's row", `select xmin::text || ctid::text from webhook_state`, before...)
}
