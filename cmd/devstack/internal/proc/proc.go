//go:build unix

// Package proc starts child processes that do not outlive devstack.
//
// A child leads its own process group, so a Ctrl-C at the terminal reaches only devstack, and
// devstack decides the order in which things stop. On Linux the kernel also signals the child if
// devstack dies without stopping it (kill -9); on other systems the next start has to look for
// survivors.
//
// The kernel binds that signal to the thread that started the child, not to the process. Each child
// is therefore started and waited for by one goroutine that keeps its thread while the child lives.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// outputGrace bounds the wait for output that a dead child's own children still hold open.
const outputGrace = 2 * time.Second

// Options says what to start and how.
type Options struct {
	// Path is the program, and Args its arguments without the program's name.
	Path string
	Args []string
	// Env is the whole environment; nil means devstack's own.
	Env []string
	// Dir is the working directory; empty means devstack's own.
	Dir string
	// Stdin, Stdout and Stderr are connected unchanged; nil means the null device.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Credential starts the child as another user; nil means the same user.
	Credential *syscall.Credential
	// OrphanSignal is the signal that the child gets if devstack dies first. It works only on
	// Linux; 0 means SIGKILL.
	OrphanSignal syscall.Signal
	// Terminal, if not nil, is the controlling terminal that the child takes over while it lives.
	Terminal *os.File
}

// Child is a started process.
type Child struct {
	cmd      *exec.Cmd
	terminal *os.File
	done     chan struct{}
	err      error
}

// Start starts a child. The child must be waited for by Done or ended by Stop.
func Start(opts Options) (*Child, error) {
	if opts.OrphanSignal == 0 {
		opts.OrphanSignal = syscall.SIGKILL
	}
	child := &Child{
		cmd: &exec.Cmd{
			Path:        opts.Path,
			Args:        append([]string{opts.Path}, opts.Args...),
			Env:         opts.Env,
			Dir:         opts.Dir,
			Stdin:       opts.Stdin,
			Stdout:      opts.Stdout,
			Stderr:      opts.Stderr,
			SysProcAttr: attributes(opts),
			WaitDelay:   outputGrace,
		},
		terminal: opts.Terminal,
		done:     make(chan struct{}),
	}
	started := make(chan error)
	go child.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.Path, err)
	}
	return child, nil
}

func attributes(opts Options) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Credential: opts.Credential}
	if opts.Terminal != nil {
		attr.Foreground = true
		attr.Ctty = int(opts.Terminal.Fd())
	}
	signalWhenOrphaned(attr, opts.OrphanSignal)
	return attr
}

// run keeps its thread: see the package comment.
func (c *Child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = c.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	// Processes that the child left in its group would otherwise stay for ever.
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	if c.terminal != nil {
		reclaim(c.terminal)
	}
	c.err = err
	close(c.done)
}

// PID is the child's process id, and that of its process group.
func (c *Child) PID() int {
	return c.cmd.Process.Pid
}

// Done is closed when the child has ended and its output has been read.
func (c *Child) Done() <-chan struct{} {
	return c.done
}

// Err says how the child ended: nil for exit code 0, otherwise an *exec.ExitError. It may be called
// only after Done.
func (c *Child) Err() error {
	return c.err
}

// ExitCode is the child's exit code as in a shell: 128 plus the number of the signal if a signal
// ended it. It may be called only after Done.
func (c *Child) ExitCode() int {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// Signal sends sig to the child's process group. It is no error if the child has ended.
func (c *Child) Signal(sig syscall.Signal) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	err := syscall.Kill(-c.cmd.Process.Pid, sig)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) && c.gone() {
		return nil
	}
	return err
}

// gone distinguishes the EPERM that macOS gives for a zombie from a real one.
func (c *Child) gone() bool {
	select {
	case <-c.done:
		return true
	case <-time.After(outputGrace):
		return false
	}
}

// Step is a signal to end, and the time that the process gets after it.
type Step struct {
	Signal syscall.Signal
	Wait   time.Duration
}

// Stop ends the child and waits for it: step by step, and finally, or when ctx ends, with SIGKILL.
// The error says that a signal could not be sent, not how the child ended.
func (c *Child) Stop(ctx context.Context, steps ...Step) error {
	for _, step := range steps {
		if ctx.Err() != nil {
			break
		}
		if err := c.Signal(step.Signal); err != nil {
			return fmt.Errorf("signal process %d: %w", c.PID(), err)
		}
		if c.wait(ctx, step.Wait) {
			return nil
		}
	}
	if err := c.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", c.PID(), err)
	}
	<-c.done
	return nil
}

func (c *Child) wait(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}
