package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/internal/lease"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

const leaseFor = 15 * time.Second

// TestLeasePlan decides by what a replica sees of partitions and other replicas.
func TestLeasePlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		partitions, others, before int64
		// held are this replica's partitions with the remaining time of their leases; free are
		// partitions without an owner.
		held map[int32]time.Duration
		free []int32
		busy []int
		// share is how many the replica may hold.
		share int
		want  [2][]int32 // renew, release
	}{
		"alone, at first":                   {8, 0, 0, nil, []int32{0, 1, 2, 3, 4, 5, 6, 7}, nil, 8, [2][]int32{nil, nil}},
		"first of three":                    {8, 2, 0, nil, []int32{0, 1, 2, 3, 4}, nil, 3, [2][]int32{nil, nil}},
		"last of three":                     {8, 2, 2, nil, []int32{0, 1, 2, 3, 4}, nil, 2, [2][]int32{nil, nil}},
		"nothing is free":                   {8, 1, 0, nil, nil, nil, 4, [2][]int32{}},
		"more replicas than partitions":     {2, 4, 2, nil, []int32{0, 1}, nil, 0, [2][]int32{}},
		"leases are fresh":                  {2, 0, 0, map[int32]time.Duration{0: leaseFor, 1: 11 * time.Second}, nil, nil, 2, [2][]int32{}},
		"one lease is old":                  {2, 0, 0, map[int32]time.Duration{0: leaseFor, 1: 9 * time.Second}, nil, nil, 2, [2][]int32{{1}, nil}},
		"one lease has expired":             {2, 0, 0, map[int32]time.Duration{0: leaseFor, 1: -time.Second}, nil, nil, 2, [2][]int32{{1}, nil}},
		"another replica came":              {4, 1, 0, map[int32]time.Duration{0: leaseFor, 1: leaseFor, 2: leaseFor, 3: leaseFor}, nil, nil, 2, [2][]int32{nil, {3, 2}}},
		"and some are busy":                 {4, 1, 0, map[int32]time.Duration{0: leaseFor, 1: leaseFor, 2: leaseFor, 3: leaseFor}, nil, []int{3, 1}, 2, [2][]int32{nil, {2, 0}}},
		"and all are busy, and old":         {2, 1, 0, map[int32]time.Duration{0: 1, 1: 1}, nil, []int{0, 1}, 1, [2][]int32{{1, 0}, nil}},
		"it takes no more than its share":   {4, 1, 0, map[int32]time.Duration{0: leaseFor}, []int32{1, 2, 3}, nil, 2, [2][]int32{nil, nil}},
		"it keeps what it has, and no more": {4, 1, 1, map[int32]time.Duration{2: leaseFor, 3: leaseFor}, []int32{0, 1}, nil, 2, [2][]int32{}},
	} {
		var rows []pgq.CheckpointsForRow
		for number := range int32(c.partitions) {
			row := pgq.CheckpointsForRow{Partitions: c.partitions, Others: c.others, Before: c.before, Free: slices.Contains(c.free, number)}
			left, held := c.held[number]
			row.Checkpoint.Partition, row.Held, row.LeaseLeftSeconds = number, held, left.Seconds()
			rows = append(rows, row)
		}
		plan := postgres.PlanLeases(rows, evaluator.HoldRequest{LeaseFor: leaseFor, Busy: c.busy})
		if got := [2][]int32{plan.Renew(), plan.Release()}; fmt.Sprint(got) != fmt.Sprint(c.want) || plan.Share() != c.share || fmt.Sprint(plan.Free()) != fmt.Sprint(c.free) {
			t.Errorf("%s: renew, release %v, want %v; a share of %d, want %d; free are %v", name, got, c.want, plan.Share(), c.share, plan.Free())
		}
	}
}

// fleet is a set of replicas of one database.
type fleet struct {
	tb    testing.TB
	conn  *pgx.Conn
	store *postgres.Evaluation
	db    *postgres.DB
}

func newFleet(tb testing.TB) *fleet {
	tb.Helper()
	url := pgtest.URL(tb)
	db := openAt(tb, url)
	return &fleet{tb, pgtest.Conn(tb, url), db.Evaluation(time.Minute), db}
}

// lock locks a checkpoint in a transaction of somebody else, until the returned function is called or the test ends.
func (f *fleet) lock(partition int) (unlock func()) {
	f.tb.Helper()
	other, err := pgtest.Conn(f.tb, f.conn.Config().ConnString()).Begin(f.tb.Context())
	if err != nil {
		f.tb.Fatal(err)
	}
	if _, err := other.Exec(f.tb.Context(), `select from checkpoint where partition = $1 for update`, partition); err != nil {
		f.tb.Fatal(err)
	}
	unlock = func() { _ = other.Rollback(context.WithoutCancel(f.tb.Context())) }
	f.tb.Cleanup(unlock)
	return unlock
}

func (f *fleet) exec(sql string, args ...any) {
	f.tb.Helper()
	if _, err := f.conn.Exec(context.Background(), sql, args...); err != nil {
		f.tb.Fatal(err)
	}
}

func (f *fleet) beat(replicas ...string) {
	f.tb.Helper()
	for _, id := range replicas {
		if err := f.db.Replicas().Beat(context.Background(), lease.Replica{ID: id, Roles: []string{"evaluate"}}); err != nil {
			f.tb.Fatal(err)
		}
	}
}

func (f *fleet) hold(replica string, busy ...int) evaluator.Holding {
	f.tb.Helper()
	holding, err := f.store.Hold(context.Background(), evaluator.HoldRequest{Replica: replica, LeaseFor: leaseFor, Busy: busy})
	if err != nil {
		f.tb.Fatal(err)
	}
	return holding
}

// held returns the partition numbers of a holding.
func held(holding evaluator.Holding) []int {
	list := make([]int, len(holding.Checkpoints))
	for i := range list {
		list[i] = holding.Checkpoints[i].Partition
	}
	return list
}

func (f *fleet) want(what string, got evaluator.Holding, want ...int) {
	f.tb.Helper()
	if !slices.Equal(held(got), want) {
		f.tb.Errorf("%s: it holds %v, want %v", what, held(got), want)
	}
}

func tokens(holding evaluator.Holding) map[int]int64 {
	list := map[int]int64{}
	for _, c := range holding.Checkpoints {
		list[c.Partition] = c.Token
	}
	return list
}

func TestPartitionsAreSharedAndHandedOver(t *testing.T) {
	f := newFleet(t)
	// A replica whose row is not written yet counts as well.
	first := f.hold("a")
	f.want("alone", first, 0, 1, 2, 3, 4, 5, 6, 7)
	if first.Now.IsZero() || len(first.SourceFailed) > 0 {
		t.Errorf("holding %+v", first)
	}
	if again := f.hold("a"); fmt.Sprint(tokens(again)) != fmt.Sprint(tokens(first)) {
		t.Error("a renewal changes tokens")
	}
	f.beat("a", "b")
	f.want("a is known to evaluate now", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
	f.want("b comes", f.hold("b"))
	f.want("a gives up what is not busy", f.hold("a", 7, 6), 0, 1, 6, 7)
	b := f.hold("b")
	f.want("b takes it", b, 2, 3, 4, 5)
	for number, token := range tokens(b) {
		if token <= 0 || token == tokens(first)[number] {
			t.Errorf("partition %d was handed over under token %d", number, token)
		}
	}
	// It has a different role.
	if err := f.db.Replicas().Beat(t.Context(), lease.Replica{ID: "c", Roles: []string{"api", "dispatch"}}); err != nil {
		t.Fatal(err)
	}
	f.want("c does not evaluate", f.hold("a"), 0, 1, 6, 7)

	// What another replica holds is neither released by mistake nor taken.
	if err := f.store.Release(t.Context(), "a", []int{2, 3}); err != nil {
		t.Fatal(err)
	}
	f.want("b keeps its own", f.hold("b"), 2, 3, 4, 5)

	// b is silent, and its leases have not expired.
	f.exec(`update replica set beat_at = now() - interval '61 s', evaluated_at = now() - interval '61 s' where replica_id = 'b'`)
	f.want("a takes over from the dead", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
	f.exec(`update replica set beat_at = now() where replica_id = 'b'`)
	f.want("b comes back and holds nothing", f.hold("b"))
	f.exec(`update checkpoint set lease_until = now() + interval '15 s'`)

	// Leases expire although the heartbeat continues.
	f.exec(`update checkpoint set lease_until = now() - interval '1 s' where partition < 2`)
	f.want("b takes what has expired", f.hold("b"), 0, 1)
	f.want("a does not believe in it any more, and gives up more", f.hold("a"), 2, 3, 4, 5)
	f.want("b has its share", f.hold("b"), 0, 1, 6, 7)

	// b no longer renews: its leases have expired, although its heartbeat continues.
	f.exec(`update replica set evaluated_at = now() - interval '16 s' where replica_id = 'b'`)
	f.want("a waits for leases", f.hold("a"), 2, 3, 4, 5)
	f.exec(`update checkpoint set lease_until = now() - interval '1 s' where owner = 'b'`)
	f.want("a takes over what has expired", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
	f.want("b asks again", f.hold("b"))
	f.hold("a")
	f.want("b has a share again", f.hold("b"), 4, 5, 6, 7)

	// An orderly stop.
	if released, err := f.db.Replicas().Leave(t.Context(), "b"); err != nil || released.Partitions != 4 {
		t.Errorf("Leave = %+v, %v", released, err)
	}
	f.want("a has all", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
}

// newHalves returns a fleet of two replicas: a holds the lower half of the partitions, and b the upper half.
func newHalves(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t)
	f.beat("a", "b")
	f.hold("a")
	f.hold("b")
	f.hold("a")
	f.want("b has its share", f.hold("b"), 4, 5, 6, 7)
	return f
}

// TestReplicaThatDiesWhenTheClockIsSetBack has a replica die, with its lease and its heartbeat an hour ahead, when
// Postgres's clock is set back, as when a standby is promoted. The other one does not wait until the clock gets there.
func TestReplicaThatDiesWhenTheClockIsSetBack(t *testing.T) {
	f := newHalves(t)
	f.exec(`update replica set beat_at = beat_at + interval '1 hour', evaluated_at = evaluated_at + interval '1 hour'`)
	f.exec(`update checkpoint set lease_until = lease_until + interval '1 hour'`)
	f.beat("b")
	f.want("a is dead", f.hold("b"), 0, 1, 2, 3, 4, 5, 6, 7)
}

// TestALockedPartitionCostsNoOther has a transaction of somebody else that keeps one checkpoint locked: the leases of the
// replica's other partitions are renewed, and it still holds all. If another replica comes, the others of its share are
// handed over.
func TestALockedPartitionCostsNoOther(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.beat("a")
	f.want("a holds all", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
	f.exec(`update checkpoint set lease_until = now() + interval '1 s'`)
	unlock := f.lock(7)
	f.want("a holds all", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
	if renewed := one[string](t, f.conn, `select string_agg(partition::text, ' ' order by partition) from checkpoint where lease_until > now() + interval '10 s'`); renewed != "0 1 2 3 4 5 6" {
		t.Errorf("the leases of %s are renewed; want those of all but 7", renewed)
	}
	f.beat("b")
	f.hold("b")
	f.want("a gives up a half", f.hold("a"), 0, 1, 2, 3)
	f.want("b takes what is free", f.hold("b"), 4, 5, 6)
	unlock()
	f.want("a gives up the last", f.hold("a"), 0, 1, 2, 3)
	f.want("b has its share", f.hold("b"), 4, 5, 6, 7)
}

// TestALockedPartitionHidesNoOther has a transaction of somebody else that keeps one of two free checkpoints locked, the
// one that each replica would take first. Two replicas that each have room for one take the other, and one of them gets it.
func TestALockedPartitionHidesNoOther(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.beat("a")
	f.beat("b")
	f.exec(`update replica set evaluated_at = now()`)
	f.exec(`update checkpoint set owner = case when partition < 5 then 'a' else 'b' end, token = 1, lease_until = now() + interval '15 s' where partition > 1`)
	f.lock(0)
	f.want("a takes the one that is not locked", f.hold("a"), 1, 2, 3, 4)
	f.want("b has room for the one that is locked", f.hold("b"), 5, 6, 7)
	holding, err := f.store.Hold(t.Context(), evaluator.HoldRequest{Replica: "b", LeaseFor: leaseFor})
	if err != nil || fmt.Sprint(holding.Locked) != "[0]" {
		t.Errorf("b finds %v locked, %v; want 0", holding.Locked, err)
	}
	if holding, err = f.store.Hold(t.Context(), evaluator.HoldRequest{Replica: "a", LeaseFor: leaseFor}); err != nil || holding.Locked != nil {
		t.Errorf("a, which has its share, finds %v locked, %v", holding.Locked, err)
	}
}

// silent is a source that does not answer, so that nothing is raised or sent either.
type silent struct{ source.Source }

func (silent) Publish(context.Context, notify.WakeUp) error { return nil }

func (silent) Texts(*rules.Rule, *rules.Exchange) (title, message string, problem error) {
	return "", "", nil
}

func (silent) Observe(context.Context, source.ObserveQuery) (source.Observation, error) {
	return source.Observation{}, errors.New("it does not answer")
}

// TestALockedPartitionIsLogged has a transaction of somebody else that keeps a free checkpoint locked. The replica takes the
// others, and the log names the partition: once the lock has been seen for a lease, and then every five minutes.
func TestALockedPartitionIsLogged(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.beat("a")
	now, log := time.Unix(1_800_000_000, 0), &strings.Builder{}
	e, err := evaluator.New(evaluator.Options{
		Source: silent{}, Store: f.store, Publisher: silent{}, Texts: silent{},
		Logger: slog.New(slog.NewTextHandler(log, nil)), Clock: func() time.Time { return now }, Replica: "a", LeaseFor: leaseFor,
	})
	if err != nil {
		t.Fatal(err)
	}
	unlock := f.lock(7)
	tick := func(after time.Duration, lines int) {
		t.Helper()
		now = now.Add(after)
		if _, err := e.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "free partition not taken"); got != lines {
			t.Fatalf("at %v: %d lines, want %d: %s", now, got, lines, log)
		}
	}
	tick(0, 0)
	tick(5*time.Second, 0)
	tick(20*time.Second, 0) // nobody looked in between: the time begins again
	tick(5*time.Second, 0)
	tick(5*time.Second, 0)
	tick(5*time.Second-1, 0)
	tick(1, 1)
	for range 59 {
		tick(5*time.Second, 1)
	}
	tick(5*time.Second, 2)
	if line := log.String(); !strings.Contains(line, "partition=7 waited=15s") || !strings.Contains(line, "partition=7 waited=5m15s") || !strings.Contains(line, "pg_terminate_backend") {
		t.Errorf("the log is %s", line)
	}
	if taken := one[string](t, f.conn, `select string_agg(partition::text, ' ' order by partition) from checkpoint where owner = 'a'`); taken != "0 1 2 3 4 5 6" {
		t.Errorf("it holds %s", taken)
	}
	unlock()
	now = now.Add(time.Hour)
	if _, err := e.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "free partition not taken"); got != 2 {
		t.Errorf("%d lines after the lock is gone", got)
	}
	if owner := one[string](t, f.conn, `select owner from checkpoint where partition = 7`); owner != "a" {
		t.Errorf("the partition is held by %q", owner)
	}
}

// TestNoShareIsKeptForWhoEnds has a replica that has released its partitions and still sends
// heartbeats, as it waits for a receiver.
func TestNoShareIsKeptForWhoEnds(t *testing.T) {
	t.Parallel()
	f := newHalves(t)
	if err := f.store.Release(t.Context(), "b", []int{4, 5, 6, 7}); err != nil {
		t.Fatal(err)
	}
	f.want("a has all", f.hold("a"), 0, 1, 2, 3, 4, 5, 6, 7)
}

func TestPartitionsOfDeadReplicasAreReleased(t *testing.T) {
	f := newFleet(t)
	f.beat("a", "b")
	f.hold("a")
	f.exec(`update checkpoint set lease_until = now() + interval '1 h' where owner is not null`)
	request := lease.DeadRequest{Self: "b", DeadAfter: time.Minute, ForgetAfter: time.Hour}
	if result, err := f.db.Replicas().ReleaseDead(t.Context(), request); err != nil || len(result.Released) != 0 {
		t.Errorf("ReleaseDead of the living = %+v, %v", result, err)
	}
	f.exec(`update replica set beat_at = now() - interval '61 s' where replica_id = 'a'`)
	result, err := f.db.Replicas().ReleaseDead(t.Context(), request)
	if err != nil || len(result.Released) != 1 || !reflect.DeepEqual(result.Released[0], lease.Released{Replica: "a", Partitions: 8}) {
		t.Errorf("ReleaseDead = %+v, %v", result, err)
	}
	if owned := one[int](t, f.conn, `select count(*)::int from checkpoint where num_nonnulls(owner, token, lease_until) > 0`); owned != 0 {
		t.Errorf("%d partitions are held by the dead", owned)
	}
}

// TestNoPartitionHasTwoHolders lets many replicas start, end, and lose leases at the same time, and
// checks which replicas believe they hold which partition.
func TestNoPartitionHasTwoHolders(t *testing.T) {
	f := newFleet(t)
	const replicas, rounds = 6, 25
	var mu sync.Mutex
	holders := map[int64]string{}
	var wg sync.WaitGroup
	for n := range replicas {
		id := fmt.Sprint("replica-", n)
		f.beat(id)
		wg.Go(func() {
			for round := range rounds {
				holding, err := f.store.Hold(context.Background(), evaluator.HoldRequest{Replica: id, LeaseFor: leaseFor})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, c := range holding.Checkpoints {
					if other, taken := holders[c.Token]; taken && other != id {
						t.Errorf("%s and %s hold partition %d under one token", other, id, c.Partition)
					}
					holders[c.Token] = id
				}
				mu.Unlock()
				// A commit shows which replica really holds it: of all tokens, one.
				for _, c := range holding.Checkpoints {
					_, err := f.store.Commit(context.Background(), evaluator.Batch{
						Partition: c.Partition, Token: c.Token, Revision: c.Revision, RulesRevision: c.RulesRevision, LeaseFor: leaseFor,
					})
					if err != nil && !isStale(err) {
						t.Error(err)
					}
				}
				if round%5 == n%5 {
					if _, err := f.db.Replicas().Leave(context.Background(), id); err != nil {
						t.Error(err)
					}
					if err := f.db.Replicas().Beat(context.Background(), lease.Replica{ID: id, Roles: []string{"evaluate"}}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	// In the end each has its share, and no partition of another's.
	for range 3 {
		for n := range replicas {
			f.hold(fmt.Sprint("replica-", n))
		}
	}
	all := map[int]bool{}
	for n := range replicas {
		numbers := held(f.hold(fmt.Sprint("replica-", n)))
		if len(numbers) < 1 || len(numbers) > 2 {
			t.Errorf("replica %d holds %v", n, numbers)
		}
		for _, number := range numbers {
			if all[number] {
				t.Errorf("partition %d has two holders", number)
			}
			all[number] = true
		}
	}
	if len(all) != 8 {
		t.Errorf("%d of 8 partitions are held", len(all))
	}
}

func TestCheckpointThatCannotBeReadHasAnError(t *testing.T) {
	f := newFleet(t)
	f.exec(`update checkpoint set cursor = 'nonsense' where partition = 3`)
	for _, c := range f.hold("a").Checkpoints {
		if (c.Err != nil) != (c.Partition == 3) {
			t.Errorf("partition %d: %v", c.Partition, c.Err)
		}
	}
}
