package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify/dispatch"
)

// crowd creates the given number of webhooks, ten of which have two messages each.
func crowd(tb testing.TB, webhooks int) *waiting {
	tb.Helper()
	url := pgtest.URL(tb)
	b := &waiting{tb, url, pgtest.Conn(tb, url)}
	b.fill("one", 20, 0, 0)
	b.exec(`insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second)
		select uuidv7(), 'one', 'hook-' || n, 'generic', '', 'hooks.example', false, true, 1000, 10, 0 from generate_series(2, $1::int) n`, max(webhooks, 10))
	b.seal()
	b.exec(`update webhook set enabled = true`)
	b.exec(`insert into webhook_state (webhook_id) select webhook_id from webhook on conflict do nothing`)
	b.exec(`with hook as (select webhook_id, row_number() over (order by webhook_id) as n, count(*) over () as of_all from webhook),
			chosen as (select webhook_id, row_number() over (order by n) - 1 as n from hook where (n - 1) % (of_all / 10) = 0 order by n limit 10),
			message as (select notification_id, row_number() over () % 10 as n from outbox)
		update outbox o set webhook_id = c.webhook_id from message m join chosen c using (n) where o.notification_id = m.notification_id`)
	if webhooks < 10 {
		b.exec(`update outbox set webhook_id = (select webhook_id from webhook limit 1)`)
	}
	b.exec(`analyze`)
	return b
}

// find is a claim that takes nothing, and returns for how many webhooks something is due.
func find(tb testing.TB, o *postgres.Outbox) (due int) {
	tb.Helper()
	_, err := o.Claim(tb.Context(), dispatch.ClaimRequest{
		Replica: "looks", Lease: time.Minute, Render: renderNothing,
		Deal: func(list []dispatch.Due) []dispatch.Slots { due = len(list); return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return due
}

// TestALookCostsWhatIsDue looks for due messages among few and many webhooks that have none: both
// read the same amount.
func TestALookCostsWhatIsDue(t *testing.T) {
	t.Parallel()
	const looks = 20
	read := map[int]int64{}
	for _, webhooks := range []int{10, 5000} {
		b := crowd(t, webhooks)
		read[webhooks] = b.counted(`select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
			from pg_stat_user_tables where relname in ('outbox', 'webhook', 'webhook_state')`, func(db *postgres.DB) {
			o := db.Outbox()
			for range looks {
				if due := find(t, o); due != 10 {
					t.Fatalf("%d webhooks have something due, want 10", due)
				}
			}
		})
	}
	if read[5000] > read[10]*3/2 {
		t.Errorf("%d looks read %d rows beside 5,000 webhooks, and %d beside 10", looks, read[5000], read[10])
	}
}

// TestALookReadsNothingOfWhatWaits looks for due messages while many others of the same webhooks
// wait for them.
func TestALookReadsNothingOfWhatWaits(t *testing.T) {
	t.Parallel()
	const looks = 20
	read := map[int]int64{}
	for _, behind := range []int{0, 500} {
		b := crowd(t, 10)
		b.exec(`insert into outbox (notification_id, webhook_id, after_id, ready_at, due_at)
			select uuidv7(), o.webhook_id, o.notification_id, null, null from outbox o cross join generate_series(1, $1::int)`, behind)
		b.exec(`analyze`)
		read[behind] = b.counted(`select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
			from pg_stat_user_tables where relname = 'outbox'`, func(db *postgres.DB) {
			o := db.Outbox()
			for range looks {
				if due := find(t, o); due != 10 {
					t.Fatalf("%d webhooks have something due, want 10", due)
				}
			}
		})
	}
	// Skipping them would mean reading 100,000; plans differ by some.
	if read[500] > read[0]*3 {
		t.Errorf("%d looks read %d rows where 500 messages wait for each, and %d where none does", looks, read[500], read[0])
	}
}

// BenchmarkLookBesideWebhooks measures a look when ten webhooks have something due.
func BenchmarkLookBesideWebhooks(b *testing.B) {
	for _, webhooks := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("webhooks=", webhooks), func(b *testing.B) {
			c := crowd(b, webhooks)
			db, err := postgres.Open(b.Context(), c.url, box(b))
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			o := db.Outbox()
			for b.Loop() {
				find(b, o)
			}
		})
	}
}

// TestAClaimThatFailsTakesNothing makes data of claimed messages unavailable: the messages are not
// held until a lease ends, but claimed by the next look.
func TestAClaimThatFailsTakesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoil, mend string }{
		"webhooks": {`alter table webhook rename column secrets to hidden`, `alter table webhook rename column hidden to secrets`},
		"alerts":   {`alter table alert rename column exchange to hidden`, `alter table alert rename column hidden to exchange`},
		"bodies":   {`alter table notification_body rename column content to hidden`, `alter table notification_body rename column hidden to content`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := crowd(t, 1)
			b.exec(`delete from outbox where notification_id not in (select notification_id from outbox limit 3)`)
			q := &queue{*b, one[uuid.UUID](t, b.conn, `select webhook_id from outbox limit 1`)}
			db, err := postgres.Open(t.Context(), q.url, box(t))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			q.exec(c.spoil)
			_, err = db.Outbox().Claim(t.Context(), dispatch.ClaimRequest{
				Replica: "r", Lease: time.Minute, Render: renderNothing, Webhooks: []uuid.UUID{q.hook},
				Deal: func([]dispatch.Due) []dispatch.Slots { return []dispatch.Slots{{WebhookID: q.hook, Slots: 10}} },
			})
			if err == nil {
				t.Error("the claim succeeded")
			}
			q.exec(c.mend)
			if n := one[int](t, q.conn, `select count(*)::int from outbox where claim_token is not null or attempts > 0`); n != 0 {
				t.Errorf("%d messages are held by a claim that failed", n)
			}
			another, err := postgres.Open(t.Context(), q.url, box(t))
			if err != nil {
				t.Fatal(err)
			}
			defer another.Close()
			if got := q.claims(another.Outbox()); got != 3 {
				t.Errorf("then %d were claimed, want 3", got)
			}
		})
	}
}
