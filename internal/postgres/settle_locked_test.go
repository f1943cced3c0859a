package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/notify"
)

// TestLeasesAreRenewedWhileSettlementsWait has a transaction of somebody else that keeps messages locked whose outcomes are
// to be stored. They wait on all connections, and the claims of the other messages are renewed all the same: otherwise
// these would expire, and other replicas would send the messages again.
func TestLeasesAreRenewedWhileSettlementsWait(t *testing.T) {
	t.Parallel()
	b := crowd(t, 10)
	db := openAt(t, b.url+"&pool_max_conns=4")
	b.exec(`update outbox set claim_token = 7, claimed_by = 'a', attempts = 1, begun_at = now(), due_at = now() + interval '10 s'`)
	messages := one[[]uuid.UUID](t, b.conn, `select array_agg(notification_id order by notification_id) from outbox`)
	other := pgtest.Conn(t, b.url)
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from outbox where notification_id <> $1 for update`, messages[0]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var settling sync.WaitGroup
	for _, id := range messages[1:] {
		settling.Go(func() {
			for ctx.Err() == nil { // as the dispatcher does
				_, _ = db.Outbox().Settle(ctx, []notify.Settlement{{
					TenantID: tenant, NotificationID: id, Token: 7, Attempt: 1, Replica: "a",
					Outcome:  notify.Outcome{Verdict: notify.VerdictDelivered, Duration: time.Millisecond},
					Decision: notify.Decision{Status: notify.Delivered, Counts: true},
				}})
			}
		})
	}
	for one[int](t, b.conn, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`) < 4 {
		<-time.After(10 * time.Millisecond)
	}
	renewing, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	claim := notify.Held{NotificationID: messages[0], Token: 7}
	left, err := db.Outbox().Renew(renewing, []notify.Held{claim}, time.Minute)
	if err != nil || left[claim] < 50*time.Second {
		t.Errorf("the claim lasts %v, %v", left[claim], err)
	}
	if _, err := db.Evaluation(time.Minute).Hold(renewing, evaluator.HoldRequest{Replica: "a", LeaseFor: leaseFor}); err != nil {
		t.Error(err)
	}
	cancel()
	settling.Wait()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
