//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

// initialise makes the cluster unless it exists. It is made under another name first: if initdb is
// killed, it leaves nothing that the next start would take for a cluster.
func initialise(ctx context.Context, opts Options, who account) error {
	if _, err := os.Stat(filepath.Join(opts.DataDir, "PG_VERSION")); err == nil {
		return nil
	}
	draft := opts.DataDir + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("make the Postgres cluster: %w", err)
	}
	if err := ownedDir(draft, who); err != nil {
		return fmt.Errorf("make the Postgres cluster: %w", err)
	}
	args := []string{
		"-D", draft, "--username=" + Superuser, "--auth=trust", "--encoding=UTF8", "--locale=C",
		"--set=timezone=UTC", "--no-instructions",
	}
	if opts.ThrowAway {
		args = append(args, "--no-sync", "--no-data-checksums")
	}
	log := taillog.New(opts.Log)
	child, err := proc.Start(proc.Options{
		Path:       filepath.Join(opts.BinDir, "initdb"),
		Args:       args,
		Env:        environment(),
		Dir:        "/",
		Stdout:     log,
		Stderr:     log,
		Credential: who.credential,
	})
	if err != nil {
		return explainStart(err, who)
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), child.Stop(ctx))
	}
	if err := child.Err(); err != nil {
		return explainEnd("make the Postgres cluster", err, log)
	}
	if err := os.Rename(draft, opts.DataDir); err != nil {
		return fmt.Errorf("make the Postgres cluster: %w", err)
	}
	return nil
}

// evict makes room for a new server. It stops a postmaster that still serves dataDir because the
// devstack that started it was killed. If a postmaster.pid names an unrelated process, because ids
// are reused, it makes the file harmless: Postgres would believe it.
func evict(ctx context.Context, dataDir string) error {
	path := filepath.Join(dataDir, "postmaster.pid")
	for _, step := range []proc.Step{
		{Signal: syscall.SIGINT, Wait: 10 * time.Second},
		{Signal: syscall.SIGQUIT, Wait: 5 * time.Second},
		{Signal: syscall.SIGKILL, Wait: 5 * time.Second},
	} {
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for a surviving Postgres: %w", err)
		}
		pid, ok := proc.ReadPID(content)
		if !ok {
			return nil
		}
		proc.AwaitEnding(ctx, pid)
		if !proc.Exists(pid) {
			return nil
		}
		if !strings.Contains(proc.CommandLine(pid), dataDir) {
			return disown(path, content)
		}
		if _, err := proc.EndOther(ctx, pid, step); err != nil {
			return fmt.Errorf("stop the surviving Postgres, process %d: %w", pid, err)
		}
	}
	return nil
}

// disown writes devstack's own process id into a stale postmaster.pid. Postgres ignores the id of
// its parent, but still checks that no old backend uses the shared memory named in the rest of the
// file. Removing the file would prevent that check.
func disown(path string, content []byte) error {
	_, rest, _ := strings.Cut(string(content), "\n")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("disown a stale postmaster.pid: %w", err)
	}
	_, err = fmt.Fprintf(file, "%d\n%s", os.Getpid(), rest)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("disown a stale postmaster.pid: %w", err)
	}
	return nil
}
