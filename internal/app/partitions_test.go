package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/fault"
	"tocsin/internal/lease"
	"tocsin/rules"
)

// ruleIn stores a rule of a tenant that matches every failure.
func (w *world) ruleIn(tenantID, name string) rules.Rule {
	w.t.Helper()
	rule, err := w.db.Rules().Create(w.t.Context(), tenantID, rules.Definition{
		Name: name, Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1, LookBackSeconds: 3600,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return rule
}

// tenantsEverywhere stores a rule for each of as many tenants as are needed for each partition to
// have one.
func (w *world) tenantsEverywhere() (tenants []string) {
	w.t.Helper()
	for len(w.column(`select partition::text from checkpoint where partition not in (select partition from tenant_partition)`)) > 0 {
		tenants = append(tenants, fmt.Sprintf("tenant %02d", len(tenants)))
		w.ruleIn(tenants[len(tenants)-1], "every failure")
	}
	return tenants
}

// failAt writes a failed exchange for each of some tenants that begins and ends at an instant.
func (w *world) failAt(ns int64, id string, tenants ...string) {
	w.t.Helper()
	exchanges := make([]rules.Exchange, len(tenants))
	for i, name := range tenants {
		exchanges[i] = rules.Exchange{TenantID: name, StartTimeNS: ns, EndTimeNS: &ns, ExecutionID: id, Status: rules.Failed}
	}
	w.ch.Insert(w.t, exchanges...)
}

// wantShares waits until each of some replicas has its share of the partitions.
func (w *world) wantShares(what string, replicas ...*process) {
	w.t.Helper()
	var want []string
	partitions := len(w.column(`select partition::text from checkpoint`))
	for i := range replicas {
		n := partitions / len(replicas)
		if i < partitions%len(replicas) {
			n++
		}
		want = append(want, strconv.Itoa(n))
	}
	slices.Sort(want)
	ids := make([]string, len(replicas))
	for i, p := range replicas {
		ids[i] = p.id(w.t)
	}
	began := time.Now()
	w.until(what, func() bool {
		return slices.Equal(w.column(`select count(*)::text from checkpoint where owner = any($1) and lease_until > now() group by owner order by 1`, ids), want)
	})
	w.t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
}

const owners = `select partition || ' ' || coalesce(owner, 'nobody') from checkpoint order by partition`

// TestPartitionsAreSharedLikeAConsumerGroup runs three replicas while exchanges fail in all
// partitions. Each holds its share and keeps it. One is stopped in an orderly way, one is killed
// and one is paused: the others take over, and each exchange has one alert.
func TestPartitionsAreSharedLikeAConsumerGroup(t *testing.T) {
	t.Parallel()
	// Three replicas have different shares of four, too.
	w := newWorldOf(t, 4)
	tenants := w.tenantsEverywhere()
	// Leases outlast the test, except at the end of a process that is killed.
	settings := []string{
		"TOCSIN_ROLES=evaluate", "TOCSIN_PARTITION_LEASE=3s", "TOCSIN_HEARTBEAT_INTERVAL=500ms", "TOCSIN_DEAD_AFTER=9s", "TOCSIN_DEAD_CHECK_INTERVAL=1s",
	}
	n := 0
	var failed time.Time
	until := func(what string, holds func() bool) {
		t.Helper()
		w.until(what, func() bool {
			// More often than there are passes.
			if time.Since(failed) > 300*time.Millisecond {
				failed = time.Now()
				w.failAt(w.ch.Now(t), fmt.Sprintf("%05d", n), tenants...)
				n++
			}
			return holds()
		})
	}
	alerted := func() bool {
		return w.column(`select count(*)::text from alert`)[0] == strconv.Itoa(n*len(tenants))
	}
	everybodyCommits := func(what string, commits int) {
		t.Helper()
		w.exec(`delete from goal`)
		w.exec(`insert into goal select partition, revision + $1 from checkpoint`, commits)
		until(what, func() bool {
			return len(w.column(`select '' from checkpoint c join goal using (partition) where c.revision < goal.revision`)) == 0
		})
	}
	w.exec(`create temporary table goal (partition integer, revision bigint)`)
	one := w.serve(settings...)
	w.wantShares("one holds all", one)
	two := w.serve(settings...)
	w.wantShares("two share", one, two)
	three := w.serve(settings...)
	w.wantShares("three share", one, two, three)
	before := w.column(owners)
	everybodyCommits("each partition has made five passes", 5)
	w.wantColumn("owners are the same", owners, before...)

	// The leases of a replica that ends are released; they do not have to expire.
	gone := one.id(t)
	ended := one.terminate(t)
	w.until("it has given up its partitions", func() bool {
		return len(w.column(`select '' from checkpoint where owner = $1`, gone)) == 0
	})
	w.wantShares("two take over from one that ends", two, three)
	w.wait("it has ended", ended)
	everybodyCommits("all go on", 2)

	two.kill()
	w.wantShares("one takes over from one that was killed", three)
	everybodyCommits("all go on", 2)

	four := w.serve(settings...)
	w.wantShares("a new one gets its share", three, four)
	three.stop(t)
	w.wantShares("it takes over from one that is paused", four)
	everybodyCommits("all go on", 2)
	three.goOn(t)
	w.wantShares("the one that was paused gets its share again", three, four)
	everybodyCommits("all go on", 2)

	w.until("everything is alerted", alerted)
	w.wantColumn("exchanges without one alert of each tenant", `select execution_id from alert group by execution_id having count(distinct tenant_id) <> `+strconv.Itoa(len(tenants))+` or count(*) <> count(distinct tenant_id)`)
}

// TestAReplicaThatEndsSlowlyKeepsNoPartition stops a replica that waits long for a receiver:
// another one evaluates its partitions meanwhile.
func TestAReplicaThatEndsSlowlyKeepsNoPartition(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 4)
	tenants := w.tenantsEverywhere()
	rule := w.rule(w.webhook("slow"))
	w.exec(`update webhook set timeout_ms = 60000`)
	called, release := w.receiver.hang()
	defer release()
	settings := []string{"TOCSIN_PARTITION_LEASE=10m", "TOCSIN_HEARTBEAT_INTERVAL=300ms"}
	first := w.serve(settings...)
	w.fail(rule.ArmedSinceNS+1000, "a")
	await(t, "a call is under way", called)
	second := w.serve(append(settings, "TOCSIN_ROLES=evaluate")...)
	w.wantShares("two share", first, second)
	ended := first.terminate(t)
	w.wantShares("the other one holds all", second)
	select {
	case <-ended:
		t.Error("the first one has ended; the test shows nothing")
	default:
	}
	w.failAt(w.ch.Now(t), "b", tenants...)
	w.until("all are alerted", func() bool {
		return len(w.column(`select '' from alert where execution_id = 'b'`)) == len(tenants)
	})
	release()
	w.wait("it has ended", ended)
	// On a busy machine it may have given up that call.
	w.serve("TOCSIN_ROLES=dispatch")
	w.untilDelivered(1)
}

// TestChangesUnderLoad lets three replicas tick, tenants move to partitions of their own and back,
// the number of partitions change, users edit, retry, disable and enable rules, and exchanges fail,
// all at once. No request fails, and in the end each rule that existed throughout has one alert for
// each exchange.
func TestChangesUnderLoad(t *testing.T) {
	t.Parallel()
	const tenantCount, wantExchanges, wantMoves = 8, 25, 25
	w := newWorldOf(t, usualPartitions)
	var tenants []string
	edited := make([]rules.Rule, tenantCount)
	for i := range tenantCount {
		tenants = append(tenants, tenantName(i))
		w.ruleIn(tenants[i], "every failure")
		edited[i] = w.ruleIn(tenants[i], "edited")
		w.ruleIn(tenants[i], "switched")
	}
	began := w.ch.Now(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	during := func(pause time.Duration, f func(random *rand.Rand) error) {
		random := rand.New(rand.NewPCG(rand.Uint64(), 1))
		work.Go(func() {
			ticker := time.NewTicker(pause)
			defer ticker.Stop()
			for ctx.Err() == nil {
				if err := f(random); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
	for i := range 3 {
		name := fmt.Sprint("replica-", i)
		e := w.newEvaluator(evaluator.Options{Replica: name, Interval: 20 * time.Millisecond, PageSize: 3, LeaseFor: 600 * time.Millisecond})
		member := lease.Replica{ID: name, Host: "h", Version: "test", Roles: []string{"evaluate"}}
		during(5*time.Millisecond, func(*rand.Rand) error {
			if err := w.db.Replicas().Beat(ctx, member); err != nil {
				return err
			}
			// On a busy machine a pass may outlive its lease.
			if _, err := e.Tick(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, evaluator.ErrStale) {
				return err
			}
			return nil
		})
	}
	var moves, exchanges atomic.Int64
	during(30*time.Millisecond, func(random *rand.Rand) error {
		var err error
		name := tenants[random.IntN(len(tenants))]
		switch random.IntN(5) {
		case 0, 1:
			_, err = w.db.Partitions().Isolate(ctx, name)
		case 2, 3:
			_, err = w.db.Partitions().Join(ctx, name)
		default:
			err = w.db.Partitions().Count(ctx, 1+random.IntN(9))
		}
		if fault.KindOf(err) == fault.Conflict {
			return nil // it is already as intended
		}
		moves.Add(1)
		return err
	})
	db := w.db.Rules()
	during(10*time.Millisecond, func(random *rand.Rand) error {
		rule := edited[random.IntN(len(edited))]
		if random.IntN(3) == 0 {
			_, err := db.Retry(ctx, rule.TenantID, rule.ID)
			return err
		}
		now, err := db.Get(ctx, rule.TenantID, rule.ID)
		if err != nil {
			return err
		}
		now.TitleTemplate = fmt.Sprint("broken ", random.IntN(1000))
		// The scope matches the same, but is another one.
		now.Scope.Environments = [][]string{nil, {"production"}, {"production", "test"}}[random.IntN(3)]
		_, err = db.Update(ctx, rule.TenantID, api.RuleEdit{ID: rule.ID, Version: now.Version, Definition: now.Definition})
		return err
	})
	switched := map[string]uuid.UUID{}
	for _, row := range w.column(`select tenant_id || '|' || rule_id from rule where name = 'switched'`) {
		name, id, _ := strings.Cut(row, "|")
		switched[name] = uuid.MustParse(id)
	}
	during(10*time.Millisecond, func(random *rand.Rand) error {
		name := tenants[random.IntN(len(tenants))]
		_, err := db.SetEnabled(ctx, name, switched[name], random.IntN(2) == 0)
		return err
	})
	var failed []string
	during(10*time.Millisecond, func(random *rand.Rand) error {
		id := fmt.Sprintf("x%05d", len(failed))
		failed = append(failed, id)
		at := max(began, w.ch.Now(t)-random.Int64N(3)*int64(time.Second)/2)
		var list []rules.Exchange
		for _, name := range tenants {
			list = append(list, rules.Exchange{
				TenantID: name, StartTimeNS: at, EndTimeNS: &at, ExecutionID: id, Environment: "production", Status: rules.Failed,
			})
		}
		w.ch.Insert(t, list...)
		exchanges.Add(1)
		return nil
	})
	w.until("enough has happened", func() bool { return t.Failed() || moves.Load() >= wantMoves && exchanges.Load() >= wantExchanges })
	stop()
	work.Wait()
	t.Logf("%d exchanges of %d tenants, %d moves", len(failed), len(tenants), moves.Load())
	w.exec(`delete from replica`)
	last := w.newEvaluator(evaluator.Options{Replica: "last"})
	w.until("everything is evaluated", func() bool {
		if _, err := w.tickWith(last); err != nil {
			t.Fatal(err)
		}
		return len(w.column(`select '' from checkpoint where backfill_from_ns is not null union all select '' from rule_backfill`)) == 0
	})
	for _, rule := range []string{"every failure", "edited"} {
		var want []string
		for _, name := range tenants {
			for _, id := range failed {
				want = append(want, name+" "+id)
			}
		}
		slices.Sort(want)
		got := w.column(`select a.tenant_id || ' ' || a.execution_id from alert a join rule r using (rule_id)
			where a.execution_id is not null and r.name = $1 order by (a.tenant_id || ' ' || a.execution_id) collate "C"`, rule)
		if !slices.Equal(got, want) {
			t.Errorf("%d alerts of the rules %q, want %d: missing %v", len(got), rule, len(want), without(want, got))
		}
	}
	w.wantColumn("alerts about health", `select message from alert where health`)
}

// without returns the elements of a that are not in b, at most ten.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) && len(out) < 10 {
			out = append(out, s)
		}
	}
	return out
}
