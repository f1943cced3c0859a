package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// scene is the model with one rule for every failure of tenant-0.
type scene struct {
	*model
	t *testing.T
	e *evaluator.Evaluator
	// replays is how many were asked for, ticks how many passes were made.
	replays, ticks int
}

// mostTicks is more passes than any test needs: a test that waits for what never comes fails.
const mostTicks = 20_000

func tenantNames() []string { return []string{"tenant-0", "tenant-1", "tenant-2"} }

// theRule returns the id of that rule.
func theRule() uuid.UUID { return uuid.UUID{15: 1} }

func newScene(t *testing.T, lookBack time.Duration) *scene {
	t.Helper()
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", lookBack)
	s.e = s.start("a", evaluator.Options{})
	s.tick()
	return s
}

func (s *scene) rule(id uuid.UUID, tenant string, lookBack time.Duration) {
	s.change(rules.Rule{ID: id, TenantID: tenant, ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: int(lookBack / time.Second), WebhookIDs: []uuid.UUID{{1}},
	}}, true)
}

func (s *scene) start(replica string, o evaluator.Options) *evaluator.Evaluator {
	s.t.Helper()
	o.Source, o.Store, o.Publisher, o.Texts, o.Logger, o.Workers = s.model, s.model, s.model, s.model, slog.New(slog.DiscardHandler), 1
	o.Replica = replica
	if o.Clock == nil {
		o.Clock = func() time.Time { return time.Unix(0, s.now) }
	}
	e, err := evaluator.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// fail shows a failure that began some time before now, and ended now.
func (s *scene) fail(tenant, id string, began time.Duration) {
	end := s.now
	s.rows = append(s.rows, row{
		Exchange: rules.Exchange{
			TenantID: tenant, ExecutionID: id, StartTimeNS: s.now - began.Nanoseconds(), EndTimeNS: &end, DurationNS: began.Nanoseconds(), Status: rules.Failed,
		},
		visible: []int64{s.now, s.now + 3*second},
	})
}

// tick lets a second pass, and makes a pass.
func (s *scene) tick() evaluator.Result {
	s.t.Helper()
	if s.ticks++; s.ticks > mostTicks {
		s.t.Fatalf("the test waits for something that did not come within %d passes", mostTicks)
	}
	s.now += second
	result, err := s.e.Tick(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

func (s *scene) wants(n int) {
	s.t.Helper()
	if len(s.state.alerts) != n {
		s.t.Fatalf("%d alerts, want %d", len(s.state.alerts), n)
	}
}

// A process that remembers seconds as evaluated must not trust that when a failover took the
// alerts away: they come back, with the ids that they had.
func TestFailoverBringsAlertsBack(t *testing.T) {
	s := newScene(t, time.Hour)
	s.tick()
	commits := len(s.states)
	s.fail("tenant-0", "new", 0)
	s.fail("tenant-0", "late", 10*time.Second)
	s.fail("tenant-0", "very late", 10*time.Minute)
	for range 15 {
		s.tick()
	}
	s.wants(3)
	before := s.state.copy().alerts
	s.failover(len(s.states) - commits)
	s.wants(0)
	for range 5 {
		s.tick()
	}
	s.wants(3)
	for id := range before {
		if _, same := s.state.alerts[id]; !same {
			t.Errorf("alert %s came back with another id", id)
		}
	}
}

// The first failover takes away the commits by which a process knows a new rule, the second one the
// rule itself. The process must not go on with it when other rules change.
func TestRuleThatASecondFailoverTakesAway(t *testing.T) {
	s := newScene(t, time.Hour)
	s.tick()
	before, commits := s.state.copy(), len(s.states)
	gone := uuid.UUID{15: 2}
	s.rule(gone, "tenant-0", time.Hour)
	s.tick()
	s.tick()
	s.failover(len(s.states) - commits)
	s.committing = func(evaluator.Batch) error {
		s.state, s.committing = before, nil
		return nil
	}
	s.now += second
	if _, err := s.e.Tick(t.Context()); !errors.Is(err, evaluator.ErrStale) {
		t.Fatal(err)
	}
	for range 2 {
		s.rule(uuid.UUID{15: 3}, "tenant-0", time.Hour)
	}
	s.fail("tenant-0", "a", 0)
	s.tick()
	s.tick()
	s.wants(2)
	if s.has(gone, "a") {
		t.Error("a rule that is not there any more has raised an alert")
	}
}

// What a replica evaluated while it held the partition is nothing that another one may
// remember for it.
func TestPartitionThatComesBackIsLookedAtAgain(t *testing.T) {
	s := newScene(t, time.Hour)
	other := s.start("b", evaluator.Options{})
	s.tick()
	s.free("")
	s.fail("tenant-0", "while b holds it", 5*time.Minute)
	s.now += second
	s.refused = theRule() // b finds it, and cannot commit it
	_, _ = other.Tick(context.Background())
	s.refused = uuid.Nil
	s.free("")
	for range 70 {
		s.tick()
	}
	s.wants(1)
}

// Exchanges of two tenants may have one id and one start: a page that ends between them loses neither.
func TestOneExchangeIDOfTwoTenants(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-2", time.Hour)
	s.e = s.start("a", evaluator.Options{PageSize: 1})
	s.tick()
	for i := range 5 {
		id := fmt.Sprint("x", i)
		s.fail("tenant-0", id, 2*time.Second)
		s.fail("tenant-2", id, 2*time.Second)
	}
	for range 5 {
		s.tick()
	}
	s.wants(10)
}

// A server that lags shows less: neither its fingerprints nor its pages may hide what the
// other one showed.
func TestServersInTurn(t *testing.T) {
	s := newScene(t, time.Hour)
	s.pick = func() int { return s.questions % 2 }
	for i := range 40 {
		s.fail("tenant-0", fmt.Sprint("x", i), time.Duration(i%4)*time.Second)
		s.tick()
	}
	for range 10 {
		s.tick()
	}
	s.wants(40)
}

// One question that is not answered announces nothing. A source that stays away is announced once for each partition,
// whatever the number of rules, and its return once; a stored cursor that cannot be read likewise, for its partition.
func TestSourceThatFailsIsAnnouncedOnce(t *testing.T) {
	for name, breaks := range map[string]func(s *scene, broken bool){
		"source": func(s *scene, broken bool) { s.broken = broken },
		"cursor": func(s *scene, broken bool) {
			c := s.state.checkpoints[0]
			c.Err = nil
			if broken {
				c.Err = errBroken
			}
			s.state.checkpoints[0] = c
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, time.Hour)
			for i := range 50 {
				s.rule(uuid.UUID{15: byte(i + 2)}, tenantNames()[i%3], time.Hour)
			}
			s.tick()
			breaks(s, true)
			attempt := func() {
				s.now += second
				if _, err := s.e.Tick(context.Background()); err != nil && !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
			}
			attempt()
			if len(s.announced) > 0 {
				t.Fatalf("announced %v after one failure", s.announced)
			}
			s.fail("tenant-0", "meanwhile", 0)
			for range 90 {
				attempt()
			}
			s.wants(0)
			breaks(s, false)
			for range 5 {
				attempt()
			}
			s.wants(18) // each rule of the tenant
			want := map[string]int{"source": 2, "cursor": 1}[name]
			if s.announced["failed"] != want || s.announced["recovered"] != want {
				t.Fatalf("announced %v, want %d of each", s.announced, want)
			}
			for id, r := range s.state.rules {
				if r.problem != "" {
					t.Errorf("rule %s has the problem %q of the source", id, r.problem)
				}
			}
		})
	}
}

// A look at an old part of the look-back that fails holds up nothing that is new, and
// fails no rule.
func TestLookBackThatFailsHoldsUpNothing(t *testing.T) {
	s := newScene(t, 7*24*time.Hour)
	s.tick()
	s.deaf = true
	s.e = s.start("c", evaluator.Options{})
	s.free("")
	s.fail("tenant-0", "new", 0)
	s.fail("tenant-0", "old", 24*time.Hour)
	for range 3 {
		s.tick()
	}
	s.wants(1)
	if c := s.state.checkpoints[0]; c.Backfill == nil {
		t.Error("what was not looked at is not in the mark")
	}
	s.deaf = false
	for range 70 {
		s.tick()
	}
	s.wants(2)
}

// However long the look-back, what began some minutes ago is found within the time for
// which the last hour waits.
func TestLongLookBackFindsTheLastHourSoon(t *testing.T) {
	s := newScene(t, 7*24*time.Hour)
	for range 30 {
		s.tick()
	}
	s.fail("tenant-0", "three minutes", 3*time.Minute)
	for range 11 {
		s.tick()
	}
	s.wants(1)
	s.fail("tenant-0", "three days", 72*time.Hour)
	for range 61 {
		s.tick()
	}
	s.wants(2)
}

// A tenant of which there is very much holds up the others for its share of a pass only;
// what it left is read in the time that passes have left.
func TestTenantThatTakesTooMuchIsDeferred(t *testing.T) {
	for name, ago := range map[string]time.Duration{"new": 0, "visible late": 20 * time.Second} {
		t.Run(name, func(t *testing.T) { defersTenant(t, ago) })
	}
}

// defersTenant has very much of a tenant become visible that began some time ago.
func defersTenant(t *testing.T, ago time.Duration) {
	t.Helper()
	looks := int64(0)
	var s *scene
	clock := func() time.Time { looks++; return time.Unix(0, s.now).Add(time.Duration(looks) * time.Millisecond) }
	s = &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-2", time.Hour)
	s.e = s.start("a", evaluator.Options{PageSize: 5, Interval: 40 * time.Millisecond, LeaseFor: time.Minute, Clock: clock})
	s.tick()
	const many = 2000
	for i := range many {
		s.fail("tenant-0", fmt.Sprint("flood", i), ago+time.Duration(many-i)*100*time.Microsecond)
	}
	s.fail("tenant-2", "alone", 0)
	deferred := 0
	result := s.tick()
	deferred += result.Deferred
	if !s.has(uuid.UUID{15: 2}, "alone") {
		t.Error("the other tenant waits")
	}
	if deferred == 0 || len(s.state.alerts) > many {
		t.Errorf("%d deferred, %d alerts already", deferred, len(s.state.alerts))
	}
	for range 600 {
		s.tick()
	}
	s.wants(many + 1)
	if len(s.state.backfills) > 0 {
		t.Errorf("backfills %v are left", s.state.backfills)
	}
}

// A rule goes while a pass over it failed: what waits to be written about it goes with it.
func TestRuleThatGoesBeforeItsCommit(t *testing.T) {
	s := newScene(t, time.Hour)
	other := uuid.UUID{15: 2}
	s.rule(other, "tenant-0", time.Hour)
	s.fail("tenant-0", "first", 0)
	s.mute = true
	s.now += second
	if _, err := s.e.Tick(context.Background()); err == nil {
		t.Fatal("the scan does not fail")
	}
	gone := s.state.rules[other].rule
	gone.Enabled = false
	s.change(gone, false)
	s.mute = false
	for range 3 {
		s.tick()
	}
	s.wants(1)
	if len(s.state.backfills) > 0 {
		t.Errorf("backfills %v are left", s.state.backfills)
	}
}

// Two rules fail and are tried together by a new process. One recovers, and nobody is notified that
// the other one has.
func TestOneOfTwoRefusedRulesComesBack(t *testing.T) {
	s := newScene(t, time.Hour)
	other := uuid.UUID{15: 2}
	s.rule(other, "tenant-0", time.Hour)
	s.tick()
	refused := []uuid.UUID{theRule(), other}
	recovered := map[uuid.UUID]int{}
	s.committing = func(b evaluator.Batch) error {
		for i := range b.Instances {
			if slices.Contains(refused, b.Instances[i].RuleID) {
				return evaluator.ErrRefused
			}
		}
		for id, h := range b.Health {
			if !h.Failed {
				recovered[id]++
			}
		}
		return nil
	}
	s.fail("tenant-0", "poison", 0)
	for range 20 {
		s.tick()
	}
	s.wants(0)
	s.e = s.start("a", evaluator.Options{}) // which does not know what was refused
	refused = refused[1:]
	s.fail("tenant-0", "meanwhile", 0)
	for range 400 {
		s.tick()
	}
	s.wants(2)
	if recovered[theRule()] != 1 || recovered[other] != 0 || s.state.rules[other].problem == "" || s.state.rules[theRule()].problem != "" {
		t.Errorf("recovered %v, problems %q and %q", recovered, s.state.rules[theRule()].problem, s.state.rules[other].problem)
	}
	refused = nil
	for range 400 {
		s.tick()
	}
	s.wants(4)
	if recovered[other] != 1 || len(s.state.backfills) > 0 {
		t.Errorf("recovered %v, backfills %v are left", recovered, s.state.backfills)
	}
}

// A rule of which the database refuses an alert fails alone, and catches up when it can.
func TestRefusedRuleFailsAlone(t *testing.T) {
	s := newScene(t, time.Hour)
	good := uuid.UUID{15: 2}
	s.rule(good, "tenant-0", time.Hour)
	s.tick()
	s.refused = theRule()
	s.fail("tenant-0", "poison", 0)
	for range 20 {
		s.tick()
	}
	s.wants(1)
	if s.state.rules[theRule()].problem == "" || s.state.rules[good].problem != "" {
		t.Fatal("the wrong rule fails")
	}
	s.fail("tenant-0", "meanwhile", 0)
	s.tick()
	s.wants(2)
	s.refused = uuid.Nil
	for range 400 {
		s.tick()
	}
	s.wants(4)
	if s.state.rules[theRule()].problem != "" || len(s.state.backfills) > 0 {
		t.Errorf("problem %q, backfills %v", s.state.rules[theRule()].problem, s.state.backfills)
	}
}

// A pass that takes longer than its interval reads larger pages. Otherwise it could be cut off in the
// middle of an instant of very many exchanges, each time, because the next pass begins there again.
func TestAnInstantOfVeryManyIsReadInTheEnd(t *testing.T) {
	for name, ago := range map[string]time.Duration{"new": 0, "visible late": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			scans := 0
			s := &scene{model: newModel(), t: t}
			clock := func() time.Time { return time.Unix(0, s.now).Add(time.Duration(scans) * 100 * time.Millisecond) }
			s.rule(theRule(), "tenant-0", time.Hour)
			s.e = s.start("a", evaluator.Options{PageSize: 5, LeaseFor: time.Minute, Clock: clock})
			s.tick()
			const many = 1000 // 200 pages, of which the database answers 100 within a pass
			for i := range many {
				s.fail("tenant-0", fmt.Sprint(i), ago)
			}
			s.scans = func(source.Scan) error {
				if scans++; scans > 100 {
					return context.DeadlineExceeded
				}
				return nil
			}
			for range 20 {
				scans, s.now = 0, s.now+second
				_, _ = s.e.Tick(t.Context()) // cut off, or not
			}
			s.wants(many)
		})
	}
}
