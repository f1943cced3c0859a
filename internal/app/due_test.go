package app_test

import (
	"testing"
	"time"

	"tocsin/internal/postgres"
	"tocsin/notify/dispatch"
)

// A claim returns when to look again, by Postgres's clock.
func TestClaimReturnsWhatBecomesDueNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := func(what string, claims int, next time.Duration) {
		t.Helper()
		// A process that has just started skips nothing, and so looks no earlier.
		db, err := postgres.Open(t.Context(), w.pgURL, w.box)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		got := w.claimedFrom(db)
		if len(got.Deliveries) != claims {
			t.Errorf("%s: claimed %d, want %d", what, len(got.Deliveries), claims)
		}
		if got.Next > next || got.Next < next-10*time.Second || (next > 0) != (got.Next > 0) {
			t.Errorf("%s: next is due in %v, want %v", what, got.Next, next)
		}
	}
	want("nothing is open", 0, 0)
	hook := w.webhook("ops")
	w.raiseFor(hook, "a", "b")
	w.exec(`update outbox set due_at = now() + '5 min', ready_at = now() + '5 min' where notification_id = (select min(notification_id::text)::uuid from outbox)`)
	want("one is due, one is to be retried", 1, 5*time.Minute)
	want("one is claimed for a minute", 0, time.Minute)
	w.exec(`update outbox set due_at = now() - interval '1 hour', ready_at = now() - interval '1 hour'`)
	w.exec(`update webhook set held_until = now() + interval '2 min'`)
	want("the webhook is held", 0, 2*time.Minute)
	w.exec(`update outbox set due_at = now() + interval '3 min', ready_at = now() + interval '3 min'`)
	want("nothing is due when the hold ends", 0, 3*time.Minute)
	w.exec(`update webhook set enabled = false`)
	want("the webhook is off", 0, 0)
	w.exec(`update webhook set enabled = true, held_until = now() - interval '1 min'`)
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	want("all is due", 2, 0)
}

// No index contains a column that claims, renewals and settlements write: otherwise each of them
// would write to all indexes. What waits for another message, or for the end of quiet hours, is in
// no queue and is never claimed.
func TestClaimsWriteToNoIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wantColumn("indexed", `select distinct a.attname::text
		from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
		where i.indrelid = 'outbox'::regclass order by 1`, "after_id", "notification_id", "quiet_until", "ready_at", "webhook_id")
	w.wantColumn("asked by partial indexes", `select pg_get_expr(indpred, indrelid) from pg_index
		where indrelid = 'outbox'::regclass and indpred is not null order by indexrelid`, "digest", "(ready_at IS NOT NULL)", "(after_id IS NOT NULL)", "(quiet_until IS NOT NULL)")
}

// A row whose lease expires is claimed before what became due after it.
func TestAnExpiredLeaseKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.raiseFor(hook, "first")
	first := w.claimed()
	w.raiseFor(hook, "second")
	w.exec(`update outbox set due_at = now() - interval '1 ms' where claim_token is not null`)
	request := w.claimRequest()
	request.Deal = func([]dispatch.Due) []dispatch.Slots { return []dispatch.Slots{{WebhookID: hook, Slots: 1}} }
	again, err := w.db.Outbox().Claim(t.Context(), request)
	if err != nil || len(again.Deliveries) != 1 || again.Deliveries[0].NotificationID != first.Deliveries[0].NotificationID {
		t.Errorf("claimed %+v, %v, not the first one", again.Deliveries, err)
	}
}
