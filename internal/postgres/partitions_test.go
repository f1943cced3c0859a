package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
)

// mover is a fleet whose tenants move.
type mover struct {
	*fleet
	rules map[string]uuid.UUID
}

func newMover(t *testing.T, tenants ...string) *mover {
	t.Helper()
	m := &mover{newFleet(t), map[string]uuid.UUID{}}
	for _, tenant := range tenants {
		rule, err := m.db.Rules().Create(t.Context(), tenant, definition("rule"))
		if err != nil {
			t.Fatal(err)
		}
		m.rules[tenant] = rule.ID
	}
	m.exec(`delete from rule_backfill`)
	return m
}

// setProgress sets a partition's cursor and, if fromNS is not 0, its backfill mark.
func (m *mover) setProgress(partition int, at, fromNS, cursorNS int64) {
	m.tb.Helper()
	m.exec(`update checkpoint set cursor = $2, backfill_from_ns = nullif($3::bigint, 0), backfill_cursor_ns = nullif($4::bigint, 0) where partition = $1`,
		partition, startOf(at).String(), fromNS, cursorNS)
}

// of returns the partition that evaluates a tenant.
func (m *mover) of(tenant string) int {
	m.tb.Helper()
	return one[int](m.tb, m.conn, `select partition from tenant_partition where tenant_id = $1`, tenant)
}

func (m *mover) checkpoint(partition int) evaluator.Checkpoint {
	m.tb.Helper()
	for _, c := range m.hold("mover").Checkpoints {
		if c.Partition == partition {
			return c
		}
	}
	m.tb.Fatalf("partition %d is not held", partition)
	return evaluator.Checkpoint{}
}

// reads checks that a partition evaluates exactly the rules of the given tenants.
func (m *mover) reads(partition int, tenants ...string) {
	m.tb.Helper()
	set, err := m.store.Rules(context.Background(), partition, 0)
	if err != nil {
		m.tb.Fatal(err)
	}
	var got []string
	for _, r := range set.Rules {
		got = append(got, r.Rule.TenantID)
	}
	slices.Sort(got)
	slices.Sort(tenants)
	if !slices.Equal(got, tenants) {
		m.tb.Errorf("partition %d evaluates %q, want %q", partition, got, tenants)
	}
}

func (m *mover) refused(err error, kind fault.Kind, part string) {
	m.tb.Helper()
	if fault.KindOf(err) != kind || !strings.Contains(err.Error(), part) {
		m.tb.Errorf("error %v, want a fault of kind %v that says %q", err, kind, part)
	}
}

const now0 = int64(1_795_244_520_000_000_000)

func minutesAgo(n int64) int64 { return now0 - n*int64(time.Minute) }

// A list of tenants says which ones are behind, and begins with them: one whose partition is behind,
// then one of which only a deferred rule is, then all others, and last one without enabled rules.
func TestTenantsAreListedFurthestBehindFirst(t *testing.T) {
	m := newMover(t, "slow", "deferred", "fresh", "idle")
	for _, tenant := range []string{"slow", "deferred", "fresh", "idle"} {
		if _, err := m.db.Partitions().Isolate(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UnixNano()
	for tenant, minutes := range map[string]int64{"slow": 30, "deferred": 0, "fresh": 0, "idle": 90} {
		m.setProgress(m.of(tenant), now-minutes*int64(time.Minute), 0, 0)
	}
	m.exec(`insert into rule_backfill (rule_id, position, failing) values ($1, $2, false)`, m.rules["deferred"], startOf(now-20*int64(time.Minute)).String())
	m.exec(`update rule set enabled = false where rule_id = $1`, m.rules["idle"])
	m.exec(`update checkpoint set owner = 'replica-1', token = 1, lease_until = now() + interval '1 hour' where partition = $1`, m.of("slow"))
	list, err := m.db.Partitions().Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		lag := "unknown"
		if p.Lag != nil {
			lag = p.Lag.Round(time.Minute).String()
		}
		got = append(got, fmt.Sprintf("%s %d %d %s %q", p.Tenant, p.Rules, p.Backfilling, lag, p.Owner))
		if p.Partition != m.of(p.Tenant) {
			t.Errorf("%s is in partition %d, not %d", p.Tenant, m.of(p.Tenant), p.Partition)
		}
	}
	want := []string{`slow 1 0 30m0s "replica-1"`, `deferred 1 1 20m0s ""`, `fresh 1 0 0s ""`, `idle 0 0 unknown ""`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Of two teams of a tenant, one has a rule that is deferred. A rule without an owner is as far behind as its partition, and
// those that are disabled or deleted do not count.
func TestTeamsAreListedFurthestBehindFirst(t *testing.T) {
	m := newMover(t, "acme", "other")
	for _, tenant := range []string{"acme", "other"} {
		if _, err := m.db.Partitions().Isolate(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UnixNano()
	m.setProgress(m.of("acme"), now-10*int64(time.Minute), 0, 0)
	m.setProgress(m.of("other"), now, 0, 0)
	for i, r := range []struct{ owner, change string }{
		{"orders", ""}, {"orders", ""}, {"billing", "position"}, {"gone", "enabled"}, {"gone", "deleted_at"},
	} {
		owned := definition(fmt.Sprintf("rule %d of %s", i, r.owner))
		owned.Owner = r.owner
		rule, err := m.db.Rules().Create(t.Context(), "acme", owned)
		if err != nil {
			t.Fatal(err)
		}
		m.exec(`delete from rule_backfill where rule_id = $1`, rule.ID)
		switch r.change {
		case "position":
			m.exec(`insert into rule_backfill (rule_id, position, failing) values ($1, $2, false)`, rule.ID, startOf(now-20*int64(time.Minute)).String())
		case "enabled":
			m.exec(`update rule set enabled = false where rule_id = $1`, rule.ID)
		case "deleted_at":
			m.exec(`update rule set deleted_at = now() where rule_id = $1`, rule.ID)
		}
	}
	list, err := m.db.Partitions().Teams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%s %q %d %d %s", p.Tenant, p.Team, p.Rules, p.Backfilling, p.Lag.Round(time.Minute)))
	}
	want := []string{`acme "billing" 1 1 20m0s`, `acme "" 1 0 10m0s`, `acme "orders" 2 0 10m0s`, `other "" 1 0 0s`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIsolatedTenantGoesOnAndComesBack(t *testing.T) {
	m := newMover(t, "acme", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p")
	former := m.of("acme")
	var others []string
	for tenant := range m.rules {
		if tenant != "acme" && m.of(tenant) == former {
			others = append(others, tenant)
		}
	}
	if len(others) == 0 {
		t.Fatal("nobody shares a partition with acme")
	}
	m.setProgress(former, minutesAgo(5), minutesAgo(90), minutesAgo(40))
	before := m.checkpoint(former)
	number, err := m.db.Partitions().Isolate(t.Context(), "acme")
	if err != nil || number < 8 || m.of("acme") != number {
		t.Fatalf("Isolate = %d, %v", number, err)
	}
	own, left := m.checkpoint(number), m.checkpoint(former)
	wantCheckpoint(t, own, startOf(minutesAgo(5)), &backlog.Mark{FromNS: minutesAgo(90), CursorNS: minutesAgo(40)})
	wantCheckpoint(t, left, startOf(minutesAgo(5)), &backlog.Mark{FromNS: minutesAgo(90), CursorNS: minutesAgo(40)})
	if own.Of != 0 || left.Of != 8 || left.Revision == before.Revision || left.RulesRevision == before.RulesRevision {
		t.Errorf("the partitions are %+v and %+v", own, left)
	}
	m.reads(number, "acme")
	m.reads(former, others...)
	// The former holder of the rule gets it as removed.
	if set, err := m.store.Rules(t.Context(), former, before.RulesRevision); err != nil || len(set.Rules) != 0 || !slices.Equal(set.Removed, []uuid.UUID{m.rules["acme"]}) {
		t.Errorf("the former partition reads %+v, %v", set, err)
	}
	_, err = m.db.Partitions().Isolate(t.Context(), "acme")
	m.refused(err, fault.Conflict, "already has the separate partition")
	_, err = m.db.Partitions().Isolate(t.Context(), "nobody")
	m.refused(err, fault.NotFound, "nobody has no rules")
	_, err = m.db.Partitions().Join(t.Context(), others[0])
	m.refused(err, fault.Conflict, "has no separate partition")

	// The tenant has fallen behind meanwhile; a commit of its last pass comes too late.
	m.setProgress(number, minutesAgo(60), 0, 0)
	m.setProgress(former, minutesAgo(1), 0, 0)
	late := m.checkpoint(number)
	if joined, err := m.db.Partitions().Join(t.Context(), "acme"); err != nil || joined != former {
		t.Fatalf("Join = %d, %v", joined, err)
	}
	lookBack := int64(time.Minute) + backlog.WaitNS(int64(time.Minute))
	wantCheckpoint(t, m.checkpoint(former), startOf(minutesAgo(1)), &backlog.Mark{FromNS: minutesAgo(60) - lookBack, CursorNS: minutesAgo(60)})
	m.reads(former, append(others, "acme")...)
	_, err = m.store.Commit(t.Context(), evaluator.Batch{
		Partition: number, Token: late.Token, Revision: late.Revision, RulesRevision: late.RulesRevision, LeaseFor: leaseFor,
	})
	if !isStale(err) {
		t.Errorf("a commit of a partition that has ended = %v", err)
	}
	_, err = m.db.Partitions().Join(t.Context(), "acme")
	m.refused(err, fault.Conflict, "has no separate partition")
}

// TestJoinMarksWhatIsLeft joins a partition that is ahead or behind, with and without marks.
func TestJoinMarksWhatIsLeft(t *testing.T) {
	t.Parallel()
	lookBack := int64(time.Minute) + backlog.WaitNS(int64(time.Minute))
	at := func(n int64) *string { return new(startOf(minutesAgo(n)).String()) }
	for name, c := range map[string]struct {
		giver, receiver         *string
		giverMark, receiverMark *backlog.Mark
		want                    *cursor.Position
		wantMark                *backlog.Mark
	}{
		"the giver is ahead":   {giver: at(1), receiver: at(9), want: new(startOf(minutesAgo(9)))},
		"the giver is behind":  {giver: at(9), receiver: at(1), want: new(startOf(minutesAgo(1))), wantMark: &backlog.Mark{FromNS: minutesAgo(9) - lookBack, CursorNS: minutesAgo(9)}},
		"the receiver is new":  {giver: at(9), want: new(startOf(minutesAgo(9)))},
		"the giver is new":     {receiver: at(9), want: new(startOf(minutesAgo(9)))},
		"both are new":         {},
		"the giver has a mark": {giver: at(1), receiver: at(9), giverMark: &backlog.Mark{FromNS: 7, CursorNS: 9}, want: new(startOf(minutesAgo(9))), wantMark: &backlog.Mark{FromNS: 7, CursorNS: 9}},
		"the receiver has a mark": {
			giver: at(9), receiver: at(1), receiverMark: &backlog.Mark{FromNS: minutesAgo(99), CursorNS: minutesAgo(5)},
			want: new(startOf(minutesAgo(1))), wantMark: &backlog.Mark{FromNS: minutesAgo(99), CursorNS: minutesAgo(9)},
		},
		"both have marks": {
			giver: at(1), receiver: at(9), giverMark: &backlog.Mark{FromNS: 7, CursorNS: 90}, receiverMark: &backlog.Mark{FromNS: 8, CursorNS: 80},
			want: new(startOf(minutesAgo(9))), wantMark: &backlog.Mark{FromNS: 7, CursorNS: 80},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMover(t, "acme")
			former := m.of("acme")
			number, err := m.db.Partitions().Isolate(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			for partition, progress := range map[int]struct {
				cursor *string
				mark   *backlog.Mark
			}{number: {c.giver, c.giverMark}, former: {c.receiver, c.receiverMark}} {
				var from, of *int64
				if progress.mark != nil {
					from, of = &progress.mark.FromNS, &progress.mark.CursorNS
				}
				m.exec(`update checkpoint set cursor = $2, backfill_from_ns = $3, backfill_cursor_ns = $4 where partition = $1`, partition, progress.cursor, from, of)
			}
			if _, err := m.db.Partitions().Join(t.Context(), "acme"); err != nil {
				t.Fatal(err)
			}
			got := m.checkpoint(former)
			if c.want == nil {
				if got.Cursor != nil || got.Backfill != nil {
					t.Errorf("the receiver is at %+v", got)
				}
				return
			}
			wantCheckpoint(t, got, *c.want, c.wantMark)
		})
	}
}

// TestNumberOfPartitionsChanges goes from 8 to 3 to 20, with partitions at different cursors.
func TestNumberOfPartitionsChanges(t *testing.T) {
	var tenants []string
	for n := range 40 {
		tenants = append(tenants, fmt.Sprint("tenant-", n))
	}
	m := newMover(t, tenants...)
	alone, err := m.db.Partitions().Isolate(t.Context(), "tenant-0")
	if err != nil {
		t.Fatal(err)
	}
	// The progress of a tenant: the cursor and the mark of its partition.
	type progress struct{ cursorNS, fromNS int64 }
	read := func() map[string]progress {
		t.Helper()
		list := map[string]progress{}
		for _, c := range m.hold("mover").Checkpoints {
			set, err := m.store.Rules(t.Context(), c.Partition, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range set.Rules {
				p := progress{cursorNS: c.Cursor.StartTimeNS, fromNS: c.Cursor.StartTimeNS}
				if c.Backfill != nil {
					p.fromNS = min(p.fromNS, c.Backfill.FromNS)
				}
				if _, twice := list[r.Rule.TenantID]; twice {
					t.Errorf("%s is evaluated twice", r.Rule.TenantID)
				}
				list[r.Rule.TenantID] = p
				if share := xxhash.Sum64String(r.Rule.TenantID); c.Of != 0 && share%uint64(c.Of) != uint64(c.Index) {
					t.Errorf("%s is in share %d of %d", r.Rule.TenantID, c.Index, c.Of)
				}
			}
		}
		return list
	}
	for number := range 8 {
		m.setProgress(number, minutesAgo(int64(number)), 0, 0)
	}
	m.setProgress(5, minutesAgo(5), minutesAgo(200), minutesAgo(30))
	m.setProgress(alone, minutesAgo(77), 0, 0)
	before := read()
	stale := m.checkpoint(2)
	for _, n := range []int{3, 20} {
		if err := m.db.Partitions().Count(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		after := read()
		if len(after) != len(tenants) {
			t.Errorf("with %d partitions %d tenants are evaluated", n, len(after))
		}
		for tenant, was := range before {
			if is := after[tenant]; is.cursorNS > was.cursorNS && is.fromNS > was.cursorNS || is.fromNS > was.fromNS {
				t.Errorf("with %d partitions %s goes on at %+v, and had come to %+v", n, tenant, is, was)
			}
		}
		if after["tenant-0"] != before["tenant-0"] {
			t.Errorf("the isolated tenant moved to %+v", after["tenant-0"])
		}
		if got := len(m.hold("mover").Checkpoints); got != n+1 {
			t.Errorf("%d partitions, want %d", got, n+1)
		}
		before = after
	}
	_, err = m.store.Commit(t.Context(), evaluator.Batch{
		Partition: stale.Partition, Token: stale.Token, Revision: stale.Revision, RulesRevision: stale.RulesRevision, LeaseFor: leaseFor,
	})
	if !isStale(err) {
		t.Errorf("a commit of a former partition = %v", err)
	}
	// A new tenant is assigned by the new number.
	if _, err := m.db.Rules().Create(t.Context(), "newcomer", definition("rule")); err != nil {
		t.Fatal(err)
	}
	if share := one[int](t, m.conn, `select share_index from checkpoint where partition = $1`, m.of("newcomer")); share != int(xxhash.Sum64String("newcomer")%20) {
		t.Errorf("a newcomer is in share %d", share)
	}
	m.refused(m.db.Partitions().Count(t.Context(), 20), fault.Conflict, "already 20 partitions")
	m.refused(m.db.Partitions().Count(t.Context(), 0), fault.Invalid, "from 1 to 1024")
	list, err := m.db.Partitions().List(t.Context())
	if err != nil || len(list) != 21 || list[20].Tenant != "tenant-0" || list[20].Of != 0 || list[20].Tenants != 1 || list[20].Rules != 1 || list[0].Owner != "mover" {
		t.Errorf("List = %+v, %v", list, err)
	}
}

// TestMovesAmongPassesAndChanges moves tenants while passes commit and rules change. Each
// successful commit comes from the partition that evaluates the rule at that moment.
func TestMovesAmongPassesAndChanges(t *testing.T) {
	tenants := []string{"a", "b", "c", "d", "e", "f"}
	m := newMover(t, tenants...)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	work := func(f func() error) {
		working.Go(func() {
			for ctx.Err() == nil {
				if err := f(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 2 {
		work(func() error {
			holding, err := m.store.Hold(ctx, evaluator.HoldRequest{Replica: fmt.Sprint("x", n), LeaseFor: leaseFor})
			if err != nil {
				return err
			}
			for _, c := range holding.Checkpoints {
				set, err := m.store.Rules(ctx, c.Partition, 0)
				if isStale(err) {
					continue
				}
				if err != nil {
					return err
				}
				batch := evaluator.Batch{Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: set.Revision, LeaseFor: leaseFor}
				for _, r := range set.Rules {
					// Only one partition may write this for a rule.
					batch.Health = map[uuid.UUID]ruleset.Health{r.Rule.ID: {Problem: fmt.Sprint(c.Partition)}}
				}
				if _, err := m.store.Commit(ctx, batch); err != nil && !isStale(err) {
					return err
				}
			}
			return nil
		})
	}
	work(func() error {
		_, err := m.db.Rules().SetEnabled(ctx, "a", m.rules["a"], time.Now().UnixNano()%2 == 0)
		return err
	})
	for round := range 12 {
		tenant := tenants[round%len(tenants)]
		var err error
		switch round % 3 {
		case 0:
			_, err = m.db.Partitions().Isolate(t.Context(), tenant)
		case 1:
			err = m.db.Partitions().Count(t.Context(), 2+round)
		case 2:
			_, err = m.db.Partitions().Join(t.Context(), tenants[(round-2)%len(tenants)])
		}
		if err != nil {
			t.Error(err)
		}
	}
	cancel()
	working.Wait()
	wrong := one[int](t, m.conn, `
		select count(*)::int from rule r join tenant_partition t using (tenant_id) join checkpoint c using (partition)
		where not exists (select from partition_rule p where p.partition = t.partition and p.rule_id = r.rule_id and p.changed <= c.rules_revision)`)
	if wrong != 0 {
		t.Errorf("%d rules are not known to their partition", wrong)
	}
	if n := one[int](t, m.conn, `select count(distinct tenant_id)::int from tenant_partition`); n != len(tenants) {
		t.Errorf("%d tenants are assigned", n)
	}
}
