package demo

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink is a target that can be switched to return errors.
type sink struct {
	mu      sync.Mutex
	rows    []Row
	calls   int
	created int
	refuse  error
}

func (s *sink) Create(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created++
	return s.refuse
}

func (s *sink) Empty(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows) == 0, s.refuse
}

func (s *sink) Insert(_ context.Context, rows []Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.refuse != nil {
		return s.refuse
	}
	s.rows = append(s.rows, rows...)
	return nil
}

func (s *sink) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

func (s *sink) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}

func newTraffic(t *testing.T, s *sink, change func(*Options)) (*Traffic, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	opts := Options{Target: s, Seed: 1, Clock: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if change != nil {
		change(&opts)
	}
	traffic, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return traffic, &log
}

func TestRunKeepsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		traffic, log := newTraffic(t, s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		begun := time.Now()
		go func() { done <- traffic.Run(ctx) }()
		<-time.After(10 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if perMinute := s.len() / 10; perMinute < 800 || perMinute > 1200 {
			t.Errorf("%d rows a minute, want about 960", perMinute)
		}
		for _, r := range s.rows {
			if r.InsertAt.Before(begun) || r.InsertAt.After(time.Now()) {
				t.Fatalf("a row of %s was written between %s and %s", r.InsertAt, begun, time.Now())
			}
		}
		if s.created != 1 {
			t.Errorf("the table was created %d times", s.created)
		}
		if log.Len() > 0 {
			t.Errorf("a calm run logs:\n%s", log)
		}
		if got := traffic.Stats(); got.Inserted != int64(s.len()) || got.Failures < 200 || got.Waiting != 0 || got.Dropped != 0 {
			t.Errorf("stats are %+v after %d rows", got, s.len())
		}
	})
}

func TestRunKeepsWhatTheTargetRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		traffic, log := newTraffic(t, s, nil)
		go func() { _ = traffic.Run(t.Context()) }()
		<-time.After(time.Minute)
		synctest.Wait()
		before := s.len()
		s.set(errors.New("gone"))
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if s.len() != before {
			t.Fatal("rows were written while the target was away")
		}
		if s.calls > 5*60+10*60/4 {
			t.Errorf("%d tries: the pauses do not grow", s.calls)
		}
		waiting := traffic.Stats().Waiting
		s.set(nil)
		<-time.After(longestPause + time.Second)
		synctest.Wait()
		if s.len() < before+waiting {
			t.Errorf("%d rows of %d that waited were written", s.len()-before, waiting)
		}
		if got := traffic.Stats(); got.Dropped != 0 {
			t.Errorf("%d rows were dropped", got.Dropped)
		}
		for i := 1; i < len(s.rows); i++ {
			if s.rows[i].InsertAt.Before(s.rows[i-1].InsertAt) {
				t.Fatal("the order of insertion is lost")
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines != 2 {
			t.Errorf("an absence is %d lines in the log, want 2:\n%s", lines, log)
		}
	})
}

func TestRunBoundsWhatItKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sink{refuse: errors.New("gone")}
		traffic, _ := newTraffic(t, s, func(o *Options) { o.Kept = 100 })
		go func() { _ = traffic.Run(t.Context()) }()
		<-time.After(5 * time.Minute)
		got := traffic.Stats()
		if got.Waiting != 100 || got.Dropped < 3000 {
			t.Errorf("stats are %+v, want 100 waiting and the others dropped", got)
		}
	})
}

func TestTickRestartsAfterALeap(t *testing.T) {
	t.Parallel()
	s := &sink{}
	now := start()
	traffic, _ := newTraffic(t, s, func(o *Options) { o.Clock = func() time.Time { return now } })
	traffic.Tick(t.Context())
	now = now.Add(30 * time.Second)
	traffic.Tick(t.Context())
	before := s.len()
	if before == 0 {
		t.Fatal("nothing was written in 30 s")
	}
	now = now.Add(8 * time.Hour)
	traffic.Tick(t.Context())
	if s.len() != before {
		t.Errorf("%d rows of the hours asleep were written", s.len()-before)
	}
	now = now.Add(30 * time.Second)
	traffic.Tick(t.Context())
	if s.len() == before {
		t.Error("nothing is written after the leap")
	}
}

// TestRunBeginsWithFailures runs the slowest traffic many times: three teams have failures within
// two seconds.
func TestRunBeginsWithFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		s := &sink{}
		now := start()
		traffic, _ := newTraffic(t, s, func(o *Options) {
			o.Clock = func() time.Time { return now }
			o.Seed, o.Shape.Rate = seed, 0.01
		})
		traffic.Tick(t.Context())
		now = now.Add(2 * time.Second)
		traffic.Tick(t.Context())
		applications := map[string]bool{}
		for _, r := range failures(s.rows) {
			if r.Environment == Production && !r.StartTime.Before(start()) {
				applications[r.Application] = true
			}
		}
		// One of them may be among the few that hang.
		if len(applications) < 2 {
			t.Errorf("seed %d: failures of %v within 2 s", seed, applications)
		}
	}
}

func TestOutageOnDemand(t *testing.T) {
	t.Parallel()
	s := &sink{}
	now := start()
	traffic, _ := newTraffic(t, s, func(o *Options) {
		o.Clock = func() time.Time { return now }
		o.Shape.NoOutages = true
	})
	if err := traffic.Outage("no-such-route"); err == nil {
		t.Error("an outage of an unknown route is accepted")
	}
	if err := traffic.Outage("order-to-erp"); err != nil {
		t.Fatal(err)
	}
	traffic.Tick(t.Context())
	now = now.Add(15 * time.Second)
	traffic.Tick(t.Context())
	hit := 0
	for _, r := range failures(s.rows) {
		if r.Route == "order-to-erp" {
			hit++
		}
	}
	if hit < outageFewest {
		t.Errorf("%d failures of the route within 15 s, want at least %d", hit, outageFewest)
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	s := &sink{}
	now := start()
	traffic, _ := newTraffic(t, s, func(o *Options) { o.Clock = func() time.Time { return now } })
	n, err := traffic.Backfill(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if n != s.len() || n < 3*3600*14 {
		t.Errorf("backfill says %d rows, the target has %d", n, s.len())
	}
	for _, r := range s.rows {
		if r.InsertAt.After(now) || r.StartTime.Before(now.Add(-3*time.Hour)) {
			t.Fatalf("a row of %s lies outside the three hours before %s", r.InsertAt, now)
		}
	}
	if n, err := traffic.Backfill(t.Context(), 3); n != 0 || err != nil {
		t.Errorf("a second backfill writes %d rows, error %v", n, err)
	}
	s.set(errors.New("gone"))
	if _, err := traffic.Backfill(t.Context(), 3); err == nil {
		t.Error("a backfill into nothing reports no error")
	}
}
