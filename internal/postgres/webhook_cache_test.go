package postgres_test

import (
	"slices"
	"testing"
	"time"

	"tocsin/notify"
)

// TestAFailoverTakesAnEditOfAWebhookAway has a replica send to a webhook as a person has edited it, and then a failover take
// the edit away. What comes next goes where the database says, also if the person makes another edit.
func TestAFailoverTakesAnEditOfAWebhookAway(t *testing.T) {
	t.Parallel()
	delivered := notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200}
	for want, next := range map[string]string{"to 1": "", "to 3": "3"} {
		n := newChat(t, 1)
		secrets := one[[]byte](t, n.conn, `select secrets from webhook where webhook_id = $1`, n.webhook)
		at := one[time.Time](t, n.conn, `select updated_at from webhook where webhook_id = $1`, n.webhook)
		if err := n.correctedTo("2"); err != nil {
			t.Fatal(err)
		}
		n.settled(n.claimed(notify.Schedule{})[0], delivered)
		n.exec(t, `update webhook set version = 1, secrets = $2, updated_at = $3, inputs_version = 0 where webhook_id = $1`, n.webhook, secrets, at)
		if next != "" {
			if err := n.correctedTo(next); err != nil {
				t.Fatal(err)
			}
		}
		n.write(t, n.failed(1))
		if sent := n.sentTo(); !slices.Equal(sent, []string{want}) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	}
}
