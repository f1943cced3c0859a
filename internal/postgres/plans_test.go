package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
)

// TestBatchesReadTheirRowsAlone has Postgres believe that the outbox is empty, as it
// does after a vacuum between two storms, while many messages are owed. What works
// on a few of them then reads these few.
func TestBatchesReadTheirRowsAlone(t *testing.T) {
	const many, batch = 20_000, 100
	url := pgtest.URL(t)
	b := &backlog{t, url, pgtest.Conn(t, url)}
	b.owe("much", many, 0, 2*time.Hour)
	b.exec(`delete from outbox where notification_id <> (select notification_id from outbox order by ctid desc limit 1)`)
	b.exec(`vacuum analyze outbox`)
	if rows := one[float32](t, b.conn, `select reltuples from pg_class where relname = 'outbox'`); rows > 1 {
		t.Fatalf("Postgres believes that there are %v rows", rows)
	}
	b.owe("much", many, 0, time.Hour)
	b.exec(`update outbox set claim_token = 7, claimed_by = 'replica' where notification_id in (
		select notification_id from outbox order by notification_id offset 1000 limit $1)`, batch)
	b.exec(`update webhook set enabled = true`)
	b.exec(`set session_replication_role = origin`)
	b.exec(`insert into webhook_state (webhook_id) select webhook_id from webhook on conflict do nothing`)
	hook := one[uuid.UUID](t, b.conn, `select webhook_id from webhook`)
	rows, err := b.conn.Query(t.Context(), `select notification_id from outbox where claim_token = 7`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		t.Fatal(err)
	}
	held, begins, settlements := make([]notify.Held, batch), make([]notify.Begin, batch), make([]notify.Settlement, batch)
	for i, id := range ids {
		held[i] = notify.Held{NotificationID: id, Token: 7}
		begins[i] = notify.Begin{NotificationID: id, WebhookID: hook, WebhookVersion: 1, Token: 7, Attempt: 1, Lease: time.Minute, Fresh: &notify.Body{Content: []byte("{}")}}
		settlements[i] = notify.Settlement{
			NotificationID: id, WebhookID: hook, Token: 7, Attempt: 1, TenantID: "much", Replica: "replica",
			Outcome: notify.Outcome{Verdict: notify.VerdictDelivered}, Decision: notify.Decision{Status: notify.Delivered},
		}
	}
	for _, step := range []struct {
		name string
		do   func(*postgres.Outbox) error
	}{
		{"claim", func(o *postgres.Outbox) error {
			_, err := o.Claim(t.Context(), notify.ClaimRequest{
				Replica: "another", Lease: time.Minute, Room: func([]notify.Limits) []notify.Slots { return []notify.Slots{{WebhookID: hook, Slots: batch}} },
			})
			return err
		}},
		{"renew", func(o *postgres.Outbox) error { _, err := o.Renew(t.Context(), held, time.Minute); return err }},
		{"begin", func(o *postgres.Outbox) error { _, err := o.Begin(t.Context(), begins); return err }},
		{"settle", func(o *postgres.Outbox) error { _, err := o.Settle(t.Context(), settlements); return err }},
		{"release", func(o *postgres.Outbox) error { return o.Release(t.Context(), held) }},
	} {
		read := b.rowsRead(func(db *postgres.DB) {
			if err := step.do(db.Outbox()); err != nil {
				t.Fatal(err)
			}
		})
		if read > 20*batch {
			t.Errorf("%s: to work on %d messages, %d rows were read", step.name, batch, read)
		}
	}
	if n := one[int](t, b.conn, `select count(*)::int from settlement where status = 'DELIVERED'`); n != batch {
		t.Errorf("%d messages are settled, want %d", n, batch)
	}
}

// exec runs a statement.
func (b *backlog) exec(statement string, args ...any) {
	b.tb.Helper()
	if _, err := b.conn.Exec(b.tb.Context(), statement, args...); err != nil {
		b.tb.Fatal(err)
	}
}
