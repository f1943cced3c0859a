// Package meter reads what processes use of the machine, from Linux's /proc.
//
// A process counts with everything that it started: what its living descendants have used, and what
// the ended ones used, which the kernel adds to the process that waited for them. So a server with
// a process per connection is counted as a whole.
package meter

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/PID/stat: USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// stat is what /proc/PID/stat says of a process.
type stat struct {
	pid, parent int
	// own includes descendants that ended and were waited for.
	own time.Duration
}

func parseStat(text string) (stat, error) {
	open, closed := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 1 || closed < open {
		return stat{}, fmt.Errorf("read process status: %q", text)
	}
	// The name, in brackets, may contain anything; the third field follows it.
	fields := strings.Fields(text[closed+1:])
	const parent, user, children = 1, 11, 14
	if len(fields) <= children {
		return stat{}, fmt.Errorf("read process status: only %d fields", len(fields))
	}
	var s stat
	var errs [6]error
	s.pid, errs[0] = strconv.Atoi(strings.TrimSpace(text[:open]))
	s.parent, errs[1] = strconv.Atoi(fields[parent])
	for i := user; i <= children; i++ {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		errs[2+i-user] = err
		s.own += time.Duration(ticks) * tick
	}
	return s, errors.Join(errs[:]...)
}

// processes reads all processes. One that ends meanwhile is left out.
func processes() (map[int]stat, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("read /proc: %w", errors.Join(err, errors.ErrUnsupported))
	}
	all := make(map[int]stat, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		s, err := parseStat(string(text))
		if err != nil {
			return nil, err
		}
		all[s.pid] = s
	}
	return all, nil
}

// below reports whether a process is root or descends from it.
func below(all map[int]stat, pid, root int) bool {
	for pid > 1 {
		if pid == root {
			return true
		}
		pid = all[pid].parent
	}
	return false
}

// Reading is the CPU time that processes had used at an instant, by name.
type Reading map[string]time.Duration

// Read reads named processes, each with its descendants. A descendant that has a name itself is not
// counted twice.
func Read(named map[string]int) (Reading, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	reading := make(Reading, len(named))
	for name, root := range named {
		if _, alive := all[root]; !alive {
			return nil, fmt.Errorf("process %d (%s) has ended", root, name)
		}
		for pid, s := range all {
			if owner(named, all, pid) == root {
				reading[name] += s.own
			}
		}
	}
	return reading, nil
}

// owner returns the nearest named process among a process and its ancestors, or 0.
func owner(named map[string]int, all map[int]stat, pid int) int {
	for ; pid > 1; pid = all[pid].parent {
		for _, root := range named {
			if root == pid {
				return root
			}
		}
	}
	return 0
}

// Since returns what was used between an earlier reading and this one.
func (r Reading) Since(earlier Reading) map[string]time.Duration {
	used := maps.Clone(map[string]time.Duration(r))
	for name := range used {
		used[name] -= earlier[name]
	}
	return used
}

// Resident returns the resident memory of a process in bytes, without its descendants.
func Resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			var kilobytes int64
			_, err := fmt.Sscan(string(rest), &kilobytes)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("read memory: process %d does not report it", pid)
}

// Listener returns the process that listens on a TCP port of this machine; if several share the
// socket, the one from which the others descend.
func Listener(port int) (int, error) {
	sockets, err := listening(port)
	if err != nil {
		return 0, err
	}
	all, err := processes()
	if err != nil {
		return 0, err
	}
	found := 0
	for pid := range all {
		if holds(pid, sockets) && (found == 0 || below(all, found, pid)) {
			found = pid
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("no process that can be seen listens on port %d", port)
	}
	return found, nil
}

// listening returns the links of the sockets that listen on a port.
func listening(port int) (map[string]bool, error) {
	const address, state, inode, listen = 1, 3, 9, "0A"
	sockets := map[string]bool{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > inode && fields[state] == listen && strings.HasSuffix(fields[address], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+fields[inode]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return nil, fmt.Errorf("nothing listens on port %d", port)
	}
	return sockets, nil
}

func holds(pid int, sockets map[string]bool) bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && sockets[target] {
			return true
		}
	}
	return false
}
