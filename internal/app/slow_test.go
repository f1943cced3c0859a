package app_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// hanging is the number of slow webhooks; it is more than are needed to fill every slot.
const hanging = 9

// neighbours stores webhooks that hang, each with more messages queued than there are slots for all
// of them, and one that is dead.
func (w *world) neighbours() (ids []uuid.UUID) {
	w.t.Helper()
	for i := range hanging {
		ids = append(ids, w.webhook("slow"+strconv.Itoa(i)))
	}
	dead := w.webhook("dead")
	w.exec(`update webhook set timeout_ms = 60000 where name like 'slow%'`)
	for _, id := range append(ids, dead) {
		w.raiseFor(id, names(100)...)
	}
	w.exec(`update outbox set due_at = now() + interval '1 day', ready_at = now() + interval '1 day'`)
	return append(ids, dead)
}

// latencies measures the time from when a message becomes due until it is received, for n messages
// of a webhook, one after the other.
func (w *world) latencies(hook uuid.UUID, samples int, wakeUps chan<- notify.Signal, received <-chan time.Time) []time.Duration {
	w.t.Helper()
	var took []time.Duration
	for _, id := range w.column(`select notification_id::text from outbox where webhook_id = $1 order by notification_id limit $2`, hook, samples) {
		began := time.Now()
		w.exec(`update outbox set due_at = now(), ready_at = now() where notification_id = $1`, id)
		wakeUps <- notify.Signal{WakeUp: notify.WakeUp{Notifications: 1}}
		select {
		case at := <-received:
			took = append(took, at.Sub(began))
		case <-time.After(waitLimit):
			w.t.Fatal("the healthy webhook waits for others")
		}
	}
	slices.Sort(took)
	return took
}

// sideBySide measures a healthy webhook by itself, and then together with a dead one and others
// that hang and have more messages queued than there are slots. A webhook without known latency
// waits a second at most, until the others are known to be slow.
func (w *world) sideBySide(samples int) (alone, beside []time.Duration) {
	w.t.Helper()
	received, released := make(chan time.Time), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	w.t.Cleanup(release)
	w.receiver.respond(func(_ http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/slow"):
			select {
			case <-released:
			case <-r.Context().Done():
			case <-time.After(waitLimit):
			}
		case r.URL.Path == "/dead":
			panic(http.ErrAbortHandler)
		default:
			at := time.Now()
			go func() { received <- at }()
		}
	})
	others := w.neighbours()
	healthy := w.webhook("healthy")
	w.raiseFor(healthy, names(2*samples)...)
	w.exec(`update outbox set due_at = now() + interval '1 day', ready_at = now() + interval '1 day'`)
	wakeUps := make(chan notify.Signal)
	d := w.newDispatcher(dispatch.Options{WakeUps: wakeUps})
	ctx, cancel := context.WithCancel(w.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { d.Run(ctx) })
	alone = w.latencies(healthy, samples, wakeUps, received)
	w.exec(`update outbox set due_at = now(), ready_at = now() where webhook_id = any($1)`, others)
	wakeUps <- notify.Signal{}
	w.until("as many calls hang as slow webhooks may have", func() bool {
		return w.column(`select count(*)::text from attempt_history where verdict is null`)[0] >= "32"
	})
	w.until("the dead webhook's breaker is open", func() bool {
		return len(w.column(`select w.name from webhook_state join webhook w using (webhook_id) where opened_at is not null`)) == 1
	})
	beside = w.latencies(healthy, samples, wakeUps, received)
	cancel()
	release()
	ended.Wait()
	return alone, beside
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

func p99(sorted []time.Duration) time.Duration { return sorted[len(sorted)*99/100] }

// TestHealthyWebhookKeepsItsPace has generous limits, because the machine is shared;
// BenchmarkSideBySide measures.
func TestHealthyWebhookKeepsItsPace(t *testing.T) {
	w := newWorld(t)
	alone, beside := w.sideBySide(100)
	t.Logf("p99 alone %v, beside dead and slow ones %v: %.2f", p99(alone), p99(beside), float64(p99(beside))/float64(p99(alone)))
	// The median: on a busy machine the largest values depend on the machine.
	if limit := 5*median(alone) + time.Second; median(beside) > limit {
		t.Errorf("the median is %v alone and %v beside dead and slow webhooks", median(alone), median(beside))
	}
	if claimed := w.column(`select count(*)::text from attempt_history a join notification n using (notification_id)
		join webhook w using (webhook_id) where w.name like 'slow%'`); claimed[0] < "32" || len(claimed[0]) > 2 {
		t.Errorf("%s attempts of slow webhooks, want about half the slots", claimed)
	}
}

func BenchmarkSideBySide(b *testing.B) {
	for b.Loop() {
		w := newWorld(b)
		alone, beside := w.sideBySide(500)
		b.ReportMetric(float64(alone[len(alone)/2].Microseconds())/1000, "alone-p50-ms")
		b.ReportMetric(float64(p99(alone).Microseconds())/1000, "alone-p99-ms")
		b.ReportMetric(float64(beside[len(beside)/2].Microseconds())/1000, "beside-p50-ms")
		b.ReportMetric(float64(p99(beside).Microseconds())/1000, "beside-p99-ms")
	}
}

// cutOff is a store whose renewals do not reach Postgres.
type cutOff struct{ dispatch.Store }

func (c cutOff) Renew(context.Context, []dispatch.Held, time.Duration) (map[dispatch.Held]time.Duration, error) {
	return nil, errors.New("the connection is lost")
}

// TestFailingRenewalPassesTheLeaseOn blocks the lease renewals of a dispatcher in the middle of a
// call: another one takes over, and the first settles nothing.
func TestFailingRenewalPassesTheLeaseOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	called, release := w.receiver.hang()
	t.Cleanup(release)
	const lease = 2 * time.Second
	lost := w.newDispatcher(dispatch.Options{Store: cutOff{w.db.Outbox()}, Lease: lease, Replica: "lost"})
	ended := w.underWay(lost, called)
	w.receiver.respond(nil)
	other := w.newDispatcher(dispatch.Options{Replica: "other"})
	w.until("the other one takes over", func() bool {
		result, err := other.Tick(t.Context())
		return err == nil && result.Claimed == 1
	})
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	release()
	if err := await(t, "it has ended", ended); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("each outcome is kept on its attempt", `select replica || ' ' || verdict from attempt_history where verdict <> 'NOT_MADE' order by attempt`, "lost DELIVERED", "other DELIVERED")
	w.wantColumn("settlements", settlements, "DELIVERED 1")
}
