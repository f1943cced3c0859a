//go:build linux

package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// diskDir is where the small disk is mounted, in the directory of a run.
const diskDir = "disk"

// disk is a small file system in memory.
type disk struct{ dir string }

// newDisk mounts a file system that has room for what a run writes, and not much more.
func newDisk(o *Options) (*disk, error) {
	d := &disk{dir: filepath.Join(o.Dir, diskDir)}
	if err := os.Mkdir(d.dir, 0o755); err != nil { //nolint:gosec // Postgres may run as another user, who passes through
		return nil, err
	}
	size := 320<<20 + 10_000*o.Exchanges
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size)); err != nil {
		return nil, fmt.Errorf("mount a small disk: %w", err)
	}
	return d, nil
}

func (d *disk) unmount() error { return unix.Unmount(d.dir, unix.MNT_DETACH) }

// fill repeatedly takes all the room that is left, and frees it after a while.
func (d *disk) fill(ctx context.Context, length time.Duration) (err error) {
	ballast, err := os.CreateTemp(d.dir, "ballast-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ballast.Close(), os.Remove(ballast.Name())) }()
	var held int64
	for until := time.Now().Add(length); time.Now().Before(until); {
		for piece := int64(16 << 20); piece >= 4096; {
			err := unix.Fallocate(int(ballast.Fd()), 0, held, piece)
			if err == nil {
				held += piece
				continue
			}
			if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("fill the disk: %w", err)
			}
			piece /= 2
		}
		if !pause(ctx.Done(), 10*time.Millisecond) {
			return nil
		}
	}
	return nil
}

// fillDisk fills the disk of Postgres, frees the room, and starts Postgres again if it has ended.
func (w *world) fillDisk(ctx context.Context, length time.Duration) error {
	w.postgres.busy.Lock()
	defer w.postgres.busy.Unlock()
	if err := w.disk.fill(ctx, length); err != nil {
		return err
	}
	ended, err := w.postgres.recover(ctx)
	w.logf("the disk has room again; Postgres had ended: %v", ended)
	return err
}
