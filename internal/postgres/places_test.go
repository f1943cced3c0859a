package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/rules"
)

// readable is a webhook to which messages are owed that can be read.
type readable struct {
	backlog
	hook, rule uuid.UUID
}

func newReadable(tb testing.TB) *readable {
	tb.Helper()
	url := pgtest.URL(tb)
	r := &readable{backlog: backlog{tb, url, pgtest.Conn(tb, url)}}
	db := r.open()
	defer db.Close()
	hook, err := db.Webhooks().Create(tb.Context(), "default", notify.Webhook{
		Name: "ops", Kind: notify.KindGeneric, URL: "http://hooks.example", Enabled: true, Timeout: time.Second, MaxConcurrent: 10,
	})
	if err != nil {
		tb.Fatal(err)
	}
	rule, err := db.Rules().Create(tb.Context(), "default", rules.Definition{
		Name: "orders", Enabled: true, FireMode: rules.PerExchange, Severity: rules.Critical, IntervalSeconds: 60, WebhookIDs: []uuid.UUID{hook.ID},
	})
	if err != nil {
		tb.Fatal(err)
	}
	r.hook, r.rule = hook.ID, rule.ID
	return r
}

// open returns a store with bounds and places of its own, as another replica has,
// over one connection.
func (r *readable) open() *postgres.DB {
	r.tb.Helper()
	box, err := seal.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		r.tb.Fatal(err)
	}
	db, err := postgres.Open(r.tb.Context(), r.url+"&pool_max_conns=1", box)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(db.Close)
	return db
}

// owe has so many messages be owed, in one transaction.
func (r *readable) owe(count int) {
	r.tb.Helper()
	_, err := r.conn.Exec(r.tb.Context(), `
		with raised as (
			insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
			                   application, route, exchange)
			select uuidv7(), 'default', @rule, 1, 'CRITICAL', 'FIRING', '', '', gen_random_uuid()::text, 0, '', '', '{}'
			from generate_series(1, @count::int) n
			returning alert_id
		), told as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select uuidv7(), 'default', alert_id, @rule, @hook, 'FIRED' from raised
			returning notification_id, webhook_id
		)
		insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from told`,
		pgx.QueryExecModeExec, pgx.NamedArgs{"rule": r.rule, "hook": r.hook, "count": count})
	if err != nil {
		r.tb.Fatal(err)
	}
}

// claim claims at most so many, for a minute.
func (r *readable) claim(o *postgres.Outbox, most int) []notify.Delivery {
	r.tb.Helper()
	claimed, err := o.Claim(r.tb.Context(), notify.ClaimRequest{
		Replica: "replica", Lease: time.Minute,
		Room: func([]notify.Limits) []notify.Slots { return []notify.Slots{{WebhookID: r.hook, Slots: most}} },
	})
	if err != nil {
		r.tb.Fatal(err)
	}
	return claimed.Deliveries
}

// TestClaimsPassOverNothingTwice claims a backlog bit by bit. What was claimed stays
// leased, and no claim and no look reads it again.
func TestClaimsPassOverNothingTwice(t *testing.T) {
	const claims, most = 50, 100
	r := newReadable(t)
	r.owe(claims * most)
	r.exec(`vacuum analyze`)
	db := r.open()
	o := db.Outbox()
	o.KeepPlaces(time.Hour)
	read := r.readBy(db, func() {
		for range claims {
			if got := len(r.claim(o, most)); got != most {
				t.Fatalf("%d claimed, want %d", got, most)
			}
		}
	})
	// From the head, the claims together would read 125,000 that are leased, and the
	// looks as many.
	if read > 10*claims*most {
		t.Errorf("%d claims of %d each read %d rows of the outbox", claims, most, read)
	}
}

// readBy returns how many rows of the outbox and of what is sent the connection of a
// store reads while f runs. It is closed then.
func (r *readable) readBy(db *postgres.DB, f func()) int64 {
	r.tb.Helper()
	pid := one[int](r.tb, r.conn, `select pid from pg_stat_activity where datname = current_database() and application_name = 'tocsin'`)
	const read = `select coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes where relname in ('outbox', 'notification_body')`
	r.exec(`select pg_stat_force_next_flush()`)
	before := one[int64](r.tb, r.conn, read)
	f()
	db.Close()
	for open := true; open; {
		open = one[bool](r.tb, r.conn, `select exists (
			select from pg_stat_activity where datname = current_database() and pid = $1)`, pid)
	}
	return one[int64](r.tb, r.conn, read) - before
}

// TestPlacesHideNothingThatThereIsRoomFor has claims go on behind a place, and then
// something become due before it.
func TestPlacesHideNothingThatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	giveBack := func(r *readable, _ *postgres.Outbox) {
		r.exec(`update outbox set due_at = now(), claimed_by = null, claim_token = null where notification_id in (
			select notification_id from outbox where claim_token is not null order by ready_at, notification_id limit 3)`)
	}
	for name, c := range map[string]struct {
		// owed is how many there are, of which the first claim takes 10.
		owed int
		// after is done behind the first claim.
		after func(r *readable, o *postgres.Outbox)
		// then is what the next claims take, each at most 10.
		then []int
	}{
		"nothing is left":                 {owed: 10, then: []int{0}},
		"the rest":                        {owed: 25, then: []int{10, 5, 0}},
		"given back, with nothing behind": {owed: 10, after: giveBack, then: []int{3, 0}},
		"given back, with little behind":  {owed: 15, after: giveBack, then: []int{8, 0}},
		"given back, with much behind":    {owed: 45, after: giveBack, then: []int{10, 10, 10, 8, 0}},
		"leases lapse": {
			owed: 10, after: func(r *readable, _ *postgres.Outbox) { r.exec(`update outbox set due_at = now() - interval '1 s'`) }, then: []int{10, 0},
		},
		"another takes some": {
			owed: 30, after: func(r *readable, _ *postgres.Outbox) { r.claim(r.open().Outbox(), 10) }, then: []int{10, 0},
		},
		"the clock is set back": {
			owed: 20, after: func(r *readable, o *postgres.Outbox) { giveBack(r, o); o.SetBack(time.Hour) }, then: []int{10, 3, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReadable(t)
			o := r.open().Outbox()
			o.KeepPlaces(time.Hour)
			r.owe(c.owed)
			if got := len(r.claim(o, 10)); got != 10 {
				t.Fatalf("the first claim took %d, want 10", got)
			}
			if c.after != nil {
				c.after(r, o)
			}
			for i, want := range c.then {
				if got := len(r.claim(o, 10)); got != want {
					t.Errorf("claim %d behind it took %d, want %d", i+1, got, want)
				}
			}
		})
	}
}

// TestAPlaceDoesNotLast has something be given back before a place while much is due
// behind it. It is claimed first once the place is old, or this replica gave it back.
func TestAPlaceDoesNotLast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// after is done when ten are given back by another, and claimed these ten.
		after func(r *readable, o *postgres.Outbox, claimed []notify.Held)
		first bool
	}{
		"it stands": {after: func(*readable, *postgres.Outbox, []notify.Held) {}},
		"it is old": {after: func(_ *readable, o *postgres.Outbox, _ []notify.Held) { o.KeepPlaces(0) }, first: true},
		"it gave it back": {
			after: func(r *readable, o *postgres.Outbox, claimed []notify.Held) {
				if err := o.Release(r.tb.Context(), claimed); err != nil {
					r.tb.Fatal(err)
				}
			},
			first: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReadable(t)
			o := r.open().Outbox()
			o.KeepPlaces(time.Hour)
			r.owe(40)
			var held []notify.Held
			for _, d := range r.claim(o, 10) {
				held = append(held, notify.Held{NotificationID: d.NotificationID, Token: d.Token})
			}
			r.exec(`update outbox set due_at = now() where claim_token is not null`)
			c.after(r, o, held)
			again := r.claim(o, 10)
			// A place is the last row itself.
			for _, h := range held[:9] {
				if found := slices.ContainsFunc(again, func(d notify.Delivery) bool { return d.NotificationID == h.NotificationID }); found != c.first {
					t.Fatalf("one of the first was claimed again: %v, want %v", found, c.first)
				}
			}
		})
	}
}

// TestPlansMadeForLittleServeMuch has one connection claim, begin and settle a message
// while hardly anything is stored, and then many. It reads no more for each.
func TestPlansMadeForLittleServeMuch(t *testing.T) {
	const rounds, batch = 20, 100
	r := newReadable(t)
	db := r.open()
	o := db.Outbox()
	read := r.readBy(db, func() {
		r.owe(1)
		r.deliver(o, 1)
		r.owe(rounds * batch)
		for range rounds {
			r.deliver(o, batch)
		}
	})
	if n := one[int](t, r.conn, `select count(*)::int from settlement where status = 'DELIVERED'`); n != rounds*batch+1 {
		t.Errorf("%d messages are settled, want %d", n, rounds*batch+1)
	}
	if read > 50*rounds*batch {
		t.Errorf("for %d messages, %d rows were read", rounds*batch, read)
	}
}

// deliver claims so many messages and has each be delivered.
func (r *readable) deliver(o *postgres.Outbox, count int) {
	r.tb.Helper()
	claimed := r.claim(o, count)
	begins, settlements := make([]notify.Begin, len(claimed)), make([]notify.Settlement, len(claimed))
	for i := range claimed {
		d := &claimed[i]
		begins[i] = notify.Begin{
			NotificationID: d.NotificationID, WebhookID: r.hook, WebhookVersion: d.Webhook.Version, Token: d.Token, Attempt: d.Attempt,
			Lease: time.Minute, Fresh: &notify.Body{Content: []byte("{}")},
		}
		settlements[i] = notify.Settlement{
			NotificationID: d.NotificationID, WebhookID: r.hook, Token: d.Token, Attempt: d.Attempt, TenantID: "default", Replica: "replica",
			Outcome: notify.Outcome{Verdict: notify.VerdictDelivered}, Decision: notify.Decision{Status: notify.Delivered},
		}
	}
	begun, err := o.Begin(r.tb.Context(), begins)
	if err != nil || len(begun) != count || slices.Contains(begun, notify.Begun{Fenced: true}) {
		r.tb.Fatalf("%d of %d were begun: %v, %v", len(begun), count, begun, err)
	}
	if _, err := o.Settle(r.tb.Context(), settlements); err != nil {
		r.tb.Fatal(err)
	}
}
