package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/app"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/retention"
	"tocsin/rules"
)

// deletions counts what a deleter reports.
type deletions struct{ alerts, contents, failures atomic.Int64 }

func (b *deletions) RetentionDeleted(alerts, contents int) {
	b.alerts.Add(int64(alerts))
	b.contents.Add(int64(contents))
}
func (b *deletions) RetentionFailed() { b.failures.Add(1) }

// deleter returns a deleter with a retention of 30 and 10 days.
func (w *world) deleter(b *deletions) *retention.Deleter {
	w.t.Helper()
	return w.deleterOf(w.db, b)
}

// deleterOf is deleter with connections of its own.
func (w *world) deleterOf(db *postgres.DB, b *deletions) *retention.Deleter {
	w.t.Helper()
	s, err := retention.New(retention.Options{
		Store: db.Retention(), Observer: b, Logger: slog.New(slog.DiscardHandler), Clock: time.Now,
		Keep: retention.Keep{Alerts: 30 * 24 * time.Hour, Contents: 10 * 24 * time.Hour},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) expire() retention.Result {
	w.t.Helper()
	result, err := w.deleter(&deletions{}).Pass(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// oldRule stores a rule that was armed long ago, and raises and delivers alerts about exchanges
// that failed forty days ago.
func (w *world) oldRule(ids ...string) rules.Rule {
	w.t.Helper()
	rule := w.rule(w.webhook(fmt.Sprint("ops ", len(w.column(`select name from webhook`)))))
	w.armed(rule, rule.ArmedSinceNS-50*24*time.Hour.Nanoseconds())
	w.fail(w.ch.Now(w.t)-40*24*time.Hour.Nanoseconds(), ids...)
	// On a busy machine a pass may have no time for all of it.
	w.until("the alerts are raised, and the rule has caught up", func() bool {
		w.tick()
		return len(w.column(`select alert_id::text from alert where rule_id = $1`, rule.ID)) == len(ids) &&
			len(w.column(`select rule_id::text from rule_backfill where rule_id = $1`, rule.ID)) == 0
	})
	w.deliver()
	return rule
}

// leave ends the world's connections to Postgres, so that its database can be copied.
func (w *world) leave() {
	w.t.Helper()
	w.db.Close()
	if err := w.conn.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// copied returns a copy of a world that was left: of its database, without exchanges, evaluation and delivery.
func (w *world) copied(tb testing.TB) *world {
	tb.Helper()
	c := &world{t: tb, pgURL: pgtest.Copy(tb, w.pgURL)}
	c.conn = pgtest.Conn(tb, c.pgURL)
	var err error
	if c.db, err = postgres.Open(tb.Context(), c.pgURL, w.box); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.db.Close)
	return c
}

// Ages of ended rows.
const (
	resolvedLongAgo = `update alert set state = 'RESOLVED', resolved_at = now() - interval '31 days'`
	settledLongAgo  = `update settlement set settled_at = now() - interval '11 days'`
	everything      = `select (select count(*) from alert) || ' ' || (select count(*) from notification) || ' ' || (select count(*) from attempt)
		|| ' ' || (select count(*) from settlement) || ' ' || (select count(*) from notification_body)`
)

// digested adds the message of an alert to a digest.
const digested = `delete from settlement;
	insert into notification (notification_id, tenant_id, webhook_id, reason) select gen_random_uuid(), tenant_id, webhook_id, 'DIGEST' from notification;
	insert into digest (notification_id, size) select notification_id, 1 from notification where reason = 'DIGEST';
	insert into digest_member (notification_id, digest_id) select n.notification_id, d.notification_id from notification n, digest d where n.reason <> 'DIGEST'`

// TestDeletedIsNeverRaisedAgain deletes alerts whose exchanges are still in ClickHouse, and tries
// everything that could raise them again.
func TestDeletedIsNeverRaisedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.oldRule("a", "b")
	w.wantColumn("alerts", alertIDs, "a", "b")
	w.exec(resolvedLongAgo)
	if got := w.expire(); got.Alerts != 2 {
		t.Fatalf("deleted %+v", got)
	}
	w.wantColumn("what is left", everything, "0 0 0 0 0")
	again := func(what string) {
		t.Helper()
		// A process that has just started remembers nothing, and reads everything in its reach.
		fresh := w.newEvaluator(evaluator.Options{})
		for range 2 {
			if result, err := w.tickWith(fresh); err != nil || result.Alerts > 0 || result.Failed > 0 {
				t.Errorf("%s: Tick = %+v, %v", what, result, err)
			}
		}
	}
	again("after retention")
	w.exec(`update rule set look_back_seconds = 604800, version = version + 1`)
	w.changed()
	again("with the longest look-back")
	w.exec(`update checkpoint set cursor = null`)
	w.armed(rule, rule.ArmedSinceNS-100*24*time.Hour.Nanoseconds())
	again("with the cursor of a first run, armed long before")
	w.fail(w.ch.Now(t), "c")
	if result := w.tick(); result.Alerts != 1 {
		t.Errorf("what is new is not alerted: %+v", result)
	}
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	reconciler := &reconcile.Reconciler{Source: source, Alerts: w.db.Reconciliation()}
	result, err := reconciler.Rule(t.Context(), tenant, rule.ID, 100*24*time.Hour)
	if err != nil || result.Missing > 0 || result.Unexpected > 0 || result.LateDropped > 0 {
		t.Errorf("reconciled: %+v, %v", result, err)
	}
}

// TestRetentionLeavesWhatIsOpen keeps what is still needed, however old it is.
func TestRetentionLeavesWhatIsOpen(t *testing.T) {
	t.Parallel()
	// Raised and delivered once for all cases, each of which gets a copy of it.
	old := newWorld(t)
	old.oldRule("a")
	old.exec(resolvedLongAgo)
	old.leave()
	for name, c := range map[string]struct {
		open string
		left int
	}{
		"nothing is open":             {`select`, 0},
		"resolved of late":            {`update alert set resolved_at = now() - interval '29 days'`, 1},
		"firing":                      {`update alert set state = 'FIRING'`, 1},
		"acknowledged":                {`update alert set state = 'ACKNOWLEDGED'`, 1},
		"a message is open":           {`with gone as (delete from settlement returning notification_id) insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from gone join notification using (notification_id)`, 1},
		"a digest of it is open":      {digested + `; insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from notification where reason = 'DIGEST'`, 1},
		"a digest of it is settled":   {digested + `; insert into settlement (notification_id, tenant_id, status, settled_at) select notification_id, tenant_id, 'DELIVERED', now() - interval '31 days' from notification where reason = 'DIGEST'`, 0},
		"the rule still fails":        {`insert into rule_failing (rule_id, alert_id) select rule_id, alert_id from alert`, 1},
		"the rule makes no progress":  {`update checkpoint set cursor = to_char(now() at time zone 'utc' - interval '69 days', 'YYYY-MM-DD"T"HH24:MI:SS') || '.000000000Z|'`, 1},
		"the rule has not run":        {`update checkpoint set cursor = null`, 1},
		"the cursor cannot be read":   {`update checkpoint set cursor = 'nonsense'`, 1},
		"the look-back reaches there": {`update checkpoint set cursor = to_char(now() at time zone 'utc' - interval '9 days 23 hours 30 minutes', 'YYYY-MM-DD"T"HH24:MI:SS') || '.000000000Z|'`, 1},
		"just behind the look-back":   {`update checkpoint set cursor = to_char(now() at time zone 'utc' - interval '9 days 22 hours 30 minutes', 'YYYY-MM-DD"T"HH24:MI:SS') || '.000000000Z|'`, 0},
		"the rule is deleted":         {`with gone as (delete from rule_state) update rule set deleted_at = now(), enabled = false`, 0},
		"the rule is switched off":    {`update rule set enabled = false`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := old.copied(t)
			for statement := range strings.SplitSeq(c.open, ";") {
				w.exec(statement)
			}
			w.expire()
			if got := w.column(alertIDs); len(got) != c.left {
				t.Errorf("left: %q, want %d", got, c.left)
			}
			if c.left == 0 {
				w.wantColumn("what is left", everything, "0 0 0 0 0")
			}
			w.wantColumn("deliveries", `select count(*)::text from notification n where n.alert_id is not null and not exists (select from alert a where a.alert_id = n.alert_id)`, "0")
		})
	}
}

func TestContentsOfMessagesAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no", http.StatusBadRequest) })
	w.raiseFor(hook, "a", "b")
	w.deliver()
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "later", http.StatusBadGateway) })
	w.raiseFor(hook, "c")
	w.deliver()
	w.exec(`update settlement set settled_at = now() - interval '11 days' where notification_id = (select min(notification_id::text)::uuid from settlement)`)
	w.exec(`update attempt set started_at = now() - interval '20 days'`)
	w.exec(`update settlement set started_at = now() - interval '20 days'`)
	if got := w.expire(); got.Contents != 1 || got.Alerts != 0 {
		t.Errorf("deleted %+v, want the contents of one message", got)
	}
	const kept = `select verdict || ' ' || status_code || ' ' || (response_head is not null and response <> '')::text from attempt_history order by 1`
	w.wantColumn("attempts", kept, "REFUSED 400 false", "REFUSED 400 true", "RETRY 502 true")
	w.wantColumn("bodies", `select count(*)::text from notification_body`, "3")
	if got := w.expire(); got != (retention.Result{}) {
		t.Errorf("deleted once more: %+v", got)
	}
	for _, id := range w.column(`select notification_id::text from notification`) {
		if _, err := w.db.Record(nil).Get(t.Context(), tenant, uuid.MustParse(id)); err != nil {
			t.Errorf("a notification without its contents cannot be read: %v", err)
		}
	}
}

// TestTwoReplicasDelete lets two replicas delete at once: each row is deleted once.
func TestTwoReplicasDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprint("e", i)
	}
	w.oldRule(ids...)
	w.exec(`with gone as (delete from outbox returning notification_id)
		insert into settlement (notification_id, tenant_id, status) select notification_id, 'default', 'FAILED' from gone`)
	w.exec(resolvedLongAgo)
	w.exec(settledLongAgo)
	var counted deletions
	ended := make(chan error, 2)
	for range 2 {
		s := w.deleter(&counted)
		go func() {
			for {
				result, err := s.Pass(t.Context())
				if err == nil && result == (retention.Result{}) {
					ended <- nil
					return
				}
				if err != nil && !errors.Is(err, retention.ErrBusy) {
					ended <- err
					return
				}
			}
		}()
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("alerts", alertIDs)
	if counted.alerts.Load() != 500 || counted.failures.Load() > 0 {
		t.Errorf("observed %d alerts and %d failures", counted.alerts.Load(), counted.failures.Load())
	}
}

// TestPoisonousAlertIsPassedOver has one alert that cannot be deleted for an unforeseen reason.
func TestPoisonousAlertIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oldRule("a", "b", "c", "d", "e")
	w.exec(resolvedLongAgo)
	w.exec(`create table other (alert_id uuid references alert)`)
	w.exec(`insert into other select alert_id from alert where execution_id = 'c'`)
	var counted deletions
	if _, err := w.deleter(&counted).Pass(t.Context()); err == nil || !strings.Contains(err.Error(), w.column(`select alert_id::text from other`)[0]) {
		t.Errorf("err = %v, want it to name the alert", err)
	}
	w.wantColumn("alerts", alertIDs, "c")
	if counted.failures.Load() != 1 || counted.alerts.Load() != 4 {
		t.Errorf("observed %d alerts and %d failures", counted.alerts.Load(), counted.failures.Load())
	}
}

// TestMessageRetriedDuringDeletionSurvives queues a message again while its alert is being deleted: one of the two
// comes first, and the other sees it.
func TestMessageRetriedDuringDeletionSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oldRule("a")
	w.exec(resolvedLongAgo)
	if _, err := w.conn.Exec(t.Context(), `begin`); err != nil {
		t.Fatal(err)
	}
	w.exec(`with gone as (delete from settlement returning notification_id)
		insert into outbox (notification_id, webhook_id)
		select n.notification_id, n.webhook_id from gone join notification n using (notification_id) for key share of n`)
	deleted := make(chan error, 1)
	go func() {
		_, err := w.deleter(&deletions{}).Pass(t.Context())
		deleted <- err
	}()
	other := pgtest.Conn(t, w.pgURL)
	w.until("the deletion waits", func() bool {
		var waits bool
		err := other.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	})
	w.exec(`commit`)
	if err := await(t, "the deletion has ended", deleted); err != nil {
		t.Log("the waiting deletion gave up:", err)
	}
	w.expire()
	w.wantColumn("alerts", alertIDs, "a")
	w.wantColumn("open", `select count(*)::text from outbox`, "1")
}

// TestKilledWhileDeleting kills a replica inside the deletion.
func TestKilledWhileDeleting(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"raising a watermark":  `create trigger pause before update on rule_state for each row when (old.swept_before_ns <> new.swept_before_ns) execute function pause()`,
		"deleting alerts":      `create trigger pause after delete on alert for each row execute function pause()`,
		"deleting settlements": `create trigger pause after delete on settlement for each row execute function pause()`,
		"deleting responses":   `create trigger pause after update on settlement for each row execute function pause()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.oldRule("a", "b", "c")
			w.exec(resolvedLongAgo)
			w.exec(settledLongAgo)
			m := w.mortal()
			deletes := w.deleterOf(m.db, &deletions{})
			goOn := m.killedInside(trigger, func(ctx context.Context) error {
				_, err := deletes.Pass(ctx)
				return err
			})
			w.wantColumn("after the kill", `select count(*)::text from alert`, "3")
			goOn()
			other := w.deleter(&deletions{})
			w.until("everything is deleted", func() bool {
				if _, err := other.Pass(t.Context()); err != nil {
					t.Log("until Postgres notices that the other one is gone:", err)
				}
				return len(w.column(alertIDs)) == 0
			})
			w.wantColumn("what is left", everything, "0 0 0 0 0")
			if got := w.receiver.received(); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Errorf("received %q", got)
			}
		})
	}
}

func TestRetentionIsChecked(t *testing.T) {
	t.Parallel()
	const d = 24 * time.Hour
	for _, c := range []struct {
		keep  retention.Keep
		valid bool
	}{
		{retention.Keep{Alerts: 90 * d, Contents: 30 * d}, true},
		{retention.Keep{Alerts: d, Contents: d}, true},
		{retention.Keep{Alerts: d - 1, Contents: d - 1}, false},
		{retention.Keep{Alerts: 3651 * d, Contents: d}, false},
		{retention.Keep{Alerts: 90 * d, Contents: 91 * d}, false},
		{retention.Keep{Alerts: 90 * d, Contents: time.Hour}, false},
	} {
		if err := c.keep.Validate(); (err == nil) != c.valid {
			t.Errorf("%+v: %v", c.keep, err)
		}
	}
}

// TestLookBackBelowRetention rejects a rule whose look-back is as long as the retention of alerts,
// when it is saved and when a replica starts.
func TestLookBackBelowRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve("TOCSIN_ROLES=api", "TOCSIN_RETENTION_ALERTS=2d", "TOCSIN_RETENTION_ATTEMPTS=1d")
	body := func(lookBack int) string {
		return fmt.Sprintf(`{"name":"r%d","fireMode":"PER_EXCHANGE","severity":"INFO","lookBackSeconds":%d}`, lookBack, lookBack)
	}
	if status, answer := post(t, p.address, "/api/v1/rules", body(2*86400)); status != http.StatusBadRequest ||
		!strings.Contains(answer, `"lookBackSeconds"`) || !strings.Contains(answer, "TOCSIN_RETENTION_ALERTS") {
		t.Errorf("%d: %s", status, answer)
	}
	if status, answer := post(t, p.address, "/api/v1/rules", body(2*86400-1)); status != http.StatusCreated {
		t.Errorf("%d: %s", status, answer)
	}
	_, err := app.New(t.Context(), app.Options{
		PostgresURL: w.pgURL, ClickHouseURL: w.ch.URL, EncryptionKey: key, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: app.AccessOptions{Mode: app.AccessOpen},
		Keep: retention.Keep{Alerts: 24 * time.Hour, Contents: 24 * time.Hour},
	})
	if err == nil || !strings.Contains(err.Error(), "looks back") || !strings.Contains(err.Error(), "TOCSIN_RETENTION_ALERTS") {
		t.Errorf("err = %v, want it to say what to do", err)
	}
}

// TestRetentionGoesByPostgresClock has a process delete whose clock is a century ahead or behind:
// nothing is deleted too early or kept too long.
func TestRetentionGoesByPostgresClock(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{-100 * 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		w := newWorld(t)
		w.oldRule("a", "b")
		w.exec(`update alert set state = 'RESOLVED', resolved_at = now() - case execution_id when 'a' then interval '31 days' else interval '29 days' end`)
		s := w.deleter(&deletions{})
		s.Clock = func() time.Time { return time.Now().Add(wrong) }
		if _, err := s.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantColumn("alerts", alertIDs, "b")
	}
}
