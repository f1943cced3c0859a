//go:build unix

package proc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tocsin/cmd/devstack/internal/proc"
)

// parentVariable makes the test program act as a devstack that starts a child and is then killed.
const parentVariable = "PROC_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		playParent()
	}
	os.Exit(m.Run())
}

func playParent() {
	child, err := proc.Start(proc.Options{Path: "/bin/sh", Args: []string{"-c", "read line"}, Stdin: os.Stdin, Stdout: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(child.PID())
	// Threads that start and end must not affect the child.
	for range 8 {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(done)
		}()
		<-done
	}
	<-child.Done()
	os.Exit(0)
}

func shell(t *testing.T, script string, stdout io.Writer) *proc.Child {
	t.Helper()
	child, err := proc.Start(proc.Options{Path: "/bin/sh", Args: []string{"-c", script}, Stdout: stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Stop(context.Background()) })
	return child
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			child := shell(t, script, nil)
			<-child.Done()
			if got := child.ExitCode(); got != want {
				t.Errorf("exit code %d, want %d", got, want)
			}
			if (child.Err() == nil) != (want == 0) {
				t.Errorf("exit code %d with error %v", want, child.Err())
			}
		})
	}
}

func TestStartReportsMissingProgram(t *testing.T) {
	t.Parallel()
	_, err := proc.Start(proc.Options{Path: "/does/not/exist"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestStopKillsProcessesThatIgnoreIt(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	child := shell(t, `trap "echo asked" TERM; echo ready; while :; do sleep 1000 & wait $!; done`, write)
	lines := bufio.NewScanner(read)
	lines.Scan()
	stopped := make(chan error, 1)
	go func() {
		stopped <- child.Stop(t.Context(), proc.Step{Signal: syscall.SIGTERM, Wait: 200 * time.Millisecond})
	}()
	for lines.Scan() && lines.Text() != "asked" {
		continue
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if got := child.ExitCode(); got != 137 {
		t.Errorf("exit code %d, want 137", got)
	}
}

func TestStopSkipsWaitingWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	child := shell(t, `trap "" TERM; exec sleep 1000`, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := child.Stop(ctx, proc.Step{Signal: syscall.SIGTERM, Wait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := child.ExitCode(); got != 137 {
		t.Errorf("exit code %d, want 137", got)
	}
}

func TestWhatAChildLeavesInItsGroupEndsWithIt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	child := shell(t, "sleep 1000 >/dev/null & echo $!", &out)
	<-child.Done()
	left, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := proc.EndOther(t.Context(), left, proc.Step{Signal: 0, Wait: 10 * time.Second}); !gone || err != nil {
		t.Errorf("process %d gone: %t, %v", left, gone, err)
	}
}

func TestChildDiesWithAKilledParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("elsewhere the kernel has no such promise; the child's standard input ends, which ends it here, too")
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	input, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Kept open by the test: the child must not end because its input ends.
	if runtime.GOOS == "linux" {
		defer func() { _ = keep.Close() }()
	} else {
		_ = keep.Close()
	}
	parent.Stdin = input
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Output ends when neither the parent nor a child has it open any more.
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	if line := proc.CommandLine(os.Getpid()); !strings.Contains(line, os.Args[0]) {
		t.Errorf("command line of the test is %q, without %q", line, os.Args[0])
	}
	child := shell(t, "exit 0", nil)
	<-child.Done()
	if line := proc.CommandLine(child.PID()); strings.Contains(line, "exit 0") {
		t.Errorf("command line of an ended process is %q", line)
	}
}
