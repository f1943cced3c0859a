//go:build unix

package stack

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// relay passes signals to the present handler.
type relay struct {
	signals chan os.Signal
	done    chan struct{}

	mu     sync.Mutex
	handle func(sig syscall.Signal)
	first  syscall.Signal
}

// newRelay catches the signals that end a program, until it is stopped.
func newRelay(handle func(sig syscall.Signal)) *relay {
	r := &relay{signals: make(chan os.Signal, 8), done: make(chan struct{}), handle: handle}
	signal.Notify(r.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go r.run()
	return r
}

func (r *relay) run() {
	defer close(r.done)
	for received := range r.signals {
		sig, ok := received.(syscall.Signal)
		if !ok {
			continue
		}
		r.mu.Lock()
		if r.first == 0 {
			r.first = sig
		}
		handle := r.handle
		r.mu.Unlock()
		handle(sig)
	}
}

// to changes the handler of signals, and returns the first signal that came before; 0 if none did.
func (r *relay) to(handle func(sig syscall.Signal)) syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = handle
	return r.first
}

// received is the first signal that came; 0 if none did.
func (r *relay) received() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

func (r *relay) stop() {
	signal.Stop(r.signals)
	close(r.signals)
	<-r.done
}
