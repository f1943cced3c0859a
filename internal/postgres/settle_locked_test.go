package postgres_test

import (
	"context"
	"strings"
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

// TestOutcomesWaitForNoLock has a transaction of somebody else that keeps messages locked. Their outcomes, one and several,
// are refused soon: others may wait for the connection, and for their turn.
func TestOutcomesWaitForNoLock(t *testing.T) {
	t.Parallel()
	b := crowd(t, 10)
	db := openAt(t, b.url)
	b.exec(`update outbox set claim_token = 7, claimed_by = 'a', attempts = 1, begun_at = now(), due_at = now() + interval '1 hour'`)
	tx, err := pgtest.Conn(t, b.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from outbox for update`); err != nil {
		t.Fatal(err)
	}
	ids := one[[]uuid.UUID](t, b.conn, `select array_agg(notification_id) from outbox`)
	for name, c := range map[string]struct {
		outcomes int
		decision notify.Decision
	}{
		"one that ends":      {1, notify.Decision{Status: notify.Delivered, Counts: true}},
		"one to be repeated": {1, notify.Decision{Status: notify.Retrying, Counts: true}},
		"several":            {10, notify.Decision{Status: notify.Delivered, Counts: true}},
	} {
		var settlements []dispatch.Settlement
		for _, id := range ids[:c.outcomes] {
			settlements = append(settlements, dispatch.Settlement{
				TenantID: tenant, NotificationID: id, Token: 7, Attempt: 1, Replica: "a", Decision: c.decision,
				Outcome: notify.Outcome{Verdict: notify.VerdictDelivered, Duration: time.Millisecond},
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := db.Outbox().Settle(ctx, settlements)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "lock timeout") {
			t.Errorf("%s: %v, want a lock timeout", name, err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
