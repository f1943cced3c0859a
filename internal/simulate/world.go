package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/simulate/model"
)

// Bubble is the virtual time in which a simulation runs: that of testing/synctest.
type Bubble struct {
	Now   func() time.Time
	Sleep func(d time.Duration)
	// Wait returns once every other goroutine of the bubble is blocked.
	Wait    func()
	Context context.Context //nolint:containedctx // the root of what the bubble's processes do
}

var (
	errDead = errors.New("the process is dead")
	errAway = errors.New("the database cannot be reached")
	errLost = errors.New("the answer of the database was lost")
)

// fault is what becomes of a call.
type fault int

const (
	noFault fault = iota
	crashBefore
	crashAfter
	awayBefore
	awayAfter
)

func (f fault) String() string {
	return [...]string{"", "the process dies before it", "the process dies after it", "it fails", "it is made, and its answer is lost"}[f]
}

// call is a call of a process to the world around it, which waits until the simulation lets
// it happen.
type call struct {
	p    *process
	kind string
	// key orders the calls of a kind that wait at the same time.
	key string
	// at is when it was made, notBefore when it can happen at the earliest.
	at, notBefore time.Time
	// effect is what it does. It runs while nothing else does.
	effect func() error
	err    error
	done   chan struct{}
	// abandoned says that nobody waits for it any more.
	abandoned bool
}

// world is a simulation under way.
type world struct {
	Bubble
	o    Options
	conf config

	db        *model.Postgres
	ch        *model.ClickHouse
	processes []*process
	starts    int

	mu      sync.Mutex
	pending []*call
	// inside is the transaction whose callbacks run.
	inside *call

	// pgSkew, chSkew and makerSkew are what the clocks of Postgres, of ClickHouse and of
	// those who write exchanges are ahead of the true time.
	pgSkew, chSkew, makerSkew time.Duration
	questions                 int
	sourceFails               bool
	counting                  countingManner
	// panics is the rule that panics over what it wants; none if it is zero.
	panics   uuid.UUID
	receiver receiver
	people   people
	truth    truth
	rand     *rand.Rand

	history   []string
	violation error
	stats     Stats
}

// note adds a line to the history.
func (w *world) note(format string, args ...any) {
	w.stats.Events++
	if w.o.Quiet {
		return
	}
	w.history = append(w.history, w.stamp()+fmt.Sprintf(format, args...))
}

func (w *world) stamp() string {
	since := w.Now().Sub(w.truth.began)
	return fmt.Sprintf("%s.%03d  ", clockOf(since), since.Milliseconds()%1000)
}

func clockOf(d time.Duration) string {
	return fmt.Sprintf("%dd %02d:%02d:%02d", int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60)
}

// violate ends the simulation with what was found.
func (w *world) violate(promise, format string, args ...any) {
	if w.violation == nil {
		w.violation = &BreachError{Promise: promise, What: fmt.Sprintf(format, args...)}
		w.note("VIOLATION of %s: %s", promise, fmt.Sprintf(format, args...))
	}
}

// do makes a call: it waits until the simulation lets it happen, or ctx ends.
func (w *world) do(ctx context.Context, p *process, kind, key string, takes time.Duration, effect func() error) error {
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return errDead
	}
	if w.inside != nil && w.inside.p == p {
		w.violate("P5", "%s makes %s within the transaction of %s", p.name, kind, w.inside.kind)
		w.mu.Unlock()
		return errAway
	}
	now := w.Now()
	c := &call{p: p, kind: kind, key: key, at: now, notBefore: now.Add(takes), effect: effect, done: make(chan struct{})}
	w.pending = append(w.pending, c)
	w.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		c.abandoned = true
		p.disturb(w.Now())
		return ctx.Err()
	}
}

// ready returns the calls that can happen now, in an order that depends on nothing but the
// seed.
func (w *world) ready() []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Now()
	w.pending = slices.DeleteFunc(w.pending, func(c *call) bool { return c.abandoned })
	var list []*call
	for _, c := range w.pending {
		if !c.p.paused && !c.notBefore.After(now) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.p.number, b.p.number), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
	})
	return list
}

// release lets a call happen.
func (w *world) release(c *call, f fault) {
	w.mu.Lock()
	w.pending = slices.DeleteFunc(w.pending, func(o *call) bool { return o == c })
	if w.Now().Sub(c.at) > w.lateAfter() && c.notBefore.Equal(c.at) {
		c.p.disturb(w.Now())
	}
	w.mu.Unlock()
	if f != noFault {
		w.stats.Faults++
		c.p.disturb(w.Now())
		w.note("%s: %s %s: %s", c.p.name, c.kind, c.key, f)
	}
	switch f {
	case crashBefore, awayBefore:
		c.err = errAway
	case noFault, crashAfter, awayAfter:
		w.within(c)
		c.err = c.effect()
		w.within(nil)
		if f == awayAfter {
			c.err = errLost
		}
	}
	switch c.kind {
	case "renew", "send", "answer", "settle":
		w.receiver.last = w.Now()
	}
	w.stats.Calls++
	w.check()
	if f == crashBefore || f == crashAfter {
		w.kill(c.p)
	}
	close(c.done)
	w.Wait()
}

func (w *world) within(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside = c
}

// lateAfter is how long a call may wait before its process counts as disturbed.
func (w *world) lateAfter() time.Duration { return w.conf.lease / 6 }

// drain lets calls happen until none waits, most of them in the order of their processes.
func (w *world) drain() {
	for w.violation == nil {
		list := w.ready()
		if len(list) == 0 {
			return
		}
		w.release(list[w.rand.IntN(len(list))], noFault)
	}
}

// run is normal operation for a while: calls happen as they come, and idle processes make
// their passes.
func (w *world) run(d time.Duration) {
	for end := w.Now().Add(d); w.violation == nil; {
		w.tick()
		w.drain()
		now := w.Now()
		if !now.Before(end) {
			return
		}
		next := end
		for _, p := range w.processes {
			if p.alive() && p.nextTick.After(now) && p.nextTick.Before(next) {
				next = p.nextTick
			}
		}
		switch {
		case now.Sub(w.receiver.last) < 10*time.Millisecond:
			next = now.Add(min(next.Sub(now), 3*time.Millisecond))
		case w.db.WaitingCount() > 0:
			// Nobody waits for long for an answer of a database that works.
			next = now.Add(min(next.Sub(now), w.conf.lease/12))
		}
		if w.counting.takesLong() {
			next = now.Add(min(next.Sub(now), w.conf.interval/2))
		}
		w.Sleep(next.Sub(now))
		w.Wait()
	}
}

// tick starts a pass of each process whose last one has ended.
func (w *world) tick() {
	w.Wait()
	now := w.Now()
	for _, p := range w.processes {
		if p.alive() && !p.ticking.Load() && !p.nextTick.After(now) {
			p.tick()
		}
		if (w.conf.routed || w.conf.quiet || w.conf.digests) && p.alive() && !p.following.Load() && !p.nextFollow.After(now) {
			p.follow()
		}
		if w.conf.resolves && p.alive() && !p.resolving.Load() && !p.nextResolve.After(now) {
			p.resolve()
		}
	}
	w.Wait()
}

func (w *world) pgNow() time.Time { return w.Now().Add(w.pgSkew) }

// pickServer returns the server that answers the next question of a process.
func (w *world) pickServer(p *process) int {
	w.questions++
	switch w.conf.servers {
	case oneServer:
		return 0
	case stickyServers:
		return p.number % 2
	case alternatingServers:
		return w.questions % 2
	case randomServers:
	}
	return int(uint32(w.questions)*2654435761>>16) % 2
}
