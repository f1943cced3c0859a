package app_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"tocsin/notify"
)

// TestThrottlingEnds has a receiver that always asks for a pause of a second: the pauses grow, one
// message is sent first after each, and what has waited for longer than the schedule ends.
func TestThrottlingEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.raiseFor(hook, names(20)...)
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
	// What counts is not the age of messages, but for how long the receiver has asked for pauses.
	span := notify.DefaultPolicy().Span()
	w.exec(`update outbox set since = now() - interval '27 h' where notification_id in (select notification_id from outbox order by notification_id limit 15)`)
	if ended, _, err := w.db.Outbox().ExpireHeld(t.Context(), span); err != nil || ended != 0 {
		t.Errorf("%d ended too early, %v", ended, err)
	}
	w.exec(`update webhook_state set held_since = now() - interval '27 h' where holds > 0`)
	if ended, _, err := w.db.Outbox().ExpireHeld(t.Context(), span); err != nil || ended != 15 {
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

// TestOneThrottlingEndsNothingOld lets the receiver of a webhook that was off for days ask for one
// pause: its messages wait for the end of the pause, as they waited for the webhook.
func TestOneThrottlingEndsNothingOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), names(20)...)
	w.exec(`update outbox set since = now() - interval '63 h', due_at = now(), ready_at = now()`)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.deliver()
	if ended, _, err := w.db.Outbox().ExpireHeld(t.Context(), notify.DefaultPolicy().Span()); err != nil || ended > 0 {
		t.Errorf("%d ended, %v", ended, err)
	}
	w.wantColumn("waiting", `select count(*)::text from outbox`, "20")
	w.wantColumn("ended", `select status from settlement`)
}

// TestAllThatIsHeldForTooLongEnds has more messages waiting for a receiver that asks for pauses
// than one transaction ends, while another replica ends them, too; operators are notified of each.
func TestAllThatIsHeldForTooLongEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.operators()
	w.raiseFor(hook, names(2500)...)
	w.exec(`update outbox set since = now() - interval '30 h'`)
	w.exec(`update webhook set held_until = now() + interval '1 min' where webhook_id = $1`, hook)
	w.exec(`update webhook_state set holds = 9, held_since = now() - interval '30 h' where webhook_id = $1`, hook)
	var replicas sync.WaitGroup
	for range 2 {
		replicas.Go(func() {
			if _, _, err := w.db.Outbox().ExpireHeld(context.WithoutCancel(t.Context()), notify.DefaultPolicy().Span()); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	w.wantColumn("ended", `select status || ' ' || count(*) from settlement group by status`, "EXHAUSTED 2500")
	w.wantColumn("operators", reportsOfMessages, "operators 2500")
}

// TestAHoldOutlivesWhatCannotEnd makes ending messages fail in the database: the pause that a
// receiver asks for is kept all the same.
func TestAHoldOutlivesWhatCannotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a", "b")
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
	if ended, _, err := w.db.Outbox().ExpireHeld(t.Context(), notify.DefaultPolicy().Span()); err == nil || ended > 0 {
		t.Errorf("%d ended, %v", ended, err)
	}
	w.wantColumn("held", `select (held_until > now())::text from webhook`, "true")
	w.wantColumn("all wait", `select count(*)::text from outbox`, "2")
}

// TestALongPauseIsKept has a receiver that asks for a pause of hours.
func TestALongPauseIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "18000")
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	w.raiseFor(w.webhook("ops"), "a")
	w.deliver()
	w.wantColumn("held for five hours", `select (held_until - now() between interval '4 h 59 min' and interval '5 h')::text from webhook`, "true")
}
