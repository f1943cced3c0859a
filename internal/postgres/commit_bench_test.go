package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/rules"
)

// pageOf is the number of alerts that a commit of the benchmark writes.
const pageOf = 1000

// persist is a store with one rule and one webhook, and tables in the same database that have only
// the columns, without keys.
type persist struct {
	url     string
	store   *postgres.Evaluation
	conn    *pgx.Conn
	rule    uuid.UUID
	webhook uuid.UUID
	at      cursor.Position
	// revision is the checkpoint's revision.
	revision int64
}

func newPersist(tb testing.TB) *persist {
	tb.Helper()
	url := pgtest.URL(tb)
	box, err := seal.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		tb.Fatal(err)
	}
	db, err := postgres.Open(tb.Context(), url+"&pool_max_conns=1", box)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	p := &persist{
		url: url, store: db.Evaluation(time.Minute), conn: pgtest.Conn(tb, url), rule: uuid.New(), webhook: uuid.New(),
		at: cursor.Position{StartTimeNS: time.Now().UnixNano()},
	}
	p.exec(tb, `
		insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second)
		values ($1, 'default', 'hook', 'generic', '', 'localhost', false, true, 1000, 10, 0)`, p.webhook)
	p.exec(tb, `
		insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
		                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
		values ($1, 'default', 'rule', true, 'PER_EXCHANGE', 'CRITICAL', '{}', '{}', '', '', '[]', 1, 3600, 0, 0)`, p.rule)
	p.exec(tb, `insert into rule_webhook (rule_id, webhook_id, position) values ($1, $2, 0)`, p.rule, p.webhook)
	p.exec(tb, `insert into rule_state (rule_id, armed_since_ns) values ($1, 1)`, p.rule)
	p.exec(tb, `insert into tenant_partition (tenant_id, partition) values ('default', 0)`)
	p.exec(tb, `update checkpoint set cursor = $1, owner = 'replica', token = 1, lease_until = now() + interval '1 h' where partition = 0`, p.at.String())
	p.exec(tb, `create table plain_alert as select * from alert with no data`)
	p.exec(tb, `create table plain_notification as select * from notification with no data`)
	p.exec(tb, `create table plain_outbox as select * from outbox with no data`)
	return p
}

func (p *persist) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := p.conn.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatal(err)
	}
}

// page returns the batch that a page of failed exchanges leads to.
func (p *persist) page() evaluator.Batch { return p.failed(pageOf) }

// failed returns the batch that n failed exchanges lead to.
func (p *persist) failed(n int) evaluator.Batch {
	to := p.at
	batch := p.batch()
	for range n {
		to.StartTimeNS += 1_000_000
		to.ExecutionID = fmt.Sprintf("%016X-%08d", to.StartTimeNS*2654435761, to.StartTimeNS%100_000_000)
		end := to.StartTimeNS + 42_000_000
		a := alerts.Instance{
			ID: uuid.Must(uuid.NewV7()), TenantID: "default", RuleID: p.rule, RuleVersion: 1, RuleName: "rule",
			Severity: rules.Critical, State: alerts.Firing,
			Title: "orders failed on route-17", Message: "connect to db-7.internal:5432: connection refused after 3 attempts (42 ms)",
			Exchange: rules.Exchange{
				TenantID: "default", StartTimeNS: to.StartTimeNS, ExecutionID: to.ExecutionID, Environment: "production",
				Application: "orders", Route: "route-17", Status: rules.Failed, EndTimeNS: &end, DurationNS: 42_000_000,
				ErrorType: "java.net.ConnectException", ErrorMessage: "connect to db-7.internal:5432: connection refused after 3 attempts",
				CorrelationID: to.ExecutionID, Attributes: map[string]string{"customer": "42", "region": "eu-west-1"},
			},
		}
		batch.Instances = append(batch.Instances, a)
		batch.Notifications = append(batch.Notifications, notify.Notification{
			ID: uuid.Must(uuid.NewV7()), TenantID: "default", AlertID: a.ID, RuleID: p.rule, WebhookID: p.webhook,
			Reason: notify.ReasonFired, Status: notify.Pending,
		})
	}
	batch.Cursor = &to
	p.at = to
	return batch
}

// batch returns an otherwise empty batch at the current state of the checkpoint.
func (p *persist) batch() evaluator.Batch {
	return evaluator.Batch{Partition: 0, Token: 1, Revision: p.revision, RulesRevision: 1, LeaseFor: 30 * time.Second, Cursor: &p.at}
}

// write commits a batch.
func (p *persist) write(tb testing.TB, batch evaluator.Batch) evaluator.Committed {
	tb.Helper()
	done, err := p.store.Commit(context.Background(), batch)
	if err != nil {
		tb.Fatal(err)
	}
	p.revision = done.Revision
	return done
}

// silence stores n silences in force that match no alert of a page.
func (p *persist) silence(tb testing.TB, n int) {
	tb.Helper()
	p.exec(tb, `
		insert into silence (silence_id, tenant_id, name, match, starts_at, ends_at)
		select gen_random_uuid(), 'default', n::text, '{"scope": {"applications": ["billing"]}}', now() - interval '1 h', now() + interval '1 h'
		from generate_series(1, $1) n`, n)
}

func (p *persist) commit(tb testing.TB, batch evaluator.Batch) {
	tb.Helper()
	if done := p.write(tb, batch); len(done.Inserted) != pageOf || done.Notifications[p.webhook] != pageOf {
		tb.Fatalf("Commit = %d alerts, %v notifications", len(done.Inserted), done.Notifications)
	}
}

// encoded is what is stored with an alert of its exchange.
type encoded struct {
	exchange  []byte
	signature string
}

func encode(tb testing.TB, batch evaluator.Batch) []encoded {
	tb.Helper()
	list := make([]encoded, len(batch.Instances))
	for i := range list {
		e := &batch.Instances[i].Exchange
		text, err := json.Marshal(e)
		if err != nil {
			tb.Fatal(err)
		}
		list[i] = encoded{text, alerts.Signature(e)}
	}
	return list
}

// copied writes the same rows into tables without keys.
func (p *persist) copied(tb testing.TB, batch evaluator.Batch, encoded []encoded) {
	tb.Helper()
	ctx := context.Background()
	tx, err := p.conn.Begin(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	now := time.Now()
	one := func(table string, columns []string, row func(int) ([]any, error)) {
		if n, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(pageOf, row)); err != nil || n != pageOf {
			tb.Fatal(n, err)
		}
	}
	one("plain_alert", []string{
		"alert_id", "tenant_id", "rule_id", "rule_version", "severity", "state", "title", "message", "execution_id", "start_time_ns",
		"application", "route", "exchange", "signature", "late", "late_by_ns", "fired_at", "change", "acknowledged_by", "resolved_by", "health",
	}, func(i int) ([]any, error) {
		a := &batch.Instances[i]
		return []any{
			a.ID, a.TenantID, a.RuleID, a.RuleVersion, string(a.Severity), "FIRING", a.Title, a.Message, a.Exchange.ExecutionID, a.Exchange.StartTimeNS,
			a.Exchange.Application, a.Exchange.Route, encoded[i].exchange, encoded[i].signature, a.Late, int64(0), now, int64(i), "", "", false,
		}, nil
	})
	one("plain_notification", []string{"notification_id", "tenant_id", "alert_id", "rule_id", "webhook_id", "reason", "created_at", "generation"},
		func(i int) ([]any, error) {
			n := &batch.Notifications[i]
			return []any{n.ID, n.TenantID, n.AlertID, n.RuleID, n.WebhookID, string(n.Reason), now, int32(0)}, nil
		})
	one("plain_outbox", []string{"notification_id", "webhook_id", "due_at", "attempts", "counted", "digest", "generation", "begun_before", "alone"},
		func(i int) ([]any, error) {
			n := &batch.Notifications[i]
			return []any{n.ID, n.WebhookID, now, int32(0), int32(0), false, int32(0), int32(0), false}, nil
		})
	if err := tx.Commit(ctx); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkCommit commits pages of 1,000 alerts with their notifications, alternating with COPY of
// the same rows into tables without keys. of-copy is the rate of the commits relative to that of
// COPY, of-copy-cpu the same for the CPU time of Postgres; the rest is microseconds per alert.
func BenchmarkCommit(b *testing.B) {
	p := newPersist(b)
	p.commit(b, p.page())
	var own, other int
	if err := p.conn.QueryRow(b.Context(), `
		select pg_backend_pid(), (select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')`).Scan(&own, &other); err != nil {
		b.Fatal(err)
	}
	p.exec(b, `checkpoint`)
	var commits, copies usage
	var ratios []float64
	for b.Loop() {
		batch := p.page()
		took := commits.measure(b, other, func() { p.commit(b, batch) })
		list := encode(b, batch)
		floor := copies.measure(b, own, func() { p.copied(b, batch, list) })
		ratios = append(ratios, float64(floor)/float64(took))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-copy")
	b.ReportMetric(float64(copies.backend)/float64(commits.backend), "of-copy-cpu")
	n := float64(b.N * pageOf * 1000)
	b.ReportMetric(float64(commits.backend)/n, "backend-us")
	b.ReportMetric(float64(commits.client)/n, "client-us")
	b.ReportMetric(float64(copies.backend)/n, "copy-backend-us")
	b.ReportMetric(float64(copies.client)/n, "copy-client-us")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCommitUnderSilences commits ten alerts while 20 silences are in force that match none of
// them, alternating with commits while there are none. with-over-without compares the times of the
// commits, cpu-with-over-without the CPU times of Postgres.
func BenchmarkCommitUnderSilences(b *testing.B) {
	const few, many = 10, 20
	worlds, backends := [2]*persist{newPersist(b), newPersist(b)}, [2]int{}
	worlds[1].silence(b, many)
	for i, p := range worlds {
		p.write(b, p.failed(few))
		if err := p.conn.QueryRow(b.Context(), `
			select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`).Scan(&backends[i]); err != nil {
			b.Fatal(err)
		}
	}
	var used [2]usage
	var ratios []float64
	for b.Loop() {
		var took [2]time.Duration
		for i, p := range worlds {
			batch := p.failed(few)
			took[i] = used[i].measure(b, backends[i], func() {
				if done := p.write(b, batch); done.Notifications[p.webhook] != few {
					b.Fatalf("Commit = %v notifications", done.Notifications)
				}
			})
		}
		ratios = append(ratios, float64(took[1])/float64(took[0]))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "with-over-without")
	b.ReportMetric(float64(used[1].backend)/float64(used[0].backend), "cpu-with-over-without")
	b.ReportMetric(float64(used[0].wall.Microseconds())/float64(b.N), "without-us")
	b.ReportMetric(0, "ns/op")
}

// usage sums up the CPU time of a backend and this process.
type usage struct{ wall, backend, client time.Duration }

func (u *usage) measure(b *testing.B, pid int, f func()) time.Duration {
	b.Helper()
	backend, client, began := computed(b, pid), self(b), time.Now()
	f()
	took := time.Since(began)
	u.wall += took
	u.backend += computed(b, pid) - backend
	u.client += self(b) - client
	return took
}

// computed returns the CPU time of a process.
func computed(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

// self returns the CPU time of this process.
func self(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
