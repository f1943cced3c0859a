//go:build unix

package stack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tocsin/cmd/devstack/internal/pgserver"
	"tocsin/internal/programtest"
)

// programs are the real ones.
type programs struct {
	devstack, tocsin string
}

func build(t *testing.T) (built programs) {
	t.Helper()
	var err error
	if built.devstack, err = programtest.Devstack(); err != nil {
		t.Fatal(err)
	}
	if built.tocsin, err = programtest.Tocsin(); err != nil {
		t.Fatal(err)
	}
	return built
}

func TestMain(m *testing.M) {
	programtest.Parallel(5)
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// waitLimit limits every wait of a test. What is waited for usually takes a second or two.
const waitLimit = 3 * time.Minute

// devstack is a running devstack.
type devstack struct {
	cmd    *exec.Cmd
	stdout *transcript
	stderr *transcript
	done   chan struct{}
}

// run starts devstack in a directory for temporary files of its own.
func run(t *testing.T, temp string, args ...string) *devstack {
	t.Helper()
	d := &devstack{stdout: newTranscript(), stderr: newTranscript(), done: make(chan struct{})}
	d.cmd = exec.CommandContext(context.Background(), build(t).devstack, args...)
	d.cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	// The test has its own pipes: otherwise processes that devstack leaves behind could keep them
	// open, and Wait would not return.
	for _, each := range []struct {
		target *io.Writer
		to     *transcript
	}{{&d.cmd.Stdout, d.stdout}, {&d.cmd.Stderr, d.stderr}} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*each.target = write
		go each.to.follow(read)
		defer func() { _ = write.Close() }()
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.done)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.done:
		case <-time.After(waitLimit):
			_ = d.cmd.Process.Kill()
			t.Error("devstack did not end")
		}
		if t.Failed() {
			t.Logf("%v said:\n%s", args, d.stderr.text())
		}
	})
	return d
}

// exit waits for the end and returns the exit code.
func (d *devstack) exit(t *testing.T) int {
	t.Helper()
	limit := time.After(waitLimit)
	for what, done := range map[string]<-chan struct{}{
		"devstack": d.done, "standard output": d.stdout.ended, "standard error": d.stderr.ended,
	} {
		select {
		case <-done:
		case <-limit:
			t.Fatalf("%s has not ended; devstack said:\n%s", what, d.stderr.text())
		}
	}
	return d.cmd.ProcessState.ExitCode()
}

func (d *devstack) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// transcript is the output of a program so far.
type transcript struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
	// ended is closed when no process can write any more.
	ended chan struct{}
}

func newTranscript() *transcript {
	return &transcript{more: make(chan struct{}), ended: make(chan struct{})}
}

func (s *transcript) follow(from *os.File) {
	defer func() { _ = from.Close() }()
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		s.add(scanner.Text())
	}
	close(s.ended)
}

func (s *transcript) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	close(s.more)
	s.more = make(chan struct{})
}

func (s *transcript) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// await waits for the first line that contains text.
func (s *transcript) await(t *testing.T, text string) string {
	t.Helper()
	limit := time.After(waitLimit)
	ended := false
	for {
		s.mu.Lock()
		lines, more := s.lines, s.more
		s.mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, text) {
				return line
			}
		}
		if ended {
			t.Fatalf("no line with %q in:\n%s", text, strings.Join(lines, "\n"))
		}
		select {
		case <-more:
		case <-s.ended:
			ended = true
		case <-limit:
			t.Fatalf("no line with %q yet in:\n%s", text, strings.Join(lines, "\n"))
		}
	}
}

// eventually waits until a condition outside the test process holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(waitLimit)
	for !holds() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("not yet: %s", what)
		}
	}
}

func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	// If nobody waits for orphans, an ended one keeps its id.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// passable is a directory for temporary files that Postgres's user may enter.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := pgserver.Folder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
