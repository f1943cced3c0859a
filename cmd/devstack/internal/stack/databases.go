//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tocsin/cmd/devstack/internal/engines"
	"tocsin/cmd/devstack/internal/pgserver"
)

// keepPostgres starts Postgres and keeps it. The port that it finds free at its first start is kept, too: addresses that
// were handed out stay right.
func keepPostgres(
	ctx context.Context, console *Console, opts pgserver.Options,
) (*keeper, *pgserver.Server, error) {
	var first *pgserver.Server
	kept, err := keep(ctx, console, "Postgres", func(ctx context.Context) (process, error) {
		server, err := pgserver.Start(ctx, opts)
		if err != nil {
			return nil, err
		}
		if first != nil && server.Port() != first.Port() {
			return nil, errors.Join(
				fmt.Errorf("start Postgres again: somebody else took its port %d", first.Port()), server.Stop(ctx))
		}
		if first == nil {
			first, opts.Port = server, server.Port()
		}
		return server, nil
	})
	return kept, first, err
}

// bringEngines installs the engines where they are missing.
func bringEngines(ctx context.Context, out io.Writer, terminal bool) (engines.Engines, error) {
	return engines.Ensure(ctx, engines.Options{Progress: out, Terminal: terminal})
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
