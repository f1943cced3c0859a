package app_test

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// Queries of breakers.
const (
	breakers  = `select failures || ' failures, opening ' || openings from webhook_state`
	pauseOpen = `select (open_until - opened_at between interval '24 s' and interval '36 s')::text from webhook_state`
)

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = "e" + strconv.Itoa(100+i)
	}
	return list
}

// status makes the receiver respond with a status.
func (w *world) status(code int) {
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) })
}

// pauseIsOver makes every pause end now.
func (w *world) pauseIsOver() {
	w.t.Helper()
	w.exec(`update webhook_state set open_until = now() where opened_at is not null`)
}

// forgive closes every breaker.
func (w *world) forgive() {
	w.t.Helper()
	w.exec(`update webhook_state set failures = 0, openings = 0, opened_at = null, open_until = null, probe_id = null, probe_token = null`)
}

// both lets two dispatchers make a pass at the same time, and returns how much each claimed.
func (w *world) both(one, two *dispatch.Dispatcher) (claimed []int) {
	w.t.Helper()
	hooks := w.hooks()
	results := make([]dispatch.Result, 2)
	errs := make([]error, 2)
	var passes sync.WaitGroup
	for i, d := range []*dispatch.Dispatcher{one, two} {
		d.Wake(hooks)
		passes.Go(func() { results[i], errs[i] = d.Tick(w.t.Context()) })
	}
	passes.Wait()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
	return []int{results[0].Claimed, results[1].Claimed}
}

// open opens the breaker of a webhook, with more messages queued than were attempted.
func (w *world) open(written int) (hook uuid.UUID) {
	w.t.Helper()
	hook = w.webhook("ops")
	w.status(http.StatusServiceUnavailable)
	w.raiseFor(hook, names(written)...)
	w.deliver()
	w.wantColumn("breaker", breakers, "8 failures, opening 1")
	return hook
}

func TestBreakerOpensForAllReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.open(12)
	w.wantColumn("the pause is 30 s, give or take", pauseOpen, "true")
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	if claimed := w.both(w.dispatcher, w.newDispatcher(dispatch.Options{Replica: "other"})); claimed[0]+claimed[1] != 0 {
		t.Errorf("%v claimed while the breaker is open", claimed)
	}
	w.wantColumn("what waits has no attempt", `select attempts || ' ' || counted || ' ' || count(*) from outbox group by attempts, counted order by attempts`,
		"0 0 4", "1 1 8")
	got, err := w.db.Webhooks().Get(t.Context(), tenant, hook)
	if err != nil {
		t.Fatal(err)
	}
	flow := got.Flow
	if flow.State != notify.FlowOpen || flow.Failures != 8 || flow.LastError == "" || flow.Since.IsZero() || !flow.Until.After(flow.Since) {
		t.Errorf("flow %+v, want it open, since when, until when, and why", flow)
	}
}

// TestOneProbeOnly lets two replicas compete for the probe of each of many pauses.
func TestOneProbeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(30)
	other := w.newDispatcher(dispatch.Options{Replica: "other"})
	const rounds = 20
	won := []int{0, 0}
	for range rounds {
		w.pauseIsOver()
		claimed := w.both(w.dispatcher, other)
		if claimed[0]+claimed[1] != 1 {
			t.Fatalf("%v claimed, want one probe", claimed)
		}
		won[0], won[1] = won[0]+claimed[0], won[1]+claimed[1]
	}
	t.Logf("probes by replica: %v", won)
	w.wantColumn("each probe opened it again", breakers, "28 failures, opening 21")
	w.wantColumn("the pause is ten minutes, at most", `select (open_until - now() between interval '7 min' and interval '10 min')::text from webhook_state`, "true")
	if got := len(w.receiver.received()); got != 8+rounds {
		t.Errorf("received %d, want 8 and a probe of each round", got)
	}
	// After its success everything is delivered, by either replica.
	w.receiver.respond(nil)
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.pauseIsOver()
	if claimed := w.both(w.dispatcher, other); claimed[0]+claimed[1] < 1 {
		t.Errorf("%v claimed, want a probe", claimed)
	}
	w.wantColumn("closed", breakers, "0 failures, opening 0")
	w.both(w.dispatcher, other)
	w.both(w.dispatcher, other)
	w.wantColumn("statuses", statuses, "DELIVERED 30")
}

func TestRefusalClosesAndHoldsDoNotOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(9)
	w.status(http.StatusBadRequest)
	w.pauseIsOver()
	w.deliver() // the probe, the only one that is due
	w.wantColumn("a refusal is an answer", breakers, "0 failures, opening 0")
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	for range 3 {
		w.deliver()
		w.exec(`update outbox set due_at = now(), ready_at = now()`)
		w.exec(`update webhook set held_until = null`)
	}
	w.wantColumn("a hold is no failure", breakers, "0 failures, opening 0")
}

// TestLeaseOfADeadProbeExpires claims a probe and never settles it, like a replica that was killed.
func TestLeaseOfADeadProbeExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.open(12)
	w.receiver.respond(nil)
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.pauseIsOver()
	const lease = 600 * time.Millisecond
	began := time.Now()
	probes := w.claimFor(hook, lease)
	if len(probes) != 1 {
		t.Fatalf("%d claimed, want one probe", len(probes))
	}
	dead := probes[0]
	w.exec(`update outbox set ready_at = due_at where claim_token is not null`) // others are due before it
	w.until("the lease of the probe expires, and another one is sent", func() bool {
		w.deliver()
		return len(w.receiver.received()) > 8
	})
	if after := time.Since(began); after < lease {
		t.Errorf("another probe went out after %v, within the lease", after)
	}
	w.wantColumn("closed by the other probe", breakers, "0 failures, opening 0")
	// An outcome that the paused process reports when it resumes no longer counts as a probe's.
	if err := w.settle(w.unanswered(&dead)); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("still closed", breakers, "1 failures, opening 0")
}

// unanswered returns the settlement of an attempt without a response.
func (w *world) unanswered(d *notify.Delivery) dispatch.Settlement {
	s := settlement(d, notify.VerdictRetry, notify.Retrying)
	s.Breaker = func(was notify.Breaker, probe bool, now time.Time) notify.Breaker {
		e := notify.Evidence{Outcome: s.Outcome, Probe: probe, Now: now, Random: 0.5}
		return notify.DefaultPolicy().Breaker.Next(was, e)
	}
	return s
}

// TestSlowProbeStaysTheOnlyOne has a probe that takes longer than its lease, and than the pause
// after which it was sent.
func TestSlowProbeStaysTheOnlyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(12)
	called, release := w.receiver.hang()
	t.Cleanup(release)
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.pauseIsOver()
	const lease = 2 * time.Second
	prober := w.newDispatcher(dispatch.Options{Lease: lease, Replica: "prober"})
	ended := w.underWay(prober, called)
	began := time.Now()
	other := w.newDispatcher(dispatch.Options{Replica: "other"})
	w.until("a lease has passed", func() bool {
		if result, err := other.Tick(t.Context()); err != nil || result.Claimed > 0 {
			t.Fatalf("claimed %d, %v, while the probe is on its way", result.Claimed, err)
		}
		return time.Since(began) > lease
	})
	release()
	if err := await(t, "it has ended", ended); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("closed", breakers, "0 failures, opening 0")
}

func TestEnablingResetsTheBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.open(12)
	w.receiver.respond(nil)
	got, err := w.db.Webhooks().SetEnabled(t.Context(), tenant, hook, true)
	if err != nil || got.Flow.State != notify.FlowOK || got.Flow.LastError != "" {
		t.Fatalf("SetEnabled = %+v, %v; want everything to flow", got.Flow, err)
	}
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.deliver()
	if got := len(w.receiver.received()); got != 16 {
		t.Errorf("received %d, want eight more at once", got)
	}
}

func TestLatecomersDoNotProlongThePause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.raiseFor(hook, names(8)...)
	claimed := w.claim()
	for i := range claimed {
		if err := w.settle(w.unanswered(&claimed[i])); err != nil {
			t.Fatal(err)
		}
	}
	w.wantColumn("opened once", breakers, "8 failures, opening 1")
	w.wantColumn("for the first pause", pauseOpen, "true")
}

// claimFor claims what is due for a webhook under a lease.
func (w *world) claimFor(hook uuid.UUID, lease time.Duration) []notify.Delivery {
	w.t.Helper()
	request := w.claimRequest()
	request.Lease = lease
	request.Deal = func([]dispatch.Due) []dispatch.Slots { return []dispatch.Slots{{WebhookID: hook, Slots: 100}} }
	claimed, err := w.db.Outbox().Claim(w.t.Context(), request)
	if err != nil {
		w.t.Fatal(err)
	}
	return claimed.Deliveries
}

// TestBreakerKeepsNoSettlementWaiting locks a breaker, as a paused replica does: outcomes are
// stored all the same.
func TestBreakerKeepsNoSettlementWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.status(http.StatusServiceUnavailable)
	w.raiseFor(hook, names(3)...)
	holder := pgtest.Conn(t, w.pgURL)
	if _, err := holder.Exec(t.Context(), `begin; select from webhook_state for update`); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	w.wantColumn("stored", `select string_agg(verdict, ' ') from attempt_history`, "RETRY RETRY RETRY")
	w.wantColumn("due later, and nobody's", `select count(*)::text from outbox where attempts = 1 and claim_token is null and due_at > now()`, "3")
	w.wantColumn("not counted", breakers, "0 failures, opening 0")
}

// TestAVerdictAboutTheFormerReceiver changes a webhook's address during a call to the former one:
// the outcome of that call does not count for the new address.
func TestAVerdictAboutTheFormerReceiver(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusGone, http.StatusTooManyRequests, http.StatusInternalServerError} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			hook := w.webhook("ops")
			called, answer := make(chan struct{}), make(chan struct{})
			w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
				close(called)
				<-answer
				rw.Header().Set("Retry-After", "3600")
				rw.WriteHeader(status)
			})
			w.raiseFor(hook, "a")
			delivered := make(chan struct{})
			go func() { defer close(delivered); w.deliver() }()
			await(t, "a call is under way", called)
			edited, err := w.db.Webhooks().Get(t.Context(), tenant, hook)
			if err != nil {
				t.Fatal(err)
			}
			edited.URL = "https://new.example.com/hook"
			if _, err := w.db.Webhooks().Update(t.Context(), tenant, edited); err != nil {
				t.Fatal(err)
			}
			close(answer)
			await(t, "the pass has ended", delivered)
			edited, err = w.db.Webhooks().Get(t.Context(), tenant, hook)
			if err != nil {
				t.Fatal(err)
			}
			if !edited.Enabled || !edited.HeldUntil.IsZero() || edited.Flow.State != notify.FlowOK || edited.Flow.Failures > 0 {
				t.Errorf("enabled %t %q, held until %v, flow %+v", edited.Enabled, edited.DisabledReason, edited.HeldUntil, edited.Flow)
			}
			w.wantColumn("alerts about the webhook", `select title from alert where webhook_id is not null`)
		})
	}
}
