package retention_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/retention"
)

// memoryStore is a store in memory of resolved alerts, with whether each can be deleted.
type memoryStore struct {
	responses, alerts int
	// took is the cost of a row.
	took      time.Duration
	busy      bool
	sizes     []int
	done      int
	failTimes int
	// partitions are those of bodies that have ended.
	partitions      int
	partitionsInUse bool
	width           time.Duration
	// stuck says that no response can be deleted.
	stuck bool
}

func (s *memoryStore) Bodies(_ context.Context, _, width time.Duration, _ int) (more bool, err error) {
	if s.partitionsInUse {
		return false, errors.New("lock timeout")
	}
	s.partitions--
	s.width = width
	return s.partitions > 0, nil
}

func (s *memoryStore) Responses(_ context.Context, _ time.Duration, most int) (int, error) {
	if s.busy {
		return 0, retention.ErrBusy
	}
	if s.stuck {
		return 0, errors.New("index is corrupted")
	}
	s.sizes = append(s.sizes, most)
	n := min(most, s.responses)
	<-time.After(time.Duration(n) * s.took)
	s.responses -= n
	return n, nil
}

func (s *memoryStore) Alerts(_ context.Context, b retention.Batch) (retention.BatchResult, error) {
	n := min(b.Most, s.alerts)
	next := retention.Mark{ResolvedAt: time.Unix(1, 0), AlertID: uuid.UUID{1}}
	if s.failTimes > 0 {
		s.failTimes--
		return retention.BatchResult{Looked: n, Next: next}, errors.New("lock timeout")
	}
	s.alerts -= n
	return retention.BatchResult{Looked: n, Deleted: n, Next: next}, nil
}

func (s *memoryStore) Done(context.Context, time.Duration) error { s.done++; return nil }

type observer struct{ alerts, contents, failures int }

func (o *observer) RetentionDeleted(alerts, contents int) { o.alerts += alerts; o.contents += contents }
func (o *observer) RetentionFailed()                      { o.failures++ }

func deleter(t *testing.T, s *memoryStore, o *observer) *retention.Deleter {
	t.Helper()
	deleter, err := retention.New(retention.Options{
		Store: s, Observer: o, Logger: slog.New(slog.DiscardHandler), Clock: time.Now,
		Keep: retention.Keep{Alerts: retention.DefaultAlerts, Contents: retention.DefaultContents},
	})
	if err != nil {
		t.Fatal(err)
	}
	return deleter
}

// The size of a batch follows the cost of a row, and half of the time is left to others.
func TestBatchesAdapt(t *testing.T) {
	for _, c := range []struct {
		took        time.Duration
		least, most int
	}{{10 * time.Microsecond, 2000, 2000}, {time.Millisecond, 100, 400}, {20 * time.Millisecond, 6, 20}} {
		synctest.Test(t, func(t *testing.T) {
			s := &memoryStore{responses: 20_000, took: c.took}
			began := time.Now()
			if _, err := deleter(t, s, &observer{}).Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if last := s.sizes[len(s.sizes)-1]; last < c.least || last > c.most || s.responses > 0 || s.done != 1 {
				t.Errorf("a row takes %v: last batch of %d, want %d to %d; %d left", c.took, last, c.least, c.most, s.responses)
			}
			if took, work := time.Since(began), 20_000*c.took; took < 2*work*9/10 {
				t.Errorf("took %v for %v of work: no pauses", took, work)
			}
		})
	}
}

func TestFailuresPassBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &memoryStore{alerts: 1000, failTimes: 7}, &observer{}
		result, err := deleter(t, s, o).Pass(t.Context())
		if err != nil || result.Alerts != 1000 || o.alerts != 1000 {
			t.Errorf("%+v, %v after batches that were too large", result, err)
		}
		s, o = &memoryStore{alerts: 1000, failTimes: 8}, &observer{}
		if result, err = deleter(t, s, o).Pass(t.Context()); err == nil || o.failures != 1 || result.Alerts != 1000 {
			t.Errorf("%+v, %v, observer %+v; want one failure observer and the rest deleted", result, err, o)
		}
	})
}

func TestAlertsAreDeletedWhereResponsesCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &memoryStore{alerts: 1000, stuck: true}, &observer{}
		result, err := deleter(t, s, o).Pass(t.Context())
		if err == nil || result.Alerts != 1000 || o.failures != 1 || s.done > 0 {
			t.Errorf("%+v, %v, observer %+v, %d passes noted; want one failure and all alerts deleted", result, err, o, s.done)
		}
	})
}

func TestOnlyOneDeletes(t *testing.T) {
	o := &observer{}
	if _, err := deleter(t, &memoryStore{busy: true}, o).Pass(t.Context()); !errors.Is(err, retention.ErrBusy) || o.failures > 0 {
		t.Errorf("err = %v, observer %+v", err, o)
	}
}

func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{responses: 10}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		deleter(t, s, &observer{}).Run(ctx)
		if s.done != 2 || s.responses > 0 {
			t.Errorf("%d passes in two and a half minutes", s.done)
		}
	})
}

func TestReach(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	at := (100 * day).Nanoseconds()
	if got := retention.ReachNS(at, 7*day, 2*day); got != (93*day - hour).Nanoseconds() {
		t.Errorf("with a long look-back %v", time.Duration(got))
	}
	if got := retention.ReachNS(at, hour, 90*day); got != (10*day - hour).Nanoseconds() {
		t.Errorf("with a long retention %v", time.Duration(got))
	}
}

// Partitions are dropped one after the other, and a partition that cannot be dropped does not keep
// anything else from being deleted.
func TestPartitionsOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{partitions: 3, responses: 1, alerts: 1}
		if _, err := deleter(t, s, &observer{}).Pass(t.Context()); err != nil || s.partitions != 0 || s.width != 72*time.Hour {
			t.Errorf("%v, %d left, width %v", err, s.partitions, s.width)
		}
		s, o := &memoryStore{partitionsInUse: true, responses: 1, alerts: 1}, &observer{}
		if got, err := deleter(t, s, o).Pass(t.Context()); err == nil || got.Contents != 1 || got.Alerts != 1 || o.failures != 1 {
			t.Errorf("deleted %+v, %v, %+v", got, err, o)
		}
	})
	const d = 24 * time.Hour
	for contents, want := range map[time.Duration]time.Duration{d: d, 19 * d: d, 20 * d: 2 * d, 90 * d: 9 * d, 3650 * d: 30 * d} {
		if got := (retention.Keep{Contents: contents}).Width(); got != want {
			t.Errorf("width for %v is %v, want %v", contents, got, want)
		}
	}
}
