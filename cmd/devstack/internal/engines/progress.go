//go:build unix

package engines

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

const (
	terminalInterval = 500 * time.Millisecond
	plainInterval    = 5 * time.Second
)

// progress reports how much of an install has reached the disk, until it is stopped. npm itself
// does not report that.
type progress struct {
	quit chan struct{}
	done chan struct{}
}

func watch(opts Options, dir string) *progress {
	p := &progress{quit: make(chan struct{}), done: make(chan struct{})}
	interval, format, end := plainInterval, "devstack: %d MB unpacked after %s\n", ""
	if opts.Terminal {
		interval, format, end = terminalInterval, "\r\x1b[Kdevstack: %d MB unpacked after %s", "\n"
	}
	began := time.Now()
	show := func() {
		_, _ = fmt.Fprintf(opts.Progress, format, size(dir)>>20, time.Since(began).Round(time.Second))
	}
	go func() {
		defer close(p.done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				show()
			case <-p.quit:
				show()
				_, _ = fmt.Fprint(opts.Progress, end)
				return
			}
		}
	}()
	return p
}

func (p *progress) stop() {
	close(p.quit)
	<-p.done
}

// size adds up the files under dir. Files that appear or disappear meanwhile are no error.
func size(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}
