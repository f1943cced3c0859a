//go:build unix && !linux

package torture

import (
	"context"
	"errors"
	"time"
)

const diskDir = "disk"

// disk exists only on Linux.
type disk struct{}

var errNoDisk = errors.New("a small disk can be mounted on Linux alone")

func newDisk(*Options) (*disk, error) { return nil, errNoDisk }

func (d *disk) unmount() error { return nil }

func (w *world) fillDisk(context.Context, time.Duration) error { return errNoDisk }
