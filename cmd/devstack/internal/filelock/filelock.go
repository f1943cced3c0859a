//go:build unix

// Package filelock keeps two devstacks out of one directory.
//
// The kernel holds the lock (flock) while the process that took it lives. So a lock never outlives
// a crash and never needs to be broken by hand. The file itself stays. Its content, the holder's
// process id, is only information for people.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pollInterval is how often Wait tries again: flock cannot wait and watch a context at the same
// time.
const pollInterval = 100 * time.Millisecond

// HeldError says that another process holds the lock.
type HeldError struct {
	// Path is the lock file.
	Path string
	// PID is the holder's process id; 0 if the file does not contain it.
	PID int
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Lock is a lock that this process holds.
type Lock struct {
	file *os.File
}

// Try takes the lock at path, and creates the file if it is missing. If another process holds the
// lock, it returns a *HeldError at once.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &HeldError{Path: path, PID: holder(path)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := sign(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("sign lock %s: %w", path, err)
	}
	return &Lock{file: file}, nil
}

// Wait takes the lock at path, and waits for its holder until ctx ends. It calls held once, before
// it begins to wait.
func Wait(ctx context.Context, path string, held func(*HeldError)) (*Lock, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	reported := false
	for {
		lock, err := Try(path)
		var taken *HeldError
		if !errors.As(err, &taken) {
			return lock, err
		}
		if !reported {
			held(taken)
			reported = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// Release releases the lock at once. Closing the file would leave the lock with a child that this
// process has forked and that has not begun its own program yet.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(path string) int {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return pid
}
