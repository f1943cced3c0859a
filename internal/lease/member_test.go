package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tocsin/internal/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is a store that does in memory what Postgres does in statements, with a clock of its own.
//
// Its lock orders what the test writes before what members read; the end of a bubble's wait gives
// the reverse order.
type model struct {
	mu       sync.Mutex
	beatAt   map[string]time.Time
	leases   map[string]lease.Released
	now      func() time.Time
	down     error
	hangs    bool
	asked    int
	released lease.Released
}

func (m *model) DeadReleased(held lease.Released) { m.released = held }

func newModel() *model {
	// The store's clock differs much from the replicas'.
	return &model{
		beatAt: map[string]time.Time{}, leases: map[string]lease.Released{},
		now: func() time.Time { return time.Now().Add(-1000 * time.Hour) },
	}
}

func (m *model) answer(ctx context.Context) error {
	m.mu.Lock()
	hangs, down := m.hangs, m.down
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return down
}

func (m *model) Beat(ctx context.Context, r lease.Replica) error {
	if err := m.answer(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beatAt[r.ID] = m.now()
	return nil
}

func (m *model) ReleaseDead(ctx context.Context, r lease.DeadRequest) (lease.DeadResult, error) {
	var result lease.DeadResult
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	if err := m.answer(ctx); err != nil {
		return result, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range m.beatAt {
		silent := m.now().Sub(at)
		if id == r.Self || silent < r.DeadAfter {
			continue
		}
		if held, ok := m.leases[id]; ok {
			result.Released = append(result.Released, held)
			delete(m.leases, id)
		}
		if silent >= r.ForgetAfter {
			delete(m.beatAt, id)
			result.Forgotten++
		}
	}
	return result, nil
}

func (m *model) Leave(ctx context.Context, id string) (lease.Released, error) {
	err := m.answer(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.leases[id]
	if err != nil {
		return held, err
	}
	delete(m.leases, id)
	delete(m.beatAt, id)
	return held, nil
}

// member starts a member in a synctest bubble; it ends before the test does.
func member(t *testing.T, m *model, id string) (started *lease.Member, logged *bytes.Buffer, stop func()) {
	t.Helper()
	logged = &bytes.Buffer{}
	started, err := lease.New(lease.Options{
		Store: m, Replica: lease.Replica{ID: id}, Logger: slog.New(slog.NewTextHandler(logged, nil)), Observer: m,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go started.Run(ctx)
	synctest.Wait()
	return started, logged, func() { cancel(); synctest.Wait() }
}

// pass lets time pass after what the test did before.
func (m *model) pass(d time.Duration) {
	m.mu.Lock()
	m.mu.Unlock() //nolint:staticcheck // what was written before is seen by who locks next
	time.Sleep(d) //nolint:forbidigo // the time of a bubble
	synctest.Wait()
}

func TestBeatsAtOnceAndEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		_, _, stop := member(t, m, "a")
		defer stop()
		for range 5 {
			if age := m.now().Sub(m.beatAt["a"]); age != 0 {
				t.Fatalf("the last beat is %v old", age)
			}
			m.pass(10 * time.Second)
		}
	})
}

func TestTheDeadAreReleasedWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		_, logged, stopA := member(t, m, "a")
		defer stopA()
		m.pass(7 * time.Second)
		_, _, die := member(t, m, "b")
		m.leases["a"] = lease.Released{Replica: "a", Partitions: 1}
		m.leases["b"] = lease.Released{Replica: "b", Partitions: 3, Notifications: 4}
		m.pass(5 * time.Minute)
		if len(m.leases) != 2 {
			t.Fatal("leases of the living were released")
		}
		last := m.beatAt["b"]
		die()
		for m.leases["b"].Partitions > 0 {
			m.pass(time.Second)
		}
		if after := m.now().Sub(last); after < time.Minute || after > 90*time.Second {
			t.Errorf("released after %v, want between 1 min and 1 min 30 s", after)
		}
		if want := `msg="leases of a dead replica released" dead=b partitions=3 notifications=4`; !strings.Contains(logged.String(), want) {
			t.Errorf("log %q, want %s", logged, want)
		}
		if want := (lease.Released{Replica: "b", Partitions: 3, Notifications: 4}); !reflect.DeepEqual(m.released, want) {
			t.Errorf("observed %+v, want %+v", m.released, want)
		}
		m.pass(time.Hour)
		if _, known := m.beatAt["b"]; known || len(m.beatAt) != 1 {
			t.Error("a replica silent for an hour is not forgotten")
		}
		if m.leases["a"].Partitions != 1 {
			t.Error("a replica released its own leases")
		}
	})
}

func TestNobodyIsDeadRightAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		_, logged, stop := member(t, m, "a")
		defer stop()
		m.beatAt["b"] = m.now()
		m.pass(61 * time.Second)
		m.down = errors.New("connection refused")
		m.pass(10 * time.Minute)
		if n := strings.Count(logged.String(), "heartbeat failed"); n != 1 {
			t.Errorf("said %d times that the heartbeat fails", n)
		}
		m.down = nil
		m.leases["b"] = lease.Released{Replica: "b", Partitions: 1}
		m.pass(35 * time.Second)
		// b comes back a little later than a.
		m.beatAt["b"] = m.now()
		m.pass(55 * time.Second)
		if _, held := m.leases["b"]; !held {
			t.Error("leases were released because Postgres had been away")
		}
		if n := strings.Count(logged.String(), "heartbeat works again"); n != 1 {
			t.Errorf("said %d times that the heartbeat works again", n)
		}
		m.pass(time.Minute)
		if _, held := m.leases["b"]; held {
			t.Error("b is dead, and its leases are still held")
		}
	})
}

func TestAStoreThatHangsStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		_, _, stop := member(t, m, "a")
		m.pass(2 * time.Minute)
		asked := m.asked
		m.hangs = true
		m.pass(45 * time.Second)
		m.hangs = false
		m.pass(21 * time.Second)
		if age := m.now().Sub(m.beatAt["a"]); age > 20*time.Second {
			t.Errorf("the last beat is %v old", age)
		}
		if asked == 0 {
			t.Error("never looked for the dead")
		}
		m.hangs = true
		m.pass(10 * time.Second)
		stop()
	})
}

func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		a, logged, stop := member(t, m, "a")
		m.leases["a"] = lease.Released{Replica: "a", Partitions: 2}
		stop()
		m.down = errors.New("connection refused")
		if err := a.Leave(t.Context()); !errors.Is(err, m.down) {
			t.Errorf("Leave = %v", err)
		}
		m.down = nil
		if err := a.Leave(t.Context()); err != nil {
			t.Error(err)
		}
		if len(m.leases)+len(m.beatAt) != 0 || !strings.Contains(logged.String(), `msg="leases of this replica released" partitions=2`) {
			t.Errorf("left %v, %v; log %s", m.leases, m.beatAt, logged)
		}
	})
}

func TestTiming(t *testing.T) {
	t.Parallel()
	if got, want := (lease.Timing{}).WithDefaults(), (lease.Timing{
		Interval: 10 * time.Second, DeadAfter: time.Minute, DeadCheckInterval: 30 * time.Second, ForgetAfter: time.Hour,
	}); got != want || got.Validate() != nil {
		t.Errorf("defaults %+v, %v", got, got.Validate())
	}
	for name, c := range map[string]struct {
		timing lease.Timing
		want   []string
	}{
		"dead too soon":        {lease.Timing{Interval: 21 * time.Second}, []string{"at least three times"}},
		"negative":             {lease.Timing{DeadCheckInterval: -1}, []string{"must be positive"}},
		"forgotten while dead": {lease.Timing{ForgetAfter: time.Second}, []string{"is forgotten after 1s"}},
		"two things": {
			lease.Timing{Interval: -1, ForgetAfter: time.Minute},
			[]string{"must be positive", "is forgotten after"},
		},
	} {
		err := c.timing.WithDefaults().Validate()
		if err == nil || slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
		if _, err := lease.New(lease.Options{Store: newModel(), Logger: slog.New(slog.DiscardHandler), Replica: lease.Replica{ID: "a"}, Timing: c.timing}); err == nil {
			t.Errorf("%s: New accepts it", name)
		}
	}
	long := lease.Timing{DeadAfter: 5 * time.Hour}.WithDefaults()
	if err := long.Validate(); err != nil {
		t.Errorf("a long time to death: %v", err)
	}
	if _, err := lease.New(lease.Options{}); err == nil {
		t.Error("New accepts nothing")
	}
}
