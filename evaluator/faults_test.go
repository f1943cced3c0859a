package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/internal/fault"
	"tocsin/rules"
)

var errLost = errors.New("the connection to the store is lost")

// attempt lets a second pass, and makes a pass that may fail.
func (s *scene) attempt() evaluator.Result {
	s.now += second
	result, _ := s.e.Tick(context.Background())
	return result
}

// A rule fails, and the commit that records it does not come about: nothing stored says
// that the rule has anything to catch up with, so the partition must not leave it out.
func TestFailureThatIsNotWrittenIsFoundAgain(t *testing.T) {
	s := newScene(t, time.Hour)
	s.refused = theRule()
	lost := false
	s.committing = func(b evaluator.Batch) error {
		if !b.Health[theRule()].Failed || lost {
			return nil
		}
		lost = true
		return errLost
	}
	s.fail("tenant-0", "poison", 0)
	for range 10 {
		s.attempt()
	}
	if !lost || s.state.rules[theRule()].problem == "" {
		t.Fatalf("lost %v, problem %q", lost, s.state.rules[theRule()].problem)
	}
	s.refused = uuid.Nil
	for range 400 {
		s.tick()
	}
	s.wants(1)
}

// What a rule reads for itself may be answered by a server that lags behind the one by
// which the partition has evaluated.
func TestCatchUpByAServerThatLags(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.refused = theRule()
	s.fail("tenant-0", "poison", 0)
	for range 4 {
		s.tick()
	}
	s.refused = uuid.Nil
	s.fail("tenant-0", "x", 0)
	s.rows[1].visible[1] = s.now + 60*second
	asked := 0
	s.pick = func() int {
		if s.scanning == nil || s.scanning.Limit < 10_000 {
			return 0
		}
		asked++
		return 1
	}
	for range 5 {
		s.tick()
	}
	s.pick = nil
	for range 20 {
		s.tick()
	}
	if asked == 0 {
		t.Fatal("the rule reads nothing for itself")
	}
	s.wants(4)
}

// A rule that fails while it catches up has failed, however long the others take: what
// was refused is not behind it.
func TestRuleThatFailsWhileItCatchesUp(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	late := time.Duration(0)
	clock := func() time.Time { return time.Unix(0, s.now).Add(late) }
	s.e = s.start("a", evaluator.Options{LeaseFor: time.Hour, Clock: clock})
	s.fail("tenant-0", "x", 10*time.Minute)
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.refused = uuid.UUID{15: 2}
	s.committing = func(evaluator.Batch) error {
		late += 10 * time.Second // longer than until the rule is tried again
		return nil
	}
	for range 3 {
		s.tick()
	}
	s.wants(1)
	s.refused, s.committing = uuid.Nil, nil
	for range 400 {
		s.tick()
	}
	s.wants(2)
}

// A rule whose alert about one exchange is refused has not recovered because another process
// tries it, and reads first what nobody refuses.
func TestRestartIsNoRecovery(t *testing.T) {
	s := newScene(t, time.Hour)
	start := func(replica string) {
		s.free("")
		s.e = s.start(replica, evaluator.Options{PageSize: 1})
		for range 10 {
			s.tick()
		}
	}
	poisoned, recoveries := true, 0
	s.committing = func(b evaluator.Batch) error {
		if poisoned && slices.ContainsFunc(b.Instances, func(a alerts.Instance) bool { return a.Exchange.ExecutionID == "poison" }) {
			return errRefused
		}
		if h, there := b.Health[theRule()]; there && !h.Failed {
			recoveries++
		}
		return nil
	}
	for i := range 50 {
		s.fail("tenant-0", fmt.Sprint("fine", i), time.Duration(60-i)*time.Second)
	}
	s.fail("tenant-0", "poison", 0)
	start("b")
	if s.state.rules[theRule()].problem == "" {
		t.Fatal("the rule does not fail")
	}
	for _, replica := range []string{"c", "d"} {
		if start(replica); recoveries > 0 {
			t.Fatalf("recovered %d times although the alert is refused", recoveries)
		}
	}
	poisoned = false
	for range 400 {
		s.tick()
	}
	if s.wants(51); recoveries != 1 {
		t.Errorf("recovered %d times", recoveries)
	}
}

// brittle is a model whose scans panic.
type brittle struct{ *model }

func (brittle) Scan(context.Context, source.Scan) (source.Page, error) { panic("poison") }

// A pass that panics has failed like any other: it is counted, with its lag.
func TestPanicIsAFailedPass(t *testing.T) {
	s := newScene(t, time.Hour)
	s.e.Source = brittle{s.model}
	s.fail("tenant-0", "x", 0)
	var last evaluator.Result
	var err error
	for range 5 {
		s.now += second
		last, err = s.e.Tick(context.Background())
	}
	if err == nil || last.Lag < 4*time.Second {
		t.Errorf("error %v, lag %v after 5 s", err, last.Lag)
	}
	s.e.Source = s.model
	s.tick()
	s.wants(1)
}

// observing is an observer that panics in one of its methods.
type observing struct{ passed, gaveUp bool }

func (o *observing) Passed(int, evaluator.Result) {
	if o.passed {
		panic("poison")
	}
}

func (o *observing) GaveUp(int) {
	if o.gaveUp {
		panic("poison")
	}
}
func (*observing) Committed(evaluator.Timing) {}

// A bug around the passes ends what it hits. After it, all partitions that the replica holds are evaluated.
func TestPanicAroundAPass(t *testing.T) {
	for name, arm := range map[string]func(s *scene, o *observing){
		"another replica takes a partition": func(s *scene, o *observing) {
			o.gaveUp = true
			c := s.state.checkpoints[1]
			c.owner = "b"
			s.state.checkpoints[1] = c
		},
		"a pass ends": func(_ *scene, o *observing) { o.passed = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, time.Hour)
			s.rule(uuid.UUID{15: 2}, "tenant-1", time.Hour)
			s.tick()
			o := &observing{}
			s.e.Observer = o
			arm(s, o)
			s.fail("tenant-0", "a", 0)
			s.now += second
			err := fault.Guard(func() error { _, err := s.e.Tick(context.Background()); return err })
			if !fault.Panicked(err) {
				t.Fatalf("the pass ended with %v, want a panic", err)
			}
			*o = observing{}
			for range 5 {
				s.tick()
			}
			s.wants(1)
		})
	}
}

// allergic is a model whose texts panic over an exchange, for one rule.
type allergic struct {
	*model

	rule uuid.UUID
}

func (a *allergic) Texts(r *rules.Rule, e *rules.Exchange) (title, message string, problem error) {
	if r.ID == a.rule && e.ExecutionID == "poison" {
		panic("an exchange that nobody expected")
	}
	return "title", "message", nil
}

// A rule panics over an exchange. It fails, as the record says, and everything else goes on: the
// partition, other rules, and their catching up. Nothing of the rule is lost once it is repaired, nor
// is anything that it raised before the exchange.
func TestExchangeOverWhichARulePanics(t *testing.T) {
	// With large pages, what comes before the exchange is in the same page.
	for _, size := range []int{1, 1000} {
		panicsOver(t, size)
	}
}

func panicsOver(t *testing.T, pageSize int) {
	t.Helper()
	s := newScene(t, time.Hour)
	other := uuid.UUID{15: 2}
	s.rule(other, "tenant-0", time.Hour)
	texts := &allergic{s.model, theRule()}
	start := func(replica string) {
		s.free("")
		s.e = s.start(replica, evaluator.Options{PageSize: pageSize})
		s.e.Texts = texts
	}
	start("b")
	recoveries := 0
	s.committing = func(b evaluator.Batch) error {
		if h, there := b.Health[theRule()]; there && !h.Failed {
			recoveries++
		}
		return nil
	}
	const before = 50
	for i := range before {
		s.fail("tenant-0", fmt.Sprint("before ", i), time.Duration(60-i)*time.Second)
	}
	s.fail("tenant-0", "poison", 2*time.Second)
	s.fail("tenant-0", "after", time.Second)
	s.tick()
	s.wants(2*before + 2) // all of the other rule, and of this one what comes before the exchange
	if problem := s.state.rules[theRule()].problem; !strings.Contains(problem, `the exchange "poison": panic: `) {
		t.Fatalf("problem %q", problem)
	}
	s.fail("tenant-0", "later", 0)
	for range 30 {
		if result := s.tick(); result.Lag > 2*time.Second {
			t.Fatalf("lag %v", result.Lag)
		}
	}
	start("c") // another process tries it as well
	for range 30 {
		s.tick()
	}
	s.wants(2*before + 3)
	if recoveries > 0 {
		t.Errorf("recovered %d times although it panics", recoveries)
	}
	texts.rule = uuid.Nil
	for range 400 {
		s.tick()
	}
	if s.wants(2*before + 6); recoveries != 1 {
		t.Errorf("recovered %d times", recoveries)
	}
}

// A replay that panics over an exchange has failed, and says so. The rule goes on.
func TestReplayThatPanics(t *testing.T) {
	s := newScene(t, time.Hour)
	from, to := s.past(3)
	s.rows[1].ExecutionID = "poison"
	s.e.Texts = &allergic{s.model, theRule()}
	s.tick()
	p := s.replayed(s.again(theRule(), from, to, ruleset.ReplayEach))
	if !p.Failed || !strings.Contains(p.Problem, `"poison": panic: `) || s.state.rules[theRule()].problem != "" {
		t.Errorf("replay %+v, problem of the rule %q", p, s.state.rules[theRule()].problem)
	}
	s.fail("tenant-0", "new", 0)
	s.tick()
	s.wants(1)
}

// stepping is a window rule's evaluation with a step to take.
type stepping struct{ evaluated int }

func (w *stepping) Evaluate(_ context.Context, request window.Request) (out window.Outcome) {
	for _, r := range request.Rules {
		w.evaluated++
		out.Evaluated = append(out.Evaluated, r.ID)
		change := window.Change{}
		change.Instance.RuleID = r.ID
		out.Changes = append(out.Changes, change)
	}
	return out
}

// Steps of window rules that were not written are taken by the next pass, not after the
// rule's interval.
func TestWindowStepsThatAreNotWritten(t *testing.T) {
	s := newScene(t, time.Hour)
	windows := &stepping{}
	s.e = s.start("b", evaluator.Options{Windows: windows})
	s.free("")
	s.change(rules.Rule{ID: uuid.UUID{15: 9}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.CountInWindow, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 3600,
	}}, false)
	lost := false
	s.committing = func(b evaluator.Batch) error {
		if len(b.Changes) == 0 || lost {
			return nil
		}
		lost = true
		return errLost
	}
	for range 3 {
		s.attempt()
	}
	if windows.evaluated != 2 {
		t.Errorf("evaluated %d times, want once again", windows.evaluated)
	}
}

// A partition without rules that evaluate exchanges has nothing to evaluate behind its cursor,
// however long it was paused.
func TestWindowRulesAloneHaveNoBacklog(t *testing.T) {
	s := newScene(t, time.Hour)
	s.change(rules.Rule{ID: uuid.UUID{15: 9}, TenantID: "tenant-0", ArmedSinceNS: s.now, Version: 1, Definition: rules.Definition{
		Enabled: true, FireMode: rules.CountInWindow, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
	}}, false)
	gone := s.state.rules[theRule()].rule
	gone.Enabled = false
	s.change(gone, false)
	s.e = s.start("a", evaluator.Options{Windows: &punctual{}})
	s.tick()
	s.now += 10 * time.Minute.Nanoseconds()
	var last evaluator.Result
	for range 3 {
		last = s.tick()
	}
	if c := s.state.checkpoints[0]; last.Backlog != 0 || c.Backfill != nil {
		t.Errorf("backlog %v, mark %+v", last.Backlog, c.Backfill)
	}
}

// How far a partition lags is reported by passes that fail as well.
func TestFailedPassReportsItsLag(t *testing.T) {
	s := newScene(t, time.Hour)
	s.mute = true
	s.fail("tenant-0", "x", 0)
	var last evaluator.Result
	for range 5 {
		last = s.attempt()
	}
	if last.Lag < 4*time.Second {
		t.Errorf("lag %v after 5 s", last.Lag)
	}
	s.mute = false
	for range 20 {
		last = s.attempt()
	}
	if last.Lag != 0 || last.Backlog != 0 {
		t.Errorf("lag %v and backlog %v although everything is evaluated", last.Lag, last.Backlog)
	}
	s.deaf = true
	for range 20 {
		last = s.attempt()
	}
	if last.Lag != 0 || last.Backlog == 0 {
		t.Errorf("lag %v and backlog %v while the look-back is not looked at", last.Lag, last.Backlog)
	}
}

// A partition whose rules are disabled does not hold up the end of the outage for another one. Its own ends when the source
// is read for it again.
func TestSourceRecoversForEachPartition(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-1", time.Hour)
	s.tick()
	s.broken = true
	for range 40 {
		s.attempt()
	}
	gone := s.state.rules[theRule()].rule
	gone.Enabled = false
	s.change(gone, false)
	s.broken = false
	for range 3 {
		s.tick()
	}
	if s.announced["failed"] != 2 || s.announced["recovered"] != 1 || !s.failing[0] {
		t.Errorf("announced %v, want two failures and one end", s.announced)
	}
	gone.Enabled = true
	s.change(gone, false)
	for range 3 {
		s.tick()
	}
	if s.announced["failed"] != 2 || s.announced["recovered"] != 2 {
		t.Errorf("announced %v, want two of each", s.announced)
	}
}

// An announcement that hangs ends with its time, and the pass with it.
func TestAnnouncementThatHangs(t *testing.T) {
	s := newScene(t, time.Hour)
	s.free("")
	s.e = s.start("b", evaluator.Options{LeaseFor: 300 * time.Millisecond})
	s.broken, s.hang = true, true
	for range 32 {
		s.attempt()
	}
	s.hang = false
	s.attempt()
	if s.announced["failed"] != 1 {
		t.Errorf("announced %v", s.announced)
	}
}

// Tenants take turns in catching up.
func TestTenantsTakeTurnsInCatchingUp(t *testing.T) {
	looks := int64(0)
	s := &scene{model: newModel(), t: t}
	clock := func() time.Time { looks++; return time.Unix(0, s.now).Add(time.Duration(looks) * time.Millisecond) }
	start := func(replica string) *evaluator.Evaluator {
		return s.start(replica, evaluator.Options{PageSize: 5, Interval: 10 * time.Millisecond, LeaseFor: time.Minute, Clock: clock})
	}
	s.e = start("a")
	s.rule(theRule(), "tenant-0", 0)
	s.rule(uuid.UUID{15: 2}, "tenant-2", 0)
	s.tick()
	for i := range 2000 {
		s.fail("tenant-0", fmt.Sprint("flood", i), 50*time.Minute-time.Duration(i)*time.Second)
	}
	s.fail("tenant-2", "alone", 5*time.Minute)
	for id, back := range map[uuid.UUID]time.Duration{theRule(): time.Hour, {15: 2}: 10 * time.Minute} {
		s.state.backfills[id] = ruleset.Backfill{
			RuleID: id, At: cursor.Position{StartTimeNS: s.now - back.Nanoseconds()}, Until: s.state.checkpoints[0].Cursor,
		}
	}
	s.free("")
	s.e = start("b")
	for range 3 {
		s.tick()
	}
	if n := len(s.state.alerts); !s.has(uuid.UUID{15: 2}, "alone") || n > 1000 {
		t.Errorf("the other tenant waits, or nothing is left to wait for: %d alerts", n)
	}
	for range 200 {
		s.tick()
	}
	s.wants(2001)
}

// stuck is a model of which the questions of one tenant wait.
type stuck struct {
	*model
	mu       sync.Mutex
	asked    chan struct{}
	goOn     chan struct{}
	released chan []int
}

func (s *stuck) Observe(ctx context.Context, q source.ObserveQuery) (source.Observation, error) {
	if slices.Contains(q.Tenants.Names, "tenant-1") {
		select {
		case s.asked <- struct{}{}:
		default:
		}
		<-s.goOn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Observe(ctx, q)
}

func (s *stuck) RowCounts(ctx context.Context, q source.RowCountQuery) (source.RowCounts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.RowCounts(ctx, q)
}

func (s *stuck) Scan(ctx context.Context, q source.Scan) (source.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Scan(ctx, q)
}

func (s *stuck) Hold(ctx context.Context, r evaluator.HoldRequest) (evaluator.Holding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Hold(ctx, r)
}

func (s *stuck) Rules(ctx context.Context, partition int, after int64) (ruleset.Changed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Rules(ctx, partition, after)
}

func (s *stuck) Commit(ctx context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Commit(ctx, b)
}

func (s *stuck) Release(_ context.Context, _ string, partitions []int) error {
	s.released <- partitions
	return nil
}

// running has an evaluator run until cancel is called; done is closed when it has ended.
func running(t *testing.T, e *evaluator.Evaluator) (cancel context.CancelFunc, done <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	return cancel, ended
}

// A process that ends gives up at once what it is not busy with.
func TestIdlePartitionsAreReleasedFirst(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-1", time.Hour)
	source := &stuck{model: s.model, asked: make(chan struct{}, 1), goOn: make(chan struct{}), released: make(chan []int, 2)}
	e := s.start("a", evaluator.Options{})
	e.Source, e.Store, e.Workers = source, source, 8
	cancel, done := running(t, e)
	<-source.asked
	cancel()
	first := <-source.released
	if slices.Contains(first, 1) {
		t.Errorf("released %v under a pass", first)
	}
	close(source.goOn)
	<-done
	if last := <-source.released; !slices.Contains(append(first, last...), 0) || !slices.Contains(last, 1) {
		t.Errorf("released %v, then %v", first, last)
	}
}

// halted is a model of which the questions of every tenant wait.
type halted struct{ *stuck }

func (h halted) Observe(ctx context.Context, q source.ObserveQuery) (source.Observation, error) {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-h.goOn
	return h.stuck.Observe(ctx, q)
}

// A pass that waits for a worker when the process ends does not begin.
func TestPassThatWaitsForAWorkerDoesNotBegin(t *testing.T) {
	s := &scene{model: newModel(), t: t}
	s.rule(theRule(), "tenant-0", time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-1", time.Hour)
	source := halted{&stuck{model: s.model, asked: make(chan struct{}, 1), goOn: make(chan struct{}), released: make(chan []int, 2)}}
	e := s.start("a", evaluator.Options{})
	e.Source, e.Store = source, source
	passed := make(chan int, 2)
	e.Observer = counting{passed: passed}
	cancel, done := running(t, e)
	<-source.asked
	cancel()
	close(source.goOn)
	<-done
	if first, last := <-source.released, <-source.released; len(first)+len(last) != 2 || len(passed) != 1 {
		t.Errorf("%d passes; released %v, then %v", len(passed), first, last)
	}
}

// counting observes passes.
type counting struct{ passed chan int }

func (c counting) Passed(partition int, _ evaluator.Result) { c.passed <- partition }
func (counting) GaveUp(int)                                 {}
func (counting) Committed(evaluator.Timing)                 {}

// Two tenants that are behind together do not keep a third one waiting.
func TestTenantsBehindTogetherTakeTurns(t *testing.T) {
	looks := int64(0)
	s := &scene{model: newModel(), t: t}
	clock := func() time.Time { looks++; return time.Unix(0, s.now).Add(time.Duration(looks) * time.Millisecond) }
	start := func(replica string) *evaluator.Evaluator {
		return s.start(replica, evaluator.Options{PageSize: 5, Interval: 10 * time.Millisecond, LeaseFor: time.Minute, Clock: clock})
	}
	s.e = start("a")
	tenants := map[uuid.UUID]string{theRule(): "tenant-0", {15: 2}: "tenant-2", {15: 3}: "tenant-4"}
	for id, tenant := range tenants {
		s.rule(id, tenant, 0)
	}
	s.tick()
	for i := range 1000 {
		s.fail("tenant-0", fmt.Sprint("flood", i), 50*time.Minute-time.Duration(i)*time.Second)
		s.fail("tenant-2", fmt.Sprint("flood", i), 50*time.Minute-time.Duration(i)*time.Second)
	}
	s.fail("tenant-4", "alone", 5*time.Minute)
	for id, tenant := range tenants {
		back := time.Hour
		if tenant == "tenant-4" {
			back = 10 * time.Minute
		}
		s.state.backfills[id] = ruleset.Backfill{
			RuleID: id, At: cursor.Position{StartTimeNS: s.now - back.Nanoseconds()}, Until: s.state.checkpoints[0].Cursor,
		}
	}
	s.free("")
	s.e = start("b")
	for range 5 {
		s.tick()
	}
	if n := len(s.state.alerts); !s.has(uuid.UUID{15: 3}, "alone") || n > 1000 {
		t.Errorf("the third tenant waits, or nothing is left to wait for: %d alerts", n)
	}
}
