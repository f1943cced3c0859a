package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/pgtest"
	"tocsin/notify"
)

// TestAnEndThatIsSentAgainWaitsForADigestThatIsBeingGathered has a person send the end of an alert again while the message
// that the alert fires, which was sent again before, is being gathered into a digest: the end goes out after the digest.
func TestAnEndThatIsSentAgainWaitsForADigestThatIsBeingGathered(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "channel", DigestAbove: 2, Events: notify.Events()})
	n.act(alerts.Resolve)
	var sent []uuid.UUID
	for range 2 {
		d := n.claimed(notify.Schedule{})[0]
		n.settled(d, notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400})
		sent = append(sent, d.NotificationID)
	}
	if _, _, err := n.db.Record(nil).RetryAll(t.Context(), tenant, api.RetryOrder{Actor: "ada@x", IDs: sent[:1]}); err != nil {
		t.Fatal(err)
	}
	n.write(t, n.failed(4))
	n.exec(t, `create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return null; end $$`)
	n.exec(t, `create trigger waits after insert on digest_member for each statement execute function wait()`)
	lock := pgtest.Conn(t, n.url)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	gathered, again := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(gathered)
		n.claimedOf(1, notify.Schedule{})
	}()
	n.wait(1)
	go func() {
		_, err := n.db.Record(nil).Retry(t.Context(), tenant, sent[1], "ada@x")
		again <- err
	}()
	n.wait(2)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_unlock(4711)`); err != nil {
		t.Fatal(err)
	}
	<-gathered
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	if before := column(t, n.conn, `select coalesce((select b.reason from notification b where b.notification_id = o.after_id), 'nothing')
		from outbox o join notification n using (notification_id) where n.reason = 'RESOLVED'`); len(before) != 1 || before[0] != "DIGEST" {
		t.Errorf("the end waits for %v", before)
	}
}
