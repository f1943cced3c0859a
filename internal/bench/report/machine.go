package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Describe says what machine this is, and of what commit root is a checkout.
func Describe(ctx context.Context, root string, now time.Time) Machine {
	m := Machine{Date: now, Cores: runtime.NumCPU(), Go: runtime.Version(), Processor: runtime.GOARCH}
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.Processor = strings.TrimSpace(value)
			break
		}
	}
	var kilobytes int64
	if _, err := fmt.Sscanf(read("/proc/meminfo"), "MemTotal: %d kB", &kilobytes); err == nil {
		m.MemoryMB = kilobytes >> 10
	}
	m.Kernel = strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	if _, err := fmt.Sscanf(read("/proc/loadavg"), "%f", &m.Load); err != nil {
		m.Load = -1
	}
	m.Commit = commit(ctx, root)
	return m
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// commit names the commit, and says so when the tree differs from it.
func commit(ctx context.Context, root string) string {
	said, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty=, and changes", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(said))
}
