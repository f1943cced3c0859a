package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/notify"
)

// TestAStormOfOneTransactionIsGathered has a person resolve more alerts at once than a digest contains, of which a channel
// is notified that takes one message at a time: it gets digests, and nothing one by one.
func TestAStormOfOneTransactionIsGathered(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "channel", DigestAbove: 2, Events: notify.Events()})
	for range notify.DigestSize/pageOf + 1 {
		n.write(t, n.page())
	}
	n.settleAll()
	act := api.BulkAction{ID: uuid.New(), Action: alerts.Resolve, Actor: "ada@x"}
	if _, err := n.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil {
		t.Fatal(err)
	}
	if n.due() <= notify.DigestSize {
		t.Fatalf("%d messages are due", n.due())
	}
	n.gathered()
}

// TestACommitOfManyAlertsIsGathered: as before, of alerts that one commit raises.
func TestACommitOfManyAlertsIsGathered(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "channel", DigestAbove: 2})
	n.settleAll()
	n.write(t, n.failed(notify.DigestSize+pageOf))
	n.gathered()
}

// settleAll ends all messages as delivered.
func (n *napping) settleAll() {
	n.t.Helper()
	n.exec(n.t, `with gone as (delete from outbox returning notification_id)
		insert into settlement (notification_id, tenant_id, status) select notification_id, 'default', 'DELIVERED' from gone`)
}

func (n *napping) due() int {
	return one[int](n.t, n.conn, `select count(*) from outbox`)
}

// gathered delivers what is due, one message at a time, and expects digests only.
func (n *napping) gathered() {
	n.t.Helper()
	for range 3 {
		list := n.claimedOf(1, notify.Schedule{})
		if len(list) == 0 {
			break
		}
		if list[0].Reason != notify.ReasonDigest {
			n.t.Fatalf("sent alone is a message %s, and %d wait", list[0].Reason, n.due())
		}
		n.settled(list[0], notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200, Duration: time.Millisecond})
	}
	if left := n.due(); left != 0 {
		n.t.Errorf("%d messages are left", left)
	}
}
