package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestKilledAroundTheCall kills a replica at a point between the claim of a message and its
// settlement, and lets another one continue. Nothing is lost; the message is sent twice only if the
// first process died after the request had left and before its outcome was sent to Postgres, which
// stores it although no process receives the answer.
func TestKilledAroundTheCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trigger string
		// attempts are those that are recorded in the end.
		attempts []string
	}{
		"in the claim": {`create trigger pause before update on outbox for each row when (old.claim_token is distinct from new.claim_token) execute function pause()`, []string{"1 DELIVERED"}},
		// The commit has been sent with the bodies, and Postgres executes it.
		"freezing the body":              {`create trigger pause after insert on notification_body for each row execute function pause()`, []string{"1 unknown", "2 DELIVERED"}},
		"begun, before the call":         {`create constraint trigger pause after update on outbox deferrable initially deferred for each row when (new.begun_at is not null) execute function pause()`, []string{"1 unknown", "2 DELIVERED"}},
		"answered, not settled":          {`create trigger pause before insert on settlement for each row execute function pause()`, []string{"1 DELIVERED"}},
		"the settlement being committed": {`create constraint trigger pause after insert on settlement deferrable initially deferred for each row execute function pause()`, []string{"1 DELIVERED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.raiseFor(w.webhook("ops"), "a")
			goOn := w.pauseInside(c.trigger)
			first := w.serve("TOCSIN_ROLES=dispatch")
			w.untilInside()
			first.kill()
			goOn()
			w.serve("TOCSIN_ROLES=dispatch")
			w.untilDelivered(1)
			w.until("the outbox is empty", func() bool { return len(w.column(unsettledOutbox)) == 0 })
			if got := strings.Join(w.receiver.received(), ""); got != "a" {
				t.Errorf("received %q, want it once", got)
			}
			w.wantColumn("attempts", attemptVerdicts, c.attempts...)
			for _, id := range w.receiver.webhookIDs() {
				if id != w.receiver.webhookIDs()[0] {
					t.Errorf("webhook-ids %q, want one", w.receiver.webhookIDs())
				}
			}
		})
	}
}

// TestKilledWhileTheReceiverReads kills a replica whose request has partly arrived at the receiver.
// How the receiver treats that is up to it; the message is sent again with the same webhook-id.
func TestKilledWhileTheReceiverReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var ids []string
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ids = append(ids, r.Header.Get("webhook-id"))
		first := len(ids) == 1
		mu.Unlock()
		if first {
			close(began)
			<-goOn
			return
		}
		w.receiver.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	w.receiver.url = front.URL
	w.raiseFor(w.webhook("ops"), "a")
	first := w.serve("TOCSIN_ROLES=dispatch")
	w.wait("the receiver has the head of the request", began)
	first.kill()
	close(goOn)
	w.serve("TOCSIN_ROLES=dispatch")
	w.untilDelivered(1)
	w.wantColumn("attempts", attemptVerdicts, "1 unknown", "2 DELIVERED")
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 2 || ids[0] != ids[1] || fmt.Sprint(w.receiver.received()) != "[a]" {
		t.Errorf("webhook-ids %q, read to the end %q", ids, w.receiver.received())
	}
}
