package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// results keeps the result of the last pass over each partition.
type results map[int]evaluator.Result

func (r results) Passed(partition int, result evaluator.Result) { r[partition] = result }

func (r results) GaveUp(partition int) { delete(r, partition) }

func (r results) Committed(evaluator.Timing) {}

// A pass that observes and then fails tells how far behind it is as one that succeeds does:
// with figures of zero nobody would see that it fails each time.
func TestFailedPassReportsHowFarBehindItIs(t *testing.T) {
	s := newScene(t, time.Hour)
	s.free("")
	told := results{}
	s.e = s.start("b", evaluator.Options{Observer: told})
	for range 15 {
		s.tick()
	}
	if r := told[0]; r.Lag != 0 || r.Backlog != 0 || !r.Observed || r.Resting {
		t.Fatalf("a pass that is done returned %+v", r)
	}
	// Scans fail, and what is new cannot be evaluated.
	s.mute = true
	const passes = 20
	for i := range passes {
		s.fail("tenant-0", fmt.Sprint(i), 0)
		s.now += second
		if _, err := s.e.Tick(context.Background()); err == nil {
			t.Fatal("the pass did not fail")
		}
		if r := told[0]; !r.Observed || r.Lag != time.Duration(i+1)*time.Second {
			t.Fatalf("after %d s without a commit a pass returned %+v", i+1, r)
		}
	}
	if told[0].Backlog == 0 {
		t.Error("the look-back has not been looked at for long, and there is no backlog")
	}
	s.mute = false
	for range 15 {
		s.tick()
	}
	if r := told[0]; r.Lag != 0 || r.Backlog != 0 {
		t.Errorf("after the repair a pass returned %+v", r)
	}
	s.wants(passes)
	if r := told[1]; !r.Resting || r.Observed {
		t.Errorf("of a partition without rules a pass returned %+v", r)
	}
	s.change(rules.Rule{ID: theRule(), TenantID: "tenant-0", Version: 2, Definition: rules.Definition{FireMode: rules.PerExchange}}, false)
	s.tick()
	if r := told[0]; !r.Resting || r.Observed {
		t.Errorf("after its only rule was disabled a pass returned %+v", r)
	}
}

// A second of the past cannot be read, or Postgres refuses for good to commit what it raises. How long it has been left to
// evaluate is measured, also by a process that begins meanwhile, and rules that catch up do not stand still.
func TestWhatIsLeftForLongIsMeasured(t *testing.T) {
	damaged := errors.New("ERROR: invalid page in block 7 (SQLSTATE XX001)")
	for name, breaks := range map[string]func(s *scene, at int64){
		"ClickHouse": func(s *scene, at int64) { s.cannotRead(at) },
		"Postgres": func(s *scene, _ int64) {
			s.committing = func(b evaluator.Batch) error {
				for i := range b.Instances {
					if b.Instances[i].Exchange.ExecutionID == "bad" {
						return damaged
					}
				}
				return nil
			}
		},
	} {
		s := newScene(t, time.Hour)
		told := results{}
		s.free("")
		s.e = s.start("b", evaluator.Options{Observer: told})
		for range 100 {
			s.tick()
		}
		if told[0].BacklogAge != 0 {
			t.Fatalf("%s: nothing is left, and that for %v", name, told[0].BacklogAge)
		}
		at := s.now - 20*60*second
		breaks(s, at)
		s.fail("tenant-0", "bad", time.Duration(s.now-at))
		for i := range 600 {
			switch i {
			case 300:
				s.free("")
				s.e = s.start("c", evaluator.Options{Observer: told})
			case 400:
				s.rule(uuid.UUID{15: 2}, "tenant-0", time.Minute)
			}
			s.attempt()
		}
		if age := told[0].BacklogAge; age < 580*time.Second || age > 602*time.Second {
			t.Errorf("%s: after ten minutes something has been left for %v", name, age)
		}
		if _, behind := s.state.backfills[uuid.UUID{15: 2}]; behind {
			t.Errorf("%s: a new rule does not catch up", name)
		}
		s.scans, s.committing = nil, nil
		for range 120 {
			s.attempt()
		}
		s.wants(1)
		if told[0].BacklogAge != 0 {
			t.Errorf("%s: after the repair something has been left for %v", name, told[0].BacklogAge)
		}
	}
}

// The process stands still for longer than a minute between its lease and each of its passes. No pass evaluates anything, so the log
// says why, and what helps: once in five minutes.
func TestPassThatStoodStillIsLogged(t *testing.T) {
	s := newScene(t, time.Hour)
	log := &strings.Builder{}
	s.e.Logger = slog.New(slog.NewTextHandler(log, nil))
	for range 5 {
		s.tick()
	}
	if log.Len() > 0 {
		t.Fatalf("the log of a process that never stood still: %s", log)
	}
	s.observes = func(q source.ObserveQuery) error {
		if q.ToNS == 0 {
			s.now += 90 * second
		}
		return nil
	}
	s.fail("tenant-0", "new", 0)
	for range 8 { // a minute and a half each
		s.tick()
	}
	s.wants(0)
	if n := strings.Count(log.String(), "pass given up"); n != 2 || !strings.Contains(log.String(), "TOCSIN_EVALUATE_WORKERS") || !strings.Contains(log.String(), "partition=0") {
		t.Errorf("%d lines in twelve minutes: %s", n, log)
	}
	s.calm()
	s.observes = nil
	for range 5 {
		s.tick()
	}
	s.wants(1)
}
