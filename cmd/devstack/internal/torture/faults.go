//go:build unix

package torture

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// everyone stands for all replicas.
const everyone = -1

// disturbance is a period in which a replica could not keep its leases for reasons outside of it.
type disturbance struct {
	replica int
	when    span
}

// disturbances are recorded by the faults that cause them; for concurrent use.
type disturbances struct {
	mu  sync.Mutex
	all []disturbance
}

func (d *disturbances) note(replica int, from time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, disturbance{replica, span{from.UnixNano(), time.Now().UnixNano()}})
}

// during reports whether a replica was disturbed between two instants.
func (d *disturbances) during(replica int, from, to time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.all, func(each disturbance) bool {
		return (each.replica == everyone || each.replica == replica) &&
			each.when.fromNS <= to.UnixNano() && each.when.toNS >= from.UnixNano()
	})
}

// watchStalls records when the machine itself was stalled: this process waits for ticks as replicas
// do.
func (w *world) watchStalls(ctx context.Context) {
	const tick, tolerated = 50 * time.Millisecond, 400 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := time.Now(); now.Sub(last) > tolerated {
			w.disturbed.note(everyone, last)
			w.logf("machine: nobody ran for %v", now.Sub(last).Round(time.Millisecond))
		}
		last = time.Now()
	}
}

// breakAll injects the faults of the plan when they are due, at most one at a time at each target.
func (w *world) breakAll(ctx context.Context) error {
	var striking errgroup.Group
	for _, f := range w.plan.faults {
		striking.Go(func() error {
			if !pause(ctx.Done(), time.Duration(f.atNS)-w.elapsed()) {
				return nil
			}
			if err := w.strike(ctx, f); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%v: %w", f, err)
			}
			return nil
		})
	}
	return striking.Wait()
}

func (w *world) strike(ctx context.Context, f fault) error {
	if f.kind.ofEngines() {
		return w.strikeEngine(ctx, f)
	}
	if f.target >= len(w.replicas) {
		return nil
	}
	r := w.replicas[f.target]
	r.busy.Lock()
	defer r.busy.Unlock()
	w.logf("%v", f)
	w.tally.count(f.kind)
	defer w.disturbed.note(r.number, time.Now())
	switch f.kind {
	case killReplica:
		r.hold()
		defer r.release()
		r.signal(syscall.SIGKILL)
	case endReplica:
		r.hold()
		defer r.release()
		r.signal(syscall.SIGTERM)
	case stopReplica:
		r.signal(syscall.SIGSTOP)
		defer r.signal(syscall.SIGCONT)
	case cutPostgres:
		r.postgres.cut()
		defer r.postgres.heal()
	case cutClickHouse:
		r.clickHouse.cut()
		defer r.clickHouse.heal()
	case cutReceiver:
		w.receiver.ways.cut()
		defer w.receiver.ways.heal()
	case stallPostgres:
		r.postgres.stall()
		defer r.postgres.heal()
	case stallClickHouse:
		r.clickHouse.stall()
		defer r.clickHouse.heal()
	case slowPostgres:
		r.postgres.slow(f.delay)
		defer r.postgres.heal()
	case slowClickHouse:
		r.clickHouse.slow(f.delay)
		defer r.clickHouse.heal()
	case restartPostgres, crashPostgres, crashClickHouse, failOver, crashPooler, fillDisk:
	}
	pause(ctx.Done(), f.length)
	return nil
}

// strikeEngine disturbs all replicas, unless the fault is about ClickHouse.
func (w *world) strikeEngine(ctx context.Context, f fault) error {
	w.logf("%v", f)
	if f.kind == crashClickHouse {
		w.tally.count(f.kind)
		return w.source.crash(ctx, f.target, f.length)
	}
	defer w.disturbed.note(everyone, time.Now())
	switch f.kind {
	case restartPostgres, crashPostgres:
		w.tally.count(f.kind)
		return w.postgres.restart(ctx, f.kind == crashPostgres, f.length)
	case failOver:
		return w.failOver(ctx, f.length)
	case crashPooler:
		w.tally.count(f.kind)
		return w.pooler.crash(ctx, f.length)
	case fillDisk:
		w.tally.count(f.kind)
		return w.fillDisk(ctx, f.length)
	case crashClickHouse, killReplica, stopReplica, endReplica, cutPostgres, cutClickHouse, cutReceiver, stallPostgres, stallClickHouse,
		slowPostgres, slowClickHouse:
	}
	return fmt.Errorf("%s strikes no engine", f.kind)
}

// failOver makes the standby take over.
func (w *world) failOver(ctx context.Context, deaf time.Duration) error {
	if !w.postgres.synchronous {
		// An edit made while commits are lost would be lost as well. A person would then repeat it;
		// the simulated one does not, so no edits are made meanwhile.
		w.editing.Lock()
		defer w.editing.Unlock()
	}
	l, err := w.postgres.failover(ctx, deaf)
	if err != nil {
		return err
	}
	w.tally.count(failOver)
	w.logf("the standby took over; %d alerts are lost", len(l.alerts))
	w.truth.mu.Lock()
	defer w.truth.mu.Unlock()
	w.truth.losses = append(w.truth.losses, *l)
	return nil
}

// losses returns the number of failovers.
func (w *world) losses() int {
	w.truth.mu.Lock()
	defer w.truth.mu.Unlock()
	return len(w.truth.losses)
}

// tally counts the faults that were injected; for concurrent use.
type tally struct {
	mu     sync.Mutex
	struck map[kind]int
}

func (t *tally) count(k kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.struck == nil {
		t.struck = map[kind]int{}
	}
	t.struck[k]++
}

// of returns how often faults of the given kinds were injected.
func (t *tally) of(kinds ...kind) (sum int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range kinds {
		sum += t.struck[k]
	}
	return sum
}

func (t *tally) all() (sum int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.struck {
		sum += n
	}
	return sum
}
