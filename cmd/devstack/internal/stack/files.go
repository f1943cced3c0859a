//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tocsin/cmd/devstack/internal/engines"
	"tocsin/cmd/devstack/internal/pgserver"
)

// self is devstack's own program. On Linux it has a name by which it can be started even after a
// build has replaced it.
func self() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find devstack's own program: %w", err)
	}
	return path, nil
}

// openLog opens a log in dir and keeps the one before it as name.1.
func openLog(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	path := filepath.Join(dir, name)
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keep the last log: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return file, nil
}

// bringEngines installs the engines if they are missing, in a place that Postgres's user can enter.
func bringEngines(ctx context.Context, console *Console, terminal bool) (engines.Engines, error) {
	base, err := engines.DefaultBase()
	if err != nil {
		return engines.Engines{}, err
	}
	if err := pgserver.Reachable(filepath.Join(base, "engines")); err != nil {
		return engines.Engines{}, fmt.Errorf("%w: set %s to a directory that every user may enter", err, engines.DirVariable)
	}
	return engines.Ensure(ctx, engines.Options{Base: base, Progress: console.out, Terminal: terminal})
}
