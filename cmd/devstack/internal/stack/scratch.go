//go:build unix

package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tocsin/cmd/devstack/internal/filelock"
	"tocsin/cmd/devstack/internal/pgserver"
)

const (
	scratchPrefix = "tocsin-devstack-"
	scratchLock   = "lock"
)

// scratch is a temporary directory that Run's engines live in. Its lock tells the next Run whether it is still used: one
// that is not was left by a crash, and is removed.
//
// It is in memory where there is plenty, unless TMPDIR names a place or the data are to be durable: a database that is
// cloned and dropped there costs less than half as much processor time.
type scratch struct {
	dir  string
	lock *filelock.Lock
}

func newScratch(console *Console, durable bool) (*scratch, error) {
	parent := os.TempDir()
	if os.Getenv("TMPDIR") == "" {
		removeStaleScratch(pgserver.MemoryDir)
		if !durable && pgserver.MemoryIsPlenty() {
			parent = pgserver.MemoryDir
		}
	}
	if err := pgserver.Reachable(filepath.Join(parent, scratchPrefix)); err != nil {
		console.Sayf("%v; using /tmp instead", err)
		parent = "/tmp"
	}
	removeStaleScratch(parent)
	for {
		dir, err := os.MkdirTemp(parent, scratchPrefix)
		if err != nil {
			return nil, fmt.Errorf("make a directory for the engines' data: %w: set TMPDIR to one that has space", err)
		}
		lock, err := filelock.Try(filepath.Join(dir, scratchLock))
		if _, held := errors.AsType[*filelock.HeldError](err); held {
			// Another devstack has just taken the new directory for an old one, and is removing it.
			continue
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		// Postgres may run as another user, who has to pass through.
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, errors.Join(err, lock.Release(), os.RemoveAll(dir))
		}
		return &scratch{dir: dir, lock: lock}, nil
	}
}

func (s *scratch) remove() error {
	return errors.Join(os.RemoveAll(s.dir), s.lock.Release())
}

// removeStaleScratch removes what killed devstacks have left. A directory that cannot be removed
// belongs to another user, and stays.
func removeStaleScratch(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		path := filepath.Join(dir, scratchLock)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		lock, err := filelock.Try(path)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Release()
	}
}
