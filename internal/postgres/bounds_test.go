package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
)

// queue is a webhook to which messages are owed.
type queue struct {
	backlog
	hook uuid.UUID
	held pgx.Tx
}

// newQueue returns one beside a transaction that keeps Postgres from removing what is dead.
func newQueue(tb testing.TB) *queue {
	tb.Helper()
	url := pgtest.URL(tb)
	q := &queue{backlog: backlog{tb, url, pgtest.Conn(tb, url)}}
	q.owe("much", 0, 0, 0)
	q.exec(`update webhook set enabled = true`)
	q.exec(`insert into webhook_state (webhook_id) select webhook_id from webhook on conflict do nothing`)
	q.hook = one[uuid.UUID](tb, q.conn, `select webhook_id from webhook`)
	held, err := pgtest.Conn(tb, url).BeginTx(tb.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := held.Exec(tb.Context(), `select txid_current(), count(*) from webhook`); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = held.Rollback(context.WithoutCancel(tb.Context())) })
	return q
}

// settle owes so many messages, each since a moment of the last half hour, and settles them all.
func (q *queue) settle(count int) {
	q.tb.Helper()
	q.exec(`insert into outbox (notification_id, webhook_id, ready_at, due_at)
		select uuidv7(-age), $1, now() - age, now() - age
		from (select interval '30 min' * (1 - n::float / $2::int) + interval '3 s' as age from generate_series(1, $2::int) n) made`, q.hook, count)
	q.exec(`delete from outbox`)
}

// look claims at most so many, and returns what it claimed.
func (q *queue) look(o *postgres.Outbox, most int) notify.Claimed {
	q.tb.Helper()
	claimed, err := o.Claim(q.tb.Context(), notify.ClaimRequest{
		Replica: "another", Lease: time.Minute,
		Room: func(due []notify.Limits) []notify.Slots {
			var rooms []notify.Slots
			for _, d := range due {
				rooms = append(rooms, notify.Slots{WebhookID: d.WebhookID, Slots: most})
			}
			return rooms
		},
	})
	if err != nil {
		q.tb.Fatal(err)
	}
	return claimed
}

// A look reads what was settled before the last one at most once, however often one
// is made while nothing dead can be removed.
func TestLooksPassOverWhatIsSettledOnce(t *testing.T) {
	const settled, looks = 20_000, 100
	q := newQueue(t)
	q.settle(settled)
	read := q.rowsRead(func(db *postgres.DB) {
		o := db.Outbox()
		for range looks {
			q.owe("much", 1, 0, 0)
			q.look(o, 10)
		}
	})
	// A look that is made when a period is over begins at the beginning.
	if read < settled || read > 10*settled {
		t.Errorf("%d looks read %d entries of %d that are settled", looks, read, settled)
	}
}

// BenchmarkLook tells what a look costs after so many messages were settled beside a
// transaction that is held open.
func BenchmarkLook(b *testing.B) {
	for name, settled := range map[string]int{"fresh": 0, "settled=900000": 900_000} {
		b.Run(name, func(b *testing.B) {
			q := newQueue(b)
			q.settle(settled)
			db, err := postgres.Open(b.Context(), q.url, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			o := db.Outbox()
			q.look(o, 10)
			for b.Loop() {
				q.look(o, 10)
			}
		})
	}
}
