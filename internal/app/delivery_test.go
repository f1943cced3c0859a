package app_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/webhook"
	"tocsin/rules"
)

// raiseFor raises alerts for failures of an application that only the webhook's own rule watches, and
// so queues notifications for this webhook only.
func (w *world) raiseFor(webhook uuid.UUID, ids ...string) {
	w.t.Helper()
	application := webhook.String()
	if len(w.column(`select rule_id::text from rule where name = $1`, application)) == 0 {
		w.ruleOf(rules.Definition{
			Name: application, Scope: rules.Scope{Applications: []string{application}}, WebhookIDs: []uuid.UUID{webhook},
		})
	}
	at := w.ch.Now(w.t)
	exchanges := make([]rules.Exchange, len(ids))
	for i, id := range ids {
		exchanges[i] = rules.Exchange{
			TenantID: tenant, StartTimeNS: at, EndTimeNS: &at, ExecutionID: id, Application: application, Status: rules.Failed,
		}
	}
	w.ch.Insert(w.t, exchanges...)
	w.tick()
}

// deliver makes the dispatcher make a pass, as after a wake-up.
func (w *world) deliver() {
	w.t.Helper()
	w.dispatcher.Wake(w.hooks())
	if _, err := w.dispatcher.Tick(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// hooks returns all webhooks.
func (w *world) hooks() (ids []uuid.UUID) {
	w.t.Helper()
	for _, id := range w.column(`select webhook_id::text from webhook`) {
		ids = append(ids, uuid.MustParse(id))
	}
	return ids
}

// claim claims everything that is due, as a dispatcher does.
func (w *world) claim() []notify.Delivery {
	w.t.Helper()
	return w.claimed().Deliveries
}

func (w *world) claimed() dispatch.Claimed {
	w.t.Helper()
	return w.claimedFrom(w.db)
}

// claimRequest is a request for everything that is due.
func (w *world) claimRequest() dispatch.ClaimRequest {
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return dispatch.ClaimRequest{
		Replica: "claimant", Lease: time.Minute, Webhooks: w.hooks(),
		Deal: func(due []dispatch.Due) []dispatch.Slots {
			var dealt []dispatch.Slots
			for _, d := range due {
				dealt = append(dealt, dispatch.Slots{WebhookID: d.WebhookID, Slots: 100})
			}
			return dealt
		},
		Render: func(d *notify.Delivery) (notify.Body, string, error) {
			body, err := renderer.Render(d)
			return body, "", err
		},
	}
}

func (w *world) claimedFrom(db *postgres.DB) dispatch.Claimed {
	w.t.Helper()
	claimed, err := db.Outbox().Claim(w.t.Context(), w.claimRequest())
	if err != nil {
		w.t.Fatal(err)
	}
	return claimed
}

func settlement(d *notify.Delivery, v notify.Verdict, status notify.Status) dispatch.Settlement {
	return dispatch.Settlement{
		TenantID: d.Webhook.TenantID, NotificationID: d.NotificationID, WebhookID: d.Webhook.ID, WebhookVersion: d.Webhook.Version,
		Token: d.Token, Attempt: d.Attempt, Replica: "claimant",
		Outcome: notify.Outcome{Verdict: v}, Decision: notify.Decision{Status: status, Counts: true},
	}
}

// settle stores an outcome, as a dispatcher does.
func (w *world) settle(s dispatch.Settlement) error {
	settled, err := w.db.Outbox().Settle(w.t.Context(), []dispatch.Settlement{s})
	if err == nil && settled[0].Fenced {
		err = notify.ErrFenced
	}
	return err
}

const attempts = `select attempt || ' ' || coalesce(verdict, 'unknown') from attempt_history order by notification_id, attempt`

func TestDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a", "b")
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 2")
	w.wantColumn("outbox", unsettledOutbox)
	w.wantColumn("attempts", attempts, "1 DELIVERED", "1 DELIVERED")
	if got := w.receiver.received(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("received %q", got)
	}
	w.deliver()
	if got := w.receiver.received(); len(got) != 2 {
		t.Errorf("received %q after another pass", got)
	}
}

func TestEachBoundWebhookIsNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("one"), w.webhook("two"))
	w.fail(rule.ArmedSinceNS+1000, "a")
	w.tick()
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 2")
}

func TestRetriedOnTheScheduleWithTheSameBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "try later", http.StatusBadGateway) })
	w.raiseFor(w.webhook("ops"), "a")
	for attempt := range 6 {
		w.deliver()
		want := "RETRYING 1"
		if attempt == 5 {
			want = "EXHAUSTED 1"
		}
		w.wantColumn("statuses", statuses, want)
		w.deliver() // nothing is due
		w.exec(`update outbox set due_at = now(), ready_at = now()`)
		w.exec(`update webhook_state set open_until = now() where opened_at is not null`)
	}
	w.wantColumn("attempts", `select count(*)::text from attempt_history where verdict = 'RETRY' and status_code = 502 and response like 'try later%'`, "6")
	w.wantColumn("bodies", `select count(*)::text from notification_body`, "1")
	if ids := w.receiver.webhookIDs(); len(ids) != 6 || len(slices.Compact(ids)) != 1 {
		t.Errorf("webhook-ids %q, want one for six attempts", ids)
	}
}

func TestThrottledHoldsTheWholeWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "60")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	hook := w.webhook("ops")
	w.raiseFor(hook, "a")
	w.deliver()
	w.raiseFor(hook, "b")
	w.deliver()
	if got := w.receiver.received(); len(got) != 1 {
		t.Errorf("received %q, want nothing while the webhook is held", got)
	}
	w.wantColumn("the hold", `select (held_until - now() between interval '50 s' and interval '60 s')::text from webhook`, "true")
	w.wantColumn("counted attempts", `select distinct counted::text from outbox`, "0")
	w.receiver.respond(nil)
	w.exec(`update webhook set held_until = now()`)
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.deliver()
	w.wantColumn("one goes first", statuses, "DELIVERED 1", "PENDING 1")
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 2")
}

func TestGoneSwitchesTheWebhookOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) })
	hook := w.webhook("ops")
	w.raiseFor(hook, "a")
	w.deliver()
	w.wantColumn("its messages wait", statuses, "RETRYING 1")
	got, err := w.db.Webhooks().Get(t.Context(), tenant, hook)
	if err != nil || got.Enabled || got.DisabledReason == "" {
		t.Errorf("webhook %+v, %v; want it off, with the reason", got, err)
	}
	w.raiseFor(hook, "b")
	w.deliver()
	w.wantColumn("statuses", statuses, "PENDING 1", "RETRYING 1")
	w.receiver.respond(nil)
	if _, err := w.db.Webhooks().SetEnabled(t.Context(), tenant, hook, true); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 2")
}

func TestRefusedIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no", http.StatusBadRequest) })
	w.raiseFor(w.webhook("ops"), "a")
	w.deliver()
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.deliver()
	w.wantColumn("statuses", statuses, "FAILED 1")
	w.wantColumn("attempts", attempts, "1 REFUSED")
}

func TestStaleClaimantIsFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	stale := w.claim()[0]
	if again := w.claim(); len(again) != 0 {
		t.Fatalf("claimed twice: %+v", again)
	}
	w.exec(`update outbox set due_at = now(), ready_at = now()`) // its lease has expired
	owner := w.claim()[0]
	if owner.Token == stale.Token || owner.Attempt != 2 {
		t.Fatalf("the new claim has token %d and attempt %d", owner.Token, owner.Attempt)
	}
	held := append(heldOf(owner), heldOf(stale)...)
	if left, err := w.db.Outbox().Renew(t.Context(), held, time.Minute); err != nil || len(left) != 1 || left[held[0]] < time.Minute/2 || left[held[0]] > time.Minute {
		t.Errorf("Renew = %+v, %v; want that only the present claim is valid", left, err)
	}
	for _, status := range []notify.Status{notify.Retrying, notify.Failed, notify.Exhausted} {
		if err := w.settle(settlement(&stale, notify.VerdictRetry, status)); !errors.Is(err, notify.ErrFenced) {
			t.Errorf("Settle as %s by the stale claimant = %v", status, err)
		}
	}
	w.wantColumn("claims", `select claim_token::text from outbox`, itoa(owner.Token))
	if err := w.settle(settlement(&owner, notify.VerdictDelivered, notify.Delivered)); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	w.wantColumn("attempts", attempts, "1 RETRY", "2 DELIVERED")
}

// TestClaimLostByAFailover has a failover that reverts a claim: the message is claimed again with
// the same number, and the outcome of either is stored.
func TestClaimLostByAFailover(t *testing.T) {
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	lost := w.claim()[0]
	w.exec(`update outbox set claim_token = null, claimed_by = null, begun_at = null, attempts = 0, due_at = now(), ready_at = now()`)
	again := w.claim()[0]
	if again.Attempt != lost.Attempt {
		t.Fatalf("attempt %d after %d was lost", again.Attempt, lost.Attempt)
	}
	if err := w.settle(settlement(&lost, notify.VerdictRetry, notify.Retrying)); !errors.Is(err, notify.ErrFenced) {
		t.Errorf("Settle of the lost claim = %v", err)
	}
	if err := w.settle(settlement(&again, notify.VerdictRetry, notify.Retrying)); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("attempts", attempts, "1 RETRY")
	w.wantColumn("claims", `select coalesce(claim_token::text, 'none') from outbox`, "none")
}

func TestLateSuccessEndsTheNotification(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	stale := w.claim()[0]
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	owner := w.claim()[0]
	err := w.settle(settlement(&stale, notify.VerdictDelivered, notify.Delivered))
	if !errors.Is(err, notify.ErrFenced) {
		t.Errorf("Settle by the stale claimant = %v", err)
	}
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	if left, err := w.db.Outbox().Renew(t.Context(), heldOf(owner), time.Minute); err != nil || len(left) != 0 {
		t.Errorf("Renew after the message has arrived = %+v, %v; want no valid claim", left, err)
	}
}

func TestSlowReceiverKeepsItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	called, release := w.receiver.hang()
	t.Cleanup(release)
	w.raiseFor(w.webhook("ops"), "a")
	const lease = 2 * time.Second
	slow := w.newDispatcher(dispatch.Options{Lease: lease})
	ended := w.underWay(slow, called)
	// A lease later, the row is still not available.
	began := time.Now()
	w.until("a lease has passed", func() bool {
		if claimed := w.claim(); len(claimed) > 0 {
			t.Fatal("the row was taken from a dispatcher that renews its lease")
		}
		return time.Since(began) > lease
	})
	release()
	if err := await(t, "it has ended", ended); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("calls", `select verdict from attempt_history where verdict <> 'NOT_MADE'`, "DELIVERED")
}

func TestTwoDispatchersShareWithoutRepeating(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]string, 60)
	for i := range ids {
		ids[i] = "e" + itoa(int64(i))
	}
	w.raiseFor(w.webhook("ops"), ids...)
	other := w.newDispatcher(dispatch.Options{Replica: "other"})
	ended := make(chan error, 2)
	for _, d := range []*dispatch.Dispatcher{w.dispatcher, other} {
		go func() {
			for {
				result, err := d.Tick(t.Context())
				if err != nil || result.Claimed == 0 {
					ended <- err
					return
				}
			}
		}()
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	if got := w.receiver.received(); !slices.Equal(got, ids) {
		t.Errorf("received %d messages, want each of %d once", len(got), len(ids))
	}
}

func TestDeadEndpointDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead, healthy := w.webhook("dead"), w.webhook("healthy")
	_, release := w.receiver.hang()
	t.Cleanup(release)
	w.raiseFor(dead, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
	w.raiseFor(healthy, "z")
	rooms := 0
	for _, d := range w.claim() {
		if d.Webhook.ID == healthy {
			rooms++
		}
	}
	if rooms != 1 {
		t.Errorf("the healthy webhook got %d of its one row", rooms)
	}
}

func TestUnreadableSecretKeepsTheOthersGoing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good, bad := w.webhook("good"), w.webhook("bad")
	w.raiseFor(good, "a")
	w.raiseFor(bad, "b")
	w.exec(`update webhook set secrets = 'damaged' where webhook_id = $1`, bad)
	if _, err := w.dispatcher.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), bad.String()) {
		t.Errorf("err = %v, want it to name the webhook", err)
	}
	w.wantColumn("statuses", statuses, "DELIVERED 1", "PENDING 1")
}

func TestDeletingAWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.status(http.StatusBadRequest)
	w.raiseFor(hook, "a", "b")
	w.deliver()
	w.exec(`update settlement set status = 'EXHAUSTED' where notification_id = (select notification_id from settlement limit 1)`)
	w.raiseFor(hook, "c")
	w.wantColumn("statuses before", statuses, "EXHAUSTED 1", "FAILED 1", "PENDING 1")
	err := w.db.Webhooks().Delete(t.Context(), tenant, hook)
	if fault.KindOf(err) != fault.Conflict {
		t.Fatalf("Delete of a bound webhook = %v", err)
	}
	list := w.column(`select rule_id::text from rule`)
	if err := w.db.Rules().Delete(t.Context(), tenant, uuid.MustParse(list[0])); err != nil {
		t.Fatal(err)
	}
	if err := w.db.Webhooks().Delete(t.Context(), tenant, hook); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("statuses", statuses, "DISCARDED 3")
	w.wantColumn("by whom", `select distinct discarded_by from settlement`, notify.ByTocsin)
	if measured, err := w.db.Reconciliation().Gauges(t.Context(), time.Minute); err != nil || measured.DeadLetters != 0 {
		t.Errorf("%d dead letters, %v; want none", measured.DeadLetters, err)
	}
	w.wantColumn("alerts", alertIDs, "a", "b", "c")
	w.wantColumn("secrets", `select length(secrets)::text from webhook`, "0")
}

// A message that the webhook no longer accepts right before the call is not sent.
func TestCheckedBeforeTheCall(t *testing.T) {
	t.Parallel()
	const open = `update webhook_state set failures = 5, openings = 1, opened_at = now(), open_until = now() + interval '1 h'`
	for name, change := range map[string]string{
		"edited":            `update webhook set version = version + 1`,
		"off":               `update webhook set enabled = false`,
		"held":              `update webhook set held_until = now() + interval '1 h'`,
		"after a hold":      `update webhook_state set holds = 1`,
		"open breaker":      open,
		"deleted by a hand": `delete from webhook_state`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			hook := w.webhook("ops")
			w.raiseFor(hook, "a", "b")
			request := w.claimRequest()
			render := request.Render
			request.Render = func(d *notify.Delivery) (notify.Body, string, error) {
				w.exec(change)
				return render(d)
			}
			claimed, err := w.db.Outbox().Claim(t.Context(), request)
			if err != nil || len(claimed.Deliveries) != 2 {
				t.Fatalf("%d claimed, %v", len(claimed.Deliveries), err)
			}
			if !slices.Equal(claimed.Unwanted, []uuid.UUID{hook}) || claimed.Unchecked != nil {
				t.Errorf("unwanted %v, unchecked %v", claimed.Unwanted, claimed.Unchecked)
			}
		})
	}
}

// heldOf returns the claims of deliveries.
func heldOf(deliveries ...notify.Delivery) (held []dispatch.Held) {
	for i := range deliveries {
		d := &deliveries[i]
		held = append(held, dispatch.Held{NotificationID: d.NotificationID, Token: d.Token})
	}
	return held
}

// A breaker lets its probe through.
func TestAProbeIsWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a", "b")
	w.exec(`update webhook_state set failures = 5, openings = 1, opened_at = now(), open_until = now()`)
	probe := w.claimed()
	if len(probe.Deliveries) != 1 || len(probe.Unwanted) > 0 {
		t.Errorf("%d claimed, unwanted %v; want the probe to go out", len(probe.Deliveries), probe.Unwanted)
	}
}

// TestEditedBetweenClaimAndCall changes a webhook's address while its messages are being claimed:
// nothing goes to the former address, and no attempt of the schedule is used up.
func TestEditedBetweenClaimAndCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.raiseFor(hook, "a", "b", "c")
	d := w.newDispatcher(dispatch.Options{Store: editingStore{w.db.Outbox(), func() { w.exec(`update webhook set version = version + 1`) }}})
	if _, err := d.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.receiver.received(); len(got) > 0 {
		t.Errorf("received %q after the edit", got)
	}
	w.wantColumn("attempts", attempts, "1 NOT_MADE", "1 NOT_MADE", "1 NOT_MADE")
	w.wantColumn("counted", `select distinct counted::text from outbox`, "0")
	w.wantColumn("breaker", breakers, "0 failures, opening 0")
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 3")
}

// editingStore is a store in which something happens between a claim and its commit.
type editingStore struct {
	dispatch.Store
	edit func()
}

func (e editingStore) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	render := r.Render
	r.Render = func(d *notify.Delivery) (notify.Body, string, error) {
		e.edit()
		return render(d)
	}
	return e.Store.Claim(ctx, r)
}
