package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/internal/lease"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// TestLeasesNeedNoConnectionOfOthers has all connections in use: leases are renewed, and heartbeats sent, all the same.
// Otherwise claims would expire meanwhile, and other replicas would send their messages again.
func TestLeasesNeedNoConnectionOfOthers(t *testing.T) {
	t.Parallel()
	b := crowd(t, 10)
	db := openAt(t, b.url+"&pool_max_conns=4")
	b.exec(`update outbox set claim_token = 7, claimed_by = 'a', attempts = 1, begun_at = now(), due_at = now() + interval '10 s'`)
	defer postgres.Occupy(t, db)()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := db.Replicas().Beat(ctx, lease.Replica{ID: "a", Host: "here", PID: 1, Roles: []string{"dispatch"}}); err != nil {
		t.Error(err)
	}
	claim := dispatch.Held{NotificationID: one[uuid.UUID](t, b.conn, `select notification_id from outbox limit 1`), Token: 7}
	left, err := db.Outbox().Renew(ctx, []dispatch.Held{claim}, time.Minute)
	if err != nil || left[claim] < 30*time.Second {
		t.Errorf("the claim lasts %v, %v", left[claim], err)
	}
	holding, err := db.Evaluation(time.Minute).Hold(ctx, evaluator.HoldRequest{Replica: "a", LeaseFor: leaseFor})
	if err != nil || len(holding.Checkpoints) == 0 {
		t.Errorf("it holds %d partitions, %v", len(holding.Checkpoints), err)
	}
	if err := db.Evaluation(time.Minute).Release(ctx, "a", []int{0}); err != nil {
		t.Error(err)
	}
}

// TestOutcomesThatWaitLeaveConnections has a transaction of somebody else that keeps messages locked whose outcomes are to
// be stored, one by one. They wait on half of the connections, and the others are free.
func TestOutcomesThatWaitLeaveConnections(t *testing.T) {
	t.Parallel()
	b := crowd(t, 10)
	db := openAt(t, b.url+"&pool_max_conns=4")
	b.exec(`update outbox set claim_token = 7, claimed_by = 'a', attempts = 1, begun_at = now(), due_at = now() + interval '1 hour'`)
	tx, err := pgtest.Conn(t, b.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from outbox for update`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var settling sync.WaitGroup
	for _, id := range one[[]uuid.UUID](t, b.conn, `select array_agg(notification_id) from outbox`) {
		settling.Go(func() {
			_, err := db.Outbox().Settle(ctx, []dispatch.Settlement{{
				TenantID: tenant, NotificationID: id, Token: 7, Attempt: 1, Replica: "a",
				Outcome:  notify.Outcome{Verdict: notify.VerdictDelivered, Duration: time.Millisecond},
				Decision: notify.Decision{Status: notify.Delivered, Counts: true},
			}})
			if err == nil {
				t.Error("an outcome was stored")
			}
		})
	}
	for one[int](t, b.conn, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`) < 2 {
		<-time.After(10 * time.Millisecond)
	}
	asking, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if err := db.Ping(asking); err != nil {
		t.Error(err)
	}
	cancel()
	settling.Wait()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
