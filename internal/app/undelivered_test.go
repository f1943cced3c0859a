package app_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/app"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// Queries for what operators are notified of.
const (
	reportsOfMessages = `select w.name || ' ' || count(*) from notification n join webhook w using (webhook_id)
		where n.reason = 'UNDELIVERED' group by w.name`
	reportsOfWebhooks = `select n.reason || ' ' || w.name from notification n join webhook w using (webhook_id)
		where n.reason in ('WEBHOOK_OFF', 'WEBHOOK_FAILING') order by n.created_at`
)

// TestOperatorsAreNotifiedOfWhatIsNotDelivered makes messages fail permanently and run out of
// attempts: operators are notified of each, once, but not of messages to themselves.
func TestOperatorsAreNotifiedOfWhatIsNotDelivered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		counted  int
		want     notify.Status
		expected string
	}{
		"refused":   {http.StatusBadRequest, 0, notify.Failed, "The receiver of ops refused the message: The receiver answered 400 Bad Request"},
		"exhausted": {http.StatusNotFound, 5, notify.Exhausted, "All attempts to deliver the message to ops have failed: The receiver answered 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			hook := w.webhook("ops")
			w.status(c.status)
			w.raiseFor(hook, "a", "b")
			w.exec(`update outbox set counted = $1`, c.counted)
			w.deliver()
			w.wantColumn("statuses of messages", `select status || ' ' || count(*) from notification_status where reason = 'FIRED' group by status`, string(c.want)+" 2")
			w.wantColumn("operators", reportsOfMessages, "operators 2")
			// Settling what is settled again, and another failure, cause no further notification.
			w.deliver()
			w.wantColumn("operators, after they could not be reached", reportsOfMessages, "operators 2")
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

// TestOpenBreakerIsAnnouncedOnce looks, from several replicas at once, for webhooks that have
// failed for ten minutes.
func TestOpenBreakerIsAnnouncedOnce(t *testing.T) {
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
	w.wantColumn("within ten minutes", reportsOfWebhooks)
	w.exec(`update webhook_state set opened_at = now() - interval '11 min' where opened_at is not null`)
	look()
	look()
	w.wantColumn("after ten minutes", reportsOfWebhooks, "WEBHOOK_FAILING operators")
	w.wantColumn("inbox", healthAlerts, "FIRING")
	w.receiver.respond(nil)
	w.pauseIsOver()
	w.exec(`update outbox set due_at = now(), ready_at = now() where webhook_id = $1`, hook)
	w.deliver()
	w.wantColumn("once it answers", healthAlerts, "RESOLVED")
	// The next time is reported again.
	w.exec(`update webhook_state set failures = 9, openings = 1, opened_at = now() - interval '11 min', open_until = now() + interval '1 min' where webhook_id = $1`, hook)
	w.raiseFor(hook, "next")
	look()
	w.wantColumn("the next time", reportsOfWebhooks, "WEBHOOK_FAILING operators", "WEBHOOK_FAILING operators")
}

// TestAFailureToNotifyKeepsNoOtherWaiting makes the alert about one of three failing webhooks fail
// in the database: operators are notified of the others.
func TestAFailureToNotifyKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	for _, name := range []string{"one", "two", "three"} {
		w.raiseFor(w.webhook(name), name)
	}
	w.exec(`update webhook_state s set opened_at = now() - interval '1 h', open_until = now() + interval '1 h', openings = 1, failures = 9
		from webhook w where w.webhook_id = s.webhook_id and not w.operators`)
	w.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'no alert'; end $$`)
	w.exec(`create trigger refuse before insert on alert for each row when (new.title = 'Webhook one is not responding') execute function refuse()`)
	look := func() (written int, err error) {
		byWebhook, err := w.db.Outbox().NotifyOpenBreakers(t.Context(), 10*time.Minute)
		for _, n := range byWebhook {
			written += n
		}
		return written, err
	}
	for n := range 2 {
		written, err := look()
		if want := 2 - 2*n; err == nil || written != want {
			t.Errorf("look %d: %d notifications, %v; want %d, and an error", n+1, written, err, want)
		}
	}
	w.wantColumn("alerts", `select title from alert where health order by title`, "Webhook three is not responding", "Webhook two is not responding")
	w.exec(`drop trigger refuse on alert`)
	if written, err := look(); err != nil || written != 1 {
		t.Errorf("then %d notifications, %v", written, err)
	}
}

// TestWhatIsSentAgainSaysSo lets a user send a message again before operators are notified of its
// failure.
func TestWhatIsSentAgainSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.status(http.StatusBadRequest)
	w.raiseFor(w.webhook("ops"), "a")
	w.operators()
	w.deliver()
	w.wantColumn("operators", reportsOfMessages, "operators 1")
	if err := w.retry(w.one(`select notification_id from notification where reason = 'FIRED'`)); err != nil {
		t.Fatal(err)
	}
	w.receiver.respond(nil)
	w.exec(`update webhook set held_until = now() + interval '1 h' where not operators`)
	w.deliver()
	w.wantColumn("what operators read", `select (convert_from(content, 'UTF8') like '%The message to ops was not delivered at first, and has been sent again since%')::text
		from notification_body join notification using (notification_id) where reason = 'UNDELIVERED'`, "true")
}

// TestWhatCannotBeReadEnds damages the alert of a message: it ends with a visible error, and no
// other message waits for it.
func TestWhatCannotBeReadEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.raiseFor(w.webhook("ops"), "a", "b", "c")
	w.exec(`update alert set exchange = '"no exchange"' where execution_id = 'b'`)
	w.deliver()
	w.wantColumn("statuses", `select s.status || ' ' || coalesce(a.execution_id, '') from notification_status s join alert a using (alert_id)
		where s.reason = 'FIRED' order by 1`, "DELIVERED a", "DELIVERED c", "FAILED b")
	w.wantColumn("the attempt", `select verdict || ' ' || (error like 'Not sent: alert %: the stored exchange cannot be read%')::text
		from attempt_history where verdict <> 'DELIVERED'`, "NOT_MADE true")
	w.wantColumn("operators", reportsOfMessages, "operators 1")
	if got := w.receiver.received(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("received %q", got)
	}
	// The operators' own message about it, which has the same alert, is not tried for ever either.
	w.deliver()
	w.wantColumn("nothing waits", unsettledOutbox)
}

// TestAFirstAttemptIsPending looks at a message while it is called for the first time.
func TestAFirstAttemptIsPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	first := w.claim()[0]
	w.wantColumn("under way", statuses, "PENDING 1")
	if err := w.settle(settlement(&first, notify.VerdictRetry, notify.Retrying)); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("tried", statuses, "RETRYING 1")
	w.claim()
	w.wantColumn("under way again", statuses, "RETRYING 1")
}

// TestDiscard discards messages in each state.
func TestDiscard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.status(http.StatusBadRequest)
	w.raiseFor(hook, "failed")
	w.deliver()
	w.status(http.StatusBadGateway)
	w.raiseFor(hook, "retrying")
	w.deliver()
	w.exec(`update webhook set enabled = false`)
	w.raiseFor(hook, "pending")
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
	w.raiseFor(hook, "delivered", "called")
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

// TestAReplicaWatches has a replica that finds a breaker that has been open for long, what is held
// for too long, and what waits for a message that has been deleted.
func TestAReplicaWatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	open, held := w.webhook("open"), w.webhook("held")
	w.raiseFor(open, "gone", "waits", "b")
	w.raiseFor(held, "c")
	w.exec(`update webhook_state set failures = 9, openings = 1, opened_at = now() - interval '11 min', open_until = now() + interval '1 h' where webhook_id = $1`, open)
	of := func(execution string) uuid.UUID {
		return w.one(`select notification_id from notification join alert using (alert_id) where execution_id = $1`, execution)
	}
	w.exec(`alter table outbox disable trigger outbox_next`)
	w.exec(`update outbox set after_id = $1, ready_at = null, due_at = null where notification_id = $2`, of("gone"), of("waits"))
	w.exec(`delete from outbox where notification_id = $1`, of("gone"))
	w.exec(`update outbox set since = now() - interval '30 h' where webhook_id = $1`, held)
	w.exec(`update webhook set held_until = now() + interval '1 h' where webhook_id = $1`, held)
	w.exec(`update webhook_state set holds = 3, held_since = now() - interval '30 h' where webhook_id = $1`, held)
	w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleDispatch} })
	w.until("what waits for nothing is free", func() bool { return len(w.column(`select '' from outbox where after_id is not null`)) == 0 })
	w.until("operators are notified of the breaker", func() bool { return len(w.column(reportsOfWebhooks)) == 1 })
	w.until("what is held for too long has ended", func() bool {
		return len(w.column(`select '' from settlement where status = 'EXHAUSTED'`)) == 1
	})
}

// TestFailuresAreFolded settles many failures of a few webhooks: breakers are updated once per
// batch, not once per failure.
func TestFailuresAreFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var hooks []uuid.UUID
	for _, name := range names(3) {
		hooks = append(hooks, w.webhook(name))
		w.raiseFor(hooks[len(hooks)-1], names(30)...)
	}
	claimed := w.claim()
	if len(claimed) != 90 {
		t.Fatalf("%d claimed", len(claimed))
	}
	var batch []dispatch.Settlement
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
