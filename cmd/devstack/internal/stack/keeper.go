//go:build unix

package stack

import (
	"context"
	"sync"
	"time"
)

const (
	firstPause = 500 * time.Millisecond
	longPause  = 5 * time.Second
	// steady is how long a process must live for its next death to count as the first.
	steady = 30 * time.Second
)

// process is something started that can end by itself.
type process interface {
	Done() <-chan struct{}
	Err() error
	Stop(ctx context.Context) error
}

// keeper starts a process, and starts it again whenever it ends.
type keeper struct {
	name    string
	start   func(ctx context.Context) (process, error)
	console *Console

	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	current process
}

// keep returns once the process runs for the first time; when that does not succeed, nothing is left running. The
// process is then kept until Stop, whatever becomes of ctx.
func keep(
	ctx context.Context, console *Console, name string, start func(ctx context.Context) (process, error),
) (*keeper, error) {
	current, err := start(ctx)
	if err != nil {
		return nil, err
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &keeper{
		name: name, start: start, console: console,
		cancel: cancel, done: make(chan struct{}), current: current,
	}
	go k.run(lifetime)
	return k, nil
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	var pause time.Duration
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-k.process().Done():
		}
		if time.Since(began) >= steady {
			pause = 0
		}
		k.console.Sayf("%s ended (%s), starting it again", k.name, reason(k.process().Err()))
		if !k.revive(ctx, &pause) {
			return
		}
	}
}

// revive starts the process again, with growing pauses between attempts, and says whether it runs; false means that ctx
// has ended.
func (k *keeper) revive(ctx context.Context, pause *time.Duration) bool {
	for {
		if !wait(ctx, *pause) {
			return false
		}
		*pause = min(max(2**pause, firstPause), longPause)
		next, err := k.start(ctx)
		if ctx.Err() != nil {
			if err == nil {
				k.set(next)
			}
			return false
		}
		if err == nil {
			k.set(next)
			k.console.Sayf("%s runs again", k.name)
			return true
		}
		k.console.Sayf("%v; trying again", err)
	}
}

// Stop stops keeping the process and ends it.
func (k *keeper) Stop(ctx context.Context) error {
	k.cancel()
	<-k.done
	return k.process().Stop(ctx)
}

func (k *keeper) process() process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

func (k *keeper) set(next process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = next
}

func reason(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
