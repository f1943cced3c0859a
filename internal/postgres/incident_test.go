package postgres_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
	"tocsin/notify"
)

// troubled has the breakers of all webhooks be open for an hour.
func (n *napping) troubled() {
	n.t.Helper()
	n.exec(n.t, `update webhook_state set failures = 9, openings = 1, opened_at = now() - interval '1 hour', open_until = now() + interval '1 hour'`)
}

const aboutWebhooks = `select state from alert where webhook_id is not null`

// TestNoAlertRemainsAboutAWebhookThatIsEditedMeanwhile has a person edit two webhooks while operators are being notified that
// they are not responding, one after the other: their breakers close, and no alert about that remains.
func TestNoAlertRemainsAboutAWebhookThatIsEditedMeanwhile(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "first"})
	w, err := n.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
		Name: "second", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	hooks := []uuid.UUID{n.webhook, w.ID}
	n.webhook = w.ID
	n.write(t, n.failed(1))
	n.troubled()
	n.exec(t, `create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return null; end $$`)
	n.exec(t, `create trigger waits after insert on webhook_incident for each statement execute function wait()`)
	lock := pgtest.Conn(t, n.url)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 3)
	go func() {
		_, err := n.db.Outbox().NotifyOpenBreakers(t.Context(), 10*time.Minute)
		done <- err
	}()
	n.wait(1)
	for _, hook := range hooks {
		go func() {
			_, err := n.db.Webhooks().SetEnabled(t.Context(), tenant, hook, true)
			done <- err
		}()
	}
	n.wait(2)
	err = <-done // of the webhook that has its turn later
	if _, err := lock.Exec(t.Context(), `select pg_advisory_unlock(4711)`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err = errors.Join(err, <-done)
	}
	if err != nil {
		t.Fatal(err)
	}
	if states := column(t, n.conn, aboutWebhooks); !slices.Equal(states, []string{"RESOLVED"}) {
		t.Errorf("the alerts about the webhooks are %v", states)
	}
}

// TestAWebhookIsEditedWhileSomebodyActsOnItsAlert has a person edit a webhook while another person acts on the alert about it.
// The two transactions deadlock, and the edit is repeated.
func TestAWebhookIsEditedWhileSomebodyActsOnItsAlert(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver", Events: notify.Events()})
	n.troubled()
	if _, err := n.db.Outbox().NotifyOpenBreakers(t.Context(), 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	other, err := pgtest.Conn(t, n.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select from alert where webhook_id is not null for update`); err != nil {
		t.Fatal(err)
	}
	edited := make(chan error, 1)
	go func() {
		_, err := n.db.Webhooks().SetEnabled(t.Context(), tenant, n.webhook, true)
		edited <- err
	}()
	n.wait(1)
	// The edit has waited for longer, so Postgres ends it, and not this transaction.
	if _, err := other.Exec(t.Context(), `set local deadlock_timeout = '1 min'`); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select from webhook where webhook_id = $1 for key share`, n.webhook); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-edited; err != nil {
		t.Error(err)
	}
	if states := column(t, n.conn, aboutWebhooks); !slices.Equal(states, []string{"RESOLVED"}) {
		t.Errorf("the alerts about the webhook are %v", states)
	}
}
