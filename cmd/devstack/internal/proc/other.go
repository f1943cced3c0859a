//go:build unix

package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const runningInterval = 50 * time.Millisecond

// Exists reports whether a process id is in use, including by a process that has ended but was not
// waited for.
func Exists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// ReadPID reads the process id at the beginning of a file's content. It returns false for an id
// that devstack must not end.
func ReadPID(content []byte) (int, bool) {
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	return pid, err == nil && pid > 1
}

// running is Exists without ended processes, as far as that can be known. In a container there is
// often nobody to wait for them, and they stay for ever.
func running(pid int) bool {
	if !Exists(pid) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	// The fields follow the program's name, which is in brackets and may itself contain brackets.
	const state, threads = 0, 17
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= threads || fields[state] != "Z" {
		return true
	}
	// The first thread of a process that is ending may be gone before the others.
	others, err := strconv.Atoi(fields[threads])
	return err == nil && others > 1
}

// endingBound is how long to wait for a process that is ending.
const endingBound = 10 * time.Second

// AwaitEnding waits until a process that is ending has ended. A process that has released its
// memory, and with it its command line, may hold its files and ports for longer on a busy machine.
// For any other process, AwaitEnding returns at once.
func AwaitEnding(ctx context.Context, pid int) {
	if running(pid) && CommandLine(pid) == "" {
		_, _ = EndOther(ctx, pid, Step{Wait: endingBound})
	}
}

// CommandLine is the command line of a process that devstack did not start, with words separated by
// spaces; empty if it cannot be read.
func CommandLine(pid int) string {
	if runtime.GOOS == "linux" {
		content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil {
			return ""
		}
		return strings.TrimSpace(strings.ReplaceAll(string(content), "\x00", " "))
	}
	ps := exec.Cmd{Path: "/bin/ps", Args: []string{"ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)}}
	output, err := ps.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}

// EndOther asks a process that devstack did not start to end, waits, and reports whether it has
// ended.
func EndOther(ctx context.Context, pid int, step Step) (bool, error) {
	if err := syscall.Kill(pid, step.Signal); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return true, nil
		}
		return false, err
	}
	timer := time.NewTimer(step.Wait)
	defer timer.Stop()
	ticker := time.NewTicker(runningInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer.C:
			return !running(pid), nil
		case <-ticker.C:
			if !running(pid) {
				return true, nil
			}
		}
	}
}
