package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/resolution"
	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/rules"
)

// TestALockedRowDelaysNoOthers has somebody keep one row locked, as an open transaction in psql does. The work that no
// person waits for skips it, and goes on with the others at once. It waits for a silence, and its error names that one.
func TestALockedRowDelaysNoOthers(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) (n *napping, lock string, locked uuid.UUID, work func(ctx context.Context) error, done string){
		"escalation": func(t *testing.T) (*napping, string, uuid.UUID, func(context.Context) error, string) {
			t.Helper()
			e := newEscalating(t)
			e.write(t, e.routed())
			return e.napping, `select from alert where alert_id = $1 for update`, e.alert, func(ctx context.Context) error {
				_, err := e.db.Outbox().Escalate(ctx, e.minutesOn(6))
				return err
			}, `select 'escalated' from notification where reason = 'ESCALATED'`
		},
		"ends of snoozes": func(t *testing.T) (*napping, string, uuid.UUID, func(context.Context) error, string) {
			t.Helper()
			n := newNapping(t)
			n.snoozed()
			locked := n.alert
			b := n.failed(1)
			n.write(t, b)
			n.alert = b.Instances[0].ID
			n.snoozed()
			return n, `select from alert where alert_id = $1 for update`, locked, func(ctx context.Context) error {
				_, _, err := n.db.Outbox().Remind(ctx, new(time.Now().Add(over)))
				return err
			}, `select 'reminded' from notification where reason = 'SNOOZE_ENDED'`
		},
		"ends of quiet hours": func(t *testing.T) (*napping, string, uuid.UUID, func(context.Context) error, string) {
			t.Helper()
			n := newQuiet(t, rules.Warning)
			locked := n.alert
			n.raise(rules.Warning)
			return n.napping, `select from alert where alert_id = $1 for update`, locked, func(ctx context.Context) error {
				_, err := n.db.Outbox().EndQuiet(ctx, new(n.ends.Add(2*time.Minute)))
				return err
			}, `select 'due' from outbox where quiet_until is null`
		},
		"digests of silences": func(t *testing.T) (*napping, string, uuid.UUID, func(context.Context) error, string) {
			t.Helper()
			d := newDigested(t)
			locked := d.twoSilenced()
			return &napping{persist: d.persist, t: t, db: d.db}, `select from silence where silence_id = $1 for update`, locked, func(ctx context.Context) error {
				_, err := d.db.Outbox().DigestSilences(ctx, new(time.Now().Add(over)), func(string) bool { return true })
				return err
			}, `select 'digested' from digest where silence_id is not null`
		},
		"open breakers": func(t *testing.T) (*napping, string, uuid.UUID, func(context.Context) error, string) {
			t.Helper()
			n := newNapped(t, notify.Webhook{Name: "first"})
			locked := n.webhook
			w, err := n.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
				Name: "second", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 10,
			})
			if err != nil {
				t.Fatal(err)
			}
			n.webhook = w.ID
			n.write(t, n.failed(1))
			n.troubled()
			return n, `select from webhook_state where webhook_id = $1 for update`, locked, func(ctx context.Context) error {
				_, err := n.db.Outbox().NotifyOpenBreakers(ctx, 10*time.Minute)
				return err
			}, `select 'notified' from webhook_incident`
		},
		"alerts that are too old": func(t *testing.T) (*napping, string, uuid.UUID, func(context.Context) error, string) {
			t.Helper()
			e := newEscalating(t)
			e.write(t, e.routed())
			e.exec(t, `update rule set resolution = '{"afterSeconds": 60}'`)
			e.exec(t, `update alert set fired_at = now() - interval '2 minutes'`)
			return e.napping, `select from alert where alert_id = $1 for update`, e.alert, func(ctx context.Context) error {
				_, err := e.db.Resolution().ResolveAged(ctx, &resolution.Rule{ID: e.rule, TenantID: tenant}, 10)
				return err
			}, `select 'resolved' from alert where state = 'RESOLVED'`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, lock, locked, work, done := begin(t)
			tx, err := pgtest.Conn(t, n.url).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tag, err := tx.Exec(t.Context(), lock, locked); err != nil || tag.RowsAffected() != 1 {
				t.Fatal(tag, err)
			}
			limit, waits := 4*time.Second, strings.HasPrefix(lock, "select from silence")
			if waits {
				limit = 9 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := work(ctx); ctx.Err() != nil || waits != (err != nil) || waits && !strings.Contains(err.Error(), locked.String()) {
				t.Errorf("it waits for its row %v, and the error is: %v", waits, err)
			}
			if got := column(t, n.conn, done); len(got) != 1 {
				t.Errorf("while one row is locked: %v", got)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := work(t.Context()); err != nil {
				t.Error(err)
			}
			if got := column(t, n.conn, done); len(slices.Compact(slices.Clone(got))) != 1 || len(got) != 2 {
				t.Errorf("when it is free: %v", got)
			}
		})
	}
}

// TestTheHundredAndFirstOpenBreakerIsAnnouncedWhileTheOthersAreLocked has somebody lock the states of all webhooks that are
// not responding, except the last one.
func TestTheHundredAndFirstOpenBreakerIsAnnouncedWhileTheOthersAreLocked(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver"})
	n.exec(t, `insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second)
		select gen_random_uuid(), tenant_id, 'receiver ' || i, 'generic', '', 'localhost', false, true, 1000, 10, 0 from generate_series(1, 100) i cross join (select tenant_id from webhook limit 1) w`)
	n.exec(t, `insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
		select gen_random_uuid(), n.tenant_id, n.alert_id, n.rule_id, w.webhook_id, n.reason
		from (select * from notification limit 1) n, webhook w where w.name like 'receiver %'`)
	n.exec(t, `insert into outbox (notification_id, webhook_id, ready_at)
		select notification_id, webhook_id, now() from notification join webhook w using (webhook_id) where w.name like 'receiver %'`)
	n.troubled()
	last := one[uuid.UUID](t, n.conn, `select webhook_id from outbox order by webhook_id desc limit 1`)
	tx, err := pgtest.Conn(t, n.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(t.Context(), `select from webhook_state where webhook_id <> $1 for update`, last); err != nil || tag.RowsAffected() < 100 {
		t.Fatal(tag, err)
	}
	atOnce, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := n.db.Outbox().NotifyOpenBreakers(atOnce, 10*time.Minute); err != nil {
		t.Error(err)
	}
	if got := column(t, n.conn, `select webhook_id::text from webhook_incident`); !slices.Equal(got, []string{last.String()}) {
		t.Errorf("operators know of %v, want %s", got, last)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.db.Outbox().NotifyOpenBreakers(t.Context(), 10*time.Minute); err != nil {
		t.Error(err)
	}
	if got := one[int](t, n.conn, `select count(*)::int from webhook_incident`); got != 101 {
		t.Errorf("operators know of %d webhooks", got)
	}
}

// TestAPassWaitsOnceForLockedRowsThatItCannotSkip has somebody lock what three of four alerts need beside their own rows.
func TestAPassWaitsOnceForLockedRowsThatItCannotSkip(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	for range 3 {
		e.write(t, e.routed())
	}
	tx, err := pgtest.Conn(t, e.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(t.Context(), `select from alert_escalation where alert_id <> $1 for update`, e.alert); err != nil || tag.RowsAffected() != 3 {
		t.Fatal(tag, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	if _, err := e.db.Outbox().Escalate(ctx, e.minutesOn(6)); ctx.Err() != nil || err == nil {
		t.Errorf("the error is: %v", err)
	}
	if got := column(t, e.conn, `select alert_id::text from notification where reason = 'ESCALATED'`); !slices.Equal(got, []string{e.alert.String()}) {
		t.Errorf("escalated are %v, want %s", got, e.alert)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestACommitThatWaitsForALockedSilenceSaysSo has somebody keep the silence locked that decides about the messages of a commit. The
// commit does not use up the time of its pass, which would make the next ones smaller.
func TestACommitThatWaitsForALockedSilenceSaysSo(t *testing.T) {
	t.Parallel()
	d := newDigested(t)
	d.silence(time.Hour, nil)
	tx, err := pgtest.Conn(t, d.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(t.Context(), `select from silence for update`); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	batch := d.few(2)
	if _, err := d.store.Commit(ctx, batch); err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("the error is: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := d.store.Commit(t.Context(), batch); err != nil || done.Suppressed != 2 {
		t.Errorf("when it is free: %+v, %v", done, err)
	}
}

// TestACommitThatWaitsForALockedCheckpointSaysSo has somebody keep the checkpoint locked of a partition that has nothing new.
func TestACommitThatWaitsForALockedCheckpointSaysSo(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	tx, err := pgtest.Conn(t, p.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := p.page()
	batch.Instances, batch.Notifications = nil, nil
	if tag, err := tx.Exec(t.Context(), `select from checkpoint where partition = $1 for update`, batch.Partition); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := p.store.Commit(ctx, batch); err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "locked a row") {
		t.Errorf("the error is: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := p.store.Commit(t.Context(), batch)
	if err != nil || done.Revision != batch.Revision+1 {
		t.Errorf("when it is free: %+v, %v", done, err)
	}
	if _, err := p.store.Commit(t.Context(), batch); !isStale(err) {
		t.Errorf("from a former revision: %v", err)
	}
	if got := one[string](t, p.conn, `select revision || ' ' || cursor from checkpoint where partition = $1`, batch.Partition); got != fmt.Sprint(done.Revision, " ", batch.Cursor) {
		t.Errorf("the checkpoint is %s", got)
	}
}
