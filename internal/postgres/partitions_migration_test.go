package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
)

// before is a database with the schema before partitions.
type before struct {
	tb   testing.TB
	url  string
	conn *pgx.Conn
	at   time.Time
}

func newBefore(t *testing.T) *before {
	t.Helper()
	url := pgtest.Empty(t)
	pgtest.MigrateTo(t, url, 24)
	return &before{tb: t, url: url, conn: pgtest.Conn(t, url), at: time.Now().Add(-time.Second).Truncate(time.Microsecond).Add(123)}
}

func (b *before) exec(sql string, args ...any) {
	b.tb.Helper()
	if _, err := b.conn.Exec(context.Background(), sql, args...); err != nil {
		b.tb.Fatal(err)
	}
}

// behind returns the position of an exchange the given time before the present.
func (b *before) behind(by time.Duration) cursor.Position {
	return cursor.Position{StartTimeNS: b.at.Add(-by).UnixNano(), ExecutionID: "exchange-7|é"}
}

func (b *before) ns(by time.Duration) int64 { return b.at.Add(-by).UnixNano() }

// rule stores a rule with a look-back of an hour, with the given columns of its state.
func (b *before) rule(tenant, name, mode string, enabled bool, columns string, args ...any) uuid.UUID {
	b.tb.Helper()
	id := uuid.New()
	b.exec(`
		insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
		                  interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds, threshold, window_seconds)
		select $1, $2, $3, $4, $5, 'INFO', '{}', '{}', '', '', '[]', 1, 3600, 0, 0,
		       case when $5 = 'PER_EXCHANGE' then 0 else 5 end, case when $5 = 'PER_EXCHANGE' then 0 else 60 end`, id, tenant, name, enabled, mode)
	b.exec(`insert into rule_state (rule_id, armed_since_ns, next_run_at) values ($1, $2, now())`, id, b.ns(3*time.Hour))
	if columns != "" {
		b.exec(`update rule_state set `+columns+` where rule_id = $1`, append([]any{id}, args...)...)
	}
	return id
}

// TestMigrationCarriesProgressOver migrates rules with different progress.
func TestMigrationCarriesProgressOver(t *testing.T) {
	b := newBefore(t)
	const perExchange, counting = "PER_EXCHANGE", "COUNT_IN_WINDOW"
	const second, hour = time.Second, time.Hour
	alone := b.rule("acme", "alone", perExchange, true, `cursor = $2`, b.behind(second).String())
	cohort := uuid.New()
	b.exec(`insert into cohort (cohort_id, tenant_id, interval_seconds, look_back_seconds, cursor, next_run_at, last_run_at, members, owed_from_ns)
		values ($1, 'acme', 1, 3600, $2, now(), now(), 1, $3)`, cohort, b.behind(2*second).String(), b.ns(30*time.Minute))
	member := b.rule("acme", "looks back with others", perExchange, true, `cohort_id = $2, next_run_at = null`, cohort)
	failing := b.rule("acme", "fails", perExchange, true, `cursor = $2, problem = 'refused', claim_token = 7, claimed_by = 'a', claimed_until = now()`,
		b.behind(2*hour).String())
	b.exec(`insert into rule_failing (rule_id, alert_id) values ($1, gen_random_uuid())`, failing)
	never := b.rule("acme", "never ran", perExchange, true, `armed_since_ns = $2`, b.ns(10*second))
	disabled := b.rule("acme", "disabled", perExchange, false, `cursor = $2, next_run_at = null`, b.behind(5*hour).String())
	window := b.rule("acme", "counts", counting, true, `cursor = $2`, b.behind(9*hour).String())
	broken := b.rule("acme", "broken", perExchange, true, `cursor = 'nonsense'`)
	slow := b.rule("acme", "far behind", perExchange, true, `cursor = $2, owed_from_ns = $3`, b.behind(hour).String(), b.ns(4*hour))
	// Its look-back is from an outage: what it has to evaluate begins long before what its look-back
	// reaches from its cursor.
	ahead := b.rule("initech", "other tenant", perExchange, true, `cursor = $2, owed_from_ns = $3`, b.behind(5*second).String(), b.ns(6*hour))
	b.exec(`update rule set look_back_seconds = 7200 where rule_id = $1`, slow)

	if err := postgres.Migrate(t.Context(), b.url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	store := openAt(t, b.url).Evaluation(time.Minute)
	holding, err := store.Hold(t.Context(), evaluator.HoldRequest{Replica: "a", LeaseFor: time.Minute})
	if err != nil || len(holding.Checkpoints) != 8 {
		t.Fatalf("Hold = %+v, %v", holding, err)
	}
	of := func(tenant string) evaluator.Checkpoint {
		return holding.Checkpoints[xxhash.Sum64String(tenant)%8]
	}
	acme, initech := of("acme"), of("initech")
	if acme.Partition == initech.Partition {
		t.Fatal("both tenants are in one partition; choose other names")
	}
	wantCheckpoint(t, acme, b.behind(2*second), &backlog.Mark{FromNS: b.ns(30 * time.Minute), CursorNS: b.ns(2 * second)})
	wantCheckpoint(t, initech, b.behind(5*second), &backlog.Mark{FromNS: b.ns(6 * hour), CursorNS: b.ns(5 * hour)})
	for _, c := range holding.Checkpoints {
		if c.Partition != acme.Partition && c.Partition != initech.Partition && (c.Cursor != nil || c.Backfill != nil) {
			t.Errorf("an empty partition has progress: %+v", c)
		}
	}

	set, err := store.Rules(t.Context(), acme.Partition, 0)
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[uuid.UUID]error{}
	for _, r := range set.Rules {
		loaded[r.Rule.ID] = r.Err
	}
	for _, id := range []uuid.UUID{alone, member, failing, never, window, slow, broken} {
		if err, found := loaded[id]; !found || err != nil {
			t.Errorf("rule %s is loaded: %t, %v", id, found, err)
		}
	}
	if len(loaded) != 7 {
		t.Errorf("%d rules are loaded, want 7", len(loaded))
	}
	if _, found := loaded[disabled]; found {
		t.Error("a disabled rule is loaded")
	}
	want := map[uuid.UUID]ruleset.Backfill{
		failing: {RuleID: failing, At: startOf(b.ns(3*hour + 90*second)), Failing: true},
		never:   {RuleID: never, At: startOf(b.ns(hour + 100*second))},
		slow:    {RuleID: slow, At: startOf(b.ns(4 * hour))},
	}
	for _, got := range set.Backfills {
		if got.RuleID == broken {
			if got.Err == nil || !strings.Contains(got.Err.Error(), "disable and enable the rule") {
				t.Errorf("the broken position is read: %+v", got)
			}
			continue
		}
		if w, expected := want[got.RuleID]; !expected || got.At != w.At || got.Failing != w.Failing || got.Until != nil {
			t.Errorf("backfill %+v, want %+v", got, w)
		}
		delete(want, got.RuleID)
	}
	if len(want) != 0 {
		t.Errorf("no backfill of %v", want)
	}
	if set, err := store.Rules(t.Context(), initech.Partition, 0); err != nil || len(set.Rules) != 1 || set.Rules[0].Rule.ID != ahead || len(set.Backfills) != 0 {
		t.Errorf("Rules of initech = %+v, %v", set, err)
	}
	if least := one[int64](t, b.conn, `select least from schema_compatibility`); least < 25 {
		t.Errorf("the schema works with programs that know %d", least)
	}
}

// TestMigrationHashesAsClickHouseDoes assigns tenants of many lengths.
func TestMigrationHashesAsClickHouseDoes(t *testing.T) {
	b := newBefore(t)
	tenants := []string{"", "a", "default", "é", "日本語", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("y", 33), strings.Repeat("z", 200)}
	for range 300 {
		var name strings.Builder
		for range rand.IntN(80) {
			name.WriteRune(rune(' ' + rand.IntN(700)))
		}
		tenants = append(tenants, fmt.Sprint(name.String(), rand.Int64()))
	}
	for _, tenant := range tenants {
		b.rule(tenant, "rule", "PER_EXCHANGE", false, "")
	}
	if err := postgres.Migrate(t.Context(), b.url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range tenants {
		got := one[int](t, b.conn, `select partition from tenant_partition where tenant_id = $1`, tenant)
		if want := int(xxhash.Sum64String(tenant) % 8); got != want {
			t.Errorf("%q is in partition %d, want %d", tenant, got, want)
		}
	}
}

func startOf(ns int64) cursor.Position { return cursor.Position{StartTimeNS: ns} }

func wantCheckpoint(t *testing.T, c evaluator.Checkpoint, at cursor.Position, mark *backlog.Mark) {
	t.Helper()
	switch {
	case c.Err != nil || c.Cursor == nil || *c.Cursor != at:
		t.Errorf("cursor of partition %d = %v (%v), want %v", c.Partition, c.Cursor, c.Err, at)
	case (c.Backfill == nil) != (mark == nil) || mark != nil && *c.Backfill != *mark:
		t.Errorf("backfill of partition %d = %+v, want %+v", c.Partition, c.Backfill, mark)
	}
}

// openAt opens a database.
func openAt(tb testing.TB, url string) *postgres.DB {
	tb.Helper()
	db, err := postgres.Open(context.Background(), url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}
