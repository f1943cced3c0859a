package stack

import (
	"fmt"
	"io"
	"sync"
)

// Console prints devstack's messages to the person who started it: one line at a time, each marked
// as devstack's.
type Console struct {
	mu  sync.Mutex
	out io.Writer
}

// NewConsole returns a Console that writes to out.
func NewConsole(out io.Writer) *Console {
	return &Console{out: out}
}

// Sayf writes one line.
func (c *Console) Sayf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, "devstack: "+format+"\n", args...)
}

// Plainf writes one line without the mark.
func (c *Console) Plainf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, format+"\n", args...)
}
