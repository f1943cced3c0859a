//go:build unix

package pgserver

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// MemoryDir is where Linux keeps files in memory.
const MemoryDir = "/dev/shm"

// leastFree is what has to be free there, and leastMemory what the machine has to have available.
const leastFree, leastMemory = 4 << 30, 8 << 30

// MemoryIsPlenty says whether the engines' data, of which the whole test suite makes less than a gigabyte at a time, may be
// kept in memory.
func MemoryIsPlenty() bool {
	var files syscall.Statfs_t
	if err := syscall.Statfs(MemoryDir, &files); err != nil || float64(files.Bavail)*float64(files.Bsize) < leastFree {
		return false
	}
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	_, after, found := strings.Cut(string(info), "MemAvailable:")
	line, _, _ := strings.Cut(after, "\n")
	kB, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 64)
	return found && err == nil && kB*1024 >= leastMemory
}

// Folder makes a directory for data to throw away, which Postgres's user may enter: in memory, where there is plenty.
func Folder() (string, error) {
	parent := "/tmp"
	if MemoryIsPlenty() {
		parent = MemoryDir
	}
	dir, err := os.MkdirTemp(parent, "tocsin-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) //nolint:gosec // Postgres may run as another user, who passes through
}
