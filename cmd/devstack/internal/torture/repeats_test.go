//go:build unix

package torture

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"tocsin/cmd/devstack/internal/pgserver"
	"tocsin/internal/pgtest"
)

// TestRepeatsAreJudgedByTheirClaims lets a claim begin before the outcome of the attempt before is committed, and read
// after it. It also lets a sender store an outcome again that it does not know to be stored. By the instants, the new attempt
// began beside the other one. What the claim found decides, not the instants.
func TestRepeatsAreJudgedByTheirClaims(t *testing.T) {
	t.Parallel()
	one, two := onPostgres(t)
	ctx := t.Context()
	do := func(conn *pgx.Conn, statement string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	const (
		waits   = "INSERT INTO outbox (notification_id, webhook_id, attempts, claim_token, claimed_by, begun_at) VALUES ($1, $1, 1, 1, 'one', now())"
		outcome = "INSERT INTO attempt (notification_id, attempt, claim_token, replica, started_at, finished_at, verdict) SELECT notification_id, attempts, claim_token, claimed_by, begun_at, now(), $2 FROM outbox WHERE notification_id = $1"
		frees   = "UPDATE outbox SET claim_token = NULL, claimed_by = NULL WHERE notification_id = $1"
		unknown = "INSERT INTO attempt (notification_id, attempt, claim_token, replica, started_at) SELECT notification_id, attempts, claim_token, claimed_by, begun_at FROM outbox WHERE notification_id = $1"
		claims  = "UPDATE outbox SET attempts = 2, claim_token = 2, claimed_by = 'two', begun_at = now() WHERE notification_id = $1"
	)
	do(one, "SET session_replication_role = replica") // the messages are about nothing
	for name, test := range map[string]struct {
		id, verdict string
		// late says that the first sender stores the outcome, perhaps once more, after the claim.
		late bool
		// again says that the message was written after the outcome: a failover had taken it away.
		again   bool
		repeats int
	}{
		"stored as failed":                    {"00000000-0000-0000-0000-000000000001", "RETRY", false, false, 0},
		"stored as failed twice":              {"00000000-0000-0000-0000-000000000002", "RETRY", true, false, 0},
		"stored as delivered":                 {"00000000-0000-0000-0000-000000000003", "DELIVERED", false, false, 1},
		"stored as delivered, and taken away": {"00000000-0000-0000-0000-000000000005", "DELIVERED", false, true, 0},
		"not stored":                          {"00000000-0000-0000-0000-000000000004", "", true, false, 1},
	} {
		do(one, waits, test.id)
		if !test.late {
			do(two, "BEGIN")
		}
		if test.verdict != "" {
			do(one, outcome, test.id, test.verdict)
			do(one, frees, test.id)
		} else {
			do(one, unknown, test.id)
		}
		if test.again {
			do(one, "INSERT INTO notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason) VALUES ($1, '', $1, $1, $1, 'FIRED')", test.id)
		}
		do(two, claims, test.id)
		if test.late {
			do(one, "UPDATE attempt SET verdict = 'RETRY', finished_at = now() WHERE notification_id = $1", test.id)
		} else {
			do(two, "COMMIT")
		}
		do(one, outcome, test.id, "DELIVERED")
		attempts, err := readAttempts(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		list := attempts[test.id]
		if len(list) != 2 || list[0].StoredAt.Before(list[1].StartedAt) {
			t.Fatalf("%s: %+v: the second claim did not begin before the outcome was stored", name, list)
		}
		w := &world{truth: &truth{}}
		if test.again {
			w.disturbed.note(everyone, list[0].StartedAt)
		}
		var report Report
		w.checkRepeats(&report, notification{ID: test.id}, list, nil, 1)
		if report.found[repeatedOutside] != test.repeats {
			t.Errorf("%s: %d repeats outside the window, want %d: %v", name, report.found[repeatedOutside], test.repeats, &report)
		}
	}
}

// onPostgres starts a Postgres with the product's tables that records claims, and connects to it twice.
func onPostgres(t *testing.T) (one, two *pgx.Conn) {
	t.Helper()
	o := Options{PostgresBin: os.Getenv("TOCSIN_DEVSTACK_POSTGRES_BIN")}
	var err error
	if o.Dir, err = pgserver.Folder(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(o.Dir) })
	p, err := startPostgres(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	url := postgresURL(p.addresses()[0])
	pgtest.MigrateTo(t, url, math.MaxInt64)
	one, two = pgtest.Conn(t, url), pgtest.Conn(t, url)
	if err := recordClaims(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	return one, two
}
