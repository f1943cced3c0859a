package app_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"tocsin/notify/dispatch"
)

// TestRateHoldsOverReplicas sends from two replicas at five a second, until fifteen
// were sent; one of them may come at once.
func TestRateHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.exec(`update webhook set rate_per_second = 5`)
	w.raiseFor(hook, names(60)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended sync.WaitGroup
	began := time.Now()
	for _, replica := range []string{"one", "two"} {
		d := w.newDispatcher(dispatch.Options{Replica: replica})
		ended.Go(func() { d.Run(ctx) })
	}
	sent := 0
	w.until("fifteen were sent", func() bool {
		sent = len(w.receiver.received())
		if allowed := 1 + int(time.Since(began).Seconds()*5); sent > allowed {
			t.Errorf("%d calls within %v, want %d at most", sent, time.Since(began), allowed)
			return true
		}
		return sent >= 15
	})
	cancel()
	ended.Wait()
	if by := w.column(`select replica || ' ' || count(*) from attempt_history group by replica`); len(by) != 2 {
		t.Logf("one replica sent everything: %q", by)
	}
	w.wantColumn("attempts", `select count(*)::text from attempt_history where verdict = 'DELIVERED'`, strconv.Itoa(len(w.receiver.received())))
}

// TestBurstIsGrantedOnce lets two replicas claim at the same instant what a rate allows once.
func TestBurstIsGrantedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.raiseFor(hook, names(60)...)
	w.exec(`update webhook set rate_per_second = 40`)
	other := w.newDispatcher(dispatch.Options{Replica: "other"})
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

// TestNoRateNoWrite checks that deliveries of a webhook without failures write nothing to its
// state.
func TestNoRateNoWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	before := w.column(`select xmin::text || ctid::text from webhook_state`)
	w.raiseFor(hook, names(20)...)
	for range 4 {
		w.deliver()
	}
	w.wantColumn("statuses", statuses, "DELIVERED 20")
	w.wantColumn("the state's row", `select xmin::text || ctid::text from webhook_state`, before...)
}
