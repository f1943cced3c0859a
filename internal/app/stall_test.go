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

	"tocsin/internal/pgtest"
	"tocsin/notify/dispatch"
)

// headOfTheQueue makes all messages of a webhook unsendable except the newest; they are due before
// it.
func (w *world) headOfTheQueue(spoil string) {
	w.t.Helper()
	w.exec(`update outbox set due_at = now() - interval '1 h', ready_at = now() - interval '1 h'`)
	w.exec(`update outbox o set ready_at = now() - interval '1 min' from notification n join alert a using (alert_id)
		where n.notification_id = o.notification_id and a.execution_id = 'live'`)
	w.exec(spoil)
}

// What cannot be sent at the head of a queue.
const (
	expired    = `update outbox set expires_at = now() - interval '1 min' where ready_at < now() - interval '30 min'`
	unreadable = `update alert set exchange = '"no exchange"' where execution_id <> 'live'`
	// A manual repair with an instant that no program can read.
	damaged = `update alert set resolved_at = 'infinity' where execution_id <> 'live'`
)

// TestWhatEndsWithoutAnAttemptHoldsUpNothing has messages that are too old, or unreadable, and due
// before another one: that one is sent without a pause, though nothing wakes the dispatcher, and
// the others use up no rate.
func TestWhatEndsWithoutAnAttemptHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil string
		rate  float64
		ended string
	}{
		"expired":               {expired, 0, "DISCARDED 20"},
		"expired, with a rate":  {expired, 0.001, "DISCARDED 20"},
		"unreadable":            {unreadable, 0, "FAILED 20"},
		"unreadable, of a rate": {unreadable, 0.001, "FAILED 20"},
		"damaged":               {damaged, 0, "FAILED 20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.raiseFor(w.webhook("ops"), append(names(20), "live")...)
			w.exec(`update webhook set rate_per_second = $1`, c.rate)
			w.headOfTheQueue(c.spoil)
			d := w.newDispatcher(dispatch.Options{Poll: time.Hour})
			ctx, cancel := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			defer ended.Wait()
			defer cancel()
			ended.Go(func() { d.Run(ctx) })
			w.until("the message is sent", func() bool { return len(w.receiver.received()) == 1 })
			w.until("the others have ended", func() bool { return len(w.column(unsettledOutbox)) == 0 })
			w.wantColumn("statuses", `select status || ' ' || count(*) from settlement group by status order by status`, sorted("DELIVERED 1", c.ended)...)
		})
	}
}

// TestWhatEndsWithoutAnAttemptIsNoProbe has a message that is too old, or unreadable, and due
// before another one at the end of a breaker's pause: the other one is the probe.
func TestWhatEndsWithoutAnAttemptIsNoProbe(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{"expired": expired, "unreadable": unreadable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.raiseFor(w.webhook("ops"), "old", "live")
			w.headOfTheQueue(spoil)
			w.exec(`update webhook_state set failures = 5, openings = 1, opened_at = now(), open_until = now()`)
			w.deliver()
			w.wantColumn("the breaker, before its probe", `select (open_until <= now() and probe_id is null)::text from webhook_state`, "true")
			w.deliver()
			if got := w.receiver.received(); len(got) != 1 || got[0] != "live" {
				t.Errorf("received %q", got)
			}
			w.wantColumn("the breaker, after it", breakers, "0 failures, opening 0")
		})
	}
}

// TestADamagedRowHoldsUpNoOther damages the alert of a message so that every statement that reads
// it fails: other webhooks, and other messages of its own webhook, continue, and the message ends
// with a visible error.
func TestADamagedRowHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.raiseFor(w.webhook("ops"), "a", "b", "c", "d")
	w.raiseFor(w.webhook("other"), "live")
	w.exec(`update alert set resolved_at = 'infinity' where execution_id = 'c'`)
	for range 5 {
		w.exec(`update outbox set due_at = now(), ready_at = clock_timestamp() where claim_token is null`)
		w.deliver()
	}
	w.wantColumn("statuses", `select s.status || ' ' || coalesce(a.execution_id, '') from notification_status s join alert a using (alert_id)
		where s.reason = 'FIRED' order by 1`, "DELIVERED a", "DELIVERED b", "DELIVERED d", "DELIVERED live", "FAILED c")
	w.wantColumn("the attempt", `select verdict || ' ' || (error like 'Not sent: %resolved_at%')::text
		from attempt_history join notification using (notification_id) where verdict <> 'DELIVERED' and reason = 'FIRED'`, "NOT_MADE true")
	w.wantColumn("operators", reportsOfMessages, "operators 1")
}

// TestABrokenSchemaEndsNoMessage drops a column that every claim reads: no message ends.
func TestABrokenSchemaEndsNoMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a", "b")
	w.exec(`alter table rule rename column about to once_about`)
	w.dispatcher.Wake([]uuid.UUID{})
	if _, err := w.dispatcher.Tick(t.Context()); err == nil {
		t.Error("claimed")
	}
	w.wantColumn("ended", `select status from settlement`)
	w.exec(`alter table rule rename column once_about to about`)
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 2")
}

// TestOutcomesThatAreNotJudgedAreReported makes recording the effect of an outcome on its webhook fail:
// the outcome is stored all the same, and that is reported.
func TestOutcomesThatAreNotJudgedAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.status(http.StatusServiceUnavailable)
	w.raiseFor(w.webhook("ops"), "a", "b")
	claimed := w.claim()
	w.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'no judgement'; end $$`)
	w.exec(`create trigger refuse before update on webhook_state for each row execute function refuse()`)
	settled, err := w.db.Outbox().Settle(t.Context(), []dispatch.Settlement{w.unanswered(&claimed[0]), w.unanswered(&claimed[1])})
	if err != nil || settled[0].Fenced || settled[0].Unapplied == nil || settled[1] != (dispatch.Settled{}) {
		t.Errorf("settled %+v, %v", settled, err)
	}
	w.wantColumn("stored", attempts, "1 RETRY", "1 RETRY")
}

func sorted(list ...string) []string {
	slices.Sort(list)
	return list
}

// TestALockedWebhookHoldsUpNoOther has somebody keep the webhook of the operators locked, who are to be notified that
// messages have ended: only the webhook of these messages waits, and it goes on when the lock is released.
func TestALockedWebhookHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.raiseFor(w.webhook("ops"), "a", "b")
	w.raiseFor(w.webhook("other"), "live")
	w.exec(`update alert set exchange = '"no exchange"' where execution_id = 'a'`)
	holder := pgtest.Conn(t, w.pgURL)
	if _, err := holder.Exec(t.Context(), `begin; select from webhook where operators for update`); err != nil {
		t.Fatal(err)
	}
	w.dispatcher.Wake(w.hooks())
	if _, err := w.dispatcher.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("a pass that finds the webhook locked: %v", err)
	}
	if got := w.receiver.received(); !slices.Equal(got, []string{"live"}) {
		t.Errorf("while the webhook is locked, %q arrived", got)
	}
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	w.wantColumn("statuses", `select s.status || ' ' || coalesce(a.execution_id, '') from notification_status s join alert a using (alert_id)
		where s.reason = 'FIRED' order by 1`, "DELIVERED b", "DELIVERED live", "FAILED a")
	w.wantColumn("operators", reportsOfMessages, "operators 1")
}
