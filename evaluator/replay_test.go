package evaluator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
)

// past shows failures of tenant-0 that ended long before any rule was armed, one a minute,
// the first of them at the beginning of a range.
func (s *scene) past(n int) (fromNS, toNS int64) {
	now := s.now
	fromNS = now - 40*60*60*second
	for i := range n {
		s.now = fromNS + int64(i)*60*second
		s.fail("tenant-0", fmt.Sprint("past ", i), 0)
	}
	toNS, s.now = s.now+1, now
	return fromNS, toNS
}

// again has a rule evaluate a range again.
func (s *scene) again(rule uuid.UUID, fromNS, toNS int64, messages ruleset.ReplayMessages) uuid.UUID {
	s.t.Helper()
	s.replays++
	id := uuid.UUID{9, 15: byte(s.replays)}
	s.state.replays[id] = ruleset.ReplayStep{Replay: ruleset.Replay{
		ID: id, RuleID: rule, At: cursor.Position{StartTimeNS: fromNS}, ToNS: toNS, Messages: messages,
	}}
	s.change(s.state.rules[rule].rule, false)
	return id
}

// replayed makes passes until a replay is over.
func (s *scene) replayed(id uuid.UUID) ruleset.ReplayStep {
	s.t.Helper()
	for range 1000 {
		if p := s.state.replays[id]; p.Done() || p.Failed {
			return p
		}
		s.tick()
	}
	s.t.Fatalf("the replay goes on: %+v", s.state.replays[id])
	return ruleset.ReplayStep{}
}

// hurried starts an evaluator that has time for one page of ten exchanges in each pass.
func (s *scene) hurried(replica string) *evaluator.Evaluator {
	s.t.Helper()
	looks := int64(0)
	return s.start(replica, evaluator.Options{PageSize: 1, Interval: time.Nanosecond, Clock: func() time.Time {
		looks++
		return time.Unix(0, s.now+looks)
	}})
}

func (s *scene) notified() (n int) {
	for _, a := range s.state.alerts {
		n += a.notified
	}
	return n
}

// A replay raises what the rule was never armed for, once, and notifies as it says.
func TestReplay(t *testing.T) {
	for messages, notified := range map[ruleset.ReplayMessages]int{ruleset.ReplayNone: 0, ruleset.ReplayDigest: 25, ruleset.ReplayEach: 25} {
		s := newScene(t, time.Hour)
		from, to := s.past(25)
		s.fail("tenant-0", "new", 0)
		s.tick()
		s.wants(1)
		own := s.notified()
		p := s.replayed(s.again(theRule(), from, to, messages))
		s.wants(26)
		if p.Matched != 25 || s.notified()-own != notified {
			t.Errorf("%s: %d matched, %d messages", messages, p.Matched, s.notified()-own)
		}
		before := s.state.copy().alerts
		s.replayed(s.again(theRule(), from, to, messages))
		for id, a := range s.state.alerts {
			if was, there := before[id]; !there || was != a {
				t.Errorf("%s: replayed again, alert %s is another one", messages, id)
			}
		}
		s.replayed(s.again(theRule(), from+1, to-1, messages))
		s.wants(26)
	}
}

// The range is one of start times, from its beginning to before its end.
func TestReplayHasBounds(t *testing.T) {
	s := newScene(t, time.Hour)
	from, to := s.past(25)
	s.replayed(s.again(theRule(), from+1, to-1, ruleset.ReplayNone))
	s.wants(23)
}

// What the rule may still raise by itself keeps its messages, whichever comes first.
func TestReplayKeepsMessages(t *testing.T) {
	s := newScene(t, time.Hour)
	for range 30 {
		s.tick()
	}
	s.deaf = true // nobody looks at the older look-back
	s.fail("tenant-0", "late", 20*time.Minute)
	s.tick()
	s.wants(0)
	s.replayed(s.again(theRule(), s.now-60*60*second, s.now, ruleset.ReplayNone))
	s.wants(1)
	s.deaf = false
	for range 120 {
		s.tick()
	}
	s.wants(1)
	if s.notified() != 1 {
		t.Errorf("%d messages, want 1", s.notified())
	}
}

// A process that dies between two pages leaves the rest to the next one.
func TestReplaySurvivesAKill(t *testing.T) {
	for kill := range 8 {
		s := newScene(t, time.Hour)
		s.e = s.hurried("a")
		s.free("")
		s.tick()
		from, to := s.past(45)
		id := s.again(theRule(), from, to, ruleset.ReplayEach)
		for range kill {
			s.tick()
		}
		reached := s.state.replays[id].At
		s.free("")
		s.e = s.hurried("b")
		s.tick()
		if at := s.state.replays[id].At; reached.After(at) {
			t.Errorf("the replay went back from %s to %s", reached, at)
		}
		if kill > 1 && (reached.StartTimeNS <= from || reached.StartTimeNS >= to) && kill < 4 {
			t.Errorf("after %d passes the replay is at %s", kill, reached)
		}
		if p := s.replayed(id); p.Matched != 45 {
			t.Errorf("%d matched, want 45", p.Matched)
		}
		s.wants(45)
		if s.notified() != 45 {
			t.Errorf("%d messages, want 45", s.notified())
		}
	}
}

// A failover that takes the commits of a replay back leads to the same alerts.
func TestReplaySurvivesAFailover(t *testing.T) {
	s := newScene(t, time.Hour)
	from, to := s.past(25)
	id := s.again(theRule(), from, to, ruleset.ReplayEach)
	commits := len(s.states)
	s.replayed(id)
	before := s.state.copy().alerts
	s.failover(len(s.states) - commits)
	s.replayed(id)
	s.wants(25)
	for id := range before {
		if _, same := s.state.alerts[id]; !same {
			t.Errorf("alert %s came back with another id", id)
		}
	}
}

// What the database refuses ends the replay; the rule goes on.
func TestReplayFails(t *testing.T) {
	s := newScene(t, time.Hour)
	from, to := s.past(25)
	s.refused = theRule()
	p := s.replayed(s.again(theRule(), from, to, ruleset.ReplayEach))
	if !p.Failed || !strings.Contains(p.Problem, "refuses") || p.At.StartTimeNS != from {
		t.Errorf("the replay is %+v", p)
	}
	if problem := s.state.rules[theRule()].problem; problem != "" {
		t.Errorf("the rule fails: %s", problem)
	}
	s.refused = uuid.Nil
	s.fail("tenant-0", "new", 0)
	s.tick()
	s.wants(1)
}

// While the source cannot be scanned, the replay waits and says why, and the pass goes on.
func TestReplayWaitsForTheSource(t *testing.T) {
	s := newScene(t, time.Hour)
	from, to := s.past(25)
	s.tick()
	s.mute = true
	id := s.again(theRule(), from, to, ruleset.ReplayEach)
	written := 0
	s.committing = func(b evaluator.Batch) error {
		if b.Replay != nil {
			written++
		}
		return nil
	}
	for range 60 {
		if result := s.tick(); !result.Observed {
			t.Fatal("the pass did not observe")
		}
	}
	if written != 1 {
		t.Errorf("it was written %d times why the replay waits", written)
	}
	if p := s.state.replays[id]; p.Problem == "" || p.Failed || p.At.StartTimeNS != from {
		t.Errorf("the replay is %+v", p)
	}
	if s.announced["failed"] > 0 {
		t.Error("the replay had the source fail")
	}
	s.mute = false
	if p := s.replayed(id); p.Problem != "" {
		t.Errorf("the replay still says %q", p.Problem)
	}
	s.wants(25)
}

// The source needs longer than an interval for any scan, however little it reads, and at first does not answer at all.
// Replays end all the same, without reading the shorter and shorter ranges that they had tried. What is new waits for at
// most one of their pages within five seconds.
func TestReplaysFromASlowSource(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	from, to := s.past(25)
	s.tick()
	const takes, unanswered = 3 * second / 2, 8
	began, pages := int64(0), 0
	s.scans = func(q source.Scan) error {
		if q.Narrow != nil {
			if pages++; s.now-began < 5*second {
				t.Error("two pages within five seconds")
			}
			began = s.now
		}
		if q.Narrow != nil && pages <= unanswered || s.within < time.Duration(takes) {
			s.now += s.within.Round(time.Second / 4).Nanoseconds()
			return errBroken
		}
		s.now += takes
		return nil
	}
	ids := []uuid.UUID{s.again(theRule(), from, to, ruleset.ReplayEach), s.again(uuid.UUID{15: 2}, from, to, ruleset.ReplayEach)}
	passes := 0
	for ended := 0; passes < 300 && ended < len(ids); passes++ {
		s.fail("tenant-0", fmt.Sprint("new ", passes), 0)
		if s.tick(); !s.has(theRule(), fmt.Sprint("new ", passes)) {
			t.Fatalf("pass %d: what is new waits", passes)
		}
		ended = 0
		for _, id := range ids {
			if p := s.state.replays[id]; p.Done() && p.Problem == "" {
				ended++
			}
		}
	}
	if pages > unanswered+20 {
		t.Errorf("%d pages in %d passes", pages, passes)
	}
	s.wants(2 * (25 + passes))
}

// Another server answers than the one that the pass has observed. The replay waits, rather than to ask all the time.
func TestReplayWaitsForTheServer(t *testing.T) {
	s := newScene(t, time.Hour)
	from, to := s.past(25)
	asked := 0
	s.scans = func(q source.Scan) error {
		if q.Narrow != nil {
			s.now += second / 100
			asked++
		}
		return nil
	}
	server := 1
	s.pick = func() int {
		if s.scanning != nil && s.scanning.Narrow != nil {
			return server
		}
		return 0
	}
	id := s.again(theRule(), from, to, ruleset.ReplayEach)
	for range 9 {
		s.tick()
	}
	if asked != 8 { // four times, and again after five seconds
		t.Errorf("asked %d times in nine seconds", asked)
	}
	if p := s.state.replays[id]; p.Problem != "" || p.At.StartTimeNS != from {
		t.Errorf("the replay is %+v", p)
	}
	server = 0
	s.replayed(id)
	s.wants(25)
}

// Replays of several rules take turns, and nothing new waits for them.
func TestReplaysTakeTurns(t *testing.T) {
	s := newScene(t, time.Hour)
	s.rule(uuid.UUID{15: 2}, "tenant-0", time.Hour)
	s.e = s.hurried("a")
	s.free("")
	s.tick()
	s.tick()
	from, to := s.past(60)
	one, other := s.again(theRule(), from, to, ruleset.ReplayNone), s.again(uuid.UUID{15: 2}, from, to, ruleset.ReplayNone)
	s.fail("tenant-0", "new", 0)
	for range 7 { // each page takes longer than this interval, and then all replays pause
		s.tick()
	}
	if s.state.replays[one].At.StartTimeNS == from || s.state.replays[other].At.StartTimeNS == from {
		t.Error("a replay waits for the other one to end")
	}
	if !s.has(theRule(), "new") || !s.has(uuid.UUID{15: 2}, "new") {
		t.Error("what is new waits for replays")
	}
	s.replayed(one)
	s.replayed(other)
	s.wants(122)
}

// A replay that is over meanwhile raises nothing more.
func TestReplayThatIsOver(t *testing.T) {
	s := newScene(t, time.Hour)
	s.e = s.hurried("a")
	s.free("")
	s.tick()
	from, to := s.past(60)
	id := s.again(theRule(), from, to, ruleset.ReplayEach)
	s.tick()
	delete(s.state.replays, id)
	s.change(s.state.rules[theRule()].rule, false)
	raised := len(s.state.alerts)
	if raised == 0 || raised == 60 {
		t.Fatalf("%d alerts", raised)
	}
	for range 10 {
		s.tick()
	}
	s.wants(raised)
}
