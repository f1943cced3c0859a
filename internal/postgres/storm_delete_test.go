package postgres_test

import (
	"testing"
	"time"

	"tocsin/internal/pgtest"
	"tocsin/notify"
)

// TestAStormOfAWebhookThatIsDeleted deletes a webhook while its messages are being gathered into a digest: nothing
// remains that waits for it.
func TestAStormOfAWebhookThatIsDeleted(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "channel", DigestAbove: 2})
	n.write(t, n.failed(5))
	n.exec(t, `create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return null; end $$`)
	n.exec(t, `create trigger waits after insert on digest_member for each statement execute function wait()`)
	lock := pgtest.Conn(t, n.url)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	gathered, deleted := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(gathered)
		n.claimedOf(1, notify.Schedule{})
	}()
	n.wait(1)
	go func() { deleted <- n.db.Webhooks().Delete(t.Context(), tenant, n.webhook) }()
	n.wait(2)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_unlock(4711)`); err != nil {
		t.Fatal(err)
	}
	<-gathered
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if left := column(t, n.conn, `select n.reason from outbox join notification n using (notification_id)`); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if open := column(t, n.conn, `select reason from notification_status where status not in ('DISCARDED', 'DELIVERED')`); len(open) != 0 {
		t.Errorf("open are %v", open)
	}
}

// wait returns as soon as so many sessions wait for locks.
func (n *napping) wait(sessions int) {
	n.t.Helper()
	for !n.waiting(sessions) {
		<-time.After(10 * time.Millisecond)
	}
}

func (n *napping) waiting(sessions int) bool {
	n.t.Helper()
	return one[int](n.t, n.conn, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`) >= sessions
}
