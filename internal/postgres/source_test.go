package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
)

// operatorsOf adds webhooks of a tenant that receive notifications about Tocsin itself.
func (f *fleet) operatorsOf(tenant string, n int) {
	f.tb.Helper()
	for i := range n {
		f.exec(`
			insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, operators, timeout_ms, max_concurrent, rate_per_second)
			values ($1, $2, $3, 'generic', '', 'localhost', false, true, true, 1000, 10, 0)`, uuid.New(), tenant, fmt.Sprint("hook ", i))
	}
}

// TestSourceIsAnnouncedOnceByAll has many replicas that detect it at the same time.
func TestSourceIsAnnouncedOnceByAll(t *testing.T) {
	m := newMover(t, "a", "b", "c")
	m.operatorsOf("a", 2)
	m.operatorsOf("b", 1)
	if _, err := m.db.Rules().SetEnabled(t.Context(), "c", m.rules["c"], false); err != nil {
		t.Fatal(err)
	}
	// A rule that fails by itself has an alert, too.
	c := m.checkpoint(m.of("a"))
	_, err := m.store.Commit(t.Context(), evaluator.Batch{
		Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor,
		Cursor: &cursor.Position{}, Health: map[uuid.UUID]ruleset.Health{m.rules["a"]: {Problem: "no", Failed: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := func(call func(replica string) (int, error)) (sum int) {
		t.Helper()
		var mu sync.Mutex
		var calls sync.WaitGroup
		for n := range 5 {
			calls.Go(func() {
				written, err := call(fmt.Sprint("r", n))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				sum += written
			})
		}
		calls.Wait()
		return sum
	}
	partitions := []int{m.of("a")}
	if b := m.of("b"); b != partitions[0] {
		partitions = append(partitions, b)
	}
	forEach := func(call func(partition int) (int, error)) (sum int, err error) {
		for _, partition := range partitions {
			n, err := call(partition)
			if err != nil {
				return sum, err
			}
			sum += n
		}
		return sum, nil
	}
	fails := func(replica string) (int, error) {
		return forEach(func(partition int) (int, error) {
			return m.store.SourceFailed(context.Background(), replica, partition, "connection refused")
		})
	}
	recovers := func(string) (int, error) {
		return forEach(func(partition int) (int, error) { return m.store.SourceRecovered(context.Background(), partition) })
	}
	count := func(what string) int {
		t.Helper()
		return one[int](t, m.conn, `select count(*)::int from `+what)
	}
	if n := all(recovers); n != 0 {
		t.Errorf("a source that never failed recovers with %d notifications", n)
	}
	for round := 1; round <= 2; round++ {
		if n := all(fails); n != 3 || count(`notification where reason = 'SOURCE_FAILING'`) != 3*round {
			t.Errorf("%d notifications written, %d there", n, count(`notification where reason = 'SOURCE_FAILING'`))
		}
		if n := count(`alert where source = 'source' and health and state = 'FIRING' and message like '%connection refused'`); n != 2 {
			t.Errorf("%d alerts of tenants with enabled rules, want 2", n)
		}
		// A user resolves one of them; its end is notified all the same.
		m.exec(`update alert set state = 'RESOLVED', resolved_at = now() where source is not null and tenant_id = 'a'`)
		if n := all(recovers); n != 3 || count(`notification where reason = 'SOURCE_RECOVERED'`) != 3*round {
			t.Errorf("%d notifications of the end, %d there", n, count(`notification where reason = 'SOURCE_RECOVERED'`))
		}
		if n := count(`alert where source is not null and state <> 'RESOLVED'`); n != 0 {
			t.Errorf("%d alerts are left", n)
		}
	}
	if n := count(`alert where source is null and state = 'FIRING'`); n != 1 {
		t.Errorf("%d alerts of the failing rule", n)
	}
}

// TestSourceOfPartitions has partitions fail and recover one by one, and a tenant that moves meanwhile.
func TestSourceOfPartitions(t *testing.T) {
	m := newMover(t, "a", "b")
	m.operatorsOf("a", 1)
	m.operatorsOf("b", 1)
	isolate := func(tenant string) {
		t.Helper()
		if _, err := m.db.Partitions().Isolate(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	isolate("a")
	failed := func(what, of string, want int) {
		t.Helper()
		if n, err := m.store.SourceFailed(t.Context(), "x", m.of(of), "no"); err != nil || n != want {
			t.Errorf("%s: SourceFailed = %d, %v; want %d", what, n, err, want)
		}
	}
	recovered := func(what, of string, want int) {
		t.Helper()
		if n, err := m.store.SourceRecovered(t.Context(), m.of(of)); err != nil || n != want {
			t.Errorf("%s: SourceRecovered = %d, %v; want %d", what, n, err, want)
		}
	}
	announced := func(what string, of ...string) {
		t.Helper()
		var want []int
		for _, tenant := range of {
			want = append(want, m.of(tenant))
		}
		slices.Sort(want)
		got := m.hold("y").SourceFailed
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: announced for the partitions %v, want %v", what, got, want)
		}
	}
	open := func(what string, want ...string) {
		t.Helper()
		rows, err := m.conn.Query(t.Context(), `select tenant_id from alert where source is not null and state <> 'RESOLVED' order by 1`)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: alerts of %v, %v; want %v", what, got, err, want)
		}
	}
	announced("nothing fails")
	failed("the first one fails", "a", 1)
	announced("the first one fails", "a")
	open("the first one fails", "a")
	failed("both fail", "b", 1)
	announced("both fail", "a", "b")
	recovered("the first one recovers", "a", 1)
	open("the first one recovers", "b")
	announced("the first one recovers", "b")

	// The tenant that is still notified of its failure moves to a partition of its own.
	isolate("b")
	announced("after the move", "b")
	failed("after the move", "b", 0)
	recovered("after the move", "b", 1)
	open("in the end")

	// A replica of a previous version has announced a failure to all tenants.
	m.exec(`insert into announcement (subject, replica) values ('source', 'old')`)
	m.exec(`insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health, source, start_time_ns, application, route, exchange, fired_at)
		select gen_random_uuid(), r.tenant_id, r.rule_id, r.version, 'WARNING', 'FIRING', 'title', '', true, 'source', 0, '', '', '{}', a.since
		from rule r, announcement a`)
	if got, all := len(m.hold("y").SourceFailed), one[int](t, m.conn, `select count(*)::int from checkpoint`); got != all {
		t.Errorf("announced for %d of %d partitions by a previous version", got, all)
	}
	failed("announced by a previous version", "a", 0)
	recovered("announced by a previous version, without messages", "b", 0)
	open("announced by a previous version")
	announced("announced by a previous version")
}
