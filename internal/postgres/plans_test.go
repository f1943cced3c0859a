package postgres_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// TestBatchesReadTheirRowsAlone makes Postgres assume that the outbox is empty, as it does after a
// vacuum between two storms, while many messages are queued. What works on a few of them then reads
// only these.
func TestBatchesReadTheirRowsAlone(t *testing.T) {
	const many, batch = 20_000, 100
	url := pgtest.URL(t)
	b := &waiting{t, url, pgtest.Conn(t, url)}
	b.fill("much", many, 0, 2*time.Hour)
	b.exec(`delete from outbox where notification_id <> (select notification_id from outbox order by ctid desc limit 1)`)
	b.exec(`vacuum analyze outbox`)
	if rows := one[float32](t, b.conn, `select reltuples from pg_class where relname = 'outbox'`); rows > 1 {
		t.Fatalf("Postgres believes that there are %v rows", rows)
	}
	b.fill("much", many, 0, time.Hour)
	b.exec(`update outbox set claim_token = 7, claimed_by = 'replica', attempts = 1, begun_at = now() where notification_id in (
		select notification_id from outbox order by notification_id offset 1000 limit $1)`, batch)
	b.exec(`update webhook set enabled = true`)
	b.exec(`set session_replication_role = origin`)
	b.exec(`insert into webhook_state (webhook_id) select webhook_id from webhook on conflict do nothing`)
	hook := one[uuid.UUID](t, b.conn, `select webhook_id from webhook`)
	for _, step := range b.steps(hook, batch) {
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

// TestSendingManyAgainReadsTheirRowsAlone sends the messages of many open alerts again, batch after
// batch, into an outbox that was empty when Postgres last looked. The plan of a batch must not compare
// its messages with all that are there: that took half a minute, with the alerts locked.
func TestSendingManyAgainReadsTheirRowsAlone(t *testing.T) {
	const many, batch = 6_000, 500
	url := pgtest.URL(t)
	b := &waiting{t, url, pgtest.Conn(t, url)}
	b.fill("much", 1, many, time.Hour)
	b.exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		select notification_id, tenant_id, rule_id, 1, 'INFO', 'FIRING', '', '', notification_id::text, 1, '', '', '{}' from notification`)
	b.exec(`update notification set alert_id = notification_id, generation = 0`)
	b.exec(`insert into settlement (notification_id, tenant_id, status, settled_at) select notification_id, tenant_id, 'DELIVERED', now() - interval '1 minute' from notification
		where notification_id not in (select notification_id from outbox)`)
	b.exec(`delete from outbox`)
	b.exec(`alter table outbox set (autovacuum_enabled = false)`) // Postgres must not look again meanwhile
	b.exec(`analyze outbox, notification, alert, settlement`)
	b.exec(`update webhook set enabled = true`)
	b.exec(`set session_replication_role = origin`)
	b.exec(`insert into webhook_state (webhook_id, restarted_at) select webhook_id, now() from webhook
		on conflict (webhook_id) do update set restarted_at = excluded.restarted_at`)
	db, err := postgres.Open(t.Context(), url, box(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	resent, err := db.Outbox().Resend(t.Context(), one[uuid.UUID](t, b.conn, `select webhook_id from webhook`))
	if err != nil || resent != many {
		t.Fatalf("%d of %d sent again, %v", resent, many, err)
	}
	compared := b.compared(statement(t, "retry.sql", "RetryInOrder"), one[[]uuid.UUID](t, b.conn, fmt.Sprintf(`select array_agg(notification_id) from (select notification_id from outbox limit %d) o`, batch)))
	if compared > 20*batch {
		t.Errorf("to put %d messages in order, %d rows were compared in vain", batch, compared)
	}
}

// TestSilencesReadNoOtherAlerts reads the silences in force for a few alerts of a tenant that has many.
// Once each silence read the tenant's whole index of alerts, and a commit took as long as all that.
func TestSilencesReadNoOtherAlerts(t *testing.T) {
	const few, many = 10, 20
	p := newPersist(t)
	p.silence(t, many)
	last := p.history(t, few)
	ids := make([]string, few)
	for i := range ids {
		ids[i] = last.Instances[i].ID.String()
	}
	if read := p.blocks(t, statement(t, "silences.sql", "SilencesLive", "s.*"), "{"+strings.Join(ids, ",")+"}"); read > 5*(few+many) {
		t.Errorf("to read %d silences for %d alerts, %d blocks were read", many, few, read)
	}
}

// TestTheEndOfQuietHoursReadsItsMessagesAlone looks for messages whose quiet hours have ended, where
// many are held until later. Once it read all messages that were ever written.
func TestTheEndOfQuietHoursReadsItsMessagesAlone(t *testing.T) {
	const few = 10
	p := newPersist(t)
	p.history(t, few)
	p.exec(t, `analyze`)
	p.exec(t, `update outbox set quiet_until = now() + interval '1 h', ready_at = null, due_at = null`)
	p.exec(t, `update outbox set quiet_until = now() - interval '1 min'
		where notification_id in (select notification_id from notification order by created_at desc limit $1)`, few)
	if read := p.blocks(t, statement(t, "quiet.sql", "QuietOver"), p.webhook.String(), time.Now().Format(time.RFC3339Nano), uuid.Nil.String(), "1000"); read > 20*few {
		t.Errorf("to find %d messages, %d blocks were read", few, read)
	}
}

// history commits 5,000 alerts, and then a few more; it returns the last batch.
func (p *persist) history(t *testing.T, few int) evaluator.Batch {
	t.Helper()
	for range 5 {
		p.commit(t, p.page())
	}
	last := p.failed(few)
	p.write(t, last)
	return last
}

// blocks executes a statement by the plan that a connection keeps for it, whatever its arguments, and
// returns how many blocks it read.
func (p *persist) blocks(t *testing.T, statement string, args ...string) int64 {
	t.Helper()
	p.exec(t, `set plan_cache_mode = force_generic_plan`)
	p.exec(t, "prepare kept as "+statement)
	execute := "execute kept('" + strings.Join(args, "', '") + "')"
	var plans []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(one[string](t, p.conn, "explain (analyze, buffers, format json) "+execute)), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// statement returns a statement of the folder query, with its parameters numbered in their order, and
// columns in place of those that sqlc embeds.
func statement(t *testing.T, file, name string, embedded ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("query", file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "-- name: "+name+" ")
	if !found {
		t.Fatalf("%s has no statement %s", file, name)
	}
	rest, _, _ = strings.Cut(rest, "-- name: ")
	_, rest, _ = strings.Cut(rest, "\n")
	rest = regexp.MustCompile(`sqlc\.embed\(\w+\)`).ReplaceAllString(rest, strings.Join(embedded, ", "))
	var names []string
	return regexp.MustCompile(`@\w+`).ReplaceAllStringFunc(rest, func(name string) string {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		return fmt.Sprint("$", slices.Index(names, name)+1)
	})
}

// compared executes a statement, and returns how many rows its plan read and then left out.
func (b *waiting) compared(statement string, ids []uuid.UUID) (rows int64) {
	b.tb.Helper()
	type node struct {
		Loops    int64  `json:"Actual Loops"`
		ByJoin   int64  `json:"Rows Removed by Join Filter"`
		ByFilter int64  `json:"Rows Removed by Filter"`
		Plans    []node `json:"Plans"`
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(one[string](b.tb, b.conn, "explain (analyze, format json) "+statement, ids)), &plans); err != nil {
		b.tb.Fatal(err)
	}
	var add func(n *node)
	add = func(n *node) {
		rows += n.Loops * (n.ByJoin + n.ByFilter)
		for i := range n.Plans {
			add(&n.Plans[i])
		}
	}
	add(&plans[0].Plan)
	return rows
}

func renderNothing(*notify.Delivery) (notify.Body, string, error) {
	return notify.Body{Content: []byte("{}")}, "", nil
}

// step is one operation on a batch.
type step struct {
	name string
	do   func(*postgres.Outbox) error
}

// steps are all operations, on batch messages whose claim is 7.
func (b *waiting) steps(hook uuid.UUID, batch int) []step {
	b.tb.Helper()
	ctx := b.tb.Context()
	rows, err := b.conn.Query(ctx, `select notification_id from outbox where claim_token = 7`)
	if err != nil {
		b.tb.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		b.tb.Fatal(err)
	}
	held, settlements := make([]dispatch.Held, batch), make([]dispatch.Settlement, batch)
	for i, id := range ids {
		held[i] = dispatch.Held{NotificationID: id, Token: 7}
		settlements[i] = dispatch.Settlement{
			NotificationID: id, WebhookID: hook, WebhookVersion: 1, Token: 7, Attempt: 1, TenantID: "much", Replica: "replica",
			Outcome: notify.Outcome{Verdict: notify.VerdictDelivered}, Decision: notify.Decision{Status: notify.Delivered},
		}
	}
	return []step{
		{"claim", func(o *postgres.Outbox) error {
			_, err := o.Claim(ctx, dispatch.ClaimRequest{
				Replica: "another", Lease: time.Minute, Render: renderNothing, Deal: func([]dispatch.Due) []dispatch.Slots { return []dispatch.Slots{{WebhookID: hook, Slots: batch}} },
			})
			return err
		}},
		{"renew", func(o *postgres.Outbox) error { _, err := o.Renew(ctx, held, time.Minute); return err }},
		{"settle", func(o *postgres.Outbox) error { _, err := o.Settle(ctx, settlements); return err }},
	}
}

// TestBatchesPassOverWhatIsSettled makes Postgres assume that the outbox is empty, while its
// indexes contain the entries of many messages that were settled during a transaction that is held
// open. What works on a few messages then reads only a few pages of the indexes.
func TestBatchesPassOverWhatIsSettled(t *testing.T) {
	const settled, batch = 100_000, 20
	q := newQueue(t)
	q.settle(settled)
	q.exec(`vacuum analyze outbox`)
	if rows := one[float32](t, q.conn, `select reltuples from pg_class where relname = 'outbox'`); rows != 0 {
		t.Fatalf("Postgres believes that there are %v rows", rows)
	}
	q.fill("much", batch, 0, 0)
	q.exec(`set session_replication_role = origin`)
	q.exec(`update outbox set claim_token = 7, claimed_by = 'replica', attempts = 1, begun_at = now()`)
	pages := one[int64](t, q.conn, `select min(pg_relation_size(indexrelid)) / 8192 from pg_stat_user_indexes where indexrelname in ('outbox_pkey', 'outbox_ready')`)
	for _, step := range q.steps(q.hook, batch) {
		if step.name == "claim" {
			continue // it looks at the queue, the first time at all of it
		}
		// A batch is retried often enough for a generic plan to be made, which is then used.
		const times = 7
		read := q.counted(`
			select sum(idx_blks_hit + idx_blks_read)::bigint from pg_statio_user_indexes
			where indexrelname in ('outbox_pkey', 'outbox_ready')`, func(db *postgres.DB) {
			for range times {
				if err := step.do(db.Outbox()); err != nil {
					t.Fatal(err)
				}
			}
		})
		// Finding each message in the index takes three pages.
		if read > times*batch*6 {
			t.Errorf("%s: to work %d times on %d messages, %d pages of indexes were read, which have %d", step.name, times, batch, read, pages)
		}
	}
}

// exec runs a statement.
func (b *waiting) exec(statement string, args ...any) {
	b.tb.Helper()
	if _, err := b.conn.Exec(b.tb.Context(), statement, args...); err != nil {
		b.tb.Fatal(err)
	}
}

// TestWhatBelongsToARowIsFoundByAnIndex looks up what belongs to an alert or a message, as the
// inbox, retention and the triggers that delete it do. A partial index cannot be used unless the
// query implies its condition.
func TestWhatBelongsToARowIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t, pgtest.URL(t))
	if _, err := conn.Exec(t.Context(), `set enable_seqscan = off`); err != nil {
		t.Fatal(err)
	}
	for table, column := range map[string]string{
		"notification": "alert_id", "alert_assignment": "alert_id", "alert_snooze": "alert_id", "slack_message": "alert_id", "alert_read": "alert_id",
		"outbox": "notification_id", "settlement": "notification_id", "attempt": "notification_id", "notification_body": "notification_id",
		"digest_member": "digest_id", "digest_listing": "digest_id", "replay": "rule_id", "rule_backfill": "rule_id",
	} {
		rows, err := conn.Query(t.Context(), `explain select from `+table+` where `+column+` = $1`, uuid.New())
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") {
			t.Errorf("%s by %s:\n%s", table, column, text)
		}
	}
}

// TestADigestReadsItsWindowAlone has a silence that has suppressed many messages in earlier windows and few in the
// last one. The pass reads these under a lock on the silence, for which commits wait.
func TestADigestReadsItsWindowAlone(t *testing.T) {
	const few, many = 10, 20_000
	d := newDigested(t)
	id := d.silence(time.Hour, nil)
	d.write(t, d.few(few))
	d.exec(t, `
		with n as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, generation)
			select gen_random_uuid(), n.tenant_id, n.alert_id, n.rule_id, n.webhook_id, 'REMINDER', g
			from (select * from notification limit 1) n, generate_series(1, $1::int) g
			returning notification_id, tenant_id)
		insert into settlement (notification_id, tenant_id, status, settled_at, trail, silence_id)
		select notification_id, tenant_id, 'SUPPRESSED', now() - interval '1 day', false, $2 from n`, many, id)
	d.exec(t, `analyze settlement, notification`)
	since, until := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	text := statement(t, "silence_digest.sql", "SilenceDigestWebhooks")
	var plans []struct {
		Plan struct {
			Blocks int64 `json:"Shared Hit Blocks"`
			Read   int64 `json:"Shared Read Blocks"`
		}
	}
	explained := one[string](t, d.conn, "explain (analyze, buffers, format json) "+text, id, since, until)
	if err := json.Unmarshal([]byte(explained), &plans); err != nil {
		t.Fatal(err)
	}
	if read := plans[0].Plan.Blocks + plans[0].Plan.Read; read > 20*few {
		t.Errorf("to find %d messages that a silence suppressed lately, of %d, %d blocks were read", few, few+many, read)
	}
}
