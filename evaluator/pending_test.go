package evaluator_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// hours is a look-back of which the source can read nothing but the last hour, as each
// attempt takes as long as it may.
func (s *scene) hours(n int) (clock func() time.Time) {
	late := time.Duration(0)
	s.observes = func(q source.ObserveQuery) error {
		if q.WidthNS == second || q.ToNS <= q.FromNS {
			return nil
		}
		late += 4 * time.Second
		return errBroken
	}
	s.rule(theRule(), "tenant-0", time.Duration(n)*time.Hour)
	return func() time.Time { return time.Unix(0, s.now).Add(late) }
}

// No hour of a look-back of two days can be read, and each takes as long as it may until that
// is known. A rule that is new, and a replay, come to their ends all the same.
func TestLooksThatTakeLongStarveNothing(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.e = s.start("a", evaluator.Options{Clock: s.hours(48)})
	for range 10 {
		s.tick()
	}
	s.fail("tenant-0", "before", 20*time.Minute)
	s.rows[0].visible = []int64{s.now - 15*60*second, s.now}
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Minute)
	s.rows[0].EndTimeNS = new(s.now + second)
	fromNS, toNS := s.past(1)
	replay := s.again(theRule(), fromNS, toNS, ruleset.ReplayNone)
	for range 30 {
		s.tick()
	}
	if _, behind := s.state.backfills[uuid.UUID{15: 2}]; behind {
		t.Error("the new rule is behind")
	}
	if step := s.replayed(replay); !step.Done() {
		t.Errorf("the replay is at %v", step.At)
	}
}

// A rule cannot be read while the source cannot be, either. Nothing of that is left when
// somebody has repaired the rule.
func TestRuleRepairedBeforeItsFailureIsWritten(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour) // so that the source is read
	s.tick()
	broken := s.state.rules[theRule()].rule
	broken.Version, broken.Filter = 2, rules.Filter{ErrorMessageMatches: "("}
	s.change(broken, false)
	s.broken = true
	for range 3 {
		s.attempt()
	}
	broken.Version, broken.Filter = 3, rules.Filter{}
	s.change(broken, false)
	s.broken = false
	failures := 0
	s.committing = func(b evaluator.Batch) error {
		for _, h := range b.Health {
			if h.Failed {
				failures++
			}
		}
		return nil
	}
	s.fail("tenant-0", "x", 0)
	for range 10 {
		s.tick()
	}
	s.wants(2)
	if failures > 0 || len(s.state.backfills) > 0 {
		t.Errorf("%d failures of the rule were recorded; backfills %v are left", failures, s.state.backfills)
	}
}

// A rule is turned into one over a window before anything about its beginning was written.
func TestRuleOfAnotherModeBeforeItsBeginningIsWritten(t *testing.T) {
	s := newScene(t, time.Hour)
	other := uuid.UUID{15: 2}
	s.rule(other, "tenant-0", time.Hour)
	s.rows = append(s.rows, row{Exchange: rules.Exchange{
		TenantID: "tenant-0", ExecutionID: "x", StartTimeNS: s.now - 60*second, EndTimeNS: new(s.now + second), Status: rules.Failed, DurationNS: 61 * second,
	}, visible: []int64{s.now, s.now}})
	s.mute = true
	s.attempt()
	r := s.state.rules[other].rule
	r.Version, r.FireMode, r.Threshold, r.WindowSeconds, r.IntervalSeconds = 2, rules.CountInWindow, 5, 60, 10
	s.change(r, false)
	delete(s.state.backfills, other)
	s.mute = false
	for range 5 {
		s.tick()
	}
	s.wants(1)
	if len(s.state.backfills) > 0 {
		t.Errorf("backfills %v are left", s.state.backfills)
	}
}

// The database refuses an alert of a rule, which was not recorded, and takes it afterwards.
// What the rule reads for itself later begins where it is.
func TestRefusalThatWasNotRecordedIsForgotten(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.tick()
	s.refused = theRule()
	s.committing = func(b evaluator.Batch) error {
		if !b.Health[theRule()].Failed {
			return nil
		}
		s.refused = uuid.Nil
		return errLost
	}
	s.fail("tenant-0", "poison", 0)
	for range 5 {
		s.attempt()
	}
	commits := 0
	s.committing = func(evaluator.Batch) error {
		if commits++; commits > 1000 {
			return errLost // it would go on for ever
		}
		return nil
	}
	s.wants(2)
	// Somebody had the rule evaluate again what lies behind.
	c := s.state.checkpoints[0]
	c.RulesRevision++
	s.state.checkpoints[0] = c
	s.state.backfills[theRule()] = ruleset.Backfill{RuleID: theRule(), At: cursor.Position{StartTimeNS: s.now - 600*second}}
	for range 10 {
		s.tick()
	}
	if len(s.state.backfills) > 0 {
		t.Errorf("backfills %v are left", s.state.backfills)
	}
}

// Many rules want each exchange of a page, and after an outage pages are large. No commit
// grows with their product.
func TestManyRulesWantEachExchange(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.e = s.start("a", evaluator.Options{})
	const many, exchanges = 12, 1200
	for i := range byte(many) {
		s.rule(uuid.UUID{15: i + 1}, "tenant-0", time.Hour)
	}
	s.tick()
	s.now += 600 * second
	for i := range exchanges {
		s.fail("tenant-0", fmt.Sprint("one of many ", i/2), 400*time.Second) // pairs at one position
	}
	largest := 0
	s.committing = func(b evaluator.Batch) error {
		largest = max(largest, len(b.Instances))
		return nil
	}
	s.free("")
	s.e = s.start("b", evaluator.Options{})
	for range 15 {
		s.tick()
	}
	s.wants(many * exchanges / 2)
	if largest == 0 || largest > 5000+2*many {
		t.Errorf("one commit writes %d alerts", largest)
	}
}

// poisonous is a model whose scans for a tenant panic, for a while.
type poisonous struct {
	*stuck
	panics atomic.Int32
	healed atomic.Bool
}

func (p *poisonous) Scan(ctx context.Context, q source.Scan) (source.Page, error) {
	if slices.Contains(q.Tenants.Names, "tenant-1") && !p.healed.Load() {
		p.panics.Add(1)
		panic("poison")
	}
	return p.stuck.Scan(ctx, q)
}

// Each pass over a partition panics. The process and its other partitions
// go on, and nothing of the poisonous one is lost.
func TestPanicKeepsToItsPartition(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-1", time.Hour)
	s.fail("tenant-0", "x", time.Second)
	s.fail("tenant-1", "poison", time.Second)
	world := &poisonous{stuck: &stuck{model: s.model, asked: make(chan struct{}, 1), goOn: make(chan struct{}), released: make(chan []int, 2)}}
	close(world.goOn)
	raised := make(chan int, 1000)
	s.committing = func(b evaluator.Batch) error {
		if len(b.Instances) > 0 {
			raised <- b.Partition
		}
		return nil
	}
	e := s.start("a", evaluator.Options{Interval: time.Millisecond})
	e.Source, e.Store, e.Workers = world, world.stuck, 1
	cancel, done := running(t, e)
	if n := <-raised; n != 0 {
		t.Errorf("partition %d raises the first alert", n)
	}
	for world.panics.Load() < 3 {
		<-world.asked // once in each pass
	}
	world.healed.Store(true)
	if n := <-raised; n != 1 {
		t.Errorf("partition %d raises the second alert", n)
	}
	cancel()
	<-done
}
