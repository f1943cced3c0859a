package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
)

// Queries of what operators are notified of.
const (
	toldOfMessages = `select w.name || ' ' || count(*) from notification n join webhook w using (webhook_id)
		where n.reason = 'UNDELIVERED' group by w.name`
	toldOfWebhooks = `select n.reason || ' ' || w.name from notification n join webhook w using (webhook_id)
		where n.reason in ('WEBHOOK_OFF', 'WEBHOOK_FAILING') order by n.created_at`
)

// TestOperatorsAreNotifiedOfWhatIsNotDelivered has messages be refused and exhausted:
// operators are notified of each, once, but not of what cannot be delivered to themselves.
func TestOperatorsAreNotifiedOfWhatIsNotDelivered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		counted  int
		want     notify.Status
		expected string
	}{
		"refused":   {http.StatusBadRequest, 0, notify.Failed, "The webhook ops refuses the message: The receiver answered 400 Bad Request"},
		"exhausted": {http.StatusNotFound, 5, notify.Exhausted, "All attempts to deliver the message to ops have failed: The receiver answered 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			hook := w.webhook("ops")
			w.status(c.status)
			w.owed(hook, "a", "b")
			w.exec(`update outbox set counted = $1`, c.counted)
			w.deliver()
			w.wantColumn("statuses of messages", `select status || ' ' || count(*) from notification_status where reason = 'FIRED' group by status`, string(c.want)+" 2")
			w.wantColumn("operators", toldOfMessages, "operators 2")
			// Settling again what is settled, and another failure, tell nothing anew.
			w.deliver()
			w.wantColumn("operators, after they could not be reached", toldOfMessages, "operators 2")
			var mu sync.Mutex
			var bodies []string
			w.receiver.tap = func(b []byte) { mu.Lock(); bodies = append(bodies, string(b)); mu.Unlock() }
			w.receiver.respond(nil)
			w.exec(`delete from notification_body`)
			w.exec(`delete from settlement where notification_id in (select notification_id from notification where reason = 'UNDELIVERED')`)
			w.exec(`delete from outbox`)
			w.exec(`insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from notification where reason = 'UNDELIVERED'`)
			w.deliver()
			mu.Lock()
			defer mu.Unlock()
			if len(bodies) != 2 || !strings.Contains(bodies[0], `"type":"message.undelivered"`) ||
				!strings.Contains(bodies[0], "Not delivered: ") || !strings.Contains(bodies[0], c.expected) {
				t.Errorf("operators got %q, want …%s…", bodies, c.expected)
			}
		})
	}
}

// TestABreakerOpenForLongIsToldOnce looks, from several replicas at once, for webhooks that
// have not answered for ten minutes.
func TestABreakerOpenForLongIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.open(9)
	w.operators()
	look := func() {
		t.Helper()
		var replicas sync.WaitGroup
		for range 4 {
			replicas.Go(func() {
				if _, err := w.db.Outbox().NotifyOpenBreakers(context.WithoutCancel(t.Context()), 10*time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		replicas.Wait()
	}
	look()
	w.wantColumn("within ten minutes", toldOfWebhooks)
	w.exec(`update webhook_state set opened_at = now() - interval '11 min' where opened_at is not null`)
	look()
	look()
	w.wantColumn("after ten minutes", toldOfWebhooks, "WEBHOOK_FAILING operators")
	w.wantColumn("inbox", healthAlerts, "FIRING")
	w.receiver.respond(nil)
	w.pauseIsOver()
	w.exec(`update outbox set due_at = now(), ready_at = now() where webhook_id = $1`, hook)
	w.deliver()
	w.wantColumn("once it answers", healthAlerts, "RESOLVED")
	// The next time is told anew.
	w.exec(`update webhook_state set failures = 9, openings = 1, opened_at = now() - interval '11 min', open_until = now() + interval '1 min' where webhook_id = $1`, hook)
	w.owed(hook, "next")
	look()
	w.wantColumn("the next time", toldOfWebhooks, "WEBHOOK_FAILING operators", "WEBHOOK_FAILING operators")
}

// TestThrottlingEnds has a receiver ask for a second's pause for ever: the pauses grow, one
// message goes first after each, and what has waited for longer than the schedule ends.
func TestThrottlingEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.owed(hook, names(20)...)
	w.deliver()
	first := len(w.receiver.received())
	if first > notify.DefaultMaxConcurrent {
		t.Fatalf("%d calls at first", first)
	}
	const holds = 12
	for range holds {
		w.exec(`update webhook set held_until = now()`)
		w.exec(`update outbox set due_at = now(), ready_at = now()`)
		w.deliver()
	}
	if n := len(w.receiver.received()) - first; n != holds {
		t.Errorf("%d calls after %d pauses, want one after each", n, holds)
	}
	w.wantColumn("the pause", `select (held_until - now() between interval '40 min' and interval '1 h')::text from webhook`, "true")
	w.wantColumn("no attempt counts", `select distinct counted::text from outbox`, "0")
	w.wantColumn("all wait", `select count(*)::text from outbox`, "20")
	// Not how old messages are counts, but for how long the receiver has asked for pauses.
	span := notify.DefaultPolicy().Span()
	w.exec(`update outbox set since = now() - interval '27 h' where notification_id in (select notification_id from outbox order by notification_id limit 15)`)
	if ended, err := w.db.Outbox().ExpireHeld(t.Context(), span); err != nil || ended != 0 {
		t.Errorf("%d ended too early, %v", ended, err)
	}
	w.exec(`update webhook_state set held_since = now() - interval '27 h' where holds > 0`)
	if ended, err := w.db.Outbox().ExpireHeld(t.Context(), span); err != nil || ended != 15 {
		t.Errorf("%d ended, want 15; %v", ended, err)
	}
	w.wantColumn("ended", `select status || ' ' || count(*) from settlement group by status`, "EXHAUSTED 15")
	w.wantColumn("still waiting", `select count(*)::text from outbox`, "5")
	w.receiver.respond(nil)
	for range 2 {
		w.exec(`update webhook set held_until = now()`)
		w.exec(`update outbox set due_at = now(), ready_at = now()`)
		w.deliver()
	}
	w.wantColumn("in the end", `select status || ' ' || count(*) from settlement group by status order by status`, "DELIVERED 5", "EXHAUSTED 15")
}

// TestOneThrottlingEndsNothingOld has the receiver of a webhook that was off for days ask for one
// pause: its messages wait for it, as they waited for the webhook.
func TestOneThrottlingEndsNothingOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owed(w.webhook("ops"), names(20)...)
	w.exec(`update outbox set since = now() - interval '63 h', due_at = now(), ready_at = now()`)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.deliver()
	if ended, err := w.db.Outbox().ExpireHeld(t.Context(), notify.DefaultPolicy().Span()); err != nil || ended > 0 {
		t.Errorf("%d ended, %v", ended, err)
	}
	w.wantColumn("waiting", `select count(*)::text from outbox`, "20")
	w.wantColumn("ended", `select status from settlement`)
}

// TestAllThatIsHeldForTooLongEnds has more messages wait for a receiver that asks for pauses
// than one transaction ends, while another replica ends them, too; operators are notified of each.
func TestAllThatIsHeldForTooLongEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.operators()
	w.owed(hook, names(2500)...)
	w.exec(`update outbox set since = now() - interval '30 h'`)
	w.exec(`update webhook set held_until = now() + interval '1 min' where webhook_id = $1`, hook)
	w.exec(`update webhook_state set holds = 9, held_since = now() - interval '30 h' where webhook_id = $1`, hook)
	var replicas sync.WaitGroup
	for range 2 {
		replicas.Go(func() {
			if _, err := w.db.Outbox().ExpireHeld(context.WithoutCancel(t.Context()), notify.DefaultPolicy().Span()); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	w.wantColumn("ended", `select status || ' ' || count(*) from settlement group by status`, "EXHAUSTED 2500")
	w.wantColumn("operators", toldOfMessages, "operators 2500")
}

// TestAHoldOutlivesWhatCannotEnd refuses to end messages: the pause that a receiver asks for is
// kept all the same.
func TestAHoldOutlivesWhatCannotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owed(w.webhook("ops"), "a", "b")
	w.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'no end'; end $$`)
	w.exec(`create trigger refuse before insert on settlement for each row when (new.status = 'EXHAUSTED') execute function refuse()`)
	w.exec(`update outbox set since = now() - interval '30 h'`)
	w.exec(`update webhook_state set holds = 9, held_since = now() - interval '30 h'`)
	w.exec(`update webhook set held_until = now()`)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "60")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.deliver()
	if ended, err := w.db.Outbox().ExpireHeld(t.Context(), notify.DefaultPolicy().Span()); err == nil || ended > 0 {
		t.Errorf("%d ended, %v", ended, err)
	}
	w.wantColumn("held", `select (held_until > now())::text from webhook`, "true")
	w.wantColumn("all wait", `select count(*)::text from outbox`, "2")
}

// TestALongPauseIsKept has a receiver ask for a pause of hours.
func TestALongPauseIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "18000")
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	w.owed(w.webhook("ops"), "a")
	w.deliver()
	w.wantColumn("held for five hours", `select (held_until - now() between interval '4 h 59 min' and interval '5 h')::text from webhook`, "true")
}

// TestWhatCannotBeReadEnds damages the alert of a message: it ends, visibly, and no other
// message waits for it.
func TestWhatCannotBeReadEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.owed(w.webhook("ops"), "a", "b", "c")
	w.exec(`update alert set exchange = '"no exchange"' where execution_id = 'b'`)
	w.deliver()
	w.wantColumn("statuses", `select s.status || ' ' || coalesce(a.execution_id, '') from notification_status s join alert a using (alert_id)
		where s.reason = 'FIRED' order by 1`, "DELIVERED a", "DELIVERED c", "FAILED b")
	w.wantColumn("the attempt", `select verdict || ' ' || (error like 'Not sent: alert %: the stored exchange cannot be read%')::text
		from attempt_history where verdict <> 'DELIVERED'`, "NOT_MADE true")
	w.wantColumn("operators", toldOfMessages, "operators 1")
	if got := w.receiver.received(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("received %q", got)
	}
	// Nor is the operators' own message about it, which has the same alert, tried for ever.
	w.deliver()
	w.wantColumn("nothing waits", unsettledOutbox)
}

// TestAFirstAttemptIsPending looks at a message while it is called for the first time.
func TestAFirstAttemptIsPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owed(w.webhook("ops"), "a")
	first := w.claim()[0]
	w.wantColumn("under way", statuses, "PENDING 1")
	if err := w.settle(settlement(&first, notify.VerdictRetry, notify.Retrying)); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("tried", statuses, "RETRYING 1")
	w.claim()
	w.wantColumn("under way again", statuses, "RETRYING 1")
}

// TestDiscard gives messages up in each state.
func TestDiscard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.status(http.StatusBadRequest)
	w.owed(hook, "failed")
	w.deliver()
	w.status(http.StatusBadGateway)
	w.owed(hook, "retrying")
	w.deliver()
	w.exec(`update webhook set enabled = false`)
	w.owed(hook, "pending")
	of := func(execution string) uuid.UUID {
		return uuid.MustParse(w.column(`select notification_id::text from notification join alert using (alert_id) where execution_id = $1`, execution)[0])
	}
	discard := func(id uuid.UUID) error { return w.db.Record(nil).Discard(t.Context(), tenant, id, "eve") }
	for _, execution := range []string{"failed", "retrying", "pending"} {
		if err := discard(of(execution)); err != nil {
			t.Errorf("%s: %v", execution, err)
		}
		if err := discard(of(execution)); err != nil {
			t.Errorf("%s, twice: %v", execution, err)
		}
	}
	w.wantColumn("statuses", statuses, "DISCARDED 3")
	w.wantColumn("by", `select distinct discarded_by from settlement`, "eve")
	w.exec(`update webhook set enabled = true`)
	w.receiver.respond(nil)
	w.owed(hook, "delivered", "called")
	w.exec(`update outbox set due_at = now() + interval '1 h', ready_at = now() + interval '1 h' where notification_id = $1`, of("called"))
	w.deliver()
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.claim()
	for _, execution := range []string{"delivered", "called"} {
		if err := discard(of(execution)); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v, want a conflict", execution, err)
		}
	}
	if err := w.db.Record(nil).Discard(t.Context(), "another", of("failed"), "eve"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of another tenant: %v", err)
	}
	w.exec(`update outbox set due_at = now(), claim_token = null`)
	done, err := w.db.Record(nil).DiscardAll(t.Context(), tenant, api.RetryOrder{IDs: []uuid.UUID{of("called"), of("delivered"), of("failed")}, Actor: "eve"})
	if err != nil || done != (api.Discarded{Discarded: 1, Skipped: 2}) {
		t.Errorf("in bulk: %+v, %v", done, err)
	}
	// What was discarded can be sent again.
	if err := w.retry(of("failed")); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	w.wantColumn("in the end", statuses, "DELIVERED 2", "DISCARDED 3")
}

// TestKeysAreRotated has secrets sealed with an old key be sealed anew, while one is
// edited: then the old key is no longer needed.
func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range names(120) {
		w.webhook(name)
	}
	first := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))
	open := func(keys string) *postgres.DB {
		t.Helper()
		box, err := seal.New(keys)
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.Open(t.Context(), w.pgURL, box)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db
	}
	both := open(first + "," + key)
	uses := func(db *postgres.DB) (list []api.KeyUse) {
		t.Helper()
		list, err := db.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i].Key = ""
		}
		return list
	}
	if got := uses(both); !slices.Equal(got, []api.KeyUse{{Configured: true, Active: true}, {Secrets: 120, Configured: true}}) {
		t.Errorf("before: %+v", got)
	}
	if got := uses(open(first)); !slices.Equal(got, []api.KeyUse{{Configured: true, Active: true}, {Secrets: 120}}) {
		t.Errorf("without the old key: %+v", got)
	}
	if done, err := open(first).Reseal(t.Context()); err != nil || done.Resealed != 0 || len(done.Unopened) != 120 {
		t.Errorf("without the old key: %d sealed anew, %d not opened, %v", done.Resealed, len(done.Unopened), err)
	}
	before := w.column(`select version || ' ' || updated_at::text from webhook order by name`)
	if done, err := both.Reseal(t.Context()); err != nil || done.Resealed != 120 || len(done.Unopened) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := both.Reseal(t.Context()); err != nil || done.Resealed != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	w.wantColumn("nobody's edit is refused for it", `select version || ' ' || updated_at::text from webhook order by name`, before...)
	if got := uses(both); !slices.Equal(got, []api.KeyUse{{Secrets: 120, Configured: true, Active: true}, {Configured: true}}) {
		t.Errorf("after: %+v", got)
	}
	hooks, err := open(first).Webhooks().List(t.Context(), tenant, api.NamePage{Limit: 200})
	if err != nil || len(hooks) != 120 || hooks[0].URL == "" || hooks[0].Sealed != nil {
		t.Errorf("with the new key alone: %d webhooks, %v", len(hooks), err)
	}
}

// TestFailuresAreFolded settles many failures of a few webhooks: breakers are judged once
// for each batch, and not once for each failure.
func TestFailuresAreFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var hooks []uuid.UUID
	for _, name := range names(3) {
		hooks = append(hooks, w.webhook(name))
		w.owed(hooks[len(hooks)-1], names(30)...)
	}
	claimed := w.claim()
	if len(claimed) != 90 {
		t.Fatalf("%d claimed", len(claimed))
	}
	var batch []notify.Settlement
	for i := range claimed {
		batch = append(batch, w.unanswered(&claimed[i]))
	}
	w.exec(`create sequence judged`)
	w.exec(`create function count_judged() returns trigger language plpgsql as $$ begin perform nextval('judged'); return new; end $$`)
	w.exec(`create trigger count_judged before update on webhook_state for each row execute function count_judged()`)
	if _, err := w.db.Outbox().Settle(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("failures", breakers, "30 failures, opening 1", "30 failures, opening 1", "30 failures, opening 1")
	w.wantColumn("breakers were written", `select last_value::text from judged`, "3")
}
