package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/silences"
	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/rules"
)

// digested are critical alerts of which a silence with a digest suppresses the messages.
type digested struct {
	*persist
	t  *testing.T
	db *postgres.DB
}

func newDigested(t *testing.T) *digested {
	t.Helper()
	p := newPersist(t)
	d := &digested{persist: p, t: t, db: p.opened(t)}
	d.exec(t, `create function pause() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return null; end $$`)
	return d
}

// silence creates a silence with a digest that lasts for a time.
func (d *digested) silence(lasts time.Duration, recurrence *silences.Recurrence) uuid.UUID {
	d.t.Helper()
	ends := one[time.Time](d.t, d.conn, `select clock_timestamp()`).Add(lasts)
	made, err := d.db.Silences().Create(d.t.Context(), "default", "ada", silences.Definition{
		Name: "digested", Match: severities(rules.Critical), EndsAt: &ends, Recurrence: recurrence, Digest: true,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return made.ID
}

// few returns a batch with some new alerts.
func (d *digested) few(n int) evaluator.Batch {
	b := d.page()
	b.Instances, b.Notifications = b.Instances[:n], b.Notifications[:n]
	return b
}

// digest writes the digests that are due, and returns how many are to be sent.
func (d *digested) digest(now *time.Time) int {
	d.t.Helper()
	due, err := d.db.Outbox().DigestSilences(d.t.Context(), now, func(string) bool { return true })
	if err != nil {
		d.t.Fatal(err)
	}
	return due[d.webhook]
}

// paused makes statements of a kind wait, and returns a function that lets them go on.
func (d *digested) paused(on string) (release func()) {
	d.t.Helper()
	d.exec(d.t, `create trigger pause before `+on+` for each statement execute function pause()`)
	holder := pgtest.Conn(d.t, d.url)
	if _, err := holder.Exec(context.Background(), `select pg_advisory_lock(4711)`); err != nil {
		d.t.Fatal(err)
	}
	return func() {
		if _, err := holder.Exec(context.Background(), `select pg_advisory_unlock(4711)`); err != nil {
			d.t.Error(err)
		}
	}
}

// waiting returns as soon as so many sessions wait for a lock.
func (d *digested) waiting(sessions int) {
	d.t.Helper()
	conn := pgtest.Conn(d.t, d.url)
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if one[bool](d.t, conn, `select count(*) >= $1::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`, sessions) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	d.t.Fatalf("fewer than %d sessions wait", sessions)
}

const digestsOfSilences = `select d.size || ' listed ' || (select count(*) from digest_listing l where l.digest_id = d.notification_id)
	from digest d where d.silence_id is not null order by d.silenced_until`

// TestADigestWaitsForWhoeverHasDecidedBefore has a commit be under way at the end of a silence: the
// digest comes after it, and lists its message. In a storm, a digest that did not wait would always find a commit under way.
func TestADigestWaitsForWhoeverHasDecidedBefore(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	release := d.paused("insert on settlement")
	d.silence(time.Hour, nil)
	committed := make(chan evaluator.Committed, 1)
	go func() {
		done, err := d.store.Commit(context.Background(), d.few(2))
		if err != nil {
			t.Error(err)
		}
		committed <- done
	}()
	d.waiting(1)
	ended := time.Now().Add(2 * time.Hour)
	digests := make(chan int, 1)
	go func() {
		due, err := d.db.Outbox().DigestSilences(context.Background(), &ended, func(string) bool { return true })
		if err != nil {
			t.Error(err)
		}
		digests <- due[d.webhook]
	}()
	d.waiting(2)
	release()
	if done := <-committed; done.Suppressed != 2 {
		t.Errorf("%d messages are suppressed, want 2: the silence was in force when the commit decided", done.Suppressed)
	}
	if n := <-digests; n != 1 {
		t.Errorf("%d digests, want 1", n)
	}
	if diff := cmp.Diff([]string{"2 listed 2"}, column(t, d.conn, digestsOfSilences)); diff != "" {
		t.Error(diff)
	}
}

// TestAPanicOverASilenceDelaysNoOther has a bug in what decides about the digest of one of two silences.
func TestAPanicOverASilenceDelaysNoOther(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	d.twoSilenced()
	ended := time.Now().Add(2 * time.Hour)
	calls := 0
	due, err := d.db.Outbox().DigestSilences(t.Context(), &ended, func(string) bool {
		if calls++; calls == 1 {
			panic("poison")
		}
		return true
	})
	if err == nil || !strings.Contains(err.Error(), "panic: poison") || due[d.webhook] != 1 {
		t.Errorf("%d digests, and the error is: %v", due[d.webhook], err)
	}
	if n := d.digest(&ended); n != 1 {
		t.Errorf("%d digests after it, want 1", n)
	}
}

// twoSilenced creates two silences, each of which has suppressed one message. It returns the first.
func (d *digested) twoSilenced() uuid.UUID {
	d.t.Helper()
	first := d.silence(time.Hour, nil)
	d.exec(d.t, `update silence set name = 'first'`)
	d.silence(time.Hour, nil)
	d.write(d.t, d.few(2))
	for i, op := range []string{"=", "<>"} {
		d.exec(d.t, `update settlement set silence_id = (select silence_id from silence where silence_id `+op+` $1)
			where notification_id = (select notification_id from settlement where silence_id is not null order by notification_id limit 1 offset $2)`, first, i)
	}
	return first
}

// TestWhoeverWaitsForAnEndDecidesAfterIt has a person acknowledge an alert while another one ends the
// silence: the message is written after the end, and sent.
func TestWhoeverWaitsForAnEndDecidesAfterIt(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	d.exec(t, `update webhook set events = '{ACKNOWLEDGED}'`)
	b := d.few(1)
	d.write(t, b)
	id := d.silence(time.Hour, nil)
	release := d.paused("update on silence")
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := d.db.Silences().End(context.Background(), "default", "ada", id); err != nil {
			t.Error(err)
		}
	})
	d.waiting(1)
	both.Go(func() {
		if _, err := d.db.Inbox().Act(context.Background(), "default", api.AlertAction{AlertID: b.Instances[0].ID, Action: alerts.Acknowledge, Actor: "bob"}); err != nil {
			t.Error(err)
		}
	})
	d.waiting(2)
	release()
	both.Wait()
	if diff := cmp.Diff([]string{"FIRED 0 sent", "ACKNOWLEDGED 0 sent"}, column(t, d.conn, suppressedReasons)); diff != "" {
		t.Error(diff)
	}
	if n := d.digest(nil); n != 0 {
		t.Errorf("%d digests of nothing", n)
	}
}

// TestDigestsAreWrittenOnce has many passes at once, a transaction that fails, and one that a
// failover takes back.
func TestDigestsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	id := d.silence(time.Hour, nil)
	d.write(t, d.few(3))
	if _, err := d.db.Silences().End(t.Context(), "default", "ada", id); err != nil {
		t.Fatal(err)
	}
	audited := one[int](t, d.conn, `select count(*)::int from audit`)
	plan := one[string](t, d.conn, `select digest_from || ' ' || digest_at from silence`)
	d.exec(t, `create function fail() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`)
	for _, on := range []string{"insert on notification", "insert on digest", "insert on digest_listing", "insert on outbox", "update on silence"} {
		d.exec(t, `create trigger fail after `+on+` for each statement execute function fail()`)
		if _, err := d.db.Outbox().DigestSilences(t.Context(), nil, func(string) bool { return true }); err == nil {
			t.Errorf("%s does not fail", on)
		}
		d.exec(t, `drop trigger fail on `+on[strings.LastIndex(on, " ")+1:])
		if got := column(t, d.conn, digestsOfSilences); len(got) > 0 {
			t.Errorf("%s has failed, and there are digests %v", on, got)
		}
		if got := one[string](t, d.conn, `select digest_from || ' ' || digest_at from silence`); got != plan {
			t.Errorf("%s has failed, and the plan is %s, was %s", on, got, plan)
		}
	}
	other := d.opened(t)
	var sum int
	var mu sync.Mutex
	var passes sync.WaitGroup
	for n := range 8 {
		passes.Go(func() {
			db := []*postgres.DB{d.db, other}[n%2]
			due, err := db.Outbox().DigestSilences(context.Background(), nil, func(string) bool { return true })
			mu.Lock()
			defer mu.Unlock()
			if sum += due[d.webhook]; err != nil {
				t.Error(err)
			}
		})
	}
	passes.Wait()
	if diff := cmp.Diff([]string{"3 listed 3"}, column(t, d.conn, digestsOfSilences)); sum != 1 || diff != "" {
		t.Errorf("%d digests to be sent:\n%s", sum, diff)
	}
	if n := one[int](t, d.conn, `select count(*)::int from audit`); n != audited {
		t.Errorf("%d entries of the audit log are about digests", n-audited)
	}
	// A failover takes the transaction back: the repeat has the same id.
	was := one[uuid.UUID](t, d.conn, `select notification_id from digest`)
	at := one[time.Time](t, d.conn, `select silenced_until from digest`)
	d.exec(t, `delete from outbox where notification_id = $1`, was)
	d.exec(t, `delete from notification where notification_id = $1`, was)
	d.exec(t, `update silence set digest_from = starts_at, digest_at = $1`, at)
	if n := d.digest(nil); n != 1 {
		t.Errorf("%d digests after a failover, want 1", n)
	}
	if again := one[uuid.UUID](t, d.conn, `select notification_id from digest`); again != was || again != notify.ID(id, d.webhook, notify.ReasonDigest, int(at.UnixMicro())) {
		t.Errorf("written again as %s, was %s", again, was)
	}
}

// TestWindowsOfARecurrenceHaveDigests has a pass come late: each window that suppressed something
// has its digest, and the next one is planned.
func TestWindowsOfARecurrenceHaveDigests(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	now := one[time.Time](t, d.conn, `select clock_timestamp()`).UTC()
	const days = 24 * time.Hour
	d.silence(10*days, &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(-time.Hour).Format("15:04"), DurationMinutes: 120})
	d.write(t, d.few(1))
	first := one[uuid.UUID](t, d.conn, `select notification_id from settlement`)
	d.write(t, d.few(3))
	d.exec(t, `update settlement set settled_at = settled_at + interval '2 days' where notification_id <> $1`, first)
	if n := d.digest(nil); n != 0 {
		t.Errorf("%d digests within the first window", n)
	}
	if n := d.digest(new(now.Add(2 * time.Hour))); n != 1 {
		t.Errorf("%d digests after the first window, want 1", n)
	}
	if n := d.digest(new(now.Add(5 * days))); n != 1 {
		t.Errorf("%d digests after six windows, want 1", n)
	}
	if diff := cmp.Diff([]string{"1 listed 1", "3 listed 3"}, column(t, d.conn, digestsOfSilences)); diff != "" {
		t.Error(diff)
	}
	if next := one[time.Time](t, d.conn, `select digest_at from silence`); next.Before(now.Add(5*days)) || next.After(now.Add(6*days)) {
		t.Errorf("the next is due at %s", next)
	}
}

// TestADigestOfASilenceIsBounded suppresses more than a digest lists, and has a webhook that is
// deleted and one whose receiver takes no digests.
func TestADigestOfASilenceIsBounded(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	id := d.silence(time.Hour, nil)
	d.write(t, d.few(1))
	const more = notify.DigestSize + 6
	d.exec(t, `
		with n as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, generation)
			select gen_random_uuid(), n.tenant_id, n.alert_id, n.rule_id, n.webhook_id, 'REMINDER', g from notification n, generate_series(1, $1::int) g
			returning notification_id, tenant_id)
		insert into settlement (notification_id, tenant_id, status, settled_at, trail, silence_id)
		select notification_id, tenant_id, 'SUPPRESSED', clock_timestamp(), false, $2 from n`, more, id)
	d.exec(t, `
		insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second, preset, deleted_at)
		select gen_random_uuid(), 'default', name, 'generic', '', '', false, true, 1000, 10, 0, preset, deleted_at
		from (values ('gone', '', now()), ('keyed', 'pagerduty', null)) w (name, preset, deleted_at)`)
	d.exec(t, `
		with n as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select gen_random_uuid(), n.tenant_id, n.alert_id, n.rule_id, w.webhook_id, 'FIRED' from notification n, webhook w
			where n.reason = 'FIRED' and w.name in ('gone', 'keyed')
			returning notification_id, tenant_id)
		insert into settlement (notification_id, tenant_id, status, settled_at, trail, silence_id)
		select notification_id, tenant_id, 'SUPPRESSED', clock_timestamp(), false, $1 from n`, id)
	if _, err := d.db.Silences().End(t.Context(), "default", "ada", id); err != nil {
		t.Fatal(err)
	}
	due, err := d.db.Outbox().DigestSilences(t.Context(), nil, func(preset string) bool { return preset != "pagerduty" })
	if diff := cmp.Diff(map[uuid.UUID]int{d.webhook: 1}, due); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"5007 listed 5000"}, column(t, d.conn, digestsOfSilences)); diff != "" {
		t.Error(diff)
	}
	got, err := d.db.Silences().Get(t.Context(), "default", id)
	if err != nil || got.Digests != 1 || got.Suppressed != more+3 {
		t.Errorf("%+v, %v", got, err)
	}
	listed, _, err := d.db.Record(nil).List(t.Context(), "default", api.NotificationQuery{NotificationFilter: api.NotificationFilter{DigestsOf: []uuid.UUID{id}}, Limit: 10})
	if err != nil || len(listed) != 1 || listed[0].Reason != notify.ReasonDigest || listed[0].DigestSize != more+1 {
		t.Errorf("%+v, %v", listed, err)
	}
}
