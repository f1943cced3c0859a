// Package child runs programs as children of the benchmark: parts of the benchmark itself, which
// are the same program with another first argument, and programs of others.
//
// Parent and child exchange lines of JSON: the child writes one when it is ready and one for each
// result; its parent writes a line to make it continue. A child ends when its standard input does,
// and is killed when its parent ends.
package child

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is a child. Its methods must be called by one goroutine.
type Process struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Reader
	said    *tail
	ended   chan struct{}
	err     error
}

// Options describe what to run.
type Options struct {
	Path string
	Args []string
	// Env is the whole environment; nil means that of this process.
	Env []string
	// Stderr additionally receives what the child writes there; it may be nil.
	Stderr io.Writer
}

// Start starts a child.
func Start(o Options) (*Process, error) {
	// No context limits the child: it ends by Stop, Kill, or with this process.
	command := exec.Command(o.Path, o.Args...) //nolint:noctx // see above
	command.Env = o.Env
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{command: command, said: &tail{also: o.Stderr}, ended: make(chan struct{})}
	command.Stderr = p.said
	var err error
	if p.stdin, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewReader(out)
	command.Stdout = in
	err = command.Start()
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Path, errors.Join(err, out.Close()))
	}
	go func() {
		p.err = command.Wait()
		_ = out.SetReadDeadline(time.Now())
		close(p.ended)
	}()
	return p, nil
}

// Self starts another part of this program.
func Self(args ...string) (*Process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return Start(Options{Path: path, Args: args})
}

// PID returns the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended is closed when the child has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Said returns the last part of what the child wrote to its standard error.
func (p *Process) Said() string { return p.said.String() }

// Read reads the child's next line.
func (p *Process) Read(ctx context.Context, into any) error {
	type read struct {
		line []byte
		err  error
	}
	got := make(chan read, 1)
	go func() {
		line, err := p.lines.ReadBytes('\n')
		got <- read{line, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return fmt.Errorf("child ended: %w: %s", r.err, p.Said())
		}
		return json.Unmarshal(r.line, into)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WriteLine writes a line.
func (p *Process) WriteLine(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// Pause pauses the child until Resume.
func (p *Process) Pause() error { return p.command.Process.Signal(syscall.SIGSTOP) }

// Resume resumes a paused child; otherwise it does nothing.
func (p *Process) Resume() error { return p.command.Process.Signal(syscall.SIGCONT) }

// Kill ends the child at once and waits for it.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// Stop ends the child's input, and kills it if it takes longer than the timeout to end.
func (p *Process) Stop(timeout time.Duration) error {
	_ = p.stdin.Close()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s did not end within %v and was killed: %s", p.command.Path, timeout, p.Said())
	}
}

// tail keeps the last part of what is written.
type tail struct {
	also io.Writer
	mu   sync.Mutex
	kept bytes.Buffer
}

func (t *tail) Write(text []byte) (int, error) {
	const most = 8 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(text)
	if over := t.kept.Len() - most; over > 0 {
		t.kept.Next(over)
	}
	if t.also != nil {
		return t.also.Write(text)
	}
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}

// Parent is the child's connection to its parent.
type Parent struct {
	in  *bufio.Reader
	out io.Writer
}

// NewParent returns the parent at standard input and output.
func NewParent(in io.Reader, out io.Writer) *Parent { return &Parent{bufio.NewReader(in), out} }

// Say writes a line.
func (p *Parent) Say(what any) error { return json.NewEncoder(p.out).Encode(what) }

// Wait waits for a line, and returns [io.EOF] when the parent wants the child to end.
func (p *Parent) Wait() error {
	_, err := p.in.ReadString('\n')
	return err
}
