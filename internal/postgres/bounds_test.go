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
	"tocsin/notify/dispatch"
)

// queue is a webhook with queued messages.
type queue struct {
	waiting
	hook uuid.UUID
}

// newQueue returns a queue while a transaction keeps Postgres from removing dead rows.
func newQueue(tb testing.TB) *queue {
	tb.Helper()
	url := pgtest.URL(tb)
	q := &queue{waiting: waiting{tb, url, pgtest.Conn(tb, url)}}
	q.fill("much", 0, 0, 0)
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

// settle queues count messages, spread over the last half hour, and settles them all.
func (q *queue) settle(count int) {
	q.tb.Helper()
	q.exec(`insert into outbox (notification_id, webhook_id, ready_at, due_at)
		select uuidv7(-age), $1, now() - age, now() - age
		from (select interval '30 min' * (1 - n::float / $2::int) + interval '3 s' as age from generate_series(1, $2::int) n) made`, q.hook, count)
	q.exec(`delete from outbox`)
}

// look claims at most ten, and returns what it claimed.
func (q *queue) look(o *postgres.Outbox, hints ...uuid.UUID) dispatch.Claimed {
	q.tb.Helper()
	claimed, err := o.Claim(q.tb.Context(), dispatch.ClaimRequest{
		Replica: "another", Lease: time.Minute, Webhooks: hints,
		Render: func(*notify.Delivery) (notify.Body, string, error) {
			return notify.Body{Content: []byte("{}")}, "", nil
		},
		Deal: func(due []dispatch.Due) []dispatch.Slots {
			var rooms []dispatch.Slots
			for _, d := range due {
				rooms = append(rooms, dispatch.Slots{WebhookID: d.WebhookID, Slots: 10})
			}
			return rooms
		},
	})
	if err != nil {
		q.tb.Fatal(err)
	}
	return claimed
}

// Looks after wake-ups read settled rows at most once, however many looks are made while dead rows
// cannot be removed; nor are they read to count what is queued.
func TestLooksPassOverWhatIsSettledOnce(t *testing.T) {
	const settled, looks = 20_000, 100
	q := newQueue(t)
	q.settle(settled)
	read := q.rowsRead(func(db *postgres.DB) {
		o := db.Outbox()
		q.look(o)
		o.BeginPeriod()
		for i := range looks {
			q.fill("much", 1, 0, 0)
			q.look(o, q.hook)
			if i%10 > 0 {
				continue
			}
			if _, err := db.Record(nil).Status(t.Context(), "much"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Reconciliation().Gauges(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	})
	if read < settled || read > 10*settled {
		t.Errorf("%d looks read %d entries of %d that are settled", looks, read, settled)
	}
}

// claims returns how many messages a look after a wake-up claims, at most ten.
func (q *queue) claims(o *postgres.Outbox) int {
	q.tb.Helper()
	const claimed = `select count(*)::int from outbox where claim_token is not null and due_at > now()`
	before := one[int](q.tb, q.conn, claimed)
	q.look(o, q.hook)
	return one[int](q.tb, q.conn, claimed) - before
}

// TestBoundsHideNoWaitingMessage lets looks begin at bounds, and then something become due. It is
// claimed by the next look.
func TestBoundsHideNoWaitingMessage(t *testing.T) {
	t.Parallel()
	const old = `update outbox set ready_at = now() - interval '1 hour', due_at = now() - interval '1 hour'`
	for name, c := range map[string]struct {
		// before and after are executed before the first look and after it.
		before, after func(q *queue, o *postgres.Outbox)
		// first and then are the numbers that the first look and the next one claim.
		first, then int
	}{
		"written": {
			after: func(q *queue, _ *postgres.Outbox) { q.fill("much", 3, 0, 0) },
			then:  3,
		},
		"older ones are left, and some are written": {
			before: func(q *queue, _ *postgres.Outbox) { q.fill("much", 15, 0, 0); q.exec(old) },
			after:  func(q *queue, _ *postgres.Outbox) { q.fill("much", 2, 0, 0) },
			first:  10, then: 7,
		},
		"a lease of another expires": {
			before: func(q *queue, _ *postgres.Outbox) {
				q.fill("much", 3, 0, 0)
				q.exec(old)
				q.exec(`update outbox set due_at = now() + interval '1 min', claimed_by = 'dead', claim_token = 1`)
			},
			// It leaves three messages that do not count as claimed.
			after: func(q *queue, _ *postgres.Outbox) { q.exec(`update outbox set due_at = now() - interval '1 s'`) },
			then:  3,
		},
		"its own are released": {
			before: func(q *queue, _ *postgres.Outbox) { q.fill("much", 3, 0, 0); q.exec(old) },
			after: func(q *queue, o *postgres.Outbox) {
				q.look(o)
				q.exec(`update outbox set due_at = now(), claimed_by = null, claim_token = null`)
			},
			first: 3, then: 3,
		},
		"a retry is hastened": {
			before: func(q *queue, _ *postgres.Outbox) {
				q.fill("much", 3, 0, 0)
				q.exec(`update outbox set ready_at = now() + interval '1 hour', due_at = now() + interval '1 hour'`)
			},
			after: func(q *queue, _ *postgres.Outbox) { q.exec(`update outbox set ready_at = now(), due_at = now()`) },
			then:  3,
		},
		"what waits is gathered by another": {
			before: func(q *queue, _ *postgres.Outbox) {
				q.fill("much", 12, 0, 0)
				q.exec(old)
				q.exec(`update outbox set due_at = now() + interval '1 min', claimed_by = 'dead', claim_token = 1`)
			},
			after: func(q *queue, _ *postgres.Outbox) {
				q.exec(`update outbox set due_at = ready_at, claimed_by = null, claim_token = null`)
				q.exec(`update webhook set digest_above = 5`)
				another, err := postgres.Open(q.tb.Context(), q.url, box(q.tb))
				if err != nil {
					q.tb.Fatal(err)
				}
				defer another.Close()
				q.look(another.Outbox())
				q.exec(`update outbox set due_at = now(), claimed_by = null, claim_token = null`)
			},
			then: 1,
		},
		"the webhook was off": {
			before: func(q *queue, _ *postgres.Outbox) { q.exec(`update webhook set enabled = false`) },
			after: func(q *queue, o *postgres.Outbox) {
				q.fill("much", 3, 0, 0)
				q.exec(old)
				q.look(o)
				q.exec(`update webhook set enabled = true`)
			},
			then: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			db, err := postgres.Open(t.Context(), q.url, box(t))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			o := db.Outbox()
			// A whole look precedes it.
			q.look(o)
			if c.before != nil {
				c.before(q, o)
				o.EndPeriod()
			}
			if got := q.claims(o); got != c.first {
				t.Errorf("the first look claimed %d, want %d", got, c.first)
			}
			o.BeginPeriod()
			c.after(q, o)
			if got := q.claims(o); got != c.then {
				t.Errorf("then %d were claimed, want %d", got, c.then)
			}
		})
	}
}

// What a long transaction has written before the bound waits for the next whole look, which is
// soon.
func TestWrittenBeforeTheBoundIsFoundByAWholeLook(t *testing.T) {
	q := newQueue(t)
	db, err := postgres.Open(t.Context(), q.url, box(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	o := db.Outbox()
	if next := q.look(o).Next; next != 0 {
		t.Errorf("after a whole look that found nothing, the next one is wanted in %v", next)
	}
	o.BeginPeriod()
	q.look(o, q.hook) // which gives the webhook a bound
	q.fill("much", 3, 0, 0)
	q.exec(`update outbox set ready_at = now() - interval '1 min', due_at = now() - interval '1 min'`)
	if next := q.look(o, q.hook).Next; next <= 0 || next > time.Hour {
		t.Errorf("the next look is wanted in %v, later than a whole one is due", next)
	}
	o.EndPeriod()
	if got := q.claims(o); got != 3 {
		t.Errorf("a whole look claimed %d, want 3", got)
	}
}

// At most a hundredth of the time is spent on whole looks, unless a single one takes long.
func TestWholeLooksTakeAHundredthOfTheTime(t *testing.T) {
	t.Parallel()
	const quick, slow, most = time.Millisecond, 2 * time.Second, 5 * time.Minute
	for name, c := range map[string]struct {
		took []time.Duration
		want time.Duration
	}{
		"quick":            {[]time.Duration{quick, quick}, quick * 100},
		"slow":             {[]time.Duration{slow, slow}, slow * 100},
		"slower":           {[]time.Duration{slow, 2 * slow}, slow * 100},
		"one was paused":   {[]time.Duration{quick, slow}, quick * 100},
		"quick again":      {[]time.Duration{slow, slow, quick}, quick * 100},
		"all hang forever": {[]time.Duration{time.Hour, time.Hour}, most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := postgres.NextWhole(c.took...); got > c.want+c.want/10+time.Second || got < c.want-c.want/10-time.Second {
				t.Errorf("the next whole look is due after %v, want %v", got, c.want)
			}
		})
	}
}

// BenchmarkLook measures a look after many messages were settled while a transaction is held open.
func BenchmarkLook(b *testing.B) {
	for name, settled := range map[string]int{"fresh": 0, "settled=900000": 900_000} {
		b.Run(name, func(b *testing.B) {
			q := newQueue(b)
			q.settle(settled)
			db, err := postgres.Open(b.Context(), q.url, box(b))
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			o := db.Outbox()
			q.look(o)
			for b.Loop() {
				q.look(o)
			}
		})
	}
}
