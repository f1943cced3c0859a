package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

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
	fails := func(replica string) (int, error) {
		return m.store.SourceFailed(context.Background(), replica, "connection refused")
	}
	recovers := func(replica string) (int, error) { return m.store.SourceRecovered(context.Background(), replica) }
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

// TestWhoAnnouncedTheSourceEndsThat has another replica that reads the source meanwhile.
func TestWhoAnnouncedTheSourceEndsThat(t *testing.T) {
	m := newMover(t, "a")
	m.operatorsOf("a", 1)
	m.beat("x", "y")
	failed := func(replica string, want bool) {
		t.Helper()
		if got := m.hold(replica).SourceFailed; got != want {
			t.Errorf("%s may end the announcement: %t, want %t", replica, got, want)
		}
	}
	m.hold("x")
	if n, err := m.store.SourceFailed(t.Context(), "x", "no"); err != nil || n != 1 {
		t.Fatalf("SourceFailed = %d, %v", n, err)
	}
	failed("x", true)
	failed("y", false)
	if n, err := m.store.SourceRecovered(t.Context(), "y"); err != nil || n != 0 {
		t.Errorf("another replica ended it: %d, %v", n, err)
	}
	m.exec(`update replica set beat_at = now() - interval '61 s' where replica_id = 'x'`)
	failed("y", true)
	if n, err := m.store.SourceRecovered(t.Context(), "y"); err != nil || n != 1 {
		t.Errorf("SourceRecovered of the dead one's = %d, %v", n, err)
	}
	failed("x", false)

	// The partition with the rules moves to another replica: the one that reported the failure
	// reads no more.
	if n, err := m.store.SourceFailed(t.Context(), "y", "no"); err != nil || n != 1 {
		t.Fatalf("SourceFailed once more = %d, %v", n, err)
	}
	m.beat("x", "y")
	m.exec(`update checkpoint set owner = 'y'`)
	failed("x", false)
	m.exec(`update checkpoint set owner = 'x' where partition = $1`, m.of("a"))
	failed("x", true)
	if n, err := m.store.SourceRecovered(t.Context(), "x"); err != nil || n != 1 {
		t.Errorf("SourceRecovered of one that reads no more = %d, %v", n, err)
	}
}
