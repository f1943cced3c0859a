package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// newChat returns alerts of which a chat is notified that a person has entered.
func newChat(t *testing.T, alerts int) *napping {
	t.Helper()
	n := newNapped(t, notify.Webhook{Name: "receiver", Preset: "telegram", Inputs: map[string]string{"chat": "1"}})
	if alerts > 1 {
		n.write(t, n.failed(alerts-1))
	}
	return n
}

// corrected enters the chat 2.
func (n *napping) corrected() error { return n.correctedTo("2") }

func (n *napping) correctedTo(chat string) error {
	w, err := n.db.Webhooks().Get(n.t.Context(), tenant, n.webhook)
	if err != nil {
		return err
	}
	w.Inputs = map[string]string{"chat": chat}
	_, err = n.db.Webhooks().Update(n.t.Context(), tenant, w)
	return err
}

// sentTo returns the bodies of what is due after an hour.
func (n *napping) sentTo() (bodies []string) {
	n.t.Helper()
	advance(n.t.Context(), n.t, n.conn, time.Hour)
	for _, d := range n.claimed(notify.Schedule{}) {
		bodies = append(bodies, string(d.Body.Content))
	}
	return bodies
}

// TestWhatIsSentAgainGoesWhereAPersonHasCorrectedIt has a person send a message again that went to the wrong chat, after
// correcting that.
func TestWhatIsSentAgainGoesWhereAPersonHasCorrectedIt(t *testing.T) {
	t.Parallel()
	for _, was := range []notify.Outcome{{Verdict: notify.VerdictDelivered, StatusCode: 200}, {Verdict: notify.VerdictRefused, StatusCode: 400}} {
		n := newChat(t, 1)
		d := n.claimed(notify.Schedule{})[0]
		n.settled(d, was)
		if err := n.corrected(); err != nil {
			t.Fatal(err)
		}
		if _, err := n.db.Record(nil).Retry(t.Context(), tenant, d.NotificationID, "ada@x"); err != nil {
			t.Fatal(err)
		}
		if sent := n.sentTo(); !slices.Equal(sent, []string{"to 2"}) {
			t.Errorf("after the outcome %s it is sent %q", was.Verdict, sent)
		}
		if got := one[int](t, n.conn, `select count(*) from notification_body where webhook_version = 2`); got != 1 {
			t.Errorf("%d bodies are for the chat", got)
		}
	}
}

// TestAnEditDuringAClaimHasRepeatedMessagesRenderedAgain has a person correct the chat while messages are being claimed, of
// which one has been rendered before: neither goes to the former chat.
func TestAnEditDuringAClaimHasRepeatedMessagesRenderedAgain(t *testing.T) {
	t.Parallel()
	n := newChat(t, 2)
	n.settled(n.claimedOf(1, notify.Schedule{})[0], notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 503})
	advance(t.Context(), t, n.conn, time.Hour)
	claimed, err := wholeLooks{n.db.Outbox()}.Claim(t.Context(), dispatch.ClaimRequest{
		Replica: "a", Lease: time.Minute, Schedule: func(*notify.Webhook) notify.Schedule { return notify.Schedule{} },
		Deal: func(due []dispatch.Due) []dispatch.Slots {
			return []dispatch.Slots{{WebhookID: due[0].WebhookID, Slots: 2}}
		},
		Render: func(d *notify.Delivery) (notify.Body, string, error) {
			return notify.Body{ContentType: "text/plain", Content: []byte("to " + d.Webhook.Inputs["chat"])}, "", n.corrected()
		},
	})
	if err != nil || len(claimed.Deliveries) != 2 || !slices.Equal(claimed.Unwanted, []uuid.UUID{n.webhook}) {
		t.Fatalf("%+v, %v", claimed, err)
	}
	for _, d := range claimed.Deliveries {
		n.settled(d, notify.NotMade("Not sent: the webhook was edited"))
	}
	if sent := n.sentTo(); !slices.Equal(sent, []string{"to 2", "to 2"}) {
		t.Errorf("sent %q", sent)
	}
}

// TestAnEditWhileAnOutcomeIsStoredHasTheMessageRenderedAgain has a person correct the chat while the row of the message is
// locked, because it is to be repeated.
func TestAnEditWhileAnOutcomeIsStoredHasTheMessageRenderedAgain(t *testing.T) {
	t.Parallel()
	n := newChat(t, 1)
	d := n.claimed(notify.Schedule{})[0]
	n.exec(t, `create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return null; end $$`)
	n.exec(t, `create trigger waits after insert on attempt for each statement execute function wait()`)
	lock := pgtest.Conn(t, n.url)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		n.settled(d, notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 503})
	}()
	n.waits(t)
	if err := n.corrected(); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `select pg_advisory_unlock(4711)`); err != nil {
		t.Fatal(err)
	}
	<-stored
	if sent := n.sentTo(); !slices.Equal(sent, []string{"to 2"}) {
		t.Errorf("sent %q", sent)
	}
}
