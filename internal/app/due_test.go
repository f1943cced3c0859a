package app_test

import (
	"testing"
	"time"
)

// A claim tells when to look again, by Postgres's clock.
func TestClaimTellsWhatBecomesDueNext(t *testing.T) {
	w := newWorld(t)
	want := func(what string, claims int, next time.Duration) {
		t.Helper()
		got := w.claimed()
		if len(got.Deliveries) != claims {
			t.Errorf("%s: claimed %d, want %d", what, len(got.Deliveries), claims)
		}
		if got.Next > next || got.Next < next-10*time.Second || (next > 0) != (got.Next > 0) {
			t.Errorf("%s: next is due in %v, want %v", what, got.Next, next)
		}
	}
	want("nothing is owed", 0, 0)
	hook := w.webhook("ops")
	w.owed(hook, "a", "b")
	w.exec(`update outbox set due_at = now() + '5 min' where notification_id = (select min(notification_id::text)::uuid from outbox)`)
	want("one is due, one is to be retried", 1, 5*time.Minute)
	want("one is claimed for a minute", 0, time.Minute)
	w.exec(`update outbox set due_at = now() - interval '1 hour'`)
	w.exec(`update webhook set held_until = now() + interval '2 min'`)
	want("the webhook is held", 0, 2*time.Minute)
	w.exec(`update outbox set due_at = now() + interval '3 min'`)
	want("nothing is due when the hold ends", 0, 3*time.Minute)
	w.exec(`update webhook set enabled = false`)
	want("the webhook is off", 0, 0)
	w.exec(`update webhook set enabled = true, held_until = now() - interval '1 min'`)
	w.exec(`update outbox set due_at = now()`)
	want("all is due", 2, 0)
}
