package evaluator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

// calm fails the test where anybody was notified about the source.
func (s *scene) calm() {
	s.t.Helper()
	if s.announced["failed"] > 0 {
		s.t.Fatal("the source was announced as failing, although what is new is read")
	}
}

// A minute of the look-back cannot be read. Everything else is looked at as if it could, that of the same hour
// included, and nobody takes the source for dead.
func TestOneMinuteThatCannotBeLookedAt(t *testing.T) {
	s := newScene(t, 6*time.Hour)
	hour := begin - begin%(3600*second) - 2*3600*second
	failed := 0
	s.observes = func(q source.ObserveQuery) error {
		if q.ToNS == 0 || q.FromNS > hour || q.ToNS <= hour {
			return nil
		}
		failed++
		return errBroken
	}
	for range 60 {
		s.tick()
	}
	s.fail("tenant-0", "late", 3*time.Minute)
	s.fail("tenant-0", "later", 4*time.Hour)
	s.fail("tenant-0", "there", time.Duration(s.now-hour-59*second))
	s.fail("tenant-0", "beside", time.Duration(s.now-hour-60*second))
	for range 180 {
		s.tick()
	}
	if failed < 7 || failed > 9 { // an hour and its halves, and then every minute
		t.Errorf("looked %d times at what cannot be read in four minutes", failed)
	}
	s.wants(3)
	s.calm()
	s.observes = nil
	for range 120 {
		s.tick()
	}
	s.wants(4)
}

// A source reads some minutes of start time in a second, so that it does not answer in time about an hour. What became
// visible late is found all the same, and the look-back comes to an end. When the source is quick again, it is
// asked about hours again.
func TestLooksAreTakenAtShorterRanges(t *testing.T) {
	for _, lookBack := range []time.Duration{time.Hour, 3 * time.Hour} {
		s := newScene(t, lookBack)
		speed, longest := 6*60*second, time.Duration(0) // start time in a second
		s.observes = func(q source.ObserveQuery) error {
			if q.ToNS <= 1 {
				return nil
			}
			const timeout = 15 * time.Second / 4
			length := time.Duration(q.ToNS - q.FromNS)
			took := time.Duration(float64(length) / float64(speed) * float64(time.Second))
			if s.now += min(took, timeout).Nanoseconds(); took > timeout {
				return errBroken
			}
			longest = max(longest, length)
			return nil
		}
		for range 200 {
			s.tick()
		}
		late := lookBack - 10*time.Minute
		for i := range 6 {
			s.fail("tenant-0", fmt.Sprint("late", i), late-time.Duration(i)*7*time.Minute)
		}
		over := 0
		for range 200 {
			if s.tick(); s.state.checkpoints[0].Backfill == nil {
				over++
			}
		}
		s.wants(6)
		if over == 0 {
			t.Errorf("a look-back of %v never comes to an end", lookBack)
		}
		if longest < 10*time.Minute || longest > 23*time.Minute {
			t.Errorf("of a look-back of %v, %v is looked at at once", lookBack, longest)
		}
		speed, longest = 3600*60*second, 0
		for range 120 {
			s.tick()
		}
		if longest < 58*time.Minute {
			t.Errorf("of a look-back of %v, %v is looked at at once after the source has recovered", lookBack, longest)
		}
		s.calm()
	}
}

// cannotRead has the source fail on each scan of a range with an instant in it.
func (s *scene) cannotRead(atNS int64) {
	s.scans = func(q source.Scan) error {
		if q.After.StartTimeNS < atNS && atNS < q.BeforeNS {
			return errBroken
		}
		return nil
	}
}

// What changed in some older minutes cannot be read. What changed elsewhere is evaluated.
func TestOlderChangesThatCannotBeRead(t *testing.T) {
	s := newScene(t, time.Hour)
	bad := s.now - 40*60*second
	s.cannotRead(bad)
	for range 30 {
		s.tick()
	}
	s.fail("tenant-0", "bad", time.Duration(s.now-bad))
	s.fail("tenant-0", "late", 10*time.Minute)
	for range 80 {
		s.tick()
	}
	s.wants(1)
	s.calm()
	s.scans = nil
	for range 20 {
		s.tick()
	}
	s.wants(2)
}

// What changed in one older second cannot be read. What changed beside it, in the same range, is evaluated all the same.
func TestOlderSecondThatCannotBeRead(t *testing.T) {
	s := newScene(t, time.Hour)
	bad := s.now - 40*60*second
	s.cannotRead(bad)
	for range 30 {
		s.tick()
	}
	s.fail("tenant-0", "bad", time.Duration(s.now-bad))
	s.fail("tenant-0", "before", time.Duration(s.now-bad+8*second))
	s.fail("tenant-0", "after", time.Duration(s.now-bad-8*second))
	for i := range 60 {
		s.fail("tenant-0", fmt.Sprint("between", i), time.Duration(s.now-bad+int64(i-30)*second/4+second/8))
	}
	for range 120 {
		s.tick()
	}
	s.wants(62 - 4) // four are in the second that cannot be read
	s.calm()
	s.scans = nil
	for range 120 {
		s.tick()
	}
	s.wants(63)
}

// A source does not answer in time about more than two minutes of older changes.
func TestOlderChangesAreReadInShorterRanges(t *testing.T) {
	s := newScene(t, time.Hour)
	from := s.now - 40*60*second
	s.scans = func(q source.Scan) error {
		if q.After.StartTimeNS < from+9*60*second && q.BeforeNS-q.After.StartTimeNS > 121*second {
			return errBroken
		}
		return nil
	}
	for range 30 {
		s.tick()
	}
	for i := range int64(120) {
		s.fail("tenant-0", fmt.Sprint("late", i), time.Duration(s.now-from-4*i*second))
	}
	for range 120 {
		s.tick()
	}
	s.wants(120)
}

// The cursor is at an exchange when the source goes away. When it is back, what is new
// does not wait for what began meanwhile.
func TestCursorWithinAnOutage(t *testing.T) {
	s := newScene(t, time.Hour)
	s.fail("tenant-0", "x", 0)
	s.tick()
	c := s.state.checkpoints[0]
	c.Cursor = &cursor.Position{StartTimeNS: s.rows[0].StartTimeNS, ExecutionID: "x"}
	s.state.checkpoints[0] = c
	for range 55 {
		s.now += 60 * second
		s.fail("tenant-0", fmt.Sprint("meanwhile", s.now), 0)
	}
	s.fail("tenant-0", "new", 0)
	first := int64(0)
	s.scans = func(q source.Scan) error {
		if first == 0 {
			first = q.After.StartTimeNS
		}
		return nil
	}
	s.free("")
	s.e = s.start("b", evaluator.Options{})
	s.tick()
	if recent := backlog.RecentFromNS(s.now); first < recent-1 {
		t.Errorf("the first scan begins %v before what is recent", time.Duration(recent-first))
	}
	for range 10 {
		s.tick()
	}
	s.wants(57)
}

// A rule looks back a week, of which the source reads an hour at once. It catches up all the
// same, and until then holds up nobody.
func TestCatchUpTakesShorterSpans(t *testing.T) {
	s := newScene(t, time.Minute)
	s.rows = append(s.rows, row{Exchange: rules.Exchange{
		TenantID: "tenant-0", ExecutionID: "days ago", StartTimeNS: s.now - 5*24*3600*second, EndTimeNS: new(s.now + second), Status: rules.Failed,
		DurationNS: 5 * 24 * 3600 * second,
	}, visible: []int64{s.now, s.now}})
	most := time.Duration(0)
	s.scans = func(q source.Scan) error {
		span := time.Duration(q.BeforeNS - q.After.StartTimeNS)
		if span > time.Hour+time.Minute {
			return errBroken
		}
		most = max(most, span)
		return nil
	}
	s.rule(uuid.UUID{15: 2}, "tenant-0", 7*24*time.Hour)
	s.fail("tenant-0", "new", 0)
	for range 20 {
		s.tick()
	}
	s.wants(3) // both rules of what is new, and what a look at the look-back showed
	for range 3600 {
		if s.tick(); len(s.state.backfills) == 0 {
			break
		}
	}
	if len(s.state.backfills) > 0 || most < 20*time.Minute {
		t.Errorf("%d rules are behind, and at most %v was read at once", len(s.state.backfills), most)
	}
	s.wants(3)
	s.calm()
}

// A rule that failed is evaluated again after it has read by a server that lags, while the
// partition remembers what another one showed.
func TestRecoveryByAServerThatLags(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.refused = theRule()
	s.fail("tenant-0", "poison", 0)
	for range 4 {
		s.tick()
	}
	s.fail("tenant-0", "x", 10*time.Minute)
	s.rows[1].visible[1] = s.now + 600*second
	for len(s.state.alerts) < 2 {
		s.tick()
	}
	s.refused, s.deaf = uuid.Nil, true
	s.pick = func() int { return 1 }
	for s.state.rules[theRule()].problem != "" {
		s.tick()
	}
	s.now = s.rows[1].visible[1]
	s.deaf = false
	for range 120 {
		s.tick()
	}
	s.wants(4)
}

// A new rule reads its look-back by a server that lags, while the partition remembers what
// another one showed.
func TestNewRuleByAServerThatLags(t *testing.T) {
	s := newScene(t, time.Hour)
	s.tick()
	s.fail("tenant-0", "x", 10*time.Minute)
	s.rows[0].visible[1] = s.now + 600*second
	for len(s.state.alerts) < 1 {
		s.tick()
	}
	s.deaf = true
	s.pick = func() int { return 1 }
	second := rules.Rule{ID: uuid.UUID{15: 2}, TenantID: "tenant-0", ArmedSinceNS: s.rows[0].StartTimeNS, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, WebhookIDs: []uuid.UUID{{1}},
	}}
	s.change(second, true)
	for s.tick(); len(s.state.backfills) > 0; {
		s.tick()
	}
	s.now = s.rows[0].visible[1]
	s.deaf = false
	for range 120 {
		s.tick()
	}
	s.wants(2)
}

// The database is so slow that it takes no more than a hundred alerts in the time that a pass
// has. Passes commit fewer at once, and get on.
func TestSlowDatabaseGetsSmallerCommits(t *testing.T) {
	s := newScene(t, time.Hour)
	s.committing = func(b evaluator.Batch) error {
		if len(b.Instances) > 100 {
			return fmt.Errorf("insert alerts: %w", context.DeadlineExceeded)
		}
		return nil
	}
	for i := range 3000 {
		s.fail("tenant-0", fmt.Sprint("x", i), time.Duration(i)*time.Millisecond)
	}
	for range 60 {
		s.attempt()
	}
	s.wants(3000)
}

// Somebody keeps the checkpoint locked while nothing is new, so that each commit takes all the time of its pass. A smaller page
// would need the same row: once it is free, pages are as large as before.
func TestLockedCheckpointLeavesPagesAsTheyAre(t *testing.T) {
	s := newScene(t, time.Hour)
	s.committing = func(evaluator.Batch) error { return fmt.Errorf("advance checkpoint: %w", context.DeadlineExceeded) }
	for range 20 {
		s.attempt()
	}
	s.committing = nil
	for i := range 3000 {
		s.fail("tenant-0", fmt.Sprint("x", i), time.Duration(i)*time.Microsecond)
	}
	scans := 0
	s.scans = func(source.Scan) error { scans++; return nil }
	s.tick()
	s.wants(3000)
	if scans > 4 {
		t.Errorf("3,000 exchanges were read in %d pages", scans)
	}
}

// The rows of the look-back cannot be counted. It is compared all the same.
func TestLookBackThatCannotBeCounted(t *testing.T) {
	s := newScene(t, 6*time.Hour)
	s.uncounted = true
	for range 30 {
		s.tick()
	}
	s.fail("tenant-0", "late", 10*time.Minute)
	s.fail("tenant-0", "later", 4*time.Hour)
	for range 15 {
		s.tick()
	}
	s.wants(1)
	for range 60 {
		s.tick()
	}
	s.wants(2)
	s.calm()
}

// The database refuses what a rule raises about the newest of what a week holds. The rule is
// left out until that is over, and does not come back in between because what is older is
// taken.
func TestRefusedRuleWithALongLookBack(t *testing.T) {
	s := newScene(t, 7*24*time.Hour)
	s.fail("tenant-0", "poison", 0)
	s.refused = theRule()
	s.tick()
	recovered := 0
	s.committing = func(b evaluator.Batch) error {
		if len(b.Instances) == 0 { // else it is refused
			for _, h := range b.Health {
				if !h.Failed {
					recovered++
				}
			}
		}
		return nil
	}
	for range 120 {
		s.tick()
	}
	if recovered > 0 {
		t.Errorf("the rule was taken for well %d times", recovered)
	}
	s.refused = uuid.Nil
	for range 400 {
		s.tick()
	}
	s.wants(1)
	if s.state.rules[theRule()].problem != "" || len(s.state.backfills) > 0 {
		t.Errorf("%+v, %d rules are behind", s.state.rules[theRule()], len(s.state.backfills))
	}
}

// Rules of two tenants are behind together. What is old of the one cannot be read, and the
// other one catches up.
func TestTenantThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	s := newScene(t, time.Minute)
	s.rule(uuid.UUID{15: 2}, "tenant-2", 3*time.Hour)
	s.rule(uuid.UUID{15: 3}, "tenant-0", 3*time.Hour)
	s.scans = func(q source.Scan) error {
		if slices.Contains(q.Tenants.Names, "tenant-2") && q.After.StartTimeNS < begin-3600*second {
			return errBroken
		}
		return nil
	}
	for range 60 {
		s.tick()
	}
	if _, behind := s.state.backfills[uuid.UUID{15: 3}]; behind {
		t.Error("the other tenant's rule does not catch up")
	}
	if _, behind := s.state.backfills[uuid.UUID{15: 2}]; !behind {
		t.Error("what cannot be read was passed over")
	}
	s.calm()
}

// Where only one server shows anything, none lags, and a rule that recovers costs nobody the
// memory of what was evaluated.
func TestRecoveryBesideOneServer(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.fail("tenant-0", "early", 10*time.Minute)
	s.refused = theRule()
	for range 40 {
		s.tick()
	}
	older := 0
	s.scans = func(q source.Scan) error {
		if q.Limit >= 10_000 && q.EndedSinceNS == 0 {
			older++
		}
		return nil
	}
	s.refused = uuid.Nil
	for range 400 {
		s.tick()
	}
	s.wants(2)
	if older > 0 {
		t.Errorf("the look-back was evaluated again, in %d scans", older)
	}
}

// halfRead is an evaluation of window rules that takes a step, and then cannot read the source.
type halfRead struct{ stepping }

func (w *halfRead) Evaluate(ctx context.Context, request window.Request) window.Outcome {
	out := w.stepping.Evaluate(ctx, request)
	out.SourceErr = errBroken
	return out
}

// Window rules cannot be counted, but for some. The steps of these are written, and the rest
// of the pass goes on.
func TestWindowsThatCannotBeRead(t *testing.T) {
	s := newScene(t, time.Hour)
	s.change(rules.Rule{ID: uuid.UUID{15: 9}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.CountInWindow, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
	}}, false)
	s.e = s.start("b", evaluator.Options{Windows: &halfRead{}})
	s.free("")
	steps := 0
	s.committing = func(b evaluator.Batch) error {
		steps += len(b.Changes)
		return nil
	}
	for range 30 {
		s.attempt()
	}
	s.fail("tenant-0", "late", 10*time.Minute)
	for range 80 {
		s.attempt()
	}
	if steps < 100 {
		t.Errorf("%d steps were written", steps)
	}
	if s.announced["failed"] != 1 {
		t.Errorf("announced %v", s.announced)
	}
	s.wants(1)
}

// The first rule of a partition begins by the source's clock, which somebody has to have read.
func TestClockOfAPartitionWithoutRules(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.ahead = 3 * time.Minute
	s.e = s.start("a", evaluator.Options{})
	s.tick()
	for n, c := range s.state.checkpoints {
		if c.ClockOffset != -s.ahead {
			t.Errorf("partition %d: the source's clock is %v ahead of the store's", n, c.ClockOffset)
		}
	}
	commits := len(s.states)
	for range 300 {
		s.tick()
	}
	if len(s.states) > commits {
		t.Errorf("%d commits of partitions without rules", len(s.states)-commits)
	}
	s.free("")
	s.broken = true
	s.e = s.start("b", evaluator.Options{})
	s.tick()
	if c := s.state.checkpoints[0]; c.ClockOffset != -s.ahead {
		t.Errorf("another holder, which cannot read the clock, stores %v", c.ClockOffset)
	}
}

// A pass that takes long delays no other partition, as far as there are workers.
func TestWorkers(t *testing.T) {
	for workers, want := range map[int]bool{1: false, 2: true} {
		s := &scene{model: newModel(), t: t}
		s.rule(theRule(), "tenant-0", time.Hour)
		s.rule(uuid.UUID{15: 2}, "tenant-1", time.Hour)
		source := &stuck{model: s.model, asked: make(chan struct{}, 1), goOn: make(chan struct{}), released: make(chan []int, 2)}
		others := make(chan struct{}, 1000)
		s.committing = func(b evaluator.Batch) error {
			if b.Partition == 0 {
				others <- struct{}{}
			}
			return nil
		}
		e := s.start("a", evaluator.Options{Interval: time.Millisecond})
		e.Source, e.Store, e.Workers = source, source, workers
		cancel, done := running(t, e)
		<-source.asked
		for len(others) > 0 {
			<-others
		}
		if want {
			for range 3 {
				<-others
			}
		} else {
			select {
			case <-others:
				t.Error("one worker makes two passes at once")
			case <-time.After(100 * time.Millisecond):
			}
		}
		cancel()
		close(source.goOn)
		<-done
	}
}
