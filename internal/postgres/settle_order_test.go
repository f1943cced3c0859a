package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// TestASlackMessageIsEnteredWhileSomebodyActs stores an outcome while another transaction has
// locked the alert and then needs the message: no deadlock occurs.
func TestASlackMessageIsEnteredWhileSomebodyActs(t *testing.T) {
	t.Parallel()
	n := newNapping(t)
	n.exec(t, `update outbox set claim_token = 7, claimed_by = 'a', attempts = 1, begun_at = now(), due_at = now() + interval '1 hour'`)
	id := one[uuid.UUID](t, n.conn, `select notification_id from notification`)
	tx, err := n.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from alert where alert_id = $1 for update`, n.alert); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() {
		done, err := n.db.Outbox().Settle(t.Context(), []dispatch.Settlement{{
			TenantID: tenant, NotificationID: id, WebhookID: n.webhook, WebhookVersion: 1, Token: 7, Attempt: 1, Replica: "a",
			Outcome:  notify.Outcome{Verdict: notify.VerdictDelivered, Duration: time.Millisecond},
			Decision: notify.Decision{Status: notify.Delivered, Counts: true},
			Message:  &notify.Message{Posted: notify.Posted{Channel: "C1", TS: "1.1"}, AlertID: n.alert, Reason: notify.ReasonFired, Shown: "FIRING"},
		}})
		if err == nil && done[0].Fenced {
			t.Error("the claim was not valid")
		}
		settled <- err
	}()
	n.waits(t)
	if _, err := tx.Exec(t.Context(), `select from outbox where notification_id = $1 for no key update`, id); err != nil {
		t.Errorf("a person acts on the alert: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-settled; err != nil {
		t.Errorf("the outcome is stored: %v", err)
	}
	if got := one[int](t, n.conn, `select count(*) from slack_message`); got != 1 {
		t.Errorf("%d messages are entered", got)
	}
}
