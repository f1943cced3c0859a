package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/evaluator"
	"tocsin/internal/pgtest"
)

// one returns what a query selects.
func one[T any](tb testing.TB, conn *pgx.Conn, sql string, args ...any) T {
	tb.Helper()
	rows, err := conn.Query(context.Background(), sql, args...)
	if err != nil {
		tb.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		tb.Fatal(err)
	}
	return value
}

// refused reports whether an error is a violated foreign key.
func refused(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == "23503"
}

// overlapping begins a statement on a connection of its own while a transaction
// is open, commits that as soon as the statement waits for it, and returns how
// the statement ended.
func (p *persist) overlapping(tb testing.TB, tx pgx.Tx, statement string) error {
	tb.Helper()
	other := pgtest.Conn(tb, p.url)
	ended := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), statement)
		ended <- err
	}()
	pid := other.PgConn().PID()
	for waits := false; !waits; {
		select {
		case err := <-ended:
			tb.Fatalf("%s did not wait for the transaction: %v", statement, err)
		default:
			waits = one[bool](tb, p.conn, `select cardinality(pg_blocking_pids($1)) > 0`, int32(pid))
		}
	}
	if err := tx.Commit(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return <-ended
}

func (p *persist) begin(tb testing.TB, statements ...string) pgx.Tx {
	tb.Helper()
	tx, err := pgtest.Conn(tb, p.url).Begin(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	for _, sql := range statements {
		if _, err := tx.Exec(context.Background(), sql); err != nil {
			tb.Fatal(err)
		}
	}
	return tx
}

// TestNothingDangles checks that every reference refers to an existing row, and that all that
// belongs to an alert is deleted with it.
func TestNothingDangles(t *testing.T) {
	p := newPersist(t)
	p.commit(t, p.page())
	if _, err := p.conn.Exec(t.Context(), `delete from rule`); !refused(err) {
		t.Errorf("a rule with alerts was deleted: %v", err)
	}
	p.exec(t, `delete from rule_webhook`)
	if _, err := p.conn.Exec(t.Context(), `delete from webhook`); !refused(err) {
		t.Errorf("a webhook with notifications was deleted: %v", err)
	}
	p.exec(t, `update alert set execution_id = null, health = true, webhook_id = $1, state = 'RESOLVED' where alert_id = (select alert_id from alert limit 1)`, p.webhook)
	tx := p.begin(t, `delete from notification`)
	if _, err := tx.Exec(t.Context(), `delete from webhook`); !refused(err) {
		t.Errorf("a webhook that an alert is about was deleted: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.exec(t, `delete from alert where alert_id in (select alert_id from alert limit 10)`)
	for _, table := range []string{"alert", "notification", "outbox"} {
		if left := one[int](t, p.conn, `select count(*)::int from `+table); left != pageOf-10 {
			t.Errorf("%d rows of %s are left, want %d", left, table, pageOf-10)
		}
	}
	p.exec(t, `delete from alert`)
	if left := one[int](t, p.conn, `select (select count(*) from notification)::int + (select count(*) from outbox)::int`); left != 0 {
		t.Errorf("%d notifications and outbox rows outlive their alerts", left)
	}
	p.exec(t, `delete from rule`)
	p.exec(t, `delete from webhook`)
}

// TestCommitWithoutWebhookWritesNothing deletes the webhook of a claimed rule directly in the
// database.
func TestCommitWithoutWebhookWritesNothing(t *testing.T) {
	p := newPersist(t)
	p.exec(t, `delete from rule_webhook`)
	p.exec(t, `delete from webhook`)
	was := one[string](t, p.conn, `select cursor from checkpoint where partition = 0`)
	if _, err := p.store.Commit(t.Context(), p.page()); !errors.Is(err, evaluator.ErrRefused) || !strings.Contains(err.Error(), "a webhook of the rule does not exist") {
		t.Errorf("Commit = %v", err)
	}
	if got := one[string](t, p.conn, `select cursor from checkpoint where partition = 0`); got != was {
		t.Errorf("the cursor moved from %s to %s", was, got)
	}
	if left := one[int](t, p.conn, `select (select count(*) from alert)::int + (select count(*) from notification)::int`); left != 0 {
		t.Errorf("%d rows were written", left)
	}
}

// TestEachMessageOfAnAlertIsThereOnce writes messages that differ from a first one in one respect, or in none. An alert may
// have several messages about other messages.
func TestEachMessageOfAnAlertIsThereOnce(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	p.exec(t, `
		insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		select gen_random_uuid(), tenant_id, rule_id, 1, 'INFO', 'FIRING', '', '', 'a', 1, '', '', '{}' from rule`)
	write := func(reason string, generation int, about string) error {
		_, err := p.conn.Exec(t.Context(), `
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, generation, about)
			select gen_random_uuid(), a.tenant_id, a.alert_id, a.rule_id, w.webhook_id, $1, $2, nullif($3, '')::uuid from alert a cross join webhook w`,
			reason, generation, about)
		return err
	}
	one, other := uuid.NewString(), uuid.NewString()
	for i, c := range []struct {
		reason     string
		generation int
		about      string
		refused    bool
	}{
		{"FIRED", 0, "", false},
		{"FIRED", 0, "", true},
		{"FIRED", 1, "", false},
		{"REMINDER", 0, "", false},
		{"REMINDER", 0, "", true},
		{"UNDELIVERED", 0, one, false},
		{"UNDELIVERED", 0, other, false},
		{"UNDELIVERED", 0, one, false},
	} {
		err := write(c.reason, c.generation, c.about)
		said, _ := errors.AsType[*pgconn.PgError](err)
		if once := said != nil && said.ConstraintName == "notification_once"; once != c.refused || !c.refused && err != nil {
			t.Errorf("%d, %s %d about %q: %v", i+1, c.reason, c.generation, c.about, err)
		}
	}
}

// TestDeletionsWaitForCommits deletes what an open transaction is about to refer to.
func TestDeletionsWaitForCommits(t *testing.T) {
	const advance = `select from rule_state for key share`
	const raise = `
		insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		select gen_random_uuid(), tenant_id, rule_id, 1, 'INFO', 'FIRING', '', '', 'a', 1, '', '', '{}' from rule`
	const owe = `
		insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
		select gen_random_uuid(), a.tenant_id, a.alert_id, a.rule_id, w.webhook_id, 'REMINDER' from alert a cross join webhook w`
	const hold = `select from webhook for key share`
	t.Run("a rule", func(t *testing.T) {
		p := newPersist(t)
		if err := p.overlapping(t, p.begin(t, advance, raise), `delete from rule`); !refused(err) {
			t.Errorf("the rule of an alert was deleted: %v", err)
		}
	})
	t.Run("a rule that cannot be evaluated", func(t *testing.T) {
		p := newPersist(t)
		tx := p.begin(t, `insert into rule_failing (rule_id, alert_id) select rule_id, gen_random_uuid() from rule`, raise)
		if err := p.overlapping(t, tx, `delete from rule`); !refused(err) {
			t.Errorf("the rule of an alert was deleted: %v", err)
		}
	})
	t.Run("a webhook", func(t *testing.T) {
		p := newPersist(t)
		p.exec(t, `delete from rule_webhook`)
		p.exec(t, raise)
		if err := p.overlapping(t, p.begin(t, hold, owe), `delete from webhook`); !refused(err) {
			t.Errorf("the webhook of a notification was deleted: %v", err)
		}
	})
	t.Run("an alert", func(t *testing.T) {
		p := newPersist(t)
		p.exec(t, raise)
		tx := p.begin(t, `update alert set notified_at = now()`, owe)
		if err := p.overlapping(t, tx, `delete from alert`); err != nil {
			t.Fatal(err)
		}
		if left := one[int](t, p.conn, `select count(*)::int from notification`); left != 0 {
			t.Errorf("%d notifications outlive their alert", left)
		}
	})
}

// TestWatermarkHolds commits a page that begins before the rule's watermark.
func TestWatermarkHolds(t *testing.T) {
	p := newPersist(t)
	page := p.page()
	p.exec(t, `update rule_state set swept_before_ns = $1`, page.Instances[300].Exchange.StartTimeNS)
	done := p.write(t, page)
	if len(done.Inserted) != pageOf-300 || done.Notifications[p.webhook] != pageOf-300 || done.Inserted[0] != page.Instances[300].ID {
		t.Errorf("Commit = %d alerts, %v notifications", len(done.Inserted), done.Notifications)
	}
}

// TestKnownAlertsAreLeftOut commits a page some alerts of which exist already.
func TestKnownAlertsAreLeftOut(t *testing.T) {
	p := newPersist(t)
	first := p.page()
	p.commit(t, first)
	again := p.page()
	for i := range 400 {
		again.Instances[2*i].Exchange = first.Instances[i].Exchange
	}
	if done := p.write(t, again); len(done.Inserted) != pageOf-400 || done.Notifications[p.webhook] != pageOf-400 {
		t.Errorf("Commit = %d alerts, %v notifications", len(done.Inserted), done.Notifications)
	}
	if dangling := one[int](t, p.conn, `
		select count(*)::int from alert a full join notification n using (alert_id) where a.alert_id is null or n.alert_id is null`); dangling != 0 {
		t.Errorf("%d alerts or notifications are alone", dangling)
	}
}
