// Package bustest contains the tests that every driver of a wake-up bus has to pass against its
// real server.
//
// What a test expects depends on the provider, and each test says what it expects of which: whether
// a message wakes one replica or all, and whether the server keeps it until it is acknowledged.
package bustest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"tocsin/notify"
	"tocsin/notify/bus"
)

// Nature is how a provider's messages behave.
type Nature struct {
	// Keeps: a message is delivered again until it is acknowledged, and wakes one replica.
	Keeps bool
	// Broadcasts: every replica receives each message.
	Broadcasts bool
}

// Server is a provider's server.
type Server struct {
	Nature Nature
	// Driver returns the driver of a separate replica, closed when t ends. A message that is not
	// acknowledged is delivered again after unacked.
	Driver func(t *testing.T, replica string, unacked time.Duration) bus.Driver
	// Stop ends the server without warning, Start starts it again at the same address. Both are nil
	// if the server is the process itself.
	Stop, Start func(tb testing.TB)
}

const (
	// soon limits what should happen at once, on a machine with much other work.
	soon = 2 * time.Minute
	// quiet is for how long nothing has to happen to count as nothing.
	quiet = 300 * time.Millisecond
	// unacked is a wait that a test reaches; it is longer than an answer takes on a busy machine.
	unacked = 2 * time.Second
	// never is a wait that no test reaches.
	never = 10 * time.Minute
)

// Run runs all tests, each against a server of its own.
func Run(t *testing.T, start func(t *testing.T) Server) {
	t.Helper()
	for _, law := range []struct {
		name  string
		holds func(*testing.T, Server)
		// alone: the test must not run in parallel with others, as it counts what this process
		// runs.
		alone bool
	}{
		{"a wake-up arrives at once", arrives, false},
		{"a subscription begins with a wake-up", begins, true},
		{"of several replicas one is woken, or all", shares, false},
		{"what a crash left unacknowledged wakes another", crash, false},
		{"what a pass failed to claim wakes again", failedPass, false},
		{"who ends gives back what he holds", givesBack, false},
		{"what there is no room for is passed on, and not for ever", passedOn, false},
		{"a malformed message is dropped", malformed, false},
		{"an outage costs the publisher nothing, and ends by itself", outage, false},
	} {
		t.Run(law.name, func(t *testing.T) {
			if !law.alone {
				t.Parallel()
			}
			law.holds(t, start(t))
		})
	}
}

// Replica is a bus with a dispatcher that does what the test wants.
type Replica struct {
	t   *testing.T
	Bus *bus.Bus
	// begun receives the wake-ups with which subscriptions began, heard all others.
	begun, heard chan notify.Signal
	logged       *log
	stop         func()

	mu     sync.Mutex
	events map[bus.Event]int
}

// NewReplica starts a replica, and returns when it has subscribed.
func NewReplica(t *testing.T, driver bus.Driver) *Replica {
	t.Helper()
	r := newReplica(t, driver)
	r.await(r.begun, "the wake-up with which a subscription begins")
	return r
}

// newReplica starts a replica that publishes and listens.
func newReplica(t *testing.T, driver bus.Driver) *Replica {
	t.Helper()
	return start(t, driver, true)
}

// newPublisher starts a replica that publishes, and never asks the server for messages.
func newPublisher(t *testing.T, driver bus.Driver) *Replica {
	t.Helper()
	return start(t, driver, false)
}

func start(t *testing.T, driver bus.Driver, listens bool) *Replica {
	t.Helper()
	r := &Replica{
		t: t, begun: make(chan notify.Signal, 1000), heard: make(chan notify.Signal, 1000), logged: &log{}, events: map[bus.Event]int{},
	}
	r.Bus = bus.New(bus.Options{
		Driver: driver, Logger: slog.New(slog.NewTextHandler(r.logged, nil)), Observer: r, MaxPause: 500 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { r.Bus.Send(ctx) })
	if listens {
		parts.Go(func() { r.Bus.Listen(ctx) })
		parts.Go(func() { r.hear(ctx) })
	}
	r.stop = sync.OnceFunc(func() { cancel(); parts.Wait() })
	t.Cleanup(r.stop)
	return r
}

// hear answers the wake-ups of new subscriptions, and keeps the others for the test.
func (r *Replica) hear(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-r.Bus.WakeUps():
			if s.WakeUp.Notifications > 0 {
				r.heard <- s
				continue
			}
			s.Claimed(false, nil)
			r.begun <- s
		}
	}
}

// WakeUp counts an event.
func (r *Replica) WakeUp(e bus.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[e]++
}

func (r *Replica) count(e bus.Event) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[e]
}

func (r *Replica) await(signals <-chan notify.Signal, what string) notify.Signal {
	r.t.Helper()
	select {
	case s := <-signals:
		return s
	case <-time.After(soon):
		r.t.Fatalf("%s did not come within %v; the log: %s", what, soon, r.logged)
		return notify.Signal{}
	}
}

// next returns the next wake-up for a message, unanswered.
func (r *Replica) next() notify.Signal {
	r.t.Helper()
	return r.await(r.heard, "a wake-up")
}

// claim answers the next wake-up: all that was queued is claimed.
func (r *Replica) claim() {
	r.t.Helper()
	r.next().Claimed(false, nil)
}

// hearsNothing fails the test if a wake-up for a message arrives.
func (r *Replica) hearsNothing(while time.Duration) {
	r.t.Helper()
	select {
	case s := <-r.heard:
		r.t.Errorf("an unexpected wake-up for %d notifications", s.WakeUp.Notifications)
	case <-time.After(while):
	}
}

// hearsNothingAgain fails the test if an answered message arrives again.
func (r *Replica) hearsNothingAgain(s Server) {
	r.t.Helper()
	if !s.Nature.Keeps {
		r.hearsNothing(quiet)
		return
	}
	r.hearsNothing(unacked + unacked/2)
}

func (r *Replica) publish(notifications int) {
	r.t.Helper()
	if err := r.Bus.Publish(r.t.Context(), notify.WakeUp{Notifications: notifications}); err != nil {
		r.t.Fatal(err)
	}
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(soon)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %v", what, soon)
		}
	}
}

// log keeps what is logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
