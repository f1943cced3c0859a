package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

// waiting are queued messages of some tenants, each with one webhook.
type waiting struct {
	tb   testing.TB
	url  string
	conn *pgx.Conn
}

// fill writes messages of a tenant with the given age, some of which are settled.
func (b *waiting) fill(tenant string, count, settled int, age time.Duration) {
	b.tb.Helper()
	for _, statement := range []string{
		// All messages are about one alert of one rule.
		`set session_replication_role = replica`,
		`insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
			interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
		values ('` + oneRule + `', @tenant, 'all', false, 'PER_EXCHANGE', 'INFO', '{}', '{}', '', '', '[]', 1, 0, 0, 0) on conflict do nothing`,
		`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
		values ('` + oneAlert + `', @tenant, '` + oneRule + `', 1, 'INFO', 'FIRING', '', '', 'a', 1, '', '', '{}') on conflict do nothing`,
		`insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second)
		select uuidv7(), @tenant, 'ops', 'generic', '', 'hooks.example', false, false, 1000, 10, 0
		where not exists (select from webhook where tenant_id = @tenant)`,
		`with made as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, generation, created_at)
			select uuidv7(-@age::interval), @tenant, '` + oneAlert + `', '` + oneRule + `', w.webhook_id, 'FIRED', nextval('claim_token'), now() - @age::interval
			from webhook w, generate_series(1, @count::int + @settled::int)
			where w.tenant_id = @tenant
			returning notification_id, webhook_id
		), numbered as (select m.*, row_number() over () as n from made m)
		insert into outbox (notification_id, webhook_id)
		select notification_id, webhook_id from numbered where n > @settled::int`,
		`select pg_stat_force_next_flush()`,
	} {
		args := pgx.NamedArgs{"tenant": tenant, "count": count, "settled": settled, "age": age}
		if _, err := b.conn.Exec(b.tb.Context(), statement, pgx.QueryExecModeExec, args); err != nil {
			b.tb.Fatal(err)
		}
	}
	b.seal()
}

const (
	oneAlert = "00000000-0000-0000-0000-0000000000a1"
	oneRule  = "00000000-0000-0000-0000-0000000000b1"
)

// box has a key that encrypts the secrets of these tests.
func box(tb testing.TB) *seal.Box {
	tb.Helper()
	made, err := seal.New("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// seal gives webhooks secrets that can be decrypted.
func (b *waiting) seal() {
	b.tb.Helper()
	rows, err := b.conn.Query(b.tb.Context(), `select webhook_id from webhook where secrets = ''`)
	if err != nil {
		b.tb.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		b.tb.Fatal(err)
	}
	for _, id := range ids {
		b.exec(`update webhook set secrets = $2 where webhook_id = $1`, id, box(b.tb).Seal([]byte(`{"url":"https://hooks.example"}`), "webhook/"+id.String()))
	}
}

// rowsRead returns how many rows of the outbox and of notifications were read, in any way, while f
// ran on connections of its own.
func (b *waiting) rowsRead(f func(db *postgres.DB)) int64 {
	b.tb.Helper()
	return b.counted(`
		select coalesce(sum(t.seq_tup_read), 0)::bigint
		     + (select coalesce(sum(i.idx_tup_read), 0)::bigint from pg_stat_user_indexes i where i.relname in ('outbox', 'notification'))
		from pg_stat_user_tables t where t.relname in ('outbox', 'notification')`, f)
}

// counted returns by how much f increases a number in Postgres's statistics.
func (b *waiting) counted(read string, f func(db *postgres.DB)) int64 {
	b.tb.Helper()
	// What this connection has read before is flushed to the statistics now.
	one[string](b.tb, b.conn, `select pg_stat_force_next_flush()::text`)
	before := one[int64](b.tb, b.conn, read)
	db, err := postgres.Open(b.tb.Context(), b.url, box(b.tb))
	if err != nil {
		b.tb.Fatal(err)
	}
	f(db)
	db.Close()
	// The statistics of a connection are available when it has ended. The test itself has one with
	// an open transaction.
	for open := true; open; {
		open = one[bool](b.tb, b.conn, `select exists (
			select from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
			  and state is distinct from 'idle in transaction')`)
	}
	return one[int64](b.tb, b.conn, read) - before
}

// soonAfter says whether what was so old when it was stored, and is older by the time that this test has taken, is about
// as old as it has to be.
func soonAfter(age, stored time.Duration) bool {
	return age >= stored && age < stored+20*time.Minute
}

// TestWaitingIsCountedUpToABound has many queued messages of one tenant, fewer of another, and few
// of a third, and as many settled ones.
func TestWaitingIsCountedUpToABound(t *testing.T) {
	const much, less, little = 60_000, 30_000, 3
	url := pgtest.URL(t)
	b := &waiting{t, url, pgtest.Conn(t, url)}
	b.fill("less", less, less, 4*time.Hour)
	b.fill("little", 1, 0, 3*time.Hour)
	b.fill("little", little-1, 0, time.Hour)
	b.fill("much", 1, much, 2*time.Hour)
	b.fill("much", much-1, 0, time.Hour)
	for tenant, want := range map[string]struct {
		depth     int64
		estimated bool
		oldest    time.Duration
	}{
		"much":   {much, true, 2 * time.Hour},
		"less":   {less, true, 4 * time.Hour},
		"little": {little, false, 3 * time.Hour},
		"nobody": {0, false, 0},
	} {
		var status api.SystemStatus
		read := b.rowsRead(func(db *postgres.DB) {
			var err error
			if status, err = db.Record(nil).Status(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		})
		checkWaiting(t, tenant, status, want.depth, want.estimated)
		if got := status.OldestAge; (got == nil) != (want.oldest == 0) || (got != nil && !soonAfter(*got, want.oldest)) {
			t.Errorf("%s: the oldest is %v old, want %v", tenant, got, want.oldest)
		}
		checkRead(t, tenant, read)
	}
	var all postgres.Gauges
	checkRead(t, "all tenants", b.rowsRead(func(db *postgres.DB) {
		var err error
		if all, err = db.Reconciliation().Gauges(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}))
	if all.OutboxDepth != much+less+little || !soonAfter(all.OutboxOldest, 4*time.Hour) {
		t.Errorf("of all tenants %d wait, the oldest for %v", all.OutboxDepth, all.OutboxOldest)
	}
}

func checkWaiting(t *testing.T, tenant string, got api.SystemStatus, depth int64, estimated bool) {
	t.Helper()
	// The sample consists of the same pages each time.
	if off := got.OutboxDepth - depth; got.OutboxEstimated != estimated || (!estimated && off != 0) || max(off, -off) > depth/4 {
		t.Errorf("%s: %d messages wait, estimated %v; want %d, %v", tenant, got.OutboxDepth, got.OutboxEstimated, depth, estimated)
	}
}

// checkRead checks that no more is read than twice the limit and a sample.
func checkRead(t *testing.T, what string, rows int64) {
	t.Helper()
	if rows > 2*10_001+8_000 {
		t.Errorf("%s: %d rows were read to count what waits", what, rows)
	}
}

// TestWaitingAfterStatisticsWereLost counts while Postgres does not know how many rows there are.
func TestWaitingAfterStatisticsWereLost(t *testing.T) {
	url := pgtest.URL(t)
	b := &waiting{t, url, pgtest.Conn(t, url)}
	b.fill("much", 20_000, 0, time.Hour)
	if _, err := b.conn.Exec(t.Context(), `select pg_stat_reset()`); err != nil {
		t.Fatal(err)
	}
	b.rowsRead(func(db *postgres.DB) {
		status, err := db.Record(nil).Status(t.Context(), "much")
		if err != nil || status.OutboxDepth != 10_001 || !status.OutboxEstimated {
			t.Errorf("Status = %+v, %v; want more than was counted", status, err)
		}
	})
}
