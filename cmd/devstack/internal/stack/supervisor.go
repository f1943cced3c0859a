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
	// steady is how long a process must live for its next end to count as the first.
	steady = 30 * time.Second
)

// process is something that was started and can end by itself.
type process interface {
	Done() <-chan struct{}
	Err() error
	Stop(ctx context.Context) error
}

// supervisor starts a process, and starts it again whenever it ends.
type supervisor struct {
	name    string
	start   func(ctx context.Context) (process, error)
	console *Console

	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	current process
}

// supervise returns when the process runs for the first time. If that fails, nothing is left
// running. The process is then supervised until Stop, whatever happens to ctx.
func supervise(
	ctx context.Context, console *Console, name string, start func(ctx context.Context) (process, error),
) (*supervisor, error) {
	current, err := start(ctx)
	if err != nil {
		return nil, err
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &supervisor{
		name: name, start: start, console: console,
		cancel: cancel, done: make(chan struct{}), current: current,
	}
	go s.run(lifetime)
	return s, nil
}

func (s *supervisor) run(ctx context.Context) {
	defer close(s.done)
	var pause time.Duration
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-s.process().Done():
		}
		if time.Since(began) >= steady {
			pause = 0
		}
		s.console.Sayf("%s ended (%s), starting it again", s.name, reason(s.process().Err()))
		if !s.revive(ctx, &pause) {
			return
		}
	}
}

// revive starts the process again, with growing pauses between attempts, and reports whether it
// runs; false means that ctx has ended.
func (s *supervisor) revive(ctx context.Context, pause *time.Duration) bool {
	for {
		if !wait(ctx, *pause) {
			return false
		}
		*pause = min(max(2**pause, firstPause), longPause)
		next, err := s.start(ctx)
		if ctx.Err() != nil {
			if err == nil {
				s.set(next)
			}
			return false
		}
		if err == nil {
			s.set(next)
			s.console.Sayf("%s runs again", s.name)
			return true
		}
		s.console.Sayf("%v; trying again", err)
	}
}

// Stop ends the supervision and the process.
func (s *supervisor) Stop(ctx context.Context) error {
	s.cancel()
	<-s.done
	return s.process().Stop(ctx)
}

func (s *supervisor) process() process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *supervisor) set(next process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = next
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
