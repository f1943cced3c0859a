package postgres_test

import (
	"slices"
	"testing"
	"time"

	"tocsin/alerts"
	"tocsin/notify"
)

// TestWhatAReceiverKeepsOpenIsEndedHoweverLate has an alert be acknowledged and resolved while its
// messages wait for two days. A chat is only notified of the alert; a receiver that has opened
// something for it is notified of all that happened, in order.
func TestWhatAReceiverKeepsOpenIsEndedHoweverLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keeps bool
		want  []notify.Reason
		ended []string
	}{
		"a chat":           {false, []notify.Reason{notify.ReasonFired}, []string{"DELIVERED FIRED", "DISCARDED ACKNOWLEDGED", "DISCARDED RESOLVED"}},
		"a keyed receiver": {true, []notify.Reason{notify.ReasonFired, notify.ReasonAcknowledged, notify.ReasonResolved}, []string{"DELIVERED ACKNOWLEDGED", "DELIVERED FIRED", "DELIVERED RESOLVED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNapped(t, notify.Webhook{Name: "receiver", Events: notify.Events()})
			n.act(alerts.Acknowledge)
			n.act(alerts.Resolve)
			advance(t.Context(), t, n.conn, 48*time.Hour)
			var sent []notify.Reason
			for range 5 {
				for _, d := range n.claimed(func(*notify.Webhook) bool { return c.keeps }) {
					sent = append(sent, d.Reason)
					n.settled(d, notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200})
				}
			}
			if !slices.Equal(sent, c.want) {
				t.Errorf("sent %v, want %v", sent, c.want)
			}
			if ended := column(t, n.conn, `select status || ' ' || reason from notification_status order by 1`); !slices.Equal(ended, c.ended) {
				t.Errorf("ended as %v, want %v", ended, c.ended)
			}
		})
	}
}

// newNapped returns an alert of which a webhook is notified that can be claimed for.
func newNapped(t *testing.T, w notify.Webhook) *napping {
	t.Helper()
	p := newPersist(t)
	n := &napping{persist: p, t: t, db: p.opened(t)}
	w.Kind, w.URL, w.Enabled, w.Timeout, w.MaxConcurrent = notify.KindGeneric, "https://example.com", true, time.Second, 10
	w, err := n.db.Webhooks().Create(t.Context(), tenant, w)
	if err != nil {
		t.Fatal(err)
	}
	p.webhook = w.ID
	b := p.page()
	b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
	p.write(t, b)
	n.alert = b.Instances[0].ID
	return n
}

// claimed claims what is due.
func (n *napping) claimed(keeps func(*notify.Webhook) bool) []notify.Delivery {
	n.t.Helper()
	claimed, err := wholeLooks{n.db.Outbox()}.Claim(n.t.Context(), notify.ClaimRequest{
		Replica: "a", Lease: time.Minute, KeepsState: keeps,
		Deal: func(due []notify.Due) (dealt []notify.Slots) {
			for _, d := range due {
				dealt = append(dealt, notify.Slots{WebhookID: d.WebhookID, Slots: 10})
			}
			return dealt
		},
		Render: func(*notify.Delivery) (notify.Body, string, error) {
			return notify.Body{ContentType: "text/plain", Content: []byte("hello")}, "", nil
		},
	})
	if err != nil || claimed.Unchecked != nil {
		n.t.Fatal(err, claimed.Unchecked)
	}
	return claimed.Deliveries
}

// settled stores the outcome of an attempt.
func (n *napping) settled(d notify.Delivery, o notify.Outcome) {
	n.t.Helper()
	policy := notify.DefaultPolicy()
	if _, err := n.db.Outbox().Settle(n.t.Context(), []notify.Settlement{{
		TenantID: tenant, NotificationID: d.NotificationID, WebhookID: d.Webhook.ID, WebhookVersion: d.Webhook.Version, Token: d.Token,
		Attempt: d.Attempt, Replica: "a", Outcome: o, Decision: policy.Decide(o, &d, 0),
	}}); err != nil {
		n.t.Fatal(err)
	}
}
